//! Tests of code and commands run by agents.

use super::Case;
use super::rig::{Setting, WorkbenchFactory, run};
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_tools::builtin::execution::{self, Languages};
use belljar_tools::builtin::git;
use belljar_tools::workbench::{Command, ProgramExit};
use serde_json::{Value, json};
use std::time::Duration;

pub(crate) const CASES: &[Case] = &[
    ("code_runner_reports_the_exit_code_in_each_language", languages),
    ("shell_command_runs_in_the_working_directory_and_sees_files", commands),
    ("timed_out_program_is_killed_and_its_output_returned", time),
    ("long_output_keeps_both_ends_and_counts_omitted_bytes", floods),
    ("missing_language_is_reported_in_call_and_description", missing),
    ("program_input_is_passed_completely_or_ignored", input),
];

fn languages(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let code = |language: &str, code: &str| json!({ "language": language, "code": code });
        for (language, hello, fails) in [
            ("python", "print('h\u{e9}')", "import sys; print('no', file=sys.stderr); sys.exit(3)"),
            ("bash", "echo h\u{e9}", "echo no >&2; exit 3"),
        ] {
            let ran = bench.done("code_runner", code(language, hello)).await;
            assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("h\u{e9}\n"), &json!(0)), "{ran}");
            assert_eq!((&ran["timed_out"], &ran["language"]), (&json!(false), &json!(language)), "{ran}");
            let ran = bench.done("code_runner", code(language, fails)).await;
            assert_eq!((&ran["stderr"], &ran["exit_code"]), (&json!("no\n"), &json!(3)), "{ran}");
        }
        let silent = bench.done("code_runner", code("bash", ":")).await;
        assert_eq!((&silent["stdout"], &silent["stderr"]), (&json!(""), &json!("")));
        let killed = bench.done("code_runner", code("bash", "kill -SEGV $$")).await;
        assert_eq!((&killed["exit_code"], &killed["signal"]), (&json!(139), &json!(11)), "{killed}");
        let noise = bench.done("code_runner", code("bash", r"printf '\377a'")).await;
        assert_eq!(noise["stdout"], "\u{fffd}a");
        for arguments in [
            code("ruby", "1"),
            code("python", ""),
            json!({ "language": "bash", "code": ":", "timeout": 0 }),
            json!({ "language": "bash", "code": ":", "timeout": 601 }),
            json!({ "code": ":" }),
        ] {
            assert!(!bench.lets_through("code_runner", &arguments), "{arguments}");
        }
        let long = "#".repeat(200_000);
        assert_eq!(bench.refused("code_runner", code("bash", &long)).await.0, DomainCode::InvalidArgument);
        assert_eq!(bench.refused("code_runner", code("bash", "\0")).await.0, DomainCode::InvalidArgument);
        let just = "#".repeat((128 << 10) - 1);
        assert_eq!(bench.done("code_runner", code("bash", &just)).await["exit_code"], 0);
    });
    Ok(())
}

fn commands(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let file = json!({ "path": "d/f", "content": "x", "create_directories": true });
        bench.done("write_file", file).await;
        let ran = bench.done("shell_command", json!({ "command": "pwd; cat d/f; echo $SHLVL" })).await;
        assert_eq!((&ran["stdout"], &ran["shell"]), (&json!("/workspace\nx1\n"), &json!("bash")), "{ran}");
        let there = json!({ "command": "pwd; cat f", "working_directory": "d" });
        assert_eq!(bench.done("shell_command", there).await["stdout"], "/workspace/d\nx");
        for (directory, code) in [
            ("../..", DomainCode::PermissionDenied),
            ("/etc", DomainCode::InvalidArgument),
            ("none", DomainCode::NotFound),
            ("d/f", DomainCode::ToolFailed),
        ] {
            let arguments = json!({ "command": "true", "working_directory": directory });
            assert_eq!(bench.refused("shell_command", arguments).await.0, code, "{directory}");
        }
        bench.shell("ln -s / out").await;
        let out = json!({ "command": "true", "working_directory": "out/etc" });
        assert_eq!(bench.refused("shell_command", out).await.0, DomainCode::PermissionDenied);
        assert!(!bench.lets_through("shell_command", &json!({ "command": " \n" })));
    });
    Ok(())
}

fn time(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let slow = json!({ "command": "echo begun; sleep 600; echo never", "timeout": 1 });
        let ran = bench.done("shell_command", slow).await;
        assert_eq!((&ran["timed_out"], &ran["exit_code"]), (&json!(true), &Value::Null), "{ran}");
        assert_eq!(ran["stdout"], "begun\n");
        // The sandbox is the same, including its files.
        bench.done("write_file", json!({ "path": "f", "content": "kept" })).await;
        let busy = json!({ "language": "bash", "code": "while :; do :; done", "timeout": 1 });
        assert_eq!(bench.done("code_runner", busy).await["timed_out"], true);
        assert_eq!(bench.shell("cat f").await, "kept");
    });
    Ok(())
}

fn floods(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let flood = "echo first; head -c 50000000 /dev/zero | tr '\\0' x; echo; echo last; echo oops >&2";
        let ran = bench.done("shell_command", json!({ "command": flood })).await;
        let stdout = ran["stdout"].as_str().unwrap();
        assert!(stdout.starts_with("first\nx") && stdout.ends_with("x\nlast\n"), "{}", stdout.len());
        let (printed, kept) = (6 + 50_000_000 + 6, 64 << 10);
        assert!(stdout.contains(&format!("[… {} bytes left out …]", printed - kept)), "{}", &stdout[..100]);
        assert_eq!((&ran["stderr"], &ran["truncated"]), (&json!("oops\n"), &json!(true)));
        // Endless output is stopped by the time limit alone.
        let endless = json!({ "command": "yes; true", "timeout": 1 });
        let ran = bench.done("shell_command", endless).await;
        assert_eq!((&ran["timed_out"], &ran["truncated"]), (&json!(true), &json!(true)));
    });
    Ok(())
}

fn missing(benches: &WorkbenchFactory) -> Result<(), String> {
    let bare = Setting { search_path: Some("/nowhere"), ..Setting::default() };
    let (bench, bare) = (benches.native(), benches.bench(bare)?);
    run(async {
        for (name, arguments, said) in [
            (
                "code_runner",
                json!({ "language": "python", "code": "1" }),
                "there is no python in this sandbox: no python3",
            ),
            ("shell_command", json!({ "command": "true" }), "there is no shell in this sandbox"),
            ("git_status", json!({}), "there is no git in this sandbox"),
        ] {
            assert_eq!(bare.refused(name, arguments).await, (DomainCode::NotSupported, said.to_owned()));
        }
        // File tools need no program of the sandbox.
        bare.done("write_file", json!({ "path": "f", "content": "x" })).await;
        assert_eq!(bare.done("read_file", json!({ "path": "f" })).await["content"], "x");
        let found = Languages::probe(&*bench.workbench, &bench.caller).await.unwrap();
        assert!(found.names().starts_with(&["python"]) && found.names().ends_with(&["bash"]), "{found:?}");
        assert!(git::is_there(&*bench.workbench, &bench.caller).await.unwrap());
        let none = Languages::probe(&*bare.workbench, &bare.caller).await.unwrap();
        assert!(none.is_empty() && !git::is_there(&*bare.workbench, &bare.caller).await.unwrap());
        let tools = execution::tools(&bare.workbench, &none).unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.definition().name.to_string()).collect();
        assert_eq!(names, ["shell_command"]);
        let tools = execution::tools(&bench.workbench, &found).unwrap();
        let code = tools.last().unwrap().definition();
        assert_eq!(code.input["properties"]["language"]["enum"], json!(found.names()));
        assert_eq!(code.description.contains("Not in these sandboxes"), found != Languages::all());
    });
    Ok(())
}

fn input(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let command = |argv: &[&str], input: Vec<u8>| {
            let argv = argv.iter().map(|word| (*word).to_owned()).collect();
            let within = Duration::from_secs(60);
            Command { input, within, ..Command::new(Category::Terminal, argv) }
        };
        let much: Vec<u8> = (0..3_000_000_u32).map(|number| u8::try_from(number % 256).unwrap()).collect();
        let sum = command(&["sha256sum"], much.clone());
        let ran = bench.workbench.run(&bench.caller, sum).await.unwrap();
        assert_eq!(ran.stdout.text(), format!("{}  -\n", sha256(&much)));
        let ignored = bench.workbench.run(&bench.caller, command(&["true"], much)).await.unwrap();
        assert_eq!(ignored.by, ProgramExit::Exited(0));
        let nothing = bench.workbench.run(&bench.caller, command(&["wc", "-c"], Vec::new())).await.unwrap();
        assert_eq!(nothing.stdout.text().trim(), "0");
    });
    Ok(())
}

fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
