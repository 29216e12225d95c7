//! Dynptrs: pointers with a length that is checked when they are used.
//!
//! A dynptr is 16 bytes in the memory of the program, laid out as Linux's
//! (`struct bpf_dynptr_kern`): the address of what it points into, a size with its kind, and
//! an offset. No program reads them: the verifier keeps them from it.

use spec::limits::{self, DYNPTR_SIZE};
use spec::{Errno, Result};
use vm::{MemoryPort, ModelPort};

use crate::helpers::store_bytes;

/// Most bytes of a dynptr (`DYNPTR_MAX_SIZE`).
pub(crate) const MOST_BYTES: u32 = limits::DYNPTR;
/// Bit of the size from which on the kind is (`DYNPTR_TYPE_SHIFT`), and the bit of read-only
/// ones.
const KIND_SHIFT: u32 = 28;
const READ_ONLY: u32 = 1 << 31;

/// Memory behind a dynptr (`enum bpf_dynptr_type`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DynptrKind {
    /// Memory that the program gave.
    Local = 1,
    /// A record of a ring buffer.
    Ringbuf = 2,
    /// The packet of a socket buffer, whose context the address is.
    Skb = 3,
    /// The packet of XDP, whose context the address is.
    Xdp = 4,
    /// The metadata of a socket buffer, whose context the address is.
    SkbMeta = 5,
}

/// A dynptr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dynptr {
    /// Address of what it points into; 0: it is invalid.
    data: u64,
    /// The size, with the kind.
    size: u32,
    offset: u32,
}

impl Dynptr {
    /// A dynptr to so many bytes.
    pub(crate) fn new(kind: DynptrKind, data: u64, size: u32) -> Dynptr {
        Dynptr {
            data,
            size: size | (kind as u32) << KIND_SHIFT,
            offset: 0,
        }
    }

    /// The same bytes, which are only read.
    pub(crate) fn read_only(self) -> Dynptr {
        Dynptr {
            size: self.size | READ_ONLY,
            ..self
        }
    }

    pub(crate) fn read<M: MemoryPort>(memory: &M, address: u64) -> Result<Dynptr, M::Fault> {
        let mut bytes = [0; DYNPTR_SIZE as usize];
        memory.read(address, &mut bytes)?;
        let [data, rest] = [&bytes[..8], &bytes[8..]].map(|half| {
            let mut word = [0; 8];
            word.copy_from_slice(half);
            u64::from_le_bytes(word)
        });
        Ok(Dynptr {
            data,
            size: rest as u32,
            offset: (rest >> 32) as u32,
        })
    }

    pub(crate) fn write<M: MemoryPort>(self, memory: &mut M, address: u64) -> Result<(), M::Fault> {
        let rest = u64::from(self.offset) << 32 | u64::from(self.size);
        memory.write(address, &self.data.to_le_bytes())?;
        memory.write(address.wrapping_add(8), &rest.to_le_bytes())
    }

    /// Number of its bytes.
    pub(crate) fn len(self) -> u32 {
        self.size & MOST_BYTES
    }

    /// True if its bytes are only read; false for an invalid one.
    pub(crate) fn is_read_only(self) -> bool {
        self.size & READ_ONLY != 0
    }

    /// True if it points to nothing.
    pub(crate) fn is_null(self) -> bool {
        self.data == 0
    }

    /// The address of what it points into.
    pub(crate) fn data(self) -> u64 {
        self.data
    }

    fn kind(self) -> DynptrKind {
        match (self.size & !READ_ONLY) >> KIND_SHIFT {
            2 => DynptrKind::Ringbuf,
            3 => DynptrKind::Skb,
            4 => DynptrKind::Xdp,
            5 => DynptrKind::SkbMeta,
            _ => DynptrKind::Local,
        }
    }

    /// The bytes from an offset to an end. `-EINVAL` if it is invalid or the end is before,
    /// `-ERANGE` if they are not all in it.
    pub(crate) fn part(self, start: u32, end: u32) -> Result<Dynptr> {
        match self.len() {
            _ if self.is_null() || start > end => Err(Errno::EINVAL),
            len if start > len || end > len => Err(Errno::ERANGE),
            _ => Ok(Dynptr {
                size: self.size & !MOST_BYTES | (end - start),
                offset: self.offset + start,
                ..self
            }),
        }
    }

    /// `-E2BIG` if bytes at an offset are not all in it.
    pub(crate) fn check_range(self, offset: u64, len: u64) -> Result {
        let size = u64::from(self.len());
        match len > size || offset > size - len {
            true => Err(Errno::E2BIG),
            false => Ok(()),
        }
    }

    /// The offset of bytes in what it points into. `-EINVAL` if it is invalid, `-E2BIG` if they
    /// are not all in it.
    fn offset(self, offset: u64, len: u64) -> Result<u64> {
        Errno::EINVAL.when(self.is_null())?;
        self.check_range(offset, len)?;
        Ok(u64::from(self.offset) + offset)
    }

    /// Address of bytes in memory at an offset. `-EINVAL` if it is invalid, `-E2BIG` if they are
    /// not all in it, `-EFAULT` if they have none.
    pub(crate) fn address(self, offset: u64, len: u64) -> Result<u64> {
        let offset = self.offset(offset, len)?;
        match self.kind() {
            DynptrKind::Local | DynptrKind::Ringbuf => Ok(self.data + offset),
            DynptrKind::Skb | DynptrKind::Xdp | DynptrKind::SkbMeta => Err(Errno::EFAULT),
        }
    }

    /// Address of bytes in memory at an offset, those of packets among them that lie there in
    /// one piece. Errors as of [`Dynptr::address`].
    pub(crate) fn slice<M: ModelPort>(
        self,
        memory: &M,
        offset: u64,
        len: u64,
    ) -> Result<Result<u64>, M::Fault> {
        let (kind, place) = (self.kind(), self.offset(offset, len));
        let place = match place {
            Ok(place) => place,
            Err(errno) => return Ok(Err(errno)),
        };
        Ok(match kind {
            DynptrKind::Local | DynptrKind::Ringbuf => Ok(self.data + place),
            DynptrKind::Skb | DynptrKind::Xdp => {
                let packet = memory.packet(self.data)?;
                match packet.fragment_at(place as usize, len as usize) {
                    _ if place + len <= packet.linear_len() as u64 => {
                        Ok(memory.packet_address(self.data)? + place)
                    }
                    Some((fragment, offset)) => {
                        Ok(memory.fragment_address(fragment) + offset as u64)
                    }
                    None => Err(Errno::EFAULT),
                }
            }
            DynptrKind::SkbMeta => {
                let metadata = memory.packet(self.data)?.metadata_len() as u64;
                Ok(memory.packet_address(self.data)? - metadata + place)
            }
        })
    }

    /// Copies bytes at an offset out. `-EINVAL` if it is invalid, `-E2BIG` if they are not all
    /// in it.
    pub(crate) fn read_bytes<M: MemoryPort>(
        self,
        memory: &M,
        offset: u64,
        into: &mut [u8],
    ) -> Result<Result, M::Fault> {
        let place = match self.offset(offset, into.len() as u64) {
            Ok(place) => place,
            Err(errno) => return Ok(Err(errno)),
        };
        let is_read = match self.kind() {
            DynptrKind::Local | DynptrKind::Ringbuf => {
                memory.read(self.data + place, into)?;
                true
            }
            DynptrKind::Skb | DynptrKind::Xdp => {
                memory.packet(self.data)?.read(place as usize, into)
            }
            DynptrKind::SkbMeta => {
                let packet = memory.packet(self.data)?;
                let metadata = &packet.visible()[..packet.metadata_len()];
                let found = metadata.get(place as usize..place as usize + into.len());
                found.map(|bytes| into.copy_from_slice(bytes)).is_some()
            }
        };
        Ok(if is_read { Ok(()) } else { Err(Errno::EFAULT) })
    }

    /// Copies bytes to an offset, with the flags of a write. `-EINVAL` if it is invalid or only
    /// read, and for flags of no meaning, `-E2BIG` if they are not all in it.
    pub(crate) fn write_bytes<M: MemoryPort>(
        self,
        memory: &mut M,
        offset: u64,
        bytes: &[u8],
        flags: u64,
    ) -> Result<Result, M::Fault> {
        let place = match self.is_read_only() {
            true => Err(Errno::EINVAL),
            false => self.offset(offset, bytes.len() as u64),
        };
        let place = match place {
            Ok(place) => place,
            Err(errno) => return Ok(Err(errno)),
        };
        let kind = self.kind();
        if flags != 0 && kind != DynptrKind::Skb {
            return Ok(Err(Errno::EINVAL));
        }
        let is_written = match kind {
            DynptrKind::Local | DynptrKind::Ringbuf => {
                memory.write(self.data + place, bytes)?;
                true
            }
            DynptrKind::Skb => return store_bytes(memory, self.data, place, bytes, flags),
            DynptrKind::Xdp => {
                memory.change_packet(self.data, |packet| packet.write(place as usize, bytes))?
            }
            DynptrKind::SkbMeta => memory.change_packet(self.data, |packet| {
                let metadata = packet.metadata_len();
                let metadata = &mut packet.visible_mut()[..metadata];
                let found = metadata.get_mut(place as usize..place as usize + bytes.len());
                found.map(|found| found.copy_from_slice(bytes)).is_some()
            })?,
        };
        Ok(if is_written {
            Ok(())
        } else {
            Err(Errno::EFAULT)
        })
    }
}
