//! Maps of the kernel: creation, element and batch operations, freeze, info.
//!
//! Keys and values are byte slices whose length is checked before the kernel sees their
//! address, so that no call reads or writes beyond them.

use super::BtfObject;
use super::attributes::{BpfMapInfo, Command, MapBatch, MapCreate, MapElement, MapFreeze};
use super::attributes::{ObjectInfo, call, call_as};
use super::prog_load::name_of;
use crate::Errno;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::OnceLock;

/// Request to create a map. Numbers are passed to the kernel unchecked.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapRequest<'a> {
    /// Map type (`enum bpf_map_type`).
    pub map_type: u32,
    /// Name; cut to 15 bytes.
    pub name: &'a str,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
    /// Flags (BPF_F_*).
    pub flags: u32,
    /// `map_extra`.
    pub extra: u64,
    /// NUMA node; used if BPF_F_NUMA_NODE is set.
    pub numa_node: u32,
    /// Index of the network device of an offloaded map; 0 for none.
    pub ifindex: u32,
    /// Template of the inner maps (`inner_map_fd`) of a map of maps.
    pub inner: Option<&'a Map>,
    /// BTF that describes key and value.
    pub btf: Option<&'a BtfObject>,
    /// BTF id of the key.
    pub btf_key: u32,
    /// BTF id of the value.
    pub btf_value: u32,
    /// BTF id of a struct_ops value in vmlinux.
    pub btf_vmlinux_value: u32,
}

/// File descriptor of a map in the running kernel. The kernel frees the map when its last
/// user is gone.
#[derive(Debug)]
pub struct Map {
    fd: OwnedFd,
    key_size: usize,
    /// Size of a value in bytes as the system call copies it.
    value_size: usize,
}

/// Properties of a map (`struct bpf_map_info`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapInfo {
    /// Map id.
    pub id: u32,
    /// Map type.
    pub map_type: u32,
    /// Size of a key in bytes.
    pub key_size: u32,
    /// Size of a value in bytes.
    pub value_size: u32,
    /// Maximum number of entries.
    pub max_entries: u32,
    /// Flags.
    pub flags: u32,
    /// `map_extra`.
    pub extra: u64,
    /// Name.
    pub name: String,
}

/// Result of a batch lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Number of elements processed.
    pub count: u32,
    /// Cursor of the next batch (`out_batch`).
    pub next: Vec<u8>,
    /// Error that ended the batch, if any; ENOENT after the last element.
    pub end: Option<Errno>,
}

/// Error of operations that a map type lacks (`include/linux/errno.h`).
const ENOTSUPP: i32 = 524;
/// Map types with a value for each CPU.
const PER_CPU: [u32; 4] = [5, 6, 10, 21];
/// Map types whose values are descriptors of maps, programs, events or control groups.
const DESCRIPTORS: [u32; 6] = [3, 4, 8, 12, 13, 16];

impl Map {
    /// Creates a map.
    pub fn create(request: &MapRequest<'_>) -> Result<Map, Errno> {
        let mut attributes = MapCreate {
            map_type: request.map_type,
            key_size: request.key_size,
            value_size: request.value_size,
            max_entries: request.max_entries,
            flags: request.flags,
            inner_map: request.inner.map_or(0, Map::descriptor),
            numa_node: request.numa_node,
            name: name_of(request.name),
            ifindex: request.ifindex,
            btf: request.btf.map_or(0, BtfObject::descriptor),
            btf_key: request.btf_key,
            btf_value: request.btf_value,
            btf_vmlinux_value: request.btf_vmlinux_value,
            extra: request.extra,
        };
        // SAFETY: the attributes contain no address.
        let fd = unsafe { call(&mut attributes) }?;
        // SAFETY: the command just made the descriptor, and nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // The kernel may round the sizes, so read back those of the created map.
        let info = info(fd.as_fd())?;
        let value_size = match info.map_type {
            kind if PER_CPU.contains(&kind) => {
                info.value_size.next_multiple_of(8) as usize * possible_cpus()
            }
            kind if DESCRIPTORS.contains(&kind) => info.value_size.max(4) as usize,
            _ => info.value_size as usize,
        };
        Ok(Map {
            fd,
            key_size: info.key_size as usize,
            value_size,
        })
    }

    /// Number of the file descriptor, as ld_imm64 instructions contain it.
    pub fn descriptor(&self) -> u32 {
        self.fd.as_raw_fd() as u32
    }

    /// Size in bytes of a value as operations take it. A per-CPU value is that of all
    /// possible CPUs, each rounded up to 8 bytes.
    pub fn value_len(&self) -> usize {
        self.value_size
    }

    /// Properties of the map (BPF_OBJ_GET_INFO_BY_FD).
    pub fn info(&self) -> Result<MapInfo, Errno> {
        let info = info(self.fd.as_fd())?;
        let end = info.name.iter().position(|&byte| byte == 0).unwrap_or(16);
        Ok(MapInfo {
            id: info.id,
            map_type: info.map_type,
            key_size: info.key_size,
            value_size: info.value_size,
            max_entries: info.max_entries,
            flags: info.flags,
            extra: info.extra,
            name: String::from_utf8_lossy(&info.name[..end]).into_owned(),
        })
    }

    /// Reads the value of a key. EINVAL if the length of key or value is not the map's.
    pub fn lookup(&self, key: &[u8], value: &mut [u8]) -> Result<(), Errno> {
        self.element(Command::MapLookup, Some(key), Some(value), 0)
    }

    /// Reads the value of a key with flags (BPF_F_LOCK and the like).
    pub fn lookup_with(&self, key: &[u8], value: &mut [u8], flags: u64) -> Result<(), Errno> {
        self.element(Command::MapLookup, Some(key), Some(value), flags)
    }

    /// Reads the value of a key and deletes it; from a queue or stack, without a key.
    pub fn lookup_and_delete(&self, key: &[u8], value: &mut [u8]) -> Result<(), Errno> {
        self.lookup_and_delete_with(key, value, 0)
    }

    /// Reads the value of a key and deletes it, with flags (BPF_F_LOCK and the like).
    pub fn lookup_and_delete_with(
        &self,
        key: &[u8],
        value: &mut [u8],
        flags: u64,
    ) -> Result<(), Errno> {
        self.element(Command::MapLookupAndDelete, Some(key), Some(value), flags)
    }

    /// Writes the value of a key.
    pub fn update(&self, key: &[u8], value: &[u8]) -> Result<(), Errno> {
        self.update_with(key, value, 0)
    }

    /// Writes the value of a key with flags (BPF_ANY, BPF_NOEXIST, BPF_EXIST, BPF_F_LOCK).
    pub fn update_with(&self, key: &[u8], value: &[u8], flags: u64) -> Result<(), Errno> {
        let mut copy = value.to_vec();
        self.element(Command::MapUpdate, Some(key), Some(&mut copy), flags)
    }

    /// Deletes a key.
    pub fn delete(&self, key: &[u8]) -> Result<(), Errno> {
        self.element(Command::MapDelete, Some(key), None, 0)
    }

    /// Key that follows this one, or the first key for `None`; `None` after the last.
    pub fn next_key(&self, key: Option<&[u8]>) -> Result<Option<Vec<u8>>, Errno> {
        let mut next = vec![0; self.key_size];
        if key.is_some_and(|key| key.len() != self.key_size) {
            return Err(Errno(libc::EINVAL));
        }
        let mut attributes = MapElement {
            map: self.descriptor(),
            key: key.map_or(0, |key| key.as_ptr() as u64),
            value: next.as_mut_ptr() as u64,
            ..MapElement::default()
        };
        // SAFETY: both keys have the map's size, and the second is writable.
        match unsafe { call_as(Command::MapNextKey, &mut attributes) } {
            Ok(_) => Ok(Some(next)),
            Err(Errno(libc::ENOENT)) => Ok(None),
            Err(errno) => Err(errno),
        }
    }

    /// Freezes the map: system calls can no longer change it.
    pub fn freeze(&self) -> Result<(), Errno> {
        let mut attributes = MapFreeze {
            map: self.descriptor(),
        };
        // SAFETY: the attributes contain no address.
        unsafe { call(&mut attributes) }.map(drop)
    }

    fn element(
        &self,
        command: Command,
        key: Option<&[u8]>,
        value: Option<&mut [u8]>,
        flags: u64,
    ) -> Result<(), Errno> {
        let fits = key.is_none_or(|key| key.len() == self.key_size)
            && value
                .as_ref()
                .is_none_or(|value| value.len() == self.value_size);
        if !fits {
            return Err(Errno(libc::EINVAL));
        }
        let key = key.filter(|key| !key.is_empty());
        let mut attributes = MapElement {
            map: self.descriptor(),
            key: key.map_or(0, |key| key.as_ptr() as u64),
            value: value.map_or(0, |value| value.as_mut_ptr() as u64),
            flags,
            ..MapElement::default()
        };
        // SAFETY: key and value have the lengths that the command copies, and the value
        // is writable.
        unsafe { call_as(command, &mut attributes) }.map(drop)
    }

    /// Reads elements after the cursor `from`, as many as fit; `None` starts at the
    /// first. `flags` are those of each element (BPF_F_LOCK). With `delete`, also deletes
    /// them.
    pub fn lookup_batch(
        &self,
        from: Option<&[u8]>,
        keys: &mut [u8],
        values: &mut [u8],
        flags: u64,
        delete: bool,
    ) -> Result<Batch, Errno> {
        let command = match delete {
            true => Command::MapLookupAndDeleteBatch,
            false => Command::MapLookupBatch,
        };
        // The cursor of a hash is a bucket number of 4 bytes, that of other maps a key.
        let mut next = vec![0; self.key_size.max(4)];
        if from.is_some_and(|from| from.len() != next.len()) {
            return Err(Errno(libc::EINVAL));
        }
        let attributes = MapBatch {
            in_batch: from.map_or(0, |from| from.as_ptr() as u64),
            out_batch: next.as_mut_ptr() as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            element_flags: flags,
            ..self.batch(keys, values)?
        };
        let (count, end) = self.call_batch(command, attributes)?;
        Ok(Batch { count, next, end })
    }

    /// Writes elements with the flags of each (BPF_ANY, BPF_F_LOCK); returns how many were written and the error that ended the batch.
    pub fn update_batch(
        &self,
        keys: &[u8],
        values: &[u8],
        flags: u64,
    ) -> Result<(u32, Option<Errno>), Errno> {
        let attributes = MapBatch {
            element_flags: flags,
            ..self.batch(keys, values)?
        };
        self.call_batch(Command::MapUpdateBatch, attributes)
    }

    /// Deletes elements with the flags of each (BPF_F_LOCK); returns how many were deleted
    /// and the error that ended the batch.
    pub fn delete_batch(&self, keys: &[u8], flags: u64) -> Result<(u32, Option<Errno>), Errno> {
        let count = keys.len().checked_div(self.key_size).unwrap_or(0);
        let values = vec![0; count * self.value_size];
        let attributes = MapBatch {
            values: 0,
            element_flags: flags,
            ..self.batch(keys, &values)?
        };
        self.call_batch(Command::MapDeleteBatch, attributes)
    }

    fn batch(&self, keys: &[u8], values: &[u8]) -> Result<MapBatch, Errno> {
        let count = keys.len().checked_div(self.key_size).unwrap_or(0);
        let fits = count * self.key_size == keys.len()
            && count * self.value_size == values.len()
            && count != 0;
        match u32::try_from(count) {
            Ok(count) if fits => Ok(MapBatch {
                keys: keys.as_ptr() as u64,
                values: values.as_ptr() as u64,
                count,
                map: self.descriptor(),
                ..MapBatch::default()
            }),
            _ => Err(Errno(libc::EINVAL)),
        }
    }

    fn call_batch(
        &self,
        command: Command,
        mut attributes: MapBatch,
    ) -> Result<(u32, Option<Errno>), Errno> {
        let requested = attributes.count;
        // SAFETY: keys and values hold `count` elements of the map's sizes; those that
        // the command writes came as unique borrows; cursors have at least the size of
        // a key.
        let answer = unsafe { call_as(command, &mut attributes) };
        match answer {
            Ok(_) => Ok((attributes.count, None)),
            // The kernel updates the count once it processes elements.
            Err(errno) if attributes.count <= requested => Ok((
                match errno {
                    Errno(libc::EINVAL | libc::EPERM | libc::EBADF | ENOTSUPP) => {
                        return Err(errno);
                    }
                    _ => attributes.count,
                },
                Some(errno),
            )),
            Err(errno) => Err(errno),
        }
    }
}

fn info(fd: BorrowedFd<'_>) -> Result<BpfMapInfo, Errno> {
    let mut info = BpfMapInfo::default();
    let mut attributes = ObjectInfo {
        object: fd.as_raw_fd() as u32,
        info_size: size_of::<BpfMapInfo>() as u32,
        info: (&raw mut info) as u64,
    };
    // SAFETY: `info` is one writable structure of the stated size.
    unsafe { call(&mut attributes) }?;
    Ok(info)
}

/// Number of possible CPUs: a per-CPU value is copied for all of them. Where the number
/// cannot be read, the maximum that Linux supports.
pub fn possible_cpus() -> usize {
    const MOST: usize = 8192;
    static CPUS: OnceLock<usize> = OnceLock::new();
    *CPUS.get_or_init(|| {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/possible");
        let last = list.ok().and_then(|list| {
            let numbers = list.trim().split([',', '-']);
            numbers
                .filter_map(|number| number.parse::<usize>().ok())
                .max()
        });
        last.map_or(MOST, |last| last + 1)
    })
}
