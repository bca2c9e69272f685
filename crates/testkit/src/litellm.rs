//! LiteLLM's proxy itself, with models that answer without any provider, and a witness of what it bills.
//!
//! It takes a quarter of a minute to start, so tests share one. It has no database: it passes each row of its spend
//! logs to its callback, which writes it down here.

use crate::clients::environment;
use crate::daemon::{Daemon, Signal};
use crate::joined;
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A LiteLLM that answers.
#[derive(Debug)]
pub struct LiteLlm {
    address: SocketAddr,
    witness: PathBuf,
    /// Server, if this value has started it. It is ended before its folder is dropped.
    _server: Option<Daemon>,
    _folder: Option<TempDir>,
}

/// A call in LiteLLM's spend logs.
#[derive(Debug, Clone, PartialEq)]
pub struct SpendLogEntry {
    /// True if the call succeeded.
    pub is_success: bool,
    /// Id of the call, which the caller may choose.
    pub call_id: String,
    /// The model's name in the proxy's configuration.
    pub model: String,
    /// Account that is billed.
    pub end_user: String,
    /// Metadata that the caller has added to the spend logs.
    pub spend_logs_metadata: Value,
    /// Its tags. LiteLLM adds some of its own.
    pub tags: Vec<String>,
    /// In dollars.
    pub cost: f64,
    /// True if the answer was streamed.
    pub is_stream: bool,
    /// Row of the spend logs, as LiteLLM passes it to a database. A failed call has none here.
    pub row: Value,
    /// The whole line, including data that the other members don't have.
    pub line: Value,
}

/// The key that it takes.
pub const MASTER_KEY: &str = "sk-belljar-tests-9f2c51";

/// The model that says `hello from mock`, and costs something.
pub const MODEL: &str = "mock";

/// Model whose answer is longer than any client reads.
pub const LONG_MODEL: &str = "mock-long";

/// The model that fails.
pub const FAILING_MODEL: &str = "mock-failing";

/// The variable with the folder of one that is started for a whole run of tests.
pub const SHARED_LITELLM: &str = "BELLJAR_TEST_LITELLM";

const REQUIREMENTS: &str = include_str!("litellm/requirements.txt");
const CONFIG: &str = include_str!("litellm/config.yaml");
const WITNESS: &str = include_str!("litellm/witness.py");

/// File of the witness, in its folder.
const LINES: &str = "billed.jsonl";

const STARTS_WITHIN: Duration = Duration::from_secs(150);

/// Makes what it takes, if that isn't there yet.
///
/// # Errors
/// Why it can't be had here.
pub fn install() -> Result<PathBuf, String> {
    // The used part, which is small, is compiled at the first start.
    environment("litellm", REQUIREMENTS, false)
}

// === impl LiteLlm ===

impl LiteLlm {
    /// The one of this run of tests, or a new one.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start() -> Result<Self, String> {
        if let Some(folder) = std::env::var_os(SHARED_LITELLM) {
            return Self::join(Path::new(&folder));
        }
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let own = Self::own(folder.path())?;
        Ok(Self { _folder: Some(folder), ..own })
    }

    /// Starts one in a folder, for other processes to join.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn start_shared(folder: &Path) -> Result<Self, String> {
        let own = Self::own(folder);
        let place = own.as_ref().map(|own| own.address.to_string());
        joined::tell(folder, place.as_deref().map_err(|why| why.as_str())).and(own)
    }

    /// Its URL, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns all calls so far, of all the tests that share it.
    pub fn billed(&self) -> Vec<SpendLogEntry> {
        let lines = std::fs::read_to_string(&self.witness).unwrap_or_default();
        // The last may not be whole yet.
        lines.split_inclusive('\n').filter(|line| line.ends_with('\n')).map(SpendLogEntry::new).collect()
    }

    /// The calls with this id, as soon as there is one: LiteLLM writes its books after the answer.
    pub fn billed_as(&self, call_id: &str) -> Vec<SpendLogEntry> {
        let find = || -> Vec<SpendLogEntry> {
            self.billed().into_iter().filter(|billed| billed.call_id == call_id).collect()
        };
        crate::wait::until(|| !find().is_empty());
        find()
    }

    fn own(folder: &Path) -> Result<Self, String> {
        let environment = install()?;
        let address = free_port()?;
        let witness = folder.join(LINES);
        let config = CONFIG.replace("A TEXT WITHOUT END", &"and so on ".repeat(20_000));
        for (name, text) in [("config.yaml", config.as_str()), ("witness.py", WITNESS)] {
            std::fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
        }
        let log = File::create(folder.join("log")).map_err(|error| error.to_string())?;
        let errors = log.try_clone().map_err(|error| error.to_string())?;
        let python = environment.join("bin/python");
        let server = Daemon::start(&python.display().to_string(), Signal::Kill, |command| {
            command
                .arg(environment.join("bin/litellm"))
                .args(["--host", "127.0.0.1", "--port", &address.port().to_string(), "--config"])
                .arg(folder.join("config.yaml"))
                .current_dir(folder)
                .env_clear()
                .env("PATH", "/usr/local/bin:/usr/bin:/bin")
                .env("HOME", folder)
                .env("LITELLM_MASTER_KEY", MASTER_KEY)
                .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
                .env("BELLJAR_TEST_WITNESS", &witness)
                .stdin(Stdio::null())
                .stdout(log)
                .stderr(errors);
        })?;
        let given_up = Instant::now() + STARTS_WITHIN;
        while !is_alive(address) {
            if server.has_ended() || Instant::now() > given_up {
                let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
                return Err(format!("litellm: {}", log.lines().last().unwrap_or("doesn't answer")));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(Self { address, witness, _server: Some(server), _folder: None })
    }

    fn join(folder: &Path) -> Result<Self, String> {
        // The process that starts it may need that long.
        let address = joined::place(folder, STARTS_WITHIN + Duration::from_secs(30))?;
        let address = address.parse().map_err(|_| format!("no address: {address:?}"))?;
        Ok(Self { address, witness: folder.join(LINES), _server: None, _folder: None })
    }
}

/// Returns a free port. Another program may take it before LiteLLM does, and would then answer instead; no test takes
/// ports that it isn't given.
fn free_port() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

fn is_alive(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(1))?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.write_all(b"GET /health/liveliness HTTP/1.0\r\nHost: litellm\r\n\r\n")?;
        let mut answer = String::new();
        stream.take(12).read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.ends_with(" 200"))
}

// === impl SpendLogEntry ===

impl SpendLogEntry {
    fn new(line: &str) -> Self {
        let line: Value = serde_json::from_str(line).expect("the witness writes JSON");
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let tags = line["tags"].as_array().into_iter().flatten();
        Self {
            is_success: line["status"] == "success",
            call_id: text("call_id"),
            model: text("model"),
            end_user: text("end_user"),
            spend_logs_metadata: line["spend_logs_metadata"].clone(),
            tags: tags.filter_map(Value::as_str).map(str::to_owned).collect(),
            cost: line["cost"].as_f64().unwrap_or_default(),
            is_stream: line["is_stream"] == true,
            row: line["row"].clone(),
            line,
        }
    }
}
