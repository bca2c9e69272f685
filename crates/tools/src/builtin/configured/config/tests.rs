//! Tests of the section `tools`, and of its mistakes.

use super::*;
use belljar_contract::yaml;

fn read(text: &str) -> Result<ToolsConfig, String> {
    let mut log = MistakeLog::default();
    let root = yaml::parse(text.as_bytes(), &mut log);
    let read = root.map(|root| ToolsConfig::read(&root, &mut log));
    log.finish().map_err(|mistakes| mistakes.to_string())?;
    Ok(read.unwrap_or_default())
}

#[test]
fn tools_config_contains_only_the_named_resources() {
    assert_eq!(read("{}"), Ok(ToolsConfig::default()));
    let read = read(
        "databases:
  sqlite: [{name: house, path: /srv/house.db}]
  postgres: [{name: books, host: db.example, database: books, user: reader, password: {env: KEY}, writable: true}]
channels:
  webhooks: [{name: team, url: 'https://hooks.example/t', audience: internal}]
  mail: [{name: owners, host: mail.example, from: a@b.example, to: [c@d.example]}]
metrics: [{name: house, url: 'http://127.0.0.1:9090'}]
",
    );
    let read = read.unwrap();
    let databases: Vec<_> =
        read.databases.iter().map(|one| (one.name.as_str(), one.engine.kind(), one.is_writable)).collect();
    assert_eq!(databases, [("house", "sqlite", false), ("books", "postgresql", true)]);
    let channels: Vec<_> = read.channels.iter().map(|one| (one.name.as_str(), one.audience)).collect();
    assert_eq!(channels, [("team", Audience::Internal), ("owners", Audience::External)]);
    assert_eq!(read.metrics.len(), 1);
}

#[test]
fn tools_config_mistakes_are_all_reported() {
    let said = read(
        "databases:
  sqlite: [{name: a, path: house.db}, {name: b, path: /b.db}, {name: b, path: /b.db}]
  postgres: [{name: b, host: db.example, database: x, user: reader, port: 0}]
channels:
  mail: [{name: m, host: mail.example, from: 'a@b, c@d', to: []}]
metrics: [{name: x}]
",
    );
    insta::assert_snapshot!(said.unwrap_err(), @r#"
    2:3: databases: found "b" of two kinds; expected each name once
    2:28: databases.sqlite[0].path: found "house.db"; expected an absolute path without `.` and `..` that is not the root
    2:63: databases.sqlite[2]: found "b" again; expected each name once
    3:75: databases.postgres[0].port: found `0`; expected a whole number from 1 to 65535
    5:10: channels.mail[0].to: found no address; expected at least one address
    5:46: channels.mail[0].from: found "a@b, c@d"; expected an address such as owner@house.example
    6:11: metrics[0].url: found nothing; expected this required member
    "#);
}
