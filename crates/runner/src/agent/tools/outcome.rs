//! Outcome of a step as text for a model; of a long one the beginning and the end.

use crate::excerpt::within;
use crate::step::StepOutcome;
use belljar_contract::result::output::{CommandOutput, ContentEncoding, EntryKind, StepOutput};
use std::fmt::Write;

/// Returns the outcome in at most `room` bytes, plus the mark of what is left out.
pub(super) fn told(ended: &StepOutcome, room: usize) -> String {
    let mut text = String::new();
    if let Some(failure) = &ended.failure {
        let _ = writeln!(text, "failed ({}): {}", failure.code, failure.message);
    }
    if let Some(output) = &ended.output {
        text.push_str(&of_output(output));
    }
    within(text, room)
}

fn of_output(output: &StepOutput) -> String {
    match output {
        StepOutput::RunCommand(output) => of_command(output),
        StepOutput::WriteFile(written) => format!("wrote {} ({} bytes)", written.path, written.size_bytes),
        StepOutput::ReadFile(read) => {
            let cut = if read.truncated { "\n[truncated: the file is longer]" } else { "" };
            format!("{}{}{cut}", encoded(read.encoding), read.content)
        }
        StepOutput::ApplyUnifiedDiff(applied) => {
            let files: Vec<&str> = applied.files.iter().map(|file| file.path.as_str()).collect();
            format!("applied to {}", files.join(", "))
        }
        StepOutput::ListTree(listing) => {
            let mut text = String::new();
            for entry in &listing.entries {
                let slash = if matches!(entry.kind, EntryKind::Directory) { "/" } else { "" };
                let _ = writeln!(text, "{}{slash}", entry.path);
            }
            if listing.truncated { text + "[truncated: there are more entries]\n" } else { text }
        }
        StepOutput::SearchFiles(found) => {
            let mut text = String::new();
            for found in &found.matches {
                let _ = writeln!(text, "{}:{}:{}", found.path, found.line, found.text);
            }
            match (found.matches.is_empty(), found.truncated) {
                (true, _) => format!("nothing found in {} files", found.files_searched),
                (_, true) => text + "[truncated: there are more matches]\n",
                _ => text,
            }
        }
    }
}

fn of_command(output: &CommandOutput) -> String {
    let mut text = match (output.exit_code, output.signal) {
        (Some(code), _) => format!("exit code {code}\n"),
        (None, Some(signal)) => format!("ended by signal {signal}\n"),
        (None, None) => String::new(),
    };
    for (name, said, encoding) in [
        ("stdout", &output.stdout, output.stdout_encoding),
        ("stderr", &output.stderr, output.stderr_encoding),
    ] {
        if !said.is_empty() {
            let _ = writeln!(text, "{name}:\n{}{}", encoded(encoding), said.trim_end());
        }
    }
    text
}

fn encoded(encoding: ContentEncoding) -> &'static str {
    match encoding {
        ContentEncoding::Utf8 => "",
        ContentEncoding::Base64 => "[not UTF-8 text; base64-encoded] ",
    }
}
