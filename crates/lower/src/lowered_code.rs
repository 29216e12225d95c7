//! Lowered code: instructions with what they refer to, and the evidence of their safety.

use std::sync::Arc;

use isa::ebpf::Insn;
use spec::helpers::HelperId;
use spec::kfuncs::KernelFunction;
use vm::{
    Call, Counters, DirectAccess, HashLookup, HostFunction, Implementation, MapHandle, PacketRules,
    References, TailTable,
};

use crate::code::{Code, FunctionStack};
use crate::flow::DefUse;
use crate::structure::{FindCall, Function};
use crate::{Evidence, LoweredCall};

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
/// - a call calls what [`LoweredCall::of`] says;
/// - a tail call (in verified programs) takes a [`TailTable`] in `r2` in place of the program
///   array, or has a slot of one ([`LoweredCode::tail_slot`]), and changes `r1` to `r3` if it
///   falls through;
/// - a count ([`LoweredCall::Count`]) changes no register;
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
    /// What [`LoweredCall::Count`] increments.
    pub(crate) counters: Option<Counters>,
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
            counters: None,
        }
    }

    /// The function of the process that makes a call; `None` for local calls and tail calls, which
    /// engines make by themselves, and for functions that are not there.
    pub fn function(&self, call: LoweredCall) -> Option<Call> {
        match call {
            LoweredCall::Local(_)
            | LoweredCall::TailCall
            | LoweredCall::TailSlot(_)
            | LoweredCall::Count(_) => None,
            LoweredCall::Helper(_) | LoweredCall::Kfunc(_) | LoweredCall::ProcessorId => {
                Some(self.implementation(call)?.call)
            }
            LoweredCall::Host(index) => {
                let is_there = usize::from(index) < self.host.len();
                vm::host_call(index).filter(|_| is_there)
            }
            LoweredCall::Bits(op) => Some(vm::bit_operation(op)),
            LoweredCall::MapFunction(index) => match self.accesses.get(index as usize)? {
                DirectAccess::Function(function) => Some(function.call()),
                DirectAccess::Elements(_) | DirectAccess::Maps(_) | DirectAccess::Hash(_) => None,
            },
            LoweredCall::HashLookup(index) => Some(self.hash_lookup(index)?.function().call()),
            LoweredCall::BeginCallbacks => Some(vm::begin_calls),
            LoweredCall::NextCallback => Some(vm::next_call),
            LoweredCall::PacketLoad => Some(vm::load_from_packet),
        }
    }

    /// True if engines can make a call.
    pub(crate) fn makes(&self, call: LoweredCall) -> bool {
        match call {
            LoweredCall::TailCall | LoweredCall::Local(_) => true,
            LoweredCall::TailSlot(index) => (index as usize) < self.tail_slots.len(),
            LoweredCall::Count(index) => {
                let counters = self.counters.as_ref();
                counters.is_some_and(|counters| (index as usize) < counters.len())
            }
            call => self.function(call).is_some(),
        }
    }

    /// The implementation of a helper or of a kfunc of Linux.
    fn implementation(&self, call: LoweredCall) -> Option<Implementation> {
        let number = match call {
            LoweredCall::Helper(number) => number,
            LoweredCall::ProcessorId => HelperId::GetSmpProcessorId.number(),
            LoweredCall::Kfunc(index) => KernelFunction::Linux(index).number(),
            LoweredCall::Local(_)
            | LoweredCall::Host(_)
            | LoweredCall::Bits(_)
            | LoweredCall::TailCall
            | LoweredCall::TailSlot(_)
            | LoweredCall::MapFunction(_)
            | LoweredCall::HashLookup(_)
            | LoweredCall::BeginCallbacks
            | LoweredCall::NextCallback
            | LoweredCall::PacketLoad
            | LoweredCall::Count(_) => return None,
        };
        (self.find_call)(number)
    }

    /// True if helpers may read at addresses that are not proven valid while frames of the
    /// program exist: it calls one, or a subprogram makes a tail call to a program that may.
    pub fn may_probe(&self) -> bool {
        let entry = self.functions()[0].end;
        let calls = self.insns().iter().enumerate();
        let mut calls = calls.filter_map(|(slot, insn)| match *insn {
            Insn::Call(callee) => Some((slot, LoweredCall::of(callee)?)),
            _ => None,
        });
        calls.any(|(slot, call)| match call {
            LoweredCall::TailCall | LoweredCall::TailSlot(_) => slot >= entry,
            call => (self.implementation(call)).is_some_and(|function| function.probes()),
        })
    }

    /// The lookup in a hash table that [`LoweredCall::HashLookup`] of an index makes.
    pub fn hash_lookup(&self, index: u32) -> Option<&HashLookup> {
        match self.accesses.get(index as usize)? {
            DirectAccess::Hash(lookup) => Some(lookup),
            DirectAccess::Elements(_) | DirectAccess::Maps(_) | DirectAccess::Function(_) => None,
        }
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

    /// What the code refers to by address, and the functions of the host that it calls.
    pub fn references(&self) -> References {
        let references = References::new(&self.maps, &self.accesses, &self.tail_tables, &self.host);
        references.with_counters(self.counters.clone())
    }

    /// Address of the slot of a program array (see [`TailTable::slot`]) through which
    /// [`LoweredCall::TailSlot`] of an index makes a tail call.
    ///
    /// # Panics
    /// If no call of this code has the index.
    pub fn tail_slot(&self, index: u32) -> u64 {
        self.tail_slots[index as usize]
    }

    /// Address of the counter that [`LoweredCall::Count`] of an index increments.
    ///
    /// # Panics
    /// If no call of this code has the index.
    pub fn counter(&self, index: u32) -> u64 {
        let counters = self.counters.as_ref();
        counters
            .expect("code that counts has counters")
            .address(index as usize)
    }

    /// True if counters are incremented with a lock.
    pub fn shares_counters(&self) -> bool {
        self.counters.as_ref().is_some_and(Counters::is_shared)
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
