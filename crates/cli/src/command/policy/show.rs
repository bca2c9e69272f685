//! `belljar policy show`

use crate::access::{AccessArguments, rules_of};
use crate::command::printing::print_json;
use crate::error::CliError;
use crate::progress::harmless;
use anstyle::Style;
use belljar_contract::access::AccessLevel;
use belljar_contract::action::ActionType;
use belljar_contract::category::Category;
use belljar_policy::access::compiled::{ProgramAccess, SandboxAccess, WebAccess, WorkspaceAccess};
use belljar_policy::access::{AccessRules, AgentAuthority};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    #[command(flatten)]
    whose: AccessArguments,
    /// The configuration with what is said of levels and agents [default: BELLJAR_CONFIG, or config.yaml in the user's or the
    /// system's configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Shown data of an agent's or level's policy.
struct PolicyView {
    name: String,
    description: String,
    standing: AgentAuthority,
    compiled: SandboxAccess,
}

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let rules = rules_of(self.config.as_deref())?;
        let identity = self.whose.identity().ok_or_else(|| {
            CliError::usage("a level or an agent is needed: --level LEVEL or --agent NAME".to_owned())
        })?;
        crate::access::check_known(self.config.as_deref(), &identity)?;
        let earned = crate::access::earned(self.config.as_deref(), &identity)?;
        let standing = crate::access::standing(&rules, &identity, earned.as_ref());
        let level = standing.permissions.level();
        let shown = PolicyView {
            name: crate::access::name(&identity),
            description: rules.levels().of(level).description.clone(),
            compiled: SandboxAccess::of_agent(&standing.permissions),
            standing,
        };
        match self.json {
            true => print_json(&shown.as_json(&rules))?,
            false => crate::output::out!("{}", shown.as_text(&rules)),
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl PolicyView ===

impl PolicyView {
    fn asked<'r>(&self, rules: &'r AccessRules) -> Vec<&'r str> {
        let autonomy = &self.standing.autonomy;
        rules.actions().all().filter(|action| autonomy.asks(action)).map(ActionType::as_str).collect()
    }

    fn as_json(&self, rules: &AccessRules) -> Value {
        let permissions = &self.standing.permissions;
        json!({
            "name": self.name,
            "level": permissions.level(),
            "description": self.description,
            "categories": permissions.categories(),
            "constraints": permissions.constraints(),
            "by_category": self.by_category(),
            "autonomy": {
                "level": self.standing.autonomy.level(),
                "human_approval": self.asked(rules),
                "auto_approve": self.standing.autonomy.by_itself().collect::<Vec<_>>(),
            },
            "sandbox": self.compiled,
        })
    }

    /// The levels of categories that have one of their own, with what holds for their tools.
    fn by_category(&self) -> Map<String, Value> {
        let permissions = &self.standing.permissions;
        let of = |(category, level): (&Category, &AccessLevel)| {
            let value = json!({ "level": level, "constraints": permissions.constraints_for(*category) });
            (category.as_str().to_owned(), value)
        };
        permissions.by_category().iter().map(of).collect()
    }

    fn as_text(&self, rules: &AccessRules) -> String {
        let head = Style::new().bold();
        let permissions = &self.standing.permissions;
        let listed = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let categories = permissions.categories().iter().map(|category| category.as_str()).collect();
        let constraints = permissions.constraints();
        let approvals = constraints.requires_approval.iter().map(ActionType::as_str).collect();
        let mut text = format!("{head}{}{head:#}: {}\n", harmless(&self.name), harmless(&self.description));
        let autonomy = &self.standing.autonomy;
        let rows = [
            ("level", permissions.level().to_string()),
            ("tools of", listed(categories)),
            ("file system", constraints.file_system.to_string()),
            ("network", constraints.network.to_string()),
            ("git", constraints.git.to_string()),
            ("code runs", constraints.code_execution.to_string()),
            ("terminal", constraints.terminal.to_string()),
            ("needs approval", listed(approvals)),
            ("autonomy", autonomy.level().to_string()),
            ("takes one by it", listed(self.asked(rules))),
        ];
        rows.iter().for_each(|(name, value)| row(&mut text, name, value));
        for (category, level) in permissions.by_category() {
            row(&mut text, category.as_str(), level.as_str());
        }
        let _ = writeln!(text, "\n{head}Its sandboxes{head:#}");
        self.sandbox().iter().for_each(|(name, value)| row(&mut text, name, value));
        text
    }

    fn sandbox(&self) -> Vec<(&'static str, String)> {
        let SandboxAccess { workspace, is_lent_to, web, programs, git, isolation } = &self.compiled;
        let workspace = match workspace {
            WorkspaceAccess::Empty => "an empty one of its own",
            WorkspaceAccess::Project => "a copy of the project",
        };
        let web = match web {
            WebAccess::None => "nothing".to_owned(),
            WebAccess::Open { refuses_pushes } => {
                format!("all public hosts at 80 and 443{}", pushes(*refuses_pushes))
            }
            WebAccess::Listed { places, refuses_pushes } => {
                let places: Vec<_> = places.iter().map(ToString::to_string).collect();
                let listed =
                    if places.is_empty() { String::new() } else { format!(", and {}", places.join(", ")) };
                format!("what the policy of the web says{listed}{}", pushes(*refuses_pushes))
            }
        };
        let programs = match programs {
            ProgramAccess::All => "all".to_owned(),
            ProgramAccess::Only { names } => names.iter().map(String::as_str).collect::<Vec<_>>().join(", "),
        };
        let git = match (git.fetches, git.pushes) {
            (_, true) => "clones, fetches and pushes",
            (true, false) => "clones and fetches",
            (false, false) => "goes nowhere",
        };
        let lent = if *is_lent_to { "what is lent (--ro)" } else { "nothing" };
        vec![
            ("workspace", workspace.to_owned()),
            ("lent besides", lent.to_owned()),
            ("reaches", web),
            ("programs", programs),
            ("the host's git", git.to_owned()),
            ("isolation", isolation.to_string()),
        ]
    }
}

const fn pushes(refuses: bool) -> &'static str {
    if refuses { "; no pushes of git" } else { "" }
}

fn row(text: &mut String, name: &str, value: &str) {
    // Writing to a text can't fail.
    let _ = writeln!(text, "  {name:<16} {}", harmless(value));
}
