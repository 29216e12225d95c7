//! BPF_MAP_CREATE and access to single values.

use super::attributes::{MapCreate, MapElement, MapLookup, MapUpdate, call};
use crate::Errno;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A map to create.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapRequest<'a> {
    /// Number of its kind.
    pub kind: u32,
    /// Bytes of a key.
    pub key_size: u32,
    /// Bytes of a value.
    pub value_size: u32,
    /// Entries at most.
    pub max_entries: u32,
    /// Bits of BPF_F_*.
    pub flags: u32,
    /// The map that stands for the values of a map of maps.
    pub inner: Option<&'a Map>,
}

/// A map of the kernel; gone when it is dropped.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key_size: u32,
    value_size: u32,
    is_plain: bool,
}

/// Kinds whose values are copied as they are declared: hash and array.
const PLAIN: [u32; 2] = [1, 2];

impl Map {
    /// Creates a map.
    pub fn create(request: &MapRequest<'_>) -> Result<Map, Errno> {
        let mut attributes = MapCreate {
            map_type: request.kind,
            key_size: request.key_size,
            value_size: request.value_size,
            max_entries: request.max_entries,
            flags: request.flags,
            inner_map: request.inner.map_or(0, Map::descriptor),
            ..MapCreate::default()
        };
        // SAFETY: it holds no address.
        let fd = unsafe { call(&mut attributes) }?;
        Ok(Map {
            // SAFETY: the command just made the descriptor, and nobody else owns it.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            key_size: request.key_size,
            value_size: request.value_size,
            is_plain: PLAIN.contains(&request.kind),
        })
    }

    /// The descriptor's number, as ld_imm64 instructions hold it.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }

    /// Reads the value of a key. EINVAL for a key or buffer of another size than
    /// the map's, and for kinds other than hash and array.
    pub fn lookup(&self, key: &[u8], value: &mut [u8]) -> Result<(), Errno> {
        self.check(key.len(), value.len())?;
        let mut attributes = MapLookup(MapElement {
            map: self.descriptor(),
            key: key.as_ptr() as u64,
            value: value.as_mut_ptr() as u64,
            ..MapElement::default()
        });
        // SAFETY: key and value have the sizes that the map was created with.
        unsafe { call(&mut attributes) }.map(drop)
    }

    /// Writes the value of a key; errors as for [`Map::lookup`].
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        self.check(key.len(), value.len())?;
        let mut attributes = MapUpdate(MapElement {
            map: self.descriptor(),
            key: key.as_ptr() as u64,
            value: value.as_ptr() as u64,
            ..MapElement::default()
        });
        // SAFETY: as above, and the kernel only reads them.
        unsafe { call(&mut attributes) }.map(drop)
    }

    fn check(&self, key: usize, value: usize) -> Result<(), Errno> {
        // Values of several CPUs take more room than their declared size.
        if self.is_plain && key == self.key_size as usize && value == self.value_size as usize {
            Ok(())
        } else {
            Err(Errno(libc::EINVAL))
        }
    }
}
