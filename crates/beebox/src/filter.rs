//! Packet filters.

use classic::{Checked, Endless, Refusal, Rules, Semantics, check};
use isa::classic::SockFilter;
use jit::OnPackets;
use jit::memory::Pool;
use jit::perf::Code;
use packet::Packet;
use spec::SplitMix;
use vm::{Machine, Outcome};

use crate::engine::{Engine, Prepared};

/// A checked filter, ready to run. It can be shared between threads; each
/// thread runs it through a [`Runner`] of its own.
pub struct Filter {
    prepared: Prepared,
    checked: Checked,
    semantics: Semantics,
}

impl Filter {
    /// Checks a program and prepares it for an engine.
    pub fn new(
        program: &[SockFilter],
        rules: Rules,
        semantics: Semantics,
        engine: Engine,
    ) -> Result<Filter, Refusal> {
        Filter::new_in(&Pool::new(), program, rules, semantics, engine)
    }

    /// As [`Filter::new`], with native code in memory that many filters share.
    pub fn new_in(
        pool: &Pool,
        program: &[SockFilter],
        rules: Rules,
        semantics: Semantics,
        engine: Engine,
    ) -> Result<Filter, Refusal> {
        let checked = check(program, rules)?;
        let prepared = Prepared::new(&checked, semantics, engine, pool);
        Ok(Filter {
            prepared,
            checked,
            semantics,
        })
    }

    /// The program as it was checked.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// What the run means by lengths and bounds.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// What runs it.
    pub fn engine(&self) -> Engine {
        self.prepared.engine()
    }

    /// The native code under a name, for a profiler; none where another engine runs
    /// the filter.
    pub fn native_code<'a>(&'a self, name: &'a str) -> Option<Code<'a>> {
        self.prepared.native_code(name)
    }

    /// What runs the filter in one thread. Equal seeds give equal random numbers
    /// to filters that ask for some.
    pub fn runner(&self, seed: u64) -> Runner<'_> {
        Runner {
            on_packets: self.prepared.on_packets(),
            filter: self,
            machine: Machine::new(),
            random: SplitMix::new(seed),
        }
    }
}

/// Runs one filter on packet after packet.
pub struct Runner<'f> {
    /// The way to run native code that looks at nothing but a packet's bytes.
    on_packets: Option<OnPackets<'f>>,
    filter: &'f Filter,
    machine: Machine,
    random: SplitMix,
}

impl Runner<'_> {
    /// Runs on one packet: 0 drops it, anything else is how many bytes to keep.
    #[inline(always)]
    pub fn run(&mut self, packet: &Packet<'_>) -> Result<u32, Endless> {
        if let Some(code) = self.on_packets {
            return Ok(code.run(packet.data()));
        }
        // A copy for each way: what one of them hands on by its address would have
        // to lie in memory for all.
        let packet = *packet;
        let (machine, random) = (&mut self.machine, &mut self.random);
        let budget = classic::BACKWARD_JUMPS;
        match &self.filter.prepared {
            Prepared::Classic(program) => program.run(&{ packet }, random),
            Prepared::Interp(code) => answer(code.run_packet(machine, &{ packet }, random, budget)),
            Prepared::Jit(code) => answer(code.run_packet(machine, &{ packet }, random, budget)),
        }
    }
}

#[inline(always)]
fn answer(outcome: Outcome) -> Result<u32, Endless> {
    match outcome {
        Outcome::Returned(value) => Ok(value as u32),
        Outcome::BudgetExhausted => Err(Endless),
        Outcome::DeadlinePassed => unreachable!("a packet's filter has no deadline"),
    }
}
