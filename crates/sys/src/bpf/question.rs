//! BPF_PROG_LOAD of any type and attach type, for questions about the verifier: the
//! log goes to a buffer of the caller, so that many small programs are asked about
//! without allocating.

use super::Program;
use super::attributes::{ProgramLoad, call};
use crate::Errno;
use isa::ebpf::RawInsn;
use std::ffi::CStr;
use std::os::fd::{FromRawFd, OwnedFd};

/// A program to ask about.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// Number of its type.
    pub program_type: u32,
    /// Number of its expected attach type.
    pub attach_type: u32,
    /// Id of the type that it attaches to in the kernel's BTF, or 0.
    pub attach_btf_id: u32,
    /// Its instructions.
    pub insns: &'a [RawInsn],
    /// Bits of BPF_F_*.
    pub flags: u32,
    /// Its licence.
    pub license: &'a CStr,
    /// Bits of the log level; without any, the log stays empty.
    pub log_level: u32,
}

/// Asks the kernel to take a program. The verifier's words go to `log`, without the
/// final NUL; where they don't fit, the answer is ENOSPC.
pub fn question(question: &Question<'_>, log: &mut Vec<u8>) -> Result<Program, Errno> {
    let size = |len: usize| u32::try_from(len).map_err(|_| Errno(libc::E2BIG));
    let capacity = log.capacity();
    log.resize(capacity.max(1), 0);
    let mut attributes = ProgramLoad {
        program_type: question.program_type,
        expected_attach_type: question.attach_type,
        attach_btf_id: question.attach_btf_id,
        insn_count: size(question.insns.len())?,
        insns: question.insns.as_ptr() as u64,
        license: question.license.as_ptr() as u64,
        flags: question.flags,
        ..ProgramLoad::default()
    };
    if question.log_level != 0 {
        log[..1].fill(0);
        attributes.log_level = question.log_level;
        attributes.log_size = size(log.len())?;
        attributes.log = log.as_mut_ptr() as u64;
    }
    // SAFETY: `RawInsn` has the layout of struct bpf_insn (repr(C), same fields)
    // and the kernel only reads the `insn_count` of them; the licence ends with a
    // zero byte; `log` is ours to write for `log_size` bytes.
    let answer = unsafe { call(&mut attributes) };
    let said = match question.log_level {
        0 => 0,
        _ => log.iter().position(|&byte| byte == 0).unwrap_or(log.len()),
    };
    log.truncate(said);
    // SAFETY: the command just made the descriptor, and nobody else owns it.
    let fd = answer.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) })?;
    Ok(Program { fd })
}
