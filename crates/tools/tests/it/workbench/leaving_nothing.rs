//! Tests that no process of a call survives its end, while files and the sandbox are kept.

use super::Case;
use super::rig::{WorkbenchFactory, WorkbenchRig, run};
use serde_json::json;
use std::time::Duration;

pub(crate) const CASES: &[Case] = &[
    ("background_processes_are_killed_when_the_call_ends", daemons),
    ("canceled_call_kills_all_its_processes", given_up),
    ("concurrent_calls_do_not_kill_each_others_processes", at_once),
    ("kill_all_in_a_call_kills_neither_helper_nor_sandbox", killer),
];

/// A daemon that detaches itself in every possible way, and appends to a file while it lives.
const DAEMON: &str = r#"
import os, signal, time
for _ in range(2):
    if os.fork():
        os._exit(0) if _ else None
        time.sleep(0.2)
        print("left", flush=True)
        os._exit(0)
    os.setsid()
for fd in range(3):
    os.close(fd)
for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(sig, signal.SIG_IGN)
while True:
    with open("/workspace/alive", "a") as alive:
        alive.write("x")
    time.sleep(0.02)
"#;

/// True if a process still writes to the file.
async fn is_alive(bench: &WorkbenchRig) -> bool {
    let sizes = bench.shell("stat -c %s alive; sleep 0.3; stat -c %s alive").await;
    let sizes: Vec<&str> = sizes.lines().collect();
    sizes[0] != sizes[1]
}

fn daemons(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let before = bench.processes().await;
        bench.shell("echo kept >f").await;
        for (name, arguments) in [
            ("code_runner", json!({ "language": "python", "code": DAEMON })),
            (
                "shell_command",
                json!({ "command": "(setsid nohup sh -c 'while :; do echo >>alive; sleep 0.02; done' &) ; sleep 0.2" }),
            ),
            (
                "shell_command",
                json!({ "command": "while :; do echo >>alive; sleep 0.02; done & while :; do :; done", "timeout": 1 }),
            ),
        ] {
            bench.shell("rm -f alive").await;
            bench.done(name, arguments.clone()).await;
            assert!(!is_alive(&bench).await, "{arguments}");
            assert_eq!(bench.processes().await, before, "{arguments}");
        }
        assert_eq!(bench.shell("cat f").await, "kept\n");
        // Control: it lives during the call.
        let script = format!(
            "python3 -c '{}' & sleep 0.6; a=$(stat -c %s alive); sleep 0.3; [ $(stat -c %s alive) -gt $a ]",
            DAEMON.replace('\'', "\"")
        );
        bench.shell(&script).await;
        assert!(!is_alive(&bench).await);
    });
    Ok(())
}

fn given_up(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench.shell("echo kept >f; : >alive").await;
        let before = bench.processes().await;
        for wait in [0, 5, 50, 500] {
            let code = json!({ "language": "python", "code": DAEMON });
            let command = json!({ "command": "while :; do echo >>alive; sleep 0.02; done" });
            for (name, arguments) in [("code_runner", code), ("shell_command", command)] {
                let call = bench.call(name, arguments);
                let _ = tokio::time::timeout(Duration::from_millis(wait), call).await;
            }
        }
        // Ending takes a moment, because the caller did not wait for it.
        let mut after = 0;
        for _ in 0..100 {
            after = bench.processes().await;
            if after == before {
                break;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert_eq!(after, before);
        assert!(!is_alive(&bench).await);
        assert_eq!(bench.shell("cat f").await, "kept\n");
    });
    Ok(())
}

fn at_once(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench.shell(":").await;
        let long = bench.call(
            "shell_command",
            json!({ "command": "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.2; done" }),
        );
        let shorts = async {
            for number in 0..5 {
                bench.shell(&format!("(sleep 60 &); echo x >f{number}")).await;
                bench.done("read_file", json!({ "path": format!("f{number}") })).await;
                let endless = json!({ "command": "sleep 60 & sleep 60" });
                let _ = tokio::time::timeout(Duration::from_millis(50), bench.call("shell_command", endless))
                    .await;
            }
        };
        let (long, ()) = tokio::join!(long, shorts);
        let long = long.unwrap().data;
        assert_eq!(long["stdout"], "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n", "{long}");
    });
    Ok(())
}

fn killer(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        bench.shell("echo kept >f").await;
        let beside = bench.call("shell_command", json!({ "command": "sleep 2; echo done" }));
        let kill = "sleep 100 & for p in /proc/[0-9]*; do [ ${p#/proc/} = $$ ] || kill -9 ${p#/proc/} 2>/dev/null; done; kill -9 -1; kill -9 $PPID; wait $!; echo $?";
        let killer = async {
            tokio::time::sleep(Duration::from_millis(300)).await;
            bench.call("shell_command", json!({ "command": kill })).await
        };
        let (beside, killer) = tokio::join!(beside, killer);
        assert_eq!(beside.unwrap().data["stdout"], "done\n");
        // Control: processes it may kill are dead. `kill -1` spares the sender.
        assert_eq!(killer.unwrap().data["stdout"], "137\n");
        assert_eq!(bench.shell("cat f").await, "kept\n");
    });
    Ok(())
}
