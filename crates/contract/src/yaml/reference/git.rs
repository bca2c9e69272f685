//! `git`.

use super::Member;
use super::Takes::List;
use super::Unsaid::Stands;

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
];
