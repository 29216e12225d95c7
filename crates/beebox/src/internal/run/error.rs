//! Errors of loading an object and of a run.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use ::kernel::programs::TestProgram;
use interp::checked::{NoRoom, Reason, Trap};
use jit::NoSuchCpu;
use program::MapDef;
use program::creation::RefusedMap;
use spec::Errno;
use spec::host::BadFunctions;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use verifier::Refusal;
use verifier::reason::Explanation;

use super::ReuseFault;

/// Reason why an object cannot be loaded.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum LoadError {
    /// It cannot be linked.
    Link(Box<object::Error>),
    /// The kernel's helpers and contexts are unknown, so nothing can be verified.
    NoRegistry,
    /// The kernel would not create the map.
    Map(RefusedMap),
    /// The map cannot be made here: its kind is not built, or there is no memory for it.
    MapUnavailable {
        /// Name.
        name: String,
        /// Kind, if it is known.
        kind: Option<MapKind>,
        /// Error number; [`Errno::ENOTSUPP`] for kinds that are not built.
        errno: Errno,
    },
    /// The map needs more memory than [`LoadOptions::memory`](super::LoadOptions::memory) allows
    /// all maps.
    Memory {
        /// Name of the map.
        map: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// The map holds another map from the start, which it does not take.
    InnerMap {
        /// Name of the map.
        map: String,
        /// Name of the other map.
        inner: String,
        /// Error number.
        errno: Errno,
    },
    /// A map of another object cannot be used in place of the object's own.
    Reuse {
        /// Name of the map.
        map: String,
        /// Reason.
        fault: ReuseFault,
    },
    /// The perf buffers cannot be opened.
    PerfBuffers {
        /// Bytes of each.
        bytes: usize,
        /// Error number.
        errno: Errno,
    },
    /// A program array does not take a program.
    ProgramArray {
        /// Name of the map.
        map: String,
        /// Name of the program.
        program: String,
        /// Error number: EINVAL if the array belongs to programs of another class, EBADF if
        /// the program is not loaded.
        errno: Errno,
    },
    /// Programs of this type get no packets, or it is not built.
    Type {
        /// Name.
        program: String,
        /// The type.
        kind: ProgramType,
    },
    /// The verifier refuses the program.
    Refused {
        /// Name.
        program: String,
        /// The refusal.
        refusal: Refusal,
        /// Its explanation.
        explanation: Option<Box<Explanation>>,
    },
    /// The kernel cannot have the functions of the host.
    Functions(BadFunctions),
    /// The program calls a kernel function that no run here can make.
    Function {
        /// Name of the program.
        program: String,
        /// Name of the function.
        function: String,
        /// The instruction that calls it.
        insn: usize,
        /// Reason.
        why: String,
    },
    /// The verifier does not support the program.
    Unsupported {
        /// Name.
        program: String,
        /// Reason.
        why: String,
    },
}

impl LoadError {
    /// The failure of a map that the kernel creates.
    pub(super) fn of_map(def: &MapDef, errno: Errno) -> LoadError {
        LoadError::MapUnavailable {
            name: def.name.clone(),
            kind: def.kind(),
            errno,
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Link(error) => write!(f, "{error}"),
            LoadError::NoRegistry => f.write_str("helpers and contexts of the kernel are unknown"),
            LoadError::Map(map) => write!(f, "{map}"),
            LoadError::MapUnavailable { name, kind, errno } => {
                write!(f, "map '{name}'")?;
                if let Some(kind) = kind {
                    write!(f, " ({})", kind.name())?;
                }
                match *errno {
                    Errno::ENOTSUPP => f.write_str(": maps of this kind cannot be run with yet"),
                    errno => write!(f, " cannot be made here: {errno}"),
                }
            }
            LoadError::Memory { map, limit } => {
                write!(f, "map {map}: {}", RunError::Memory(*limit))
            }
            LoadError::InnerMap { map, inner, errno } => {
                write!(f, "map {map}: it does not take map {inner}: {errno}")
            }
            LoadError::Reuse { map, fault } => write!(f, "map {map} cannot be reused: {fault}"),
            LoadError::PerfBuffers { bytes, errno } => {
                write!(f, "perf buffers of {bytes} bytes cannot be opened: {errno}")
            }
            LoadError::ProgramArray {
                map,
                program,
                errno: Errno::EBADF,
            } => write!(
                f,
                "map {map}: it holds program {program}, which is not loaded"
            ),
            LoadError::ProgramArray {
                map,
                program,
                errno,
            } => write!(
                f,
                "map {map}: it does not take program {program}, whose type, attach type or flags are not those of its first program: {errno}"
            ),
            LoadError::Type { program, kind } => {
                // Linux runs those for functions and operations that are there to be tested.
                let who = match kind {
                    ProgramType::Tracing | ProgramType::StructOps => "Beebox",
                    _ => "Linux",
                };
                let kind = kind.name();
                write!(
                    f,
                    "program {program}: {who} does not test-run programs of type {kind}; \
                     `beebox test` runs them in a model of the kernel"
                )
            }
            LoadError::Refused {
                program, refusal, ..
            } => {
                write!(f, "program {program} is refused: {}", refusal.reason())
            }
            LoadError::Functions(error) => write!(f, "{error}"),
            LoadError::Function {
                program,
                function,
                insn,
                why,
            } => write!(
                f,
                "program {program}, instruction {insn}: calls of kernel function {function} are \
                 not run: {why} (docs/kfuncs.md)"
            ),
            LoadError::Unsupported { program, why } => {
                write!(f, "program {program} is unsupported: {why}")
            }
        }
    }
}

impl Error for LoadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            LoadError::Link(error) => Some(error),
            LoadError::Functions(error) => Some(error),
            _ => None,
        }
    }
}

/// Reason why a run ends without a return value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunError {
    /// Test runs of programs of this type take no such context.
    Context {
        /// The kernel's error number.
        errno: Errno,
        /// Bytes of the context.
        len: usize,
        /// The program type.
        kind: ProgramType,
    },
    /// A test run does not return such a result: the program of type sk_lookup selected a socket
    /// of a group that shares a port.
    Group(Errno),
    /// Programs of this type get no packets.
    NoPackets(ProgramType),
    /// Linux does not test-run programs of this attach type (EINVAL): those that entries of
    /// device and CPU maps hold run behind a redirection.
    AttachType(AttachType),
    /// Test runs take no packet of this size.
    Size {
        /// The kernel's error number.
        errno: Errno,
        /// Bytes of the packet.
        len: usize,
        /// The least and the most bytes for such a packet.
        taken: (usize, usize),
    },
    /// The program calls a helper that is not built.
    Helper(i32),
    /// The deadline of the runs passed.
    Deadline,
    /// A run took longer than [`LoadOptions::timeout`](super::LoadOptions::timeout).
    TooLong(Duration),
    /// Timers were fired so many times between two runs, and are still due.
    Timers(u64),
    /// The maps needed more than [`LoadOptions::memory`](super::LoadOptions::memory).
    Memory(u64),
    /// The maps have no values for the CPU.
    Cpu(NoSuchCpu),
    /// The packet does not fit into the model address space.
    NoRoom(NoRoom),
    /// The program did what no verified program does.
    Trap(Box<TrapPlace>),
}

/// A trap, with its program and source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrapPlace {
    /// The trap.
    pub trap: Trap,
    /// The name of the program that trapped, if a tail call entered it; `None` for the
    /// program that the run began with.
    pub entered: Option<String>,
    /// File, line number and text, if the object has source lines.
    pub line: Option<(String, u32, String)>,
}

impl RunError {
    /// True if it says that a program that ran was stopped: by a trap or a limit.
    pub fn is_stop(&self) -> bool {
        match self {
            RunError::Deadline | RunError::TooLong(_) | RunError::Memory(_) | RunError::Trap(_) => {
                true
            }
            RunError::Context { .. }
            | RunError::Group(_)
            | RunError::NoPackets(_)
            | RunError::AttachType(_)
            | RunError::Size { .. }
            | RunError::Helper(_)
            | RunError::Timers(_)
            | RunError::Cpu(_)
            | RunError::NoRoom(_) => false,
        }
    }

    pub(super) fn of_trap(
        trap: Trap,
        entered: Option<String>,
        line: Option<(String, u32, String)>,
    ) -> RunError {
        match trap.reason {
            Reason::UnknownHelper(number) => RunError::Helper(number),
            Reason::Deadline(_) => RunError::Deadline,
            _ => RunError::Trap(Box::new(TrapPlace {
                trap,
                entered,
                line,
            })),
        }
    }
}

impl From<NoSuchCpu> for RunError {
    fn from(error: NoSuchCpu) -> RunError {
        RunError::Cpu(error)
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Size { errno, len, taken } => write!(
                f,
                "a packet of {len} byte{}: Linux's test run answers {errno}; it takes {} to {} \
                 bytes for a packet like this",
                if *len == 1 { "" } else { "s" },
                taken.0,
                taken.1
            ),
            RunError::Context { errno, len, kind } => {
                write!(
                    f,
                    "a context of {len} bytes: Linux's test run answers {errno}"
                )?;
                match TestProgram::of(*kind) {
                    Some(rules) => write!(f, "; it takes {}", rules.context_rule()),
                    None => Ok(()),
                }
            }
            RunError::Group(errno) => write!(
                f,
                "Linux's test run answers {errno} to the selection of a socket that shares its \
                 port; call bpf_sk_assign with BPF_SK_LOOKUP_F_NO_REUSEPORT"
            ),
            RunError::NoPackets(kind) => {
                write!(f, "programs of type {} do not run on captures", kind.name())
            }
            RunError::AttachType(attach) => write!(
                f,
                "Linux's test run answers EINVAL to programs of attach type {}, which run behind a \
                 redirection",
                attach.name()
            ),
            RunError::Helper(number) => match spec::helpers::helper(*number) {
                Some(helper) => write!(f, "helper {} cannot be called yet", helper.name),
                None => write!(f, "there is no helper {number}"),
            },
            RunError::Deadline => f.write_str("the time limit passed before the program ended"),
            RunError::TooLong(limit) => {
                write!(
                    f,
                    "the program did not end within {limit:?}, the limit of a run"
                )
            }
            RunError::Timers(calls) => write!(
                f,
                "timers: {calls} callbacks between two runs, and more are due: a callback may start \
                 its timer again for a time that has passed"
            ),
            RunError::Memory(limit) => {
                let plural = if *limit == 1 { "" } else { "s" };
                write!(
                    f,
                    "the maps need more than {limit} byte{plural}, the limit of their memory"
                )
            }
            RunError::Cpu(error) => error.fmt(f),
            RunError::NoRoom(no_room) => write!(f, "{no_room}"),
            RunError::Trap(place) => {
                if let Some(program) = &place.entered {
                    write!(f, "{program}, entered by a tail call: ")?;
                }
                write!(f, "{}", place.trap)?;
                match &place.line {
                    Some((file, line, text)) => write!(f, "\n{file}:{line}: {}", text.trim()),
                    None => Ok(()),
                }
            }
        }
    }
}

impl Error for RunError {}

impl From<NoRoom> for RunError {
    fn from(no_room: NoRoom) -> RunError {
        RunError::NoRoom(no_room)
    }
}
