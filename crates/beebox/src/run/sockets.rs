//! Sockets of the world in maps of sockets.

use std::sync::Arc;

use ::kernel::maps::{Resources, Socket};
use spec::Errno;
use spec::maps::MapKind;
use vm::network::Sockets;

use super::{LoadedObject, ObjectMap};

/// Sockets whose descriptors are their numbers.
struct ByNumber<'s>(&'s Sockets);

impl Resources for ByNumber<'_> {
    fn socket(&self, descriptor: u32) -> Option<Arc<Socket>> {
        let socket = self.0.list().get(descriptor as usize)?;
        Some(Arc::new(Socket::of(socket)))
    }
}

/// True for maps whose values are sockets.
fn holds_sockets(map: &ObjectMap) -> bool {
    matches!(
        map.map.kind(),
        MapKind::Sockmap | MapKind::Sockhash | MapKind::ReuseportSockarray
    )
}

impl LoadedObject {
    /// Puts the socket of a cookie, one of the world, into a map of sockets.
    ///
    /// # Errors
    /// ENOENT if there is no such map of sockets, EBADF if the world has no such socket; otherwise
    /// those of the kernel: E2BIG beyond the map, EOPNOTSUPP for TCP sockets that neither wait for
    /// connections nor are connected, EINVAL for a socket without `reuseport` in a
    /// `reuseport_sockarray`.
    pub fn set_socket(&self, map: &str, key: &[u8], cookie: u64) -> Result<(), Errno> {
        let mut maps = self.maps();
        let found = maps.find(|found| found.def.name == map && holds_sockets(found));
        let found = found.ok_or(Errno::ENOENT)?;
        let sockets = &self.world.network.sockets;
        let number = sockets.by_cookie(cookie).ok_or(Errno::EBADF)? as u64;
        let value = &number.to_ne_bytes()[..found.map.value_len()];
        (found.map).update_with(key, value, 0, &ByNumber(sockets))
    }

    /// The cookie of the socket that a map of sockets holds under a key.
    pub fn socket_at(&self, map: &ObjectMap, key: &[u8]) -> Option<u64> {
        Some(map.map.operations().socket(key)?.cookie)
    }
}
