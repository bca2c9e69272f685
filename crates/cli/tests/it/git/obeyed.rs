//! Settings of the user that git and ssh obey must not be writable by a sandbox or another user.

use super::rig::GitFixture;
use crate::session::{SessionCleanup, create};
use belljar_testkit::world::ProgramOutput;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

/// A directory that a live sandbox writes, with programs and settings in it, and another that is the user's own.
const PLACES: [&str; 2] = ["project", "own"];

/// A setting or variable that makes git or ssh run or trust something.
struct HostileGitSetting {
    /// Lines of the user's git settings, of the ssh settings, and a variable. `@` stands for the directory, and `+` for its
    /// name below the home directory.
    git: &'static str,
    ssh: &'static str,
    /// Lines of a further file of ssh settings, `~/.ssh/conf.d/work`.
    further: &'static str,
    variable: (&'static str, &'static str),
    scheme: &'static str,
}

const NONE: HostileGitSetting =
    HostileGitSetting { git: "", ssh: "", further: "", variable: ("NONE", ""), scheme: "https" };

/// A line of ssh settings that runs a program.
const RUNS: &str = "Match exec @/helper\n";

const WAYS: [HostileGitSetting; 24] = [
    HostileGitSetting { git: "[include]\n\tpath = @/gitconfig\n", ..NONE },
    HostileGitSetting { git: "[credential]\n\thelper = @/helper\n", ..NONE },
    HostileGitSetting { git: "[credential]\n\thelper = \"!f() { @/helper; }; f\"\n", ..NONE },
    HostileGitSetting { git: "[core]\n\taskPass = @/helper\n", ..NONE },
    HostileGitSetting { git: "[http]\n\tsslCAInfo = @/ca.pem\n", ..NONE },
    HostileGitSetting { variable: ("GIT_CONFIG_GLOBAL", "@/gitconfig"), ..NONE },
    HostileGitSetting { variable: ("XDG_CONFIG_HOME", "@/xdg"), ..NONE },
    HostileGitSetting { variable: ("GIT_ASKPASS", "@/helper"), ..NONE },
    HostileGitSetting { variable: ("SSH_ASKPASS", "@/helper"), ..NONE },
    HostileGitSetting { variable: ("GIT_SSL_CAINFO", "@/ca.pem"), ..NONE },
    HostileGitSetting { git: "[core]\n\tsshCommand = @/helper\n", scheme: "ssh", ..NONE },
    HostileGitSetting { variable: ("GIT_SSH", "@/helper"), scheme: "ssh", ..NONE },
    HostileGitSetting { variable: ("GIT_SSH_COMMAND", "env A=b @/helper"), scheme: "ssh", ..NONE },
    HostileGitSetting { ssh: RUNS, scheme: "ssh", ..NONE },
    HostileGitSetting { ssh: "Include conf.d/*\n", further: RUNS, scheme: "ssh", ..NONE },
    HostileGitSetting {
        ssh: "Host a\n\tinclude=\"~/.ssh/conf.d/work\"\n",
        further: RUNS,
        scheme: "ssh",
        ..NONE
    },
    HostileGitSetting { ssh: "Include %d/.ssh/conf.d/w?rk\n", further: RUNS, scheme: "ssh", ..NONE },
    HostileGitSetting {
        git: "[core]\n\tsshCommand = ssh -F ~/.ssh/conf.d/work\n",
        further: RUNS,
        scheme: "ssh",
        ..NONE
    },
    HostileGitSetting { ssh: "Match exec \"sh %d/+/helper\"\n", scheme: "ssh", ..NONE },
    HostileGitSetting { ssh: "Match exec \"sh ${HOME}/+/helper\"\n", scheme: "ssh", ..NONE },
    HostileGitSetting { ssh: "Match exec \"sh ~/./+/helper\"\n", scheme: "ssh", ..NONE },
    HostileGitSetting { git: "[credential]\n\thelper = \"!sh ${HOME}/+/helper\"\n", ..NONE },
    HostileGitSetting { git: "[http]\n\tsslCAInfo = ~/+/ca.pem\n", ..NONE },
    HostileGitSetting { git: "[credential]\n\thelper = \"!sh \\\"${HOME}\\\"/+/helper\"\n", ..NONE },
];

/// A server, a sandbox that writes one of the directories, and both directories with the same content.
struct GitSettingsWorld {
    rig: GitFixture,
    settings: String,
}

// === impl GitSettingsWorld ===

impl GitSettingsWorld {
    fn start(test: &str) -> Option<Self> {
        let rig = GitFixture::start(test)?;
        let settings = std::fs::read_to_string(rig.world.path().join(".gitconfig")).unwrap();
        for place in PLACES {
            let mark = rig.world.path().join("mark").display().to_string();
            rig.world.write(
                &format!("{place}/gitconfig"),
                format!("{settings}[credential]\n\thelper = \"!touch {mark}\"\n"),
            );
            rig.world.write(
                &format!("{place}/xdg/git/config"),
                format!("[credential]\n\thelper = \"!touch {mark}\"\n"),
            );
            rig.world.write(&format!("{place}/ca.pem"), std::fs::read(rig.server.authority()).unwrap());
            for name in ["helper", "bin/git"] {
                let program = rig.world.write(
                    &format!("{place}/{name}"),
                    format!("#!/bin/sh\ntouch {mark}\ntest $(basename $0) = helper || PATH=/usr/local/bin:/usr/bin:/bin exec git \"$@\"\nexit 1\n"),
                );
                std::fs::set_permissions(program, PermissionsExt::from_mode(0o755)).unwrap();
            }
        }
        Some(Self { rig, settings })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.rig.world.path().join(name)
    }

    /// Clones with a setting that points into a directory.
    fn clone(&self, way: &HostileGitSetting, place: &str) -> ProgramOutput {
        let to = |text: &str| text.replace('@', &self.path(place).display().to_string()).replace('+', place);
        self.rig.world.write(".gitconfig", format!("{}{}", self.settings, to(way.git)));
        self.rig.world.write(".ssh/config", to(way.ssh));
        self.rig.world.write(".ssh/conf.d/work", to(way.further));
        let url = match way.scheme {
            "ssh" => "ssh://127.0.0.1:9/a.git",
            _ => &self.rig.url,
        };
        let _ = std::fs::remove_dir_all(self.path("work"));
        let _ = std::fs::remove_file(self.path("mark"));
        let mut command =
            self.rig.world.command(&["git", "clone", url, "work", "--allow-network", "127.0.0.0/8"]);
        let (name, value) = way.variable;
        ProgramOutput::from(command.env(name, to(value)).output().unwrap())
    }

    fn has_run(&self) -> bool {
        self.path("mark").exists()
    }
}

#[test]
fn git_and_ssh_use_no_settings_that_a_live_sandbox_can_write() {
    let Some(obeyed) = GitSettingsWorld::start("git_and_ssh_use_no_settings_that_a_live_sandbox_can_write")
    else {
        return;
    };
    let _sessions = SessionCleanup(&obeyed.rig.world);
    create(&obeyed.rig.world, &["--workspace", "project"]);
    for (number, way) in WAYS.iter().enumerate() {
        let refused = obeyed.clone(way, "project");
        assert!(
            refused.code == 125 && refused.stderr.contains("lies in the workspace"),
            "{number}: {refused:?}"
        );
        assert!(!obeyed.has_run(), "{number}: {refused:?}");
        // The control: the directory that no sandbox writes.
        let own = obeyed.clone(way, "own");
        assert!(!own.stderr.contains("git obey"), "{number}: {own:?}");
    }
    // The control for programs: a helper of the user's own.
    obeyed.clone(&WAYS[2], "own");
    assert!(obeyed.has_run());
    // Settings that are a link into the directory.
    std::fs::remove_dir_all(obeyed.path("work")).unwrap();
    for name in ["mark", ".gitconfig"] {
        std::fs::remove_file(obeyed.path(name)).unwrap();
    }
    symlink(obeyed.path("project/gitconfig"), obeyed.path(".gitconfig")).unwrap();
    let linked = obeyed.rig.clone();
    assert!(linked.stderr.contains("lies in the workspace") && !obeyed.has_run(), "{linked:?}");
}

#[test]
fn git_is_not_run_from_a_directory_that_a_sandbox_or_another_user_writes() {
    let test = "git_is_not_run_from_a_directory_that_a_sandbox_or_another_user_writes";
    let Some(obeyed) = GitSettingsWorld::start(test) else { return };
    let _sessions = SessionCleanup(&obeyed.rig.world);
    create(&obeyed.rig.world, &["--workspace", "project"]);
    let mode = |place: &str, mode| {
        std::fs::set_permissions(obeyed.path(place), PermissionsExt::from_mode(mode)).unwrap();
    };
    let clone = |place: &str| {
        let _ = std::fs::remove_dir_all(obeyed.path("work"));
        let mut command = obeyed.rig.world.command(&[
            "git",
            "clone",
            &obeyed.rig.url,
            "work",
            "--allow-network",
            "127.0.0.0/8",
        ]);
        let search_path = format!("{}:{}", obeyed.path(place).display(), std::env::var("PATH").unwrap());
        ProgramOutput::from(command.env("PATH", search_path).output().unwrap()).succeeded().code
    };
    clone("project/bin");
    assert!(!obeyed.has_run(), "a setting in a workspace was used");
    mode("own/bin", 0o777);
    clone("own/bin");
    assert!(!obeyed.has_run(), "a setting that all users can write was used");
    // The control.
    mode("own/bin", 0o755);
    clone("own/bin");
    assert!(obeyed.has_run());
}

#[test]
fn git_settings_that_another_user_can_write_are_not_used() {
    let Some(obeyed) = GitSettingsWorld::start("git_settings_that_another_user_can_write_are_not_used")
    else {
        return;
    };
    let mode = |mode| {
        std::fs::set_permissions(obeyed.path("own/gitconfig"), PermissionsExt::from_mode(mode)).unwrap();
    };
    mode(0o666);
    let refused = obeyed.clone(&WAYS[0], "own");
    assert!(refused.code == 125 && refused.stderr.contains("other users can write"), "{refused:?}");
    assert!(!obeyed.has_run());
    mode(0o644);
    obeyed.clone(&WAYS[0], "own");
    assert!(obeyed.has_run(), "the control");
}
