//! NT6: the hatch to the web belongs to the host. No program inside can replace its socket, or create a file beside it.

use crate::case::{Case, HERE, Script, args, local, local_length};
use crate::scene::PreparedHost;
use crate::way::{AttemptPlace, StartMethod};
use libc::{AF_UNIX, EACCES, EPERM, EROFS, O_CREAT, O_WRONLY, SOCK_STREAM};

/// Errnos that refuse a change.
const CLOSED: &[i32] = &[EACCES, EPERM, EROFS];

const SOCKET: &str = "/web-sock/web.sock";

pub(crate) fn cases(_: &PreparedHost<'_>, place: &AttemptPlace) -> Vec<Case> {
    let (socket, beside) = (place.path(SOCKET), place.path("/web-sock/own.sock"));
    let unlinked = if socket == SOCKET { socket.clone() } else { place.path("/web-sock/other.sock") };
    let mut listen = Script::one("socket", args![AF_UNIX, SOCK_STREAM, 0]);
    let listener = listen.first();
    listen.call("bind", args![listener, local(&beside), local_length(&beside)]);
    let file = place.path("/web-sock/file");
    // Outside, each case has a file of its own to remove.
    let cases = [
        Case::denied("NT6", "a listener beside the hatch", listen),
        Case::call("NT6", "a file beside the hatch", "openat", args![HERE, &file, O_CREAT | O_WRONLY, 0o600]),
        Case::call(
            "NT6",
            "the hatch under another name",
            "renameat",
            args![HERE, &socket, HERE, place.path("/web-sock/moved")],
        ),
        Case::call("NT6", "the hatch", "unlinkat", args![HERE, &unlinked, 0]),
    ];
    cases.map(|case| case.fails(CLOSED).only(&[StartMethod::Web])).into()
}
