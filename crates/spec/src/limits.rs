//! Limits of verification and of runs, which all releases from 5.10 on share: what a kernel lacks
//! has no limit there. Each names its constant in the kernel.

/// Instructions processed, and instructions of a program (`BPF_COMPLEXITY_LIMIT_INSNS`).
pub const INSNS_PROCESSED: u32 = 1_000_000;
/// Instructions of a program without CAP_BPF (`BPF_MAXINSNS`).
pub const INSNS_UNPRIVILEGED: u32 = 4096;
/// Jumps in flight (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`).
pub const JUMP_SEQUENCE: u32 = 8192;
/// Explored states of an instruction without CAP_BPF (`BPF_COMPLEXITY_LIMIT_STATES`).
pub const STATES_UNPRIVILEGED: u32 = 64;
/// Bytes of stack (`MAX_BPF_STACK`).
pub const STACK: u32 = 512;
/// Frames (`MAX_CALL_FRAMES`); of 7.2 and later 16 ([`Behaviour::SixteenFrames`]), of which these are modelled.
///
/// [`Behaviour::SixteenFrames`]: crate::behaviour::Behaviour::SixteenFrames
pub const FRAMES: u32 = 8;
/// Subprograms (`BPF_MAX_SUBPROGS`).
pub const SUBPROGS: u32 = 256;
/// Maps of a program (`MAX_USED_MAPS`).
pub const MAPS: u32 = 64;
/// kfuncs of a program (`MAX_KFUNC_DESCS`).
pub const KFUNCS: u32 = 256;
/// Bytes of variable offset (`BPF_MAX_VAR_OFF`).
pub const VARIABLE_OFFSET: u32 = 1 << 29;
/// Bytes of variable size (`BPF_MAX_VAR_SIZ`).
pub const VARIABLE_SIZE: u32 = 1 << 29;
/// Loops of `bpf_loop` and of `may_goto` (`BPF_MAX_LOOPS`).
pub const LOOPS: u32 = 8 * 1024 * 1024;
/// Tail calls of one run, those of subprograms included (`MAX_TAIL_CALL_CNT`).
pub const TAIL_CALLS: u32 = 33;
/// Bytes of data of a dynptr (`DYNPTR_MAX_SIZE`).
pub const DYNPTR: u32 = (1 << 24) - 1;
/// Bytes of a dynptr in the memory of a program (`BPF_DYNPTR_SIZE`).
pub const DYNPTR_SIZE: u32 = 16;
