//! Packages installed below a project, and environments: their content runs in place of what was downloaded.

use super::PathCondition::{Below, Ends, In, Inside, Named, Shaped};
use super::{Row, row, shapes};
use crate::handoff::TrustKind::Package;

const INSTALLED: &str = "it runs in the place of what a package manager has installed";

pub(super) const ROWS: &[Row] = &[
    row(Shaped(shapes::is_downloaded_source), Package, INSTALLED),
    row(
        In(&[
            "lua_modules",
            "nimbledeps",
            "managed_components",
            "_opam",
            "_esy",
            "esy.lock",
            "dbt_packages",
            "dbt_modules",
            "ansible_collections",
            "lake-packages",
            "_checkouts",
            "web_modules",
            "target support files",
            "local podspecs",
        ]),
        Package,
        INSTALLED,
    ),
    row(Below("lib", "perl5"), Package, INSTALLED),
    row(Below("renv", "library"), Package, INSTALLED),
    row(Below("packrat", "lib"), Package, INSTALLED),
    row(Below("library", "packagecache"), Package, INSTALLED),
    row(Below("vendor", "gems"), Package, INSTALLED),
    row(Below("vendor", "cookbooks"), Package, INSTALLED),
    row(Shaped(shapes::is_python_metadata), Package, "Python takes from it what it loads"),
    row(
        Inside("bin", &["pip", "pip3", "python", "python3", "pypy", "pypy3", "activate.sh"]),
        Package,
        "it runs in the place of the program of this name, where the environment is entered",
    ),
    row(Shaped(shapes::is_lock_file), Package, "it says which code is downloaded and run"),
    row(Named(&["project.assets.json", "project.nuget.cache"]), Package, "it says which code is built with"),
    row(
        Ends(&[
            ".gemfile",
            ".gemfile.lock",
            "gemfile.next",
            "gemfile.next.lock",
            "gemfile_next",
            "gemfile.local",
        ]),
        Package,
        "it names code that is downloaded and run",
    ),
    row(
        Inside("patches", &[".patch", ".diff", "series"]),
        Package,
        "it is applied to code that is built or run",
    ),
    row(Below("debian", "patches"), Package, "it is applied to code that is built or run"),
];
