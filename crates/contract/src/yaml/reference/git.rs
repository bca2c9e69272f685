//! `git`.

use super::Member;
use super::Takes::{List, One, Sections};
use super::Unsaid::{Means, Required, Stands};

pub(super) const GIT: &[Member] = &[
    Member {
        name: "hosts",
        takes: List("a name, *.NAME, **.NAME or an address"),
        unsaid: Stands("[]"),
        meaning: "hosts that the host's git may go to wherever they lead, as far as that can be allowed at all",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Stands("[]"),
        meaning: "networks that hosts may lead to besides the open internet",
    },
    Member {
        name: "forges",
        takes: Sections(FORGE),
        unsaid: Means("none", ""),
        meaning: "what takes pull requests, for each host of repositories",
    },
    Member {
        name: "remotes",
        takes: List("the address of a repository, or one with a slash at its end for all below it"),
        unsaid: Stands("[]"),
        meaning: "repositories that the tools git_clone and git_push may go to; without any there are no such tools",
    },
];

const FORGE: &[Member] = &[
    Member {
        name: "host",
        takes: One("a name or an address"),
        unsaid: Required("git.house.example"),
        meaning: "the host of its repositories; each host once",
    },
    Member {
        name: "kind",
        takes: One("one of: gitea, github, gitlab"),
        unsaid: Required("gitea"),
        meaning: "how it is spoken to; Forgejo is spoken to as `gitea`",
    },
    Member {
        name: "connection",
        takes: One("the name of one of `egress.connections`"),
        unsaid: Required("house"),
        meaning: "by which its interface is called: with `POST` among its `methods`, and a `url` as docs/git.md says",
    },
];
