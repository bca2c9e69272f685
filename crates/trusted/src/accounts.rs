//! The host's accounts from its database (`passwd`): the users' names and home directories. ssh takes its user's home from
//! there, whatever `HOME` is, and `~NAME` stands for that of the named user.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// An account of the host's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The user's name.
    pub name: String,
    /// The user's id.
    pub uid: u32,
    /// The user's home directory, an absolute path.
    pub home: PathBuf,
}

/// The accounts of the host itself.
const PASSWD: &str = "/etc/passwd";

/// Programs that look an account up wherever the host keeps some, such as in LDAP. A static program can't do that itself.
const LOOKUPS: [&str; 3] = ["/usr/bin/getent", "/bin/getent", "/run/current-system/sw/bin/getent"];

/// The column with the name, and that with the user's number.
const NAME: usize = 0;
const NUMBER: usize = 2;

/// The account of the user that runs this process. Returns `None` if there is none.
pub fn own() -> Option<&'static Account> {
    static OWN: OnceLock<Option<Account>> = OnceLock::new();
    OWN.get_or_init(|| find(NUMBER, &rustix::process::getuid().as_raw().to_string())).as_ref()
}

/// The account of the user of that name. Returns `None` if the host has no such user.
pub fn named(name: &str) -> Option<Account> {
    let is_name = !name.is_empty() && !name.starts_with('-');
    is_name.then(|| find(NAME, name)).flatten()
}

/// Returns the home directories that programs of this process's user may take for the user's: that of `HOME`, and that of
/// the account.
pub fn homes_of_process() -> Vec<PathBuf> {
    let variable = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let mut homes: Vec<PathBuf> =
        variable.into_iter().chain(own().map(|account| account.home.clone())).collect();
    homes.dedup();
    homes
}

fn find(column: usize, value: &str) -> Option<Account> {
    let text = std::fs::read(PASSWD).unwrap_or_default();
    account(&String::from_utf8_lossy(&text), column, value).or_else(|| look_up(column, value))
}

fn look_up(column: usize, value: &str) -> Option<Account> {
    let program = LOOKUPS.iter().find(|program| std::fs::exists(program).unwrap_or(false))?;
    let mut command = Command::new(program);
    command.args(["passwd", value]).env_clear().current_dir("/").stdin(Stdio::null()).stderr(Stdio::null());
    account(&String::from_utf8_lossy(&command.output().ok()?.stdout), column, value)
}

/// The account in lines of the form `name:password:uid:gid:comment:home:shell`.
fn account(lines: &str, column: usize, value: &str) -> Option<Account> {
    lines.lines().find_map(|line| {
        let columns: Vec<&str> = line.split(':').collect();
        let (name, uid) = (*columns.get(NAME)?, columns.get(NUMBER)?.parse().ok()?);
        let home = PathBuf::from(columns.get(5)?);
        let is_it = columns.get(column) == Some(&value) && home.is_absolute();
        is_it.then(|| Account { name: name.to_owned(), uid, home })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn account_is_found_by_name_and_by_number() {
        let lines =
            "root:x:0:0:root:/root:/bin/sh\nno-home:x:7:7::\nann:x:1001:1001:Ann,,,:/srv/ann:/bin/sh\n";
        let ann = Account { name: "ann".to_owned(), uid: 1001, home: "/srv/ann".into() };
        assert_eq!(account(lines, NAME, "ann"), Some(ann.clone()));
        assert_eq!(account(lines, NUMBER, "1001"), Some(ann));
        for (column, value) in [(NAME, "an"), (NAME, "1001"), (NUMBER, "1"), (NUMBER, "7"), (NAME, "")] {
            assert_eq!(account(lines, column, value), None, "{value}");
        }
    }

    #[test]
    fn own_home_directory_is_known_regardless_of_the_home_variable() {
        // A user without an account has the home of the variable alone.
        assert!(own().is_none_or(|own| homes_of_process().contains(&own.home)));
        assert!(own().is_none_or(|own| named(&own.name).as_ref() == Some(own)));
        assert_eq!(named("no-such-user"), None);
        assert_eq!(named("--help"), None);
    }
}
