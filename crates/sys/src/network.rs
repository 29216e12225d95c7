//! A new network namespace with a veth pair. The network of other threads and processes
//! is unchanged.

use crate::Errno;
use std::ffi::CStr;
use std::fs::{self, File};
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A network namespace that the calling thread entered and keeps until it ends.
#[derive(Debug)]
pub struct OwnNamespace {
    /// Makes the value neither `Send` nor `Sync`: a namespace belongs to a thread.
    thread: PhantomData<*const ()>,
}

impl OwnNamespace {
    /// Moves the calling thread into a new, empty network namespace. The thread cannot
    /// leave it, so use a dedicated thread. Needs CAP_SYS_ADMIN.
    pub fn enter() -> Result<OwnNamespace, Errno> {
        // SAFETY: unshare takes no pointers, and a network namespace holds none
        // of the process's memory.
        Errno::check(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
        Ok(OwnNamespace {
            thread: PhantomData,
        })
    }

    /// Sets `net.core.optmem_max` of the namespace.
    pub fn set_optmem_max(&self, bytes: u32) -> Result<(), Errno> {
        write_setting("/proc/sys/net/core/optmem_max", bytes)
    }

    /// Creates a veth pair without IPv6 autoconfiguration and brings both ends up. The
    /// first has [`TX_QUEUES`] queues, so packets that leave it get a flow hash.
    pub fn create_ethernet_pair(&self) -> Result<[NetworkInterface; 2], Errno> {
        const NAMES: [&CStr; 2] = [c"bee0", c"bee1"];
        // A kernel without IPv6 has no such setting and sends no router solicitations.
        match write_setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", 1) {
            Ok(()) | Err(Errno(libc::ENOENT)) => {}
            Err(errno) => return Err(errno),
        }
        request_pair(NAMES)?;
        let control = control_socket()?;
        for name in NAMES {
            bring_up(&control, name)?;
        }
        let [first, second] = NAMES.map(|name| describe(&control, name));
        Ok([first?, second?])
    }
}

/// An open network namespace, which lasts as long as this or a socket in it.
#[derive(Debug)]
pub struct NetworkNamespace(File);

impl NetworkNamespace {
    /// That of the calling thread.
    pub fn own() -> Result<NetworkNamespace, Errno> {
        Ok(NetworkNamespace(File::open("/proc/thread-self/ns/net")?))
    }

    /// Gives the namespace an id, by which that of the calling thread knows it.
    ///
    /// # Errors
    /// EEXIST if it has one already, or another namespace has this one. Needs CAP_NET_ADMIN.
    pub fn set_id(&self, id: u32) -> Result<(), Errno> {
        const NETNSA_NSID: u16 = 1;
        const NETNSA_FD: u16 = 3;
        const GENERAL_HEADER: [u8; 4] = [0; 4]; // struct rtgenmsg, all zero
        let descriptor = self.0.as_raw_fd() as u32;
        let body = [
            &GENERAL_HEADER[..],
            &attribute(NETNSA_NSID, &id.to_ne_bytes()),
            &attribute(NETNSA_FD, &descriptor.to_ne_bytes()),
        ]
        .concat();
        let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK;
        netlink_request(&message(libc::RTM_NEWNSID, flags, &body))
    }
}

fn write_setting(path: &str, value: u32) -> Result<(), Errno> {
    fs::write(path, value.to_string()).map_err(Errno::from)
}

/// The cookie of the network namespace of the calling thread.
pub fn namespace_cookie() -> Result<u64, Errno> {
    let socket = control_socket()?;
    let mut cookie = 0u64;
    let mut len = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the option is 8 bytes, written to where the length says there is room for them.
    Errno::check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut len,
        )
    })?;
    Ok(cookie)
}

/// `SO_NETNS_COOKIE` (include/uapi/asm-generic/socket.h).
const SO_NETNS_COOKIE: i32 = 71;

/// Pins the calling thread to one CPU, which programs then see as their CPU number.
pub fn pin_to_cpu(cpu: u32) -> Result<(), Errno> {
    // SAFETY: all zeros is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is a local; CPU_SET ignores numbers beyond it.
    unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    // SAFETY: the set's address and size are given; the kernel only reads.
    Errno::check(unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) })?;
    Ok(())
}

/// Number of transmit queues of the first device of a pair.
pub const TX_QUEUES: u32 = 4;

/// One end of a veth pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkInterface {
    /// Interface index.
    pub ifindex: u32,
    /// Hardware address.
    pub address: [u8; 6],
}

/// The index of an interface of the calling thread's namespace, by its name.
pub fn interface_index(name: &CStr) -> Result<u32, Errno> {
    Ok(describe_index(&control_socket()?, name)? as u32)
}

/// The name of an interface of the calling thread's namespace, by its index.
///
/// # Errors
/// ENODEV if there is none.
pub fn interface_name(index: u32) -> Result<String, Errno> {
    let mut request = request_for(c"");
    request.ifr_ifru.ifru_ifindex = index as libc::c_int;
    let control = control_socket()?;
    ioctl(&control, libc::SIOCGIFNAME as libc::c_ulong, &mut request)?;
    let name = request.ifr_name.iter().map(|byte| *byte as u8);
    let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
    Ok(String::from_utf8_lossy(&name).into_owned())
}

/// Notifications that an interface of a namespace came, changed or went (rtnetlink's group
/// RTMGRP_LINK).
#[derive(Debug)]
pub struct InterfaceChanges {
    socket: OwnedFd,
}

impl InterfaceChanges {
    /// Those of the calling thread's namespace from now on.
    pub fn watch() -> Result<InterfaceChanges, Errno> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes no pointers.
        let fd =
            Errno::check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
        // SAFETY: socket just made the descriptor, and nothing else owns it.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut address: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        address.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        address.nl_groups = libc::RTMGRP_LINK as u32;
        let size = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
        // SAFETY: pointer and size are those of a local that the kernel only reads.
        Errno::check(unsafe { libc::bind(fd, (&raw const address).cast(), size) })?;
        Ok(InterfaceChanges { socket })
    }

    /// Takes the notifications that are there. They only say that something changed: where more
    /// came than there was room for, none of them is missed.
    pub fn take(&self) -> Result<(), Errno> {
        let mut message = [0u8; 8192];
        loop {
            let (fd, len) = (self.socket.as_raw_fd(), message.len());
            // SAFETY: pointer and length are those of a writable array.
            let taken = unsafe { libc::recv(fd, message.as_mut_ptr().cast(), len, 0) };
            match Errno::check_len(taken) {
                Ok(_) | Err(Errno(libc::ENOBUFS | libc::EINTR)) => {}
                Err(Errno(libc::EAGAIN)) => return Ok(()),
                Err(errno) => return Err(errno),
            }
        }
    }
}

impl AsFd for InterfaceChanges {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn describe_index(control: &OwnedFd, name: &CStr) -> Result<libc::c_int, Errno> {
    let mut request = request_for(name);
    ioctl(control, libc::SIOCGIFINDEX as libc::c_ulong, &mut request)?;
    // SAFETY: SIOCGIFINDEX filled in this member.
    Ok(unsafe { request.ifr_ifru.ifru_ifindex })
}

fn control_socket() -> Result<OwnedFd, Errno> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointers.
    let fd = Errno::check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: socket just made the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Interface request (`struct ifreq`) for this name.
fn request_for(name: &CStr) -> libc::ifreq {
    // SAFETY: all zeros is a valid value of this plain structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let room = request.ifr_name.len() - 1;
    for (to, &from) in request.ifr_name[..room].iter_mut().zip(name.to_bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn ioctl(control: &OwnedFd, code: libc::c_ulong, request: &mut libc::ifreq) -> Result<(), Errno> {
    // SAFETY: the requests below all read and write one ifreq, which is writable.
    Errno::check(unsafe { libc::ioctl(control.as_raw_fd(), code as _, &raw mut *request) })?;
    Ok(())
}

fn bring_up(control: &OwnedFd, name: &CStr) -> Result<(), Errno> {
    let mut request = request_for(name);
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    ioctl(control, libc::SIOCSIFFLAGS as libc::c_ulong, &mut request)
}

fn describe(control: &OwnedFd, name: &CStr) -> Result<NetworkInterface, Errno> {
    let ifindex = describe_index(control, name)? as u32;
    let mut request = request_for(name);
    ioctl(control, libc::SIOCGIFHWADDR as libc::c_ulong, &mut request)?;
    // SAFETY: SIOCGIFHWADDR filled in this member.
    let hardware = unsafe { request.ifr_ifru.ifru_hwaddr }.sa_data;
    let mut address = [0; 6];
    for (to, from) in address.iter_mut().zip(hardware) {
        *to = from as u8;
    }
    Ok(NetworkInterface { ifindex, address })
}

/// Creates the pair by rtnetlink: a link of kind "veth" whose data names its peer.
fn request_pair([name, peer]: [&CStr; 2]) -> Result<(), Errno> {
    const IFLA_INFO_KIND: u16 = 1;
    const IFLA_INFO_DATA: u16 = 2;
    const VETH_INFO_PEER: u16 = 1;
    const LINK_HEADER: [u8; 16] = [0; 16]; // struct ifinfomsg, all zero
    let name_of = |name: &CStr| attribute(libc::IFLA_IFNAME, name.to_bytes_with_nul());
    let peer = [&LINK_HEADER[..], &name_of(peer)].concat();
    let data = attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer));
    let kind = attribute(IFLA_INFO_KIND, b"veth");
    let body = [
        &LINK_HEADER[..],
        &name_of(name),
        &attribute(libc::IFLA_NUM_TX_QUEUES, &TX_QUEUES.to_ne_bytes()),
        &attribute(libc::IFLA_LINKINFO, &[kind, data].concat()),
    ]
    .concat();
    let flags = libc::NLM_F_REQUEST | libc::NLM_F_ACK | libc::NLM_F_CREATE | libc::NLM_F_EXCL;
    netlink_request(&message(libc::RTM_NEWLINK, flags, &body))
}

/// A netlink message: its header and its body.
fn message(kind: u16, flags: libc::c_int, body: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    message.extend((16 + body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((flags as u16).to_ne_bytes());
    message.extend(1u32.to_ne_bytes());
    message.extend(0u32.to_ne_bytes());
    message.extend(body);
    message
}

/// One netlink attribute, padded.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let len = 4 + payload.len();
    let mut bytes = Vec::with_capacity(len.next_multiple_of(4));
    bytes.extend((len as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(len.next_multiple_of(4), 0);
    bytes
}

/// Sends one request and reads its acknowledgement.
fn netlink_request(message: &[u8]) -> Result<(), Errno> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointers.
    let fd = Errno::check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: socket just made the descriptor, and nothing else owns it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: pointer and length are those of a slice that the kernel only reads.
    let sent = unsafe { libc::send(fd, message.as_ptr().cast(), message.len(), 0) };
    Errno::check_len(sent)?;
    let mut answer = [0u8; 4096];
    // SAFETY: pointer and length are those of a writable array.
    let len = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            0,
        )
    };
    let len = Errno::check_len(len)?;
    // A header of 16 bytes, then the negated error number, 0 for success.
    match answer[..len]
        .get(16..20)
        .and_then(|code| code.try_into().ok())
    {
        Some(code) => match i32::from_ne_bytes(code) {
            0 => Ok(()),
            code => Err(Errno(-code)),
        },
        None => Err(Errno(libc::EPROTO)),
    }
}
