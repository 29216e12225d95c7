//! The control socket of a running `beebox gateway attach`: an abstract Unix socket in the network
//! namespace of the interface, which ends with the process. A request is the length of a compiled
//! set in 8 bytes, little-endian, and the set; the answer is a byte, 0 if the set is in force,
//! and text.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;

use gateway::{RuleSet, Table, read_state, write_state};

use crate::answer::Failure;

/// Most bytes of a compiled set.
const MOST: u64 = 512 << 20;
/// Time for each part of a message.
const PATIENCE: Duration = Duration::from_secs(5);

const DONE: u8 = 0;
const REFUSED: u8 = 1;

fn address(interface: &str) -> Result<SocketAddr, Failure> {
    let name = format!("beebox/gateway/{interface}");
    SocketAddr::from_abstract_name(name).map_err(|error| fault(interface, error))
}

fn fault(interface: &str, error: impl std::fmt::Display) -> Failure {
    Failure::new(format_args!("control socket of {interface}: {error}"))
}

/// The end of `attach`.
pub(super) struct Control {
    listener: UnixListener,
}

impl Control {
    pub(super) fn listen(interface: &str) -> Result<Control, Failure> {
        let listener = UnixListener::bind_addr(&address(interface)?).map_err(|error| {
            if error.kind() != ErrorKind::AddrInUse {
                return fault(interface, error);
            }
            let text = format_args!("another `beebox gateway attach` filters {interface}");
            Failure::new(text).hint("`beebox gateway update` replaces its rules")
        })?;
        let set = listener.set_nonblocking(true);
        set.map_err(|error| fault(interface, error))?;
        Ok(Control { listener })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Takes a request and answers it with what `replace` says. Requests of other users are
    /// refused; those that end early are forgotten.
    pub(super) fn serve(&self, replace: &mut dyn FnMut(RuleSet, Table) -> Result<String, Failure>) {
        let Ok((mut stream, _)) = self.listener.accept() else {
            return;
        };
        let is_permitted = sys::socket::peer_user(stream.as_fd())
            .is_ok_and(|user| user == 0 || user == sys::process::effective_user());
        let (kind, text) = match is_permitted {
            false => (REFUSED, "another user attached the gateway".to_owned()),
            true => match receive(&mut stream) {
                Err(_) => return,
                Ok(bytes) => match read_state(&bytes) {
                    Err(error) => (REFUSED, error.to_string()),
                    Ok((set, table)) => match replace(set, table) {
                        Ok(text) => (DONE, text),
                        Err(failure) => (REFUSED, failure.what().to_owned()),
                    },
                },
            },
        };
        // Who does not wait for the answer does not get it.
        let _ = stream.write_all(&[kind]);
        let _ = stream.write_all(text.as_bytes());
    }
}

fn receive(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut length = [0; 8];
    stream.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MOST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::new();
    stream.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Has the running `attach` of an interface replace its rules; returns what it says.
pub(super) fn replace(interface: &str, set: &RuleSet, table: &Table) -> Result<String, Failure> {
    let stream = UnixStream::connect_addr(&address(interface)?);
    let mut stream = stream.map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => {
            let text = format_args!("no `beebox gateway attach` filters {interface}");
            Failure::new(text).hint(format_args!(
                "beebox gateway attach {interface} RULES, in the network namespace of the interface"
            ))
        }
        _ => fault(interface, error),
    })?;
    let bytes = write_state(set, table);
    let mut exchange = || {
        stream.write_all(&(bytes.len() as u64).to_le_bytes())?;
        // The other end may answer before it has read everything.
        let sent = stream.write_all(&bytes);
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
