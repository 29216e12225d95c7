//! Inputs of runs: what the loader of the selftests gives, and packets of the protocols that
//! their programs parse.

use spec::programs::ProgramType;

/// Data and context of a run.
pub(super) struct RunInput {
    pub(super) data: Vec<u8>,
    pub(super) context: Vec<u8>,
}

/// Bytes that the loader of the selftests gives (`TEST_DATA_LEN`), all zero.
const TEST_DATA: usize = 64;

/// The inputs of programs of a type; the first is that of the selftests' loader.
pub(super) fn of(kind: ProgramType) -> Vec<RunInput> {
    use ProgramType::{RawTracepoint, RawTracepointWritable, SkLookup, Syscall};
    let on = |data: Vec<u8>| RunInput {
        data,
        context: Vec::new(),
    };
    let with = |context: Vec<u8>| RunInput {
        data: Vec::new(),
        context,
    };
    match kind {
        Syscall => vec![with(Vec::new()), with(vec![0; 64])],
        RawTracepoint | RawTracepointWritable => vec![with(Vec::new()), with(vec![0; 96])],
        SkLookup => vec![with(vec![0; 72]), with(lookup())],
        _ => vec![
            on(vec![0; TEST_DATA]),
            on(frame(0x0800, 6)),
            on(frame(0x0800, 17)),
            on(frame(0x86dd, 6)),
        ],
    }
}

/// A `struct bpf_sk_lookup` of TCP over IPv4.
fn lookup() -> Vec<u8> {
    let mut context = vec![0; 72];
    context[8] = 2;
    context[12] = 6;
    context[16..20].copy_from_slice(&[192, 0, 2, 1]);
    context[36..38].copy_from_slice(&4000u16.to_be_bytes());
    context[40..44].copy_from_slice(&[192, 0, 2, 2]);
    context[60..62].copy_from_slice(&80u16.to_le_bytes());
    context
}

/// An Ethernet frame of a network and a transport protocol, with some payload.
fn frame(ethertype: u16, protocol: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    frame.extend(ethertype.to_be_bytes());
    let transport = 20 + 46u16;
    match ethertype {
        0x0800 => {
            frame.extend([0x45, 0]);
            frame.extend((20 + transport).to_be_bytes());
            frame.extend([0, 1, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
        }
        _ => {
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(transport.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        }
    }
    frame.extend([0x0f, 0xa0, 0, 80]);
    match protocol {
        6 => frame.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 4, 0, 0, 0, 0, 0]),
        _ => frame.extend([0, 66, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
    }
    frame.extend((0..46).map(|at| at * 5));
    frame
}
