//! Sockets and control groups of the kernel with ours beside them, and types of local
//! storage, for maps that refer to them.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::sync::Arc;

use ::kernel::maps::{Cgroup, Socket, SocketKind};
use btf::TypeId;
use spec::Errno;
use spec::maps::MapKind;
use sys::bpf::{BtfObject, Map as KernelMap, MapRequest};
use sys::xdp_socket::XdpSocket;

use super::errno;

/// Mount points of control groups.
const CGROUPS: [&str; 2] = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"];

/// Bytes of the values that have a type, in the order of the types' ids from
/// [`FIRST_VALUE`] on.
pub(super) const TYPED_SIZES: [u32; 10] = [1, 4, 8, 12, 40, 100, 4096, 0xff80, 0xff81, 0xffff];

/// Ids of the types of keys and of the first value.
const KEY: TypeId = TypeId(1);
const FIRST_VALUE: u32 = 3;

/// `EAFNOSUPPORT`.
const UNKNOWN_FAMILY: i32 = 97;

/// Open descriptors.
pub(super) struct Descriptors {
    sockets: HashMap<u32, Arc<Socket>>,
    cgroups: HashMap<u32, Arc<Cgroup>>,
    pub(super) types: BtfObject,
    /// Owners of the descriptors.
    _open: Vec<Box<dyn AsRawFd>>,
}

impl Descriptors {
    /// Sockets of each kind that makes a difference, and a control group. The error is the
    /// system's.
    pub(super) fn open() -> Result<Descriptors, Errno> {
        let mut descriptors = Descriptors {
            sockets: HashMap::new(),
            cgroups: HashMap::new(),
            types: BtfObject::load(&types()).map_err(errno)?,
            _open: Vec::new(),
        };
        let (stream, other) = UnixStream::pair().map_err(system)?;
        descriptors.add_socket(udp()?, SocketKind::Udp)?;
        descriptors.add_socket(udp()?, SocketKind::Udp)?;
        let listener = TcpListener::bind("127.0.0.1:0").map_err(system)?;
        descriptors.add_socket(listener, SocketKind::TcpOpen)?;
        descriptors.add_socket(UnixDatagram::unbound().map_err(system)?, SocketKind::Unix)?;
        descriptors.add_socket(stream, SocketKind::Unix)?;
        descriptors.add_socket(other, SocketKind::Unix)?;
        for _ in 0..2 {
            descriptors.add_xdp_socket()?;
        }
        let cgroup = CGROUPS.iter().find_map(|path| File::open(path).ok());
        if let Some(cgroup) = cgroup {
            let number = cgroup.as_raw_fd() as u32;
            descriptors
                .cgroups
                .insert(number, Arc::new(Cgroup { id: 1 }));
            descriptors._open.push(Box::new(cgroup));
        }
        Ok(descriptors)
    }

    fn add_socket(
        &mut self,
        socket: impl AsRawFd + 'static,
        kind: SocketKind,
    ) -> Result<(), Errno> {
        let cookie = cookie(socket.as_raw_fd() as u32)?;
        self.add(socket, cookie, kind);
        Ok(())
    }

    /// Adds an AF_XDP socket, whose cookie no map tells, if the kernel has such sockets.
    fn add_xdp_socket(&mut self) -> Result<(), Errno> {
        const ANY_COOKIE: u64 = 1 << 40;
        match XdpSocket::new() {
            Ok(socket) => {
                let cookie = ANY_COOKIE + u64::from(socket.descriptor());
                self.add(socket, cookie, SocketKind::Xdp(0));
                Ok(())
            }
            Err(sys::Errno(UNKNOWN_FAMILY)) => Ok(()),
            Err(other) => Err(errno(other)),
        }
    }

    fn add(&mut self, socket: impl AsRawFd + 'static, cookie: u64, kind: SocketKind) {
        let number = socket.as_raw_fd() as u32;
        let ours = Socket::new(cookie, kind, false);
        self.sockets.insert(number, Arc::new(ours));
        self._open.push(Box::new(socket));
    }

    pub(super) fn socket(&self, descriptor: u32) -> Option<Arc<Socket>> {
        self.sockets.get(&descriptor).cloned()
    }

    pub(super) fn cgroup(&self, descriptor: u32) -> Option<Arc<Cgroup>> {
        self.cgroups.get(&descriptor).cloned()
    }

    /// Descriptors that a map of this kind takes in keys or values.
    pub(super) fn of(&self, kind: MapKind) -> Vec<u32> {
        use MapKind::{
            CgroupArray, CgrpStorage, InodeStorage, ReuseportSockarray, SkStorage, Sockhash,
            Sockmap, Xskmap,
        };
        let mut numbers: Vec<u32> = match kind {
            Sockmap | Sockhash | ReuseportSockarray | SkStorage | InodeStorage | Xskmap => {
                self.sockets.keys().copied().collect()
            }
            CgroupArray | CgrpStorage => self.cgroups.keys().copied().collect(),
            _ => Vec::new(),
        };
        numbers.sort_unstable();
        numbers
    }
}

fn udp() -> Result<UdpSocket, Errno> {
    UdpSocket::bind("127.0.0.1:0").map_err(system)
}

fn system(error: io::Error) -> Errno {
    Errno(error.raw_os_error().unwrap_or(Errno::EINVAL.0))
}

/// The cookie of a socket, as a map of the kernel tells it.
fn cookie(descriptor: u32) -> Result<u64, Errno> {
    let request = MapRequest {
        map_type: MapKind::Sockmap.number(),
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        ..MapRequest::default()
    };
    let map = KernelMap::create(&request).map_err(errno)?;
    let (key, mut value) = ([0; 4], u64::from(descriptor).to_ne_bytes());
    map.update(&key, &value).map_err(errno)?;
    map.lookup_with(&key, &mut value, 0).map_err(errno)?;
    Ok(u64::from_ne_bytes(value))
}

/// Types of key and value of local storage with values of so many bytes.
pub(super) fn types_of(value_size: u32) -> Option<(TypeId, TypeId)> {
    let at = TYPED_SIZES.iter().position(|size| *size == value_size)?;
    Some((KEY, TypeId(FIRST_VALUE + at as u32)))
}

/// `int`, `char`, and an array of `char` for each of the sizes.
fn types() -> Vec<u8> {
    const INT: u32 = 1 << 24;
    const ARRAY: u32 = 3 << 24;
    const SIGNED: u32 = 1 << 24;
    const NAMES: &[u8] = b"\0int\0char\0";
    let mut types = vec![1, INT, 4, SIGNED | 32, 5, INT, 1, SIGNED | 8];
    for size in TYPED_SIZES {
        types.extend([0, ARRAY, 0, 2, 1, size]);
    }
    let bytes = 4 * types.len() as u32;
    // magic, version 1, no flags; offsets and lengths of types and names.
    let header = [0x0001_eb9f, 24, 0, bytes, bytes, NAMES.len() as u32];
    let words = header
        .iter()
        .chain(&types)
        .flat_map(|word| word.to_ne_bytes());
    words.chain(NAMES.iter().copied()).collect()
}
