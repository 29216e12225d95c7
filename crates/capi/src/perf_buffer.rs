//! Records of perf buffers, by libbpf's names.

use std::ffi::{c_int, c_void};

use beebox::{Map, MapKind};

use crate::boundary::{self, Failure, exclusive, number, owned, pointer};
use crate::handles;

/// A function of the caller for each record, as libbpf's `perf_buffer_sample_fn`.
#[allow(non_camel_case_types)]
pub type beebox_perf_buffer_sample_fn =
    Option<unsafe extern "C" fn(ctx: *mut c_void, cpu: c_int, data: *mut c_void, size: u32)>;

/// A function of the caller for records that had no room, as libbpf's `perf_buffer_lost_fn`.
#[allow(non_camel_case_types)]
pub type beebox_perf_buffer_lost_fn =
    Option<unsafe extern "C" fn(ctx: *mut c_void, cpu: c_int, cnt: u64)>;

/// The perf buffers of a map with functions for their records.
#[allow(non_camel_case_types)]
pub struct beebox_perf_buffer {
    map: Map,
    sample: unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, u32),
    lost: beebox_perf_buffer_lost_fn,
    ctx: *mut c_void,
    /// Records of each CPU that had no room and were told.
    told: Vec<u64>,
}

impl beebox_perf_buffer {
    /// Tells what waits; the number of records.
    fn consume(&mut self) -> c_int {
        let mut records = 0;
        for (cpu, told) in self.told.iter_mut().enumerate() {
            let lost = self.map.lost_records(cpu as u32);
            if let (Some(tell), 1..) = (self.lost, lost - *told) {
                // SAFETY: the caller promised a function that takes its context.
                unsafe { tell(self.ctx, cpu as c_int, lost - *told) };
            }
            *told = lost;
            for mut record in self.map.take_records(cpu as u32) {
                let (data, size) = (record.bytes.as_mut_ptr(), record.bytes.len() as u32);
                // SAFETY: the caller promised a function that takes its context and a record.
                unsafe { (self.sample)(self.ctx, cpu as c_int, data.cast(), size) };
                records += 1;
            }
        }
        records
    }
}

/// Makes a reader of the perf buffers of a `perf_event_array`, one of each CPU, or NULL: `sample_cb` is
/// called for each record, `lost_cb`, which may be NULL, for those that had no room; `opts` is NULL.
///
/// The buffers are there if `beebox_object__set_perf_buffers` was called before the object was loaded;
/// `page_cnt` is a power of two, as in Linux, and their size is that of the call.
///
/// `sample_cb` and `lost_cb` may be called with `ctx` by `beebox_perf_buffer__consume`, and return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_perf_buffer__new(
    map_fd: c_int,
    page_cnt: usize,
    sample_cb: beebox_perf_buffer_sample_fn,
    lost_cb: beebox_perf_buffer_lost_fn,
    ctx: *mut c_void,
    opts: *const c_void,
) -> *mut beebox_perf_buffer {
    pointer(|| {
        let map = handles::map(map_fd)?;
        let name = map.name();
        if map.kind() != MapKind::PerfEventArray {
            return Err(Failure::argument(format!("map {name} is no perf buffer")));
        }
        if !map.has_perf_buffers() {
            let what = "beebox_object__set_perf_buffers was not called before loading";
            return Err(Failure::argument(format!(
                "map {name} has no buffers: {what}"
            )));
        }
        if !page_cnt.is_power_of_two() {
            let what = format!("page_cnt is {page_cnt}, which is no power of two");
            return Err(Failure::argument(what));
        }
        if !opts.is_null() {
            return Err(Failure::argument("opts is not NULL"));
        }
        let sample = sample_cb.ok_or_else(|| Failure::argument("sample_cb is NULL"))?;
        let told = vec![0; map.instance().cpus() as usize];
        Ok(owned(beebox_perf_buffer {
            map,
            sample,
            lost: lost_cb,
            ctx,
            told,
        }))
    })
}

/// Takes the records that wait, CPU by CPU, and calls the functions for them. Returns their number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_perf_buffer__consume(pb: *mut beebox_perf_buffer) -> c_int {
    // SAFETY: the caller promises a reader that nothing else uses.
    number(|| Ok(unsafe { exclusive(pb, "pb") }?.consume()))
}

/// As `beebox_perf_buffer__consume`: nothing is waited for, since programs run in calls alone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_perf_buffer__poll(
    pb: *mut beebox_perf_buffer,
    timeout_ms: c_int,
) -> c_int {
    let _ = timeout_ms;
    // SAFETY: the caller promises a reader that nothing else uses.
    unsafe { beebox_perf_buffer__consume(pb) }
}

/// Frees a reader. NULL does nothing.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_perf_buffer__free(pb: *mut beebox_perf_buffer) {
    // SAFETY: the caller promises a reader and its end.
    unsafe { boundary::free(pb) }
}
