//! PID 1 of a sandbox: puts up the walls, starts the program, reaps, and ends with it.
//!
//! It is a copy of the launching process, so it never returns into what that process was doing. When it ends, the
//! kernel kills every process of its PID namespace; when the host ends, the kernel kills it.

mod connector;
mod payload;

use crate::kernel;
use crate::plan::{Plan, Stdio};
use crate::report::Report;
use crate::seccomp::Filters;
use crate::stage::Stage;
use crate::walls::{About, Fault, devices, identity, landlock, privileges, root, sources, worker::Worker};
use connector::Connector;
use payload::Payload;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::Signal;
use std::io::IoSlice;

/// What the child needs of its parent.
pub(crate) struct Birth<'a> {
    pub(crate) plan: &'a Plan,
    /// The compiled system call filters.
    pub(crate) filters: &'a Filters,
    /// The socket to the host.
    pub(crate) control: BorrowedFd<'a>,
}

/// The stage that is under way, and when the earlier ones ended.
struct Progress {
    stage: Stage,
    marks: Vec<(Stage, u64)>,
}

/// Is the child. Never returns: what follows in the copied program is the parent's business.
pub(crate) fn run(birth: &Birth<'_>) -> ! {
    // A panic must not unwind into the program that this is a copy of.
    let _never_returns = ExitOnDrop;
    // A launcher lets the kernel collect its children; PID 1 must see its own end.
    kernel::reset_signals();
    let mut progress = Progress { stage: Stage::Clone, marks: Vec::with_capacity(Stage::ALL.len()) };
    progress.pass(Stage::Identity);
    let code = match build(birth, &mut progress) {
        Ok(started) => {
            // Everything that was open for building is closed by now; only these stay.
            let mut kept = vec![birth.control, started.children.as_fd()];
            kept.extend(started.connector.as_ref().map(Connector::listener));
            kept.extend(started.hidden.as_ref().map(AsFd::as_fd));
            kernel::close_all_but(&mut kept);
            watch_until_end(birth.control, &started)
        }
        Err(Fault { subject, errno }) => {
            send(birth.control, &Report::Failed { stage: progress.stage, errno, subject }, &[]);
            1
        }
    };
    kernel::exit_now(code)
}

/// Ends this process rather than let it go back to where it was copied.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        kernel::exit_now(1);
    }
}

// === impl Progress ===

impl Progress {
    /// Ends the stage under way and begins the next.
    fn pass(&mut self, next: Stage) {
        self.marks.push((self.stage, now_in_nanoseconds()));
        self.stage = next;
    }
}

pub(crate) fn now_in_nanoseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// A program that runs, and what PID 1 needs to look after it.
struct Started {
    program: i32,
    /// Readable when a child has ended.
    children: OwnedFd,
    connector: Option<Connector>,
    /// The mount namespace that holds the root, if PID 1 has left it.
    hidden: Option<OwnedFd>,
}

/// Puts everything up and starts the program.
fn build(birth: &Birth<'_>, progress: &mut Progress) -> Result<Started, Fault> {
    let plan = birth.plan;
    let mut worker = Worker::begin()?;
    kernel::wipe_arguments_and_environment(c"belljar-init");
    rustix::thread::set_name(c"belljar-init").about("name")?;
    identity::take(plan.identity)?;
    die_with_host(birth.control)?;
    progress.pass(Stage::Sources);
    root::cut_propagation()?;
    let taken = sources::take(&plan.root)?;
    progress.pass(Stage::Root);
    let root = root::build(plan, taken)?;
    progress.pass(Stage::Proc);
    root::put_up_proc(root.as_fd())?;
    progress.pass(Stage::Devices);
    devices::put_up(root.as_fd())?;
    progress.pass(Stage::Pivot);
    root::enter(&root)?;
    progress.pass(Stage::Network);
    worker.enter_network(&plan.hostname)?;
    worker.take_off_old_root()?;
    // Only now, or the copied namespace would hold the old root for ever.
    let (mut worker, hidden) = match plan.hides_mounts {
        true => worker.finish().and_then(|()| root::hide_mounts()).map(|hidden| (None, Some(hidden)))?,
        false => (Some(worker), None),
    };
    progress.pass(Stage::Limits);
    privileges::limit(plan.limits)?;
    progress.pass(Stage::Terminal);
    let (stdio, terminal) = connect(&plan.stdio)?;
    let exported = plan.exported.as_deref().map(export).transpose()?;
    progress.pass(Stage::Landlock);
    let (rules, landlock_abi) = landlock::rules(&plan.writable)?;
    let mut payload = Payload::new(&plan.command, stdio, rules, terminal.is_some());
    let answering =
        birth.filters.guard.as_ref().map(|guard| payload.guard(guard.instructions())).transpose()?;
    progress.pass(Stage::Privileges);
    privileges::drop_all()?;
    progress.pass(Stage::Seccomp);
    kernel::install_filter(&birth.filters.policy).about("filter")?;
    // No program starts before the last wall stands, and nothing but PID 1 is there when it does.
    worker.take().map_or(Ok(()), Worker::finish)?;
    progress.pass(Stage::Exec);
    // The program's children are not PID 1's to hear of, but its own end is, and must not be missed.
    let children = kernel::children_descriptor().about("signals")?;
    let program = payload.start()?;
    let connector = answering.map(|socket| payload::receive_guard(&socket).and_then(Connector::new));
    let connector = connector.transpose().about("guard")?;
    progress.pass(Stage::Exec);
    let marks = std::mem::take(&mut progress.marks);
    let descriptors: Vec<BorrowedFd<'_>> = exported.iter().chain(&terminal).map(AsFd::as_fd).collect();
    send(birth.control, &Report::Started { marks, landlock_abi }, &descriptors);
    Ok(Started { program, children, connector, hidden })
}

fn die_with_host(control: BorrowedFd<'_>) -> Result<(), Fault> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).about("death signal")?;
    // If the host died before that call, its end of the socket is closed already.
    let mut host = [PollFd::from_borrowed_fd(control, PollFlags::empty())];
    poll(&mut host, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).about("control socket")?;
    match host[0].revents().contains(PollFlags::HUP) {
        true => Err(Errno::CONNRESET).about("host"),
        false => Ok(()),
    }
}

/// The program's input and output, and the host's end of its terminal if it has one.
fn connect(stdio: &Stdio) -> Result<([OwnedFd; 3], Option<OwnedFd>), Fault> {
    let copy = |from: &OwnedFd| rustix::io::fcntl_dupfd_cloexec(from, 3).about("standard stream");
    match stdio {
        Stdio::Descriptors([input, output, errors]) => {
            Ok(([copy(input)?, copy(output)?, copy(errors)?], None))
        }
        Stdio::Terminal => {
            use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
            let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
            let host_end = openpt(flags).about("terminal")?;
            unlockpt(&host_end).about("terminal")?;
            let ours = ioctl_tiocgptpeer(&host_end, flags).about("terminal")?;
            Ok(([copy(&ours)?, copy(&ours)?, copy(&ours)?], Some(host_end)))
        }
    }
}

fn export(inside: &str) -> Result<OwnedFd, Fault> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, format!("/{inside}"), flags, Mode::empty()).about(inside)
}

/// Looks after the sandbox until the program has ended. Then ends everything else, and only then says so: who hears
/// it knows that nothing of the sandbox runs any more.
fn watch_until_end(control: BorrowedFd<'_>, started: &Started) -> i32 {
    let mut ended = None;
    loop {
        match kernel::reap() {
            Ok(Some(reaped)) if reaped.pid == started.program => {
                ended = Some(reaped.status);
                kernel::kill_all_others();
            }
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => wait_for_something(started),
            Err(_) => break,
        }
    }
    let Some(status) = ended else { return 1 };
    send(control, &Report::Ended { status, usage: kernel::usage_of_children() }, &[]);
    0
}

/// Waits for a child to end, or for a question, which is answered.
fn wait_for_something(Started { children, connector, .. }: &Started) {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut watched = vec![PollFd::new(children, PollFlags::IN)];
    watched.extend(connector.as_ref().map(|one| PollFd::from_borrowed_fd(one.listener(), PollFlags::IN)));
    if poll(&mut watched, None).is_err() {
        return;
    }
    let is_asked = watched.get(1).is_some_and(|listener| listener.revents().contains(PollFlags::IN));
    // What it says about who ended is of no interest: `reap` asks for that.
    let mut signals = [0; 1024];
    let _ = rustix::io::read(children, &mut signals);
    if let (Some(connector), true) = (connector, is_asked) {
        connector.answer_one();
    }
}

fn send(control: BorrowedFd<'_>, report: &Report, descriptors: &[BorrowedFd<'_>]) {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    }
    let bytes = report.encode();
    // If the host is gone, nobody is left to be told.
    let _ = sendmsg(control, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL);
}
