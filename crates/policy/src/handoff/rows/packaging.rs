//! Files that build distribution packages and images.

use super::PathCondition::{Begins, Ends, In, Inside, Named};
use super::{Row, row};
use crate::handoff::TrustKind::Build;

pub(super) const ROWS: &[Row] = &[
    row(
        Inside("debian", &["rules", "preinst", "postinst", "prerm", "postrm"]),
        Build,
        "it runs when a package is built or installed",
    ),
    row(
        Named(&[
            "pkgbuild",
            "apkbuild",
            "portfile",
            "snapcraft.yaml",
            "appimagebuilder.yml",
            "nfpm.yaml",
            "nfpm.yml",
            "spack.yaml",
            "guix.scm",
            "manifest.scm",
            "channels.scm",
            "alire.toml",
            "box.json",
        ]),
        Build,
        "it runs when a package is built, or names what does",
    ),
    row(
        Ends(&[".spec", ".ebuild", ".eclass", ".bb", ".bbappend", ".bbclass"]),
        Build,
        "it runs when a package is built",
    ),
    row(Begins("mkosi."), Build, "it runs when an image is built"),
    row(Begins("electron-builder."), Build, "it runs when a package is built"),
    row(In(&[".luarocks"]), Build, "it runs in the place of what was installed"),
    row(Named(&["singularity", "template"]), Build, "it runs when a package is built"),
    row(
        Inside("debian", &["watch", "config", "templates", "control"]),
        Build,
        "a tool for packages runs it, or installs what it names",
    ),
    row(
        Inside("bin", &["compile", "detect", "release", "pre_compile", "post_compile"]),
        Build,
        "it runs when an image is built",
    ),
];
