//! `git`.

use super::AcceptedValues::{List, One, Sections};
use super::Member;
use super::MemberDefault::{Described, Required, Value};
use super::Scalar::{OneOf, Text};

pub(super) const GIT: &[Member] = &[
    Member::new(
        "hosts",
        List(Text("a name, *.NAME, **.NAME or an address")),
        Value("[]"),
        "hosts that the host's git may use even if they resolve to private addresses, as far as that can be allowed",
    ),
    Member::new(
        "networks",
        List(Text("a network, such as 10.0.0.0/8, that names its first address")),
        Value("[]"),
        "private networks to which hosts may resolve",
    ),
    Member::new(
        "forges",
        Sections(FORGE),
        Described("none", ""),
        "forges for pull requests, by repository host",
    ),
    Member::new(
        "remotes",
        List(Text("the address of a repository, or one with a slash at its end for all below it")),
        Value("[]"),
        "repositories that git_clone and git_push may use; without any, these tools do not exist",
    ),
];

const FORGE: &[Member] = &[
    Member::new(
        "host",
        One(Text("a name or an address")),
        Required("git.house.example"),
        "unique host of its repositories",
    ),
    Member::new(
        "kind",
        One(OneOf(&["gitea", "github", "gitlab"])),
        Required("gitea"),
        "API of the forge; Forgejo uses `gitea`",
    ),
    Member::new(
        "connection",
        One(Text("the name of one of `egress.connections`")),
        Required("house"),
        "connection for its API: with `POST` among its `methods`, and a `url` as in docs/guides/git.md",
    ),
];
