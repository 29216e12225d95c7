//! What can be wrong with an extern.

use std::fmt;

use crate::error::Blame;

/// What is wrong with an extern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternFault {
    /// The object has no types, without which nobody knows what is expected.
    NoTypes,
    /// No type describes it.
    NotDescribed,
    /// The types describe something of that name that the object has.
    NotExtern,
    /// No section lists it.
    NoSection,
    /// The section that lists it is neither `.kconfig` nor `.ksyms`.
    UnknownSection(String),
    /// The types list it, but the file does not expect it.
    NoSymbol,
    /// A function is no value of a configuration.
    ConfigFunction,
    /// A value of the configuration has a type without size.
    ConfigNoSize,
    /// A value of the configuration has a type that none can have.
    ConfigType,
    /// The configuration has a value of another kind.
    ConfigMismatch {
        /// The value.
        value: String,
        /// What it needs to be kept in.
        needs: &'static str,
    },
    /// The configuration has a value that is no number.
    ConfigNumber(String),
    /// The value of the configuration does not fit.
    ConfigRange {
        /// The value.
        value: u64,
        /// Bytes that there are for it.
        size: u32,
    },
    /// A line of the configuration has a name, but no value.
    ConfigLine(String),
    /// No configuration was given.
    NoConfig,
    /// It is neither `CONFIG_…` nor one of the values that loaders make up.
    UnknownVirtual,
    /// The kernel's version is not known.
    NoVersion,
    /// The kernel's types are not known.
    NoKernelTypes,
    /// The kernel has no symbols to look at.
    NoSymbols,
    /// The kernel has two symbols of that name.
    Ambiguous {
        /// The address of one.
        first: u64,
        /// The address of the other.
        second: u64,
    },
    /// The kernel has it with another type.
    OtherType {
        /// What the object expects.
        expected: String,
        /// What the kernel has.
        found: String,
    },
    /// The kernel's function takes or returns something else.
    OtherPrototype {
        /// The module that has it; none for the kernel itself.
        module: Option<String>,
    },
    /// It is compared with a type that has no end.
    TooComplex,
    /// Neither kernel nor modules have it.
    Missing,
    /// Nothing gave it a value.
    Unresolved,
}

impl ExternFault {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            ExternFault::NoTypes
            | ExternFault::NotDescribed
            | ExternFault::NotExtern
            | ExternFault::NoSection
            | ExternFault::NoSymbol => Blame::File,
            ExternFault::UnknownSection(_)
            | ExternFault::ConfigFunction
            | ExternFault::ConfigNoSize
            | ExternFault::ConfigType
            | ExternFault::UnknownVirtual
            | ExternFault::TooComplex => Blame::User,
            _ => Blame::Target,
        }
    }

    /// The number of the error that Linux's loader gives (`errno.h`).
    pub fn errno(&self) -> i32 {
        const ENOENT: i32 = 2;
        const ESRCH: i32 = 3;
        const EINVAL: i32 = 22;
        const EOPNOTSUPP: i32 = 95;
        match self {
            ExternFault::NotDescribed | ExternFault::NoSection => ENOENT,
            ExternFault::NoTypes | ExternFault::NoSymbol | ExternFault::Unresolved => ESRCH,
            ExternFault::UnknownSection(_)
            | ExternFault::ConfigFunction
            | ExternFault::ConfigType => EOPNOTSUPP,
            _ => EINVAL,
        }
    }
}

impl fmt::Display for ExternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExternFault::NoTypes => write!(
                f,
                "it is expected of the kernel, but no types say what it is: compile with -g"
            ),
            ExternFault::NotDescribed => write!(
                f,
                "it is not defined, and no type says what to expect: \
                 is a declaration with __ksym or __kconfig missing?"
            ),
            ExternFault::NotExtern => {
                write!(f, "the file expects it, but its types say that it is here")
            }
            ExternFault::NoSection => write!(
                f,
                "it is declared extern, but neither with __ksym nor with __kconfig"
            ),
            ExternFault::UnknownSection(name) => {
                write!(f, "externs in section {name} stand for nothing")
            }
            ExternFault::NoSymbol => write!(f, "the types list it, but the file does not use it"),
            ExternFault::ConfigFunction => {
                write!(f, "a function is no value of the configuration")
            }
            ExternFault::ConfigNoSize => write!(f, "its type has no size"),
            ExternFault::ConfigType => write!(
                f,
                "a value of the configuration is a bool, a char, an integer, \
                 an enum libbpf_tristate or an array of char"
            ),
            ExternFault::ConfigMismatch { value, needs } => {
                write!(f, "the configuration says {value}, which needs {needs}")
            }
            ExternFault::ConfigNumber(text) => {
                write!(f, "the configuration says {text}, which is no number")
            }
            ExternFault::ConfigRange { value, size } => {
                write!(f, "the value {value} does not fit into {size} bytes")
            }
            ExternFault::ConfigLine(line) => {
                write!(f, "a line of the configuration without a value: {line}")
            }
            ExternFault::NoConfig => write!(f, "the kernel's configuration is not known"),
            ExternFault::UnknownVirtual => {
                write!(f, "no configuration and no loader has a value of that name")
            }
            ExternFault::NoVersion => write!(f, "the kernel's version is not known"),
            ExternFault::NoKernelTypes => write!(f, "the kernel's types are not known"),
            ExternFault::NoSymbols => write!(f, "the kernel's symbols are not known"),
            ExternFault::Ambiguous { first, second } => {
                write!(f, "the kernel has it at {first:#x} and at {second:#x}")
            }
            ExternFault::OtherType { expected, found } => {
                write!(
                    f,
                    "the program expects {expected}, but the kernel has {found}"
                )
            }
            ExternFault::OtherPrototype { module: None } => {
                write!(f, "the kernel's function takes or returns something else")
            }
            ExternFault::OtherPrototype {
                module: Some(module),
            } => {
                write!(
                    f,
                    "the function of module {module} takes or returns something else"
                )
            }
            ExternFault::TooComplex => write!(f, "its type refers to itself without end"),
            ExternFault::Missing => write!(f, "neither the kernel nor its modules have it"),
            ExternFault::Unresolved => write!(f, "the kernel does not have it"),
        }
    }
}
