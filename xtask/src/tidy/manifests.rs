//! Checks that every crate uses the workspace's lints, edition and versions.

use super::{Finding, Repository};

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let crates = repository.files.iter().filter(|file| file.room().is_some() && file.name() == "Cargo.toml");
    for file in crates {
        if !file.text.contains("[lints]\nworkspace = true\n") {
            findings.push(file.finding(1, "lints of its own", "`[lints]` with `workspace = true`"));
        }
        for key in ["version", "edition", "rust-version", "license", "publish"] {
            if !file.text.contains(&format!("\n{key}.workspace = true\n")) {
                findings.push(file.finding(
                    1,
                    format!("its own `{key}`"),
                    format!("`{key}.workspace = true`"),
                ));
            }
        }
        for (line, text) in file.lines().filter(|(_, text)| text.contains("\"*\"")) {
            findings.push(file.finding(line, text, "a version"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\n\n[lints]\nworkspace = true\n";

    #[test]
    fn manifest_that_overrides_workspace_settings_is_found() {
        let found = |text: &str| check(&Repository::of(&[("crates/a/Cargo.toml", text)])).len();
        assert_eq!(found(SOUND), 0);
        assert_eq!(found(&SOUND.replace("[lints]", "[lints.rust]")), 1);
        assert_eq!(found(&SOUND.replace("edition.workspace = true", "edition = \"2021\"")), 1);
        assert_eq!(found(&format!("{SOUND}[dependencies]\nx = \"*\"\n")), 1);
    }
}
