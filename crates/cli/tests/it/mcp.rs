//! `belljar mcp`, with a client that writes each message itself, and with real clients.

mod approval;
mod coding_agents;
mod endings;
mod files;
mod http;
mod inspector;
mod sdk;
mod sessions;

use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// A server with its single client.
pub(crate) struct McpConversation {
    child: Child,
    /// `None` once it is closed.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    asked: u64,
}

// === impl McpConversation ===

impl McpConversation {
    /// Starts a server with these options, and initializes the connection.
    pub(crate) fn begin(world: &World, options: &[&str]) -> Self {
        let mut talk = Self::silent(world, options);
        let greeted = talk.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" }
            }),
        );
        assert_eq!(greeted["result"]["protocolVersion"], "2025-11-25", "{greeted}");
        talk.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        talk
    }

    /// Starts a server without sending a message.
    pub(crate) fn silent(world: &World, options: &[&str]) -> Self {
        let mut command = world.command(&[&["mcp"], options].concat());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        Self { child, input, output, asked: 0 }
    }

    pub(crate) fn say(&mut self, message: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Sends a request, and waits for the response. Every line of standard output must be a message.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.begin_asking(method, params);
        let answer = self.hear().unwrap();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    pub(crate) fn begin_asking(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        self.asked
    }

    /// Returns the next message; `None` at the end.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        (self.output.read_line(&mut line).unwrap() > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Calls a tool, and returns the envelope.
    pub(crate) fn call(&mut self, name: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": name, "arguments": arguments }));
        let envelope = answer["result"]["structuredContent"].clone();
        assert!(envelope.is_object(), "{answer}");
        assert_eq!(answer["result"]["isError"], json!(envelope["status"] == "error"), "{answer}");
        envelope
    }

    /// Makes a call that must succeed, and returns its result.
    #[track_caller]
    pub(crate) fn done(&mut self, name: &str, arguments: &Value) -> Value {
        let envelope = self.call(name, arguments);
        assert_eq!(envelope["status"], "ok", "{name} {arguments}: {envelope}");
        envelope["data"].clone()
    }

    /// Makes a call that must fail, and returns its code and its message.
    #[track_caller]
    pub(crate) fn refused(&mut self, name: &str, arguments: &Value) -> (String, String) {
        let envelope = self.call(name, arguments);
        assert_eq!(envelope["status"], "error", "{name} {arguments}: {envelope}");
        let text = |name: &str| envelope[name].as_str().unwrap().to_owned();
        (text("domain_code"), text("message"))
    }

    /// Opens a session, and returns its id.
    #[track_caller]
    pub(crate) fn open(&mut self) -> String {
        self.done("open", &json!({}))["session"].as_str().unwrap().to_owned()
    }

    /// Returns the output of a shell command in a session.
    #[track_caller]
    pub(crate) fn shell(&mut self, session: &str, line: &str) -> String {
        let ran = self.done("exec", &json!({ "session": session, "shell": line }));
        assert_eq!(ran["exit_code"], 0, "{ran}");
        ran["stdout"].as_str().unwrap().to_owned()
    }

    /// Closes its standard input, waits for its end, and returns its exit code.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.input = None;
        let code = self.child.wait().unwrap().code();
        assert_eq!(self.hear(), None);
        code
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        rustix::process::Pid::from_child(&self.child)
    }
}

impl Drop for McpConversation {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.wait();
    }
}
