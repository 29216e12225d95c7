//! Facts for a compiler: what holds for each instruction of an accepted program in every
//! run.
//!
//! A fact is collected over all visits of an instruction and joined. Pruning ends a path at
//! a checkpoint that covers it, so a run may go on where only another path was walked.
//! Facts differ in how they survive that:
//!
//! | fact | why it holds in runs that were pruned |
//! |---|---|
//! | reached, outcome of a branch | a decided branch makes its operands precise, and a covered state has the same or narrower precise values |
//! | kind of a pointer, its offsets | comparisons demand equal kinds and fixed offsets, and variable offsets within those of the checkpoint, precise or not |
//! | range of a scalar, constants, keys | only where no imprecise scalar of a pruned path arrives: see below |
//! | packet checks | the checks of a pruned path are added to those of its checkpoint |
//! | upper halves | by data flow over reached instructions, not by the walk |
//! | reads of unwritten stack | where a path is pruned, its unwritten bytes follow a data flow of their own (`unwritten`) |
//!
//! A checkpoint covers any value in an imprecise scalar. Where a path is pruned, its live
//! scalars that are wider than those of the checkpoint, or linked otherwise, are
//! *uncovered*. A forward data flow over the control-flow graph (`coverage`) finds every
//! register and slot that an uncovered value reaches; scalars there have no range.
//!
//! Collecting costs a few joins for each instruction of the walk; without
//! [`Options::collect_facts`](crate::Options::collect_facts) one comparison with null.

mod collect;
mod coverage;
mod unwritten;
mod upper_half;

use isa::ebpf::Reg;

use crate::domain::Scalar;
use crate::state::{MapRef, RegBase, RegKind, RegState};

pub(crate) use collect::{Collector, enter, leave, note_addresses, note_object, pruned};
pub(crate) use unwritten::{
    note_filling, note_possible_stack_write, note_range_read, note_read_behind, note_scratch,
    note_stack_read, note_stack_write,
};

/// Facts of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFacts {
    /// By instruction slot; the second slot of a 64-bit immediate has none.
    pub insns: Vec<InsnFact>,
    /// Comparisons with the end of the packet, with the accesses that each of them alone
    /// proves, in the order of the program.
    pub packet_checks: Vec<PacketCheck>,
    /// First instruction of each function, ascending, and the bytes of stack below its frame
    /// pointer that it or a function that it calls accesses.
    pub stack: Vec<(u32, u32)>,
    /// By function, as in [`ProgramFacts::stack`]: slots of 8 bytes of its stack in which the
    /// program may keep a pointer. Bit 0 is the slot that ends at the frame pointer. Those of dynptrs and
    /// iterators are among them.
    pub address_slots: Vec<u64>,
    /// Bytes of the context up to the last one that the program accesses
    /// (`max_ctx_offset`).
    pub context_bytes: u32,
    /// The stack of each function as the kernel compiles it, with what rewriting takes.
    pub compiled_stack: Vec<FunctionStack>,
    /// Instructions that Linux puts in front of the program, which make the packet writable.
    pub prologue: u32,
    /// Instructions that may read bytes of the stack which the program never wrote, ascending:
    /// loads, atomic operations, calls that read memory. What such bytes are depends on the kernel
    /// and on what ran before. A call that fills memory counts as writing all of it.
    pub unwritten_reads: Vec<u32>,
}

/// The stack of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionStack {
    /// First instruction of the function.
    pub start: u32,
    /// Bytes below its frame pointer.
    pub bytes: u32,
}

/// Facts of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InsnFact {
    /// A run may come here. The other facts of an instruction that is never reached are
    /// empty.
    pub is_reached: bool,
    /// Values of the registers that it reads, before it.
    pub operands: Vec<(Reg, Value)>,
    /// The register that it writes, and its value after it; of a call of a helper, `r0`.
    pub result: Option<(Reg, Value)>,
    /// Outcomes of a conditional jump.
    pub branch: Option<Branch>,
    /// The addresses of a load, store or atomic operation: the pointer with the
    /// instruction's offset. The access needs no check.
    pub access: Option<Value>,
    /// A run may access an object of the kernel or one that the program allocated, as
    /// `struct bpf_map` behind a pointer to a map, or a socket, or memory that need not be there, or
    /// call a helper that writes into such an object; `access` may be [`Value::Mixed`] then.
    pub accesses_object: bool,
    /// The object of a helper call.
    pub call: Option<CallFact>,
    /// A spill or fill around a call of the `bpf_fastcall` contract, which keeps the
    /// register: nothing else uses the slot.
    pub is_fastcall_spill: bool,
    /// Of an instruction that writes 32 bits and clears the upper half: true if the upper
    /// half may be read.
    pub needs_zero_extension: Option<bool>,
    /// Number of instructions that Linux makes of it, with those that mask it against
    /// speculation; `None` if it is not reached or the number is not known.
    pub rewritten_insns: Option<u32>,
}

impl InsnFact {
    /// The fact about a register that the instruction reads.
    pub fn operand(&self, reg: Reg) -> Option<&Value> {
        let found = self.operands.iter().find(|(operand, _)| *operand == reg);
        found.map(|(_, value)| value)
    }
}

/// Value facts that hold in every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A number. Any number if its range did not survive pruning.
    Scalar(Scalar),
    /// A pointer into one kind of object.
    Pointer(Pointer),
    /// Pointers of several kinds, or numbers and pointers.
    Mixed,
}

impl Value {
    /// The number, if it is always the same.
    pub fn constant(&self) -> Option<u64> {
        match self {
            Value::Scalar(scalar) => scalar.as_const(),
            Value::Pointer(_) | Value::Mixed => None,
        }
    }

    /// The pointer, if it is one of one kind.
    pub fn pointer(&self) -> Option<&Pointer> {
        match self {
            Value::Pointer(pointer) => Some(pointer),
            Value::Scalar(_) | Value::Mixed => None,
        }
    }

    /// The value of a register in a function of that frame.
    fn of(reg: &RegState, frame: usize) -> Value {
        if reg.is_scalar() {
            return Value::Scalar(reg.num);
        }
        let kind = match reg.kind {
            RegKind::Ctx => PointerKind::Context,
            RegKind::MapPtr { map, .. } => PointerKind::Map(map),
            RegKind::MapValue { map, .. } => PointerKind::MapValue(map),
            RegKind::MapKey { map, .. } => PointerKind::MapKey(map),
            RegKind::Stack { frame: owner } => PointerKind::Stack {
                frames_up: (frame as u32).saturating_sub(owner),
            },
            RegKind::Packet { .. } => PointerKind::Packet,
            RegKind::PacketMeta { .. } => PointerKind::PacketMeta,
            RegKind::PacketEnd => PointerKind::PacketEnd,
            RegKind::FlowKeys => PointerKind::FlowKeys,
            RegKind::Mem { size, .. } => PointerKind::Memory { size },
            RegKind::Func { subprog } => PointerKind::Function { subprog },
            RegKind::NotInit
            | RegKind::Scalar
            | RegKind::Socket
            | RegKind::SockCommon
            | RegKind::TcpSock
            | RegKind::TpBuffer
            | RegKind::XdpSock
            | RegKind::BtfId { .. }
            | RegKind::Arena
            | RegKind::Buf
            | RegKind::Insn { .. }
            | RegKind::ConstDynptr { .. } => PointerKind::Other {
                base: reg.kind.base(),
            },
        };
        let off = i64::from(reg.off);
        Value::Pointer(Pointer {
            kind,
            offset: OffsetRange {
                min: reg.num.smin.saturating_add(off),
                max: reg.num.smax.saturating_add(off),
            },
            may_be_null: reg.may_be_null(),
        })
    }

    /// True for pointers to objects of the kernel other than memory and contexts.
    fn is_object(&self) -> bool {
        self.pointer().is_some_and(|pointer| match pointer.kind {
            PointerKind::Map(_) | PointerKind::Function { .. } | PointerKind::Other { .. } => true,
            PointerKind::Context
            | PointerKind::MapValue(_)
            | PointerKind::MapKey(_)
            | PointerKind::Stack { .. }
            | PointerKind::Packet
            | PointerKind::PacketMeta
            | PointerKind::PacketEnd
            | PointerKind::FlowKeys
            | PointerKind::Memory { .. } => false,
        })
    }

    /// Covers both.
    fn join(&self, other: &Value) -> Value {
        match (self, other) {
            (Value::Scalar(a), Value::Scalar(b)) => Value::Scalar(a.union(b)),
            (Value::Pointer(a), Value::Pointer(b)) if a.kind == b.kind => Value::Pointer(Pointer {
                kind: a.kind,
                offset: OffsetRange {
                    min: a.offset.min.min(b.offset.min),
                    max: a.offset.max.max(b.offset.max),
                },
                may_be_null: a.may_be_null || b.may_be_null,
            }),
            _ => Value::Mixed,
        }
    }

    /// The value with the range of a scalar forgotten.
    fn without_range(&self) -> Value {
        match self {
            Value::Scalar(_) => Value::Scalar(Scalar::UNKNOWN),
            Value::Pointer(_) | Value::Mixed => *self,
        }
    }

    /// The address at an instruction's offset.
    fn offset_by(&self, off: i16) -> Value {
        match *self {
            Value::Pointer(mut pointer) => {
                let OffsetRange { min, max } = &mut pointer.offset;
                *min = min.saturating_add(off.into());
                *max = max.saturating_add(off.into());
                Value::Pointer(pointer)
            }
            other => other,
        }
    }
}

/// A pointer into one kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Kind of the pointee.
    pub kind: PointerKind,
    /// Offsets that it may have.
    pub offset: OffsetRange,
    /// It may be null instead.
    pub may_be_null: bool,
}

/// Bytes from the start of the object, of a stack frame from its end; both possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetRange {
    /// Least.
    pub min: i64,
    /// Greatest.
    pub max: i64,
}

impl OffsetRange {
    /// The offset, if it is always the same.
    pub fn constant(&self) -> Option<i64> {
        (self.min == self.max).then_some(self.min)
    }
}

/// Kind of the pointee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointerKind {
    /// The context.
    Context,
    /// A map itself. Maps are numbered as in the program; behind them are inner maps.
    Map(MapRef),
    /// A value of a map.
    MapValue(MapRef),
    /// A key of a map.
    MapKey(MapRef),
    /// The stack of a function on the call chain.
    Stack {
        /// 0: of the function itself, 1: of its caller, and so on.
        frames_up: u32,
    },
    /// The packet's data.
    Packet,
    /// The packet's metadata.
    PacketMeta,
    /// The end of the packet.
    PacketEnd,
    /// The keys that a flow dissector fills.
    FlowKeys,
    /// Memory of that size.
    Memory {
        /// Bytes.
        size: u32,
    },
    /// A function of the program.
    Function {
        /// Number of the subprogram.
        subprog: u32,
    },
    /// Another object.
    Other {
        /// Base of the pointer's type.
        base: RegBase,
    },
}

/// Outcomes of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Branch {
    /// It always jumps.
    Always,
    /// It never jumps.
    Never,
    /// It may do either.
    Both,
}

/// The object of a helper call, if that is the same in every run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallFact {
    /// The map in `r1`.
    pub map: Option<MapRef>,
    /// The key that `r2` points to, for keys of 4 and 8 bytes.
    pub key: Option<u64>,
    /// The map is an array without null values, and the key is one of its indices: a lookup
    /// finds the value.
    pub is_key_in_bounds: bool,
}

/// A comparison of a packet pointer with the end of the packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketCheck {
    /// The conditional jump.
    pub insn: u32,
    /// Bytes behind the variable part of the pointer's offset that it proves at least.
    pub proven: u32,
    /// Loads, stores and atomic operations on the packet that it alone proves, ascending.
    pub accesses: Vec<u32>,
}
