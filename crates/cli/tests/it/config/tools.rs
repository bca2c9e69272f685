//! The effects of members of `tools`: the servers that tools call, and the credentials that they use.

use crate::BELLJAR;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_testkit::orchestrator::Orchestrator;
use belljar_testkit::postgres::Postgres;
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};

const SECRET: &str = "a-word-of-the-house";

/// Returns three forms in which a configuration names the source of one secret.
fn forms(world: &World) -> [String; 3] {
    let file = world.write("secret", SECRET).display().to_string();
    [format!("file: '{file}'"), "env: HOUSE_SECRET".to_owned(), format!("command: [cat, '{file}']")]
}

/// Returns a tool's result for an agent with the autonomy `full`, with these members of `tools`; `status` is `absent` if
/// there is no such tool.
fn call(world: &World, tools: &str, tool: &str, arguments: &Value) -> Value {
    let agents = "tool_access: {agents: [{name: ada, level: elevated, autonomy: full}]}";
    world.write(".config/belljar/config.yaml", format!("{agents}\ntools: {{{tools}}}\n"));
    let arguments = arguments.to_string();
    let mut call = world.command(&["tools", "call", tool, &arguments, "--agent", "ada", "--json"]);
    let ran = ProgramOutput::from(call.env("HOUSE_SECRET", SECRET).output().unwrap());
    if ran.stderr.contains("there is no tool") { json!({ "status": "absent" }) } else { ran.json() }
}

fn message(channel: &str) -> Value {
    json!({ "channel": channel, "subject": "Fire", "message": "Out" })
}

#[test]
fn webhook_is_signed_with_the_configured_secret_in_any_format() {
    let (world, house) = (World::new(BELLJAR), Orchestrator::start());
    for from in forms(&world) {
        let channel = format!("name: team, url: '{}', secret: {{{from}}}", house.url("/team"));
        let channels = format!("channels: {{webhooks: [{{{channel}}}]}}");
        let sent = call(&world, &channels, "send_external_message", &message("team"));
        assert_eq!(sent["status"], "ok", "{from}: {sent}");
        let received = house.received().pop().unwrap();
        let header = |name: &str| received.header(name).unwrap_or_else(|| panic!("{from}: {received:?}"));
        let signed = format!("{}.{}.", header("webhook-id"), header("webhook-timestamp"));
        let signed = [signed.as_bytes(), &received.bytes].concat();
        let expected = STANDARD.encode(Orchestrator::hmac_sha256(SECRET.as_bytes(), &signed));
        assert_eq!(header("webhook-signature"), format!("v1,{expected}"), "{from}");
    }
    assert_eq!(house.received().len(), 3);
}

/// A Python program that serves a protocol and prints what it receives, line by line.
struct PrintingServer {
    server: Child,
    port: String,
    lines: Lines<BufReader<ChildStdout>>,
}

// === impl PrintingServer ===

impl PrintingServer {
    /// Starts a program that prints its port first.
    fn start(program: &str, arguments: &[&str]) -> Self {
        let mut server = Command::new("python3");
        server.args(["-u", "-c", program]).args(arguments).stdout(Stdio::piped());
        let mut server = server.spawn().unwrap();
        let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap();
        Self { server, port, lines }
    }

    /// Returns the lines that it received from one client, up to an empty one.
    fn told(&mut self) -> Vec<String> {
        self.lines.by_ref().map(Result::unwrap).take_while(|line| !line.is_empty()).collect()
    }
}

impl Drop for PrintingServer {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// A mail server that accepts every message after STARTTLS or over TLS from the start.
const MAIL: &str = r#"
import socket, ssl, sys
folder, manner = sys.argv[1:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(folder + '/authority.pem', folder + '/key.pem')
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1])
def converse(connection):
    stream, is_mail = connection.makefile('rwb', 0), False
    for line in iter(stream.readline, b''):
        line = line.decode().rstrip('\r\n')
        if is_mail and line != '.': continue
        print(line)
        word = line.split(' ')[0]
        answers = {'EHLO': '250-house\r\n250-STARTTLS\r\n250 AUTH PLAIN', 'STARTTLS': '220 go', 'AUTH': '235 welcome',
            'DATA': '354 go on', 'QUIT': '221 bye'}
        stream.write((answers.get(word, '250 fine') + '\r\n').encode())
        is_mail = word == 'DATA'
        if word in ('STARTTLS', 'QUIT'): return word == 'STARTTLS'
while True:
    connection, _ = server.accept()
    connection.settimeout(30)
    try:
        if manner == 'implicit':
            connection = context.wrap_socket(connection, server_side=True)
            connection.sendall(b'220 house\r\n')
            converse(connection)
        else:
            connection.sendall(b'220 house\r\n')
            if converse(connection): converse(context.wrap_socket(connection, server_side=True))
    except (OSError, UnicodeDecodeError): print('broken')
    connection.close()
    print()
"#;

#[test]
fn mail_uses_the_addresses_tls_and_login_of_its_channel() {
    let world = World::new(BELLJAR);
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let authority = world.write("mail/authority.pem", cert.pem()).display().to_string();
    world.write("mail/key.pem", signing_key.serialize_pem());
    let folder = world.path().join("mail").display().to_string();
    let [mut asked, mut implicit] =
        ["starttls", "implicit"].map(|manner| PrintingServer::start(MAIL, &[&folder, manner]));
    let [asked_port, implicit_port] = [&asked, &implicit].map(|server| server.port.clone());
    let send = |port: &str, more: &str, tool: &str| {
        let channel = format!(
            "name: owners, host: localhost, port: {port}, from: bell@house.example, to: [one@house.example, two@house.example]{more}"
        );
        call(&world, &format!("channels: {{mail: [{{{channel}}}]}}"), tool, &message("owners"))
    };
    let (tool, ca) = ("send_external_message", format!(", ca: '{authority}'"));
    // Both kinds of TLS, each with the matching server and these addresses.
    let envelope = [
        "MAIL FROM:<bell@house.example>",
        "RCPT TO:<one@house.example>",
        "RCPT TO:<two@house.example>",
        "DATA",
        ".",
    ];
    let sent = send(&asked_port, &ca, tool);
    assert_eq!((&sent["status"], &sent["data"]["recipients"]), (&json!("ok"), &json!(2)), "{sent}");
    let heard = asked.told();
    assert!(heard.contains(&"STARTTLS".to_owned()) && heard.iter().all(|line| !line.starts_with("AUTH")));
    let in_envelope = |line: &&String| envelope.contains(&line.as_str());
    assert_eq!(heard.iter().filter(in_envelope).collect::<Vec<_>>(), envelope, "{heard:?}");
    let sent = send(&implicit_port, &format!("{ca}, tls: implicit"), tool);
    assert_eq!(sent["status"], "ok", "{sent}");
    assert!(!implicit.told().contains(&"STARTTLS".to_owned()));
    // The controls: the wrong kind of TLS, a server without a known CA, and the tool for the other audience.
    let unsent = |more: &str, asked: &mut PrintingServer| {
        let told = send(&asked_port, more, tool);
        assert_eq!(told["status"], "error", "{more}: {told}");
        let heard = asked.told();
        assert!(heard.iter().all(|line| !line.starts_with("MAIL")), "{more}: {heard:?}");
    };
    unsent(&format!("{ca}, tls: implicit"), &mut asked);
    unsent("", &mut asked);
    let internal = format!("{ca}, audience: internal");
    assert_eq!(send(&asked_port, &internal, tool)["status"], "absent");
    assert_eq!(send(&asked_port, &internal, "send_notification")["status"], "ok");
    asked.told();
    // The login is sent, whatever the source of its password.
    let shown = format!("AUTH PLAIN {}", STANDARD.encode(format!("\0bell\0{SECRET}")));
    for from in forms(&world) {
        let login = format!("{ca}, login: {{user: bell, password: {{{from}}}}}");
        assert_eq!(send(&asked_port, &login, tool)["status"], "ok", "{from}");
        assert!(asked.told().contains(&shown), "{from}");
    }
}

/// A PostgreSQL server that asks for a password, and prints it with the role and the database.
const DATABASE: &str = r#"
import socket, struct
server = socket.create_server(('127.0.0.1', 0))
print(server.getsockname()[1])
def exactly(connection, count):
    read = b''
    while len(read) < count:
        more = connection.recv(count - len(read))
        if not more: raise EOFError
        read += more
    return read
while True:
    connection, _ = server.accept()
    try:
        startup = exactly(connection, struct.unpack('!I', exactly(connection, 4))[0] - 4)
        words = startup[4:].split(b'\0')
        named = dict(zip(words[::2], words[1::2]))
        connection.sendall(b'R' + struct.pack('!II', 8, 3))
        exactly(connection, 1)
        password = exactly(connection, struct.unpack('!I', exactly(connection, 4))[0] - 4)
        print(named[b'user'].decode(), named[b'database'].decode(), password.rstrip(b'\0').decode())
        said = b'SFATAL\0C28P01\0Mno\0\0'
        connection.sendall(b'E' + struct.pack('!I', len(said) + 4) + said)
    except (EOFError, OSError): print('broken')
    connection.close()
    print()
"#;

#[test]
fn database_server_gets_the_role_database_and_password_of_its_section() {
    let (world, mut server) = (World::new(BELLJAR), PrintingServer::start(DATABASE, &[]));
    let query = json!({ "database": "house", "query": "SELECT 1" });
    for from in forms(&world) {
        let database = format!(
            "{{name: house, host: localhost, port: {}, database: books, user: reader, tls: false, password: {{{from}}}}}",
            server.port
        );
        let told = call(&world, &format!("databases: {{postgres: [{database}]}}"), "sql_query", &query);
        assert_eq!(told["status"], "error", "the server refuses every login: {told}");
        assert_eq!(server.told(), [format!("reader books {SECRET}")], "{from}: {told}");
    }
}

#[test]
fn database_is_read_and_changed_only_where_its_section_allows() {
    const NAME: &str = "database_is_read_and_changed_only_where_its_section_allows";
    let made = Postgres::start().and_then(|server| server.database().map(|url| (server, url)));
    let (server, url) = match made {
        Ok(made) => made,
        Err(why) => return skip(NAME, &why),
    };
    let world = World::new(BELLJAR);
    let (before, name) = url.rsplit_once('/').unwrap();
    let sockets = before.rsplit('@').next().unwrap().replace("%2F", "/");
    let role = format!("role_of_{name}");
    let make =
        format!("CREATE ROLE {role} LOGIN; CREATE TABLE kept (number int); ALTER TABLE kept OWNER TO {role}");
    server.ask(&url, &make).unwrap();
    let asked = |(host, database, user): (&str, &str, &str), more: &str, tool: &str, arguments: &Value| {
        let database = format!("{{name: house, host: '{host}', database: {database}, user: {user}{more}}}");
        call(&world, &format!("databases: {{postgres: [{database}]}}"), tool, arguments)
    };
    let there = (sockets.as_str(), name, role.as_str());
    let count = json!({ "database": "house", "query": "SELECT count(*)::int AS n FROM kept" });
    let insert = json!({ "database": "house", "statement": "INSERT INTO kept VALUES (1)" });
    assert_eq!(asked(there, "", "sql_query", &count)["data"]["rows"], json!([{ "n": 0 }]));
    assert_eq!(asked(there, "", "sql_execute", &insert)["status"], "absent");
    assert_eq!(asked(there, ", writable: true", "sql_execute", &insert)["data"]["rows_affected"], 1);
    assert_eq!(asked(there, "", "sql_query", &count)["data"]["rows"], json!([{ "n": 1 }]));
    // The controls: each member alone names something else, or a role without access.
    let nowhere = world.path().join("nowhere").display().to_string();
    for (place, more) in [
        ((nowhere.as_str(), name, role.as_str()), ""),
        ((&sockets, "no_such_database", &role), ""),
        ((&sockets, name, "no_such_role"), ""),
        ((&sockets, name, "postgres"), ""),
        (there, ", port: 1"),
    ] {
        let told = asked(place, more, "sql_query", &count);
        assert_eq!(told["status"], "error", "{place:?} {more}: {told}");
    }
    let other = json!({ "database": "other", "query": "SELECT 1" });
    assert_eq!(asked(there, "", "sql_query", &other)["domain_code"], "not_found");
}
