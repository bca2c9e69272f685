//! Files that tools for documents, data and experiments run, or take commands from.

use super::PathCondition::{Begins, Ends, In, Inside, Named};
use super::{Row, row};
use crate::handoff::TrustKind::Build;

pub(super) const ROWS: &[Row] = &[
    row(
        Named(&[
            ".latexmkrc",
            "latexmkrc",
            ".arararc.yaml",
            "arararc.yaml",
            "araraconfig.yaml",
            ".araraconfig.yaml",
        ]),
        Build,
        "a tool for documents runs it, or the commands in it",
    ),
    row(Begins("doxyfile"), Build, "Doxygen runs the filters that it names"),
    row(Inside("_plugins", &[".rb"]), Build, "Jekyll runs it when the site is built"),
    row(
        Named(&[
            "_config.yml",
            "_config.yaml",
            "_config.toml",
            "book.toml",
            "hugo.toml",
            "hugo.yaml",
            "hugo.json",
            "antora-playbook.yml",
            "antora-playbook.yaml",
            "_quarto.yml",
            "_bookdown.yml",
            "pelicanconf.py",
            "publishconf.py",
            ".yardopts",
        ]),
        Build,
        "a tool for documents runs the plugins or scripts that it names",
    ),
    row(Inside("docs", &["make.jl"]), Build, "Julia runs it when the documents are built"),
    row(
        Named(&[
            "snakefile",
            "nextflow.config",
            "dvc.yaml",
            "dvc.yml",
            "mlproject",
            "dbt_project.yml",
            "_targets.r",
            "_targets.yaml",
            "_drake.r",
            "locustfile.py",
        ]),
        Build,
        "a tool for data runs the commands in it",
    ),
    row(Ends(&[".smk"]), Build, "Snakemake runs it"),
    row(In(&[".dvc"]), Build, "a tool for data takes commands and servers from it"),
    row(
        Named(&[
            "_environment",
            "_output.yml",
            "_site.yml",
            "_quarto-dev.yml",
            "_config.ts",
            "_config.js",
            "metalsmith.json",
            "zensical.toml",
            "myst.yml",
            "jupytext.toml",
            "robot.toml",
            "robot.yaml",
            "luigi.cfg",
            "dagster.yaml",
            "prefect.yaml",
            "workspace.yaml",
        ]),
        Build,
        "a tool for documents or data runs what it names",
    ),
];
