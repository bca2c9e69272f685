//! The machine: qemu with hardware virtualization if it works, and with emulation otherwise.

use crate::guest::{Guest, GuestError};
use crate::kernel::Kernel;
use crate::transcript::Transcript;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A machine and the transcript of its run.
#[derive(Debug)]
pub struct Machine {
    acceleration: Acceleration,
    qemu: Child,
    lines: Receiver<String>,
    transcript: Transcript,
}

/// The executor of the guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acceleration {
    /// The processor.
    Kvm,
    /// qemu's emulation.
    Emulation,
}

/// The reason why a machine couldn't run.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The guest can't be made.
    #[error(transparent)]
    Guest(#[from] GuestError),
    /// A file for qemu can't be written, or qemu can't be started.
    #[error("can't start qemu")]
    Start(#[source] io::Error),
}

const QEMU: &str = "qemu-system-x86_64";

const MEMORY_MEBIBYTES: u32 = 1536;
const DISK_BYTES: u64 = 1 << 30;

/// Time limit of a boot with KVM, which takes one or two seconds. A machine that isn't up by then never will be: some hosts
/// have the device, and guests hang.
const LONGEST_BOOT_WITH_KVM: Duration = Duration::from_secs(12);

/// Returns true if qemu is installed.
pub fn is_there() -> bool {
    Command::new(QEMU).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// Boots the guest and reads its output until it turns itself off, or until `timeout`.
///
/// # Errors
/// [`MachineError`]. Unfinished tasks of the guest are visible in the transcript.
pub fn run(
    kernel: &Kernel,
    guest: &Guest,
    timeout: Duration,
) -> Result<(Transcript, Acceleration), MachineError> {
    let deadline = Instant::now() + timeout;
    let folder = tempfile::tempdir().map_err(MachineError::Start)?;
    std::fs::write(folder.path().join("archive"), guest.archive(kernel)?).map_err(MachineError::Start)?;
    let image = kernel.image().map_err(GuestError::Kernel)?;
    if may_use_kvm() {
        let mut machine = Machine::start(Acceleration::Kvm, &image, folder.path())?;
        machine.read_until(Instant::now() + LONGEST_BOOT_WITH_KVM, Transcript::is_up);
        if machine.transcript.is_up() {
            return Ok(machine.finish(deadline));
        }
    }
    let machine = Machine::start(Acceleration::Emulation, &image, folder.path())?;
    Ok(machine.finish(deadline))
}

fn may_use_kvm() -> bool {
    File::options().read(true).write(true).open("/dev/kvm").is_ok()
}

// === impl Machine ===

impl Machine {
    fn start(acceleration: Acceleration, image: &Path, folder: &Path) -> Result<Self, MachineError> {
        let disk = folder.join("disk");
        File::create(&disk).and_then(|disk| disk.set_len(DISK_BYTES)).map_err(MachineError::Start)?;
        let mut command = Command::new(QEMU);
        command
            .args(["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"])
            .args(["-smp", "2", "-m", &MEMORY_MEBIBYTES.to_string()])
            .args(["-machine", "q35", "-accel"])
            .args(acceleration.arguments())
            .args(["-append", "console=ttyS0 panic=-1 quiet loglevel=1 cgroup_no_v1=all"])
            .arg("-kernel")
            .arg(image)
            .arg("-initrd")
            .arg(folder.join("archive"))
            .arg("-drive")
            .arg(format!("if=virtio,format=raw,cache=unsafe,file={}", disk.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut qemu = command.spawn().map_err(MachineError::Start)?;
        let serial =
            qemu.stdout.take().ok_or_else(|| MachineError::Start(io::ErrorKind::BrokenPipe.into()))?;
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(serial).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    break;
                }
            }
        });
        Ok(Self { acceleration, qemu, lines, transcript: Transcript::default() })
    }

    fn finish(mut self, deadline: Instant) -> (Transcript, Acceleration) {
        self.read_until(deadline, Transcript::is_done);
        (std::mem::take(&mut self.transcript), self.acceleration)
    }

    /// Reads until the deadline, until the transcript has the expected content, or until the machine is off.
    fn read_until(&mut self, deadline: Instant, is_enough: impl Fn(&Transcript) -> bool) {
        while !is_enough(&self.transcript) {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.transcript.push(&line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }
}

// === impl Acceleration ===

impl Acceleration {
    fn arguments(self) -> [&'static str; 3] {
        match self {
            // Not every host permits all features of its processor to a guest.
            Self::Kvm => ["kvm", "-cpu", "host"],
            Self::Emulation => ["tcg,thread=multi", "-cpu", "max"],
        }
    }
}
