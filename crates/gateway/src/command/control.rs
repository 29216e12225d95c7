//! The control socket of a running `beebox-gateway attach`: an abstract Unix socket in the network
//! namespace of the interface, named by the interface's index, which ends with the process.
//!
//! The server greets with a byte, so that a client whose server is stopped gives up before it has
//! sent anything that the server would execute later. A request is a byte, and for new rules the
//! length of the compiled set in 8 bytes, little-endian, and the set; the answer is a byte, 0 if
//! the request was carried out, and text.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use gateway::{RuleSet, Table, read_state, write_state};

use super::input::Interface;
use command::answer::Failure;

/// Most bytes of a compiled set.
const MOST: u64 = 512 << 20;
/// Time in which the server greets.
const GREETING_TIME: Duration = Duration::from_millis(1500);
/// Time for each part of a message.
const PATIENCE: Duration = Duration::from_secs(5);

const GREETING: u8 = b'B';

const DONE: u8 = 0;
const REFUSED: u8 = 1;

const REPLACE: u8 = 0;
const DETACH: u8 = 1;

/// A request to a running `attach`.
pub(super) enum Request {
    /// Other rules.
    Replace(RuleSet, Table),
    /// To end.
    Detach,
}

fn address(interface: &Interface) -> Result<SocketAddr, Failure> {
    let name = format!("beebox/gateway/{}", interface.index);
    SocketAddr::from_abstract_name(name).map_err(|error| fault(interface, error))
}

fn fault(interface: &Interface, error: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("control socket of {interface}: {error}"))
}

/// The end of `attach`.
pub(super) struct Control {
    listener: UnixListener,
}

impl Control {
    pub(super) fn listen(interface: &Interface) -> Result<Control, Failure> {
        let listener = UnixListener::bind_addr(&address(interface)?).map_err(|error| {
            if error.kind() != ErrorKind::AddrInUse {
                return fault(interface, error);
            }
            let text = format_args!("another `beebox-gateway attach` filters {interface}");
            Failure::new(text).hint(format_args!(
                "`beebox-gateway update {name} RULES`, or first `beebox-gateway detach {name}`",
                name = interface.name
            ))
        })?;
        let set = listener.set_nonblocking(true);
        set.map_err(|error| fault(interface, error))?;
        Ok(Control { listener })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Takes a request and answers it with what `execute` says. Requests of other users are
    /// refused; those that end early are forgotten.
    pub(super) fn serve(&self, execute: &mut dyn FnMut(Request) -> Result<String, Failure>) {
        let Ok((mut stream, _)) = self.listener.accept() else {
            return;
        };
        let is_permitted = sys::socket::peer(stream.as_fd())
            .is_ok_and(|peer| peer.user == 0 || peer.user == sys::process::effective_user());
        let (kind, text) = match is_permitted {
            false => (REFUSED, "another user attached the gateway".to_owned()),
            true => match receive(&mut stream) {
                Err(_) => return,
                Ok(Err(text)) => (REFUSED, text),
                Ok(Ok(request)) => match execute(request) {
                    Ok(text) => (DONE, text),
                    Err(failure) => (REFUSED, failure.what().to_owned()),
                },
            },
        };
        // Who does not wait for the answer does not get it.
        let _ = stream.write_all(&[kind]);
        let _ = stream.write_all(text.as_bytes());
    }
}

/// Reads a request; the inner error is about what it holds.
fn receive(stream: &mut UnixStream) -> std::io::Result<Result<Request, String>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(&[GREETING])?;
    let mut kind = [0];
    stream.read_exact(&mut kind)?;
    if kind == [DETACH] {
        return Ok(Ok(Request::Detach));
    }
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if kind != [REPLACE] || length > MOST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    let read = read_state(&bytes).map(|(set, table)| Request::Replace(set, table));
    Ok(read.map_err(|error| error.to_string()))
}

/// Has the running `attach` of an interface replace its rules; returns what it says.
pub(super) fn replace(
    interface: &Interface,
    set: &RuleSet,
    table: &Table,
) -> Result<String, Failure> {
    let name = &interface.name;
    let stream = connect(interface)?.ok_or_else(|| {
        let text = format_args!("no `beebox-gateway attach` filters {interface}");
        Failure::new(text).hint(format_args!(
            "beebox-gateway attach {name} RULES, in the network namespace of the interface"
        ))
    })?;
    let bytes = write_state(set, table);
    let length = (bytes.len() as u64).to_le_bytes();
    exchange(interface, stream, &[&[REPLACE], &length, &bytes])
}

/// Has the running `attach` of an interface end; false if there is none.
pub(super) fn detach(interface: &Interface) -> Result<bool, Failure> {
    let Some(stream) = connect(interface)? else {
        return Ok(false);
    };
    exchange(interface, stream, &[&[DETACH]]).map(|_| true)
}

/// Connects to the running `attach` of an interface, and waits until it greets; `None` if there is
/// none.
fn connect(interface: &Interface) -> Result<Option<UnixStream>, Failure> {
    let mut stream = match UnixStream::connect_addr(&address(interface)?) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(None),
        stream => stream.map_err(|error| fault(interface, error))?,
    };
    let process = sys::socket::peer(stream.as_fd()).map_or(0, |peer| peer.process);
    let mut greeting = [0];
    let mut greet = || {
        stream.set_read_timeout(Some(GREETING_TIME))?;
        stream.read_exact(&mut greeting)?;
        stream.set_read_timeout(None)
    };
    match greet() {
        Ok(()) if greeting == [GREETING] => Ok(Some(stream)),
        // The text behind the kind says why.
        Ok(()) => {
            let mut text = String::new();
            let _ = stream.read_to_string(&mut text);
            Err(Failure::new(format_args!("refused at {interface}: {text}")))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            let text = format_args!(
                "the process {process} that filters {interface} does not answer: is it stopped?"
            );
            Err(Failure::new(text).hint(format_args!(
                "kill -CONT {process}; its rules stay in force meanwhile"
            )))
        }
        Err(error) => Err(fault(interface, error)),
    }
}

/// Sends a request; returns the text of its answer.
fn exchange(
    interface: &Interface,
    mut stream: UnixStream,
    request: &[&[u8]],
) -> Result<String, Failure> {
    let mut exchange = || {
        // The other end may answer before it has read everything.
        let sent = request.iter().try_for_each(|part| stream.write_all(part));
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        match answer.is_empty() {
            true => sent.and(read).map(|_| answer),
            false => Ok(answer),
        }
    };
    let answer = exchange().map_err(|error| fault(interface, error))?;
    let text = String::from_utf8_lossy(answer.get(1..).unwrap_or_default()).into_owned();
    match answer.first() {
        Some(&DONE) => Ok(text),
        Some(_) => Err(Failure::new(format_args!("refused at {interface}: {text}"))),
        None => Err(fault(interface, "no answer")),
    }
}
