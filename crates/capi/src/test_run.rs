//! Runs as `BPF_PROG_TEST_RUN` does, with libbpf's structure.

use std::ffi::{c_int, c_void};
use std::mem::offset_of;
use std::ptr::{self, addr_of_mut};

use beebox::{Program, TestRun};

use crate::boundary::{self, Failure, number, shared};
use crate::program::beebox_program;
use crate::{handles, printed};

/// The structure of libbpf's `bpf_prog_test_run_opts`, field by field.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct bpf_test_run_opts {
    /// Size of the structure as the caller knows it: fields behind it are 0, and are not written.
    pub sz: usize,
    /// The packet; NULL for none.
    pub data_in: *const c_void,
    /// Room for the packet after the runs; NULL for none.
    pub data_out: *mut c_void,
    /// Bytes of the packet.
    pub data_size_in: u32,
    /// In: bytes of that room; 0 is as many as the packet takes, as in Linux. Out: bytes of the packet.
    pub data_size_out: u32,
    /// The context; NULL for none.
    pub ctx_in: *const c_void,
    /// Room for the context after the runs; NULL for none.
    pub ctx_out: *mut c_void,
    /// Bytes of the context.
    pub ctx_size_in: u32,
    /// In: bytes of that room. Out: bytes of the context.
    pub ctx_size_out: u32,
    /// Out: return value of the last run.
    pub retval: u32,
    /// Number of runs; 0 is 1.
    pub repeat: c_int,
    /// Out: mean time of a run in nanoseconds.
    pub duration: u32,
    /// `BPF_F_TEST_…`.
    pub flags: u32,
    /// The CPU that the program runs on.
    pub cpu: u32,
    /// Packets of a batch of live frames, which are not supported: 0.
    pub batch_size: u32,
}

/// Where each field ends: a size between two of them has the fields in front of it.
const ENDS: [usize; 14] = [
    offset_of!(bpf_test_run_opts, data_in),
    offset_of!(bpf_test_run_opts, data_out),
    offset_of!(bpf_test_run_opts, data_size_in),
    offset_of!(bpf_test_run_opts, data_size_out),
    offset_of!(bpf_test_run_opts, ctx_in),
    offset_of!(bpf_test_run_opts, ctx_out),
    offset_of!(bpf_test_run_opts, ctx_size_in),
    offset_of!(bpf_test_run_opts, ctx_size_out),
    offset_of!(bpf_test_run_opts, retval),
    offset_of!(bpf_test_run_opts, repeat),
    offset_of!(bpf_test_run_opts, duration),
    offset_of!(bpf_test_run_opts, flags),
    offset_of!(bpf_test_run_opts, cpu),
    offset_of!(bpf_test_run_opts, batch_size),
];

/// Larger structures are no options: Linux takes none larger than a page either.
const LARGEST: usize = 4096;

/// The caller's structure.
pub(crate) struct Options {
    place: *mut bpf_test_run_opts,
    /// Its fields, 0 where the caller has none.
    pub(crate) fields: bpf_test_run_opts,
    /// Bytes of whole fields that the caller has.
    known: usize,
}

impl Options {
    /// Reads it by libbpf's rules: fields that the caller does not know are 0, what it knows in
    /// addition must be 0. NULL has no fields.
    ///
    /// # Safety
    /// The pointer is null or points to as many bytes as `sz`, in its first word, says.
    pub(crate) unsafe fn read(place: *mut bpf_test_run_opts) -> Result<Options, Failure> {
        const SIZE: usize = size_of::<bpf_test_run_opts>();
        // SAFETY: null pointers and zeros are values of the fields.
        let mut fields: bpf_test_run_opts = unsafe { std::mem::zeroed() };
        if place.is_null() {
            let known = 0;
            return Ok(Options {
                place,
                fields,
                known,
            });
        }
        // SAFETY: the caller promises the first word at least.
        let size = unsafe { place.cast::<usize>().read_unaligned() };
        if !(size_of::<usize>()..=LARGEST).contains(&size) {
            let what = format!("opts->sz is {size}: it is sizeof(struct bpf_test_run_opts)");
            return Err(Failure::argument(what));
        }
        // SAFETY: the caller promises `size` bytes.
        let all = unsafe { boundary::bytes(place.cast_const().cast(), size, "opts") }?;
        if all[size.min(SIZE)..].iter().any(|byte| *byte != 0) {
            let what = format!("opts has fields behind byte {SIZE}, which Beebox does not know");
            return Err(Failure::argument(what));
        }
        let whole = ENDS.iter().rev().find(|end| **end <= size);
        let known = match size >= SIZE {
            true => SIZE,
            false => *whole.unwrap_or(&0),
        };
        // SAFETY: `known` bytes are in both structures; any bytes are values of the fields.
        unsafe { ptr::copy_nonoverlapping(all.as_ptr(), addr_of_mut!(fields).cast(), known) };
        Ok(Options {
            place,
            fields,
            known,
        })
    }

    /// Writes a field at an offset, if the caller has it.
    ///
    /// # Safety
    /// The field at the offset is an `u32`; the structure may be written.
    unsafe fn set(&mut self, offset: usize, value: u32) {
        if offset + size_of::<u32>() <= self.known {
            // SAFETY: the caller of `read` promised `known` bytes, and the field is within them.
            unsafe {
                self.place
                    .byte_add(offset)
                    .cast::<u32>()
                    .write_unaligned(value)
            };
        }
    }

    /// Writes the return value, the time, and the packet after a run: as many bytes of it as there is
    /// room for.
    ///
    /// # Safety
    /// The structure may be written, and its pointers point to the room that it says.
    pub(crate) unsafe fn put_packet(
        &mut self,
        retval: u32,
        nanoseconds: u32,
        packet: &[u8],
    ) -> Result<(), Failure> {
        let room = self.fields.data_size_out;
        // SAFETY: the caller promises the structure and its room; the fields are `u32`.
        unsafe {
            put_part(packet, self.fields.data_out, room)?;
            self.set(
                offset_of!(bpf_test_run_opts, data_size_out),
                packet.len() as u32,
            );
            self.set(offset_of!(bpf_test_run_opts, retval), retval);
            self.set(offset_of!(bpf_test_run_opts, duration), nanoseconds);
        }
        fits("data_size_out", packet, room)
    }

    /// Writes the context after a run, if there is room for one.
    ///
    /// # Safety
    /// As [`Options::put_packet`].
    unsafe fn put_context(&mut self, context: &[u8]) -> Result<(), Failure> {
        let room = self.fields.ctx_size_out;
        if self.fields.ctx_out.is_null() {
            return Ok(());
        }
        // SAFETY: the caller promises the structure and its room; the field is an `u32`.
        unsafe {
            put_part(context, self.fields.ctx_out, room)?;
            self.set(
                offset_of!(bpf_test_run_opts, ctx_size_out),
                context.len() as u32,
            );
        }
        fits("ctx_size_out", context, room)
    }
}

/// Writes as many bytes as there is room for; no room is no limit, as in Linux.
///
/// # Safety
/// `out` is null or points to that room.
unsafe fn put_part(bytes: &[u8], out: *mut c_void, room: u32) -> Result<(), Failure> {
    if out.is_null() {
        return Ok(());
    }
    let len = match room {
        0 => bytes.len(),
        room => bytes.len().min(room as usize),
    };
    // SAFETY: the caller promises the room.
    unsafe { boundary::write(&bytes[..len], out, "data_out") }
}

/// `ENOSPC` if something does not fit.
fn fits(what: &str, bytes: &[u8], room: u32) -> Result<(), Failure> {
    match room == 0 || bytes.len() <= room as usize {
        true => Ok(()),
        false => {
            let len = bytes.len();
            let what = format!("opts->{what} is {room}, and there are {len} bytes");
            Err(Failure::new(libc::ENOSPC, what))
        }
    }
}

/// Runs a program as libbpf's `bpf_prog_test_run_opts` has Linux run it.
///
/// # Safety
/// `opts` is null or points to the structure, whose pointers point to as many bytes as it says.
unsafe fn run(program: &Program, opts: *mut bpf_test_run_opts) -> Result<c_int, Failure> {
    // SAFETY: the caller promises the structure.
    let mut options = unsafe { Options::read(opts) }?;
    let fields = options.fields;
    let has_pair = |pointer: *const c_void, size: u32| pointer.is_null() == (size == 0);
    if !has_pair(fields.ctx_in, fields.ctx_size_in) {
        return Err(Failure::argument(
            "opts->ctx_in and ctx_size_in go together",
        ));
    }
    if !has_pair(fields.ctx_out, fields.ctx_size_out) {
        return Err(Failure::argument(
            "opts->ctx_out and ctx_size_out go together",
        ));
    }
    let repeat = u32::try_from(fields.repeat);
    let repeat = repeat.map_err(|_| Failure::argument("opts->repeat is negative"))?;
    // SAFETY: the caller promises the bytes.
    let (packet, context) = unsafe {
        (
            boundary::bytes(
                fields.data_in,
                fields.data_size_in as usize,
                "opts->data_in",
            )?,
            boundary::bytes(fields.ctx_in, fields.ctx_size_in as usize, "opts->ctx_in")?,
        )
    };
    let mut run = TestRun::packet(packet)
        .ctx_in(context)
        .repeat(repeat)
        .flags(fields.flags)
        .cpu(fields.cpu)
        .batch_size(fields.batch_size);
    run.keep_records = true;
    let result = program.test_run(&run)?;
    printed::keep(&result.printk);
    let nanoseconds = u32::try_from(result.duration.as_nanos()).unwrap_or(u32::MAX);
    // SAFETY: the caller promises the structure and its room.
    unsafe {
        options.put_packet(result.retval, nanoseconds, &result.data_out)?;
        options.put_context(&result.ctx_out)?;
    }
    Ok(0)
}

/// Runs a program by its handle, as `bpf_prog_test_run_opts` has Linux run it: with the structure of
/// libbpf, whose `sz` is its size.
///
/// Returns 0 or the negative error number: -ENOSPC if data_out or ctx_out is too small for all that
/// there is, with the part that fits written; -ETIMEDOUT for a run that ends at a limit. Records stay
/// in their buffers; `beebox_last_printk` has what was printed; a random number, a time (0) and a CPU are those of the object's settings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_prog_test_run_opts(
    prog_fd: c_int,
    opts: *mut bpf_test_run_opts,
) -> c_int {
    // SAFETY: the caller promises the structure.
    number(|| unsafe { run(&handles::program(prog_fd)?, opts) })
}

/// As `beebox_prog_test_run_opts`, of the program itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_program__test_run(
    prog: *const beebox_program,
    opts: *mut bpf_test_run_opts,
) -> c_int {
    // SAFETY: the caller promises a program and the structure.
    number(|| unsafe { run(shared(prog, "prog")?.loaded()?, opts) })
}
