//! Forges: services beside a git server that accept pull requests.

use super::{Remote, Scheme};
use crate::egress::Host;

/// Forge of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forge {
    /// Host of its repositories, for any scheme.
    pub host: Host,
    /// Kind of its API.
    pub kind: ForgeKind,
    /// Name of the connection to its API.
    pub connection: String,
}

/// Kind of a forge's API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgeKind {
    /// GitHub.
    GitHub,
    /// Gitea and its fork Forgejo.
    Gitea,
    /// GitLab, where a pull request is a merge request.
    GitLab,
}

/// Repository in a forge: its owner and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    owner: String,
    name: String,
}

/// The remote has no project in the forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its path doesn't name a forge project; expected OWNER/NAME")]
pub struct NoProject;

// === impl ForgeKind ===

impl ForgeKind {
    /// All kinds, by their names in a configuration.
    pub const ALL: [(&'static str, Self); 3] =
        [("github", Self::GitHub), ("gitea", Self::Gitea), ("gitlab", Self::GitLab)];

    /// Returns the name in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::Gitea => "gitea",
            Self::GitLab => "gitlab",
        }
    }
}

// === impl Forge ===

impl Forge {
    /// Returns true if a remote's repository belongs to this forge.
    pub(super) fn has(&self, remote: &Remote) -> bool {
        let is_server = remote.scheme() != Scheme::File;
        is_server && remote.destination().is_some_and(|destination| destination.host == self.host)
    }

    /// Returns the project of a remote.
    ///
    /// # Errors
    /// [`NoProject`].
    pub fn project(&self, remote: &Remote) -> Result<Project, NoProject> {
        let path = remote.path().trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let (owner, name) = path.rsplit_once('/').ok_or(NoProject)?;
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let is_part = |part: &str| !part.is_empty() && part.bytes().all(is_inside);
        // Only GitLab has groups within groups.
        let has_room = self.kind == ForgeKind::GitLab || !owner.contains('/');
        match has_room && owner.split('/').all(is_part) && is_part(name) {
            true => Ok(Project { owner: owner.to_owned(), name: name.to_owned() }),
            false => Err(NoProject),
        }
    }
}

// === impl Project ===

impl Project {
    /// Returns the owner: a user, an organization, or groups with slashes between them.
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// Returns the repository's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns owner and name with a slash between them.
    pub fn path(&self) -> String {
        format!("{}/{}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(kind: ForgeKind, url: &str) -> Option<String> {
        let forge = Forge { host: Host::parse("h.example").unwrap(), kind, connection: "c".to_owned() };
        let remote = Remote::parse(url, true).unwrap();
        assert_eq!(forge.has(&remote), url.contains("h.example"), "{url}");
        forge.project(&remote).ok().map(|project| project.path())
    }

    #[test]
    fn forge_project_is_derived_from_the_remote_path() {
        for url in [
            "https://h.example/a/b.git",
            "https://h.example:8443/a/b/",
            "git@h.example:a/b",
            "ssh://x@h.example:22/a/b.git",
        ] {
            for (_, kind) in ForgeKind::ALL {
                assert_eq!(project(kind, url).as_deref(), Some("a/b"), "{url}");
            }
        }
        let below = "https://h.example/group/team/app.git";
        assert_eq!(project(ForgeKind::GitLab, below).as_deref(), Some("group/team/app"));
        assert_eq!(project(ForgeKind::GitHub, below), None);
        assert_eq!(project(ForgeKind::Gitea, "https://h.example/app.git"), None);
        assert_eq!(project(ForgeKind::GitLab, "https://h.example/a%2fb/c"), None);
        assert_eq!(project(ForgeKind::GitHub, "https://h.example/a/.git"), None);
        // Remotes on another host or without a host have no project.
        project(ForgeKind::GitHub, "https://other.example/a/b");
        project(ForgeKind::GitHub, "file:///a/b");
    }

    #[test]
    fn forge_kind_names_match_the_configuration() {
        for (name, kind) in ForgeKind::ALL {
            assert_eq!(kind.name(), name);
        }
        assert_eq!(ForgeKind::ALL.map(|(name, _)| name), ["github", "gitea", "gitlab"]);
    }

    #[test]
    fn forge_project_has_an_owner_and_a_name() {
        let forge = Forge {
            host: Host::parse("h.example").unwrap(),
            kind: ForgeKind::GitLab,
            connection: "c".to_owned(),
        };
        let remote = Remote::parse("https://h.example/group/team/app.git", false).unwrap();
        let project = forge.project(&remote).unwrap();
        assert_eq!((project.owner(), project.name()), ("group/team", "app"));
    }
}
