//! `agents`.

use super::AcceptedValues::{ByName, List, One};
use super::Member;
use super::MemberDefault::{Described, Required, Value};
use super::Scalar::{Boolean, OneOf, Text};

pub(super) const AGENT: &[Member] = &[
    Member::new(
        "name",
        One(Text("small letters, digits, `-`, `_` and `.`")),
        Required("mine"),
        "unique name",
    ),
    Member::new(
        "description",
        One(Text("a line of text")),
        Required("my own agent"),
        "description in one line",
    ),
    Member::new(
        "argv",
        List(Text("a text")),
        Required("[my-agent, '{prompt}']"),
        "program and arguments, with placeholders such as `{prompt}`, which is required unless `reads_messages`",
    ),
    Member::new(
        "reads_messages",
        One(Boolean),
        Value("false"),
        "whether it reads `/workspace/.cogni/messages.json`",
    ),
    Member::new(
        "output",
        One(OneOf(&["any", "envelope"])),
        Value("any"),
        "output format: with `envelope`, output other than an envelope is an error",
    ),
    Member::new(
        "image",
        One(Text("the name of an image, such as debian:12")),
        Described("a program of the host", "agents/own:1"),
        "image that contains its program",
    ),
    Member::new("env", ByName(Text("a text")), Value("{}"), "additional environment variables").secret(),
    Member::new(
        "files",
        ByName(Text("a text")),
        Value("{}"),
        "files in its home directory, by relative path",
    )
    .secret(),
];
