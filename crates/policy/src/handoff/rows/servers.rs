//! Files of servers that build, deploy and check changes.

use super::PathCondition::{Begins, Below, In, Named};
use super::{Row, row};
use crate::handoff::TrustKind::{Ci, Review};

pub(super) const ROWS: &[Row] = &[
    row(Below(".github", "workflows"), Ci, "GitHub runs it, with the secrets of the repository"),
    row(Below(".github", "actions"), Ci, "GitHub runs it, with the secrets of the repository"),
    row(Named(&["action.yml", "action.yaml"]), Ci, "GitHub runs it for every user of the action"),
    row(
        In(&[
            ".circleci",
            ".buildkite",
            ".woodpecker",
            ".gitea",
            ".forgejo",
            ".gitlab",
            ".teamcity",
            ".semaphore",
            ".drone",
            ".tekton",
            ".azure-pipelines",
        ]),
        Ci,
        "a server builds by it, with the secrets of the repository",
    ),
    row(
        Named(&[
            ".travis.yml",
            ".drone.yml",
            ".woodpecker.yml",
            ".appveyor.yml",
            "appveyor.yml",
            "azure-pipelines.yml",
            "bitbucket-pipelines.yml",
            "cloudbuild.yaml",
            "cloudbuild.yml",
            "buildspec.yml",
            "codefresh.yml",
            "wercker.yml",
            ".cirrus.yml",
            ".cirrus.star",
            ".build.yml",
            "netlify.toml",
            "vercel.json",
            "fly.toml",
            "render.yaml",
            "procfile",
            "app.yaml",
            "skaffold.yaml",
            "tiltfile",
        ]),
        Ci,
        "a server builds or deploys by it",
    ),
    row(Begins(".gitlab-ci"), Ci, "GitLab runs it, with the secrets of the repository"),
    row(Begins("jenkinsfile"), Ci, "Jenkins runs it, with the secrets of the repository"),
    row(Named(&["codeowners"]), Review, "it names the required reviewers of a change"),
    row(
        Named(&[
            "dependabot.yml",
            "dependabot.yaml",
            "renovate.json",
            "renovate.json5",
            ".renovaterc",
            ".renovaterc.json",
        ]),
        Review,
        "it lists changes that need no review",
    ),
    row(
        Named(&[".gitleaks.toml", ".gitleaksignore", ".trivyignore", ".snyk"]),
        Review,
        "it lists findings for which scanners give no warning",
    ),
];
