//! Parts of causes: kinds of accesses, of missing bounds and of misuse.

use program::creation::MapRefusal;

use crate::reason::explanation::PointerTarget;

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
        callee: String,
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
    /// A packet pointer, before a call that may move the packet.
    PacketMoved {
        /// The callee.
        callee: String,
    },
    /// An object, before a call that released it.
    Released {
        /// The callee.
        callee: String,
    },
    /// Read from memory that holds numbers.
    Memory(PointerTarget),
    /// A field of the context.
    ContextField(Option<String>),
    /// A call returned it.
    Result {
        /// The callee.
        callee: String,
    },
    /// Arithmetic made it.
    Arithmetic,
    /// Only the low bits of a pointer were kept.
    Narrowed,
    /// Bytes of the stack that no single store wrote.
    StackBytes,
    /// An argument of a function that is verified on its own.
    Argument {
        /// Number from 1.
        number: u8,
    },
    /// Anything else.
    Unknown,
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
    /// There is one, but an offset of so much is too large for it to count.
    OffsetTooWide {
        /// Greatest value of the variable part.
        max: u64,
    },
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
    /// One bounds the low 32 bits only.
    Low32,
    /// One is signed or unsigned where the other is needed.
    Signed,
    /// One bounds the number before arithmetic changed it.
    Before,
    /// One bounds an earlier read of the same memory.
    Reread,
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
    Unbounded,
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
    Helper(String),
    /// The instruction does not take its kind.
    DirectValue,
    /// The instruction names an offset that is not in the map's value.
    Offset,
    /// Its values have no such field.
    Field(&'static str),
    /// It is created without BTF, so that its values have no such field.
    WithoutBtf {
        /// The field.
        field: &'static str,
        /// The refusal of its types.
        refusal: Box<MapRefusal>,
    },
    /// Programs that may sleep do not have it.
    Sleepable,
    /// The program type may not use it.
    ProgramType,
}

/// Fault of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LockFault {
    /// A lock is held where the path ends: `exit` or the callee.
    Held {
        /// End of the path.
        end: String,
    },
    /// A second lock is taken.
    Second,
    /// The lock that is released is not the one that is held.
    Other,
    /// No lock is held.
    NotHeld,
    /// A call while a lock is held.
    Call {
        /// The callee.
        callee: String,
    },
    /// The argument is no lock.
    NotLock,
}
