//! What can be wrong with a relocation.

use std::fmt;

use btf::core::CoreError;

use crate::error::{Blame, RELOC};

/// Why an instruction can't be made to refer to what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelocationFault {
    /// The instruction is neither a call nor a load of 64 bits.
    NotRelocatable {
        /// Its opcode.
        code: u8,
    },
    /// The symbol is of another file, and no type says what it is.
    UnknownExtern,
    /// A call of a function is no call of a function of the program.
    NotALocalCall,
    /// A call leads to a section other than `.text`.
    CallOutsideText {
        /// Its name.
        section: String,
    },
    /// A function does not start at an instruction.
    MisalignedFunction,
    /// The symbol is in no section.
    Undefined,
    /// A variable of an arena, and no arena is defined.
    NoArena,
    /// There is nothing to refer to in that section.
    NotData {
        /// Its name.
        section: String,
    },
    /// A map defined as BCC does.
    BccMap {
        /// The section's name.
        section: String,
    },
    /// No map is defined there.
    NoMap {
        /// Bytes from the start of the section.
        offset: u64,
    },
    /// A call or address leads where no function is.
    NoFunction,
    /// An instruction takes the address of a function and says not of which.
    MissingAddress,
    /// A call that is to become a reference to data.
    UnexpectedReference,
    /// The second half of a load of 64 bits is missing.
    CutLoad,
    /// The type of a function is missing, though the program's is there.
    MissingType,
    /// The source lines of a function are missing, though the program's are there.
    MissingLines,
    /// A jump table is not where its symbol says, or is no table of places.
    JumpTable {
        /// Bytes from the start of the section.
        offset: u32,
        /// Bytes.
        size: u32,
    },
    /// The tag that names an exception callback is on no global function, or names
    /// none.
    CallbackTag,
    /// There is no function with the name of the exception callback.
    NoCallback {
        /// The name.
        name: String,
    },
    /// The exception callback is static, hidden, or there are several.
    CallbackLinkage {
        /// Its name.
        name: String,
    },
    /// The relocation against the kernel's types itself.
    Core(CoreError),
    /// Relocations are for a section that has no name.
    CoreSection,
    /// A relocation against the kernel's types is not at an instruction.
    CoreOffset {
        /// Where it is, in bytes from the start of the section.
        offset: u32,
    },
    /// The instruction is not one that holds a number to replace.
    CoreInstruction {
        /// Its opcode.
        code: u8,
    },
    /// The instruction holds another number than the compiler should have left.
    CoreExpected {
        /// What it should hold.
        expected: u64,
        /// What it holds.
        found: u64,
    },
    /// The new number does not fit.
    CoreRange {
        /// The number.
        value: u64,
    },
    /// The instruction reads or writes another number of bytes than the field has,
    /// or the new field has a size that no instruction reads.
    CoreSize {
        /// Bytes that the instruction accesses.
        found: u32,
        /// Bytes of the field in the object.
        from: u32,
        /// Bytes of the field in the kernel.
        to: u32,
    },
    /// The object depends on the kernel's types, and there are none.
    NoKernelTypes,
    /// All programs together, each with the functions that it calls, are too large.
    TooLarge {
        /// How many slots and records of types and lines they may have.
        limit: usize,
    },
}

impl RelocationFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            RelocationFault::CallOutsideText { .. }
            | RelocationFault::Undefined
            | RelocationFault::NoArena
            | RelocationFault::NotData { .. }
            | RelocationFault::BccMap { .. }
            | RelocationFault::CallbackTag
            | RelocationFault::NoCallback { .. }
            | RelocationFault::CallbackLinkage { .. } => Blame::User,
            RelocationFault::NoKernelTypes
            | RelocationFault::CoreRange { .. }
            | RelocationFault::CoreSize { .. } => Blame::Target,
            RelocationFault::TooLarge { .. } => Blame::Beebox,
            _ => Blame::File,
        }
    }

    /// The number of the error with which libbpf ends.
    pub fn errno(&self) -> i32 {
        use RelocationFault as Fault;
        match self {
            Fault::Core(error) => error.errno(),
            Fault::CoreRange { .. } => 34,
            Fault::TooLarge { .. } => 12,
            Fault::MissingType
            | Fault::MissingLines
            | Fault::NoCallback { .. }
            | Fault::NoKernelTypes => 2,
            Fault::CutLoad
            | Fault::JumpTable { .. }
            | Fault::CallbackTag
            | Fault::CallbackLinkage { .. }
            | Fault::CoreSection
            | Fault::CoreOffset { .. }
            | Fault::CoreInstruction { .. }
            | Fault::CoreExpected { .. }
            | Fault::CoreSize { .. } => 22,
            _ => RELOC,
        }
    }
}

impl fmt::Display for RelocationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use RelocationFault as Fault;
        match self {
            Fault::NotRelocatable { code } => {
                write!(f, "opcode {code:#04x} can't refer to anything")
            }
            Fault::UnknownExtern => write!(f, "an extern that no type describes"),
            Fault::NotALocalCall => write!(f, "the call is no call of a function of the program"),
            Fault::CallOutsideText { section } => write!(
                f,
                "a call into section {section}: functions to call must have no SEC()"
            ),
            Fault::MisalignedFunction => write!(f, "a function that starts at no instruction"),
            Fault::Undefined => write!(f, "a variable that is in no section: is it initialised?"),
            Fault::NoArena => write!(f, "a variable of an arena, but no arena is defined"),
            Fault::NotData { section } => {
                write!(
                    f,
                    "a reference into section {section}, which holds no variables"
                )
            }
            Fault::BccMap { section } => write!(
                f,
                "section {section} defines a map as BCC does: BCC rewrites programs when it \
                 loads them, and no other loader can; define maps in SEC(\".maps\")"
            ),
            Fault::NoMap { offset } => write!(f, "no map is defined at offset {offset}"),
            Fault::NoFunction => write!(f, "there is no function where the call leads"),
            Fault::MissingAddress => write!(f, "the address of an unknown function"),
            Fault::UnexpectedReference => write!(f, "a call that refers to data"),
            Fault::CutLoad => write!(f, "the second half of a 64-bit load is missing"),
            Fault::MissingType => write!(f, ".BTF.ext does not tell the function's type"),
            Fault::MissingLines => write!(f, ".BTF.ext does not tell the function's lines"),
            Fault::JumpTable { offset, size } => {
                write!(f, "no jump table of {size} bytes at offset {offset}")
            }
            Fault::CallbackTag => {
                write!(
                    f,
                    "the tag exception_callback is on no global function, or is empty"
                )
            }
            Fault::NoCallback { name } => write!(f, "there is no exception callback {name}"),
            Fault::CallbackLinkage { name } => write!(
                f,
                "the exception callback {name} must be one global function that is not hidden"
            ),
            Fault::Core(error) => error.fmt(f),
            Fault::CoreSection => write!(f, ".BTF.ext has relocations for no section"),
            Fault::CoreOffset { offset } => {
                write!(
                    f,
                    ".BTF.ext has a relocation for no instruction, at offset {offset}"
                )
            }
            Fault::CoreInstruction { code } => {
                write!(f, "opcode {code:#04x} holds no number to relocate")
            }
            Fault::CoreExpected { expected, found } => {
                write!(
                    f,
                    "the instruction holds {found}, where {expected} was expected"
                )
            }
            Fault::CoreRange { value } => write!(f, "an offset of {value} does not fit"),
            Fault::CoreSize { found, from, to } => write!(
                f,
                "an access of {found} bytes to a field of {from} bytes that has {to} in the kernel"
            ),
            Fault::NoKernelTypes => write!(f, "the types of the kernel are needed and not there"),
            Fault::TooLarge { limit } => write!(
                f,
                "the programs, each with the functions that it calls, have more than {limit} \
                 instructions and lines"
            ),
        }
    }
}
