//! `sockhash`: model sockets by key, to redirect to.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, PoisonError, RwLock};

use spec::{Errno, Result};
use vm::MapOperations;
use vm::network::NetSocket;

use super::flags::{EXIST, NOEXIST};
use super::resources::Resources;
use super::socket::{self, Socket};
use super::{Definition, SyscallOperations};

/// Sockets by key.
#[derive(Debug)]
pub(super) struct Sockhash {
    most: u32,
    sockets: RwLock<BTreeMap<Box<[u8]>, Arc<Socket>>>,
}

impl Sockhash {
    pub(super) fn new(map: &Definition) -> Sockhash {
        Sockhash {
            most: map.params.max_entries,
            sockets: RwLock::default(),
        }
    }

    fn find(&self, key: &[u8]) -> Option<Arc<Socket>> {
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        sockets.get(key).cloned()
    }

    /// Puts a socket at a key, as the flags of an update allow.
    fn put(&self, key: &[u8], socket: Arc<Socket>, flags: u64) -> Result {
        Errno::EINVAL.when(flags > EXIST)?;
        let mut sockets = self.sockets.write().unwrap_or_else(PoisonError::into_inner);
        match sockets.contains_key(key) {
            true if flags == NOEXIST => return Err(Errno::EEXIST),
            false if flags == EXIST => return Err(Errno::ENOENT),
            false if sockets.len() as u64 >= self.most.into() => return Err(Errno::E2BIG),
            _ => {}
        }
        sockets.insert(key.into(), socket);
        Ok(())
    }
}

impl MapOperations for Sockhash {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let mut sockets = self.sockets.write().unwrap_or_else(PoisonError::into_inner);
        sockets.remove(key).map(drop).ok_or(Errno::ENOENT)
    }

    fn update_socket(&self, key: &[u8], socket: &NetSocket, flags: u64) -> Result {
        self.put(key, socket::given_by_program(socket)?, flags)
    }

    fn socket(&self, key: &[u8]) -> Option<u64> {
        Some(self.find(key)?.cookie)
    }
}

impl SyscallOperations for Sockhash {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        socket::read_cookie(out, || self.find(key))
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let socket = socket::find_redirectable(value, resources)?;
        self.put(key, socket, flags)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        let sockets = self.sockets.read().unwrap_or_else(PoisonError::into_inner);
        let from = match key.filter(|key| sockets.contains_key(*key)) {
            Some(key) => Excluded(key),
            None => Unbounded,
        };
        let mut following = sockets.range::<[u8], _>((from, Unbounded));
        let (following, _) = following.next().ok_or(Errno::ENOENT)?;
        next.copy_from_slice(following);
        Ok(())
    }
}
