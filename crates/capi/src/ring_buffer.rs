//! Records of ring buffers, by libbpf's names.

use std::ffi::{c_int, c_void};

use beebox::{Map, MapKind};

use crate::boundary::{self, Failure, exclusive, number, owned, pointer};
use crate::handles;

/// A function of the caller for each record, as libbpf's `ring_buffer_sample_fn`: a negative number
/// ends the loop.
#[allow(non_camel_case_types)]
pub type beebox_ring_buffer_sample_fn =
    Option<unsafe extern "C" fn(ctx: *mut c_void, data: *mut c_void, size: usize) -> c_int>;

/// Ring buffers with functions for their records.
#[allow(non_camel_case_types)]
pub struct beebox_ring_buffer(Vec<Ring>);

struct Ring {
    map: Map,
    sample: unsafe extern "C" fn(*mut c_void, *mut c_void, usize) -> c_int,
    ctx: *mut c_void,
}

impl Ring {
    fn new(
        fd: c_int,
        sample: beebox_ring_buffer_sample_fn,
        ctx: *mut c_void,
    ) -> Result<Ring, Failure> {
        let map = handles::map(fd)?;
        if map.kind() != MapKind::Ringbuf {
            let what = format!("map {} is no ring buffer", map.name());
            return Err(Failure::argument(what));
        }
        let sample = sample.ok_or_else(|| Failure::argument("sample_cb is NULL"))?;
        Ok(Ring { map, sample, ctx })
    }
}

/// Makes a reader of a ring buffer, or NULL: `sample_cb` is called for each record; `opts` is NULL.
///
/// `sample_cb` may be called with `ctx` by `beebox_ring_buffer__consume`, and returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_ring_buffer__new(
    map_fd: c_int,
    sample_cb: beebox_ring_buffer_sample_fn,
    ctx: *mut c_void,
    opts: *const c_void,
) -> *mut beebox_ring_buffer {
    pointer(|| match opts.is_null() {
        true => Ok(owned(beebox_ring_buffer(vec![Ring::new(
            map_fd, sample_cb, ctx,
        )?]))),
        false => Err(Failure::argument("opts is not NULL")),
    })
}

/// Adds another ring buffer to a reader.
///
/// `sample_cb` as `beebox_ring_buffer__new`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_ring_buffer__add(
    rb: *mut beebox_ring_buffer,
    map_fd: c_int,
    sample_cb: beebox_ring_buffer_sample_fn,
    ctx: *mut c_void,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a reader that nothing else uses.
        let rb = unsafe { exclusive(rb, "rb") }?;
        rb.0.push(Ring::new(map_fd, sample_cb, ctx)?);
        Ok(0)
    })
}

/// Takes the records that wait, and calls the function for each. Returns their number, or what the
/// function returned if that is negative: the records behind that one are lost.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_ring_buffer__consume(rb: *mut beebox_ring_buffer) -> c_int {
    let consume = || {
        // SAFETY: the caller promises a reader that nothing else uses.
        let rb = unsafe { exclusive(rb, "rb") }?;
        let mut records = 0;
        for ring in &rb.0 {
            for mut record in ring.map.take_records(0) {
                let (data, size) = (record.bytes.as_mut_ptr().cast(), record.bytes.len());
                // SAFETY: the caller promised a function that takes its context and a record.
                let answer = unsafe { (ring.sample)(ring.ctx, data, size) };
                if answer < 0 {
                    return Ok(answer);
                }
                records += 1;
            }
        }
        Ok(records)
    };
    number(consume)
}

/// As `beebox_ring_buffer__consume`: nothing is waited for, since programs run in calls alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_ring_buffer__poll(
    rb: *mut beebox_ring_buffer,
    timeout_ms: c_int,
) -> c_int {
    let _ = timeout_ms;
    // SAFETY: the caller promises a reader that nothing else uses.
    unsafe { beebox_ring_buffer__consume(rb) }
}

/// Frees a reader. NULL does nothing.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_ring_buffer__free(rb: *mut beebox_ring_buffer) {
    // SAFETY: the caller promises a reader and its end.
    unsafe { boundary::free(rb) }
}
