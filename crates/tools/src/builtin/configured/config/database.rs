//! `tools.databases`.

use super::{NamedResource, named, together};
use crate::bridge::config::{read_name, read_path};
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, text, whole};
use belljar_egress::credential::Credential;
use std::path::PathBuf;
use std::sync::Arc;

/// A database that may be queried.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseConfig {
    /// Name by which agents refer to it.
    pub name: String,
    /// Its location.
    pub engine: DatabaseLocation,
    /// True if it may be changed, too. Default: false.
    pub is_writable: bool,
}

/// Location of a database.
#[derive(Debug, Clone, PartialEq)]
pub enum DatabaseLocation {
    /// A file of this host.
    Sqlite(PathBuf),
    /// A server.
    Postgres(PostgresConfig),
}

/// A database on a server.
#[derive(Debug, Clone, PartialEq)]
pub struct PostgresConfig {
    /// Host name, address, or directory of a socket.
    pub host: String,
    /// Port. Default: 5432.
    pub port: u16,
    /// Name of the database.
    pub database: String,
    /// Database user.
    pub user: String,
    /// Password, if one is required.
    pub password: Option<Arc<Credential>>,
    /// True if the server must authenticate by TLS. Default: true.
    pub has_tls: bool,
    /// File with trusted CA certificates, in place of the public ones.
    pub authority: Option<PathBuf>,
}

const PORT: u16 = 5432;

const HOST: &str = "a name, an address, or the absolute path of a socket's directory";

/// Reads the section.
pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Vec<DatabaseConfig> {
    let Some(mut members) = Members::open(node, log) else { return Vec::new() };
    let lists = [
        members.or("sqlite", Vec::new(), |node, log| Some(named(node, log, read_sqlite))),
        members.or("postgres", Vec::new(), |node, log| Some(named(node, log, read_postgres))),
    ];
    let all = together(node, members.log, lists);
    members.finish();
    all
}

fn read_sqlite(node: &Node, log: &mut MistakeLog) -> Option<DatabaseConfig> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", read_name);
    let path = members.required("path", read_path);
    let is_writable = members.or("writable", false, boolean);
    members.finish();
    Some(DatabaseConfig { name: name?, engine: DatabaseLocation::Sqlite(path?), is_writable })
}

fn read_postgres(node: &Node, log: &mut MistakeLog) -> Option<DatabaseConfig> {
    let word = |node: &Node, log: &mut MistakeLog| {
        text(node, log, "a name", |text| is_word(text).then(|| text.to_owned()))
    };
    let mut members = Members::open(node, log)?;
    let name = members.required("name", read_name);
    let host = members.required("host", |node, log| {
        text(node, log, HOST, |text| (is_word(text) && !text.contains('@')).then(|| text.to_owned()))
    });
    let port = members.or("port", PORT, |node, log| u16::try_from(whole(node, log, 1..=65_535)?).ok());
    let database = members.required("database", word);
    let user = members.required("user", word);
    let password = members.optional("password", Credential::read_from);
    let has_tls = members.or("tls", true, boolean);
    let authority = members.optional("ca", read_path);
    let is_writable = members.or("writable", false, boolean);
    members.finish();
    let (host, database, user) = (host?, database?, user?);
    let engine = DatabaseLocation::Postgres(PostgresConfig {
        host,
        port,
        database,
        user,
        password,
        has_tls,
        authority,
    });
    Some(DatabaseConfig { name: name?, engine, is_writable })
}

fn is_word(text: &str) -> bool {
    (1..=253).contains(&text.len())
        && !text.contains(|letter: char| letter.is_control() || letter.is_whitespace())
}

// === impl DatabaseConfig ===

impl NamedResource for DatabaseConfig {
    fn name(&self) -> &str {
        &self.name
    }
}

// === impl DatabaseLocation ===

impl DatabaseLocation {
    /// Returns its kind, as reported to agents.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgresql",
        }
    }
}

// === impl PostgresConfig ===

impl PostgresConfig {
    /// Returns true if it is reached by a socket of this machine.
    pub fn is_of_this_machine(&self) -> bool {
        self.host.starts_with('/')
    }
}
