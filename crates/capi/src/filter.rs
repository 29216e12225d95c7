//! Packet filters: expressions of tcpdump, and classic programs.

use std::ffi::{c_char, c_int, c_void};

use beebox::captures::LinkType;
use beebox::{Expression, Filter, Metadata, Packet, SockFilter};

use crate::boundary::{self, Failure, bytes, items, number, owned, pointer, put, shared, text};

/// An instruction of a classic program, as `struct sock_filter` of the kernel.
#[allow(non_camel_case_types)]
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct sock_filter {
    /// Opcode.
    pub code: u16,
    /// Instructions to skip when a condition holds.
    pub jt: u8,
    /// Instructions to skip when it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// Instructions of the caller.
///
/// # Safety
/// `insns` points to so many instructions.
pub(crate) unsafe fn program(
    insns: *const sock_filter,
    count: usize,
) -> Result<Vec<SockFilter>, Failure> {
    // SAFETY: the caller promises the instructions, any bytes of which are one.
    let insns = unsafe { items(insns, count, "insns") }?;
    let insns = insns
        .iter()
        .map(|it| SockFilter::new(it.code, it.jt, it.jf, it.k));
    Ok(insns.collect())
}

/// A packet filter. Threads may share it.
#[allow(non_camel_case_types)]
pub struct beebox_filter(Source);

enum Source {
    Program(Filter),
    /// An expression, compiled for packets of a link type.
    Expression(Expression, LinkType),
}

impl beebox_filter {
    fn filter(&self) -> Result<&Filter, Failure> {
        match &self.0 {
            Source::Program(filter) => Ok(filter),
            Source::Expression(expression, link_type) => Ok(expression.for_link_type(*link_type)?),
        }
    }
}

/// Compiles an expression of tcpdump for packets of a link type (`DLT_EN10MB` is 1, `DLT_RAW` 101) by the
/// system's libpcap.
///
/// Returns the filter, which `beebox_filter__free` frees, or NULL: EOPNOTSUPP without libpcap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_filter__compile(
    expression: *const c_char,
    link_type: u32,
) -> *mut beebox_filter {
    pointer(|| {
        // SAFETY: the caller promises a text.
        let expression = Expression::new(unsafe { text(expression, "expression") }?)?;
        let filter = beebox_filter(Source::Expression(expression, LinkType(link_type)));
        // What is wrong is said now.
        filter.filter()?;
        Ok(owned(filter))
    })
}

/// Checks a classic program as libpcap does for a capture, and prepares it. NULL if a rule is broken.
///
/// `insns` points to `count` instructions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_filter__new(
    insns: *const sock_filter,
    count: usize,
) -> *mut beebox_filter {
    pointer(|| {
        // SAFETY: the caller promises the instructions.
        let filter = Filter::new(&unsafe { program(insns, count) }?)?;
        Ok(owned(beebox_filter(Source::Program(filter))))
    })
}

/// Reads a classic program in any form that tools write (`tcpdump -ddd`, bpf_asm, bytes), which is
/// detected.
///
/// `program` points to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_filter__parse(
    program: *const c_void,
    size: usize,
) -> *mut beebox_filter {
    pointer(|| {
        // SAFETY: the caller promises the bytes.
        let filter = Filter::parse(unsafe { bytes(program, size, "program") }?)?;
        Ok(owned(beebox_filter(Source::Program(filter))))
    })
}

/// Runs the filter on a packet of which `caplen` bytes were captured and that had `len` on the wire.
/// `kept` is 0 if it drops the packet, else how many bytes of it to keep.
///
/// `data` points to `caplen` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_filter__run(
    filter: *const beebox_filter,
    data: *const c_void,
    caplen: u32,
    len: u32,
    kept: *mut u32,
) -> c_int {
    number(|| {
        // SAFETY: the caller promises a filter and the packet.
        let (filter, data) = unsafe {
            (
                shared(filter, "filter")?,
                bytes(data, caplen as usize, "data")?,
            )
        };
        if len < caplen {
            let what = format!("len is {len}, less than the {caplen} bytes of caplen");
            return Err(Failure::argument(what));
        }
        let packet = Packet::captured(data, len, &Metadata::UNKNOWN);
        let result = filter.filter()?.runner().run(&packet);
        let result = result.map_err(|error| Failure::new(libc::ETIMEDOUT, error.to_string()))?;
        // SAFETY: the caller promises room for a number.
        unsafe { put(result, kept, "kept") }?;
        Ok(0)
    })
}

/// Frees a filter. NULL does nothing.
///
/// It is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn beebox_filter__free(filter: *mut beebox_filter) {
    // SAFETY: the caller promises a filter and its end.
    unsafe { boundary::free(filter) }
}
