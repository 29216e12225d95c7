//! What calls of lowered code call.
//!
//! A call is an instruction with a number, as that of a helper. [`LoweredCall`] is what the number
//! stands for; this module alone knows the numbers. Engines match all kinds when they prepare a
//! program, so that a new kind does not compile until each of them has decided.

use isa::ebpf::{Callee, Insn};
use spec::bits::BitOp;
use spec::calls::FIRST_LOWERED;
use spec::helpers::HelperId;
use spec::kfuncs::KernelFunction;

/// Bits of an index, above which the kind of a call is that only lowering makes.
const INDEX_BITS: u32 = 24;
/// Largest index: there are fewer calls than a program has slots.
const MAX_INDEX: u32 = (1 << INDEX_BITS) - 1;

/// The callee of a call in lowered code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoweredCall {
    /// A function of the program, at a distance in slots from the next instruction.
    Local(i32),
    /// A helper of Linux or of a converted classic filter, by number.
    Helper(i32),
    /// `bpf_get_smp_processor_id`.
    ProcessorId,
    /// A kfunc of Linux, by its place in the table of those with a release.
    Kfunc(u16),
    /// A function of the host, by its place in [`LoweredCode::host`](crate::LoweredCode::host).
    Host(u16),
    /// A bit operation.
    Bits(BitOp),
    /// `bpf_tail_call` with a table of targets ([`vm::TailTable`]) in `r2` and the index in `r3`.
    TailCall,
    /// `bpf_tail_call` through one slot of a table
    /// ([`LoweredCode::tail_slot`](crate::LoweredCode::tail_slot)).
    TailSlot(u32),
    /// An operation on one map, by its place among the accesses; its function gets its address in
    /// `r1`.
    MapFunction(u32),
    /// A lookup in one hash table
    /// ([`LoweredCode::hash_lookup`](crate::LoweredCode::hash_lookup)), called as a map function
    /// where it is not inlined, by the engine, as `r1` need not hold the address.
    HashLookup(u32),
    /// The start of the calls of callbacks that a helper asked for ([`vm::begin_calls`]).
    BeginCallbacks,
    /// The next of these calls ([`vm::next_call`]).
    NextCallback,
    /// A packet load of classic BPF in a verified program ([`vm::load_from_packet`]).
    PacketLoad,
    /// The increment of a counter ([`LoweredCode::counter`](crate::LoweredCode::counter)), which
    /// changes no register.
    Count(u32),
}

impl LoweredCall {
    /// What a call calls; `None` for BTF ids of kfuncs, which lowering resolves.
    pub const fn of(callee: Callee) -> Option<LoweredCall> {
        match callee {
            Callee::Local(distance) => Some(LoweredCall::Local(distance)),
            Callee::Helper(number) => Some(LoweredCall::from_number(number)),
            Callee::Kfunc { .. } => None,
        }
    }

    /// What a call by number calls.
    pub const fn from_number(number: i32) -> LoweredCall {
        match HelperId::from_number(number) {
            Some(HelperId::GetSmpProcessorId) => return LoweredCall::ProcessorId,
            Some(HelperId::TailCall) => return LoweredCall::TailCall,
            Some(_) => return LoweredCall::Helper(number),
            None => {}
        }
        match KernelFunction::from_number(number) {
            Some(KernelFunction::Bits(op)) => return LoweredCall::Bits(op),
            Some(KernelFunction::Linux(index)) => return LoweredCall::Kfunc(index),
            Some(KernelFunction::Host(index)) => return LoweredCall::Host(index),
            None => {}
        }
        let index = number as u32 & MAX_INDEX;
        match (number >> INDEX_BITS) - (FIRST_LOWERED >> INDEX_BITS) {
            0 => LoweredCall::TailSlot(index),
            1 => LoweredCall::MapFunction(index),
            2 => LoweredCall::HashLookup(index),
            3 => LoweredCall::BeginCallbacks,
            4 => LoweredCall::NextCallback,
            5 => LoweredCall::PacketLoad,
            6 => LoweredCall::Count(index),
            _ => LoweredCall::Helper(number),
        }
    }

    /// The instruction that makes the call.
    pub(crate) const fn insn(self) -> Insn {
        let (kind, index) = match self {
            LoweredCall::Local(distance) => return Insn::Call(Callee::Local(distance)),
            LoweredCall::Helper(number) => return by_number(number),
            LoweredCall::ProcessorId => return by_number(HelperId::GetSmpProcessorId.number()),
            LoweredCall::Kfunc(index) => return by_number(KernelFunction::Linux(index).number()),
            LoweredCall::Host(index) => return by_number(KernelFunction::Host(index).number()),
            LoweredCall::Bits(op) => return by_number(op.number()),
            LoweredCall::TailCall => return by_number(HelperId::TailCall.number()),
            LoweredCall::TailSlot(index) => (0, index),
            LoweredCall::MapFunction(index) => (1, index),
            LoweredCall::HashLookup(index) => (2, index),
            LoweredCall::BeginCallbacks => (3, 0),
            LoweredCall::NextCallback => (4, 0),
            LoweredCall::PacketLoad => (5, 0),
            LoweredCall::Count(index) => (6, index),
        };
        assert!(index <= MAX_INDEX, "more calls than slots");
        by_number(FIRST_LOWERED + (kind << INDEX_BITS) + index as i32)
    }
}

const fn by_number(number: i32) -> Insn {
    Insn::Call(Callee::Helper(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of call that comes behind another; `None` behind the last one. A new kind does
    /// not compile until it has its place.
    fn next(call: LoweredCall) -> Option<LoweredCall> {
        Some(match call {
            LoweredCall::Local(_) => LoweredCall::Helper(1),
            LoweredCall::Helper(_) => LoweredCall::ProcessorId,
            LoweredCall::ProcessorId => LoweredCall::Kfunc(7),
            LoweredCall::Kfunc(_) => LoweredCall::Host(u16::MAX),
            LoweredCall::Host(_) => LoweredCall::Bits(BitOp::Ror),
            LoweredCall::Bits(_) => LoweredCall::TailCall,
            LoweredCall::TailCall => LoweredCall::TailSlot(MAX_INDEX),
            LoweredCall::TailSlot(_) => LoweredCall::MapFunction(0),
            LoweredCall::MapFunction(_) => LoweredCall::HashLookup(MAX_INDEX),
            LoweredCall::HashLookup(_) => LoweredCall::BeginCallbacks,
            LoweredCall::BeginCallbacks => LoweredCall::NextCallback,
            LoweredCall::NextCallback => LoweredCall::PacketLoad,
            LoweredCall::PacketLoad => LoweredCall::Count(3),
            LoweredCall::Count(_) => return None,
        })
    }

    #[test]
    fn instructions_name_calls() {
        let mut call = Some(LoweredCall::Local(-3));
        while let Some(expected) = call {
            let Insn::Call(callee) = expected.insn() else {
                panic!("{expected:?}");
            };
            assert_eq!(LoweredCall::of(callee), Some(expected));
            call = next(expected);
        }
    }

    #[test]
    fn other_numbers_are_those_of_helpers() {
        for number in [i32::MIN, -1, 0, 1, 211, 0x7fff_0000, i32::MAX] {
            assert_eq!(
                LoweredCall::from_number(number),
                LoweredCall::Helper(number)
            );
        }
    }
}
