//! Requirements of each coding agent for doing one task by itself, with a model at a URL of ours: its arguments, its
//! environment, and the files that it reads in its home. Also the answers of a model that make it edit a file.

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
    /// Dialect of its model's API.
    pub dialect: Dialect,
    /// Path of its native program below the folder of the agents.
    program: &'static str,
    start: fn(&Task<'_>) -> StartCommand,
    edit: fn(&Edit<'_>) -> Vec<ToolCall>,
    register: fn(&mut StartCommand, &McpServer<'_>),
    /// Makes the call of an MCP server's tool from the names of both.
    call: fn(&str, &str, Value) -> ToolCall,
}

/// A server of MCP, as an agent starts it.
#[derive(Debug, Clone, Copy)]
pub struct McpServer<'a> {
    /// Its name.
    pub name: &'a str,
    /// The program and its arguments.
    pub command: &'a [&'a str],
    /// Required environment.
    pub environment: &'a [(&'a str, &'a str)],
}

/// Task of the agent, and its model.
#[derive(Debug, Clone, Copy)]
pub struct Task<'a> {
    /// URL of the model: `http://HOST:PORT`, without a path.
    pub base_url: &'a str,
    /// The model's name.
    pub model: &'a str,
    /// API key that it sends, as it must send one.
    pub key: &'a str,
    /// Prompt.
    pub prompt: &'a str,
}

/// Command for starting it in its working directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartCommand {
    /// Arguments of the program.
    pub arguments: Vec<String>,
    /// Required environment besides `HOME` and `PATH`.
    pub environment: Vec<(&'static str, String)>,
    /// Files in its home that are there before it starts: path and content.
    pub home: Vec<(&'static str, String)>,
}

/// A change of a file that a model requests.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    /// The file, by its whole path as the agent sees it.
    pub file: &'a Path,
    /// A line of it.
    pub old: &'a str,
    /// Replacement text.
    pub new: &'a str,
}

/// All agents that are available here.
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

    /// Returns how it is started for a task, without questions to a person and with all permissions.
    pub fn start(&self, task: &Task<'_>) -> StartCommand {
        (self.start)(task)
    }

    /// Returns how it is started with the tools of an MCP server besides its own.
    pub fn start_with(&self, task: &Task<'_>, server: &McpServer<'_>) -> StartCommand {
        let mut start = self.start(task);
        (self.register)(&mut start, server);
        start
    }

    /// Returns the call of such a server's tool, as its model makes it.
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
