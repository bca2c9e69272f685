//! `with-servers COMMAND...`: runs tests that share one Docker engine, one PostgreSQL and one LiteLLM. Tests report by
//! themselves if one is not available. `with-servers --postgres COMMAND...` starts only PostgreSQL: the folder of these
//! tests allows one Docker engine at a time, and two such commands would wait for each other. Without a command it
//! installs what these servers and the clients of models need, as far as it is missing.

#![forbid(unsafe_code)]
#![expect(
    clippy::print_stderr,
    reason = "that is how a program that only wraps another says what it can't do"
)]

use belljar_testkit::clients;
use belljar_testkit::foreign_root::{self, Docker, SHARED_ENGINE};
use belljar_testkit::litellm::{self, LiteLlm, SHARED_LITELLM};
use belljar_testkit::mcp;
use belljar_testkit::postgres::{Postgres, SHARED_POSTGRES};
use belljar_testkit::searxng;
use std::ffi::OsString;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::thread;
use std::time::Instant;

const POSTGRES_ALONE: &str = "--postgres";

type ServerSetup = fn() -> Result<PathBuf, String>;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    let is_alone = first.as_ref().is_some_and(|first| first == POSTGRES_ALONE);
    let Some(program) = (if is_alone { arguments.next() } else { first }) else {
        make();
        return ExitCode::SUCCESS;
    };
    match run(program, arguments, is_alone) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            eprintln!("with-servers: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(
    program: OsString,
    arguments: impl Iterator<Item = OsString>,
    is_postgres_alone: bool,
) -> Result<u8, std::io::Error> {
    let folder = tempfile::tempdir()?;
    let folders = ["engine", "litellm", "postgres"].map(|name| folder.path().join(name));
    for folder in &folders {
        std::fs::create_dir(folder)?;
    }
    // The server's user is another one, and needs access to its own folder.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o711))?;
    let [engine, litellm, postgres] = &folders;
    let mut command = Command::new(program);
    command.args(arguments).env(SHARED_POSTGRES, postgres);
    if !is_postgres_alone {
        command.env(SHARED_ENGINE, engine).env(SHARED_LITELLM, litellm);
    }
    let mut child = command.spawn()?;
    // Tests that need no server begin meanwhile.
    let servers = thread::scope(|scope| {
        let postgres = scope.spawn(|| Postgres::start_shared(postgres));
        let others = (!is_postgres_alone).then(|| {
            (scope.spawn(|| Docker::start_shared(engine)), scope.spawn(|| LiteLlm::start_shared(litellm)))
        });
        (others.map(|(engine, litellm)| (engine.join(), litellm.join())), postgres.join())
    });
    let status = child.wait()?;
    drop(servers);
    // A killed program has no exit code.
    Ok(status.code().and_then(|code| code.try_into().ok()).unwrap_or(1))
}

/// Installs all parts. Failures are only printed, because the tests that need a part report why it is missing.
fn make() {
    let parts: [(&str, ServerSetup); 5] = [
        ("programs of MCP", mcp::install),
        ("a Debian", foreign_root::debian),
        ("litellm", litellm::install),
        ("searxng", searxng::install),
        ("agents", clients::agents_folder),
    ];
    thread::scope(|scope| {
        for (name, make) in parts {
            scope.spawn(move || {
                let begun = Instant::now();
                match make() {
                    Ok(_) => eprintln!("{name}: ready after {} s", begun.elapsed().as_secs()),
                    Err(why) => eprintln!("{name}: {why}"),
                }
            });
        }
    });
}
