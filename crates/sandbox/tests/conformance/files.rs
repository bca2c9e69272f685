//! Files into a sandbox and out of it.

use crate::BackendCase;
use crate::house::{BackendFixture, run};
use belljar_confine::sealed::ProgramOutcome;
use belljar_files::host_path::HostPath;
use belljar_sandbox::backend::{BackendError, Sandbox};
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tar::{Archive, Builder, EntryType, Header};

pub(crate) const CASES: &[BackendCase] = &[
    ("what_goes_in_comes_out_again", what_goes_in_comes_out_again),
    ("an_archive_leads_nowhere_else", an_archive_leads_nowhere_else),
    ("a_link_of_the_sandboxs_leads_nowhere_else", a_link_of_the_sandboxs_leads_nowhere_else),
    ("a_workspace_persists_from_one_program_to_the_next", a_workspace_persists_from_one_program_to_the_next),
    ("a_copy_leaves_its_source_alone", a_copy_leaves_its_source_alone),
    ("a_workspace_that_is_seen_is_not_changed", a_workspace_that_is_seen_is_not_changed),
    ("what_is_made_in_somebodys_directory_is_theirs", what_is_made_in_somebodys_directory_is_theirs),
    ("what_is_put_in_its_home_is_there_from_the_start", what_is_put_in_its_home_is_there_from_the_start),
];

/// An archive of one entry.
fn archive(path: &str, kind: EntryType, content: &str) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o640);
    let is_link = kind == EntryType::Symlink;
    header.set_size(if is_link { 0 } else { content.len() as u64 });
    if is_link {
        header.set_link_name_literal(content).unwrap();
    }
    // As an attacker would write it: the library's own way refuses such paths.
    header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
    header.set_cksum();
    let mut builder = Builder::new(Vec::new());
    builder.append(&header, if is_link { &b""[..] } else { content.as_bytes() }).unwrap();
    builder.into_inner().unwrap()
}

fn what_goes_in_comes_out_again(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let mut builder = Builder::new(Vec::new());
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("below")).unwrap();
    std::fs::write(folder.path().join("below/file"), "content").unwrap();
    std::os::unix::fs::symlink("below/file", folder.path().join("link")).unwrap();
    builder.follow_symlinks(false);
    builder.append_dir_all("in", folder.path()).unwrap();
    sandbox.copy_in("/workspace", &mut builder.into_inner().unwrap().as_slice()).unwrap();
    let ran = run(&*sandbox, "cat in/below/file && readlink in/link && echo more >> in/below/file");
    assert_eq!(
        (ran.outcome, ran.stdout.as_str()),
        (ProgramOutcome::Exited(0), "contentbelow/file\n"),
        "{}",
        ran.stderr
    );
    let mut out = Vec::new();
    sandbox.copy_out("/workspace/in", &mut out).unwrap();
    let mut found = Vec::new();
    for entry in Archive::new(out.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = String::new();
        entry.read_to_string(&mut content).unwrap();
        found.push((entry.path().unwrap().display().to_string(), content));
    }
    found.sort();
    let expected = [("in", ""), ("in/below", ""), ("in/below/file", "contentmore\n"), ("in/link", "")];
    assert_eq!(found, expected.map(|(path, content)| (path.to_owned(), content.to_owned())));
}

fn an_archive_leads_nowhere_else(house: &BackendFixture) {
    let sandbox = house.sandbox();
    for path in ["../outside", "below/../../../outside"] {
        let error = sandbox.copy_in("/workspace", &mut archive(path, EntryType::Regular, "x").as_slice());
        assert!(matches!(error, Err(BackendError::Copy { .. })), "{path}: {error:?}");
    }
    // Through a link that the archive itself has brought.
    let temporary = run(&*sandbox, "printf %s \"$TMPDIR\"").stdout;
    sandbox.copy_in("/workspace", &mut archive("way", EntryType::Symlink, &temporary).as_slice()).unwrap();
    let error = sandbox.copy_in("/workspace", &mut archive("way/file", EntryType::Regular, "x").as_slice());
    assert!(matches!(error, Err(BackendError::Copy { .. })), "{error:?}");
    assert_eq!(run(&*sandbox, "test -e \"$TMPDIR\"/file").outcome, ProgramOutcome::Exited(1));
    assert_eq!(run(&*sandbox, "test -d \"$TMPDIR\"").outcome, ProgramOutcome::Exited(0));
    let error = sandbox.copy_in("/workspace", &mut archive("device", EntryType::Char, "").as_slice());
    assert!(matches!(error, Err(BackendError::Copy { .. })), "{error:?}");
}

fn a_link_of_the_sandboxs_leads_nowhere_else(house: &BackendFixture) {
    let sandbox = house.sandbox();
    let secret = house.state.path().join("secret");
    std::fs::write(&secret, "a secret of the host").unwrap();
    let script = format!("ln -s {} file; ln -s / root; mkfifo pipe", secret.display());
    assert_eq!(run(&*sandbox, &script).outcome, ProgramOutcome::Exited(0));
    for path in ["/workspace/root/etc/passwd", "/workspace/root", "/workspace/file", "/workspace/pipe"] {
        let mut out = Vec::new();
        // A link is copied out as a link, a pipe not at all; what they lead to is not copied.
        let _ = sandbox.copy_out(path, &mut out);
        assert!(!String::from_utf8_lossy(&out).contains("a secret of the host"), "{path}");
        assert!(!String::from_utf8_lossy(&out).contains("root:x"), "{path}");
    }
}

fn a_workspace_persists_from_one_program_to_the_next(house: &BackendFixture) {
    let sandbox = house.sandbox();
    assert_eq!(
        run(&*sandbox, "echo kept > file; echo also > \"$TMPDIR\"/file").outcome,
        ProgramOutcome::Exited(0)
    );
    assert_eq!(run(&*sandbox, "cat file \"$TMPDIR\"/file").stdout, "kept\nalso\n");
    // Another sandbox can't see it, as it can't see its processes.
    let other = run(&*house.sandbox(), "ls -A . && ls -A \"$TMPDIR\"");
    assert_eq!((other.outcome, other.stdout.as_str()), (ProgramOutcome::Exited(0), ""));
}

fn a_copy_leaves_its_source_alone(house: &BackendFixture) {
    let source = house.state.path().join("source");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("file"), "before").unwrap();
    let sandbox = house.sandbox_on(WorkspaceChoice::Copy(HostPath::resolve(&source).unwrap()));
    let ran = run(&*sandbox, "cat file; echo after > file; touch new; cat file");
    assert_eq!(ran.stdout, "beforeafter\n");
    assert_eq!(std::fs::read_to_string(source.join("file")).unwrap(), "before");
    assert_eq!(std::fs::read_dir(&source).unwrap().count(), 1);
}

/// Makes a directory of another user, who is not root, with a file in it.
fn directory_of_somebody(house: &BackendFixture) -> PathBuf {
    // In the state directory itself nothing may be another user's.
    let directory = house.state.path().join("beside/somebodys");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("file"), "before\n").unwrap();
    if rustix::process::geteuid().is_root() {
        for path in [directory.clone(), directory.join("file")] {
            std::os::unix::fs::chown(path, Some(4711), Some(4712)).unwrap();
        }
    }
    directory
}

fn has(sandbox: &dyn Sandbox, layer: &str) -> bool {
    sandbox.isolation().layers.iter().any(|found| found.name == layer && found.in_force)
}

fn a_workspace_that_is_seen_is_not_changed(house: &BackendFixture) {
    let directory = directory_of_somebody(house);
    let path = || HostPath::resolve(&directory).unwrap();
    let sandbox = house.sandbox_on(WorkspaceChoice::Seen(path()));
    if !has(&*sandbox, "landlock") {
        return house.skip("landlock");
    }
    let changes = [
        "echo x > file",
        "echo x >> file",
        ": > new",
        "mkdir new",
        "rm -f file",
        "mv file other",
        "ln file other",
        "ln -s file other",
        "chmod 600 file",
        "touch -d 2001-01-01 file",
        "truncate -s 0 file",
    ];
    for change in changes {
        assert_ne!(run(&*sandbox, change).outcome, ProgramOutcome::Exited(0), "{change}");
        assert_eq!(std::fs::read_to_string(directory.join("file")).unwrap(), "before\n", "{change}");
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "{change}");
    }
    let own = run(&*sandbox, "cat file && echo x > \"$TMPDIR\"/x && echo x > ~/x && cat ~/x");
    assert_eq!((own.stdout.as_str(), own.stderr.as_str()), ("before\nx\n", ""));
    // The control: who may change it, does, and that is seen.
    let other = house.sandbox_on(WorkspaceChoice::Direct(path()));
    for change in changes {
        let again = "rm -rf new other; echo before > file";
        let ran = run(&*other, &format!("{change} && ({again})"));
        assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{change}: {}", ran.stderr);
    }
    run(&*other, "echo after > file");
    assert_eq!(run(&*sandbox, "cat file").stdout, "after\n");
}

fn what_is_made_in_somebodys_directory_is_theirs(house: &BackendFixture) {
    let directory = directory_of_somebody(house);
    let sandbox = house.sandbox_on(WorkspaceChoice::Direct(HostPath::resolve(&directory).unwrap()));
    if !has(&*sandbox, "host_user") {
        return house.skip("host_user");
    }
    let script =
        "echo x > new && mkdir folder && echo y >> file && chmod 640 file && test -O . && test -O new";
    let ran = run(&*sandbox, script);
    assert_eq!(ran.outcome, ProgramOutcome::Exited(0), "{}", ran.stderr);
    let owner = directory.metadata().unwrap().uid();
    for name in ["new", "folder", "file"] {
        assert_eq!(directory.join(name).metadata().unwrap().uid(), owner, "{name}");
    }
}

fn what_is_put_in_its_home_is_there_from_the_start(house: &BackendFixture) {
    let home = BTreeMap::from([(".settings/deep/one".to_owned(), "there\n".to_owned())]);
    let wanted =
        BackendFixture::wanted_with(WorkspaceChoice::Empty, Provision { home, ..Provision::default() });
    let sandbox = house.backend.create(wanted).unwrap();
    let ran = run(&*sandbox, "cat ~/.settings/deep/one; touch ~/more && ls ~");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("there\nmore\n", ""));
    // The control: no other sandbox has it.
    let other = house.backend.create(BackendFixture::wanted(WorkspaceChoice::Empty)).unwrap();
    assert_eq!(run(&*other, "ls -A ~").stdout, "");
    sandbox.destroy().unwrap();
    other.destroy().unwrap();
}
