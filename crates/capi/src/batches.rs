//! Operations on several elements of maps, by libbpf's names.

use std::ffi::{c_int, c_void};
use std::ptr;

use beebox::{Errno, Map};

use crate::boundary::{Failure, bytes, exclusive, number, write};
use crate::handles;

/// The structure of libbpf's batch operations, field by field.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct bpf_map_batch_opts {
    /// Size of the structure as the caller knows it.
    pub sz: usize,
    /// Flags of each element (`BPF_F_LOCK`).
    pub elem_flags: u64,
    /// Flags of the operation: 0.
    pub flags: u64,
}

/// The flags of each element.
///
/// # Safety
/// The pointer is null or points to as many bytes as `sz`, in its first word, says.
unsafe fn element_flags(opts: *const bpf_map_batch_opts) -> Result<u64, Failure> {
    if opts.is_null() {
        return Ok(0);
    }
    // SAFETY: the caller promises the first word at least.
    let size = unsafe { opts.cast::<usize>().read_unaligned() };
    if size != size_of::<bpf_map_batch_opts>() {
        let what = format!("opts->sz is {size}: it is sizeof(struct bpf_map_batch_opts)");
        return Err(Failure::argument(what));
    }
    // SAFETY: the caller promises `size` bytes, which are the structure.
    let opts = unsafe { opts.read_unaligned() };
    match opts.flags {
        0 => Ok(opts.elem_flags),
        _ => Err(Failure::argument("opts->flags is not 0")),
    }
}

/// The failure of an operation that ended with an error.
fn ended(map: &Map, end: Option<Errno>) -> Result<c_int, Failure> {
    match end {
        None => Ok(0),
        Some(errno) => Err(refused(map, errno)),
    }
}

fn refused(map: &Map, errno: Errno) -> Failure {
    Failure::new(errno.0, format!("map {}: {errno}", map.name()))
}

/// Bytes of so many keys and values.
fn sizes(map: &Map, count: u32) -> Result<(usize, usize), Failure> {
    let of = |size: usize| size.checked_mul(count as usize);
    let sizes = of(map.key_size()).zip(of(map.system_calls().value_len()));
    sizes.ok_or_else(|| Failure::new(libc::E2BIG, format!("{count} elements are too many")))
}

/// What a caller gives for a lookup.
struct Lookup {
    from: *const c_void,
    next: *mut c_void,
    keys: *mut c_void,
    values: *mut c_void,
    count: *mut u32,
    deletes: bool,
}

impl Lookup {
    /// `BPF_MAP_LOOKUP_BATCH` and `BPF_MAP_LOOKUP_AND_DELETE_BATCH`
    ///
    /// # Safety
    /// As [`beebox_map_lookup_batch`] says.
    unsafe fn run(&self, fd: c_int, opts: *const bpf_map_batch_opts) -> Result<c_int, Failure> {
        let map = handles::map(fd)?;
        // SAFETY: the caller promises the structure and the number.
        let (flags, count) = unsafe { (element_flags(opts)?, exclusive(self.count, "count")?) };
        // A map has no more elements than that, whatever there is room for.
        let most = (*count).min(map.max_entries());
        *count = 0;
        if most == 0 {
            return Ok(0);
        }
        let (key_bytes, value_bytes) = sizes(&map, most)?;
        if [self.next, self.keys, self.values].contains(&ptr::null_mut()) {
            return Err(Failure::argument("out_batch, keys or values is NULL"));
        }
        // The place in a hash is a bucket.
        let place = match map.kind().has_buckets() {
            true => 4,
            false => map.key_size(),
        };
        let from = match self.from.is_null() {
            true => None,
            // SAFETY: the caller promises what an operation before has written.
            false => Some(unsafe { bytes(self.from, place, "in_batch") }?),
        };
        let (mut keys, mut values) = (vec![0; key_bytes], vec![0; value_bytes]);
        let calls = map.system_calls();
        let read = calls.lookup_batch(from, &mut keys, &mut values, flags, self.deletes);
        let read = read.map_err(|errno| refused(&map, errno))?;
        let (key_len, value_len) = (map.key_size(), calls.value_len());
        // SAFETY: the caller promises room for as many elements as `count` said, and for a place.
        unsafe {
            write(&keys[..read.count * key_len], self.keys, "keys")?;
            write(&values[..read.count * value_len], self.values, "values")?;
            write(&read.next.unwrap_or_default(), self.next, "out_batch")?;
        }
        *count = read.count as u32;
        ended(&map, read.end)
    }
}

/// Reads several elements, from where the operation before ended: `in_batch` is NULL for the first one,
/// then what `out_batch` got. `count` has the number of elements that there is room for, then of those
/// that were read.
///
/// Returns 0 or the negative error number: -ENOENT behind the last element, which may be with some that
/// were read.
///
/// `keys` and `values` have room for `count` of the map's; `out_batch` for a key, and for 4 bytes at
/// least.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_lookup_batch(
    fd: c_int,
    in_batch: *mut c_void,
    out_batch: *mut c_void,
    keys: *mut c_void,
    values: *mut c_void,
    count: *mut u32,
    opts: *const bpf_map_batch_opts,
) -> c_int {
    let deletes = false;
    let (from, next) = (in_batch.cast_const(), out_batch);
    let lookup = Lookup {
        from,
        next,
        keys,
        values,
        count,
        deletes,
    };
    // SAFETY: the caller promises it.
    number(|| unsafe { lookup.run(fd, opts) })
}

/// As `beebox_map_lookup_batch`, and removes the elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_lookup_and_delete_batch(
    fd: c_int,
    in_batch: *mut c_void,
    out_batch: *mut c_void,
    keys: *mut c_void,
    values: *mut c_void,
    count: *mut u32,
    opts: *const bpf_map_batch_opts,
) -> c_int {
    let deletes = true;
    let (from, next) = (in_batch.cast_const(), out_batch);
    let lookup = Lookup {
        from,
        next,
        keys,
        values,
        count,
        deletes,
    };
    // SAFETY: the caller promises it.
    number(|| unsafe { lookup.run(fd, opts) })
}

/// Adds or changes several elements until one fails; `count` has the number of those that were.
///
/// `keys` and `values` point to `count` of the map's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_update_batch(
    fd: c_int,
    keys: *const c_void,
    values: *const c_void,
    count: *mut u32,
    opts: *const bpf_map_batch_opts,
) -> c_int {
    number(|| {
        let map = handles::map(fd)?;
        // SAFETY: the caller promises the structure, the number and as many elements.
        let (flags, count) = unsafe { (element_flags(opts)?, exclusive(count, "count")?) };
        let (key_bytes, value_bytes) = sizes(&map, std::mem::take(count))?;
        // SAFETY: as above.
        let (keys, values) = unsafe {
            (
                bytes(keys, key_bytes, "keys")?,
                bytes(values, value_bytes, "values")?,
            )
        };
        let done = map.update_batch(keys, values, flags);
        let done = done.map_err(|errno| refused(&map, errno))?;
        *count = done.count as u32;
        ended(&map, done.end)
    })
}

/// Removes several elements until one fails; `count` has the number of those that were.
///
/// `keys` points to `count` of the map's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_map_delete_batch(
    fd: c_int,
    keys: *const c_void,
    count: *mut u32,
    opts: *const bpf_map_batch_opts,
) -> c_int {
    number(|| {
        let map = handles::map(fd)?;
        // SAFETY: the caller promises the structure, the number and as many keys.
        let count = unsafe {
            element_flags(opts)?;
            exclusive(count, "count")?
        };
        let (key_bytes, _) = sizes(&map, std::mem::take(count))?;
        // SAFETY: as above.
        let keys = unsafe { bytes(keys, key_bytes, "keys") }?;
        let done = map.system_calls().delete_batch(keys);
        let done = done.map_err(|errno| refused(&map, errno))?;
        *count = done.count as u32;
        ended(&map, done.end)
    })
}
