//! AF_XDP sockets that receive by copies: enough of them for a program to redirect packets to.

use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use memmap2::{MmapMut, MmapOptions};

use crate::Errno;

/// An AF_XDP socket.
#[derive(Debug)]
pub struct XdpSocket {
    fd: OwnedFd,
    /// The memory of its frames, which the kernel keeps as long as the socket exists.
    _frames: Option<MmapMut>,
}

/// Bytes and number of frames, and entries of each ring.
const FRAME: usize = 4096;
const FRAMES: usize = 4;
const ENTRIES: u32 = 4;

impl XdpSocket {
    /// A new socket, which is not bound.
    ///
    /// # Errors
    /// EAFNOSUPPORT where the kernel has no such sockets, EPERM without the capability.
    pub fn new() -> Result<XdpSocket, Errno> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes no pointers.
        let fd = Errno::check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
        Ok(XdpSocket {
            // SAFETY: socket just made the descriptor, and nothing else owns it.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            _frames: None,
        })
    }

    /// Gives the socket memory for frames and rings, and binds it to a queue of a device, in
    /// copy mode. No frame is offered to the kernel, so it drops and counts what arrives.
    pub fn bind(&mut self, ifindex: u32, queue: u32) -> Result<(), Errno> {
        let mut frames = MmapOptions::new().len(FRAME * FRAMES).map_anon()?;
        let region = libc::xdp_umem_reg_v1 {
            addr: frames.as_mut_ptr().expose_provenance() as u64,
            len: (FRAME * FRAMES) as u64,
            chunk_size: FRAME as u32,
            headroom: 0,
        };
        self.set(libc::XDP_UMEM_REG, &region)?;
        self._frames = Some(frames);
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
        ] {
            self.set(ring, &ENTRIES)?;
        }
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: libc::XDP_COPY,
            sxdp_ifindex: ifindex,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
        // SAFETY: the address has so many bytes; the kernel only reads.
        Errno::check(unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), len) })?;
        Ok(())
    }

    /// Number of packets that arrived, all of which it dropped (`XDP_STATISTICS`).
    pub fn arrived(&self) -> Result<u64, Errno> {
        // SAFETY: all zeros is a valid value of this plain structure.
        let mut counts: libc::xdp_statistics = unsafe { std::mem::zeroed() };
        let mut len = size_of::<libc::xdp_statistics>() as libc::socklen_t;
        // SAFETY: pointer and length are those of a writable structure.
        Errno::check(unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_XDP,
                libc::XDP_STATISTICS,
                (&raw mut counts).cast(),
                &raw mut len,
            )
        })?;
        Ok(counts.rx_dropped)
    }

    /// Its descriptor.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }

    /// Sets an option of the socket.
    fn set<T>(&self, name: libc::c_int, value: &T) -> Result<(), Errno> {
        // SAFETY: pointer and size are those of the value; the kernel only reads.
        Errno::check(unsafe {
            libc::setsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_XDP,
                name,
                std::ptr::from_ref(value).cast(),
                size_of::<T>() as libc::socklen_t,
            )
        })?;
        Ok(())
    }
}

impl AsRawFd for XdpSocket {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.fd.as_raw_fd()
    }
}
