//! Seccomp filters: the kernel's action for a system call.

use std::collections::BTreeSet;
use std::ffi::{c_char, c_int, c_void};

use beebox::internal::seccomp::profile::{
    self, ContainerProfile, NEWEST_KERNEL, ProgramShape, Runtime, TargetMachine,
};
use beebox::seccomp::{Arch, SeccompData, SeccompFilter};

use crate::boundary::{self, Failure, bytes, items, number, owned, pointer, put, shared, text};
use crate::filter::{program, sock_filter};

/// A seccomp filter. Threads may share it.
#[allow(non_camel_case_types)]
pub struct beebox_seccomp(SeccompFilter);

/// The input of a filter, as `struct seccomp_data` of the kernel.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct seccomp_data {
    /// Number of the system call.
    pub nr: c_int,
    /// `AUDIT_ARCH_…`
    pub arch: u32,
    /// Address of the instruction.
    pub instruction_pointer: u64,
    /// Arguments.
    pub args: [u64; 6],
}

/// Checks a classic program as seccomp(2) does, and prepares it. Returns the filter, which
/// `beebox_seccomp__free` frees, or NULL if a rule is broken.
///
/// `insns` points to `count` instructions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_seccomp__new(
    insns: *const sock_filter,
    count: usize,
) -> *mut beebox_seccomp {
    pointer(|| {
        // SAFETY: the caller promises the instructions.
        let filter = SeccompFilter::new(&unsafe { program(insns, count) }?)?;
        Ok(owned(beebox_seccomp(filter)))
    })
}

/// Reads a filter in any form that tools write (bpf_asm, bytes), which is detected.
///
/// `program` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_seccomp__parse(
    program: *const c_void,
    size: usize,
) -> *mut beebox_seccomp {
    pointer(|| {
        // SAFETY: the caller promises the bytes.
        let filter = SeccompFilter::parse(unsafe { bytes(program, size, "program") }?)?;
        Ok(owned(beebox_seccomp(filter)))
    })
}

/// Compiles a container profile (OCI or Docker JSON, or YAML) as runc does for a machine, by the name of
/// its architecture, and a container without capabilities.
///
/// `profile` points to `size` bytes;
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_seccomp__from_profile(
    profile: *const c_void,
    size: usize,
    arch: *const c_char,
) -> *mut beebox_seccomp {
    pointer(|| {
        // SAFETY: the caller promises bytes and a text.
        let (profile, arch) = unsafe { (bytes(profile, size, "profile")?, arch_of(arch)?) };
        let wrong = |error: String| Failure::argument(format!("profile: {error}"));
        let profile = ContainerProfile::read(profile).map_err(|error| wrong(error.to_string()))?;
        let machine = TargetMachine {
            arch,
            caps: BTreeSet::new(),
            kernel: NEWEST_KERNEL,
            runtime: Runtime::Runc,
        };
        let compiled = profile::compile(&profile, &machine, ProgramShape::default());
        let compiled = compiled.map_err(|error| wrong(error.to_string()))?;
        Ok(owned(beebox_seccomp(SeccompFilter::new(
            &compiled.program,
        )?)))
    })
}

/// # Safety
/// `arch` is null or a text.
unsafe fn arch_of(arch: *const c_char) -> Result<Arch, Failure> {
    // SAFETY: the caller promises a text.
    let name = unsafe { text(arch, "arch") }?;
    let unknown = || Failure::argument(format!("no architecture {name}, such as x86_64"));
    Arch::from_name(name).ok_or_else(unknown)
}

/// Runs the filter on a system call, and writes the return value of the filter to `ret`: the kernel's
/// action (`SECCOMP_RET_…`) with its data.
///
/// `data` points to the structure.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_seccomp__run(
    filter: *const beebox_seccomp,
    data: *const seccomp_data,
    ret: *mut u32,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a filter and the structure.
        let (filter, data) = unsafe { (shared(filter, "filter")?, shared(data, "data")?) };
        let data = SeccompData {
            nr: data.nr,
            arch: data.arch,
            instruction_pointer: data.instruction_pointer,
            args: data.args,
        };
        // SAFETY: the caller promises room for a number.
        unsafe { put(filter.0.runner().run(&data), ret, "ret") }?;
        Ok(0)
    })
}

/// As `beebox_seccomp__run`, of a system call by the names of architecture and call (`x86_64`,
/// `openat`); `args` are six arguments, or NULL for zeros.
///
/// `args` is NULL or points to six numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_seccomp__action(
    filter: *const beebox_seccomp,
    arch: *const c_char,
    syscall: *const c_char,
    args: *const u64,
    ret: *mut u32,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a filter and texts.
        let (filter, arch, name) = unsafe {
            (
                shared(filter, "filter")?,
                arch_of(arch)?,
                text(syscall, "syscall")?,
            )
        };
        let mut six = [0; 6];
        if !args.is_null() {
            // SAFETY: the caller promises six numbers.
            six.copy_from_slice(unsafe { items(args, 6, "args") }?);
        }
        let unknown = || {
            let what = format!("{} has no system call {name}", arch.name());
            Failure::new(libc::ENOENT, what)
        };
        let data = arch.call(name, six).ok_or_else(unknown)?;
        // SAFETY: the caller promises room for a number.
        unsafe { put(filter.0.runner().run(&data), ret, "ret") }?;
        Ok(0)
    })
}

/// Frees a filter. NULL does nothing.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_seccomp__free(filter: *mut beebox_seccomp) {
    // SAFETY: the caller promises a filter and its end.
    unsafe { boundary::free(filter) }
}
