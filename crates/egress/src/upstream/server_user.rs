//! `user`, beside a `url`: user whose server on this machine may get a credential without TLS.

use super::place::Upstream;
use belljar_contract::yaml::{Members, text_or_number};
use belljar_trusted::tcp_server::{EXPECTED_USER, ServerUser};

/// Reads `user`, if there is one.
pub fn read_server_user(members: &mut Members<'_, '_>) -> Option<ServerUser> {
    members.optional("user", |node, log| {
        text_or_number(node, log, EXPECTED_USER, |text| ServerUser::parse(text).ok())
    })
}

/// Reads `user`, if there is one, for an upstream that was read before.
pub fn read_user(members: &mut Members<'_, '_>, upstream: Option<Upstream>) -> Option<Upstream> {
    let place = members.node("user").map(|node| (node.position, node.path.clone()));
    let user = read_server_user(members);
    let (Some(user), Some((position, path))) = (user, place) else { return upstream };
    // An error in the URL is reported elsewhere.
    let served = upstream?.served_by(user);
    if served.is_none() {
        members.log.note(position, &path, "`user` for a url that isn't plain http", "it beside http://");
    }
    served
}
