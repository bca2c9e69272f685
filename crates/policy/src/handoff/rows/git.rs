//! Files that git obeys, and those that it runs.

use super::PathCondition::{Begins, In, Named};
use super::{Row, row};
use crate::handoff::TrustKind::Git;

pub(super) const ROWS: &[Row] = &[
    row(Named(&[".gitmodules"]), Git, "git fetches from the addresses in it"),
    row(
        Named(&[".gitattributes"]),
        Git,
        "it names filters and drivers, which git runs where they are set up",
    ),
    row(Named(&[".gitconfig", ".lfsconfig"]), Git, "it has settings of git, which name programs and servers"),
    row(
        In(&[".githooks", ".husky", ".git-hooks", "githooks"]),
        Git,
        "git runs what is in it, where it is set up so",
    ),
    row(
        Named(&[
            ".pre-commit-config.yaml",
            ".pre-commit-config.yml",
            ".pre-commit-hooks.yaml",
            "lefthook.yml",
            "lefthook.yaml",
            ".lefthook.yml",
            ".overcommit.yml",
            "lefthook.toml",
            "lefthook.json",
            "lefthook-local.yml",
            ".lefthook.yaml",
            ".lefthook-local.yml",
            ".pre-commit-hooks.yml",
            ".lintstagedrc",
            ".huskyrc",
        ]),
        Git,
        "it says what runs before each commit",
    ),
    row(Begins(".lintstagedrc."), Git, "it says what runs before each commit"),
    row(
        In(&[".hg", ".jj", ".svn", ".bzr", "_darcs", ".pijul", ".sl", ".repo"]),
        Git,
        "it is a repository of another tool, which runs what its hooks and settings say",
    ),
    row(
        Named(&[
            ".hgrc",
            "hgrc",
            ".hgsub",
            ".hgsubstate",
            ".gclient",
            ".gclient_entries",
            "deps",
            "presubmit.py",
            ".arclint",
            ".fslckout",
            "_fossil_",
            "cog.toml",
            ".bumpversion.cfg",
            ".bumpversion.toml",
        ]),
        Git,
        "a version manager runs commands in it, or downloads from its URLs",
    ),
    row(
        Named(&["nano-staged.json", "preupload.cfg", "codereview.settings"]),
        Git,
        "it says what runs before each commit",
    ),
    row(Begins("simple-git-hooks."), Git, "it says what runs before each commit"),
    row(Begins(".simple-git-hooks."), Git, "it says what runs before each commit"),
];
