//! Rejections of instructions, paths and return values, and limits of the walk.

use super::{Register, rejections};
use crate::log::{BitsText, TypeText};

rejections! {
    /// Rejections of instructions, paths and return values, and limits of the walk.
    Flow:
    TooManyJumps { waiting: i64 } EFAULT Complexity
        "The sequence of {waiting} jumps is too complex.";
    UnknownOpcode { code: u8 } EINVAL Encoding
        "unknown opcode {code:02x}";
    InvalidRegister { reg: Register } EINVAL Encoding
        "R{reg} is invalid";
    InvalidWideLoad EINVAL Encoding
        "invalid bpf_ld_imm64 insn";
    InvalidAtomicSize EINVAL Encoding
        "invalid atomic operand size";
    InvalidAtomic { imm: i32 } EINVAL Encoding
        "BPF_ATOMIC uses invalid atomic opcode {imm:02x}";
    InvalidMayGoto { imm: i64 } EINVAL Encoding
        "invalid may_goto imm {imm}";
    InvalidMayGotoOffset { off: i64, imm: i64 } EINVAL Encoding
        "invalid may_goto off {off} imm {imm}";
    ReservedFields { name: String } EINVAL Encoding
        "{name} uses reserved fields";
    NotInsn { reg: Register, kind: TypeText } EINVAL WrongType
        "R{reg} has type {kind}, expected PTR_TO_INSN";
    TargetSum { reg: Register, name: String, sum: u64 } ERANGE Unbounded
        "the sum of R{reg} {name} {sum} is too big";
    TargetOutside { reg: Register, first: u64, last: u64, entries: i64 } EINVAL OutOfBounds
        "R{reg} points to outside of jump table: [{first},{last}] max_entries {entries}";
    InvalidInsnIdx { insn_idx: i64, count: i64 } EFAULT ControlFlow
        "invalid insn idx {insn_idx} insn_cnt {count}";
    TooLarge { processed: i64 } E2BIG Complexity
        "BPF program is too large. Processed {processed} insn";
    InfiniteLoop { state: String } EINVAL Loop
        "old state:{state}";
    LoopDetected { insn: i64 } EINVAL Loop
        "infinite loop detected at insn {insn}";
    PointerComparison { reg: Register } EACCES Forbidden
        "R{reg} pointer comparison prohibited";
    ReturnsStackPointer EINVAL ReturnValue
        "cannot return stack pointer to the caller";
    CallbackReturn { reg: Register } EACCES ReturnValue
        "R{reg} not a scalar value";
    NotCallback { insn_idx: i64, callsite: i64 } EFAULT KernelBug
        "verifier bug: in callback at {insn_idx}, callsite {callsite} !calls_callback";
    LeaksReturn { reg: Register } EACCES ReturnValue
        "R{reg} leaks addr as return value";
    SubprogReturn { reg: Register, kind: TypeText } EINVAL ReturnValue
        "At subprogram exit the register R{reg} is not a scalar value ({kind})";
    ReturnUnknown { context: String, reg: Register, kind: TypeText } EINVAL ReturnValue
        "{context} the register R{reg} is not a known value ({kind})";
    ReturnOfVoidHook EINVAL ReturnValue
        "Note, BPF_LSM_CGROUP that attach to void LSM hooks can't modify return value!";
    ReturnRange { context: String, reg: Register, known: String, min: i64, max: i64 } EINVAL ReturnValue
        "{context} the register R{reg} has{known} should have been in [{min}, {max}]";
    ReturnBits { context: String, reg: Register, known: String, range: BitsText } EINVAL ReturnValue
        "{context} the register R{reg} has {known} should have been in {range}";
    NoVisit { chain: String } EFAULT KernelBug
        "verifier bug: scc exit: no visit info for call chain {chain}";
    BacktrackMisuse EFAULT KernelBug
        "verifier bug: backtracking misuse";
    Backtracking { message: String } EFAULT KernelBug
        "verifier bug: {message}";
    BacktrackIdx { idx: i64 } EFAULT KernelBug
        "verifier bug: backtracking idx {idx}";
    BacktrackSlot { spi: i64, total: i64 } EFAULT KernelBug
        "verifier bug: stack slot {spi}, total slots {total} (i >= func->allocated_stack / BPF_REG_SIZE)";
    BacktrackEntry { subprog: i64, regs: i64, slots: u64 } EFAULT KernelBug
        "verifier bug: backtracking func entry subprog {subprog} reg_mask {regs:x} stack_mask {slots:x}";
    NotReadable { reg: Register } EACCES Uninitialized
        "R{reg} !read_ok";
    FramePointer EACCES Forbidden
        "frame pointer is read only";
}
