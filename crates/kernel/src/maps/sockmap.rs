//! `sockmap`: model sockets by index, to redirect to.

use std::sync::Arc;

use spec::{Errno, Result};
use vm::MapOperations;
use vm::network::NetSocket;

use super::flags::EXIST;
use super::resources::Resources;
use super::slots::Slots;
use super::socket::{self, Socket};
use super::{Definition, SyscallOperations};

/// Sockets by index.
#[derive(Debug)]
pub(super) struct Sockmap(Slots<Socket>);

impl Sockmap {
    pub(super) fn new(map: &Definition) -> Result<Sockmap> {
        Ok(Sockmap(Slots::new(map.params.max_entries)?))
    }

    /// Puts a socket at a key, as the flags of an update allow.
    fn put(&self, key: &[u8], socket: Arc<Socket>, flags: u64) -> Result {
        let index = self.0.index_to_store(key, flags, EXIST)?;
        self.0.put(index, socket, flags).map(drop)
    }
}

impl MapOperations for Sockmap {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let index = self.0.index(key).ok_or(Errno::EINVAL)?;
        self.0.set(index, None).map(drop).ok_or(Errno::EINVAL)
    }

    fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result {
        self.put(key, socket::given_by_program(socket)?, flags)
    }

    fn socket(&self, key: &[u8]) -> Option<u64> {
        Some(self.0.get(self.0.index(key)?)?.cookie)
    }
}

impl SyscallOperations for Sockmap {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        socket::read_cookie(out, || self.0.get(self.0.index(key)?))
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let socket = socket::find_redirectable(value, resources)?;
        self.put(key, socket, flags)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.0.next_key(key, next)
    }
}
