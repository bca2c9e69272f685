//! `sshd`, with a host key of its own and one client key that it accepts.

use super::{ServerProcess, free_port, program};
use crate::wait;
use crate::world::World;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An SSH server for git repositories.
#[derive(Debug)]
pub struct SshServer {
    address: Ipv4Addr,
    port: u16,
    folder: PathBuf,
    _daemon: ServerProcess,
}

// === impl SshServer ===

impl SshServer {
    /// Lets clients with its key run git's programs as the user of the test.
    ///
    /// # Errors
    /// Why it can't be had here.
    pub fn start(world: &World, address: Ipv4Addr) -> Result<Self, String> {
        let (daemon, keygen) = (program("sshd")?, program("ssh-keygen")?);
        if !rustix::process::geteuid().is_root() {
            return Err("sshd needs root to switch to another user".to_owned());
        }
        let port = free_port(address);
        let folder = world.path().join(format!("sshd-{port}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        // Where it shuts itself in; a package makes it at the machine's start.
        std::fs::create_dir_all("/run/sshd").map_err(|error| format!("/run/sshd can't be made: {error}"))?;
        for name in ["host", "user"] {
            let made = Command::new(&keygen)
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
                .arg(folder.join(name))
                .status();
            assert!(made.is_ok_and(|status| status.success()), "a key");
        }
        std::fs::copy(folder.join("user.pub"), folder.join("authorized")).expect("a copy");
        let shown = folder.display();
        let configuration = format!(
            "ListenAddress {address}\nPort {port}\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/authorized\n\
             StrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPidFile none\nLogLevel VERBOSE\nSetEnv PATH=/usr/local/bin:/usr/bin:/bin\n"
        );
        std::fs::write(folder.join("sshd_config"), configuration).expect("a file");
        let mut command = Command::new(daemon);
        command.args(["-D", "-E"]).arg(folder.join("log")).arg("-f").arg(folder.join("sshd_config"));
        let mut daemon = ServerProcess::start(command.stderr(Stdio::null()));
        wait::until(|| TcpStream::connect((address, port)).is_ok() || daemon.is_over());
        match daemon.is_over() {
            true => Err("sshd doesn't start".to_owned()),
            false => Ok(Self { address, port, folder, _daemon: daemon }),
        }
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the ssh command of an accepted client that knows the server by that name.
    pub fn command(&self, name: &str) -> String {
        let key = std::fs::read_to_string(self.folder.join("host.pub")).expect("a key");
        let known = format!("[{name}]:{} {key}", self.port);
        let list = self.folder.join(format!("known-{name}"));
        std::fs::write(&list, known).expect("a file");
        format!(
            "ssh -F /dev/null -i {} -o IdentitiesOnly=yes -o UserKnownHostsFile={} -o GlobalKnownHostsFile=/dev/null",
            self.folder.join("user").display(),
            list.display()
        )
    }

    /// The secret by which it is entered.
    pub fn key(&self) -> PathBuf {
        self.folder.join("user")
    }

    /// Returns its log.
    pub fn log(&self) -> String {
        std::fs::read_to_string(Path::new(&self.folder).join("log")).unwrap_or_default()
    }
}
