//! What ended a run that did not return: data, and one sentence for each.

use std::fmt;
use std::time::Instant;

use isa::ebpf::{AddrSpaceCast, Callee, Fault, Imm64, Insn};

use super::calls::CallFault;
use super::memory::{BadAccess, Flaw, NoRoom, RegionPlace};

/// Why a run ended without returning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trap {
    /// Index of the instruction that could not be performed; for control that
    /// left the program, of the instruction that it left from.
    pub at: usize,
    /// The instruction; `None` in an empty program.
    pub insn: Option<Insn>,
    /// Why.
    pub reason: Reason,
}

/// What an instruction ran into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is no instruction.
    Invalid(Fault),
    /// It is the second slot of a 64-bit immediate, reached by a jump.
    SecondSlot,
    /// The next instruction would be at this index, where the program is not.
    LeftProgram(i64),
    /// It may not access that memory.
    Memory(BadAccess),
    /// No helper has this number.
    UnknownHelper(i32),
    /// The helper could not do it.
    Call(i32, CallFault),
    /// A register that should hold the address of a function holds this.
    NoFunction(u64),
    /// It needs something that a program on its own does not have.
    Missing(Missing),
    /// As many frames exist as may.
    FrameLimit(usize),
    /// As many instructions were performed as may be.
    InstructionLimit(u64),
    /// It is later than this.
    Deadline(Instant),
    /// The observer ended the run.
    Stopped,
}

/// What a program on its own does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// A map, a kernel variable: what the 64-bit immediate refers to.
    Object(Imm64),
    /// A kernel function.
    Function(Callee),
    /// A packet.
    Packet,
    /// An address space.
    AddressSpace(AddrSpaceCast),
    /// Indirect jumps, which are not switched on.
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Invalid(fault) => f.write_str(match fault {
                Fault::UnknownOpcode => "no instruction has this opcode",
                Fault::ReservedField => "a field has a value that this opcode does not allow",
                Fault::RegisterOutOfRange => "it names a register above r10",
                Fault::BrokenImm64 => "it is half of a 64-bit immediate, without its other half",
            }),
            Reason::SecondSlot => {
                f.write_str("a jump led into the second half of a 64-bit immediate")
            }
            Reason::LeftProgram(to) => write!(
                f,
                "control goes on to instruction {to}, where the program is not"
            ),
            Reason::Memory(access) => write!(f, "it {access}"),
            Reason::UnknownHelper(number) => write!(f, "there is no helper {number}"),
            Reason::Call(number, fault) => write!(f, "helper {number} {fault}"),
            Reason::NoFunction(value) => {
                write!(f, "{value:#x} is not the address of a function")
            }
            Reason::Missing(missing) => write!(f, "{missing}"),
            Reason::FrameLimit(limit) => {
                write!(f, "it would need more than {limit} stack frames")
            }
            Reason::InstructionLimit(limit) => {
                write!(
                    f,
                    "{limit} instructions were performed, and more are not allowed"
                )
            }
            Reason::Deadline(_) => f.write_str("the time is up"),
            Reason::Stopped => f.write_str("the observer ended the run"),
        }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::Object(imm) => match imm {
                Imm64::BtfId { id, .. } => {
                    write!(
                        f,
                        "it needs the kernel variable with BTF id {id}, and here is none"
                    )
                }
                _ => f.write_str("it needs a map, and a program on its own has none"),
            },
            Missing::Function(_) => {
                f.write_str("it calls a function of the kernel, and here is none")
            }
            Missing::Packet => f.write_str("it loads from a packet, and none was given"),
            Missing::AddressSpace(cast) => write!(
                f,
                "there is no way from address space {} to {}",
                cast.from, cast.to
            ),
            Missing::IndirectJumps => f.write_str("indirect jumps are not switched on"),
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
        let plural = if self.size == 1 { "" } else { "s" };
        write!(
            f,
            "{does} {} byte{plural} at {:#x}",
            self.size, self.address
        )?;
        let Some(region) = &self.nearest else {
            return f.write_str(", and there is no memory at all");
        };
        match self.flaw {
            Flaw::Outside => self.write_distance(f, region),
            Flaw::Crosses(1) => write!(f, ", of which only 1 is in {region}"),
            Flaw::Crosses(inside) => write!(f, ", of which only {inside} are in {region}"),
            Flaw::ReadOnly => write!(f, " in {region}, which is only for reading"),
            Flaw::Misaligned => write!(f, " in {region}, which is not aligned to its size"),
            Flaw::Wraps => f.write_str(", beyond the last address there is"),
        }
    }
}

impl BadAccess {
    fn write_distance(&self, f: &mut fmt::Formatter<'_>, region: &RegionPlace) -> fmt::Result {
        /// What is further away than this has little to do with the region.
        const NEAR: u64 = 0x1_0000;
        let end = region.start + region.len;
        let (distance, side) = if self.address < region.start {
            (region.start - self.address, "before the start of")
        } else {
            (self.address - end, "beyond the end of")
        };
        match distance {
            _ if self.address < 0x1000 => f.write_str(", which is as good as a null pointer"),
            0 => write!(f, ", where {region} ends"),
            1..NEAR => write!(f, ", {distance} bytes {side} {region}"),
            _ => write!(f, ", which is in no region; the nearest is {region}"),
        }
    }
}

impl fmt::Display for RegionPlace {
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
