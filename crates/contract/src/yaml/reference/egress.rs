//! `egress`.

use super::Takes::{List, One, Sections};
use super::Unsaid::{Means, Required, Stands};
use super::{BOOLEAN, Member};

pub(super) const EGRESS: &[Member] = &[Member {
    name: "rules",
    takes: Sections(RULE),
    unsaid: Required(""),
    meaning: "what one of them allows is allowed, and nothing else",
}];

const RULE: &[Member] = &[
    Member {
        name: "host",
        takes: One("a name, *.NAME, **.NAME or an address"),
        unsaid: Required("pkgs.example"),
        meaning: "the hosts that it is for",
    },
    Member {
        name: "ports",
        takes: List("a whole number from 1 to 65535"),
        unsaid: Means("80 and 443", "[443]"),
        meaning: "ports of TCP",
    },
    Member {
        name: "methods",
        takes: List("a method in upper case, such as GET"),
        unsaid: Means("all", "[GET]"),
        meaning: "methods of requests",
    },
    Member {
        name: "paths",
        takes: List("a path that begins with a slash"),
        unsaid: Means("all", "[/v1/]"),
        meaning: "places of URLs, each with what is below it",
    },
    Member {
        name: "networks",
        takes: List("a network, such as 10.0.0.0/8, that names its first address"),
        unsaid: Means("none", "[10.0.0.0/8]"),
        meaning: "where its names may lead besides the open internet",
    },
    Member {
        name: "inspect",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether tunnels are to be looked into",
    },
];
