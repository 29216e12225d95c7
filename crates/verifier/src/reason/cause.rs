//! Cause of a refusal and the unmet requirement, one variant for each rule.

mod parts;

use btf::AccessFault;
use btf::fields::FieldKind;
use program::creation::RefusedMap;

use super::explanation::{Called, Chain, InsnPlace, KnownValue, PointerTarget};
use crate::domain::Scalar;
use crate::state::Section;

pub use parts::{
    AccessKind, ArgumentFault, ArithmeticFault, BoundsFault, Check, ContextFault, Expected,
    LockFault, LostObject, LostTrust, MapMisuse, MapPart, MergedMembers, NullCheck, NumberSource,
    ObjectFault, OnStack, PacketBase, PacketCheckFault, PacketExtent, PacketLoop, Parameter,
    ParameterFault, PathEnd, SignatureFault, SizeFault, StackObjectFault, Unwritten,
};

/// Cause of a refusal, and the unmet requirement.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Cause {
    /// A register is read that no instruction of the path wrote.
    Uninitialized {
        /// The register.
        reg: u8,
        /// Reason why it holds no value.
        why: Unwritten,
        /// Of an argument of a call, the callee.
        callee: Option<Called>,
        /// The reader is a packet load, which reads r6 implicitly.
        by_packet_load: bool,
    },
    /// A pointer that may be null is used.
    MaybeNull {
        /// The register.
        reg: u8,
        /// Its pointee.
        kind: PointerTarget,
        /// The callee that returned it.
        callee: Option<Called>,
        /// Its use.
        access: AccessKind,
        /// Comparisons with null on the path.
        check: NullCheck,
    },
    /// A number is used as a pointer.
    NotPointer {
        /// The register.
        reg: u8,
        /// Origin of the number.
        source: NumberSource,
        /// Its use.
        access: AccessKind,
    },
    /// A pointer that no instruction accesses memory through.
    NotAccessible {
        /// The register.
        reg: u8,
        /// Its value.
        value: KnownValue,
    },
    /// An access to the packet that no comparison covers.
    Packet {
        /// The register.
        reg: u8,
        /// Its use.
        access: AccessKind,
        /// First byte behind the pointer's variable base.
        off: i64,
        /// Bytes.
        size: u32,
        /// Bytes from the base that are proven.
        proven: i32,
        /// The access is to the metadata before the packet, which the packet's start ends.
        is_meta: bool,
        /// The pointer's base.
        base: PacketBase,
        /// Accesses through the pointer from here on; with `size` 0 this one.
        extent: PacketExtent,
        /// The loop in which the pointer moves.
        in_loop: Option<PacketLoop>,
        /// The missing comparison on the path.
        check: PacketCheckFault,
    },
    /// An access outside of what a pointer points to.
    Bounds {
        /// The register.
        reg: u8,
        /// Its pointee.
        kind: PointerTarget,
        /// Bytes of the object, if they are known.
        limit: Option<u32>,
        /// Constant part of the offset.
        off: i64,
        /// Bytes that are accessed; 0 if that is not known.
        size: u32,
        /// The variable part of the offset and the register that it came from.
        index: Option<(Option<u8>, Scalar)>,
        /// The missing bound.
        fault: BoundsFault,
        /// Comparisons of the variable part on the path.
        check: Check,
        /// Of the key or value of a map that is passed to a call, which of them and the map.
        of_map: Option<(MapPart, String)>,
    },
    /// Stack is read that was not written.
    StackUnwritten {
        /// First byte from the frame pointer.
        off: i64,
        /// Bytes.
        size: u32,
        /// The callee that reads.
        callee: Option<Called>,
    },
    /// Stack is read whose contents were dropped, as nothing reads it by the analysis before the walk.
    StackPoisoned {
        /// First of the dropped bytes from the frame pointer; `None` if it varies.
        off: Option<i64>,
        /// The callee that reads.
        callee: Option<Called>,
        /// The prototype of the callee says that it writes them.
        by_prototype: bool,
    },
    /// A spilled pointer is read or written in part.
    SpillPart {
        /// It is read.
        is_read: bool,
    },
    /// Memory is written that may only be read.
    ReadOnly {
        /// Its pointee.
        kind: PointerTarget,
        /// The callee that writes.
        callee: Option<Called>,
    },
    /// The frame pointer is written.
    FramePointer,
    /// A special field of a map value is accessed like any other.
    SpecialField {
        /// Kind of the field.
        field: FieldKind,
        /// By a helper.
        by_helper: bool,
    },
    /// A value of another type is stored into a special field of a map value.
    FieldType {
        /// Kind of the field.
        field: FieldKind,
        /// The stored value.
        found: KnownValue,
        /// Structure that a pointer is taken to, if it is known.
        expected: Option<String>,
    },
    /// A misaligned access.
    Misaligned {
        /// The register.
        reg: u8,
        /// Its pointee.
        kind: PointerTarget,
        /// Constant part of the offset.
        off: i64,
        /// Bytes.
        size: u32,
    },
    /// An access to the context that the program type does not have.
    Context {
        /// Offset.
        off: i64,
        /// Bytes.
        size: u32,
        /// It writes.
        is_write: bool,
        /// Structure of the context.
        structure: Option<String>,
        /// The field at the offset.
        field: Option<String>,
        /// The rule of the context.
        fault: ContextFault,
    },
    /// A pointer that must not be modified has an offset.
    Modified {
        /// The register.
        reg: u8,
        /// Its pointee.
        kind: PointerTarget,
        /// The offset is variable.
        is_variable: bool,
        /// Constant part of the offset.
        off: i64,
        /// The callee that it is passed to.
        callee: Option<Called>,
        /// Of a context that is accessed, the members.
        merged: Option<MergedMembers>,
    },
    /// One instruction accesses pointers of kinds that are rewritten differently.
    MixedPointers,
    /// An atomic instruction on memory that has none.
    Atomic {
        /// Its pointee.
        kind: PointerTarget,
    },
    /// Arithmetic that pointers do not allow.
    Arithmetic {
        /// The register.
        reg: u8,
        /// Its pointee.
        kind: PointerTarget,
        /// The fault.
        fault: ArithmeticFault,
        /// Comparisons of the other operand on the path.
        check: Check,
    },
    /// A helper that the program cannot call.
    HelperUnavailable {
        /// Its name.
        helper: Called,
        /// Program types that have it.
        types: Vec<&'static str>,
        /// The program's type has it for other attach types.
        other_attach: bool,
    },
    /// A legacy packet load in a program type that has none.
    PacketLoad,
    /// A number that is no helper's.
    HelperUnknown {
        /// The number.
        number: i32,
    },
    /// A kernel function that the kernel has not.
    KfuncMissing {
        /// Its name.
        kfunc: String,
        /// The kernel has one of the name, with another prototype.
        has_other: bool,
    },
    /// A kernel function that the program cannot call.
    KfuncUnavailable {
        /// Its name.
        kfunc: Called,
        /// The rule.
        rule: KfuncRule,
    },
    /// The compiler ended the program where behaviour is undefined.
    Trap,
    /// A function that needs a GPL-compatible licence.
    License {
        /// The function or type that needs it.
        what: String,
        /// The program's licence.
        license: String,
    },
    /// An argument of the wrong type.
    ArgumentType {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
        /// Its value.
        found: KnownValue,
        /// What is taken.
        expected: Expected,
    },
    /// An argument of a module's function that takes a type of the module, which the kernel has another
    /// of the name of.
    ModuleType {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
        /// The type, as `struct sock`.
        structure: String,
        /// The module.
        module: String,
    },
    /// A size argument that is not bounded.
    ArgumentSize {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
        /// The fault.
        fault: SizeFault,
        /// Its value.
        value: Scalar,
        /// Its comparisons on the path.
        check: Check,
    },
    /// An argument that must be a constant.
    ArgumentConstant {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
    },
    /// An argument that must be the constant 0.
    ArgumentNotZero {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
    },
    /// An argument that must be a constant string in a map that may only be read.
    ConstantString {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
        /// It is one without a 0 at its end.
        unterminated: bool,
    },
    /// Packet memory is passed to a helper that does not take it.
    PacketArgument {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
    },
    /// The arguments of a global function do not fit its prototype.
    GlobalArguments {
        /// The function.
        function: String,
        /// The first that does not: number from 1, value, what the function takes.
        misfit: Option<(u8, KnownValue, Parameter)>,
        /// It points to a map that programs may only read.
        read_only: bool,
    },
    /// A function has a signature that global functions cannot have.
    GlobalSignature {
        /// The function.
        function: String,
        /// The fault.
        fault: SignatureFault,
    },
    /// A map that the program or the helper may not use.
    Map {
        /// Name of the map.
        map: String,
        /// Its kind.
        kind: String,
        /// The fault.
        fault: MapMisuse,
    },
    /// A call that may sleep where the program must not.
    Sleeps {
        /// The callee.
        callee: Called,
        /// The section that forbids it; `None` if the program is not sleepable.
        section: Option<Section>,
    },
    /// A reference is not released.
    Leak {
        /// Where they come from.
        acquired: Vec<Acquired>,
        /// End of the path.
        end: PathEnd,
    },
    /// A call releases what was not acquired.
    NotAcquired {
        /// The callee.
        callee: Called,
        /// The argument that is released.
        number: u8,
        /// It was released before, by this callee.
        released_by: Option<Called>,
    },
    /// Two arguments belong to acquired references, and a call takes one.
    TwoReferences {
        /// The callee.
        callee: Called,
    },
    /// An exception.
    Exception(ExceptionFault),
    /// Locks.
    Lock {
        /// The fault.
        fault: LockFault,
    },
    /// A dynptr, an iterator or saved IRQ flags on the stack.
    StackObject {
        /// The callee; the store that overwrites an object has none.
        callee: Option<Called>,
        /// Number of the argument.
        number: Option<u8>,
        /// The object.
        object: OnStack,
        /// The fault.
        fault: StackObjectFault,
    },
    /// An allocated object, a list, a tree, a kptr, or a field that a call takes the address of.
    AllocatedObject {
        /// The callee; an access has none.
        callee: Option<Called>,
        /// Number of the argument.
        number: Option<u8>,
        /// Its value.
        found: Option<KnownValue>,
        /// The fault.
        fault: ObjectFault,
    },
    /// The program ends inside a section.
    SectionOpen {
        /// The section.
        section: Section,
        /// End of the path.
        end: PathEnd,
    },
    /// A call that is for inside a section only, or for outside of it.
    SectionCall {
        /// The callee.
        callee: Called,
        /// The section.
        section: Section,
        /// True if the section has begun, and must not begin again.
        is_nested: bool,
    },
    /// The return value is not among the allowed.
    ReturnRange {
        /// The value.
        value: KnownValue,
        /// Least allowed.
        min: i64,
        /// Greatest allowed.
        max: i64,
        /// What returns it.
        by: ReturnedBy,
        /// The function or hook that the program is attached to by BTF.
        target: Option<String>,
    },
    /// A pointer is returned where a number is needed.
    ReturnPointer {
        /// The value.
        value: KnownValue,
    },
    /// A loop whose state repeats.
    InfiniteLoop {
        /// Registers that the loop's conditions read.
        registers: Vec<u8>,
        /// One of them is read from memory in each iteration.
        reads_memory: bool,
        /// Instructions of one iteration.
        insns: usize,
    },
    /// More instructions than the kernel walks over.
    TooComplex {
        /// Lines with the most instructions processed, worst first.
        lines: Vec<(InsnPlace, u64)>,
    },
    /// More pending branches than the kernel keeps.
    TooManyBranches {
        /// Lines with the most instructions processed, worst first.
        lines: Vec<(InsnPlace, u64)>,
    },
    /// More stack than a call chain may use.
    StackDepth {
        /// The deepest chain.
        chain: Vec<Chain>,
    },
    /// More frames than a call chain may have.
    CallDepth {
        /// The functions of the chain, outermost first.
        chain: Vec<String>,
        /// A function is in the chain twice.
        recurses: bool,
    },
    /// A program that is too large, or has too many of something.
    TooMany,
    /// A map that the program uses is not created.
    MapCreation(RefusedMap),
    /// An instruction that no path reaches.
    Unreachable,
    /// A loop, which programs without privilege may not have.
    BackEdge {
        /// The target of the jump.
        to: InsnPlace,
    },
    /// A jump or call to an instruction that is not the function's.
    JumpOutOfRange,
    /// A function whose last instruction does not end it.
    FallsThrough {
        /// The function.
        function: String,
    },
    /// A division by the immediate 0.
    DivisionByZero,
    /// A shift by an immediate that is not below the width.
    ShiftTooFar,
    /// An instruction that is invalid in this kernel, or with reserved fields set.
    Encoding,
    /// The program cannot attach to its target.
    AttachTarget(TargetFault),
    /// A pointer that is not trusted is given to a kfunc that needs such.
    Untrusted {
        /// The kfunc.
        callee: Called,
        /// Number of the argument, from 1.
        number: u8,
        /// Structure that it points to.
        structure: String,
        /// A pointer that RCU protects would do.
        takes_rcu: bool,
        /// What took the trust.
        lost: LostTrust,
    },
    /// BTF, func_info or line_info of the program.
    Btf,
    /// Privilege is missing.
    Privilege,
    /// A field or structure of the kernel that the program may not access so.
    Object {
        /// The structure.
        name: String,
        /// The module whose type it is, if that has one of its own beside the kernel's.
        module: Option<String>,
        /// It writes.
        is_write: bool,
        /// Why nothing is there for the access.
        fault: Option<AccessFault>,
    },
    /// The release of the kernel lacks it.
    Release,
    /// A CO-RE relocation that failed: the kernel lacks a type or field.
    Relocation {
        /// Accessed field or type, as `task_struct.pid`.
        access: String,
        /// What the kernel lacks or has instead, in words.
        absence: String,
    },
    /// The kernel's own failure.
    KernelBug,
    /// Anything else.
    General,
}

/// Why a program cannot attach to its target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetFault {
    /// Programs there must not sleep.
    Sleeps(String),
    /// Programs of the type never sleep.
    SleepingType,
    /// Programs of the type always sleep.
    SleepsAlways,
    /// Programs may not replace what the function returns.
    NotModifiable(String),
    /// The function never returns.
    NeverReturns(String),
    /// The function is not for tracing.
    Denied(String),
    /// The hook is not for programs.
    Hook(String),
    /// The kernel has no such operation for programs.
    Operation {
        /// The member.
        member: String,
        /// Its structure.
        structure: String,
    },
    /// The replaced function is static.
    Static(String),
    /// The replaced program has no function of the name.
    NoFunction(String),
    /// The target is of the kernel.
    ReplacesKernel,
    /// The replacement changes packets, and the function does not.
    ChangesPacket,
    /// The replacement may sleep, and the function does not.
    ReplacementSleeps,
    /// Numbers of parameters: of the replacement, of the function.
    ParameterCount(i64, i64),
    /// A parameter differs.
    Parameter {
        /// Number from 1.
        number: i64,
        /// Type of the replacement's, in words.
        found: String,
        /// Type of the function's, in words.
        wanted: String,
    },
    /// The types of the results differ.
    Result {
        /// That of the replacement.
        found: String,
        /// That of the function.
        wanted: String,
    },
    /// Programs that trace programs do not trace each other.
    Nested,
    /// The program names no target.
    Missing,
    /// The release has no such programs.
    Release,
    /// Another one.
    Other,
}

/// Origin of a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Acquired {
    /// A call.
    Call {
        /// The callee.
        callee: Called,
        /// The kernel functions that release what it returned, as far as its type says.
        releases: Vec<String>,
    },
    /// This argument of the program, which the kernel gives with a reference.
    Argument(String),
}

/// Rule by which a program may not call a kernel function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KfuncRule {
    /// Only programs of these types may.
    Types(Vec<&'static str>),
    /// Only LSM programs, iterators and programs that sleep may.
    Sleepable,
    /// Only programs that are bound to a device may.
    DeviceBound,
}

/// What returns a value that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnedBy {
    /// The program.
    Program,
    /// A callback.
    Callback,
    /// A callback that runs later.
    AsyncCallback,
    /// The program, by `bpf_throw`.
    Throw,
    /// The exception callback, whose result is that of the program.
    ExceptionCallback,
}

/// Fault of exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExceptionFault {
    /// A callback throws.
    InCallback,
    /// The exception callback is called.
    CallbackCalled,
    /// The exception callback takes other arguments than a number.
    Signature,
    /// The program names several exception callbacks.
    Several,
    /// The exception callback is not there, by this name.
    Missing(String),
    /// The exception callback is static.
    Static(String),
}
