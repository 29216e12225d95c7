//! Rejections of memory accesses.

use btf::AccessFault;
use btf::fields::FieldKind;

use super::{Register, rejections};
use crate::domain::Tnum;
use crate::log::{BitsText, TypeText};
use crate::mem::align::IP_ALIGN;

rejections! {
    /// Rejections of memory accesses.
    Mem:
    WriteToKey { reg: Register } EACCES Forbidden
        "write to change key R{reg} not allowed";
    PacketReadOnly EACCES Forbidden
        "cannot write into packet";
    FlowKeys { off: i64, size: i64 } EACCES OutOfBounds
        "invalid access to flow keys off={off} size={size}";
    LeaksAddress { reg: Register, where_to: String } EACCES Privilege
        "R{reg} leaks addr into {where_to}";
    MaybeNull { reg: Register, kind: TypeText } EACCES MaybeNull
        "R{reg} invalid mem access '{kind}'";
    NotMemory { reg: Register, kind: TypeText } EACCES WrongType
        "R{reg} invalid mem access '{kind}'";
    ReadOnly { reg: Register, kind: TypeText } EACCES Forbidden
        "R{reg} cannot write into {kind}";
    MixedPointers EINVAL WrongType
        "same insn cannot be used with different pointers";
    Misaligned { what: String, var_off: BitsText, reg_off: i64, off: i64, size: i64 } EACCES Misaligned
        "misaligned {what}access off {}+{off} size {size}", moved(*var_off, *reg_off)
        => UnitedOffsets "misaligned {what}access off {var_off}+{reg_off}+{off} size {size}";
    MisalignedPacket { var_off: BitsText, reg_off: i64, off: i64, size: i64 } EACCES Misaligned
        "misaligned packet access off {IP_ALIGN}+{}+{off} size {size}", moved(*var_off, *reg_off)
        => UnitedOffsets "misaligned packet access off {IP_ALIGN}+{var_off}+{reg_off}+{off} size {size}";
    LeaksAddressAtomic { reg: Register } EACCES Privilege
        "R{reg} leaks addr into mem";
    Atomic { what: String, reg: Register, kind: TypeText } EACCES WrongType
        "BPF_ATOMIC {what} R{reg} {kind} is not allowed"
        => AtomicStores "BPF_XADD {what} R{reg} {kind} is not allowed";
    ConstantToContext { reg: Register, kind: TypeText } EACCES WrongType
        "BPF_ST stores into R{reg} {kind} is not allowed";
    Context { off: i64, size: i64 } EACCES Context
        "invalid bpf_context access off={off} size={size}";
    ZeroContext EACCES Argument
        "";
    ArgumentType { reg: Register, kind: TypeText, expected: TypeText } EACCES Argument
        "R{reg} type={kind} expected={expected}";
    NegativeSize { reg: Register } EACCES Unbounded
        "R{reg} min value is negative, either use unsigned or 'var &= const'";
    ZeroSize { reg: Register, umin: i64, umax: i64 } EACCES Argument
        "R{reg} invalid zero-sized read: u64=[{umin},{umax}]";
    UnboundedSize { reg: Register } EACCES Unbounded
        "R{reg} unbounded memory access, use 'var &= const' or 'if (var < const)'";
    KptrMode EACCES Forbidden
        "kptr in map can only be accessed using BPF_MEM instruction mode";
    KptrReferencedStore EACCES Forbidden
        "store to referenced kptr disallowed";
    UptrStore EACCES Forbidden
        "store to uptr disallowed";
    KptrImmediate { off: i64 } EACCES Forbidden
        "BPF_ST imm must be 0 when storing to kptr at off={off}";
    KptrType { reg: Register, found: TypeText, name: String, wanted: String, or_untrusted: bool } EACCES WrongType
        "invalid kptr access, R{reg} type={found}{name} expected={}", match or_untrusted {
            true => format!("ptr_{wanted} or untrusted_ptr_{wanted}"),
            false => format!("ptr_{wanted}"),
        };
    MapSilent ENOTSUPP Map
        "";
    MapAccess { what: String, value_size: i64, off: i64, size: i64 } EACCES Map
        "{what} map forbidden, value_size={value_size} off={off} size={size}";
    FieldDirect { name: FieldKind } EACCES Forbidden
        "{name} cannot be accessed directly by load/store";
    FieldIndirect { name: FieldKind } EACCES Forbidden
        "{name} cannot be accessed indirectly by helper";
    FieldVariable { name: FieldKind } EACCES Unbounded
        "{name} access cannot have variable offset";
    FieldMisaligned { name: FieldKind, start: i64, at: u64 } EACCES Misaligned
        "{name} access misaligned expected={start} off={at}";
    JumpTableRead { size: i64 } EACCES Forbidden
        "Invalid read of {size} bytes from insn_array";
    FieldSize { name: FieldKind } EACCES Forbidden
        "{name} access size must be BPF_DW";
    StructPrivilege { name: String } EPERM Privilege
        "'struct {name}' access is allowed only to CAP_PERFMON and CAP_SYS_ADMIN";
    StructLicense { name: String } EINVAL License
        "Cannot access kernel 'struct {name}' from non-GPL compatible program";
    ObjectNegative { reg: Register, name: String, off: i64 } EACCES OutOfBounds
        "R{reg} is ptr_{name} invalid negative access: off={off}";
    ObjectVariable { reg: Register, name: String, off: i64, var_off: BitsText } EACCES Unbounded
        "R{reg} is ptr_{name} invalid variable offset: off={off}, var_off={var_off}";
    ObjectMemory { reg: Register, name: String, memory: String, off: i64 } EACCES Forbidden
        "R{reg} is ptr_{name} access {memory} memory: off={off}";
    ObjectField { fault: AccessFault } EACCES OutOfBounds
        "{fault}";
    ObjectWrite EACCES Forbidden
        "only read is supported";
    OtherWrite { structure: String } EACCES Forbidden
        "only access to {structure} is supported";
    WriteOutside { off: i64, size: i64 } EACCES OutOfBounds
        "write access at off {off} with size {size}";
    UnloggedWrite EACCES Forbidden
        "";
    NoWriteSupport { name: String, off: i64 } EACCES Forbidden
        "no write support to {name} at off {off}";
    WriteBeyondMember { off: i64, size: i64, name: String, end: i64 } EACCES OutOfBounds
        "write access at off {off} with size {size} beyond the member of {name} ended at {end}";
    ObjectNotWritten { reg: Register, name: String, off: i64, size: i64 } EACCES Forbidden
        "R{reg} cannot write into ptr_{name} at off={off} size={size}";
    ObjectWithoutReference EFAULT KernelBug
        "verifier bug: ref_obj_id for allocated object must be non-zero";
    ObjectSpecialField { name: FieldKind } EACCES Forbidden
        "direct access to {name} is disallowed";
    MapNegative { reg: Register, name: String, off: i64 } EACCES OutOfBounds
        "R{reg} is {name} invalid negative access: off={off}";
    MapWrite { name: String } EACCES Forbidden
        "only read from {name} is supported";
    NegativeIndex { reg: Register } EACCES Unbounded
        "R{reg} min value is negative, either use unsigned index or do a if (index >=0) check.";
    PacketUnchecked { reg: Register } EINVAL OutOfBounds
        "R{reg} offset is outside of the packet";
    OutsidePacket { reg: Register } EACCES OutOfBounds
        "R{reg} offset is outside of the packet";
    PacketLoadType EINVAL Unavailable
        "BPF_LD_[ABS|IND] instructions not allowed for this program type";
    PacketLoadContext { reg: Register } EINVAL WrongType
        "at the time of BPF_LD_ABS|IND R{reg} != pointer to skb";
    BelowRegion { reg: Register } EACCES OutOfBounds
        "R{reg} min value is outside of the allowed memory range";
    Unbounded { reg: Register } EACCES Unbounded
        "R{reg} unbounded memory access, make sure to bounds check any such access";
    AboveRegion { reg: Register } EACCES OutOfBounds
        "R{reg} max value is outside of the allowed memory range";
    NegativeOffset { kind: TypeText, reg: Register, off: i64 } EACCES PointerArithmetic
        "negative offset {kind} ptr R{reg} off={off} disallowed"
        => NegativeOffsets "dereference of modified {kind} ptr R{reg} off={off} disallowed";
    Modified { kind: TypeText, reg: Register, off: i64 } EACCES PointerArithmetic
        "dereference of modified {kind} ptr R{reg} off={off} disallowed";
    Variable { kind: TypeText, var_off: BitsText } EACCES PointerArithmetic
        "variable {kind} access var_off={var_off} disallowed";
    Buffer { reg: Register, what: String, base: i64, off: i64, size: i64 } EACCES OutOfBounds
        "R{reg} invalid negative {what} buffer offset: off={}, var_off={base}", off - base
        => UnitedOffsets "R{reg} invalid {what} buffer access: off={off}, size={size}";
    BufferVariable { reg: Register, off: i64, var_off: BitsText } EACCES Unbounded
        "R{reg} invalid variable buffer offset: off={off}, var_off={var_off}";
    Socket { reg: Register, kind: TypeText, off: i64, size: i64 } EACCES OutOfBounds
        "R{reg} invalid {kind} access off={off} size={size}";
    StackUnbounded { what: String, reg: Register } EACCES Unbounded
        "invalid unbounded variable-offset{what} stack R{reg}";
    StackVariable { what: String, reg: Register, var_off: BitsText, off: i64, size: i64 } EACCES OutOfBounds
        "invalid variable-offset{what} stack R{reg} var_off={var_off} off={off} size={size}"
        => StackOffsetsNamed "invalid variable-offset{what} stack R{reg} var_off={var_off} size={size}";
    OutsideStack { what: String, reg: Register, off: i64, size: i64 } EACCES OutOfBounds
        "invalid{what} stack R{reg} off={off} size={size}";
    StackHelperVariable { var_off: BitsText, off: i64, size: i64 } EACCES Stack
        "variable offset stack pointer cannot be passed into helper function; var_off={var_off} off={off} size={size}";
    FillSize EACCES Stack
        "invalid size of register fill";
    LeaksSpilled { off: i64 } EACCES Privilege
        "leaking pointer from stack off {off}";
    StackUnread { off: i64, index: i64, size: i64 } EACCES Stack
        "invalid read from stack off {off}+{index} size {size}";
    StackPoisoned { off: i64, index: i64, size: i64 } EACCES Stack
        "reading from stack off {off}+{index} size {size}, slot poisoned by dead code elimination";
    CorruptsSpill EACCES Stack
        "attempt to corrupt spilled pointer on stack";
    SpillSize EACCES Stack
        "invalid size of register spill";
    SpillToCaller EINVAL Stack
        "cannot spill pointers to stack into stack frame of the caller";
    SpilledInWrite { insn: i64, at: i64 } EINVAL Stack
        "spilled ptr in range of var-offset stack write; insn {insn}, ptr off: {at}";
    UninitInWrite { insn: i64, at: i64 } EINVAL Stack
        "uninit stack in range of var-offset write prohibited for !root; insn {insn}, off: {at}";
    ZeroRead EACCES Argument
        "invalid zero-sized read";
    StackVariablePrivilege { reg: Register, var_off: BitsText } EACCES Privilege
        "R{reg} variable offset stack access prohibited for !root, var_off={var_off}";
    AllocatedStack EFAULT Stack
        "allocated_stack too small";
    StackArgument { reg: Register, min: i64, index: i64, size: i64 } EACCES Stack
        "invalid read from stack R{reg} off {min}+{index} size {size}"
        => StackAccessNamed "invalid indirect read from stack R{reg} off {min}+{index} size {size}";
    StackArgumentVariable { reg: Register, var_off: BitsText, index: i64, size: i64 } EACCES Stack
        "invalid read from stack R{reg} var_off {var_off}+{index} size {size}"
        => StackAccessNamed "invalid indirect read from stack R{reg} var_off {var_off}+{index} size {size}";
    ArgumentPoisoned { reg: Register, min: i64, index: i64, size: i64 } EACCES Stack
        "reading from stack R{reg} off {min}+{index} size {size}, slot poisoned by dead code elimination";
    DynptrWrite { at: i64 } EACCES Argument
        "potential write to dynptr at off={at} disallowed";
}

/// The bits of a number that a constant is added to, as the log has them.
fn moved(BitsText(bits, _): BitsText, by: i64) -> String {
    let sum = bits.add(Tnum::constant(by as u64));
    match sum.is_const() && (-0x8000..0).contains(&(sum.value as i64)) {
        true => (sum.value as i64).to_string(),
        false => sum.to_string(),
    }
}
