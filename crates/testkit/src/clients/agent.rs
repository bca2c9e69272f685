//! What each coding agent needs to do one task by itself, with a model at a URL of ours: its arguments, its environment,
//! the files that it reads in its home. And what a model must say for it to edit a file.

mod claude_code;
mod codex;
mod opencode;

use crate::models::{Dialect, ToolCall};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A coding agent.
#[derive(Debug, Clone, Copy)]
pub struct Agent {
    /// Its name.
    pub name: &'static str,
    /// In whose dialect it speaks with its model.
    pub dialect: Dialect,
    /// Its program, a native one, below the folder of the agents.
    program: &'static str,
    start: fn(&Task<'_>) -> Start,
    edit: fn(&Edit<'_>) -> Vec<ToolCall>,
    register: fn(&mut Start, &McpServer<'_>),
    /// The call of a tool of a server of MCP, by the names of both.
    call: fn(&str, &str, Value) -> ToolCall,
}

/// A server of MCP, as an agent starts it.
#[derive(Debug, Clone, Copy)]
pub struct McpServer<'a> {
    /// Its name.
    pub name: &'a str,
    /// The program and its arguments.
    pub command: &'a [&'a str],
    /// What must be in its environment.
    pub environment: &'a [(&'a str, &'a str)],
}

/// What it is to do, and with which model.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// Where the model is: `http://HOST:PORT`, without a path.
    pub base_url: &'a str,
    /// The model's name.
    pub model: &'a str,
    /// What it sends for a key, as it must send one.
    pub key: &'a str,
    /// What it is told.
    pub prompt: &'a str,
}

/// How it is started, in the directory that it works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// What follows the program.
    pub arguments: Vec<String>,
    /// What must be in its environment besides `HOME` and `PATH`.
    pub environment: Vec<(&'static str, String)>,
    /// Files in its home that are there before it starts: path and content.
    pub home: Vec<(&'static str, String)>,
}

/// A change of a file that a model wants.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The file, by its whole path as the agent sees it.
    pub file: &'a Path,
    /// A line of it.
    pub old: &'a str,
    /// What is to stand in its place.
    pub new: &'a str,
}

/// All that are had here.
pub const AGENTS: [Agent; 3] = [claude_code::AGENT, opencode::AGENT, codex::AGENT];

// === impl Agent ===

impl Agent {
    /// Its program.
    ///
    /// # Errors
    /// Why there is none here.
    pub fn program(&self) -> Result<PathBuf, String> {
        let program = super::agents_folder()?.join("node_modules").join(self.program);
        match program.exists() {
            true => Ok(program),
            false => Err(format!("{} has no program {}", self.name, self.program)),
        }
    }

    /// How it is started for a task, with nobody to ask and nothing forbidden to it.
    pub fn start(&self, task: &Task<'_>) -> Start {
        (self.start)(task)
    }

    /// The same, with the tools of a server of MCP besides its own.
    pub fn start_with(&self, task: &Task<'_>, server: &McpServer<'_>) -> Start {
        let mut start = self.start(task);
        (self.register)(&mut start, server);
        start
    }

    /// The call of a tool of such a server, as its model makes it.
    pub fn call(&self, (server, tool): (&str, &str), arguments: Value) -> ToolCall {
        (self.call)(server, tool, arguments)
    }

    /// The calls of its tools that make this change, for [`crate::models::Script::working`].
    pub fn edit(&self, edit: &Edit<'_>) -> Vec<ToolCall> {
        (self.edit)(edit)
    }
}

fn texts<const COUNT: usize>(texts: [&str; COUNT]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}
