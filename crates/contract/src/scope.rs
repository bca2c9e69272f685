//! Scopes of preferences and skills, and their precedence: task > project > user > group > system.

use crate::id::{GroupId, ParseIdError, ParseNamedIdError, ProjectId, TaskId, UserId};
use std::collections::BTreeSet;
use std::fmt;

/// Scope of a preference or a skill. Later variants are nearer to a task, and take precedence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All users and tasks.
    System,
    /// The members of a group.
    Group(GroupId),
    /// A user.
    User(UserId),
    /// All work in a project.
    Project(ProjectId),
    /// A task.
    Task(TaskId),
}

/// Kind of a scope. A greater one takes precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ScopeKind {
    /// [`Scope::System`].
    System,
    /// [`Scope::Group`].
    Group,
    /// [`Scope::User`].
    User,
    /// [`Scope::Project`].
    Project,
    /// [`Scope::Task`].
    Task,
}

/// Scopes that a caller is in: the system's, and those that are known of the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scopes {
    /// Groups of the user. At most [`MOST_GROUPS`] of them are considered: the first.
    pub groups: BTreeSet<GroupId>,
    /// The user.
    pub user: Option<UserId>,
    /// The project.
    pub project: Option<ProjectId>,
    /// The task.
    pub task: Option<TaskId>,
}

/// Maximum number of groups of a user that are considered.
pub const MOST_GROUPS: usize = 64;

/// The text, or the pair of kind and id, is not a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParseScopeError {
    /// There is no such kind.
    #[error("not a scope: `system`, or one of `group:`, `user:`, `project:` and `task:` with an id")]
    Kind,
    /// The system has no id.
    #[error("the scope `system` has no id")]
    IdOfSystem,
    /// A scope other than `system` needs an id.
    #[error("this scope has an id")]
    NoId,
    /// The id is not valid.
    #[error(transparent)]
    NamedId(#[from] ParseNamedIdError),
    /// The id of the task is not valid.
    #[error(transparent)]
    TaskId(#[from] ParseIdError),
}

// === impl Scope ===

impl Scope {
    /// Reads `system`, `group:ID`, `user:ID`, `project:ID` or `task:UUID`.
    ///
    /// # Errors
    /// [`ParseScopeError`] for every other text.
    pub fn parse(text: &str) -> Result<Self, ParseScopeError> {
        match text.split_once(':') {
            None => Self::from_parts(text, None),
            Some((kind, id)) => Self::from_parts(kind, Some(id)),
        }
    }

    /// The scope of that kind and id. The system's alone has no id.
    ///
    /// # Errors
    /// [`ParseScopeError`] when there is no such kind or the id is not what it should be.
    pub fn from_parts(kind: &str, id: Option<&str>) -> Result<Self, ParseScopeError> {
        let kind = ScopeKind::from_name(kind).ok_or(ParseScopeError::Kind)?;
        let id = match (kind, id) {
            (ScopeKind::System, None) => return Ok(Self::System),
            (ScopeKind::System, Some(_)) => return Err(ParseScopeError::IdOfSystem),
            (_, None) => return Err(ParseScopeError::NoId),
            (_, Some(id)) => id,
        };
        Ok(match kind {
            ScopeKind::System => Self::System,
            ScopeKind::Group => Self::Group(GroupId::parse(id)?),
            ScopeKind::User => Self::User(UserId::parse(id)?),
            ScopeKind::Project => Self::Project(ProjectId::parse(id)?),
            ScopeKind::Task => Self::Task(TaskId::parse(id)?),
        })
    }

    /// Returns the kind of the scope.
    pub fn kind(&self) -> ScopeKind {
        match self {
            Self::System => ScopeKind::System,
            Self::Group(_) => ScopeKind::Group,
            Self::User(_) => ScopeKind::User,
            Self::Project(_) => ScopeKind::Project,
            Self::Task(_) => ScopeKind::Task,
        }
    }

    /// Its id; the system's has none.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::System => None,
            Self::Group(id) => Some(id.as_str()),
            Self::User(id) => Some(id.as_str()),
            Self::Project(id) => Some(id.as_str()),
            Self::Task(id) => Some(id.as_str()),
        }
    }

    /// Returns a canonical text for comparisons, in which the case of a task's id doesn't matter.
    pub fn key(&self) -> String {
        match self {
            Self::Task(id) => format!("{}:{}", self.kind(), id.key()),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.id() {
            None => write!(f, "{}", self.kind()),
            Some(id) => write!(f, "{}:{id}", self.kind()),
        }
    }
}

// === impl ScopeKind ===

impl ScopeKind {
    /// All kinds, the one with the highest precedence last.
    pub const ALL: [Self; 5] = [Self::System, Self::Group, Self::User, Self::Project, Self::Task];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Group => "group",
            Self::User => "user",
            Self::Project => "project",
            Self::Task => "task",
        }
    }

    /// Returns the kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl fmt::Display for ScopeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

// === impl Scopes ===

impl Scopes {
    /// Returns the scopes with that one added. It replaces another one of its kind; groups are added.
    #[must_use]
    pub fn with(mut self, scope: &Scope) -> Self {
        match scope.clone() {
            Scope::System => {}
            Scope::Group(id) => drop(self.groups.insert(id)),
            Scope::User(id) => self.user = Some(id),
            Scope::Project(id) => self.project = Some(id),
            Scope::Task(id) => self.task = Some(id),
        }
        self
    }

    /// Returns all scopes, the one with the highest precedence last; groups are sorted by id.
    pub fn all(&self) -> Vec<Scope> {
        let groups = self.groups.iter().take(MOST_GROUPS).cloned().map(Scope::Group);
        let nearer = [
            self.user.clone().map(Scope::User),
            self.project.clone().map(Scope::Project),
            self.task.clone().map(Scope::Task),
        ];
        [Scope::System].into_iter().chain(groups).chain(nearer.into_iter().flatten()).collect()
    }

    /// Returns the precedence of a scope that the caller is in; a greater number takes precedence. `None` for other
    /// scopes.
    pub fn nearness(&self, scope: &Scope) -> Option<usize> {
        let key = scope.key();
        self.all().iter().position(|one| one.key() == key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK: &str = "0192F0C1-7D3E-7C4A-9B1E-5F6A7B8C9D0E";

    #[test]
    fn scope_round_trips_through_text() {
        for text in ["system", "group:a:b", "user:Ada Lovelace", "project:p", &format!("task:{TASK}")] {
            assert_eq!(Scope::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn scope_rejects_invalid_text() {
        use ParseScopeError::{IdOfSystem, Kind, NamedId, NoId, TaskId};
        for (text, why) in [
            ("", Kind),
            ("System", Kind),
            ("global", Kind),
            ("user :a", Kind),
            ("system:", IdOfSystem),
            ("system:a", IdOfSystem),
            ("user", NoId),
            ("user:", NamedId(ParseNamedIdError)),
            ("group:a\n", NamedId(ParseNamedIdError)),
            ("task:a", TaskId(ParseIdError)),
        ] {
            assert_eq!(Scope::parse(text), Err(why), "{text:?}");
        }
    }

    #[test]
    fn only_task_scope_keys_ignore_case() {
        let scope = |text: &str| Scope::parse(text).unwrap();
        assert_eq!(
            scope(&format!("task:{TASK}")).key(),
            scope(&format!("task:{}", TASK.to_lowercase())).key()
        );
        assert_ne!(scope("user:A").key(), scope("user:a").key());
    }

    #[test]
    fn scopes_are_ordered_by_nearness_and_groups_by_id() {
        let group = |text: &str| GroupId::parse(text).unwrap();
        let scopes = Scopes {
            groups: [group("b"), group("a")].into(),
            user: UserId::parse("u").ok(),
            project: ProjectId::parse("p").ok(),
            task: TaskId::parse(TASK).ok(),
        };
        let all: Vec<_> = scopes.all().iter().map(ToString::to_string).collect();
        assert_eq!(all, ["system", "group:a", "group:b", "user:u", "project:p", &format!("task:{TASK}")]);
        assert_eq!(
            scopes.nearness(&Scope::parse(&format!("task:{}", TASK.to_lowercase())).unwrap()),
            Some(5)
        );
        assert_eq!(scopes.nearness(&Scope::Group(group("c"))), None);
        assert_eq!(Scopes::default().all(), [Scope::System]);
    }
}
