//! Lowering: from evidence that a program is safe to code that engines run unchecked.
//!
//! A [`Lowered`] is constructed from evidence only: the classic checker, which proves that
//! jumps and scratch words are in range (the conversion adds only accesses to its own
//! context and stack); or the caller's assertion of safety, after a check of the program's
//! structure ([`Malformed`]); or the verifier's proof ([`Proof`]), by which references to
//! maps and accesses to the context are rewritten.
//!
//! Analyses that several engines need are here too: the control-flow graph with definitions
//! and uses ([`flow`]), comparison trees ([`trees`]), and the state that a run must set up
//! ([`Requirements`]).
#![forbid(unsafe_code)]

mod callbacks;
mod code;
mod construct;
pub mod flow;
mod packet_loads;
mod passes;
mod patch;
mod requirements;
mod scratch;
mod structure;
pub mod trees;
mod verified;

pub use callbacks::{EntrySizes, timer_callbacks};
pub use passes::{Pass, Passes};
pub use requirements::{Requirements, may_succeed_outside};
pub use structure::{FindCall, Function, MAX_SLOTS, Malformed, Problem};
pub use verified::Unfit;
pub use vm::{ContextKind, PacketRules};

use callbacks::{Callbacks, OneFunction};
use classic::{Converted, Rules, Semantics};
use code::Code;
use flow::DefUse;
use isa::ebpf::Insn;
use passes::{FIRST_FUNCTION, FIRST_LOOKUP, FIRST_TAIL_CALL, Optimized, Source};
use spec::calls::TAIL_CALL;
use spec::kfuncs::KernelFunction;
use std::sync::Arc;
use verified::UsedMaps;
use verifier::Proof;
use vm::{Call, DirectAccess, HashLookup, HostFunction, MapHandle, TailTable, Unchecked};

/// Evidence that a program is safe to run unchecked.
///
/// It does not implement `PartialEq`, so that every use is an exhaustive match that a new
/// kind of evidence must extend.
#[derive(Clone, Copy, Debug)]
pub enum Evidence {
    /// Classic: accepted by the checker under these rules, and converted by
    /// `classic::convert`.
    Classic(Rules),
    /// eBPF: the caller asserts safety ([`Unchecked`]).
    CallerAsserted,
    /// eBPF: accepted by the verifier, for programs with this context.
    Verified(ContextKind),
}

/// Input of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A packet.
    Packet,
    /// A system call (`struct seccomp_data`).
    SystemCall,
    /// Memory whose address is in `r1` and whose length is in `r2`.
    Memory,
    /// The context of a program type, in `r1`.
    Context,
}

impl Evidence {
    /// Input of programs with this evidence.
    pub const fn input(self) -> Input {
        match self {
            Evidence::Classic(Rules::Socket | Rules::Capture) => Input::Packet,
            Evidence::Classic(Rules::Seccomp) => Input::SystemCall,
            Evidence::CallerAsserted => Input::Memory,
            Evidence::Verified(_) => Input::Context,
        }
    }

    /// True if the evidence proves termination; otherwise engines limit the backward jumps.
    pub const fn proves_termination(self) -> bool {
        match self {
            // Capture filters may loop.
            Evidence::Classic(_) => false,
            Evidence::CallerAsserted | Evidence::Verified(_) => true,
        }
    }
}

/// True if a call with this number in a lowered program is a tail call, through a table or
/// through one slot of it ([`Lowered::tail_slot`]).
pub const fn is_tail_call(number: i32) -> bool {
    number == TAIL_CALL || number >= FIRST_TAIL_CALL && number < FIRST_TAIL_CALL + MAX_SLOTS as i32
}

/// True if a call with this number in a lowered program looks up a key in a hash table
/// ([`Lowered::hash_lookup`]).
pub const fn is_hash_lookup(number: i32) -> bool {
    number >= FIRST_LOOKUP && number < FIRST_LOOKUP + MAX_SLOTS as i32
}

/// A program that an engine can run.
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
///   number ([`Lowered::tail_slot`]), and changes `r1` to `r3` if it falls through;
/// - a cast between address spaces keeps the low half, as Linux's does where no
///   arena has a base;
/// - atomics that fetch are sequentially consistent, the others relaxed.
#[derive(Clone, Debug)]
pub struct Lowered {
    code: Code,
    evidence: Evidence,
    /// The program is a function that takes an entry of a map of these sizes.
    entry_sizes: Option<EntrySizes>,
    packet_rules: PacketRules,
    find_call: FindCall,
    maps: Vec<MapHandle>,
    accesses: Vec<DirectAccess>,
    tail_tables: Vec<Arc<TailTable>>,
    tail_slots: Vec<u64>,
    /// The functions of the host that the program calls.
    host: Arc<[HostFunction]>,
}

/// What of a verified program is lowered, and how.
struct Part {
    /// Number of the program.
    number: u32,
    /// The slot of the function; without one the whole program.
    function: Option<u32>,
    passes: Passes,
}

impl Lowered {
    /// Lowers a converted classic program. Scratch words are promoted to unused registers.
    pub fn from_classic(program: Converted) -> Lowered {
        let evidence = Evidence::Classic(program.rules());
        let packet_rules = match program.semantics() {
            Semantics::Capture => PacketRules::Capture,
            Semantics::Kernel => PacketRules::Kernel,
        };
        let mut insns = program.into_insns();
        scratch::promote(&mut insns);
        let (start, end) = (0, insns.len());
        let code = Code::new(insns, vec![Function { start, end }], evidence);
        let code = code.optimized(Passes::OF_ALL, evidence);
        Lowered::without_maps(code, evidence, packet_rules)
    }

    /// Lowers an eBPF program whose safety the caller asserts, if its structure is valid.
    /// Packet loads follow Linux's rules.
    pub fn from_unchecked(program: Unchecked) -> Result<Lowered, Malformed> {
        Lowered::from_unchecked_with(program, Passes::OF_ALL)
    }

    /// As [`Lowered::from_unchecked`], with only these passes, of [`Passes::OF_ALL`].
    pub fn from_unchecked_with(program: Unchecked, passes: Passes) -> Result<Lowered, Malformed> {
        let functions =
            structure::check_structure(program.insns(), |number| vm::find_call(number).is_some())?;
        let evidence = Evidence::CallerAsserted;
        let code = Code::new(program.into_insns(), functions, evidence);
        let code = code.optimized(passes, evidence);
        Ok(Lowered::without_maps(code, evidence, PacketRules::Kernel))
    }

    fn without_maps(code: Code, evidence: Evidence, packet_rules: PacketRules) -> Lowered {
        Lowered {
            code,
            evidence,
            entry_sizes: None,
            packet_rules,
            find_call: vm::find_call,
            maps: Vec::new(),
            accesses: Vec::new(),
            tail_tables: Vec::new(),
            tail_slots: Vec::new(),
            host: Arc::default(),
        }
    }

    /// Lowers a program that the verifier accepted, with its maps in the order of the
    /// program's (`None` for those that no instruction refers to), and the helpers that it
    /// may call. References to maps become addresses of the handles, accesses to the context
    /// those of a [`vm::DirectContext`]; then come all passes.
    ///
    /// `find_call` gives the functions of helpers as their prototypes in Linux require.
    pub fn from_verified(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
    ) -> Result<Lowered, Unfit> {
        Lowered::from_verified_with(proof, maps, find_call, Passes::ALL)
    }

    /// As [`Lowered::from_verified`], with only these passes.
    pub fn from_verified_with(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        passes: Passes,
    ) -> Result<Lowered, Unfit> {
        Lowered::from_verified_for(proof, maps, find_call, &Arc::default(), passes)
    }

    /// As [`Lowered::from_verified_with`], with the functions of the host that the program was
    /// verified for.
    ///
    /// # Errors
    /// [`Unfit::HostFunctions`] if they are others.
    pub fn from_verified_for(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        passes: Passes,
    ) -> Result<Lowered, Unfit> {
        let part = Part {
            number: 0,
            function: None,
            passes,
        };
        Lowered::from_part(proof, maps, find_call, host, part)
    }

    /// As [`Lowered::from_verified_for`], for a program that helpers know by a number after its
    /// runs ([`vm::Callback`]); of its functions ([`timer_callbacks`]) only the one at a slot,
    /// if one is given, which gets a map, a key and a value in its context.
    pub fn from_numbered(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        (number, function): (u32, Option<u32>),
    ) -> Result<Lowered, Unfit> {
        let part = Part {
            number,
            function,
            passes: Passes::ALL,
        };
        Lowered::from_part(proof, maps, find_call, host, part)
    }

    fn from_part(
        proof: &Proof,
        maps: &[Option<MapHandle>],
        find_call: FindCall,
        host: &Arc<[HostFunction]>,
        part: Part,
    ) -> Result<Lowered, Unfit> {
        let host = match proof.host() {
            None => Arc::default(),
            Some(verified) => {
                let given = host.iter().map(|function| function.prototype());
                if !given.eq(verified) {
                    return Err(Unfit::HostFunctions);
                }
                host.clone()
            }
        };
        let kind = verified::context_of(proof.program().kind())?;
        let (decoded, facts) = (proof.program().decode(), proof.facts());
        let callbacks = Callbacks::of(&decoded, facts);
        let used = UsedMaps::new(proof.program(), maps, kind)?;
        let insns = verified::rewrite(proof, &used, part.number)?;
        let function = (part.function).map(|slot| OneFunction::new(&decoded, facts, slot as usize));
        let entry_sizes = part.function.map(|slot| {
            let sizes = EntrySizes::of_timers(maps);
            sizes.ok_or(Unfit::Callback(slot as usize))
        });
        let entry_sizes = entry_sizes.transpose()?;
        let source = Source {
            callbacks: &callbacks,
            facts,
            maps,
            tables: &used.tables,
            function: function.as_ref(),
        };
        let optimized = passes::apply(insns, &source, part.passes);
        let Optimized {
            code: patched,
            stack,
            accesses,
            tail_slots,
        } = optimized.ok_or(Unfit::TooLong)?;
        let evidence = Evidence::Verified(kind);
        let mut lowered = Lowered {
            code: Code::default(),
            evidence,
            entry_sizes,
            packet_rules: PacketRules::Kernel,
            find_call,
            maps: maps.iter().flatten().cloned().collect(),
            accesses,
            tail_slots,
            tail_tables: used.tables.into_iter().flatten().collect(),
            host,
        };
        let is_call = |number| is_tail_call(number) || lowered.call(number).is_some();
        let functions =
            structure::check_structure(&patched.insns, is_call).map_err(Unfit::Malformed)?;
        let code = Code {
            origins: Some(patched.origins),
            stack,
            ..Code::new(patched.insns, functions, evidence)
        };
        lowered.code = code.optimized(part.passes, evidence);
        Ok(lowered)
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
                    .or_else(|| (self.find_call)(number)),
            },
        }
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

    /// What operations on maps refer to by address; it has to exist as long as the code.
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

    /// Bytes of stack below its frame pointer that a function accesses, if that is known.
    pub fn stack_bytes(&self, function: Function) -> Option<u32> {
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

    /// Sizes of the entries with which the host calls the program, if it is a function that
    /// the host calls.
    pub fn entry_sizes(&self) -> Option<EntrySizes> {
        self.entry_sizes
    }

    /// The meaning of packet loads outside the packet.
    pub fn packet_rules(&self) -> PacketRules {
        self.packet_rules
    }
}
