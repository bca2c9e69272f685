//! Files of a session, by programs that run in it: whatever a path leads to in there, it leads to nothing outside. A shell and the
//! usual small programs are all that it takes.

use super::execution::{self, CallerGoneSignal, CommandEnd, SessionCommand};
use super::failures;
use belljar_contract::tool::DomainCode;
use belljar_sandbox::session::{ProgramOutcome, SessionClient};
use belljar_tools::answer::Failure;
use std::time::Duration;

/// A program for the shell.
pub(super) struct ShellScript {
    text: &'static str,
    /// Maximum size of the script's output, in bytes.
    most_bytes: usize,
}

/// Programs that these scripts run, including the shell. They are added to a session's program allowlist.
pub(super) const PROGRAMS: [&str; 11] =
    ["cat", "cp", "find", "head", "mkdir", "mv", "readlink", "rm", "sh", "tail", "wc"];

/// Prints the size of a file (1), and then so many of its bytes (3) from that one on (2), counted from 1.
pub(super) const READ: ShellScript = ShellScript {
    text: r#"
[ -e "$1" ] || exit 80
[ -d "$1" ] && exit 81
[ -f "$1" ] || exit 82
[ -r "$1" ] || exit 83
wc -c < "$1" && tail -c +"$2" < "$1" | head -c "$3"
"#,
    most_bytes: LARGEST_FILE_BYTES + 64,
};

/// Script that replaces a file (argument 1) with standard input of a given size in bytes (argument 2), and reports what was there
/// before: `created` or `replaced`. The file keeps its permissions. If less input arrives, because the caller has gone, the file stays
/// unchanged.
pub(super) const WRITE: ShellScript = ShellScript {
    text: r#"
target=$1
[ -L "$target" ] && target=$(readlink -f -- "$target")
[ -d "$target" ] && exit 81
[ -e "$target" ] && ! [ -f "$target" ] && exit 82
folder=${target%/*}/
mkdir -p -- "$folder" || exit 84
part=$folder.belljar-part-$$
trap 'rm -f -- "$part"' EXIT
word=created
[ -e "$target" ] && word=replaced
[ $word = created ] || cp -p -- "$target" "$part" || exit 84
cat > "$part" || exit 84
[ "$(wc -c < "$part")" -eq "$2" ] || exit 85
mv -f -- "$part" "$target" || exit 84
echo $word
"#,
    most_bytes: 64,
};

/// Prints what is in a directory (1), each with its kind and its size, if that can be told, and a zero byte after it.
pub(super) const LIST: ShellScript = ShellScript {
    text: r#"
[ -e "$1" ] || exit 80
[ -d "$1" ] || exit 86
{ [ -r "$1" ] && [ -x "$1" ] && cd -- "$1"; } || exit 83
if find . -maxdepth 0 -printf '' 2> /dev/null; then
    find . -mindepth 1 -maxdepth 1 -printf '%y %s %f\0'
    exit
fi
for name in * .[!.]* ..?*; do
    kind=o
    [ -f "$name" ] && kind=f
    [ -d "$name" ] && kind=d
    [ -L "$name" ] && kind=l
    [ $kind = o ] && ! [ -e "$name" ] && continue
    printf '%s - %s\0' $kind "$name"
done
"#,
    most_bytes: 4 << 20,
};

/// The largest part of a file that is read, and the largest file that is written.
pub(super) const LARGEST_FILE_BYTES: usize = 2 << 20;

/// Timeout of a script.
const WITHIN: Duration = Duration::from_secs(45);

/// Maximum length of a reported error message.
const MOST_COMPLAINT: usize = 300;

// === impl ShellScript ===

impl ShellScript {
    /// Runs the script in a session and returns its output.
    pub(super) fn run(
        &self,
        client: &SessionClient,
        (path, further): (&str, &[String]),
        input: Vec<u8>,
        given_up: &CallerGoneSignal,
    ) -> Result<Vec<u8>, Failure> {
        let place = place(path)?;
        let mut argv: Vec<_> = ["/bin/sh", "-c", self.text, "sh", &place].map(Into::into).to_vec();
        argv.extend(further.iter().map(Into::into));
        let command = SessionCommand {
            argv,
            directory: "/workspace".to_owned(),
            input,
            within: WITHIN,
            most_bytes: self.most_bytes,
            ends_with_output: false,
        };
        let ended =
            execution::run(client, command, given_up).map_err(|error| failures::of_session(&error))?;
        match ended.by {
            CommandEnd::Outcome(ProgramOutcome::Exited(0)) => ended.stdout.whole().ok_or_else(|| {
                Failure::new(DomainCode::LimitExceeded, format!("{path} is too large for one response"))
            }),
            CommandEnd::Outcome(ProgramOutcome::Exited(code)) => {
                Err(failed(path, code).unwrap_or_else(|| complained(path, ended.stderr.text().0.trim())))
            }
            CommandEnd::Outcome(_) => Err(complained(path, "the session or the shell in it was ended")),
            CommandEnd::OutOfTime => {
                Err(Failure::new(DomainCode::LimitExceeded, format!("{path} took too long")))
            }
            CommandEnd::GivenUp => Err(complained(path, "the caller stopped waiting")),
            CommandEnd::Silent => Err(complained(path, "the shell closed its output and kept running")),
        }
    }
}

/// Checks a path for use in the sandbox. Relative paths start at the workspace.
fn place(path: &str) -> Result<String, Failure> {
    match path {
        "" => Err(Failure::argument("a path is needed")),
        _ if path.contains('\0') => Err(Failure::argument("a path has no zero byte")),
        _ if path.starts_with('/') => Ok(path.to_owned()),
        _ => Ok(format!("./{path}")),
    }
}

fn failed(path: &str, code: i32) -> Option<Failure> {
    let (code, what) = match code {
        80 => (DomainCode::NotFound, "isn't there"),
        81 => (DomainCode::InvalidArgument, "is a directory: `list` tells what is in it"),
        82 => (DomainCode::InvalidArgument, "is no file"),
        83 => (DomainCode::PermissionDenied, "can't be read: the session's user has no permission"),
        84 => (DomainCode::PermissionDenied, "can't be written"),
        85 => (DomainCode::Conflict, "stays as it was: not all of it came through"),
        86 => (DomainCode::InvalidArgument, "is no directory"),
        _ => return None,
    };
    Some(Failure::new(code, format!("{path} {what}")))
}

fn complained(path: &str, complaint: &str) -> Failure {
    let complaint = &complaint[..complaint.floor_char_boundary(MOST_COMPLAINT)];
    Failure::new(DomainCode::ToolFailed, format!("{path}: {complaint}"))
}
