//! Unix sockets in a directory of the host that a sandbox writes directly: a sandbox reaches its own, and never the host's.

use super::listen_on_host;
use crate::BELLJAR;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use rustix::fs::statfs;
use std::process::Command;

/// Creates sockets in the working directory, and connects to them by every name that they have had.
const OWN: &str = r"
import os, socket
def listen(name, kind=socket.SOCK_STREAM):
    server = socket.socket(socket.AF_UNIX, kind); server.bind(name); server.listen()
    return server
def through(name, server):
    client = socket.socket(socket.AF_UNIX, server.type); client.settimeout(10); client.connect(name)
    accepted, _ = server.accept(); accepted.send(b'x')
    return client.recv(1).decode()
own = listen('own'); messages = listen('messages', socket.SOCK_SEQPACKET)
os.makedirs('below/it', exist_ok=True); below = listen('below/it/own')
os.link('own', 'linked'); os.symlink('own', 'symlinked'); os.rename('messages', 'moved')
print(through('own', own), through(os.path.abspath('own'), own), through('linked', own), through('symlinked', own),
      through('moved', messages), through('below/it/own', below))
own.close()
try: socket.socket(socket.AF_UNIX).connect('own')
except OSError as error: print(type(error).__name__)
for name in ['own', 'linked', 'symlinked', 'moved', 'below/it/own']: os.unlink(name)
";

/// Replaces one of its own sockets by the host's socket `listening`, in every way, and counts the connections to each.
const ATTACKS: &str = r"
import os, socket, threading
own = socket.socket(socket.AF_UNIX); own.bind('own'); own.listen(128)
def accept():
    while True:
        try: own.accept()[0].close()
        except OSError: return
threading.Thread(target=accept, daemon=True).start()
def connect(name):
    client = socket.socket(socket.AF_UNIX); client.settimeout(10)
    try: client.connect(name)
    except OSError: return 0
    finally: client.close()
    return 1
print('own', connect('own'))
# Another name of the host's socket (`alias`, a hard link), and that in place of one's own.
print('alias', connect('alias'))
os.link('own', 'kept'); os.rename('alias', 'own')
print('in its place', connect('own'))
os.symlink('kept', 'flip')
done = threading.Event()
def flip():
    while not done.is_set():
        for name in 'listening', 'kept':
            os.symlink(name, 'next'); os.rename('next', 'flip')
flipper = threading.Thread(target=flip); flipper.start()
came = sum(connect('flip') for _ in range(ROUNDS))
done.set(); flipper.join()
print('some came' if came else 'none came')
own.shutdown(socket.SHUT_RDWR); own.close()
print('after its end', connect('kept'))
for name in ['own', 'kept', 'flip']: os.unlink(name)
";

/// Returns true if the file system has inode numbers that identify a sandbox's own sockets.
fn knows_own_sockets(world: &World, test: &str) -> bool {
    const EXT: i64 = 0xef53;
    let found = statfs(world.path()).unwrap().f_type;
    if found != EXT {
        skip(test, &format!("the temporary directory is on no ext4 (its type is {found:#x})"));
    }
    found == EXT
}

#[test]
fn program_reaches_the_sockets_that_it_made_in_a_direct_workspace() {
    World::as_everyone(BELLJAR, |world| {
        if !knows_own_sockets(world, "program_reaches_the_sockets_that_it_made_in_a_direct_workspace") {
            return;
        }
        world.write("given/own.py", OWN);
        let ran = world.run(&["exec", "--workspace", "given", "--", "python3", "own.py"]).succeeded();
        assert_eq!(ran.stdout, "x x x x x x\nConnectionRefusedError\n", "{}", ran.stderr);
    });
}

#[test]
fn host_socket_is_unreachable_by_any_name_a_sandbox_creates() {
    World::as_everyone(BELLJAR, |world| {
        if !knows_own_sockets(world, "host_socket_is_unreachable_by_any_name_a_sandbox_creates") {
            return;
        }
        let script = |rounds: &str| world.write("given/attacks.py", ATTACKS.replace("ROUNDS", rounds));
        script("300");
        let listener = listen_on_host(&world.path().join("given/listening"));
        let arrived = || std::iter::from_fn(|| listener.accept().ok()).count();
        let given = world.path().join("given");
        let link = || std::fs::hard_link(given.join("listening"), given.join("alias")).unwrap();
        link();
        let ran = world
            .run(&["exec", "--workspace", &given.display().to_string(), "--", "python3", "attacks.py"])
            .succeeded();
        assert_eq!(ran.stdout, "own 1\nalias 0\nin its place 0\nsome came\nafter its end 0\n");
        assert_eq!(arrived(), 0);
        // The control: where nothing forbids it, each of them leads to the host's socket.
        link();
        let script = script("20");
        let outside = Command::new("python3").arg(script).current_dir(&given).output().unwrap();
        let stdout = String::from_utf8(outside.stdout).unwrap();
        assert_eq!(stdout, "own 1\nalias 1\nin its place 1\nsome came\nafter its end 0\n");
        assert!(arrived() >= 2);
    });
}

#[test]
fn sandbox_does_not_reach_the_sockets_of_another_sandbox() {
    let world = World::new(BELLJAR);
    let _sessions = crate::session::SessionCleanup(&world);
    world.write("given/file", "");
    let [one, other] = [0, 1].map(|_| crate::session::create(&world, &["--workspace", "given"]));
    let listening = "import socket, time\nserver = socket.socket(socket.AF_UNIX); server.bind('there'); server.listen()\n\
                     open('ready', 'w').close(); time.sleep(600)";
    let mut server =
        world.command(&["session", "exec", &one, "--", "python3", "-c", listening]).spawn().unwrap();
    belljar_testkit::wait::until(|| world.path().join("given/ready").exists());
    let connect = "import socket\ntry: socket.socket(socket.AF_UNIX).connect('there'); print('through')\n\
                   except OSError: print('refused')";
    let told = |session: &str| {
        world.run(&["session", "exec", session, "--", "python3", "-c", connect]).succeeded().stdout
    };
    assert_eq!(told(&other), "refused\n");
    // The control.
    if knows_own_sockets(&world, "sandbox_does_not_reach_the_sockets_of_another_sandbox, its control") {
        assert_eq!(told(&one), "through\n");
    }
    world.run(&["session", "end", "--discard", &one]).succeeded();
    let _ = server.wait();
}
