//! RS8: memory that the kernel charges to no control group, by socket options and huge pages; and page cache state that
//! depends on other programs.

use crate::belljar::belljar;
use crate::case::{BAD, Case, HERE, InsideExpectation, OutsideExpectation, Script, args, numbers, room};
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::{AttemptPlace, PROBE};
use belljar_promises::attempt::{Argument, AttemptResult};
use belljar_testkit::world::{ProgramOutput, World};
use libc::{
    AF_INET, AF_INET6, EBADF, EFAULT, EINVAL, ENOENT, ENOMEM, ENOPROTOOPT, ENOSYS, EOPNOTSUPP, EPERM,
    IPC_CREAT, IPC_PRIVATE, IPPROTO_IP, IPPROTO_IPV6, IPPROTO_TCP, MAP_ANONYMOUS, MAP_HUGETLB, MAP_PRIVATE,
    MAP_SHARED, O_CREAT, O_RDONLY, O_RDWR, PROT_READ, SHM_HUGETLB, SO_RCVBUF, SOCK_DGRAM, SOCK_STREAM,
    SOL_SOCKET,
};
use std::path::Path;

const PAGE: u64 = 4096;

/// Time to keep an allowed number, in seconds: PID 1 checks at least twice in it.
const SHORT_STAY: &str = "3";

/// Time to keep a number that is too large, in seconds. Memory that other programs free meanwhile hides growth from PID 1, which
/// checks every 30 seconds in any case.
const LONG_STAY: &str = "45";

/// The kinds that PID 1 counts: name, a number that is tolerated, and a number that ends the sandbox.
const COUNTED: [(&str, &str, &str); 8] = [
    ("locks", "10000", "140000"),
    ("flocks", "10000", "50000"),
    ("netlink", "200", "1800"),
    // They hold no data: only their number counts, so that counting them never takes long.
    ("quiet-netlink", "700", "3000"),
    ("bound", "3000", "8000"),
    ("unbound", "600", "2500"),
    ("orphans", "1000", "7000"),
    ("listings", "20", "500"),
];

#[test]
fn excess_uncharged_kernel_memory_ends_the_sandbox() {
    let tally = Tally::new("uncharged");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        for (kind, few, many) in COUNTED {
            let place = format!("{:?}", world.user());
            tally.count("RS8", &format!("RS8 {kind}"), &place, judge(&scene, kind, few, many));
        }
    });
    tally.close();
}

fn judge(scene: &PreparedHost<'_>, kind: &str, few: &str, many: &str) -> Verdict {
    let probe = scene.path("lent/belljar-probe");
    let folder = scene.path("outside/tmp");
    let outside = scene
        .world
        .command_of(Path::new(&probe), &["take", kind, many, &folder, SHORT_STAY])
        .output()
        .unwrap();
    if String::from_utf8_lossy(&outside.stdout).trim() != format!("took {many}") {
        return Verdict::Invalid(format!("it fails where nothing forbids it: {outside:?}"));
    }
    let (lent, copied) = (format!("{}:/lent", scene.path("lent")), scene.path("copied-for-lists"));
    std::fs::create_dir_all(&copied).unwrap();
    let options = ["--ro", &lent, "--discard", "--workspace-copy", &copied];
    let place = if kind == "listings" { "/workspace" } else { "/tmp" };
    let take = |count: &str, stay: &str| {
        let mut command = scene.making(&["exec"], &options, &[PROBE, "take", kind, count, place, stay]);
        ProgramOutput::from(command.output().unwrap())
    };
    let (modest, greedy) = (take(few, SHORT_STAY), take(many, LONG_STAY));
    match (modest.code, greedy.code) {
        (0, 137) if modest.stdout.trim() == format!("took {few}") => Verdict::Held,
        (0, 0) => Verdict::Escaped(format!("{greedy:?}")),
        (0, _) => Verdict::Invalid(format!("it fails otherwise than it should: {greedy:?}")),
        _ => Verdict::Blocked(format!("{modest:?}")),
    }
}

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = socket_options();
    cases.push(buffer_size());
    cases.extend(huge_pages());
    cases.extend(page_cache());
    cases.push(dropped(scene, place));
    cases.extend(access_lists(scene, place));
    cases.push(
        Case::denied("RS8", "the locks of all programs", {
            let mut script = Script::default();
            let path = place.path(&format!("/tmp/{}-locked", scene.mark));
            let locked = script.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
            script.call("flock", args![locked, libc::LOCK_SH]);
            let file = script.call("openat", args![HERE, "/proc/locks", O_RDONLY, 0]);
            script.call("read", args![file, room(1), 1]);
            script
        })
        .inside(InsideExpectation::Learns(|answer| answer.bytes.is_empty()))
        .outside(OutsideExpectation::Learns(|answer| !answer.bytes.is_empty())),
    );
    cases
}

/// Returns cases with access control lists of files, which the kernel keeps in memory.
fn access_lists(scene: &PreparedHost<'_>, place: &AttemptPlace) -> [Case; 4] {
    // A list that gives the owner all rights, and others none.
    let list = || {
        let entry = |tag: u32, rights: u32| [tag | rights << 16, u32::MAX];
        numbers(&[&[2], &entry(1, 7)[..], &entry(4, 0), &entry(0x20, 0)].concat())
    };
    const LENGTH: i32 = 28;
    const ACCESS: &str = "system.posix_acl_access";
    let path = place.path(&format!("/tmp/{}-listed", scene.mark));
    let case = |what: &str,
                prepare: &dyn Fn(&mut Script) -> Option<crate::case::Handle>,
                name: &str,
                attribute: &str| {
        let mut script = Script::default();
        let file = prepare(&mut script);
        script.prepared();
        match file {
            Some(file) => script.call(name, args![file, attribute, list(), LENGTH, 0]),
            None => script.call(name, args![&path, attribute, list(), LENGTH, 0]),
        };
        Case::denied("RS8", what, script).fails(&[EOPNOTSUPP])
    };
    let made = |script: &mut Script| Some(script.call("openat", args![HERE, &path, O_CREAT | O_RDWR, 0o600]));
    let named = |script: &mut Script| {
        made(script);
        None
    };
    let folder = place.path(&format!("/tmp/{}-listed-folder", scene.mark));
    let mut inherited = Script::default();
    inherited.call_or("mkdir", args![&folder, 0o700], &[libc::EEXIST]);
    inherited.prepared();
    inherited.call("setxattr", args![&folder, "system.posix_acl_default", list(), LENGTH, 0]);
    [
        case("an access control list", &named, "setxattr", ACCESS),
        case("an access control list, of what a link leads to", &named, "lsetxattr", ACCESS),
        case("an access control list, by descriptor", &made, "fsetxattr", ACCESS),
        Case::denied("RS8", "an access control list for new files", inherited).fails(&[EOPNOTSUPP]),
    ]
}

/// A socket option for a case: name, family and type of the socket, level and number of the option, value.
type SocketOptionCase = (&'static str, (i32, i32), (i32, i32), Argument);

/// Returns options for which the kernel keeps memory, fills a queue, or uses a table that all programs of the machine share.
fn socket_options() -> Vec<Case> {
    let number = || numbers(&[0, 0]);
    let options: [SocketOptionCase; 20] = [
        ("IPV6_FLOWLABEL_MGR", (AF_INET6, SOCK_DGRAM), (IPPROTO_IPV6, 32), BAD.into()),
        ("IPV6_JOIN_GROUP", (AF_INET6, SOCK_DGRAM), (IPPROTO_IPV6, 20), BAD.into()),
        ("IPV6_JOIN_ANYCAST", (AF_INET6, SOCK_DGRAM), (IPPROTO_IPV6, 27), BAD.into()),
        ("MCAST_JOIN_GROUP on IPv6", (AF_INET6, SOCK_DGRAM), (IPPROTO_IPV6, 42), BAD.into()),
        ("MCAST_MSFILTER on IPv6", (AF_INET6, SOCK_DGRAM), (IPPROTO_IPV6, 48), BAD.into()),
        ("IPV6_DSTOPTS", (AF_INET6, SOCK_DGRAM), (IPPROTO_IPV6, 59), BAD.into()),
        ("IP_OPTIONS", (AF_INET, SOCK_DGRAM), (IPPROTO_IP, 4), BAD.into()),
        ("IP_ADD_MEMBERSHIP", (AF_INET, SOCK_DGRAM), (IPPROTO_IP, 35), BAD.into()),
        ("IP_ADD_SOURCE_MEMBERSHIP", (AF_INET, SOCK_DGRAM), (IPPROTO_IP, 39), BAD.into()),
        ("IP_MSFILTER", (AF_INET, SOCK_DGRAM), (IPPROTO_IP, 41), BAD.into()),
        ("MCAST_JOIN_GROUP", (AF_INET, SOCK_DGRAM), (IPPROTO_IP, 42), BAD.into()),
        ("TCP_MD5SIG", (AF_INET, SOCK_STREAM), (IPPROTO_TCP, 14), BAD.into()),
        ("TCP_MD5SIG_EXT", (AF_INET, SOCK_STREAM), (IPPROTO_TCP, 32), BAD.into()),
        ("TCP_AO_ADD_KEY", (AF_INET, SOCK_STREAM), (IPPROTO_TCP, 38), BAD.into()),
        ("TCP_ULP", (AF_INET, SOCK_STREAM), (IPPROTO_TCP, 31), "none".into()),
        ("SO_TIMESTAMPING", (AF_INET, SOCK_DGRAM), (SOL_SOCKET, 37), number()),
        ("SO_TIMESTAMPING_NEW", (AF_INET, SOCK_DGRAM), (SOL_SOCKET, 65), number()),
        ("SO_ZEROCOPY", (AF_INET, SOCK_STREAM), (SOL_SOCKET, 60), number()),
        ("SO_SNDBUFFORCE", (AF_INET, SOCK_DGRAM), (SOL_SOCKET, 32), number()),
        ("SO_RCVBUFFORCE", (AF_INET, SOCK_DGRAM), (SOL_SOCKET, 33), number()),
    ];
    let case = |(name, (family, kind), (level, option), value): (&str, (i32, i32), (i32, i32), Argument)| {
        let mut script = Script::one("socket", args![family, kind, 0]);
        let socket = script.first();
        script.prepared();
        script.call("setsockopt", args![socket, level, option, value, 136]);
        let reaches = OutsideExpectation::Reaches(&[EFAULT, EINVAL, ENOENT, EPERM]);
        Case::denied("RS8", name, script).fails(&[ENOPROTOOPT]).outside(reaches).needs("that option")
    };
    options.into_iter().map(case).collect()
}

/// Returns a case in which setting a buffer size succeeds without effect.
fn buffer_size() -> Case {
    const TWICE_WHAT_IS_ASKED: u32 = 16_384;
    fn is_changed(answer: &AttemptResult) -> bool {
        let bytes: Vec<u8> =
            answer.bytes.chars().map(|character| character as u8).chain([0; 4]).take(4).collect();
        <[u8; 4]>::try_from(bytes).is_ok_and(|bytes| u32::from_ne_bytes(bytes) == TWICE_WHAT_IS_ASKED)
    }
    let mut script = Script::one("socket", args![AF_INET, SOCK_DGRAM, 0]);
    let socket = script.first();
    script.call("setsockopt", args![socket, SOL_SOCKET, SO_RCVBUF, numbers(&[8_192]), 4]);
    script.call("getsockopt", args![socket, SOL_SOCKET, SO_RCVBUF, room(4), numbers(&[4])]);
    Case::denied("RS8", "the size of a socket's buffer", script)
        .inside(InsideExpectation::Learns(|answer| answer.succeeded() && !is_changed(answer)))
        .outside(OutsideExpectation::Learns(is_changed))
}

/// Returns cases with pages of the machine's huge page pool. The arguments are invalid, so that the control distinguishes the
/// filter from an empty pool.
fn huge_pages() -> [Case; 3] {
    let mapping = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB;
    [
        Case::sentinel("RS8", "mmap", args![0, 0, PROT_READ, mapping, -1, 0], &[EINVAL]).fails(&[ENOMEM]),
        Case::sentinel("RS8", "memfd_create", args!["huge", libc::MFD_HUGETLB], &[ENOSYS]).fails(&[EINVAL]),
        Case::sentinel("RS8", "shmget", args![IPC_PRIVATE, 0, IPC_CREAT | SHM_HUGETLB], &[EINVAL])
            .fails(&[ENOMEM]),
    ]
}

/// Returns calls that reveal whether a part of a file is in the page cache, because another program has read it.
fn page_cache() -> [Case; 3] {
    const RWF_NOWAIT: i32 = 8;
    [
        Case::sentinel("RS8", "preadv2", args![-1, BAD, 1, 0, 0, RWF_NOWAIT], &[EBADF]).fails(&[EOPNOTSUPP]),
        Case::sentinel("RS8", "pwritev2", args![-1, BAD, 1, 0, 0, RWF_NOWAIT], &[EBADF]).fails(&[EOPNOTSUPP]),
        Case::sentinel("RS8", "cachestat", args![-1, BAD, BAD, 0], &[EBADF])
            .fails(&[ENOSYS])
            .needs("that call"),
    ]
}

/// Returns a case in which the advice to drop a file from the page cache has no effect.
fn dropped(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Case {
    fn is_cached(answer: &AttemptResult) -> bool {
        answer.succeeded() && answer.bytes.starts_with('\u{1}')
    }
    let mut script = Script::default();
    let path = place.path(&format!("/workspace/{}-dropped", scene.mark));
    let file = script.call("openat", args![HERE, path, O_CREAT | O_RDWR, 0o600]);
    script.call("pwrite64", args![file, "text", 4, 0]);
    script.call("fsync", args![file]);
    let pages = script.call("mmap", args![0, PAGE, PROT_READ, MAP_SHARED, file, 0]);
    script.call("fadvise64", args![file, 0, 0, libc::POSIX_FADV_DONTNEED]);
    script.call("mincore", args![pages, PAGE, room(1)]);
    Case::denied("RS8", "a file dropped from the cache", script)
        .inside(InsideExpectation::Learns(is_cached))
        .outside(OutsideExpectation::Learns(|answer| answer.succeeded() && !is_cached(answer)))
        .needs("a cache that a file can be dropped from")
}
