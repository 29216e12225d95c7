//! Lowered code: instructions with what they refer to, the evidence of their safety, and what
//! calls by number mean in them.

use std::sync::Arc;

use isa::ebpf::{Callee, Insn};
use spec::calls::TAIL_CALL;
use spec::kfuncs::KernelFunction;
use vm::{
    Call, DirectAccess, HashLookup, HostFunction, Implementation, MapHandle, PacketRules, TailTable,
};

use crate::code::{Code, FunctionStack};
use crate::flow::DefUse;
use crate::passes::{FIRST_FUNCTION, FIRST_LOOKUP, FIRST_TAIL_CALL};
use crate::structure::{FindCall, Function, MAX_SLOTS};
use crate::{Evidence, callbacks, packet_loads};

/// True if a call with this number in a lowered program is a tail call, through a table or
/// through one slot of it ([`LoweredCode::tail_slot`]).
pub const fn is_tail_call(number: i32) -> bool {
    number == TAIL_CALL || number >= FIRST_TAIL_CALL && number < FIRST_TAIL_CALL + MAX_SLOTS as i32
}

/// True if a call with this number in a lowered program looks up a key in a hash table
/// ([`LoweredCode::hash_lookup`]).
pub const fn is_hash_lookup(number: i32) -> bool {
    number >= FIRST_LOOKUP && number < FIRST_LOOKUP + MAX_SLOTS as i32
}

/// The functions of programs that nothing verified, which have no memory but their own.
fn unverified(number: i32) -> Option<Implementation> {
    let call = vm::find_call(number)?;
    Some(Implementation { call, declared: "" })
}

/// The code of a program that an engine can run, whatever its kind.
///
/// Semantics beside those of single instructions (`isa::ebpf::eval`):
/// - a local call gives the callee a frame of its own, 512 bytes below its `r10`,
///   and the caller finds its `r6` to `r9` again;
/// - a packet load beyond the packet returns 0 from the function it stands in, as
///   Linux's conversion of it does;
/// - `may_goto` falls through [`vm::MAY_GOTO_LOOPS`] times in each activation of
///   a function, then jumps;
/// - a tail call (helper [`spec::calls::TAIL_CALL`], in verified programs) takes a
///   [`TailTable`] in `r2` in place of the program array, or has a slot of one by its
///   number ([`LoweredCode::tail_slot`]), and changes `r1` to `r3` if it falls through;
/// - a cast between address spaces keeps the low half, as Linux's does where no
///   arena has a base;
/// - atomics that fetch are sequentially consistent, the others relaxed.
#[derive(Clone, Debug)]
pub struct LoweredCode {
    pub(crate) code: Code,
    pub(crate) evidence: Evidence,
    pub(crate) packet_rules: PacketRules,
    pub(crate) find_call: FindCall,
    pub(crate) maps: Vec<MapHandle>,
    pub(crate) accesses: Vec<DirectAccess>,
    pub(crate) tail_tables: Vec<Arc<TailTable>>,
    pub(crate) tail_slots: Vec<u64>,
    /// The functions of the host that the program calls.
    pub(crate) host: Arc<[HostFunction]>,
}

impl LoweredCode {
    /// Code without maps and functions of a host.
    pub(crate) fn without_maps(
        code: Code,
        evidence: Evidence,
        packet_rules: PacketRules,
    ) -> LoweredCode {
        LoweredCode {
            code,
            evidence,
            packet_rules,
            find_call: unverified,
            maps: Vec::new(),
            accesses: Vec::new(),
            tail_tables: Vec::new(),
            tail_slots: Vec::new(),
            host: Arc::default(),
        }
    }

    /// The function of a helper that the program may call.
    pub fn call(&self, number: i32) -> Option<Call> {
        if let Some(lookup) = self.hash_lookup(number) {
            return Some(lookup.function().call());
        }
        let index = usize::try_from(number.wrapping_sub(FIRST_FUNCTION)).ok();
        match index.and_then(|index| self.accesses.get(index)) {
            Some(DirectAccess::Function(function)) => Some(function.call()),
            Some(DirectAccess::Elements(_) | DirectAccess::Maps(_) | DirectAccess::Hash(_)) => None,
            None => match KernelFunction::of_number(number) {
                Some(KernelFunction::Bits(op)) => Some(vm::bit_operation(op)),
                Some(KernelFunction::Host(index)) => {
                    let is_there = usize::from(index) < self.host.len();
                    vm::host_call(index).filter(|_| is_there)
                }
                Some(KernelFunction::Linux(_)) | None => callbacks::call(number)
                    .or_else(|| packet_loads::call(number))
                    .or_else(|| Some((self.find_call)(number)?.call)),
            },
        }
    }

    /// True if helpers may read at addresses that are not proven valid while frames of the
    /// program exist: it calls one, or a subprogram makes a tail call to a program that may.
    pub fn may_probe(&self) -> bool {
        let entry = self.functions()[0].end;
        self.insns()
            .iter()
            .enumerate()
            .any(|(slot, insn)| match *insn {
                Insn::Call(Callee::Helper(number)) if is_tail_call(number) => slot >= entry,
                Insn::Call(Callee::Helper(number)) => {
                    (self.find_call)(number).is_some_and(|helper| helper.probes())
                }
                _ => false,
            })
    }

    /// The lookup that a call with this number makes, if it is one in a hash table. Its
    /// function gets its address in `r1`, as other functions of maps.
    pub fn hash_lookup(&self, number: i32) -> Option<&HashLookup> {
        let index = usize::try_from(number.wrapping_sub(FIRST_LOOKUP)).ok()?;
        match self.accesses.get(index)? {
            DirectAccess::Hash(lookup) => Some(lookup),
            DirectAccess::Elements(_) | DirectAccess::Maps(_) | DirectAccess::Function(_) => None,
        }
    }

    /// Objects that operations on maps refer to by address; they have to live as long as the code.
    pub fn map_accesses(&self) -> &[DirectAccess] {
        &self.accesses
    }

    /// The functions of the host that the program was verified for, if it calls some: runs have
    /// them in [`vm::RunContext::host`].
    pub fn host(&self) -> &Arc<[HostFunction]> {
        &self.host
    }

    /// The tables of the program arrays that tail calls refer to by address.
    pub fn tail_tables(&self) -> &[Arc<TailTable>] {
        &self.tail_tables
    }

    /// Address of the slot of a program array (see [`TailTable::slot`]) through which a call
    /// with this number makes a tail call; `None` for other calls.
    pub fn tail_slot(&self, number: i32) -> Option<u64> {
        let index = usize::try_from(number.wrapping_sub(FIRST_TAIL_CALL)).ok()?;
        self.tail_slots.get(index).copied()
    }

    /// The slot of the program that the instruction at a slot comes from.
    pub fn origin(&self, slot: usize) -> usize {
        match &self.code.origins {
            Some(origins) => origins[slot] as usize,
            None => slot,
        }
    }

    /// The stack that a function accesses, if that is known.
    pub fn stack(&self, function: Function) -> Option<FunctionStack> {
        let start = function.start;
        let stack = &self.code.stack;
        let found = stack.binary_search_by_key(&start, |(start, _)| *start);
        found.ok().map(|index| stack[index].1)
    }

    /// The maps that the instructions refer to by address.
    pub fn maps(&self) -> &[MapHandle] {
        &self.maps
    }

    /// The instructions, one for each slot.
    pub fn insns(&self) -> &[Insn] {
        &self.code.insns
    }

    /// The control-flow graph with definitions and uses.
    pub fn def_use(&self) -> &DefUse {
        &self.code.def_use
    }

    /// The functions in the order of their slots; the first is the entry.
    pub fn functions(&self) -> &[Function] {
        &self.code.functions
    }

    /// The evidence of safety.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// The meaning of packet loads outside the packet.
    pub fn packet_rules(&self) -> PacketRules {
        self.packet_rules
    }
}
