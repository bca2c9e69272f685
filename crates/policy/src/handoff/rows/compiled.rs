//! What runs in the place of sources, and is no text that a person would read in a diff.

use super::At::{Below, Ends, In, Inside, Named, Under};
use super::{Row, row};
use crate::handoff::HandoffKind::{Build, Executable, Package};

pub(super) const ROWS: &[Row] = &[
    row(
        Ends(&[
            ".pyc", ".pyo", ".pyd", ".so", ".dylib", ".dll", ".node", ".elc", ".zwc", ".class", ".jar",
            ".war", ".beam", ".o", ".obj", ".a", ".lib", ".lo", ".la", ".ko", ".rlib", ".rmeta",
        ]),
        Build,
        "a program loads it, or a build takes it in the place of its source",
    ),
    row(In(&["__pycache__"]), Build, "Python runs it in the place of its source"),
    row(
        Ends(&[".exe", ".bat", ".cmd", ".ps1", ".psm1", ".psd1", ".vbs", ".msi", ".scr", ".lnk"]),
        Executable,
        "Windows runs it, whatever its permissions are",
    ),
    row(
        In(&[
            ".venv",
            "venv",
            ".virtualenv",
            "virtualenv",
            "site-packages",
            "dist-packages",
            "__pypackages__",
            ".eggs",
            ".tox",
            ".nox",
            ".pixi",
        ]),
        Package,
        "Python runs what is in it in the place of what was installed",
    ),
    row(
        Named(&["pyvenv.cfg", "entry_points.txt", "easy-install.pth"]),
        Package,
        "Python takes from it what it loads",
    ),
    row(Ends(&[".egg-link"]), Package, "Python takes from it what it loads"),
    row(
        Under(&["node_modules", "bower_components", "jspm_packages"]),
        Package,
        "it runs in the place of what a package manager has installed",
    ),
    row(Inside("vendor", &["autoload.php"]), Package, "PHP runs it in the place of what was installed"),
    row(Below("vendor", "composer"), Package, "PHP runs it in the place of what was installed"),
    row(Below("vendor", "bundle"), Package, "Ruby runs it in the place of what was installed"),
    row(Below("vendor", "bin"), Package, "it runs in the place of what was installed"),
    row(Below("carthage", "build"), Package, "it is linked in the place of what was installed"),
    row(
        In(&[
            ".next",
            ".nuxt",
            ".svelte-kit",
            ".turbo",
            ".nx",
            ".parcel-cache",
            ".dart_tool",
            ".gradle",
            ".cpcache",
            ".shadow-cljs",
            ".stack-work",
            "dist-newstyle",
            "elm-stuff",
            ".build",
            "zig-cache",
            ".zig-cache",
            "cmakefiles",
            ".deps",
        ]),
        Build,
        "a build tool runs or reuses what it has left there",
    ),
    row(
        Named(&[".packages", "cmakecache.txt", "config.cache", "config.status"]),
        Build,
        "a build tool takes from it what it runs",
    ),
];
