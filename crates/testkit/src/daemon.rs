//! A program that runs for as long as a value lives.

use std::process::Command;

/// The process, with the thread that waits for it.
#[derive(Debug)]
pub(crate) struct Daemon {
    pid: rustix::process::Pid,
    end: Signal,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Signal to a daemon.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Signal {
    /// Graceful shutdown.
    Terminate,
    /// Shutdown at once, without waiting for clients.
    Quit,
    /// Immediate kill, without cleanup.
    Kill,
    /// Suspend.
    Stop,
    /// Resume.
    Continue,
}

// === impl Signal ===

impl Signal {
    fn of_kernel(self) -> rustix::process::Signal {
        match self {
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Quit => rustix::process::Signal::QUIT,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Continue => rustix::process::Signal::CONT,
        }
    }
}

// === impl Daemon ===

impl Daemon {
    /// Starts it. Should this process be killed, the kernel ends it: it looks at the thread that has started it, so that
    /// one lives as long as the program.
    pub(crate) fn start(
        program: &str,
        end: Signal,
        arrange: impl FnOnce(&mut Command),
    ) -> Result<Self, String> {
        let mut command = Command::new("setpriv");
        let signal = match end {
            Signal::Terminate => "TERM",
            Signal::Quit => "QUIT",
            Signal::Kill | Signal::Stop | Signal::Continue => "KILL",
        };
        command.args(["--pdeathsig", signal, program]);
        arrange(&mut command);
        let program = program.to_owned();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let child = command.spawn().map_err(|error| format!("setpriv {program}: {error}"));
            let _ = tell.send(child.as_ref().map(rustix::process::Pid::from_child).map_err(String::clone));
            if let Ok(mut child) = child {
                let _ = child.wait();
            }
        });
        let pid = told.recv().map_err(|error| error.to_string())??;
        Ok(Self { pid, end, thread: Some(thread) })
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&self) {
        let _ = rustix::process::kill_process(self.pid, rustix::process::Signal::KILL);
        crate::wait::until(|| self.has_ended());
    }

    /// Sends a signal to it and to all that it has started.
    pub(crate) fn signal_all(&self, signal: Signal) {
        let pid = self.pid.as_raw_nonzero().get();
        for pid in crate::processes::below(pid).into_iter().chain([pid]) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, signal.of_kernel());
            }
        }
    }

    /// Returns true if it has ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(std::thread::JoinHandle::is_finished)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        if !self.has_ended() {
            let _ = rustix::process::kill_process(self.pid, self.end.of_kernel());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
