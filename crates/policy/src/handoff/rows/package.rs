//! What package managers go by.

use super::At::{Begins, In, Named};
use super::{Row, row};
use crate::handoff::HandoffKind::Package;

pub(super) const ROWS: &[Row] = &[
    row(
        Named(&[
            "package.json",
            ".pnpmfile.cjs",
            "pnpm-workspace.yaml",
            "binding.gyp",
            "deno.json",
            "deno.jsonc",
            "bunfig.toml",
            "composer.json",
            "lerna.json",
        ]),
        Package,
        "it has scripts that run when packages are installed",
    ),
    row(
        Named(&[
            ".npmrc",
            ".yarnrc",
            ".yarnrc.yml",
            ".pypirc",
            "pip.conf",
            ".condarc",
            "nuget.config",
            ".bundle",
            ".gemrc",
            "settings.xml",
            "cargo-credentials.toml",
        ]),
        Package,
        "it says from where packages come, and with which secrets",
    ),
    row(In(&[".yarn", ".bundle", ".mvn"]), Package, "a package manager runs what is in it"),
    row(
        Named(&[
            "package-lock.json",
            "npm-shrinkwrap.json",
            "yarn.lock",
            "pnpm-lock.yaml",
            "bun.lock",
            "bun.lockb",
            "cargo.lock",
            "poetry.lock",
            "uv.lock",
            "pipfile.lock",
            "pdm.lock",
            "gemfile.lock",
            "composer.lock",
            "go.sum",
            "flake.lock",
            "mix.lock",
            "pubspec.lock",
            "gradle.lockfile",
        ]),
        Package,
        "it says which code is downloaded and run",
    ),
    row(
        Named(&[
            "requirements.txt",
            "pipfile",
            "environment.yml",
            "go.mod",
            "go.work",
            "gemfile",
            "podfile",
            "mix.exs",
            "pubspec.yaml",
            "cargo.toml",
            "pyproject.toml",
        ]),
        Package,
        "it names code that is downloaded and run, or what builds it",
    ),
    row(Begins("requirements-"), Package, "it names code that is downloaded and run"),
];
