//! Faults of relocations.

use std::fmt;

use btf::core::CoreError;
use spec::Errno;

use crate::error::{Blame, RELOC};

/// Fault of a relocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelocationFault {
    /// The instruction is neither a call nor an ld_imm64.
    NotRelocatable {
        /// Opcode.
        code: u8,
    },
    /// BTF does not describe the extern.
    UnknownExtern,
    /// A reference to a weak map or kconfig value, which the loader refuses.
    Weak,
    /// A CO-RE relocation that compares whole types, which the loader does not know.
    TypeMatches,
    /// The relocated call is no pseudo call.
    NotALocalCall,
    /// A call refers to a section other than `.text`.
    CallOutsideText {
        /// Section name.
        section: String,
    },
    /// A function does not start at an instruction.
    MisalignedFunction,
    /// The symbol is in no section.
    Undefined,
    /// A variable of an arena without an arena.
    NoArena,
    /// The section contains no variables.
    NotData {
        /// Section name.
        section: String,
    },
    /// A map in a section `maps/NAME`, as for gobpf and BCC.
    OtherLoadersMap {
        /// Section name.
        section: String,
    },
    /// No map is at the offset.
    NoMap {
        /// Offset in bytes from the start of the section.
        offset: u64,
    },
    /// No function is at the target of a call or address.
    NoFunction,
    /// An address of a function without its symbol.
    MissingAddress,
    /// A call that refers to data.
    UnexpectedReference,
    /// The second slot of an ld_imm64 is missing.
    CutLoad,
    /// A function lacks func_info, and its program has it.
    MissingType,
    /// A function lacks line_info, and its program has it.
    MissingLines,
    /// A jump table is not at its symbol, or is malformed.
    JumpTable {
        /// Offset in bytes from the start of the section.
        offset: u32,
        /// Size in bytes.
        size: u32,
    },
    /// The tag of an exception callback is not on a global function, or names none.
    CallbackTag,
    /// The exception callback is missing.
    NoCallback {
        /// Name.
        name: String,
    },
    /// The exception callback is static, hidden or ambiguous.
    CallbackLinkage {
        /// Name.
        name: String,
    },
    /// The CO-RE relocation failed.
    Core(CoreError),
    /// CO-RE relocations are for an unnamed section.
    CoreSection,
    /// A CO-RE relocation is not at an instruction.
    CoreOffset {
        /// Offset in bytes from the start of the section.
        offset: u32,
    },
    /// The instruction has no operand to relocate.
    CoreInstruction {
        /// Opcode.
        code: u8,
    },
    /// The operand differs from the one that the compiler should have written.
    CoreExpected {
        /// Expected value.
        expected: u64,
        /// Actual value.
        found: u64,
    },
    /// The relocated value does not fit.
    CoreRange {
        /// Value.
        value: u64,
    },
    /// The size of the access differs from that of the field, or the size of the kernel's
    /// field is no access size.
    CoreSize {
        /// Size of the access in bytes.
        found: u32,
        /// Size of the field in the object in bytes.
        from: u32,
        /// Size of the field in the kernel in bytes.
        to: u32,
    },
    /// The reduced BTF of the kernel lacks what the relocation refers to; the kernel may
    /// have it.
    LeftOut {
        /// Type or member in C notation.
        what: String,
    },
    /// CO-RE relocations, and the BTF of the kernel is unknown.
    NoKernelTypes,
    /// The assembled programs are too large together.
    TooLarge {
        /// Maximum number of slots, func_info and line_info records.
        limit: usize,
    },
}

impl RelocationFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            RelocationFault::CallOutsideText { .. }
            | RelocationFault::Weak
            | RelocationFault::TypeMatches
            | RelocationFault::Undefined
            | RelocationFault::NoArena
            | RelocationFault::NotData { .. }
            | RelocationFault::OtherLoadersMap { .. }
            | RelocationFault::CallbackTag
            | RelocationFault::NoCallback { .. }
            | RelocationFault::CallbackLinkage { .. } => Blame::User,
            RelocationFault::NoKernelTypes
            | RelocationFault::CoreRange { .. }
            | RelocationFault::CoreSize { .. } => Blame::Target,
            RelocationFault::TooLarge { .. } | RelocationFault::LeftOut { .. } => Blame::Beebox,
            _ => Blame::File,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        use RelocationFault as Fault;
        match self {
            Fault::Core(error) => Errno(error.errno()),
            Fault::CoreRange { .. } => Errno::ERANGE,
            Fault::TooLarge { .. } => Errno::ENOMEM,
            Fault::MissingType
            | Fault::MissingLines
            | Fault::NoCallback { .. }
            | Fault::LeftOut { .. }
            | Fault::NoKernelTypes => Errno::ENOENT,
            Fault::CutLoad
            | Fault::JumpTable { .. }
            | Fault::CallbackTag
            | Fault::CallbackLinkage { .. }
            | Fault::CoreSection
            | Fault::CoreOffset { .. }
            | Fault::CoreInstruction { .. }
            | Fault::CoreExpected { .. }
            | Fault::CoreSize { .. } => Errno::EINVAL,
            _ => RELOC,
        }
    }
}

impl fmt::Display for RelocationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RelocationFault as Fault;
        match self {
            Fault::NotRelocatable { code } => {
                write!(f, "opcode {code:#04x} is neither a call nor ld_imm64")
            }
            Fault::UnknownExtern => write!(f, "extern has no BTF"),
            Fault::Weak => write!(f, "reference to a weak symbol: declare it without __weak"),
            Fault::TypeMatches => write!(
                f,
                "CO-RE relocation of kind type_matches (bpf_core_type_matches), which this loader \
                 does not know"
            ),
            Fault::NotALocalCall => write!(f, "call is no call of a subprog"),
            Fault::CallOutsideText { section } => write!(
                f,
                "call of a function in section {section}: remove the SEC() of called functions"
            ),
            Fault::MisalignedFunction => write!(f, "function does not start at an instruction"),
            Fault::Undefined => write!(f, "variable is in no section: initialise it"),
            Fault::NoArena => write!(f, "variable is in an arena, and no arena is defined"),
            Fault::NotData { section } => {
                write!(
                    f,
                    "reference into section {section}, which has no variables"
                )
            }
            Fault::OtherLoadersMap { section } => write!(
                f,
                "section {section} defines a map as gobpf and BCC do, and libbpf does not: \
                 define maps in SEC(\".maps\") with __uint and __type"
            ),
            Fault::NoMap { offset } => write!(f, "no map is defined at offset {offset}"),
            Fault::NoFunction => write!(f, "no function starts at the call target"),
            Fault::MissingAddress => write!(f, "address of an unknown function"),
            Fault::UnexpectedReference => write!(f, "call refers to data"),
            Fault::CutLoad => write!(f, "second slot of ld_imm64 is missing"),
            Fault::MissingType => write!(f, "function has no func_info in .BTF.ext"),
            Fault::MissingLines => write!(f, "function has no line_info in .BTF.ext"),
            Fault::JumpTable { offset, size } => {
                write!(f, "no jump table of {size} bytes at offset {offset}")
            }
            Fault::CallbackTag => {
                write!(
                    f,
                    "tag exception_callback is not on a global function, or is empty"
                )
            }
            Fault::NoCallback { name } => write!(f, "exception callback {name} is missing"),
            Fault::CallbackLinkage { name } => write!(
                f,
                "exception callback {name} is not one visible global function"
            ),
            Fault::Core(error) => error.fmt(f),
            Fault::CoreSection => {
                write!(f, ".BTF.ext has CO-RE relocations for an unnamed section")
            }
            Fault::CoreOffset { offset } => {
                write!(
                    f,
                    "CO-RE relocation at offset {offset} is not at an instruction"
                )
            }
            Fault::CoreInstruction { code } => {
                write!(f, "opcode {code:#04x} has no operand to relocate")
            }
            Fault::CoreExpected { expected, found } => {
                write!(f, "instruction has {found} instead of {expected}")
            }
            Fault::CoreRange { value } => write!(f, "relocated value {value} does not fit"),
            Fault::CoreSize { found, from, to } => write!(
                f,
                "access of {found} bytes to a field of {from} bytes, which has {to} in the kernel"
            ),
            Fault::LeftOut { what } => write!(
                f,
                "the types given leave out {what}; the kernel's own types decide"
            ),
            Fault::NoKernelTypes => write!(f, "BTF of the kernel is required and unknown"),
            Fault::TooLarge { limit } => write!(
                f,
                "programs with their subprogs exceed {limit} instructions and records together"
            ),
        }
    }
}

impl std::error::Error for RelocationFault {}
