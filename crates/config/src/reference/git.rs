//! `git`.

use super::AcceptedValues::{List, One, Sections};
use super::Member;
use super::MemberDefault::{Means, Required, Stands};

pub(super) const GIT: &[Member] = &[
    Member {
        name: "hosts",
        takes: List("a name, *.NAME, **.NAME or an address"),
        unsaid: Stands("[]"),
        meaning: "hosts that the host's git may use even if they resolve to private addresses, as far as \
    that can be allowed",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Stands("[]"),
        meaning: "private networks to which hosts may resolve",
    },
    Member {
        name: "forges",
        takes: Sections(FORGE),
        unsaid: Means("none", ""),
        meaning: "forges for pull requests, by repository host",
    },
    Member {
        name: "remotes",
        takes: List("the address of a repository, or one with a slash at its end for all below it"),
        unsaid: Stands("[]"),
        meaning: "repositories that git_clone and git_push may use; without any, these tools do not exist",
    },
];

const FORGE: &[Member] = &[
    Member {
        name: "host",
        takes: One("a name or an address"),
        unsaid: Required("git.house.example"),
        meaning: "unique host of its repositories",
    },
    Member {
        name: "kind",
        takes: One("one of: gitea, github, gitlab"),
        unsaid: Required("gitea"),
        meaning: "API of the forge; Forgejo uses `gitea`",
    },
    Member {
        name: "connection",
        takes: One("the name of one of `egress.connections`"),
        unsaid: Required("house"),
        meaning: "connection for its API: with `POST` among its `methods`, and a `url` as in docs/guides/git.md",
    },
];
