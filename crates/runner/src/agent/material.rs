//! Material for the agent: from the job, and from files beside it for what the job omits (`docs/contracts/job.md#j9.10`).

use crate::log::Log;
use belljar_contract::job::Job;
use belljar_contract::job::context::Criterion;
use belljar_contract::job::persona::Persona;
use rustix::fs::{Dir, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value};
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// All material of an agent.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Material {
    pub(super) persona: Option<Persona>,
    /// The ids of the task and the job, unless the text about the task has them.
    pub(super) identity: String,
    pub(super) baseline: String,
    pub(super) project: Option<String>,
    pub(super) task: Option<String>,
    pub(super) requirements: Vec<String>,
    pub(super) criteria: Vec<Criterion>,
    pub(super) preferences: Map<String, Value>,
    pub(super) additional: Option<String>,
    pub(super) skills: Vec<Skill>,
    /// Skills that are to be fetched.
    pub(super) skill_ids: Vec<String>,
}

/// Instructions for a kind of work.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) content: String,
}

/// A file that should be there and can't be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub(super) struct MaterialError {
    path: PathBuf,
    what: String,
}

/// The files beside the job, in a directory of theirs.
struct Files {
    directory: Option<OwnedFd>,
}

const BASELINE: &str = include_str!("baseline.md");
/// Maximum size of a file, in bytes. A larger one is a mistake.
const LONGEST: u64 = 1 << 20;
const MOST_SKILLS: usize = 100;
/// Directory that texts name for the files.
const SHOWN_AT: &str = "/job/context/";

// === impl Material ===

impl Material {
    /// Gathers the material. The job takes precedence; what it omits is looked for in `directory`.
    pub(super) fn gather(job: &Job, directory: Option<&Path>, log: &Log<'_>) -> Result<Self, MaterialError> {
        let files = Files::in_directory(directory)?;
        let of_job = job.context.clone().unwrap_or_default();
        let is_said = |text: &String| !text.trim().is_empty();
        let text = |given: Option<String>, name: &str| match given.filter(is_said) {
            Some(text) => files.follow(text).map(Some),
            None => files.read(name),
        };
        let mut requirements = of_job.requirements;
        if requirements.is_empty() {
            requirements = items(files.read("requirements.md")?);
        }
        let mut criteria = of_job.acceptance_criteria;
        if criteria.is_empty() {
            let texts = items(files.read("acceptance_criteria.md")?);
            criteria = texts.into_iter().map(|text| Criterion { text, check: None }).collect();
        }
        let mut preferences = of_job.preferences;
        if preferences.is_empty()
            && let Some(text) = files.read("preferences.json")?
        {
            preferences =
                serde_json::from_str(&text).map_err(|error| files.trouble("preferences.json", error))?;
        }
        let task = text(of_job.task_context, "task.md")?;
        let mut skills = given_skills(of_job.skills);
        skills.extend(files.skills(log)?);
        Ok(Self {
            persona: job.persona.clone(),
            identity: identity(job, task.as_deref().unwrap_or_default()),
            baseline: text(of_job.baseline_context, "baseline.md")?
                .filter(is_said)
                .unwrap_or_else(|| BASELINE.to_owned()),
            project: text(of_job.project_context, "project.md")?,
            task,
            requirements,
            criteria,
            preferences,
            additional: text(of_job.additional_context, "additional.md")?,
            skills,
            skill_ids: of_job.skill_ids,
        })
    }

    /// Returns the criteria that are verified in the end; without criteria, what the job asks for.
    pub(super) fn to_verify(&self) -> Vec<Criterion> {
        let asked_for = if self.requirements.is_empty() { self.task.as_slice() } else { &self.requirements };
        match self.criteria.is_empty() {
            false => self.criteria.clone(),
            true => asked_for.iter().map(|text| Criterion { text: text.clone(), check: None }).collect(),
        }
    }

    /// Returns true if there is work for an agent. In a job with steps, a task alone is only information.
    pub(super) fn has_an_aim(&self, has_steps: bool) -> bool {
        !self.requirements.is_empty() || !self.criteria.is_empty() || (!has_steps && self.task.is_some())
    }
}

/// Returns lines with the ids of the task and the job; empty if the text about the task has both.
fn identity(job: &Job, task: &str) -> String {
    let (task_id, job_id) = (job.task_id.as_str(), job.job_id.as_str());
    match task.contains(task_id) && task.contains(job_id) {
        true => String::new(),
        false => format!("Task ID: {task_id}\nJob ID: {job_id}"),
    }
}

/// Reads skills in any of their forms: a text, a list of them, an object of them by name, or of objects with a name and
/// a content.
fn given_skills(given: Option<Value>) -> Vec<Skill> {
    let one = |name: Option<String>, value: Value| {
        let member =
            |names: &[&str]| names.iter().find_map(|name| value.get(name)?.as_str().map(str::to_owned));
        let name = name.or_else(|| member(&["name", "id", "title"])).unwrap_or_else(|| "skill".to_owned());
        let content = match &value {
            Value::String(text) => text.clone(),
            other => member(&["content", "text", "body"]).unwrap_or_else(|| other.to_string()),
        };
        Skill { name, content }
    };
    match given {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all.into_iter().map(|value| one(None, value)).collect(),
        Some(Value::Object(all)) if !all.contains_key("content") => {
            all.into_iter().map(|(name, value)| one(Some(name), value)).collect()
        }
        Some(other) => vec![one(None, other)],
    }
}

/// Returns the items of a Markdown list; another text is one item.
fn items(text: Option<String>) -> Vec<String> {
    let text = text.unwrap_or_default();
    let marked =
        |line: &str| line.trim_start().strip_prefix(['-', '*'])?.strip_prefix(' ').map(str::to_owned);
    let listed: Vec<String> = text.lines().filter_map(marked).collect();
    match text.trim() {
        "" => Vec::new(),
        whole if listed.is_empty() => vec![whole.to_owned()],
        _ => listed,
    }
}

// === impl Files ===

impl Files {
    fn in_directory(path: Option<&Path>) -> Result<Self, MaterialError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let none = Self { directory: None };
        let Some(path) = path else { return Ok(none) };
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(directory) => Ok(Self { directory: Some(directory) }),
            Err(Errno::NOENT) => Ok(none),
            Err(error) => Err(none.trouble("", error)),
        }
    }

    /// Returns the text, or the content of the file that it names.
    fn follow(&self, text: String) -> Result<String, MaterialError> {
        match text.strip_prefix(SHOWN_AT).filter(|name| !name.contains(['\n', '/'])) {
            Some(name) => self.read(name)?.ok_or_else(|| self.trouble(name, "there is no such file")),
            None => Ok(text),
        }
    }

    fn read(&self, name: &str) -> Result<Option<String>, MaterialError> {
        let Some(directory) = &self.directory else { return Ok(None) };
        self.read_in(directory, name, name)
    }

    /// Reads a regular file. Links are not followed, and a FIFO without a writer doesn't block.
    fn read_in(&self, directory: &OwnedFd, name: &str, shown: &str) -> Result<Option<String>, MaterialError> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match rustix::fs::openat(directory, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.trouble(shown, error)),
        };
        if !file.metadata().is_ok_and(|found| found.is_file()) {
            return Err(self.trouble(shown, "it is not a regular file"));
        }
        let mut text = String::new();
        let count = file.take(LONGEST + 1).read_to_string(&mut text);
        match count.map_err(|error| self.trouble(shown, error))? as u64 > LONGEST {
            true => Err(self.trouble(shown, format!("longer than {LONGEST} bytes"))),
            false => Ok(Some(text)),
        }
    }

    fn skills(&self, log: &Log<'_>) -> Result<Vec<Skill>, MaterialError> {
        let Some(directory) = &self.directory else { return Ok(Vec::new()) };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::openat(directory, "skills", flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(error) => return Err(self.trouble("skills", error)),
        };
        let entries = Dir::read_from(&folder).map_err(|error| self.trouble("skills", error))?;
        let names = entries.flatten().filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned));
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
        names.sort();
        if names.len() > MOST_SKILLS {
            log.warn(format!("{} skills found; only the first {MOST_SKILLS} are used", names.len()));
            names.truncate(MOST_SKILLS);
        }
        let mut skills = Vec::new();
        for file in &names {
            if let Some(content) = self.read_in(&folder, file, &format!("skills/{file}"))? {
                skills.push(Skill { name: file.trim_end_matches(".md").to_owned(), content });
            }
        }
        Ok(skills)
    }

    fn trouble(&self, name: &str, what: impl std::fmt::Display) -> MaterialError {
        MaterialError { path: Path::new(SHOWN_AT).join(name), what: what.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn skills_are_parsed_from_text_arrays_and_objects() {
        let skill = |name: &str| Skill { name: name.to_owned(), content: "c".to_owned() };
        assert_eq!(given_skills(Some(json!("c"))), [skill("skill")]);
        assert_eq!(
            given_skills(Some(json!([{ "name": "a", "content": "c" }, "c"]))),
            [skill("a"), skill("skill")]
        );
        assert_eq!(given_skills(Some(json!({ "a": "c", "b": { "text": "c" } }))), [skill("a"), skill("b")]);
        assert_eq!(given_skills(Some(json!({ "id": "a", "content": "c" }))), [skill("a")]);
        assert!(given_skills(Some(Value::Null)).is_empty() && given_skills(None).is_empty());
    }

    #[test]
    fn markdown_list_becomes_items_and_other_text_one_item() {
        assert_eq!(items(Some("# Title\n- a\n* b\n".to_owned())), ["a", "b"]);
        assert_eq!(items(Some("as it is\n".to_owned())), ["as it is"]);
        assert!(items(Some("\n".to_owned())).is_empty() && items(None).is_empty());
    }
}
