//! Further spellings of names in other rows: other formats of a setting, packages in place of modules.

use super::PathCondition::{Begins, Below, Ends, In, Inside, Named, Shaped};
use super::{Row, row, shapes};
use crate::handoff::TrustKind::{Agent, Build, Ci, Git};

pub(super) const ROWS: &[Row] = &[
    row(Begins("lefthook."), Git, "it says what runs before each commit"),
    row(Begins("lefthook-local."), Git, "it says what runs before each commit"),
    row(Begins("nano-staged."), Git, "it says what runs before each commit"),
    row(
        Named(&["cz.toml", "cz.json", "cz.yaml", "cz.yml", "tbump.toml"]),
        Git,
        "it says what runs when a version is made",
    ),
    row(Shaped(shapes::is_tasks_package), Build, "it runs when something is built, installed or tested"),
    row(
        In(&["fabfile", "locustfile", "celeryconfig", "airflow_local_settings", "noxfile"]),
        Build,
        "it runs when something is built, installed or tested",
    ),
    row(
        Named(&[
            "darttestfile.txt",
            "pom.groovy",
            "pom.rb",
            "pom.yaml",
            "pom.yml",
            "pom.scala",
            "pom.kts",
            "pom.clj",
            "pom.atom",
            "rubygems_plugin.rb",
            "tools.ini",
            "texmf.cnf",
            "sgconfig.yml",
            "sgconfig.yaml",
        ]),
        Build,
        "a tool of its language runs it, or what it names",
    ),
    row(Begins("vm.args"), Build, "a tool of its language runs it, or what it names"),
    row(Begins("package-scripts."), Build, "it has the commands that a task runner runs"),
    row(Inside("rel", &[".eex"]), Build, "it runs when the release is started"),
    row(Ends(&[".ctest", "._pth", ".suo", ".xcbkptlist"]), Build, "a tool runs what is in it"),
    row(Inside("sorbet", &["config"]), Build, "a checker takes its options from it"),
    row(Below("tapioca", "dsl"), Build, "a generator runs it"),
    row(In(&["ruby_lsp"]), Build, "an editor loads it when the folder is opened"),
    row(Shaped(shapes::is_build_of_sbt), Build, "sbt runs it before it reads the build"),
    row(
        Named(&[
            "goreleaser.yml",
            "goreleaser.yaml",
            "kustomization",
            "buildkite.yml",
            "buildkite.yaml",
            "jitpack.yml",
            "buddy.yml",
            "screwdriver.yaml",
            "codeship-steps.yml",
            "codeship-services.yml",
            "readthedocs.yml",
            "readthedocs.yaml",
            "inventory.yml",
            "inventory.yaml",
            "inventory.ini",
            "ellipsis.yaml",
        ]),
        Ci,
        "it says what is deployed, or what runs there",
    ),
    row(
        Inside("buildkite", &["pipeline.yml", "pipeline.yaml"]),
        Ci,
        "it says what is deployed, or what runs there",
    ),
    row(Shaped(shapes::is_memory_of_agent), Agent, "an agent takes its instructions from it"),
];
