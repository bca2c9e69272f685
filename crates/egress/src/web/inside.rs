//! A connection that is looked into: to the client it is the host that it asked for, and each request in it is decided, recorded
//! and passed on by itself.

use super::decision::Way;
use super::greeting::{self, Greeting};
use super::passage::Passage;
use super::tunnel::End;
use crate::client::{Client, Stop};
use crate::within::within;
use belljar_policy::egress::Destination;
use std::io::Cursor;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio_rustls::TlsAcceptor;

/// Answers what comes through a tunnel that the client believes to be open, until it is closed.
pub(super) async fn run<S>(
    client: Client<S>,
    destination: &Destination,
    passage: &mut Passage<'_>,
) -> Result<(), End>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let gate = passage.gate;
    let times = gate.run.limits.times;
    let (stream, mut early) = client.into_parts();
    let (mut from, to) = tokio::io::split(stream);
    let heard = within(times.head, greeting::hear_out(&mut from, &mut early, || {})).await;
    let greeting = heard.map_err(|_| End::Idle)?.map_err(|_| End::Broken)?;
    let stream = tokio::io::join(Cursor::new(early).chain(from), to);
    match greeting {
        Greeting::Tls { name } => {
            let expected = Passage::expected_name(destination);
            let is_other = name.is_some() && expected.is_some() && name.as_deref() != expected;
            passage.tls_name = name;
            if is_other {
                return Err(End::OtherName);
            }
            let authority = gate.run.authority.as_ref().ok_or(End::Broken)?;
            let shown = authority.shows(&destination.host).map_err(|_| End::Broken)?;
            let accepted = within(times.head, TlsAcceptor::from(shown).accept(stream)).await;
            let stream = accepted.map_err(|_| End::Idle)?.map_err(|_| End::NoTrust)?;
            serve(Client::new(stream, times), (destination, true), passage).await;
            Ok(())
        }
        // Some ask also for what isn't secret by a tunnel.
        Greeting::Other => {
            serve(Client::new(stream, times), (destination, false), passage).await;
            Ok(())
        }
        Greeting::Unfinished | Greeting::Broken => Err(End::BrokenTls),
    }
}

/// Answers one request after the other.
async fn serve<S>(
    mut client: Client<S>,
    (destination, is_secure): (&Destination, bool),
    passage: &Passage<'_>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let gate = passage.gate;
    loop {
        let keeps_alive = match client.head().await {
            Ok(head) => {
                let way = Way::Inside { destination, is_secure };
                Passage::begin(gate).pass(&mut client, &head, way).await
            }
            Err(Stop::Gone) => break,
            Err(Stop::Faulty(fault)) => {
                Passage::begin(gate).refuse(&mut client, fault.into(), (false, true)).await
            }
        };
        if !keeps_alive || !client.can_go_on() {
            break;
        }
    }
    client.close().await;
}
