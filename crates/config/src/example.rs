//! The file that `belljar config init` writes: every section and member, with its meaning and its default.
//!
//! Settings are commented out with one mark at the start of the line, prose and alternatives with two. Without one mark
//! on each line, the file is a configuration with all members.

use crate::reference::{AcceptedValues, Member, MemberDefault, Override, ROOT};

const HEAD: &str = "## Configuration of Belljar. Every line that begins with one # is a setting with its default; a member that has none
## shows an example. To change a setting, remove the # of its line and of the lines of the sections around it. Lines
## that begin with ## are explanations, and members that replace another one.
##
## `belljar config check FILE` reports every mistake, `belljar config show` what is in effect and where it comes from.
";

/// The member that isn't commented out, with its default: a file without any member is refused.
const WRITTEN: [&str; 3] = ["log", "container_log_shipping", "enabled"];

/// Width of explanations, in characters.
const WIDTH: usize = 110;

/// Mark of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Written,
    Commented,
    Explanation,
}

/// Where a member stands.
#[derive(Debug, Clone, Copy)]
struct Place<'w> {
    indent: usize,
    mark: Mark,
    /// Names that lead from here to the member that is written out.
    written: &'w [&'w str],
}

/// Returns the text of the file.
pub fn example() -> String {
    let mut page = HEAD.to_owned();
    for member in ROOT {
        page.push('\n');
        let place = Place { indent: 0, mark: Mark::Commented, written: &WRITTEN };
        add(&mut page, member, place, "");
    }
    page
}

/// Adds a member: its explanation and its line, then the members below it. `dash` begins an item of a list, or is empty.
fn add(page: &mut String, member: &Member, place: Place<'_>, dash: &str) {
    let (is_written, written) = match place.written.split_first() {
        Some((name, rest)) if *name == member.name => (true, rest),
        _ => (false, &[][..]),
    };
    let mark = match place.mark {
        Mark::Commented if is_written => Mark::Written,
        Mark::Commented if member.is_alternative => Mark::Explanation,
        mark => mark,
    };
    let indent = place.indent;
    for text in wrapped(&explanation(member), WIDTH.saturating_sub(indent)) {
        line(page, Mark::Explanation, indent + 1, &text);
    }
    let below = Place { indent: indent + 2, mark: if is_written { Mark::Commented } else { mark }, written };
    let lead = indent - dash.len();
    match member.takes {
        AcceptedValues::Section(members) => {
            line(page, mark, lead, &format!("{dash}{}:", member.name));
            members.iter().for_each(|member| add(page, member, below, ""));
        }
        AcceptedValues::Sections(members) => {
            line(page, mark, lead, &format!("{dash}{}:", member.name));
            add_item(page, members, Place { indent: below.indent + 2, ..below });
        }
        _ => line(page, mark, lead, &format!("{dash}{}: {}", member.name, member.sample())),
    }
}

/// Adds an item of a list. Its first member begins with a dash.
fn add_item(page: &mut String, members: &[Member], place: Place<'_>) {
    for (index, member) in members.iter().enumerate() {
        add(page, member, place, if index == 0 { "- " } else { "" });
    }
}

fn explanation(member: &Member) -> String {
    let mut text = format!("{}: {}", member.name, member.meaning);
    let takes = match member.takes {
        AcceptedValues::One(scalar) => Some(scalar.to_string()),
        AcceptedValues::List(scalar) => Some(format!("a list of: {scalar}")),
        AcceptedValues::Layers => Some("a list of layers".to_owned()),
        AcceptedValues::ByCategory(scalar) => Some(format!("for each category: {scalar}")),
        AcceptedValues::ByName(scalar) => Some(format!("for each name: {scalar}")),
        AcceptedValues::Section(_) | AcceptedValues::Sections(_) => None,
    };
    if let Some(takes) = takes {
        text.push_str(&format!(". Takes {takes}"));
    }
    match member.default {
        MemberDefault::Described(words, _) => text.push_str(&format!(". Default: {words}")),
        MemberDefault::Required(_) => text.push_str(". Required"),
        MemberDefault::Value(_) | MemberDefault::Members => {}
    }
    for source in member.overrides {
        text.push_str(&match source {
            Override::Flag { name, .. } => format!(". {name} takes precedence"),
            Override::Variable(name) => format!(". If absent, {name} is used"),
        });
    }
    text
}

fn line(page: &mut String, mark: Mark, indent: usize, text: &str) {
    page.push_str(match mark {
        Mark::Written => "",
        Mark::Commented => "#",
        Mark::Explanation => "##",
    });
    page.extend(std::iter::repeat_n(' ', indent));
    page.push_str(text);
    page.push('\n');
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) if last.chars().count() + word.chars().count() < width => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::yaml::{self, MistakeLog, Node};

    fn parsed(text: &str) -> Node {
        let mut log = MistakeLog::default();
        let root = yaml::parse(text.as_bytes(), &mut log);
        log.finish().unwrap();
        root.unwrap()
    }

    fn each(members: &'static [Member], found: &mut Vec<&'static Member>) {
        for member in members {
            found.push(member);
            member.below().into_iter().for_each(|below| each(below, found));
        }
    }

    #[test]
    fn example_has_one_written_member_and_every_other_one_commented_out() {
        let text = example();
        assert!(parsed(&text).member(&WRITTEN).is_some());
        let live: Vec<&str> =
            text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
        assert_eq!(live, ["log:", "  container_log_shipping:", "    enabled: true"]);
        let mut members = Vec::new();
        each(ROOT, &mut members);
        for member in members {
            let line = format!("{}:", member.name);
            let is_it = |text: &&str| text.trim_start_matches(['#', ' ', '-']).starts_with(&line);
            // Its explanation and itself.
            assert!(text.lines().filter(is_it).count() >= 2, "{line}");
        }
    }

    #[test]
    fn example_without_one_mark_is_yaml_with_all_sections() {
        let text: Vec<String> =
            example().lines().map(|line| line.strip_prefix('#').unwrap_or(line).to_owned()).collect();
        let root = parsed(&text.join("\n"));
        for member in ROOT {
            assert!(root.member(&[member.name]).is_some(), "{}", member.name);
        }
    }
}
