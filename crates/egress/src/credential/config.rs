//! Reads the source of a secret from the configuration.

use super::SecretSource;
use belljar_contract::yaml::{Members, MistakeLog, Node, list, place, text, text_or_number};
use std::ffi::OsString;

/// Reads the source of a secret: one of `env`, `file` and `command`.
pub(crate) fn read_source(node: &Node, log: &mut MistakeLog) -> Option<SecretSource> {
    let mut members = Members::open(node, log)?;
    let path_expected = "the absolute path of a file";
    let all = [
        members.optional("env", |node, log| {
            text(node, log, "the name of a variable", |text| {
                let is_name = !text.is_empty() && !text.contains(['=', '\0']);
                is_name.then(|| SecretSource::Variable(text.to_owned()))
            })
        }),
        members.optional("file", |node, log| {
            text(node, log, path_expected, |text| {
                text.starts_with('/').then(|| SecretSource::File(text.into()))
            })
        }),
        members.optional("command", |node, log| {
            let argv = list(node, log, |node, log| {
                text_or_number(node, log, "an argument", |text| Some(OsString::from(text)))
            })?;
            let program = argv.first().map(|program: &OsString| program.to_string_lossy().into_owned());
            // A relative path depends on the working directory, where another user could have put the program.
            let is_meant = program.is_some_and(|program| program.starts_with('/') || !program.contains('/'));
            if !is_meant {
                let expected = "an absolute path, or a name without slashes, and its arguments";
                log.note(node.position, place(node), "no program, or one by a relative path", expected);
                return None;
            }
            Some(SecretSource::Command(argv))
        }),
    ];
    let mut given = all.into_iter().flatten();
    let (first, second) = (given.next(), given.next());
    if first.is_none() || second.is_some() {
        members.log.note(
            node.position,
            place(node),
            "no source, or more than one",
            "one of env, file, command",
        );
    }
    members.finish();
    first
}
