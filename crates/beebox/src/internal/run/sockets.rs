//! Sockets of the network in maps of sockets.

use std::sync::Arc;

use ::kernel::maps::{Resources, Socket};
use spec::Errno;
use vm::network::Sockets;

use super::{LoadedObject, ObjectMap};

/// A descriptor that no socket has.
const NO_SOCKET: usize = i32::MAX as usize;

/// Sockets whose descriptors are their numbers: first those of the internet protocols, then those
/// of AF_XDP.
struct ByNumber<'s>(&'s Sockets);

impl Resources for ByNumber<'_> {
    fn socket(&self, descriptor: u32) -> Option<Arc<Socket>> {
        let (number, list) = (descriptor as usize, self.0.list());
        let socket = match list.get(number) {
            Some(socket) => Socket::of(socket),
            None => Socket::from_xdp(self.0.xdp().get(number - list.len())?),
        };
        Some(Arc::new(socket))
    }
}

impl ByNumber<'_> {
    /// The number of the socket of a cookie.
    fn number_of(&self, cookie: u64) -> Option<usize> {
        self.0.by_cookie(cookie).or_else(|| {
            let mut xdp = self.0.xdp().iter();
            let number = xdp.position(|socket| socket.cookie == cookie)?;
            Some(self.0.list().len() + number)
        })
    }
}

impl ObjectMap {
    /// True for maps whose values are sockets.
    pub fn has_socket_values(&self) -> bool {
        self.map.kind().has_socket_values()
    }
}

impl LoadedObject {
    /// Puts the socket of a cookie, one of the network, into a map of sockets.
    ///
    /// # Errors
    /// ENOENT if there is no such map of sockets, EBADF if the network has no such socket; otherwise
    /// those of the kernel: E2BIG beyond the map, EOPNOTSUPP for TCP sockets that neither wait for
    /// connections nor are connected, and for sockets of AF_XDP in other maps than `xskmap` and
    /// other sockets there, EINVAL for a socket without `reuseport` in a `reuseport_sockarray`.
    pub fn set_socket(&self, map: &str, key: &[u8], cookie: u64) -> Result<(), Errno> {
        let mut maps = self.maps();
        let found = maps.find(|found| found.def.name == map && found.has_socket_values());
        let found = found.ok_or(Errno::ENOENT)?;
        let sockets = ByNumber(&self.shared.system.network.sockets);
        let number = sockets.number_of(cookie).unwrap_or(NO_SOCKET) as u64;
        let value = &number.to_le_bytes()[..found.map.value_len()];
        found.map.update_with(key, value, 0, &sockets)
    }

    /// The cookie of the socket that a map of sockets holds under a key.
    pub fn socket_at(&self, map: &ObjectMap, key: &[u8]) -> Option<u64> {
        map.map.operations().socket(key)
    }
}
