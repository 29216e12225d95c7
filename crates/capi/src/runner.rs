//! Runs of one program on packet after packet, in memory that is kept.

use std::borrow::Cow;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::Arc;

use beebox::{Program, Runner};

use crate::boundary::{
    self, Failure, bytes, exclusive, number, owned, pointer, put, shared, value,
};
use crate::printed::lines;
use crate::program::beebox_program;
use crate::test_run::{Options, bpf_test_run_opts};

/// A runner: one thread uses it at a time. It may outlive its object.
#[allow(non_camel_case_types)]
pub struct beebox_runner {
    /// Borrows from `program`, in front of which it is dropped.
    runner: Runner<'static>,
    /// The packet after a run, if it is not in one piece.
    packet: Vec<u8>,
    /// What the last run printed.
    printed: CString,
    _program: Arc<Program>,
}

impl beebox_runner {
    fn new(program: &Program, cpu: u32) -> Result<beebox_runner, Failure> {
        let cpus = program.instance().cpus();
        if cpu >= cpus {
            let what = format!("cpu is {cpu}, and the object has {cpus} possible CPUs");
            return Err(Failure::argument(what));
        }
        let program = Arc::new(program.clone());
        // SAFETY: the program stays at one place, unchanged, as long as the structure lives, which
        // drops the runner first and lends it to nobody.
        let borrowed: &'static Program = unsafe { &*Arc::as_ptr(&program) };
        Ok(beebox_runner {
            runner: borrowed.runner_on(cpu),
            packet: Vec::new(),
            printed: CString::default(),
            _program: program,
        })
    }
}

/// Makes a runner of a loaded program on a CPU, which `beebox_runner__free` frees; NULL if the object
/// has not so many CPUs (`beebox_object__set_cpus`).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_runner__new(
    prog: *const beebox_program,
    cpu: u32,
) -> *mut beebox_runner {
    pointer(|| {
        // SAFETY: the caller promises a program.
        let program = unsafe { shared(prog, "prog") }?.loaded()?;
        Ok(owned(beebox_runner::new(program, cpu)?))
    })
}

/// Runs the program on a packet of any length, and writes its return value to `retval`. This is the
/// call for hot loops: it allocates nothing.
///
/// `data` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_runner__run(
    runner: *mut beebox_runner,
    data: *const c_void,
    size: usize,
    retval: *mut u32,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a runner of this thread, and the packet.
        let (own, packet) = unsafe { (exclusive(runner, "runner")?, bytes(data, size, "data")?) };
        let result = own.runner.run(packet)?;
        // SAFETY: the caller promises room for a number.
        unsafe { put(result.retval, retval, "retval") }?;
        Ok(0)
    })
}

/// The packet as the last run left it, until the next one.
///
/// `data` and `size` point to room for them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_runner__packet(
    runner: *mut beebox_runner,
    data: *mut *const c_void,
    size: *mut usize,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a runner of this thread.
        let own = unsafe { exclusive(runner, "runner") }?;
        let packet = match own.runner.packet() {
            Cow::Borrowed(packet) => packet,
            Cow::Owned(packet) => {
                own.packet = packet;
                &own.packet
            }
        };
        // SAFETY: the caller promises room for both.
        unsafe {
            put(packet.as_ptr().cast(), data, "data")?;
            put(packet.len(), size, "size")?;
        }
        Ok(0)
    })
}

/// Text that the program printed (`bpf_printk`) in the last run, each text with a newline behind it,
/// until the next run; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_runner__printk(runner: *mut beebox_runner) -> *const c_char {
    let text = || {
        // SAFETY: the caller promises a runner of this thread.
        let own = unsafe { exclusive(runner, "runner") }?;
        own.printed = lines(own.runner.printk());
        Ok(own.printed.as_ptr())
    };
    value(text, |_| std::ptr::null())
}

/// As `beebox_prog_test_run_opts`, in the memory of the runner: without a context, flags and
/// repetitions (-EINVAL), on packets of any length.
///
/// `opts` and what it points to as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_runner__test_run(
    runner: *mut beebox_runner,
    opts: *mut bpf_test_run_opts,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a runner of this thread, and the structure.
        let (own, mut options) = unsafe { (exclusive(runner, "runner")?, Options::read(opts)?) };
        let fields = options.fields;
        let has_context = !fields.ctx_in.is_null() || !fields.ctx_out.is_null();
        let others = [fields.flags, fields.cpu, fields.batch_size];
        if has_context || !matches!(fields.repeat, 0 | 1) || others != [0; 3] {
            return Err(Failure::argument(
                "a runner runs once on a packet: no context, flags, batch_size and cpu, repeat 1",
            ));
        }
        // SAFETY: the caller promises the packet.
        let packet = unsafe {
            bytes(
                fields.data_in,
                fields.data_size_in as usize,
                "opts->data_in",
            )
        }?;
        let result = own.runner.run(packet)?;
        // SAFETY: the caller promises the structure and its room.
        unsafe { options.put_packet(result.retval, 0, &own.runner.packet()) }?;
        Ok(0)
    })
}

/// Frees a runner. NULL does nothing.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_runner__free(runner: *mut beebox_runner) {
    // SAFETY: the caller promises a runner and its end.
    unsafe { boundary::free(runner) }
}
