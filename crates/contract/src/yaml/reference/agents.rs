//! `agents`.

use super::Takes::{ByName, List, One};
use super::Unsaid::{Means, Required, Stands};
use super::{BOOLEAN, Member};

pub(super) const AGENT: &[Member] = &[
    Member {
        name: "name",
        takes: One("small letters, digits, `-`, `_` and `.`"),
        unsaid: Required("mine"),
        meaning: "what it is called; each name once",
    },
    Member {
        name: "description",
        takes: One("a line of text"),
        unsaid: Required("my own agent"),
        meaning: "what it is, in a line",
    },
    Member {
        name: "argv",
        takes: List("a text"),
        unsaid: Required("[my-agent, '{prompt}']"),
        meaning: "its program and its arguments, with gaps such as `{prompt}`, which one must have unless `reads_messages`",
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
        meaning: "what it prints: `envelope` is an envelope and nothing else, so that anything else is an error",
    },
    Member {
        name: "image",
        takes: One("the name of an image, such as debian:12"),
        unsaid: Means("its program is the host's", "agents/own:1"),
        meaning: "the image that its program is in",
    },
    Member {
        name: "env",
        takes: ByName("a text"),
        unsaid: Stands("{}"),
        meaning: "variables besides those that tell where models are",
    },
    Member {
        name: "files",
        takes: ByName("a text"),
        unsaid: Stands("{}"),
        meaning: "files in its home, by their paths below it",
    },
];
