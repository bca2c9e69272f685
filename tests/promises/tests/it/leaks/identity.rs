//! LK2: data that distinguishes one host from another.

use super::{dump_inside, dump_outside};
use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use belljar_testkit::world::World;
use std::fs::read_to_string;
use std::path::Path;

/// Files of a host with such data.
const SOURCES: [&str; 8] = [
    "/proc/cmdline",
    "/proc/sys/kernel",
    "/proc/self",
    "/proc/net",
    "/etc/machine-id",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/sys/devices/virtual/dmi",
];

#[test]
fn sandbox_cannot_identify_its_host() {
    let tally = Tally::new("identity");
    World::as_everyone(belljar(), |world| judge(&PreparedHost::lay(world), &tally));
    tally.close();
}

/// Searches for every mark of the host in every sandbox of a scene.
pub(crate) fn judge(scene: &PreparedHost<'_>, tally: &Tally) {
    let marks = marks(scene);
    let sources: Vec<String> = SOURCES.map(str::to_owned).into_iter().chain(addresses()).collect();
    let outside = dump_outside(scene, &sources);
    for way in scene.ways {
        let inside = dump_inside(scene, *way);
        for (name, mark) in &marks {
            // Links that the test itself has put into the workspace contain its path.
            let mut lines = inside.lines().filter(|line| !line.starts_with("link /workspace/"));
            let line = lines.find(|line| line.contains(mark));
            let verdict = match (line, outside.contains(mark)) {
                (Some(line), _) => Verdict::Escaped(line.chars().take(100).collect()),
                (None, true) => Verdict::Held,
                (None, false) => {
                    Verdict::NotShown("this host doesn't show it to the user that runs this test".to_owned())
                }
            };
            let place = format!("{way:?} {:?}", scene.world.user());
            tally.count("LK2", &format!("LK2 {name}"), &place, verdict);
        }
    }
}

/// Returns the files with the addresses of the host's interfaces.
fn addresses() -> Vec<String> {
    let interfaces = std::fs::read_dir("/sys/class/net").into_iter().flatten().filter_map(Result::ok);
    let files = interfaces.filter_map(|interface| interface.path().join("address").canonicalize().ok());
    files.map(|file| file.display().to_string()).collect()
}

/// Returns the marks of this host: a name for each, and a text that is long enough to be found.
fn marks(scene: &PreparedHost<'_>) -> Vec<(String, String)> {
    const SHORTEST: usize = 6;
    let file = |path: &str| read_to_string(path).unwrap_or_default().trim().to_owned();
    let mut marks = vec![
        (
            "host name".to_owned(),
            format!("uname Linux {} ", rustix::system::uname().nodename().to_string_lossy()),
        ),
        ("boot id".to_owned(), file("/proc/sys/kernel/random/boot_id")),
        ("machine id".to_owned(), file("/etc/machine-id")),
        ("kernel command line".to_owned(), file("/proc/cmdline")),
        ("where the test lies".to_owned(), scene.path("").trim_end_matches('/').to_owned()),
    ];
    for path in addresses() {
        let address = file(&path);
        if !address.starts_with("00:00:00") {
            marks.push((path, address));
        }
    }
    for (name, address) in scene.listeners.tcp().filter(|(name, _)| name.starts_with("outward")) {
        marks.push((format!("{name} address"), address.ip().to_string()));
    }
    // The host's resolvers. Loopback addresses are the same on every host.
    let resolvers = file("/etc/resolv.conf");
    let settings = resolvers.lines().filter_map(|line| line.split_once(char::is_whitespace));
    let settings = settings.filter(|(name, _)| ["nameserver", "search", "domain"].contains(name));
    for word in
        settings.flat_map(|(_, words)| words.split_whitespace()).filter(|word| !word.starts_with("127."))
    {
        marks.push((format!("resolver {word}"), word.to_owned()));
    }
    // Names of human users, not those of system users that every host has.
    let people = file("/etc/passwd");
    for user in people.lines().filter(|line| {
        line.split(':').nth(2).is_some_and(|id| (1000..60_000).contains(&id.parse().unwrap_or(0)))
    }) {
        let name = user.split(':').next().unwrap_or_default();
        marks.push((format!("user {name}"), format!("{name}:x:")));
    }
    for serial in ["product_serial", "product_uuid", "board_serial"] {
        let path = format!("/sys/class/dmi/id/{serial}");
        if Path::new(&path).exists() {
            marks.push((serial.to_owned(), file(&path)));
        }
    }
    marks.retain(|(_, mark)| mark.len() >= SHORTEST);
    marks
}
