//! Checks that the command line prints through one module, which escapes text from outside. No other file of `cli`
//! writes to the terminal by itself, converts a path or bytes into text with a loss, or writes JSON without escapes.

use super::{File, Finding, Repository};
use crate::source::code_only;

/// File that prints text.
const OUTPUT: &str = "crates/cli/src/output.rs";

/// A form of call that prints or makes text to print, and its replacement.
struct PrintForm {
    /// Call as it is written in code.
    call: &'static str,
    right: &'static str,
}

const FORMS: &[PrintForm] = &[
    PrintForm { call: "println!", right: "`output::outln!`" },
    PrintForm { call: "print!", right: "`output::out!`" },
    PrintForm { call: "eprintln!", right: "`output::errln!`" },
    PrintForm { call: "eprint!", right: "`output::err!`" },
    PrintForm { call: "anstream::", right: "the macros of `output`" },
    PrintForm { call: "io::stdout()", right: "the macros of `output`, or `command::printing`" },
    PrintForm { call: "io::stderr()", right: "the macros of `output`" },
    PrintForm { call: "with_writer(std::io", right: "`output::log` or `output::json_log`" },
    PrintForm { call: ".display()", right: "`output::path` for people, `untrusted::name` for programs" },
    PrintForm {
        call: "to_string_lossy(",
        right: "`output::path` for people, `untrusted::name` for programs",
    },
    PrintForm { call: "from_utf8_lossy(", right: "`untrusted::UntrustedBytes`" },
    PrintForm { call: "to_string_pretty(", right: "`output::json`" },
    PrintForm { call: "to_vec_pretty(", right: "`output::json`" },
];

/// A file that uses a form all the same.
struct PrintException {
    path: &'static str,
    call: &'static str,
    why: &'static str,
}

const EXCEPTIONS: &[PrintException] = &[
    PrintException {
        path: "command/job/logs.rs",
        call: "io::stdout()",
        why: "a job's own stream, escaped at a terminal",
    },
    PrintException {
        path: "command/job/logs.rs",
        call: "io::stderr()",
        why: "a job's own stream, escaped at a terminal",
    },
    PrintException {
        path: "command/agent/shown.rs",
        call: "io::stdout()",
        why: "an agent's own stream, escaped at a terminal",
    },
    PrintException {
        path: "command/audit.rs",
        call: "io::stdout()",
        why: "escaped rows, or lines of the log, which the log has escaped",
    },
    PrintException {
        path: "command/session/keeper.rs",
        call: "io::stdout()",
        why: "one line of JSON to belljar itself",
    },
    PrintException {
        path: "programs.rs",
        call: "to_string_lossy(",
        why: "a name that is compared, not printed",
    },
    PrintException {
        path: "command/exec.rs",
        call: "to_string_lossy(",
        why: "a name that is looked up, and escaped where it is printed",
    },
    PrintException {
        path: "command/agent/report.rs",
        call: "from_utf8_lossy(",
        why: "an agent's own output in JSON, which has no other bytes",
    },
    PrintException {
        path: "command/mcp/output.rs",
        call: "from_utf8_lossy(",
        why: "a program's own output in JSON, which has no other bytes",
    },
    PrintException {
        path: "command/audit/verify.rs",
        call: "from_utf8_lossy(",
        why: "lines of an anchor that are parsed, not printed",
    },
    PrintException {
        path: "client/events.rs",
        call: "from_utf8_lossy(",
        why: "a line of a stream that is parsed, not printed",
    },
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut used = vec![false; EXCEPTIONS.len()];
    for file in repository.rust_files().filter(|file| is_checked(file)) {
        let code = code_only(&file.text);
        // The rest of a file is for tests.
        let code = code.split("#[cfg(test)]").next().unwrap_or_default();
        for (index, line) in code.lines().enumerate() {
            for form in FORMS.iter().filter(|form| has_call(line, form.call)) {
                let excused = EXCEPTIONS.iter().position(|one| {
                    one.call == form.call && file.path.strip_prefix("crates/cli/src/") == Some(one.path)
                });
                match excused {
                    Some(place) => used[place] = true,
                    None => findings.push(file.finding(index + 1, format!("`{}`", form.call), form.right)),
                }
            }
        }
    }
    if repository.exists(OUTPUT) {
        findings.extend(EXCEPTIONS.iter().zip(used).filter(|(_, used)| !used).map(|(one, _)| Finding {
            path: "xtask/src/tidy/printing.rs".to_owned(),
            line: 1,
            found: format!("an exception for `{}` in {} ({})", one.call, one.path, one.why),
            right: "none: it isn't needed any more".to_owned(),
        }));
    }
    findings
}

fn is_checked(file: &File) -> bool {
    file.path.starts_with("crates/cli/src/") && file.path != OUTPUT && file.name() != "tests.rs"
}

/// Returns true if the line has that call: not as the end of a longer word, and not only to ask whether it goes to a
/// terminal.
fn has_call(line: &str, call: &str) -> bool {
    line.match_indices(call).any(|(at, _)| {
        let is_word = call.starts_with(|c: char| c.is_alphanumeric());
        let is_longer = is_word && line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let after = &line[at + call.len()..];
        !is_longer && !after.starts_with(".is_terminal()") && !after.starts_with(".flush()")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printing_past_the_module_that_escapes_is_found() {
        let bad = "fn a(path: &Path) {\n    println!(\"{}\", path.display());\n    anstream::eprintln!(\"x\");\n    let a = path.to_string_lossy();\n\
                   let b = serde_json::to_string_pretty(&a);\n    std::io::stdout().write_all(b\"x\");\n    print!(\"x\");\n}\n";
        let good = "// println!\nfn a() {\n    outln!(\"{}\", path(x));\n    std::io::stdout().is_terminal();\n    output::errln!(\"println!\");\n}\n\
                    #[cfg(test)]\nmod tests { fn a() { println!() } }\n";
        let files = [
            ("crates/cli/src/bad.rs", bad),
            ("crates/cli/src/good.rs", good),
            ("crates/node/src/bad.rs", bad),
            ("crates/cli/src/command/run/tests.rs", bad),
            ("crates/cli/src/programs.rs", "let a = name.to_string_lossy();\n"),
        ];
        let findings = check(&Repository::of(&files));
        let found: Vec<_> = findings.iter().map(|finding| (finding.path.as_str(), finding.line)).collect();
        let bad = "crates/cli/src/bad.rs";
        assert_eq!(found, [(bad, 2), (bad, 2), (bad, 3), (bad, 3), (bad, 4), (bad, 5), (bad, 6), (bad, 7)]);
    }

    #[test]
    fn unneeded_printing_exception_is_found() {
        let findings = check(&Repository::of(&[(OUTPUT, "")]));
        assert_eq!(findings.len(), EXCEPTIONS.len());
        assert!(findings[0].found.contains("command/job/logs.rs"), "{}", findings[0]);
    }
}
