//! The machine of generated programs: its CPUs, and the sockets that they look up.

use std::net::SocketAddr;

use sys::Errno;
use sys::inet::{InetOption, InetSocket};
use sys::network::OwnNamespace;
use vm::System;
use vm::network::{NetDevice, NetSocket, SocketState};

use crate::helpers::{own_system, run_ip};

/// Ends of the sockets: protocol TCP or not, own address, that of the other end.
const SOCKETS: &[(bool, &str, Option<&str>)] = &[
    (true, "127.0.0.1:80", None),
    (true, "[::1]:81", None),
    (true, "0.0.0.0:83", None),
    (false, "127.0.0.1:80", None),
    (false, "[::]:82", None),
    (false, "127.0.0.1:84", Some("127.0.0.1:85")),
];

/// Run context of programs.
#[derive(Debug)]
pub struct Machine {
    pub(super) system: System,
    /// Possible CPUs, on which programs run in turn.
    pub(super) cpus: u32,
    /// The sockets, which are open as long as the machine is there.
    _open: Vec<InetSocket>,
}

impl Machine {
    /// A machine with four CPUs, whose sockets are described only.
    pub fn model() -> Machine {
        let mut system = System::DEFAULT;
        for number in 0..SOCKETS.len() {
            system.network.sockets.add(description(number));
        }
        Machine {
            system,
            cpus: 4,
            _open: Vec::new(),
        }
    }

    /// The machine of the running kernel. The calling thread moves to a network namespace of
    /// its own with real sockets; it cannot go back.
    ///
    /// # Errors
    /// The kernel's.
    pub fn enter() -> Result<Machine, Errno> {
        let cpus = sys::bpf::possible_cpus() as u32;
        let _namespace = OwnNamespace::enter()?;
        run_ip(None, "link set lo up")?;
        let mut system = own_system();
        system.network.add_device(NetDevice::LOOPBACK);
        let mut open = Vec::new();
        for number in 0..SOCKETS.len() {
            let mut description = description(number);
            let socket = opened(number, &description)?;
            description.cookie = socket.cookie()?;
            system.network.sockets.add(description);
            open.push(socket);
        }
        Ok(Machine {
            system,
            cpus,
            _open: open,
        })
    }
}

impl Machine {
    /// The CPU of a run.
    pub(super) fn cpu(&self, run: u64) -> u32 {
        (run + 1) as u32 % self.cpus
    }
}

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn description(number: usize) -> NetSocket {
    let (is_tcp, local, remote) = SOCKETS[number];
    let mut socket = match is_tcp {
        true => NetSocket::listener(address(local)),
        false => NetSocket::udp(address(local)),
    };
    if let Some(remote) = remote {
        socket.remote = address(remote);
        socket.state = SocketState::Established;
    }
    socket.mark = 100 + number as u32;
    socket.priority = number as u32 % 6;
    socket
}

fn opened(number: usize, description: &NetSocket) -> Result<InetSocket, Errno> {
    let (is_tcp, _, remote) = SOCKETS[number];
    let socket = InetSocket::new(description.is_ipv6(), is_tcp)?;
    socket.set(InetOption::Mark, description.mark)?;
    socket.set(InetOption::Priority, description.priority)?;
    socket.bind(description.local)?;
    match remote {
        Some(_) => socket.connect(description.remote)?,
        None if is_tcp => socket.listen()?,
        None => {}
    }
    Ok(socket)
}
