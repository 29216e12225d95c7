//! Faults of struct_ops variables.

use std::fmt;

use btf::Kind;
use spec::Errno;

use crate::error::{Blame, FORMAT, RELOC};

/// Fault of a struct_ops variable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructOpsFault {
    /// BTF is missing.
    NoTypes,
    /// BTF does not describe the section.
    NotDescribed,
    /// The DATASEC lists a variable without a type.
    NoType,
    /// The type has no name.
    Anonymous,
    /// The type is no structure.
    NotStructure(String),
    /// The variable reaches beyond its section.
    BeyondSection,
    /// A relocation is not in a variable.
    Nowhere {
        /// Offset in bytes from the start of the section.
        offset: u64,
    },
    /// A relocation refers to an undefined symbol, or to no function.
    NotLocal,
    /// A relocation refers to an offset inside an instruction.
    Misaligned {
        /// Offset in bytes from the start of the section.
        offset: u64,
    },
    /// No member starts at the offset of a relocation.
    NoMember {
        /// Offset in bytes from the start of the variable.
        offset: u64,
    },
    /// The member is no function pointer.
    NotFunction(String),
    /// The member refers to no program.
    NoProgram(String),
    /// The program has another program type.
    OtherProgram {
        /// Member.
        member: String,
    },
    /// The kernel lacks the struct_ops type.
    NotInKernel(String),
    /// The kernel's value type does not contain the struct_ops type.
    NotInValue(String),
    /// A member has no size.
    NoSize(String),
    /// The kernel lacks the member, and the object sets it.
    MissingMember(String),
    /// A member is a bit field.
    BitField(String),
    /// The kernel's member has another kind.
    OtherKind {
        /// Member.
        member: String,
        /// Kind in the object.
        here: Kind,
        /// Kind in the kernel.
        there: Kind,
    },
    /// The kernel's member has another size.
    OtherSize {
        /// Member.
        member: String,
        /// Size in the object in bytes.
        here: u32,
        /// Size in the kernel in bytes, if it has one.
        there: Option<u32>,
    },
    /// A function pointer is set, and not to a program.
    NotProgram(String),
    /// The kernel's member is no function pointer.
    KernelNotFunction(String),
    /// A program is used for two different types or members.
    SecondUse {
        /// Member.
        member: String,
    },
}

impl StructOpsFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            StructOpsFault::NoTypes
            | StructOpsFault::NotDescribed
            | StructOpsFault::NoType
            | StructOpsFault::BeyondSection
            | StructOpsFault::Nowhere { .. }
            | StructOpsFault::Misaligned { .. }
            | StructOpsFault::NoSize(_) => Blame::File,
            StructOpsFault::NotInKernel(_)
            | StructOpsFault::NotInValue(_)
            | StructOpsFault::MissingMember(_)
            | StructOpsFault::OtherKind { .. }
            | StructOpsFault::OtherSize { .. }
            | StructOpsFault::KernelNotFunction(_) => Blame::Target,
            _ => Blame::User,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            StructOpsFault::NoTypes => Errno::ENOENT,
            StructOpsFault::NotLocal => RELOC,
            StructOpsFault::Misaligned { .. } => FORMAT,
            StructOpsFault::NotInKernel(_) => Errno::ESRCH,
            StructOpsFault::Anonymous
            | StructOpsFault::MissingMember(_)
            | StructOpsFault::BitField(_)
            | StructOpsFault::OtherKind { .. }
            | StructOpsFault::OtherSize { .. }
            | StructOpsFault::NotProgram(_)
            | StructOpsFault::KernelNotFunction(_) => Errno::EOPNOTSUPP,
            _ => Errno::EINVAL,
        }
    }
}

impl fmt::Display for StructOpsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StructOpsFault::NoTypes => write!(
                f,
                "struct_ops requires BTF, and the object has none: compile with -g"
            ),
            StructOpsFault::NotDescribed => write!(f, "BTF does not describe the section"),
            StructOpsFault::NoType => write!(f, "DATASEC lists a variable without a type"),
            StructOpsFault::Anonymous => write!(f, "type of the struct_ops variable has no name"),
            StructOpsFault::NotStructure(name) => {
                write!(f, "type {name} of the struct_ops variable is no structure")
            }
            StructOpsFault::BeyondSection => {
                write!(f, "BTF places the struct_ops variable beyond its section")
            }
            StructOpsFault::Nowhere { offset } => {
                write!(
                    f,
                    "relocation at offset {offset} is not in a struct_ops variable"
                )
            }
            StructOpsFault::NotLocal => write!(
                f,
                "relocation refers to a function that this file does not define"
            ),
            StructOpsFault::Misaligned { offset } => {
                write!(
                    f,
                    "relocation refers to offset {offset}, which is inside an instruction"
                )
            }
            StructOpsFault::NoMember { offset } => {
                write!(f, "no member starts at offset {offset}")
            }
            StructOpsFault::NotFunction(member) => {
                write!(f, "member `{member}` is no function pointer")
            }
            StructOpsFault::NoProgram(member) => {
                write!(f, "the member `{member}` points to no program")
            }
            StructOpsFault::OtherProgram { member } => {
                write!(
                    f,
                    "the program of member `{member}` is not in SEC(\"struct_ops\")"
                )
            }
            StructOpsFault::NotInKernel(name) => write!(
                f,
                "the kernel has no struct {name} (a module's: --module-btf FILE; another \
                 kernel's: --kernel PATH)"
            ),
            StructOpsFault::NotInValue(name) => {
                write!(
                    f,
                    "the kernel's bpf_struct_ops_{name} does not contain {name}"
                )
            }
            StructOpsFault::NoSize(member) => write!(f, "the member `{member}` has no size"),
            StructOpsFault::MissingMember(member) => write!(
                f,
                "kernel has no member `{member}`: set it to zero, or remove it"
            ),
            StructOpsFault::BitField(member) => {
                write!(f, "the member `{member}` is a bit field")
            }
            StructOpsFault::OtherKind {
                member,
                here,
                there,
            } => write!(
                f,
                "the member `{member}` is a {}, but a {} in the kernel",
                here.name(),
                there.name()
            ),
            StructOpsFault::OtherSize {
                member,
                here,
                there,
            } => match there {
                Some(there) => write!(
                    f,
                    "the member `{member}` has {here} bytes, but {there} in the kernel"
                ),
                None => write!(f, "the member `{member}` has no size in the kernel"),
            },
            StructOpsFault::NotProgram(member) => {
                write!(
                    f,
                    "the member `{member}` is set, but not to a struct_ops program"
                )
            }
            StructOpsFault::KernelNotFunction(member) => {
                write!(f, "kernel's member `{member}` is no function pointer")
            }
            StructOpsFault::SecondUse { member } => write!(
                f,
                "program of member `{member}` is already used for another struct_ops variable or member"
            ),
        }
    }
}

impl std::error::Error for StructOpsFault {}
