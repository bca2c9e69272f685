//! Tests of calls that the host makes of configured APIs.

use crate::tls::authority::{Authority, NOW};
use crate::web::house::{ProxyRig, UP, config, leads, outcome};
use belljar_egress::api::{ApiAnswer, ApiCall, ApiCaller, ApiError, Caller};
use belljar_egress::web::ledger::WebLedger;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tempfile::TempDir;

const SECRET: &str = "a-secret/of+the=forge";

struct Rig {
    house: ProxyRig,
    caller: ApiCaller,
    /// Configuration with the connection.
    connection: String,
    _authority: Authority,
    folder: TempDir,
}

impl Rig {
    fn new(more: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("key"), SECRET).unwrap();
        let authority = Authority::new("house");
        let rules = "rules: [{host: absent.test}]\nauthorities: CA\n";
        let house = ProxyRig::looking_into(rules, authority.server(UP, NOW), &authority);
        let connection = format!(
            "rules: []\nconnections:\n- {{name: forge, url: 'https://up.test:{}/v1', credential: {{file: {}}}, \
             authorities: {}, networks: [127.0.0.0/8]{more}}}\n",
            house.port(),
            folder.path().join("key").display(),
            authority.file().display(),
        );
        house.policy.replace(config(&connection));
        let caller = ApiCaller::start_with(house.name_source()).unwrap();
        Self { house, caller, connection, _authority: authority, folder }
    }

    /// Adds members to the configuration.
    fn behind(&self, more: &str) {
        self.house.policy.replace(config(&format!("{}{more}", self.connection)));
    }

    fn call(&self, method: &str, path: &str) -> Result<ApiAnswer, ApiError> {
        self.make(call(method, path))
    }

    fn make(&self, call: ApiCall) -> Result<ApiAnswer, ApiError> {
        let connections = self.house.policy.current().config.connections.clone();
        let ledger = Arc::clone(&self.house.ledger) as Arc<dyn WebLedger>;
        let caller = Caller { run_id: self.house.run.run_id.clone(), ledger };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.caller.call(&connections["forge"], call, caller))
    }

    fn head(&self) -> String {
        self.house.upstream.heads().pop().unwrap()
    }
}

fn call(method: &str, path: &str) -> ApiCall {
    ApiCall {
        method: method.to_owned(),
        path: path.to_owned(),
        query: None,
        headers: Vec::new(),
        body: Vec::new(),
        is_approved: false,
    }
}

#[test]
fn api_call_is_sent_to_the_connection_host_with_its_credential() {
    let encoded = "key=a-secret%2Fof%2Bthe%3Dforge";
    for (placement, expected) in [
        ("", format!("authorization: Bearer {SECRET}\r\n")),
        (", as: basic", "authorization: Basic YS1zZWNyZXQvb2YrdGhlPWZvcmdl\r\n".to_owned()),
        (", as: header private-token", format!("private-token: {SECRET}\r\n")),
        (", as: query key", format!("GET /v1/repos?page=2&{encoded} HTTP/1.1\r\n")),
    ] {
        let rig = Rig::new(placement);
        let asked = ApiCall {
            query: Some("page=2".to_owned()),
            headers: vec![("accept".to_owned(), "text/plain".to_owned())],
            ..call("GET", "/repos")
        };
        let answer = rig.make(asked).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]));
        let head = rig.head() + "\r\n";
        assert!(head.starts_with("GET /v1/repos?page=2") && head.contains(&expected), "{head}");
        assert!(head.contains("accept: text/plain\r\n"), "{head}");
        let record = rig.house.ledger.latest(1);
        assert_eq!((outcome(&record).as_str(), record.connection.as_deref()), ("completed", Some("forge")));
        assert_eq!(rig.house.ledger.begun()[0].connection.as_deref(), Some("forge"));
        assert!(record.sent_bytes > 100 && record.received_bytes > 40 && record.tls_name.is_some());
        assert!(!format!("{record:?} {:?}", rig.house.ledger.begun()).contains(SECRET));
    }
}

#[test]
fn api_call_outside_the_connection_rules_is_refused_and_recorded() {
    let rig = Rig::new("");
    let with = |name: &str, value: &str| ApiCall {
        headers: vec![(name.to_owned(), value.to_owned())],
        ..call("GET", "/x")
    };
    let query = |query: &str| ApiCall { query: Some(query.to_owned()), ..call("GET", "/x") };
    let large = ApiCall { body: vec![0; (4 << 20) + 1], ..call("GET", "/x") };
    let all = [
        (call("POST", "/repos"), "not_allowed"),
        (call("GET", "/../v2"), "not_allowed"),
        (call("GET", "/%2e%2e/v2"), "not_allowed"),
        (call("GET", "//x"), "not_allowed"),
        (call("GET", "x"), "invalid_call"),
        (call("GET", "/x y"), "invalid_call"),
        (call("GET", "/x\r\nHost: y"), "invalid_call"),
        (call("GET", "/x?y"), "invalid_call"),
        (call("GET", "/x#y"), "invalid_call"),
        (call("get", "/x"), "invalid_call"),
        (call("GET / HTTP/1.1\r\n", "/x"), "invalid_call"),
        (query("a b"), "invalid_call"),
        (query("a\r\nb"), "invalid_call"),
        (with("authorization", "Bearer mine"), "invalid_call"),
        (with("host", "other.test"), "invalid_call"),
        (with("x-forwarded-for", "1.2.3.4"), "invalid_call"),
        (with("accept", "a\r\nx: y"), "invalid_call"),
        (large, "invalid_call"),
    ];
    let count = all.len();
    for (asked, code) in all {
        let shown = format!("{} {} {:?}", asked.method, asked.path, asked.headers);
        let error = rig.make(asked).unwrap_err();
        assert_eq!((error.code(), error.is_refusal()), (code, true), "{shown}");
    }
    assert_eq!(rig.house.upstream.connections(), 0);
    let ended = rig.house.ledger.ended();
    assert!(ended.iter().all(|record| outcome(record).starts_with("denied: ")) && ended.len() == count);
    // Control.
    assert!(rig.call("GET", "/x").is_ok());
}

#[test]
fn mutating_api_call_requires_approval_unless_writes_are_allowed() {
    let rig = Rig::new(", methods: [GET, POST, DELETE]");
    for method in ["POST", "DELETE"] {
        assert_eq!(rig.call(method, "/x").unwrap_err().code(), "approval_required");
        assert_eq!(rig.house.upstream.connections(), 0);
    }
    assert!(rig.call("GET", "/x").is_ok());
    assert!(rig.make(ApiCall { is_approved: true, body: b"{}".to_vec(), ..call("POST", "/x") }).is_ok());
    assert!(rig.head().contains("content-length: 2"));
    let free = Rig::new(", methods: [POST], writes: allow");
    assert!(free.call("POST", "/x").is_ok());
}

#[test]
fn api_connection_is_rate_limited() {
    let rig = Rig::new(", calls_a_minute: 3");
    for _ in 0..3 {
        assert!(rig.call("GET", "/x").is_ok());
    }
    let error = rig.call("GET", "/x").unwrap_err();
    assert_eq!(error.code(), "rate_limited");
    assert!(error.to_string().contains("3 times a minute"), "{error}");
    assert_eq!(rig.house.upstream.connections(), 3);
}

#[test]
fn api_call_to_a_forbidden_address_or_untrusted_host_sends_nothing() {
    for (addresses, code) in [
        (&["169.254.169.254"][..], "no_address"),
        (&["127.0.0.1", "10.0.0.1"], "no_address"),
        (&[], "no_address"),
        (&["127.0.0.1"], ""),
    ] {
        let rig = Rig::new("");
        rig.house.names.set(vec![(UP, leads(addresses))]);
        let error = rig.call("GET", "/x").err();
        assert_eq!(error.as_ref().map_or("", ApiError::code), code, "{addresses:?}");
        assert_eq!(rig.house.upstream.connections(), usize::from(code.is_empty()));
    }
    let (house, other) = (Authority::new("house"), Authority::new("other"));
    let front = ProxyRig::looking_into("rules: []\n", other.server(UP, NOW), &house);
    let url = format!("https://up.test:{}", front.port());
    let ca = house.file().display().to_string();
    front.policy.replace(config(&format!(
        "rules: []\nconnections: [{{name: forge, url: '{url}', authorities: {ca}, networks: [127.0.0.0/8]}}]\n"
    )));
    let caller = ApiCaller::start_with(front.name_source()).unwrap();
    let rig = Rig {
        house: front,
        caller,
        connection: String::new(),
        _authority: house,
        folder: tempfile::tempdir().unwrap(),
    };
    assert_eq!(rig.call("GET", "/x").unwrap_err().code(), "upstream_untrusted");
    assert_eq!(rig.house.upstream.heads(), [""; 0]);
}

#[test]
fn api_answer_with_the_credential_is_withheld_and_unrecorded_calls_are_refused() {
    let rig = Rig::new("");
    for path in ["/back", "/back/header", "/coded"] {
        let error = rig.call("GET", path).unwrap_err();
        assert!(["credential_repeated", "answer_malformed"].contains(&error.code()), "{path}: {error}");
        assert!(!error.is_refusal());
    }
    std::fs::remove_file(rig.folder.path().join("key")).unwrap();
    // The credential existed a moment ago and may be cached.
    let is_gone = || rig.call("GET", "/x").is_err_and(|error| error.code() == "credential_unavailable");
    belljar_testkit::wait::until(is_gone);
    let before = rig.house.upstream.connections();
    std::fs::write(rig.folder.path().join("key"), SECRET).unwrap();
    rig.house.ledger.is_broken.store(true, Ordering::SeqCst);
    assert_eq!(rig.call("GET", "/x").unwrap_err().code(), "recording_unavailable");
    assert_eq!(rig.house.upstream.connections(), before);
}

#[test]
fn connection_is_reached_through_the_upstream_proxy_unless_its_host_is_excepted() {
    for (except, connections) in [("", 1), (", except: [up.test]", 0)] {
        let rig = Rig::new("");
        let proxy = ProxyRig::with(&format!(
            "- {{host: up.test, ports: [{}], networks: [127.0.0.0/8]}}\n",
            rig.house.port()
        ));
        rig.behind(&format!("proxy: {{url: 'http://{}', names: there{except}}}\n", proxy.address()));
        let answer = rig.call("GET", "/repos").unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, &b"hello"[..]), "{except}");
        let tunnels = proxy.ledger.begun().len();
        assert_eq!(tunnels, connections, "{except}");
        assert!(!rig.head().contains("proxy"), "the host gets nothing of the proxy: {}", rig.head());
    }
}
