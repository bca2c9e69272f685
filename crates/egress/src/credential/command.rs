//! Runs a program that prints a secret.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Stdio};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Time limit of the program, and maximum size of its output in bytes. A program that exceeds one is killed with all its
/// children.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: usize = 64 << 10;
const ROOM: usize = 4096;

/// Returns the program's output.
pub(super) fn ask(argv: &[OsString]) -> io::Result<Zeroizing<Vec<u8>>> {
    ask_within(argv, PATIENCE)
}

fn ask_within(argv: &[OsString], patience: Duration) -> io::Result<Zeroizing<Vec<u8>>> {
    let deadline = Instant::now() + patience;
    let mut command = belljar_trusted::command::command(argv)?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.process_group(0).spawn()?;
    let printed =
        child.stdout.take().map_or_else(|| Ok(Zeroizing::default()), |stdout| read(stdout, deadline));
    let printed = printed.and_then(|printed| wait(&mut child, deadline).map(|()| printed));
    if printed.is_err() {
        kill(&mut child);
    }
    printed
}

fn read(mut stdout: ChildStdout, deadline: Instant) -> io::Result<Zeroizing<Vec<u8>>> {
    // The buffer has room for the maximum output: growing would leave a copy of the secret in freed memory.
    let mut printed = Zeroizing::new(Vec::with_capacity(LONGEST + ROOM));
    let mut room = Zeroizing::new([0; ROOM]);
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec::try_from(left).map_err(|_| io::ErrorKind::InvalidInput)?;
        if poll(&mut [PollFd::new(&stdout, PollFlags::IN)], Some(&timeout))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match stdout.read(&mut *room)? {
            0 => return Ok(printed),
            count => printed.extend_from_slice(&room[..count]),
        }
        if printed.len() > LONGEST {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
    }
}

/// Waits for the program to exit, after its output has ended.
fn wait(child: &mut Child, deadline: Instant) -> io::Result<()> {
    const STEP: Duration = Duration::from_millis(5);
    loop {
        match child.try_wait()? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(io::Error::other(status.to_string())),
            None if Instant::now() >= deadline => return Err(io::ErrorKind::TimedOut.into()),
            None => std::thread::sleep(STEP),
        }
    }
}

fn kill(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(group) = group
        && matches!(child.try_wait(), Ok(None))
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(script: &str) -> io::Result<Zeroizing<Vec<u8>>> {
        let argv = ["sh", "-c", script].map(OsString::from);
        ask_within(&argv, Duration::from_millis(500))
    }

    #[test]
    fn slow_or_verbose_credential_command_is_killed_with_its_children() {
        assert_eq!(asked("printf key").unwrap().as_slice(), b"key");
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("late").display().to_string();
        for slow in ["exec sleep 60", "printf key; exec >&-; sleep 60", "(sleep 1; touch MARK) & sleep 60"] {
            let failed = asked(&slow.replace("MARK", &mark)).unwrap_err();
            assert_eq!(failed.kind(), io::ErrorKind::TimedOut, "{slow}");
        }
        std::thread::sleep(Duration::from_millis(1_500));
        assert!(!folder.path().join("late").exists());
        assert_eq!(asked("exec yes").unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(asked("printf key; exit 3").unwrap_err().kind(), io::ErrorKind::Other);
    }
}
