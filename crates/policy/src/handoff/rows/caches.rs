//! What tools keep for themselves and run or evaluate when they are used the next time.

use super::At::{Begins, Below, Ends, In, Named};
use super::{Row, row};
use crate::handoff::HandoffKind::Build;

pub(super) const ROWS: &[Row] = &[
    row(
        Named(&[
            ".sconsign",
            ".sconsign.dblite",
            "environment.pickle",
            "objectdb",
            "celerybeat-schedule",
            ".depend",
        ]),
        Build,
        "a tool runs or evaluates what it has kept in it",
    ),
    row(Begins(".lock-waf"), Build, "waf evaluates what it has kept in it"),
    row(Begins(".wafpickle-"), Build, "waf evaluates what it has kept in it"),
    row(
        In(&["meson-private", ".scrapy", ".jekyll-cache", ".sass-cache", ".yardoc", "gcm.cache"]),
        Build,
        "a tool runs or evaluates what it has kept in it",
    ),
    row(Below("cache", "bootsnap"), Build, "it runs in the place of its source"),
    row(Below("bootstrap", "cache"), Build, "it runs in the place of its source"),
    row(Below("build", "c4che"), Build, "it runs in the place of its source"),
    row(
        Ends(&[
            ".gch",
            ".pch",
            ".mexa64",
            ".mexw64",
            ".mexmaci64",
            ".mexmaca64",
            ".oct",
            ".zo",
            ".fasl",
            ".cma",
            ".cmo",
            ".cmxa",
            ".cmxs",
            ".qlf",
            ".luac",
            ".ppu",
            ".dcu",
            ".phar",
            ".aar",
            ".whl",
            ".egg",
            ".ez",
            ".bundle",
        ]),
        Build,
        "it is compiled code, and runs in the place of its source",
    ),
];
