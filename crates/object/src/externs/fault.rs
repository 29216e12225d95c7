//! Faults of externs.

use std::collections::BTreeSet;
use std::fmt;

use spec::Errno;

use crate::error::Blame;

/// Fault of an extern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExternFault {
    /// BTF is missing.
    NoTypes,
    /// BTF does not describe the extern.
    NotDescribed,
    /// BTF describes it as defined in the object.
    NotExtern,
    /// No DATASEC lists it.
    NoSection,
    /// The DATASEC that lists it is neither `.kconfig` nor `.ksyms`.
    UnknownSection(String),
    /// It is a variable of the kernel of another type than `void`, which alone the loader knows.
    TypedVariable,
    /// The loader defines what is no undefined symbol, kconfig value or variable of the kernel.
    NotUndefined {
        /// Names of those.
        known: BTreeSet<String>,
    },
    /// BTF lists it, and the file has no such symbol.
    NoSymbol,
    /// A kconfig extern is a function.
    ConfigFunction,
    /// The type of a kconfig extern has no size.
    ConfigNoSize,
    /// The type of a kconfig extern is unsupported.
    ConfigType,
    /// The configuration has a value of another kind.
    ConfigMismatch {
        /// Value.
        value: String,
        /// Type that the value requires.
        needs: &'static str,
    },
    /// The value in the configuration is no number.
    ConfigNumber(String),
    /// The value in the configuration does not fit.
    ConfigRange {
        /// Value.
        value: u64,
        /// Size of the variable in bytes.
        size: u32,
    },
    /// A line of the configuration has no value.
    ConfigLine(String),
    /// The configuration is unknown.
    NoConfig,
    /// The name is neither `CONFIG_…` nor a virtual kconfig extern of libbpf.
    UnknownVirtual,
    /// The version of the kernel is unknown.
    NoVersion,
    /// The BTF of the kernel is unknown.
    NoKernelTypes,
    /// The symbols of the kernel are unknown.
    NoSymbols,
    /// The kernel has two symbols with this name.
    Ambiguous {
        /// Address of the first.
        first: u64,
        /// Address of the second.
        second: u64,
    },
    /// The kernel's variable has another type.
    OtherType {
        /// Type in the object.
        expected: String,
        /// Type in the kernel.
        found: String,
    },
    /// The kernel's function has another prototype.
    OtherPrototype {
        /// Module that has it; `None` for vmlinux.
        module: Option<String>,
    },
    /// The type to compare with is recursive.
    TooComplex,
    /// The kernel and its modules lack it.
    Missing,
    /// It has no value.
    Unresolved,
}

impl ExternFault {
    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        match self {
            ExternFault::NoTypes
            | ExternFault::NotDescribed
            | ExternFault::NotExtern
            | ExternFault::NoSection
            | ExternFault::NoSymbol => Blame::File,
            ExternFault::UnknownSection(_)
            | ExternFault::ConfigFunction
            | ExternFault::TypedVariable
            | ExternFault::NotUndefined { .. }
            | ExternFault::ConfigNoSize
            | ExternFault::ConfigType
            | ExternFault::UnknownVirtual
            | ExternFault::TooComplex => Blame::User,
            ExternFault::NoSymbols => Blame::Beebox,
            _ => Blame::Target,
        }
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        match self {
            ExternFault::NotDescribed
            | ExternFault::NoSection
            | ExternFault::NotUndefined { .. } => Errno::ENOENT,
            ExternFault::NoTypes | ExternFault::NoSymbol | ExternFault::Unresolved => Errno::ESRCH,
            ExternFault::UnknownSection(_)
            | ExternFault::ConfigFunction
            | ExternFault::TypedVariable
            | ExternFault::ConfigType => Errno::EOPNOTSUPP,
            _ => Errno::EINVAL,
        }
    }
}

impl fmt::Display for ExternFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExternFault::NoTypes => write!(
                f,
                "extern requires BTF, and the object has none: compile with -g"
            ),
            ExternFault::NotDescribed => {
                write!(f, "extern has no BTF: declare it with __ksym or __kconfig")
            }
            ExternFault::NotExtern => {
                write!(f, "extern is undefined in the file and defined in BTF")
            }
            ExternFault::NoSection => write!(
                f,
                "extern is declared neither with __ksym nor with __kconfig"
            ),
            ExternFault::UnknownSection(name) => {
                write!(
                    f,
                    "extern is in section {name}, which is neither .ksyms nor .kconfig"
                )
            }
            ExternFault::TypedVariable => write!(
                f,
                "variable of the kernel of another type than void, which this loader does not \
                 link: declare it as extern void"
            ),
            ExternFault::NotUndefined { known } => {
                write!(
                    f,
                    "no undefined symbol, kconfig value or variable of the kernel is called so"
                )?;
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                match &known[..] {
                    [] => Ok(()),
                    [known] => write!(f, ": there is {known}"),
                    known => write!(f, ": there are {}", known.join(", ")),
                }
            }
            ExternFault::NoSymbol => {
                write!(f, "BTF lists the extern, and the file has no such symbol")
            }
            ExternFault::ConfigFunction => {
                write!(f, "kconfig extern is a function")
            }
            ExternFault::ConfigNoSize => write!(f, "type of the kconfig extern has no size"),
            ExternFault::ConfigType => write!(
                f,
                "a value of the configuration is a bool, a char, an integer, \
                 an enum libbpf_tristate or an array of char"
            ),
            ExternFault::ConfigMismatch { value, needs } => {
                write!(f, "configuration has {value}, which requires {needs}")
            }
            ExternFault::ConfigNumber(text) => {
                write!(f, "configuration has {text}, which is no number")
            }
            ExternFault::ConfigRange { value, size } => {
                let value = signed(*value);
                write!(f, "value {value} does not fit into {size} bytes")
            }
            ExternFault::ConfigLine(line) => {
                write!(f, "line of the configuration has no value: {line}")
            }
            ExternFault::NoConfig => write!(f, "configuration of the kernel is unknown"),
            ExternFault::UnknownVirtual => {
                write!(
                    f,
                    "name is neither CONFIG_* nor a virtual kconfig value of libbpf"
                )
            }
            ExternFault::NoVersion => write!(f, "version of the kernel is unknown"),
            ExternFault::NoKernelTypes => write!(f, "BTF of the kernel is unknown"),
            ExternFault::NoSymbols => write!(
                f,
                "the data of the kernel leave out its symbols (System.map, kallsyms or the running \
                 kernel has them)"
            ),
            ExternFault::Ambiguous { first, second } => {
                write!(
                    f,
                    "kernel has two symbols of this name, at {first:#x} and {second:#x}"
                )
            }
            ExternFault::OtherType { expected, found } => {
                write!(f, "object has {expected}, kernel has {found}")
            }
            ExternFault::OtherPrototype { module: None } => {
                write!(f, "kernel function has another prototype")
            }
            ExternFault::OtherPrototype {
                module: Some(module),
            } => {
                write!(f, "function of module {module} has another prototype")
            }
            ExternFault::TooComplex => write!(f, "type is recursive"),
            ExternFault::Missing => write!(f, "kernel and modules lack it"),
            ExternFault::Unresolved => write!(f, "kernel lacks it"),
        }
    }
}

impl std::error::Error for ExternFault {}

/// A number as it may have been given: negative ones with their bits.
pub(super) fn signed(number: u64) -> String {
    match number as i64 {
        negative @ ..0 => format!("{negative} ({number:#x})"),
        _ => number.to_string(),
    }
}
