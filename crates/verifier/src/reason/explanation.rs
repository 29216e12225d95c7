//! The data of an explanation.

use std::fmt;

use spec::helpers::HelperId;
use spec::programs::ProgramType;
use spec::registry::{KfuncFlags, SpecialKfunc};

use super::capability::MissingCapabilities;
use super::cause::Cause;
use crate::domain::Scalar;
use crate::log::TypeText;
use crate::verdict::Refusal;

/// Explanation of a refusal for the author of the program.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Name of the program; empty if it has none.
    pub program: String,
    /// Its type.
    pub program_type: ProgramType,
    /// The kernel's answer.
    pub refusal: Refusal,
    /// The instruction that is refused; `None` if it is the program as a whole.
    pub place: Option<InsnPlace>,
    /// Cause and unmet requirement.
    #[doc(hidden)]
    pub cause: Cause,
    /// Values before the instruction.
    #[doc(hidden)]
    pub known: Vec<Known>,
    /// Origins of those values, oldest first.
    #[doc(hidden)]
    pub notes: Vec<Note>,
    /// The way there.
    #[doc(hidden)]
    pub path: Path,
    /// Lines of the kernel's log at the instruction, before its last line.
    pub log: Vec<String>,
    /// Capabilities with which the refusal is gone.
    #[doc(hidden)]
    pub missing: Option<MissingCapabilities>,
}

/// A capability of the caller of bpf(2) that verification depends on. CAP_SYS_ADMIN stands for
/// each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// CAP_BPF.
    Bpf,
    /// CAP_PERFMON.
    Perfmon,
    /// CAP_NET_ADMIN.
    NetAdmin,
}

impl Capability {
    /// The kernel's name.
    pub const fn name(self) -> &'static str {
        match self {
            Capability::Bpf => "CAP_BPF",
            Capability::Perfmon => "CAP_PERFMON",
            Capability::NetAdmin => "CAP_NET_ADMIN",
        }
    }
}

/// What a call calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Called {
    /// Its name.
    pub name: String,
    /// The helper, if it is one of Linux.
    pub helper: Option<HelperId>,
    /// The kernel function, if it is one with rules of its own.
    pub kfunc: Option<SpecialKfunc>,
    /// Flags of the kernel function.
    pub flags: KfuncFlags,
}

impl fmt::Display for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// An instruction of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InsnPlace {
    /// Index of the instruction.
    pub insn: u32,
    /// The instruction in LLVM's text.
    pub text: String,
    /// The function that holds it; empty if it has no name.
    pub function: String,
    /// Its source line, if line_info has it.
    pub source: Option<Source>,
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Path of the file, as the compiler was given it.
    pub file: String,
    /// Line number from 1.
    pub line: u32,
    /// Column from 1; 0 if it is not known.
    pub column: u32,
    /// Text of the line, as it stands in the file.
    pub text: String,
}

/// The known value of a register or slot.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The register, or the slot as `fp-8`.
    pub holder: String,
    /// The known value.
    pub value: KnownValue,
}

/// Known value.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownValue {
    /// Nothing was written.
    Unwritten,
    /// A number.
    Number(Scalar),
    /// A pointer.
    Pointer {
        /// Its pointee.
        kind: PointerTarget,
        /// Constant part of its offset.
        offset: i64,
        /// Variable part of its offset.
        variable: Option<Scalar>,
        /// It may be null.
        maybe_null: bool,
        /// It belongs to a reference that must be released.
        acquired: bool,
        /// Its type, written by its name in the kernel, such as `map_value_or_null`.
        ty: TypeText,
    },
}

/// Pointee of a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PointerTarget {
    /// The context.
    Context,
    /// A map, by name.
    Map(String),
    /// A value of a map.
    MapValue {
        /// Name of the map.
        map: String,
        /// Bytes of a value.
        size: u32,
    },
    /// A key of a map.
    MapKey {
        /// Name of the map.
        map: String,
        /// Bytes of a key.
        size: u32,
    },
    /// The stack.
    Stack {
        /// The frame of another function.
        of_caller: bool,
    },
    /// The packet.
    Packet {
        /// Bytes from the variable base that a comparison has proven; negative at or beyond
        /// the end.
        range: i32,
    },
    /// Metadata before the packet.
    PacketMeta {
        /// Bytes that a comparison has proven.
        range: i32,
    },
    /// The end of the packet.
    PacketEnd,
    /// A socket.
    Socket,
    /// A structure of the kernel, by name.
    Object {
        /// Name of the structure.
        name: String,
        /// Loads through it are probed, and helpers do not take it.
        untrusted: bool,
    },
    /// Memory of known size.
    Memory {
        /// Bytes.
        size: u32,
        /// It is a record of a ring buffer.
        record: bool,
    },
    /// A function of the program.
    Function,
    /// Anything else.
    Other(TypeText),
}

/// Something that happened to a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Note {
    /// Instruction.
    pub place: InsnPlace,
    /// The step of the path, from 0; `None` if the path does not pass there.
    pub step: Option<usize>,
    /// Kind of change.
    pub kind: NoteKind,
}

/// Kind of change of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum NoteKind {
    /// A function that is verified on its own has it as argument.
    Argument {
        /// Number of the argument from 1.
        number: u8,
        /// Its value.
        value: KnownValue,
    },
    /// An instruction sets it.
    Set {
        /// Its value then.
        value: KnownValue,
    },
    /// It is read from memory.
    Loaded {
        /// The pointer.
        from: KnownValue,
        /// The field of the context, if it is one.
        field: Option<String>,
        /// Its value then.
        value: KnownValue,
    },
    /// Arithmetic makes it.
    Computed {
        /// Its value then.
        value: KnownValue,
    },
    /// A call returns it.
    Returned {
        /// The callee.
        callee: Called,
        /// Its value then.
        value: KnownValue,
    },
    /// A call of a function of the program receives it.
    Passed,
    /// It is stored on the stack.
    Spilled {
        /// Offset from the frame pointer.
        offset: i32,
    },
    /// It is read back from the stack.
    Filled {
        /// Its value then.
        value: KnownValue,
    },
    /// Some of its bytes are written by another store.
    PartStored,
    /// A call writes it.
    WrittenByCall {
        /// The callee.
        callee: Called,
    },
    /// Only its low bits are kept.
    Narrowed {
        /// Its value then.
        value: KnownValue,
    },
    /// A call leaves nothing in the register.
    Clobbered {
        /// The callee.
        callee: Called,
    },
    /// A call makes the pointer unusable.
    Invalidated {
        /// The callee.
        callee: Called,
    },
    /// A comparison bounds it, or a copy of it.
    Compared {
        /// The compared value after it.
        value: KnownValue,
    },
    /// A comparison shows that it is null.
    ShownNull,
    /// A comparison with null is of another pointer.
    OtherNullCheck,
    /// A comparison with null is of an earlier read of the same memory.
    EarlierNullCheck,
    /// A branch decides which member the instruction accesses.
    ChoosesMember,
    /// A comparison with the end of the packet is of another pointer.
    OtherPacketCheck {
        /// The compared pointer after it.
        value: KnownValue,
    },
    /// A comparison with the end of the packet proves so many bytes.
    PacketCheck {
        /// Bytes.
        range: i32,
    },
    /// A call acquires a reference.
    Acquired {
        /// The callee.
        callee: Called,
    },
    /// A call takes a lock.
    Locked {
        /// The callee.
        callee: Called,
    },
    /// The kernel gives the program a reference.
    Given,
    /// A call begins a section.
    SectionBegun {
        /// The callee.
        callee: Called,
    },
    /// A call makes an object on the stack.
    Made {
        /// The callee.
        callee: Called,
    },
    /// A call ends an object on the stack; a store that damages it has no callee.
    Ended {
        /// The callee.
        callee: Option<Called>,
    },
    /// A call takes the trust from the pointer.
    Distrusted {
        /// The callee.
        callee: Called,
    },
    /// A call gives the object away.
    GivenAway {
        /// The callee.
        callee: Called,
    },
    /// Another path writes it.
    WrittenElsewhere,
    /// The loop starts here.
    LoopStart,
}

/// The decisions of a path.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// The first and the last decisions, in order.
    pub decisions: Vec<Decision>,
    /// Decisions left out, and behind how many of the first.
    pub omitted: Option<(usize, usize)>,
    /// Instructions on the path.
    pub steps: usize,
}

/// A decision of a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// A conditional jump.
    Branch {
        /// The jump.
        at: InsnPlace,
        /// True if it jumps.
        taken: bool,
        /// Next instruction of the path.
        to: InsnPlace,
        /// So many times in a row.
        times: usize,
    },
    /// A function of the program is entered.
    Call {
        /// The call.
        at: InsnPlace,
        /// The function.
        function: String,
        /// It is called by a helper.
        callback: bool,
    },
    /// A function returns.
    Return {
        /// The exit.
        at: InsnPlace,
        /// The function.
        function: String,
    },
}

/// A function on a call chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Name of the function.
    pub function: String,
    /// Bytes of stack that the kernel counts for it.
    pub stack: u32,
}
