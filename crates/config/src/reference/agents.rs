//! `agents`.

use super::AcceptedValues::{ByName, List, One};
use super::MemberDefault::{Means, Required, Stands};
use super::{BOOLEAN, Member};

pub(super) const AGENT: &[Member] = &[
    Member {
        name: "name",
        takes: One("small letters, digits, `-`, `_` and `.`"),
        unsaid: Required("mine"),
        meaning: "unique name",
    },
    Member {
        name: "description",
        takes: One("a line of text"),
        unsaid: Required("my own agent"),
        meaning: "description in one line",
    },
    Member {
        name: "argv",
        takes: List("a text"),
        unsaid: Required("[my-agent, '{prompt}']"),
        meaning: "program and arguments, with placeholders such as `{prompt}`, which is required unless \
    `reads_messages`",
    },
    Member {
        name: "reads_messages",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether it reads `/workspace/.cogni/messages.json`",
    },
    Member {
        name: "output",
        takes: One("one of: any, envelope"),
        unsaid: Stands("any"),
        meaning: "output format: with `envelope`, output other than an envelope is an error",
    },
    Member {
        name: "image",
        takes: One("the name of an image, such as debian:12"),
        unsaid: Means("a program of the host", "agents/own:1"),
        meaning: "image that contains its program",
    },
    Member {
        name: "env",
        takes: ByName("a text"),
        unsaid: Stands("{}"),
        meaning: "additional environment variables",
    },
    Member {
        name: "files",
        takes: ByName("a text"),
        unsaid: Stands("{}"),
        meaning: "files in its home directory, by relative path",
    },
];
