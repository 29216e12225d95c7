//! `reuseport_sockarray`: model sockets of groups that share a port, by index.

use std::sync::Arc;
use vm::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use spec::{Errno, Result};
use vm::MapOperations;

use super::flags::EXIST;
use super::resources::Resources;
use super::slots::{self, Slots};
use super::socket::{self, Socket, SocketKind};
use super::{Definition, SyscallOperations};

/// Sockets by index.
#[derive(Debug)]
pub(super) struct ReuseportSockarray(Slots<Socket>);

impl ReuseportSockarray {
    pub(super) fn new(map: &Definition) -> Result<ReuseportSockarray> {
        Ok(ReuseportSockarray(Slots::new(map.params.max_entries)?))
    }
}

impl MapOperations for ReuseportSockarray {
    fn delete(&self, _: u32, key: &[u8]) -> Result {
        let index = self.0.index(key).ok_or(Errno::E2BIG)?;
        let socket = self.0.set(index, None).ok_or(Errno::ENOENT)?;
        socket.is_in_array.store(false, Release);
        Ok(())
    }

    fn socket(&self, key: &[u8]) -> Option<u64> {
        Some(self.0.get(self.0.index(key)?)?.cookie)
    }
}

impl SyscallOperations for ReuseportSockarray {
    fn copy(&self, key: &[u8], out: &mut [u8]) -> Result {
        socket::read_cookie(out, || self.0.get(self.0.index(key)?))
    }

    fn store(&self, key: &[u8], value: &[u8], flags: u64, resources: &dyn Resources) -> Result {
        let index = self.0.index_to_store(key, flags, EXIST)?;
        let descriptor = match value.try_into() {
            Ok(value) => socket::descriptor_of_8(value)?,
            Err(_) => slots::number(value)?,
        };
        let socket = socket::find(descriptor, resources)?;
        slots::check_flags(self.0.get(index).is_some(), flags)?;
        match socket.kind {
            SocketKind::TcpOpen | SocketKind::TcpClosed | SocketKind::Udp => {}
            SocketKind::Unix | SocketKind::UnixClosed | SocketKind::Xdp(_) | SocketKind::Other => {
                return Err(Errno::ENOTSUPP);
            }
        }
        Errno::EINVAL.when(!socket.is_in_group)?;
        // A socket is in one place of one array.
        if (socket
            .is_in_array
            .compare_exchange(false, true, AcqRel, Acquire))
        .is_err()
        {
            return Err(Errno::EBUSY);
        }
        // The slot may have changed since it was checked.
        let put = self.0.put(index, Arc::clone(&socket), flags);
        let gone = match &put {
            Ok(old) => old.as_ref(),
            Err(_) => Some(&socket),
        };
        if let Some(gone) = gone {
            gone.is_in_array.store(false, Release);
        }
        put.map(drop)
    }

    fn next_key(&self, key: Option<&[u8]>, next: &mut [u8]) -> Result {
        self.0.next_key(key, next)
    }
}
