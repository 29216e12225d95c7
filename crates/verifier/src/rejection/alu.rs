//! Rejections of arithmetic, and of what speculation makes of it.

use isa::ebpf::AluOp;

use super::{Register, rejections};
use crate::alu::symbol;
use crate::domain::Scalar;
use crate::log::{BitsText, TypeText};

rejections! {
    /// Rejections of arithmetic, and of what speculation makes of it.
    Alu:
    PointerOperation { reg: Register } EACCES PointerArithmetic
        "R{reg} pointer arithmetic prohibited";
    DivisionByZero EINVAL Encoding
        "div by zero";
    InvalidShift { imm: i64 } EINVAL Encoding
        "invalid shift {imm}";
    TwoPointers { reg: Register, op: AluOp } EACCES PointerArithmetic
        "R{reg} pointer {} pointer prohibited", symbol(*op);
    AddressSpaces EINVAL Encoding
        "addr_space_cast insn can only convert between address space 1 and 0";
    AddressSpaceWithoutArena EINVAL Map
        "addr_space_cast insn can only be used in a program that has an associated arena";
    RegInvariants { context: String, fault: String, num: Scalar } EFAULT KernelBug
        "verifier bug: REG INVARIANTS VIOLATION ({context}): {fault} u64=[{:#x}, {:#x}] s64=[{:#x}, {:#x}] u32=[{:#x}, {:#x}] s32=[{:#x}, {:#x}] var_off=({:#x}, {:#x})",
        num.umin, num.umax, num.smin, num.smax, num.u32_min, num.u32_max, num.s32_min, num.s32_max,
        num.var_off.value, num.var_off.mask;
    SignExtendedPointer { reg: Register } EACCES PointerArithmetic
        "R{reg} sign-extension part of pointer";
    PartialCopyOfPointer { reg: Register } EACCES PointerArithmetic
        "R{reg} partial copy of pointer";
    Pointer32Bit { reg: Register } EACCES PointerArithmetic
        "R{reg} 32-bit pointer arithmetic prohibited";
    PointerMaybeNull { reg: Register, kind: TypeText } EACCES MaybeNull
        "R{reg} pointer arithmetic on {kind} prohibited, null-check it first"
        => NullChecksAdvised "R{reg} pointer arithmetic on {kind} prohibited{}", match kind.0.base {
            spec::registry::RegBase::PtrToMapValue => ", null-check it first",
            _ => "",
        };
    PointerKind { reg: Register, kind: TypeText } EACCES PointerArithmetic
        "R{reg} pointer arithmetic on {kind} prohibited";
    BitwiseOperator { reg: Register, op: AluOp } EACCES PointerArithmetic
        "R{reg} bitwise operator {} on pointer prohibited", symbol(*op);
    PointerOperator { reg: Register, op: AluOp } EACCES PointerArithmetic
        "R{reg} pointer arithmetic with {} operator prohibited", symbol(*op);
    PointerFromScalar { reg: Register } EACCES PointerArithmetic
        "R{reg} tried to subtract pointer from scalar";
    StackSubtraction { reg: Register } EACCES PointerArithmetic
        "R{reg} subtraction from stack pointer prohibited";
    PointerPlusConstant { kind: TypeText, value: i64 } EINVAL Unbounded
        "math between {kind} pointer and {value} is not allowed";
    PointerOffset { kind: TypeText, off: i64 } EINVAL Unbounded
        "{kind} pointer offset {off} is not allowed";
    PointerPlusUnbounded { kind: TypeText } EINVAL Unbounded
        "math between {kind} pointer and register with unbounded min value is not allowed";
    PointerOutOfBounds { value: i64, kind: TypeText } EINVAL Unbounded
        "value {value} makes {kind} pointer be out of bounds";
    StackVariable { reg: Register, var_off: BitsText, off: i64 } EACCES PointerArithmetic
        "R{reg} variable stack access prohibited for !root, var_off={var_off} off={off}";
    StackRange { reg: Register, off: i64 } EACCES PointerArithmetic
        "R{reg} stack pointer arithmetic goes out of range, prohibited for !root; off={off}";
    MapValueRange { reg: Register } EACCES PointerArithmetic
        "R{reg} pointer arithmetic of map value goes out of range, prohibited for !root";
    MixedBounds { reg: Register } EACCES PointerArithmetic
        "R{reg} has unknown scalar with mixed signed bounds, pointer arithmetic with it prohibited for !root";
    UnsupportedOperation { reg: Register } EACCES PointerArithmetic
        "R{reg} has pointer with unsupported alu operation, pointer arithmetic with it prohibited for !root";
    OtherPaths { reg: Register, verb: String } EACCES PointerArithmetic
        "R{reg} tried to {verb} from different maps, paths or scalars, pointer arithmetic with it prohibited for !root";
    BeyondBounds { reg: Register, verb: String } EACCES PointerArithmetic
        "R{reg} tried to {verb} beyond pointer bounds, pointer arithmetic with it prohibited for !root";
    NotPushed { reg: Register } ENOMEM Complexity
        "R{reg} could not be pushed for speculative verification, pointer arithmetic with it prohibited for !root";
}
