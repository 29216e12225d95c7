//! Traps: errors that end a run, and their messages.

use std::fmt;
use std::time::Instant;

use isa::ebpf::{AddrSpaceCast, Callee, Fault, Imm64, Insn};
use spec::kfuncs::KernelFunction;

use super::calls::CallFault;
use super::memory::{AccessError, BadAccess, NoRoom, RegionInfo};

/// An error that ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Index of the instruction that trapped; if control left the program, of the
    /// instruction that it left from.
    pub at: usize,
    /// The instruction; `None` in an empty program.
    pub insn: Option<Insn>,
    /// Reason.
    pub reason: Reason,
}

/// Reason of a trap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The instruction is invalid.
    Invalid(Fault),
    /// A jump to the second slot of a 64-bit immediate.
    SecondSlot,
    /// Control left the program to this index.
    LeftProgram(i64),
    /// An invalid access.
    Memory(BadAccess),
    /// No helper has this number.
    UnknownHelper(i32),
    /// The helper failed.
    Call(i32, CallFault),
    /// An indirect call or jump to a value that is no function address.
    NoFunction(u64),
    /// The instruction needs a resource that the run does not have.
    Missing(Missing),
    /// The limit of frames is exceeded.
    FrameLimit(usize),
    /// The limit of instructions is exceeded.
    InstructionLimit(u64),
    /// The deadline has passed.
    Deadline(Instant),
    /// The observer ended the run.
    Stopped,
    /// A function returns with something open in its frame.
    Unclosed(Unclosed),
    /// The program is left while the run holds a reference to the object at this address.
    Unreleased(u64),
    /// The program is left while the run holds the lock at this address.
    Locked(u64),
}

impl Reason {
    /// Name of the reason without its details, as in JSON output.
    pub const fn name(&self) -> &'static str {
        match self {
            Reason::Invalid(_) => "invalid",
            Reason::SecondSlot => "second-slot",
            Reason::LeftProgram(_) => "left-program",
            Reason::Memory(_) => "memory",
            Reason::UnknownHelper(_) => "unknown-helper",
            Reason::Call(..) => "helper",
            Reason::NoFunction(_) => "no-function",
            Reason::Missing(_) => "missing",
            Reason::FrameLimit(_) => "frame-limit",
            Reason::InstructionLimit(_) => "budget",
            Reason::Deadline(_) => "deadline",
            Reason::Stopped => "stopped",
            Reason::Unclosed(_) => "unclosed",
            Reason::Unreleased(_) => "unreleased",
            Reason::Locked(_) => "locked",
        }
    }
}

/// Something that is open in the frame of a function that returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// Name of its structure.
    pub name: &'static str,
    /// Its address.
    pub address: u64,
}

impl From<Unclosed> for Reason {
    fn from(unclosed: Unclosed) -> Reason {
        Reason::Unclosed(unclosed)
    }
}

/// A resource that the run does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The map or kernel variable that a 64-bit immediate refers to.
    Object(Imm64),
    /// A kfunc.
    Function(Callee),
    /// A packet.
    Packet,
    /// An address space.
    AddressSpace(AddrSpaceCast),
    /// Indirect jumps, which are disabled.
    IndirectJumps,
}

impl From<Missing> for Reason {
    fn from(missing: Missing) -> Reason {
        Reason::Missing(missing)
    }
}

impl From<BadAccess> for Reason {
    fn from(access: BadAccess) -> Reason {
        Reason::Memory(access)
    }
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.insn {
            Some(insn) => write!(f, "instruction {} ({insn}): {}", self.at, self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

impl std::error::Error for Trap {}

impl std::error::Error for Reason {}

impl std::error::Error for CallFault {}

impl std::error::Error for BadAccess {}

impl std::error::Error for Missing {}

impl std::error::Error for AccessError {}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Invalid(fault) => fault.fmt(f),
            Reason::SecondSlot => f.write_str("jump to the second half of a 64-bit immediate"),
            Reason::LeftProgram(to) => write!(f, "control leaves the program to instruction {to}"),
            Reason::Memory(access) => write!(f, "it {access}"),
            Reason::UnknownHelper(number) => write!(f, "there is no helper {number}"),
            Reason::Call(number, fault) => {
                let kfunc = KernelFunction::from_number(*number);
                match kfunc.and_then(KernelFunction::name) {
                    Some(name) => write!(f, "{name} {fault}"),
                    None => match spec::helpers::helper(*number) {
                        Some(helper) => write!(f, "{} {fault}", helper.name),
                        None => write!(f, "helper {number} {fault}"),
                    },
                }
            }
            Reason::NoFunction(value) => {
                write!(f, "{value:#x} is not the address of a function")
            }
            Reason::Missing(missing) => write!(f, "{missing}"),
            Reason::FrameLimit(limit) => {
                write!(f, "the limit of {limit} stack frames is exceeded")
            }
            Reason::InstructionLimit(limit) => {
                write!(f, "the limit of {limit} instructions is exceeded")
            }
            Reason::Deadline(_) => f.write_str("the deadline has passed"),
            Reason::Stopped => f.write_str("the observer ended the run"),
            Reason::Unclosed(unclosed) => write!(f, "{unclosed}"),
            Reason::Unreleased(pointer) => write!(
                f,
                "the program is left while it holds the object at {pointer:#x}"
            ),
            Reason::Locked(lock) => {
                write!(
                    f,
                    "the program is left while it holds the lock at {lock:#x}"
                )
            }
        }
    }
}

impl fmt::Display for Unclosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unclosed { name, address } = self;
        write!(f, "the function returns with a {name} open at {address:#x}")
    }
}

impl std::error::Error for Unclosed {}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Object(imm) => match imm {
                Imm64::BtfId { id, .. } => {
                    write!(
                        f,
                        "it needs the kernel variable with BTF id {id}, which raw instructions do not have"
                    )
                }
                Imm64::MapFd { .. }
                | Imm64::MapValue { .. }
                | Imm64::MapIndex { .. }
                | Imm64::MapIndexValue { .. } => {
                    f.write_str("it needs a map, which raw instructions do not have")
                }
                Imm64::Value(_) | Imm64::Func { .. } => {
                    f.write_str("it needs an object, which raw instructions do not have")
                }
            },
            Missing::Function(_) => {
                f.write_str("it calls a kfunc, which raw instructions do not have")
            }
            Missing::Packet => f.write_str("it loads from a packet, but the run has none"),
            Missing::AddressSpace(cast) => write!(
                f,
                "the cast from address space {} to {} is not supported",
                cast.from, cast.to
            ),
            Missing::IndirectJumps => f.write_str("indirect jumps are disabled"),
        }
    }
}

impl fmt::Display for CallFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallFault::Memory(access) => write!(f, "{access}"),
            CallFault::Refused(why) => write!(f, "refuses: {why}"),
        }
    }
}

impl fmt::Display for BadAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let does = self.access.name();
        if let (AccessError::NotGiven, Some(field)) = (self.error, &self.nearest) {
            return write!(
                f,
                "{does} {} bytes: {} was not given",
                self.size, field.name
            );
        }
        let plural = if self.size == 1 { "" } else { "s" };
        write!(
            f,
            "{does} {} byte{plural} at {:#x}",
            self.size, self.address
        )?;
        let Some(region) = &self.nearest else {
            return f.write_str(", but the run has no memory");
        };
        match self.error {
            AccessError::Outside => self.write_distance(f, region),
            AccessError::Crosses(1) => write!(f, ", of which only 1 is in {region}"),
            AccessError::Crosses(inside) => write!(f, ", of which only {inside} are in {region}"),
            AccessError::ReadOnly => write!(f, " in {region}, which is read-only"),
            AccessError::Misaligned => write!(f, " in {region}, which is not aligned to its size"),
            AccessError::Shared => write!(f, " in {region}, which can only be copied"),
            AccessError::Wraps => f.write_str(", which wraps around the address space"),
            AccessError::NotGiven => f.write_str(", which was not given"),
        }
    }
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Outside => f.write_str("no byte is in a region"),
            AccessError::Crosses(1) => f.write_str("only 1 byte is in a region"),
            AccessError::Crosses(inside) => write!(f, "only {inside} bytes are in a region"),
            AccessError::ReadOnly => f.write_str("the region is read-only"),
            AccessError::Misaligned => f.write_str("the address is not aligned to the size"),
            AccessError::Wraps => f.write_str("the access wraps around the address space"),
            AccessError::Shared => f.write_str("the region can only be copied"),
            AccessError::NotGiven => f.write_str("the bytes were not given"),
        }
    }
}

impl BadAccess {
    fn write_distance(&self, f: &mut fmt::Formatter<'_>, region: &RegionInfo) -> fmt::Result {
        /// Distance up to which an access is described relative to a region.
        const NEAR: u64 = 0x1_0000;
        let end = region.start + region.len;
        let (distance, side) = if self.address < region.start {
            (region.start - self.address, "before the start of")
        } else {
            (self.address - end, "beyond the end of")
        };
        match distance {
            _ if self.address < 0x1000 => f.write_str(", a null pointer with an offset"),
            0 => write!(f, ", where {region} ends"),
            1..NEAR => write!(f, ", {distance} bytes {side} {region}"),
            _ => write!(f, ", which is in no region; the nearest is {region}"),
        }
    }
}

impl fmt::Display for RegionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "`{}` ({:#x} to {:#x})",
            self.name,
            self.start,
            self.start + self.len
        )
    }
}

impl fmt::Display for NoRoom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a region of {} bytes is more than the address space has room for",
            self.len
        )
    }
}

impl std::error::Error for NoRoom {}
