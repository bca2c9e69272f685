//! A sandbox's view of the host: programs and libraries, read-only, and a small `/etc` of its own.

use belljar_confine::plan::{Access, HostSource, Identity, RootEntry};
use belljar_files::host_path::HostPath;
use std::path::Path;

/// Top-level directories that hold programs and libraries; on most systems all but the first are links into it.
const PROGRAMS: [&str; 7] = ["usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32"];

/// Files of the host's `/etc` that programs need: paths of libraries and alternatives, trusted authorities, fonts.
const SETTINGS: [&str; 7] = [
    "etc/alternatives",
    "etc/ld.so.cache",
    "etc/ssl/certs",
    "etc/ssl/openssl.cnf",
    "etc/pki/tls/certs",
    // Where the one before it leads to.
    "etc/pki/ca-trust/extracted",
    "etc/fonts",
];

/// Paths at which systems keep all authorities in one file: Debian, Fedora and their relatives.
const AUTHORITIES: [&str; 2] = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt"];

/// Returns the file with all authorities that this host trusts, if every sandbox sees it at the same path.
pub(crate) fn authorities() -> Option<&'static str> {
    let is_shown = |path: &Path| {
        let shows_it =
            |path: &Path| SETTINGS.iter().any(|shown| path.starts_with(Path::new("/").join(shown)));
        // One that is a link must lead to what is shown, too.
        let real = path.canonicalize().ok().filter(|real| real.is_file());
        shows_it(path) && real.is_some_and(|real| shows_it(&real) || shows(&real))
    };
    AUTHORITIES.into_iter().find(|path| is_shown(Path::new(path)))
}

/// Returns true if every sandbox sees this path of the host, which has no links in it.
pub fn shows(path: &Path) -> bool {
    PROGRAMS.iter().any(|directory| path.starts_with(Path::new("/").join(directory)))
}

/// The view, and the directories that later entries go into.
pub(super) fn of_host(identity: Identity) -> Vec<RootEntry> {
    let mut entries: Vec<RootEntry> = PROGRAMS.into_iter().filter_map(program_directory).collect();
    entries.extend(SETTINGS.into_iter().filter_map(read_only));
    entries.extend(own_settings(identity));
    entries
}

fn program_directory(inside: &str) -> Option<RootEntry> {
    let host = Path::new("/").join(inside);
    match std::fs::read_link(&host) {
        Ok(target) => {
            let target = target.to_str()?.to_owned();
            Some(RootEntry::Symlink { inside: inside.to_owned(), target })
        }
        Err(_) => read_only(inside),
    }
}

fn read_only(inside: &str) -> Option<RootEntry> {
    let source = HostSource::Path(HostPath::resolve(Path::new("/").join(inside)).ok()?);
    Some(RootEntry::Bind { inside: inside.to_owned(), source, access: Access::ReadOnly })
}

fn own_settings(Identity { inside_uid, inside_gid, .. }: Identity) -> Vec<RootEntry> {
    let file = |inside: &str, content: String| RootEntry::File {
        inside: inside.to_owned(),
        content: content.into(),
    };
    let overflow_id = 65_534;
    vec![
        file(
            "etc/passwd",
            format!(
                "root:x:0:0:root:/:/sbin/nologin\n\
                 agent:x:{inside_uid}:{inside_gid}:agent:/home/agent:/bin/sh\n\
                 nobody:x:{overflow_id}:{overflow_id}:nobody:/:/sbin/nologin\n"
            ),
        ),
        file("etc/group", format!("root:x:0:\nagent:x:{inside_gid}:\nnogroup:x:{overflow_id}:\n")),
        file("etc/hosts", "127.0.0.1 localhost belljar\n::1 localhost belljar\n".to_owned()),
        // Names are looked up in files alone: there is no name server, and no resolv.conf that would name one.
        file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".to_owned()),
        file(
            "etc/resolv.conf",
            "# No name server: the network is reachable through hatches only.\n".to_owned(),
        ),
    ]
}
