//! A node that is a process of its own: `belljar node`, started, asked, killed and started again.

use crate::http::{HttpRequest, HttpResponse, StreamingResponse};
use crate::wait;
use crate::world::World;
use serde_json::{Value, json};
use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Stdio};

/// A node that serves. Dropping it ends it.
#[derive(Debug)]
pub struct Node<'w> {
    world: &'w World,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    address: SocketAddr,
    child: Child,
}

/// Token that it accepts.
pub const TOKEN: &str = "the-token-of-tests-0123456789";

// === impl Node ===

impl<'w> Node<'w> {
    /// Starts one in a world, with these arguments besides those that every one gets.
    pub fn start(world: &'w World, arguments: &[&str]) -> Self {
        Self::start_with(world, arguments, &[])
    }

    /// Starts a node with these environment variables.
    pub fn start_with(world: &'w World, arguments: &[&str], environment: &[(String, String)]) -> Self {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let environment = environment.to_vec();
        let begun = begin(world, &arguments, &environment);
        let (child, address) = begun.unwrap_or_else(|log| panic!("no node: {log}"));
        Self { world, arguments, environment, address, child }
    }

    /// Starts a node that may end before it serves.
    ///
    /// # Errors
    /// The log of the node.
    pub fn try_start(
        world: &'w World,
        arguments: &[&str],
        environment: &[(String, String)],
    ) -> Result<Self, String> {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let environment = environment.to_vec();
        let (child, address) = begin(world, &arguments, &environment)?;
        Ok(Self { world, arguments, environment, address, child })
    }

    /// Returns true if it ends by itself within a second.
    pub fn has_died_soon(&mut self) -> bool {
        let given_up = std::time::Instant::now() + std::time::Duration::from_secs(1);
        while std::time::Instant::now() < given_up {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        false
    }

    /// Returns the message of a node that can't start with these arguments.
    pub fn refused(world: &World, arguments: &[&str]) -> String {
        let arguments: Vec<_> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        match begin(world, &arguments, &[]) {
            Ok((mut child, address)) => {
                let _ = child.kill();
                panic!("it listens on {address}")
            }
            Err(log) => log,
        }
    }

    /// Returns the address that it listens at.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a graceful shutdown, and starts it again.
    pub fn killed_and_started(&mut self) {
        let _ = self.child.kill();
        self.start_again();
    }

    /// Waits until it has ended by itself. Its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        self.child.wait().ok().and_then(|status| status.code())
    }

    /// Asks it to stop, and waits until it has. Its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        self.child.wait().ok().and_then(|status| status.code())
    }

    /// Stops it, and starts it again. Returns its exit code.
    pub fn stopped_and_started(&mut self) -> Option<i32> {
        let code = self.stop();
        self.start_again();
        code
    }

    fn start_again(&mut self) {
        let _ = self.child.wait();
        let begun = begin(self.world, &self.arguments, &self.environment);
        (self.child, self.address) = begun.unwrap_or_else(|log| panic!("no node again: {log}"));
    }

    /// Sends a request with the token.
    pub fn send(&self, asked: &HttpRequest) -> HttpResponse {
        self.try_send(asked).expect("an answer")
    }

    /// Sends a request with the token to a node that may be gone.
    ///
    /// # Errors
    /// When the connection can't be made, or breaks.
    pub fn try_send(&self, asked: &HttpRequest) -> std::io::Result<HttpResponse> {
        asked.clone().header("Authorization", &format!("Bearer {TOKEN}")).send(self.address)
    }

    /// Sends a request with the token, and reads the head of the answer.
    pub fn begin(&self, asked: &HttpRequest) -> StreamingResponse {
        let asked = asked.clone().header("Authorization", &format!("Bearer {TOKEN}"));
        asked.begin(self.address).expect("an answer")
    }

    /// Returns the answer to `GET` of a path.
    pub fn get(&self, path: &str) -> HttpResponse {
        self.send(&HttpRequest::new("GET", path))
    }

    /// Returns the answer to `POST` of a document to a path.
    pub fn post(&self, path: &str, document: &Value) -> HttpResponse {
        self.send(&HttpRequest::new("POST", path).json(document.to_string()))
    }

    /// Runs a job, and waits for its end.
    pub fn run(&self, job: &Value) -> HttpResponse {
        self.post("/v1/worker/jobs:run", job)
    }

    /// Submits a job; returns its id.
    pub fn submit(&self, mut job: Value) -> String {
        job["wait"] = json!(false);
        let answered = self.run(&job);
        assert_eq!(answered.status, 202, "{}", answered.json());
        job["job_id"].as_str().expect("an id").to_owned()
    }

    /// A job as it is now.
    pub fn job(&self, id: &str) -> Value {
        self.get(&format!("/v1/worker/jobs/{id}")).json()
    }

    /// Waits until a job has that status.
    #[track_caller]
    pub fn wait_for(&self, id: &str, status: &str) -> Value {
        let mut job = Value::Null;
        wait::until(|| {
            job = self.job(id);
            job["status"] == status
        });
        job
    }

    /// The events of a job that is over, or will be.
    pub fn events(&self, id: &str) -> Vec<Value> {
        let answered = self.get(&format!("/v1/worker/jobs/{id}/events"));
        let text = String::from_utf8(answered.body).expect("text");
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).expect("an event")).collect()
    }

    /// Returns the statuses that a job has had, each with its attempt.
    pub fn story(&self, id: &str) -> Vec<String> {
        let events = self.events(id);
        let told = events.iter().filter(|event| event["event"] == "status");
        told.map(|event| format!("{} {}", event["status"].as_str().unwrap_or_default(), event["attempt"]))
            .collect()
    }

    /// Returns its log so far.
    pub fn log(&self) -> String {
        self.world.read(LOG)
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = std::fs::read_to_string(self.world.path().join(LOG)).unwrap_or_default();
            let _ = std::io::Write::write_all(&mut std::io::stderr(), log.as_bytes());
        }
    }
}

/// A job that runs a command, of a new task.
pub fn command(argv: &[&str]) -> Value {
    json!({
        "version": 1,
        "task_id": new_id(),
        "job_id": new_id(),
        "sandbox": { "command": argv },
    })
}

/// A job that runs a script.
pub fn script(text: &str) -> Value {
    command(&["sh", "-c", text])
}

/// A job for the runner, with these steps.
pub fn steps(steps: &Value) -> Value {
    let (task_id, job_id) = (new_id(), new_id());
    json!({
        "version": 1,
        "task_id": task_id,
        "job_id": job_id,
        "sandbox": { "job_spec": {
            "protocol_version": "1.0",
            "job_id": job_id,
            "task_id": task_id,
            "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 65536 },
            "steps": steps,
        } },
    })
}

/// Returns an unused id.
pub fn new_id() -> String {
    uuid::Uuid::new_v4().to_string()
}

const LOG: &str = "node.log";

/// Starts a node, and waits until it reports its address; returns its log if it ends.
fn begin(
    world: &World,
    arguments: &[String],
    environment: &[(String, String)],
) -> Result<(Child, SocketAddr), String> {
    world.write("token", TOKEN);
    let path: PathBuf = world.path().join(LOG);
    let length = path.metadata().map_or(0, |metadata| metadata.len());
    let log = File::options().create(true).append(true).open(&path).expect("a log");
    let program = world.program().display().to_string();
    // The node ends with the process that has started it.
    let mut command = world.command_of("setpriv".as_ref(), &["--pdeathsig", "KILL", &program]);
    command.args(["node", "--listen", "127.0.0.1:0", "--token-file", "token"]).args(arguments);
    command.envs(environment.iter().map(|(name, value)| (name, value)));
    let mut child = command.stdout(Stdio::null()).stderr(log).spawn().expect("setpriv");
    let mut told = String::new();
    let mut address = None;
    wait::until(|| {
        let has_ended = matches!(child.try_wait(), Ok(Some(_)));
        let log = std::fs::read(&path).unwrap_or_default();
        told = String::from_utf8_lossy(log.get(usize::try_from(length).unwrap_or(0)..).unwrap_or_default())
            .into_owned();
        address = told.lines().find_map(listening);
        address.is_some() || has_ended
    });
    address.map(|address| (child, address)).ok_or(told)
}

fn listening(line: &str) -> Option<SocketAddr> {
    let line: Value = serde_json::from_str(line).ok()?;
    let fields = &line["fields"];
    (fields["message"] == "listening").then(|| fields["address"].as_str()?.parse().ok())?
}
