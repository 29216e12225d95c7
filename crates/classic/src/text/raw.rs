//! Arrays of `struct sock_filter`: code (2 bytes), jt, jf, k (4 bytes).

use isa::classic::SockFilter;

use super::{ByteOrder, Form, MAX_READ_INSNS, Problem, ReadError, TextPlace};

/// Size of one instruction.
const INSN_BYTES: usize = 8;

pub(super) fn read(bytes: &[u8], order: ByteOrder) -> Result<Vec<SockFilter>, ReadError> {
    let fail = |at, problem| {
        Err(ReadError::new(
            Some(Form::Raw(order)),
            TextPlace::Byte(at),
            problem,
        ))
    };
    let (insns, rest) = bytes.as_chunks::<INSN_BYTES>();
    if insns.len() > MAX_READ_INSNS {
        let limit = MAX_READ_INSNS;
        return fail(limit * INSN_BYTES, Problem::TooManyInsns { limit });
    }
    if !rest.is_empty() {
        let problem = Problem::PartialInsn { bytes: rest.len() };
        return fail(bytes.len() - rest.len(), problem);
    }
    Ok(insns.iter().map(|&insn| decode(insn, order)).collect())
}

pub(super) fn decode(bytes: [u8; INSN_BYTES], order: ByteOrder) -> SockFilter {
    let [c0, c1, jt, jf, k0, k1, k2, k3] = bytes;
    match order {
        ByteOrder::Little => SockFilter::new(
            u16::from_le_bytes([c0, c1]),
            jt,
            jf,
            u32::from_le_bytes([k0, k1, k2, k3]),
        ),
        ByteOrder::Big => SockFilter::new(
            u16::from_be_bytes([c0, c1]),
            jt,
            jf,
            u32::from_be_bytes([k0, k1, k2, k3]),
        ),
    }
}

pub(super) fn write(program: &[SockFilter], order: ByteOrder) -> Vec<u8> {
    let mut out = Vec::with_capacity(program.len() * INSN_BYTES);
    for insn in program {
        let (code, k) = match order {
            ByteOrder::Little => (insn.code.to_le_bytes(), insn.k.to_le_bytes()),
            ByteOrder::Big => (insn.code.to_be_bytes(), insn.k.to_be_bytes()),
        };
        out.extend_from_slice(&code);
        out.extend_from_slice(&[insn.jt, insn.jf]);
        out.extend_from_slice(&k);
    }
    out
}
