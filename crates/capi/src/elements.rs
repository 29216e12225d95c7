//! Elements of maps, by libbpf's names: with handles (`beebox_map_lookup_elem`), whose keys and values
//! have the sizes of the map, and with maps and sizes (`beebox_map__lookup_elem`).

use std::ffi::{c_int, c_void};

use beebox::{Map, MapKind};

use crate::boundary::{Failure, bytes, number, shared, write};
use crate::handles;
use crate::map::beebox_map;

/// An operation on an element, with what the caller gives for it.
#[derive(Clone, Copy)]
struct Element {
    key: *const c_void,
    /// The value that an update reads.
    value: *const c_void,
    /// Room for the value or the key that the others write.
    out: *mut c_void,
    flags: u64,
}

impl Element {
    /// Only a key.
    fn key(key: *const c_void) -> Element {
        Element {
            key,
            value: std::ptr::null(),
            out: std::ptr::null_mut(),
            flags: 0,
        }
    }

    /// The bytes of the key.
    ///
    /// # Safety
    /// The key points to as many bytes as the map's keys have.
    unsafe fn key_bytes<'a>(&self, map: &Map) -> Result<&'a [u8], Failure> {
        // SAFETY: the caller promises it.
        unsafe { bytes(self.key, map.key_size(), "key") }
    }

    /// `BPF_MAP_LOOKUP_ELEM`
    ///
    /// # Safety
    /// Key and room have the sizes of the map.
    unsafe fn lookup(&self, map: &Map) -> Result<c_int, Failure> {
        let mut value = vec![0; map.system_calls().value_len()];
        // SAFETY: the caller promises the key.
        let key = unsafe { self.key_bytes(map) }?;
        done(map, map.system_calls().lookup(key, &mut value, self.flags))?;
        // SAFETY: the caller promises the room.
        unsafe { write(&value, self.out, "value") }?;
        Ok(0)
    }

    /// `BPF_MAP_LOOKUP_AND_DELETE_ELEM`
    ///
    /// # Safety
    /// Key and room have the sizes of the map.
    unsafe fn take(&self, map: &Map) -> Result<c_int, Failure> {
        let mut value = vec![0; map.system_calls().value_len()];
        if self.out.is_null() && !value.is_empty() {
            // The value would be lost.
            return Err(Failure::argument("value is NULL"));
        }
        // SAFETY: the caller promises the key.
        let key = unsafe { self.key_bytes(map) }?;
        done(
            map,
            map.system_calls()
                .lookup_and_delete(key, &mut value, self.flags),
        )?;
        // SAFETY: the caller promises the room.
        unsafe { write(&value, self.out, "value") }?;
        Ok(0)
    }

    /// `BPF_MAP_UPDATE_ELEM`: values of maps of programs and of maps are their handles.
    ///
    /// # Safety
    /// Key and value have the sizes of the map.
    unsafe fn update(&self, map: &Map) -> Result<c_int, Failure> {
        // SAFETY: the caller promises the key.
        let key = unsafe { self.key_bytes(map) }?;
        // SAFETY: the caller promises the value.
        let value = unsafe { bytes(self.value, map.system_calls().value_len(), "value") }?;
        let handle = || <[u8; 4]>::try_from(value).map(c_int::from_ne_bytes);
        match map.kind() {
            MapKind::ProgArray => {
                let (index, handle) = (index(key)?, handle().unwrap_or(-1));
                map.set_program(index, Some(&handles::program(handle)?))?;
            }
            MapKind::ArrayOfMaps | MapKind::HashOfMaps => {
                map.set_inner_bytes(key, &handles::map(handle().unwrap_or(-1))?)?;
            }
            _ => done(map, map.system_calls().update(key, value, self.flags))?,
        }
        Ok(0)
    }

    /// `BPF_MAP_DELETE_ELEM`
    ///
    /// # Safety
    /// The key has the size of the map's.
    unsafe fn delete(&self, map: &Map) -> Result<c_int, Failure> {
        // SAFETY: the caller promises the key.
        let key = unsafe { self.key_bytes(map) }?;
        match map.kind() {
            MapKind::ProgArray => map.set_program(index(key)?, None)?,
            _ => done(map, map.system_calls().delete(key))?,
        }
        Ok(0)
    }

    /// `BPF_MAP_GET_NEXT_KEY`; the first key after NULL.
    ///
    /// # Safety
    /// Key and room have the size of the map's keys; they may be one.
    unsafe fn next_key(&self, map: &Map) -> Result<c_int, Failure> {
        let mut next = vec![0; map.key_size()];
        let key = match self.key.is_null() {
            true => None,
            // SAFETY: the caller promises the key.
            false => Some(unsafe { self.key_bytes(map) }?),
        };
        done(map, map.system_calls().next_key(key, &mut next))?;
        // SAFETY: the caller promises the room; `key` is not used again.
        unsafe { write(&next, self.out, "next_key") }?;
        Ok(0)
    }
}

/// The index that the key of an array is.
fn index(key: &[u8]) -> Result<u32, Failure> {
    let key = <[u8; 4]>::try_from(key);
    let key = key.map_err(|_| Failure::argument("the key of this map is no index"))?;
    Ok(u32::from_ne_bytes(key))
}

/// The result of an operation of bpf(2).
fn done(map: &Map, result: Result<(), beebox::Errno>) -> Result<(), Failure> {
    result.map_err(|errno| Failure::new(errno.0, format!("map {}: {errno}", map.name())))
}

/// A loaded map, for keys and values of these sizes.
///
/// # Safety
/// `map` is null or a map of an object.
unsafe fn sized<'a>(
    map: *const beebox_map,
    key_size: Option<usize>,
    value_size: Option<usize>,
) -> Result<&'a Map, Failure> {
    // SAFETY: the caller promises a map.
    let map = unsafe { shared(map, "map") }?.loaded()?;
    let check = |what: &str, given: Option<usize>, size: usize| match given {
        Some(given) if given != size => {
            let name = map.name();
            let what = format!("{what} is {given}; of map {name} it is {size}");
            Err(Failure::argument(what))
        }
        _ => Ok(()),
    };
    check("key_sz", key_size, map.key_size())?;
    check("value_sz", value_size, map.system_calls().value_len())?;
    Ok(map)
}

/// Reads the value of a key, of a per-CPU map the values of all CPUs, each rounded up to 8 bytes.
///
/// Returns 0 or the negative error number: -ENOENT for no such key, -EBADF for a handle that is closed.
///
/// `key` and `value` point to as many bytes as the map's keys and values have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_lookup_elem(
    fd: c_int,
    key: *const c_void,
    value: *mut c_void,
) -> c_int {
    // SAFETY: the caller promises the sizes.
    unsafe { beebox_map_lookup_elem_flags(fd, key, value, 0) }
}

/// As `beebox_map_lookup_elem`, with flags (`BPF_F_LOCK`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_lookup_elem_flags(
    fd: c_int,
    key: *const c_void,
    value: *mut c_void,
    flags: u64,
) -> c_int {
    let out = value;
    let element = Element {
        out,
        flags,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the sizes.
    number(|| unsafe { element.lookup(&handles::map(fd)?) })
}

/// Adds or changes an element, as the flags allow (`BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`,
/// `BPF_F_LOCK`). The value of a program array is the handle of a program, that of a map of maps the
/// handle of a map.
///
/// `key` and `value` point to as many bytes as the map's keys and values have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_update_elem(
    fd: c_int,
    key: *const c_void,
    value: *const c_void,
    flags: u64,
) -> c_int {
    let element = Element {
        value,
        flags,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the sizes.
    number(|| unsafe { element.update(&handles::map(fd)?) })
}

/// Removes an element.
///
/// `key` points to as many bytes as the map's keys have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_delete_elem(fd: c_int, key: *const c_void) -> c_int {
    // SAFETY: the caller promises the size.
    number(|| unsafe { Element::key(key).delete(&handles::map(fd)?) })
}

/// Reads the value of a key and removes the element; of queues and stacks, whose key is NULL, the next
/// one.
///
/// `key` and `value` point to as many bytes as the map's keys and values have.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_lookup_and_delete_elem(
    fd: c_int,
    key: *const c_void,
    value: *mut c_void,
) -> c_int {
    let out = value;
    let element = Element {
        out,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the sizes.
    number(|| unsafe { element.take(&handles::map(fd)?) })
}

/// Reads the key after `key` in the order of iteration, the first one after NULL; -ENOENT after the
/// last.
///
/// `key` and `next_key` point to as many bytes as the map's keys have; they may be one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_get_next_key(
    fd: c_int,
    key: *const c_void,
    next_key: *mut c_void,
) -> c_int {
    let out = next_key;
    let element = Element {
        out,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the sizes.
    number(|| unsafe { element.next_key(&handles::map(fd)?) })
}

/// As `beebox_map_lookup_elem_flags`, with the sizes of key and value, which are checked.
///
/// `key` and `value` point to as many bytes as their sizes say.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__lookup_elem(
    map: *const beebox_map,
    key: *const c_void,
    key_sz: usize,
    value: *mut c_void,
    value_sz: usize,
    flags: u64,
) -> c_int {
    let out = value;
    let element = Element {
        out,
        flags,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the map and the sizes.
    number(|| unsafe { element.lookup(sized(map, Some(key_sz), Some(value_sz))?) })
}

/// As `beebox_map_update_elem`, with the sizes of key and value, which are checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__update_elem(
    map: *const beebox_map,
    key: *const c_void,
    key_sz: usize,
    value: *const c_void,
    value_sz: usize,
    flags: u64,
) -> c_int {
    let element = Element {
        value,
        flags,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the map and the sizes.
    number(|| unsafe { element.update(sized(map, Some(key_sz), Some(value_sz))?) })
}

/// As `beebox_map_delete_elem`, with the size of the key, which is checked; `flags` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__delete_elem(
    map: *const beebox_map,
    key: *const c_void,
    key_sz: usize,
    flags: u64,
) -> c_int {
    number(|| match flags {
        // SAFETY: the caller promises the map and the sizes.
        0 => unsafe { Element::key(key).delete(sized(map, Some(key_sz), None)?) },
        _ => Err(Failure::argument("flags of a deletion are 0")),
    })
}

/// As `beebox_map_lookup_and_delete_elem`, with flags and the sizes of key and value, which are checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__lookup_and_delete_elem(
    map: *const beebox_map,
    key: *const c_void,
    key_sz: usize,
    value: *mut c_void,
    value_sz: usize,
    flags: u64,
) -> c_int {
    let out = value;
    let element = Element {
        out,
        flags,
        ..Element::key(key)
    };
    // SAFETY: the caller promises the map and the sizes.
    number(|| unsafe { element.take(sized(map, Some(key_sz), Some(value_sz))?) })
}

/// As `beebox_map_get_next_key`, with the size of the keys, which is checked.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map__get_next_key(
    map: *const beebox_map,
    cur_key: *const c_void,
    next_key: *mut c_void,
    key_sz: usize,
) -> c_int {
    let out = next_key;
    let element = Element {
        out,
        ..Element::key(cur_key)
    };
    // SAFETY: the caller promises the map and the sizes.
    number(|| unsafe { element.next_key(sized(map, Some(key_sz), None)?) })
}
