//! Skills that the job only names, fetched from the gateway before the agent begins (`docs/contracts/job.md#j9.9`).

use super::material::{Material, Skill};
use super::remote::Remote;
use crate::deadline::{Deadline, Interruption};
use crate::log::Log;
use crate::mcp::ToolCallResult;
use serde_json::{Value, json};

/// The gateway's tool that has them.
const TOOL: &str = "skills.get";
const MOST: usize = 50;
/// Maximum size of a skill, and of all skills together, in bytes.
const LONGEST: usize = 64 << 10;
const LONGEST_OF_ALL: usize = 256 << 10;

/// Fetches the skills that the job only names. One that can't be fetched stays listed: the agent is told that it is
/// missing.
pub(super) fn fetch(
    material: &mut Material,
    remote: &mut Remote,
    log: &Log<'_>,
    deadline: &Deadline<'_>,
) -> Result<(), Interruption> {
    let is_given = |id: &String| material.skills.iter().any(|skill| skill.name == *id);
    let (_, wanted): (Vec<_>, Vec<_>) =
        std::mem::take(&mut material.skill_ids).into_iter().partition(is_given);
    let mut taken = 0;
    for (at, id) in wanted.into_iter().enumerate() {
        let fetched = match (at < MOST, remote.has(TOOL)) {
            (true, true) => skill(remote, &id, LONGEST_OF_ALL - taken, deadline),
            (true, false) => Err(format!("the gateway has no tool {TOOL}")),
            (false, _) => Err(format!("the job names more than {MOST} skills")),
        };
        deadline.check()?;
        match fetched {
            Ok(skill) => {
                taken += skill.content.len();
                material.skills.push(skill);
            }
            Err(why) => {
                log.warn(format!("the skill {id} is missing: {why}"));
                material.skill_ids.push(id);
            }
        }
    }
    Ok(())
}

fn skill(remote: &mut Remote, id: &str, left: usize, deadline: &Deadline<'_>) -> Result<Skill, String> {
    let arguments = json!({ "skill_id": id }).to_string();
    let ToolCallResult { text, structured, is_error } = remote.call(TOOL, &arguments, deadline)?;
    if is_error {
        return Err(crate::excerpt::within(text, 300));
    }
    let read = structured.or_else(|| serde_json::from_str(&text).ok());
    let Skill { name, content } =
        read_skill(id, read.as_ref()).unwrap_or(Skill { name: id.to_owned(), content: text });
    match content.trim().len() {
        0 => Err("it is empty".to_owned()),
        length if length > LONGEST.min(left) => Err(format!("it is longer than {} bytes", LONGEST.min(left))),
        _ => Ok(Skill { name, content }),
    }
}

/// Reads a skill from any of the known envelopes; `None` for other values.
fn read_skill(id: &str, read: Option<&Value>) -> Option<Skill> {
    const ENVELOPES: [&str; 7] =
        ["", "/data", "/result", "/skill", "/data/skill", "/result/skill", "/result/data"];
    let inside = ENVELOPES
        .iter()
        .filter_map(|at| read?.pointer(at))
        .find(|value| value.get("content").is_some_and(Value::is_string))?;
    let text = |name: &str| inside.get(name).and_then(Value::as_str).map(str::to_owned);
    Some(Skill { name: text("name").unwrap_or_else(|| id.to_owned()), content: text("content")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_is_found_in_every_response_envelope() {
        let skill = json!({ "name": "lay", "content": "bricks" });
        for envelope in [
            skill.clone(),
            json!({ "status": "ok", "data": skill }),
            json!({ "status": "success", "result": { "skill": skill } }),
        ] {
            let read = read_skill("id", Some(&envelope)).unwrap();
            assert_eq!((read.name.as_str(), read.content.as_str()), ("lay", "bricks"), "{envelope}");
        }
        assert_eq!(read_skill("id", Some(&json!({ "content": "c" }))).unwrap().name, "id");
        assert_eq!(read_skill("id", Some(&json!({ "content": 7 }))), None);
        assert_eq!(read_skill("id", None), None);
    }
}
