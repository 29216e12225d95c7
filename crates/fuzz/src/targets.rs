//! The targets, one module for each.

mod btf;
mod btf_ext;
mod c_calls;
mod capture;
mod classic_program;
mod classic_text;
mod core;
mod ebpf_engines;
mod ebpf_raw;
mod ebpf_text;
mod engines;
mod expectations;
mod gateway_import;
mod gateway_rules;
mod kernel_image;
mod linker;
mod maps_json;
mod network_file;
mod object;
mod seccomp_analysis;
mod seccomp_expectations;
mod seccomp_profile;
mod verifier;

use std::cell::RefCell;

use differential::ebpf::engines::Engines;
use isa::classic::SockFilter;

use crate::Target;

pub(crate) const ALL: &[Target] = &[
    capture::TARGET,
    classic_text::TARGET,
    classic_program::TARGET,
    engines::TARGET,
    ebpf_raw::TARGET,
    ebpf_engines::TARGET,
    ebpf_text::TARGET,
    seccomp_profile::TARGET,
    seccomp_expectations::TARGET,
    seccomp_analysis::TARGET,
    btf::TARGET,
    btf_ext::TARGET,
    core::TARGET,
    linker::TARGET,
    object::TARGET,
    verifier::TARGET,
    gateway_rules::TARGET,
    network_file::TARGET,
    kernel_image::TARGET,
    expectations::TARGET,
    maps_json::TARGET,
    gateway_import::TARGET,
    c_calls::TARGET,
];

/// Instructions made of any bytes: the longest program that Linux takes, and one
/// more.
const MOST: usize = 4097;

/// Bytes as a program, eight to an instruction, little-endian.
fn instructions(bytes: &[u8]) -> Vec<SockFilter> {
    let instruction = |raw: &[u8]| SockFilter {
        code: u16::from_le_bytes([raw[0], raw[1]]),
        jt: raw[2],
        jf: raw[3],
        k: u32::from_le_bytes([raw[4], raw[5], raw[6], raw[7]]),
    };
    bytes.chunks_exact(8).take(MOST).map(instruction).collect()
}

/// Runs every engine; they are created once per thread, because each has memory for native
/// code.
fn with_engines<T>(ask: impl FnOnce(&mut Engines) -> T) -> T {
    thread_local! {
        static ENGINES: RefCell<Engines> = RefCell::new(Engines::all());
    }
    ENGINES.with_borrow_mut(ask)
}
