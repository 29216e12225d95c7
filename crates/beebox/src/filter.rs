//! Packet filters: classic BPF programs, checked and prepared for an engine.
//!
//! A [`Filter`] is immutable and shared between threads; a [`FilterRunner`] holds what one
//! thread needs to run it. A filter is made of instructions, of text in any form that
//! tools write ([`FilterBuilder::parse`]), or of an expression that libpcap compiles
//! ([`Expression`]).

use classic::run::Step;
use classic::{Checked, JumpLimitExceeded, PlainProgram, Rules, Semantics, check};
use isa::classic::SockFilter;
use jit::PacketFn;
use jit::memory::Pool;
use jit::perf::CodeRegion;
use lower::PacketFilter;
use packet::Packet;
use spec::SplitMix;
use vm::{Machine, Outcome};

use crate::engine::{Engine, Prepared};
use crate::error::FilterError;
use crate::expression::Expression;
use crate::internal::text::Form;

/// Seed of the random numbers that [`Filter::runner`] gives to filters.
const SEED: u64 = 1;

/// A checked filter, ready to run. It can be shared between threads; each
/// thread runs it through a [`FilterRunner`] of its own.
///
/// ```
/// use beebox::{Filter, Metadata, Packet};
///
/// let filter = Filter::parse(b"ldh [12]\njeq #0x800, ip, no\nip: ret #-1\nno: ret #0")?;
/// let frame = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0x00, 0x45];
/// let packet = Packet::captured(&frame, 60, &Metadata::UNKNOWN);
/// assert_eq!(filter.runner().run(&packet), Ok(u32::MAX));
/// # Ok::<(), beebox::FilterError>(())
/// ```
pub struct Filter {
    prepared: Prepared<PacketFilter>,
    checked: Checked,
    semantics: Semantics,
}

impl Filter {
    /// Checks instructions as libpcap would for a capture, and prepares them for the
    /// default engine.
    pub fn new(program: &[SockFilter]) -> Result<Filter, FilterError> {
        Filter::builder().build(program)
    }

    /// Reads a program in any form that tools write (see [`Form`]), which is detected, and
    /// prepares it as [`Filter::new`] does.
    pub fn parse(text: &[u8]) -> Result<Filter, FilterError> {
        Filter::builder().parse(text)
    }

    /// Settings for a filter, starting with the defaults.
    pub fn builder() -> FilterBuilder {
        FilterBuilder::default()
    }

    /// The checked program.
    #[doc(hidden)]
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Semantics of packet lengths and bounds.
    pub fn semantics(&self) -> Semantics {
        self.semantics
    }

    /// The engine that runs it: [`Engine::Interp`] where native code was requested and is not
    /// available.
    pub fn engine(&self) -> Engine {
        self.prepared.engine()
    }

    /// The native code under a name, for a profiler; `None` where another engine runs
    /// the filter.
    #[doc(hidden)]
    pub fn native_code<'a>(&'a self, name: &'a str) -> Option<CodeRegion<'a>> {
        self.prepared.native_code(name)
    }

    /// Returns the filter's value for a packet, and calls `report` with every instruction
    /// executed. The plain interpreter runs it.
    #[doc(hidden)]
    pub fn trace(
        &self,
        packet: &Packet<'_>,
        report: &mut dyn FnMut(Step),
    ) -> Result<u32, JumpLimitExceeded> {
        let program = PlainProgram::prepare(&self.checked, self.semantics);
        program.trace(packet, &mut SplitMix::new(SEED), report)
    }

    /// A runner for one thread.
    pub fn runner(&self) -> FilterRunner<'_> {
        self.seeded_runner(SEED)
    }

    /// A runner for one thread. Equal seeds give equal random numbers to filters that
    /// load some.
    pub fn seeded_runner(&self, seed: u64) -> FilterRunner<'_> {
        FilterRunner {
            on_packets: self.prepared.on_packets(),
            filter: self,
            machine: Machine::new(),
            random: SplitMix::new(seed),
        }
    }
}

/// Settings of a [`Filter`].
#[derive(Clone)]
pub struct FilterBuilder {
    rules: Option<Rules>,
    semantics: Semantics,
    engine: Engine,
    pool: Option<Pool>,
}

impl Default for FilterBuilder {
    fn default() -> FilterBuilder {
        FilterBuilder {
            rules: None,
            semantics: Semantics::Capture,
            engine: Engine::default(),
            pool: None,
        }
    }
}

impl FilterBuilder {
    /// Sets what the run means by lengths and bounds [default: as libpcap runs it on a
    /// capture].
    pub fn semantics(mut self, semantics: Semantics) -> FilterBuilder {
        self.semantics = semantics;
        self
    }

    /// Sets the rules that the program must obey [default: those that go with the
    /// semantics]. Those of system calls are refused ([`FilterError::OtherRules`]).
    pub fn rules(mut self, rules: Rules) -> FilterBuilder {
        self.rules = Some(rules);
        self
    }

    /// Sets what runs the filter [default: native code].
    pub fn engine(mut self, engine: Engine) -> FilterBuilder {
        self.engine = engine;
        self
    }

    /// Sets the executable memory for native code, which many filters can share
    /// [default: memory of its own].
    #[doc(hidden)]
    pub fn pool(mut self, pool: &Pool) -> FilterBuilder {
        self.pool = Some(pool.clone());
        self
    }

    /// Checks instructions and prepares them for the engine.
    pub fn build(&self, program: &[SockFilter]) -> Result<Filter, FilterError> {
        let rules = self.rules.unwrap_or(match self.semantics {
            Semantics::Capture => Rules::Capture,
            Semantics::Kernel => Rules::Socket,
        });
        let checked = check(program, rules).map_err(|refusal| FilterError::Rule {
            refusal,
            program: program.to_vec(),
        })?;
        let own;
        let pool = match &self.pool {
            Some(pool) => pool,
            None => {
                own = Pool::new();
                &own
            }
        };
        let prepared = Prepared::new(&checked, self.semantics, self.engine, pool);
        Ok(Filter {
            prepared: prepared.ok_or(FilterError::OtherRules)?,
            checked,
            semantics: self.semantics,
        })
    }

    /// Reads a program in any form that tools write; the form is detected.
    pub fn parse(&self, text: &[u8]) -> Result<Filter, FilterError> {
        self.parse_as(text, None)
    }

    /// Reads a program in one form.
    #[doc(hidden)]
    pub fn parse_as(&self, text: &[u8], form: Option<Form>) -> Result<Filter, FilterError> {
        self.build(&classic::text::read(text, form)?)
    }

    /// A filter expression as tcpdump takes it. Libpcap is loaded now;
    /// [`Expression::for_link_type`] compiles the expression.
    pub fn expression(&self, text: &str) -> Result<Expression, FilterError> {
        Expression::with_settings(text, self.clone())
    }
}

/// Runs one filter on packet after packet, in one thread.
pub struct FilterRunner<'f> {
    /// The entry of native code that reads nothing but a packet's bytes.
    on_packets: Option<PacketFn<'f>>,
    filter: &'f Filter,
    machine: Machine,
    random: SplitMix,
}

impl FilterRunner<'_> {
    /// Runs on one packet: 0 drops it, anything else is how many bytes to keep.
    #[inline(always)]
    pub fn run(&mut self, packet: &Packet<'_>) -> Result<u32, JumpLimitExceeded> {
        if let Some(code) = self.on_packets {
            return Ok(code.run(packet.data()));
        }
        // A copy for each engine: a packet whose address one of them passes on would
        // have to lie in memory for all.
        let packet = *packet;
        let (machine, random) = (&mut self.machine, &mut self.random);
        let budget = classic::BACKWARD_JUMPS;
        match &self.filter.prepared {
            Prepared::Checked(program) => program.run(&{ packet }, random),
            Prepared::Interp(code) => answer(code.run(machine, &{ packet }, random, budget)),
            Prepared::Native(code) => answer(code.run(machine, &{ packet }, random, budget)),
        }
    }
}

#[inline(always)]
fn answer(outcome: Outcome) -> Result<u32, JumpLimitExceeded> {
    match outcome {
        Outcome::Returned(value) => Ok(value as u32),
        Outcome::BudgetExhausted => Err(JumpLimitExceeded),
        Outcome::DeadlinePassed => unreachable!("a packet's filter has no deadline"),
    }
}
