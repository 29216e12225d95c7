//! BPF_LINK_CREATE: attaches a program to a network device.

use super::LoadedProgram;
use super::attributes::{BpfLinkInfo, LinkCreate, ObjectInfo, call};
use crate::Errno;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A program at a device. It is there until this is dropped or the process ends in whatever way.
#[derive(Debug)]
pub struct Link {
    fd: OwnedFd,
}

impl Link {
    /// The index of the device, in its own namespace; `None` if the device is gone.
    pub fn ifindex(&self) -> Result<Option<u32>, Errno> {
        let mut info = BpfLinkInfo::default();
        let mut attributes = ObjectInfo {
            object: self.fd.as_raw_fd() as u32,
            info_size: size_of::<BpfLinkInfo>() as u32,
            info: (&raw mut info) as u64,
        };
        // SAFETY: `info` is one writable structure of the stated size.
        unsafe { call(&mut attributes) }?;
        Ok((info.ifindex != 0).then_some(info.ifindex))
    }
}

/// Attach target of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// XDP.
    Xdp,
    /// tc at ingress.
    TcIngress,
}

impl LoadedProgram {
    /// Attaches the program to a device by its index; at XDP in the kernel's generic form if the
    /// driver refuses it.
    ///
    /// # Errors
    /// Those of the kernel: EBUSY if another program is at XDP, ENODEV without such a device.
    pub fn attach(&self, kind: LinkKind, ifindex: u32) -> Result<Link, Errno> {
        const XDP_FLAGS_SKB_MODE: u32 = 2;
        match self.attach_with(kind, ifindex, 0) {
            // As veth does with fewer receive queues than its peer has to send.
            Err(Errno(libc::ENOSPC | libc::EOPNOTSUPP | libc::EINVAL)) if kind == LinkKind::Xdp => {
                self.attach_with(kind, ifindex, XDP_FLAGS_SKB_MODE)
            }
            attached => attached,
        }
    }

    fn attach_with(&self, kind: LinkKind, ifindex: u32, flags: u32) -> Result<Link, Errno> {
        let mut attributes = LinkCreate {
            program: self.fd.as_raw_fd() as u32,
            target: ifindex,
            attach_type: match kind {
                LinkKind::Xdp => 37,
                LinkKind::TcIngress => 46,
            },
            flags,
            ..LinkCreate::default()
        };
        // SAFETY: the attributes hold no addresses.
        let fd = unsafe { call(&mut attributes) }?;
        // SAFETY: the kernel just made the descriptor, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Link { fd })
    }
}
