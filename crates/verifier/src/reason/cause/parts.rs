//! Parts of causes: kinds of accesses, of missing bounds and of misuse.

use std::fmt;

use btf::fields::{FieldFault, FieldKind};
use program::creation::MapRefusal;
use spec::registry::RegBase;

use crate::log::TypeText;
use crate::reason::explanation::{Called, InsnPlace, PointerTarget};
use crate::state::DynptrKind;

/// Reason why a register is not initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// No instruction of the function writes it.
    Never,
    /// Only other paths write it.
    OnOtherPaths,
    /// A call left nothing in it.
    Call,
    /// It is beyond the arguments that the function has at its entry.
    NotArgument,
    /// It is an argument that the call of the function does not set.
    NotPassed,
    /// The function ends without a return value.
    NoResult,
}

/// An object on the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum OnStack {
    Dynptr,
    Iterator,
    IrqFlags,
}

impl fmt::Display for OnStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OnStack::Dynptr => "a dynptr",
            OnStack::Iterator => "an iterator",
            OnStack::IrqFlags => "IRQ flags",
        })
    }
}

/// What is wrong with an object on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackObjectFault {
    /// A call makes one where there is one, or where none can begin.
    NotFree,
    /// A call takes one where none was made on this path.
    NotMade,
    /// A call takes one that this callee ended; the store that damaged it has none.
    Ended(Option<Called>),
    /// A call takes a place in the middle of one.
    Middle,
    /// A call takes this instead.
    IsOther(OnStack),
    /// A call writes over its bytes.
    WrittenByCall,
    /// It is of another kind than this.
    NotOfKind(DynptrKind),
    /// The function may not change the one that it was given.
    Constant,
    /// The function may not release the one that it was given.
    ReleasesGiven,
    /// Its bytes are read.
    Read,
    /// Bytes before it are read, and some of its own.
    ReadInto {
        /// First byte from the frame pointer.
        off: i64,
        /// Bytes.
        size: u32,
    },
    /// It is not on the stack.
    NotOnStack,
    /// A store overwrites one that holds a reference.
    Overwritten,
    /// It holds no reference that could be released; this callee released it before.
    NotHeld(Option<Called>),
    /// Its memory is this, and not the value of a map.
    Memory(String),
    /// The flags were saved before others that are not restored yet.
    Order,
    /// Calls of another kind saved the flags.
    OtherCalls,
    /// The section has ended in which it was made.
    OutsideRcu,
}

/// What is wrong with an allocated object, or with a field of one or of a map value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectFault {
    /// The program does not own it.
    NotOwned,
    /// It was given away by this callee.
    GivenAway(Called),
    /// A list or tree owns it, since this callee if that is known.
    NonOwning(Option<Called>),
    /// It was allocated for this release function.
    OtherRelease(&'static str),
    /// It is neither the value of a map nor an allocated object.
    NoContainer,
    /// It has no reference count.
    WithoutCount,
    /// No field of this name is there.
    NoField(FieldKind),
    /// The values of the map have no field of this name.
    NoFieldInMap {
        /// The map.
        map: String,
        /// The field.
        name: FieldKind,
    },
    /// The field of this name is at another offset.
    FieldAt {
        /// The field.
        name: FieldKind,
        /// The offset of the argument.
        off: i64,
        /// The offset of the field.
        expected: i64,
    },
    /// The address of a field of this name is variable.
    FieldVariable(FieldKind),
    /// The kptr is declared without a reference.
    Unreferenced,
    /// The lock beside the field of this name is not held.
    LockNotHeld {
        /// The field.
        name: FieldKind,
        /// Another lock is held.
        other: bool,
    },
    /// Its lock is held already.
    LockedTwice,
    /// It is not this node of this structure, which the list or tree holds.
    OtherNode(FieldKind, String),
    /// The call is not for functions that compare nodes.
    InCallback,
    /// Its type is none that can be allocated.
    NotAllocatable,
    /// The field is not in a map value.
    NotInValue,
    /// The field is in the value of another map.
    OtherMap,
    /// An instruction accesses this field.
    SpecialField(FieldKind),
}

/// End of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// An exit.
    Exit,
    /// A packet load, which may end the program.
    PacketLoad,
    /// A call.
    Call(Called),
}

impl fmt::Display for PathEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathEnd::Exit => f.write_str("exit"),
            PathEnd::PacketLoad => f.write_str("packet load"),
            PathEnd::Call(callee) => callee.fmt(f),
        }
    }
}

/// What a call takes as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// One of these types.
    Types(Vec<TypeText>),
    /// This structure of the kernel, by name.
    Structure(String),
    /// A pointer to this type, as `struct sock`.
    Pointer {
        /// The type.
        to: String,
        /// It must be the kernel's own.
        of_kernel: bool,
    },
    /// A pointer to some object of the kernel.
    Object,
    /// The id of a structure of the kernel's types.
    TypeId,
}

impl From<RegBase> for Expected {
    fn from(base: RegBase) -> Expected {
        Expected::Types(vec![TypeText::from(base.plain())])
    }
}

/// Use of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// A load.
    Read,
    /// A store or atomic instruction.
    Write,
    /// Arithmetic.
    Arithmetic,
    /// An argument.
    Argument {
        /// The callee.
        callee: Called,
        /// Number from 1.
        number: u8,
    },
}

/// Origin of a number that is used as a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NumberSource {
    /// It is null on this path: a comparison showed it.
    ShownNull,
    /// It is a constant.
    Constant(i64),
    /// It is null, to which so much was added.
    NullPlus(i64),
    /// A packet pointer, before a call that may move the packet.
    PacketMoved {
        /// The callee.
        callee: Called,
    },
    /// An object, before a call that released it.
    Released {
        /// The callee.
        callee: Called,
        /// What the object was.
        object: LostObject,
    },
    /// A pointer on the stack, before a store that changed some of its bytes.
    Overwritten,
    /// A pointer to the bytes of a dynptr, before a store that changed the dynptr.
    DynptrOverwritten,
    /// Read from memory that holds numbers.
    Memory(PointerTarget),
    /// A field of the context.
    ContextField(Option<String>),
    /// A call returned it.
    Result {
        /// The callee.
        callee: Called,
    },
    /// Arithmetic made it.
    Arithmetic,
    /// Only the low bits of a pointer were kept.
    Narrowed,
    /// Bytes of the stack that no single store wrote.
    StackBytes,
    /// Bytes of the stack that a call wrote.
    WrittenByCall {
        /// The callee.
        callee: Called,
    },
    /// An argument of a function that is verified on its own.
    Argument {
        /// Number from 1.
        number: u8,
    },
    /// Anything else.
    Unknown,
}

/// Object that a call made unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostObject {
    /// One that was acquired.
    Acquired,
    /// A node that a list or tree owns.
    Node,
    /// Bytes of a dynptr.
    Slice,
}

/// What took the trust from a pointer, or why it never had it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostTrust {
    /// RCU protects it, and the program holds no reference of it.
    Rcu {
        /// It was read from the value of a map.
        from_map: bool,
    },
    /// It was read from a member of an object of this structure.
    Member(String),
    /// It was read from a map outside of an RCU section.
    Kptr,
    /// The section in which it was valid ended, by this callee.
    SectionEnd(Called),
    /// It is an argument of a function that is traced.
    Traced,
    /// It was cast.
    Cast,
    /// It is no pointer to an object.
    Number,
    /// Anything else.
    Unknown,
}

/// Comparison with null of a pointer that may be null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NullCheck {
    /// No comparison of the path is about it.
    Missing,
    /// One is of another result of the same callee.
    OtherResult,
    /// One is of an earlier read of the same memory.
    Reread,
}

/// Base of a packet pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketBase {
    /// The start of the packet, or of the metadata before it.
    Start,
    /// A pointer with a variable offset.
    Variable,
}

/// Bytes that a function accesses through a packet pointer from one instruction on, until it
/// compares the pointer again, as offsets from the start of the packet, or from the pointer as
/// its variable offset was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketExtent {
    /// The first byte of all.
    pub first: i64,
    /// Behind the last byte before the next branch.
    pub next: i64,
    /// Behind the last byte of all.
    pub end: i64,
}

/// The loop around a packet access whose pointer moves in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketLoop {
    /// It is the callback of a helper, called once for each iteration.
    pub is_callback: bool,
    /// Most iterations that keep the offset so small that comparisons count, where each moves
    /// the pointer by a known number of bytes at most.
    pub most: Option<u64>,
}

/// Members of the context that one instruction accesses, on different paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergedMembers {
    /// Their names, by offset.
    pub members: Vec<String>,
    /// The conditional jump that chooses between them.
    pub branch: Option<InsnPlace>,
}

/// Reason why a function cannot be global.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignatureFault {
    /// Its BTF is not that of a function.
    NotFunction,
    /// It has more arguments than registers pass.
    TooManyArguments(usize),
    /// Its result is no number but of this type.
    Result(String),
    /// An argument.
    Argument {
        /// Number from 1.
        number: u8,
        /// Its type.
        ty: String,
        /// The fault.
        fault: ParameterFault,
    },
}

/// Reason why a global function cannot have an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParameterFault {
    /// It is neither a number nor a pointer.
    Kind,
    /// A pointer to something of unknown size.
    Unsized,
    /// Its declaration tags are unknown, or do not go together or with its type.
    Tags,
    /// It is tagged as the context, and is of another type: this one is expected, or `void`.
    Context(Option<&'static str>),
    /// The kernel has no type of the pointee's name.
    NoKernelType,
    /// The kernel has several types of the pointee's name.
    AmbiguousKernelType,
}

/// Type that a global function takes as an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// A number.
    Number,
    /// The context, unmodified.
    Context,
    /// Memory of so many bytes.
    Memory {
        /// Bytes.
        size: u32,
        /// Null is taken too.
        nullable: bool,
    },
    /// An address that is read with faults handled.
    Untrusted,
    /// A kernel object of this structure.
    Object {
        /// Name of the structure.
        name: String,
        /// Null is taken too.
        nullable: bool,
    },
    /// An address in the arena.
    Arena,
    /// A dynptr.
    Dynptr,
}

/// Reason why no comparison on the path proves a packet access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketCheckFault {
    /// There is none.
    Missing,
    /// There is one for fewer bytes.
    TooShort,
    /// There is one of another pointer.
    OtherPointer,
    /// There is one of the difference of pointers, which proves nothing.
    Difference,
    /// There is one, but an offset of so much is too large for it to count.
    OffsetTooWide {
        /// Greatest value of the variable part.
        max: u64,
    },
    /// The access is beyond the offsets for which comparisons count.
    BeyondLimit,
    /// The path is the one on which the pointer is beyond the end.
    Beyond,
}

/// The missing bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundsFault {
    /// The least offset is below the start.
    Below,
    /// The greatest offset is beyond the end.
    Above,
    /// A constant offset is outside.
    Constant,
    /// Nothing bounds the offset from above.
    Unbounded,
    /// The offset must be a constant.
    Variable,
}

/// Comparisons of a number on a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// No comparison of the path is about it.
    Missing,
    /// One bounds it, but not enough.
    Loose,
    /// One bounds a copy, and not the number that is used.
    Copy,
    /// One bounds so many low bits only.
    LowBits(u32),
    /// One is signed or unsigned where the other is needed.
    Signed,
    /// One bounds the number before arithmetic changed it.
    Before,
    /// One bounds an earlier read of the same memory.
    Reread,
    /// It is bounded, and the size that is added to it is variable too.
    WithSize,
    /// There is nothing to bound.
    NotApplicable,
}

/// Rule of a context access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContextFault {
    /// The field may be read and not written.
    ReadOnly,
    /// The field may be accessed by other widths, in bytes.
    Width(Vec<u32>),
    /// The offset is beyond the context.
    Outside,
    /// The program type does not have the field, but these do.
    OtherTypes(Vec<&'static str>),
    /// No program may access it so.
    Never,
    /// The context holds the arguments of a function.
    Arguments {
        /// The function.
        function: String,
        /// Types and names of its arguments, then the type of the result where there is one.
        arguments: Vec<String>,
        /// The fault.
        fault: ArgumentFault,
    },
}

/// Fault of an access to the arguments of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentFault {
    /// There is no argument of this number, from 1.
    Missing(usize),
    /// The offset is in the middle of one.
    Misaligned(usize),
    /// A pointer is read in part.
    Width(usize),
    /// The program may not write them.
    ReadOnly(usize),
    /// The type of this one is not for programs.
    Kind(usize),
}

/// Fault of pointer arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArithmeticFault {
    /// An operation other than addition and subtraction.
    Operation,
    /// Both operands are pointers.
    TwoPointers,
    /// Only the low 32 bits are computed.
    Width32,
    /// Pointers of this kind have no offsets.
    Kind,
    /// A pointer is subtracted from a number.
    FromNumber,
    /// A number is subtracted from a stack pointer.
    FromStack,
    /// The number may be anything.
    Unbounded {
        /// It is subtracted, not added.
        is_subtracted: bool,
    },
    /// The number is too large for any object.
    TooFar(i64),
    /// Only part of the pointer is copied.
    Partial,
}

/// Fault of a size argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeFault {
    /// It may be negative.
    Negative,
    /// It may be 0.
    Zero,
    /// Nothing bounds it from above.
    Unbounded,
}

/// Part of an entry of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapPart {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A use of a map that the verifier refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapMisuse {
    /// Programs may not write it.
    WriteForbidden,
    /// Programs may not read it.
    ReadForbidden,
    /// The immediate names no map.
    None,
    /// The helper does not take its kind.
    Helper {
        /// The helper.
        helper: Called,
        /// Kinds that it takes.
        kinds: Vec<&'static str>,
    },
    /// The helper takes a key, and its kind has none.
    NoKeys(Called),
    /// The instruction does not take its kind.
    DirectValue,
    /// The instruction names an offset that is not in the map's value.
    Offset,
    /// Its values have no such field.
    Field(String),
    /// Its values have no such field, as the program is loaded without BTF.
    NoBtf(String),
    /// Its values have no such field, as the kernel takes none of their special fields.
    UnusableFields {
        /// The field.
        field: String,
        /// What is wrong with the fields.
        fault: FieldFault,
    },
    /// It is created without BTF, so that its values have no such field.
    WithoutBtf {
        /// The field.
        field: String,
        /// The refusal of its types.
        refusal: Box<MapRefusal>,
    },
    /// Programs that may sleep do not have it.
    Sleepable,
    /// The program type may not use it.
    ProgramType,
    /// The program type may not use maps whose values have this field.
    FieldForType(String),
    /// The program uses another map of its kind, and may use one.
    Second,
}

/// Fault of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockFault {
    /// A lock is held where the path ends.
    Held {
        /// End of the path.
        end: PathEnd,
    },
    /// A second lock is taken.
    Second,
    /// The lock that is released is not the one that is held.
    Other {
        /// The callee.
        callee: Called,
    },
    /// Another lock was taken behind the one that is released.
    Order,
    /// No lock is held.
    NotHeld,
    /// A call while a lock is held.
    Call {
        /// The callee.
        callee: Called,
        /// It is a function of the program.
        is_own: bool,
    },
    /// The argument is no lock.
    NotLock,
}
