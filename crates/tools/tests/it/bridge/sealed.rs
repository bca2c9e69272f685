//! Tests of isolation: in its sandbox a server reaches neither the network nor the host. Run on the host by explicit
//! configuration, it reaches both.

use super::Case;
use super::rig::{SandboxFactory, folder, run, scripted};
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};

pub(crate) const CASES: &[Case] = &[(
    "mcp_server_program_cannot_access_network_or_host_files",
    mcp_server_program_cannot_access_network_or_host_files,
)];

/// Tries both and reports the results.
const TRIES: &str = r#"
import socket


def called(name, arguments):
    try:
        if name == "dial":
            socket.create_connection(("127.0.0.1", arguments["port"]), 5).close()
        else:
            open(arguments["path"]).read()
        return text("reached")
    except OSError as error:
        return text("not reached: " + type(error).__name__)


def listed(params):
    return {"tools": [tool("dial"), tool("read")]}


serve()
"#;

fn mcp_server_program_cannot_access_network_or_host_files(house: &SandboxFactory) -> Result<(), String> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let was_dialed = || listener.accept().is_ok();
    let kept = folder();
    let secret = kept.path().join("secret");
    std::fs::write(&secret, "of the host").unwrap();
    let scripts = folder();
    let inside = scripted(scripts.path(), "inside", TRIES, "");
    let outside = scripted(scripts.path(), "outside", TRIES, ", unsealed: true");
    run(async {
        let rig = house.bridge(&[inside, outside].concat());
        let (dial, read) = (json!({ "port": port }), json!({ "path": secret }));
        for server in ["outside", "inside"] {
            rig.definition(&format!("mcp_{server}_dial")).await;
        }
        assert!(!rig.definition("mcp_inside_dial").await.reaches_out);
        assert!(rig.definition("mcp_outside_dial").await.reaches_out);
        // Control.
        assert_eq!(rig.text("mcp_outside_dial", dial.clone()).await, "reached");
        assert!(was_dialed());
        assert_eq!(rig.text("mcp_outside_read", read.clone()).await, "reached");
        let refused = rig.text("mcp_inside_dial", dial).await;
        assert!(refused.starts_with("not reached: "), "{refused}");
        assert!(!was_dialed());
        assert_eq!(rig.text("mcp_inside_read", read).await, "not reached: FileNotFoundError");
        rig.end().await;
    });
    Ok(())
}
