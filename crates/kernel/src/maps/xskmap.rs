//! `xskmap`: AF_XDP sockets by index, to redirect to (`net/xdp/xskmap.c` of Linux).
//!
//! Programs look up a socket as `struct bpf_xdp_sock`, whose only field is the number of its
//! queue. bpf(2) puts sockets in by descriptor, bound or not, and reads none.

use std::sync::Arc;

use spec::{Errno, Result};
use vm::{CellSlice, Cells, MapOperations};

use super::flags::{EXIST, NOEXIST};
use super::resources::Resources;
use super::slots::{self, Slots};
use super::socket::{self, Socket, SocketKind};
use super::{Definition, RunGuard, SyscallOperations};

/// Bytes of `struct bpf_xdp_sock`.
const VIEW: usize = 4;

/// Sockets by index.
#[derive(Debug)]
pub(super) struct Xskmap(Slots<Entry>);

/// A socket, and what programs see of it.
#[derive(Debug)]
struct Entry {
    socket: Arc<Socket>,
    /// A `struct bpf_xdp_sock`.
    view: Arc<Cells>,
}

impl Entry {
    /// EOPNOTSUPP for other sockets than those of AF_XDP.
    fn new(socket: Arc<Socket>) -> Result<Entry> {
        let queue = match socket.kind {
            SocketKind::Xdp(queue) => queue,
            SocketKind::TcpOpen
            | SocketKind::TcpClosed
            | SocketKind::Udp
            | SocketKind::Unix
            | SocketKind::UnixClosed
            | SocketKind::Other => return Err(Errno::EOPNOTSUPP),
        };
        let cells = Cells::zeroed(1).map_err(|_| Errno::ENOMEM)?;
        CellSlice::new(cells.as_slice(), VIEW).write(0, &u32::from(queue).to_le_bytes());
        Ok(Entry {
            socket,
            view: Arc::new(cells),
        })
    }
}

impl Xskmap {
    pub(super) fn new(map: &Definition) -> Result<Xskmap> {
        Ok(Xskmap(Slots::new(map.params.max_entries)?))
    }
}

impl MapOperations for Xskmap {
    fn lookup<'g>(&'g self, guard: &'g RunGuard, _: u32, key: &[u8]) -> Option<CellSlice<'g>> {
        let entry = self.0.get(self.0.index(key)?)?;
        Some(CellSlice::new(guard.keep(entry.view.clone()), VIEW))
    }

    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let index = self.0.index(key).ok_or(Errno::EINVAL)?;
        self.0.set(index, None);
        Ok(())
    }

    fn socket(&self, key: &[u8]) -> Option<u64> {
        Some(self.0.get(self.0.index(key)?)?.socket.cookie)
    }
}

impl SyscallOperations for Xskmap {
    fn copy(&self, _: &[u8], _: &mut [u8]) -> Result {
        Err(Errno::EOPNOTSUPP)
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let index = self.0.index_to_store(key, flags, EXIST)?;
        let entry = Entry::new(socket::find(slots::number(value)?, resources)?)?;
        match self.0.get(index) {
            Some(old) if old.socket.cookie == entry.socket.cookie => return Ok(()),
            Some(_) if flags == NOEXIST => return Err(Errno::EEXIST),
            None if flags == EXIST => return Err(Errno::ENOENT),
            _ => {}
        }
        self.0.set(index, Some(Arc::new(entry)));
        Ok(())
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.0.next_key(key, next)
    }
}
