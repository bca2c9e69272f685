//! NT4: Unix sockets of the host, by abstract name and by every path that might lead to them.

use crate::case::{Case, HERE, OutsideExpectation, Script, args, local, local_length, room};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use libc::{
    AF_UNIX, EACCES, ECONNREFUSED, ENOENT, ENXIO, EPERM, EPROTONOSUPPORT, O_WRONLY, SOCK_DGRAM, SOCK_STREAM,
};

/// Errnos for a Unix connection.
const UNREACHABLE: &[i32] = &[ENOENT, ECONNREFUSED, EACCES, EPERM];

pub(crate) fn cases(scene: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let mut cases = Vec::new();
    for name in ["abstract", "X11"] {
        let full = format!("@{name}-{}", scene.mark);
        cases.push(connect(&format!("@{name}"), name, &full));
        let datagrams = format!("{full}-datagrams");
        let witness = format!("{name} datagrams");
        let mut script = Script::one("socket", args![AF_UNIX, SOCK_DGRAM, 0]);
        let socket = script.first();
        let (to, length) = (local(&datagrams), local_length(&datagrams));
        script.call("sendto", args![socket, "x", 1, 0, to, length]);
        cases.push(
            Case::denied("NT4", format!("send to @{name}"), script)
                .fails(&[ECONNREFUSED, EPERM, EPROTONOSUPPORT])
                .seen_by(witness),
        );
    }
    cases.push(
        Case::call("NT4", "a pair of datagrams", "socketpair", args![AF_UNIX, SOCK_DGRAM, 0, room(8)])
            .fails(&[EPROTONOSUPPORT]),
    );
    let service = scene.path("service.sock");
    cases.push(connect("a service of the user's", "service", &service));
    cases.push(connect("the same through /proc/self/root", "service", &format!("/proc/self/root{service}")));
    for (folder, witness, ways) in
        [("/lent", "lent service", StartMethod::ALL), ("/workspace", "workspace service", StartMethod::GIVEN)]
    {
        let path = place.path(&format!("{folder}/listening"));
        for (what, path) in [
            ("by its path", path.clone()),
            ("through /proc/self/root", format!("/proc/self/root{path}")),
            ("through dots", place.path(&format!("/tmp/..{folder}/listening"))),
        ] {
            cases.push(connect(&format!("{folder}/listening {what}"), witness, &path).only(ways));
        }
        cases.push(through_own_link(scene, place, &path, witness).only(ways));
        cases.push(from_its_folder(place, folder, witness).only(ways));
        cases.push(
            Case::call("NT4", &format!("{folder}/listening"), "openat", args![HERE, &path, O_WRONLY, 0])
                .fails(&[ENXIO, ENOENT, EACCES])
                .outside(OutsideExpectation::Reaches(&[ENXIO]))
                .only(ways),
        );
    }
    cases
}

fn connect(what: &str, witness: &str, path: &str) -> Case {
    let mut script = Script::one("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    let socket = script.first();
    script.call("connect", args![socket, local(path), local_length(path)]);
    Case::denied("NT4", format!("connect to {what}"), script).fails(UNREACHABLE).seen_by(witness)
}

fn through_own_link(scene: &PreparedHost<'_>, place: &AttemptPlace, path: &str, witness: &str) -> Case {
    let link = place.path(&format!("/tmp/{}-{}", scene.mark, witness.replace(' ', "-")));
    let mut script = Script::one("symlink", args![path, &link]);
    script.prepared();
    let socket = script.call("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    script.call("connect", args![socket, local(&link), local_length(&link)]);
    Case::denied("NT4", format!("{witness} through a link"), script).fails(UNREACHABLE).seen_by(witness)
}

/// Returns a case that connects by the bare name, from the socket's directory.
fn from_its_folder(place: &AttemptPlace, folder: &str, witness: &str) -> Case {
    let mut script = Script::one("chdir", args![place.path(folder)]);
    script.prepared();
    let socket = script.call("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    let name = "listening";
    script.call("connect", args![socket, local(name), local_length(name)]);
    Case::denied("NT4", format!("{witness} from its folder"), script).fails(UNREACHABLE).seen_by(witness)
}
