//! Space that programs reserve for files (`fallocate`): the reservation works, and counts against the disk quota like written
//! data.

use crate::BELLJAR;
use belljar_testkit::world::World;

/// Reserves space in the ways that tools use, and prints each result.
const RESERVE: &str = r"
import ctypes, errno, os, subprocess, threading
libc = ctypes.CDLL(None, use_errno=True)
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
def fallocate(name, mode, offset, length):
    file = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
    failed = libc.fallocate(file, mode, offset, length)
    return errno.errorcode[ctypes.get_errno()] if failed else (os.fstat(file).st_size, os.fstat(file).st_blocks * 512 >= length)
print(fallocate('whole', 0, 0, 1 << 20), fallocate('kept', 1, 0, 1 << 20), fallocate('behind', 0, 1 << 20, 1 << 20))
print(fallocate('whole', 0, 0, 1 << 50), fallocate('whole', 0, -1, 1), fallocate('whole', 0, 0, 0), fallocate('whole', 16, 0, 1))
os.posix_fallocate(os.open('posix', os.O_RDWR | os.O_CREAT), 0, 3 << 20)
subprocess.run(['fallocate', '-l', '2M', 'tool'], check=True)
print(os.stat('posix').st_size, os.stat('tool').st_size)
threads = [threading.Thread(target=fallocate, args=('many-%d' % number, 0, 0, 1 << 20)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(sum(os.stat('many-%d' % number).st_size for number in range(8)) >> 20)
";

#[test]
fn tools_that_preallocate_get_space_in_every_workspace() {
    World::as_everyone(BELLJAR, |world| {
        world.write("given/reserve.py", RESERVE);
        for way in ["--workspace", "--workspace-copy"] {
            let ran = world.run(&["exec", way, "given", "--", "python3", "reserve.py"]).succeeded();
            let expected = "(1048576, True) (0, True) (2097152, True)\nENOSPC EINVAL EINVAL ENOTSUP\n3145728 2097152\n8\n";
            assert_eq!(ran.stdout, expected, "{way}: {}", ran.stderr);
        }
    });
}

#[test]
fn sandbox_that_preallocates_more_than_its_disk_limit_is_killed() {
    let world = World::new(BELLJAR);
    world.write("given/file", "");
    let reserve = |disk: &str, then: &str| {
        let script = format!("fallocate -l 96M large && {then} && echo done");
        world.run(&["exec", "--workspace-copy", "given", "--disk", disk, "--", "sh", "-c", &script])
    };
    // Disk usage is checked at intervals: up to 5 s while other tests give as much of the disk back as it takes.
    let ended = reserve("8m", "sleep 60");
    assert!(ended.code == 137 && ended.stderr.contains("exceeded its disk quota"), "{ended:?}");
    // The control.
    assert_eq!(reserve("1g", "sleep 4").succeeded().stdout, "done\n");
}
