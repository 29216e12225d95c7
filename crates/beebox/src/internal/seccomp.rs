//! Seccomp filters: run them on single calls, or compute what they do with all calls.
//!
//! A [`SeccompFilter`] has the shape of a packet [`Filter`](crate::Filter): immutable,
//! shared between threads, run through a [`SeccompRunner`] of each thread. Filters that
//! a process installs one after the other are a [`FilterStack`]. An [`Analysis`]
//! computes the exact table of a stack's actions for every call and argument (decision
//! diagrams over the bits of `struct seccomp_data`).

mod checks;
mod decision;
mod named;
mod tables;
mod words;

use classic::run::Step;
use classic::{Checked, Refusal};
use isa::classic::SockFilter;
use jit::memory::Pool;
use lower::SyscallFilter;
use vm::{Machine, Outcome};

use crate::engine::{Engine, Prepared};
use crate::error::FilterError;
use crate::failure::Error;

pub use ::seccomp::profile;
pub use ::seccomp::{
    Action, Arch, ByteOrder, Case, Condition, Contrast, Difference, Expectation, ExpectationError,
    Finding, Group, MAX_ERRNO, Miss, Others, Table, TooComplex, Word, X32_BIT, annotate, calls,
    combine, constants, decide, errno, number_text, read_expectations,
};
pub use checks::{FilterCheck, Misses};
pub use classic::SeccompData;
pub use decision::Decision;
pub use named::{NamedFilter, listings_json, listings_text};
pub use tables::CallCases;
pub use words::{
    Argument, ParseCallError, argument_value, parse_arch, parse_argument, parse_number,
    parse_syscall,
};

/// A checked seccomp filter, ready to run. It can be shared between
/// threads; each thread runs it through a [`SeccompRunner`] of its own.
///
/// ```
/// use beebox::seccomp::{Action, Arch, SeccompFilter};
///
/// let filter = SeccompFilter::parse(
///     b"ld [0]\njeq #257, deny\nret #0x7fff0000\ndeny: ret #0x50001",
/// )?;
/// let openat = Arch::X86_64.call("openat", [0; 6]).expect("x86_64 has it");
/// assert_eq!(filter.decide(&openat), Action::Errno(1));
/// # Ok::<(), beebox::FilterError>(())
/// ```
pub struct SeccompFilter {
    filter: ::seccomp::FilterProgram,
    prepared: Prepared<SyscallFilter>,
}

impl SeccompFilter {
    /// Checks instructions as seccomp(2) does and prepares them for the default engine.
    pub fn new(program: &[SockFilter]) -> Result<SeccompFilter, FilterError> {
        SeccompFilter::builder().build(program)
    }

    /// Reads a program in any form that tools write, which is detected, and prepares it as
    /// [`SeccompFilter::new`] does.
    pub fn parse(text: &[u8]) -> Result<SeccompFilter, FilterError> {
        SeccompFilter::builder().parse(text)
    }

    /// Settings for a filter, starting with the defaults.
    pub fn builder() -> SeccompBuilder {
        SeccompBuilder::default()
    }

    /// The checked program.
    #[doc(hidden)]
    pub fn checked(&self) -> &Checked {
        self.filter.checked()
    }

    /// The engine that runs it: [`Engine::Interp`] where native code was requested and is not
    /// available.
    pub fn engine(&self) -> Engine {
        self.prepared.engine()
    }

    /// Byte order of the machine that it is for.
    #[doc(hidden)]
    pub fn byte_order(&self) -> ByteOrder {
        self.filter.byte_order()
    }

    /// A runner for one thread.
    pub fn runner(&self) -> SeccompRunner<'_> {
        SeccompRunner {
            filter: self,
            machine: Machine::new(),
        }
    }

    /// Returns the kernel's action for a system call if this is the only filter.
    pub fn decide(&self, call: &SeccompData) -> Action {
        Action::from_return(self.runner().run(call))
    }

    /// Returns the filter's value, and calls `report` with every instruction executed.
    #[doc(hidden)]
    pub fn trace(&self, call: &SeccompData, report: &mut dyn FnMut(Step)) -> u32 {
        self.filter.trace(call, report)
    }

    /// Computes what the filter does with all calls.
    pub fn analyze(&self) -> Result<Analysis, Error> {
        let mut stack = ::seccomp::Stack::default();
        // Alone it was accepted already.
        let _ = stack.install(self.filter.clone());
        Analysis::of(stack)
    }
}

/// Settings of a [`SeccompFilter`].
#[derive(Clone, Default)]
pub struct SeccompBuilder {
    engine: Engine,
    order: Option<ByteOrder>,
    pool: Option<Pool>,
}

impl SeccompBuilder {
    /// Sets what runs the filter [default: native code].
    pub fn engine(mut self, engine: Engine) -> SeccompBuilder {
        self.engine = engine;
        self
    }

    /// Sets the byte order of the machine that the filter is for [default: little-endian].
    #[doc(hidden)]
    pub fn byte_order(mut self, order: ByteOrder) -> SeccompBuilder {
        self.order = Some(order);
        self
    }

    /// Sets the executable memory for native code, which many filters can share
    /// [default: memory of its own].
    #[doc(hidden)]
    pub fn pool(mut self, pool: &Pool) -> SeccompBuilder {
        self.pool = Some(pool.clone());
        self
    }

    /// Checks instructions and prepares them for the engine.
    pub fn build(&self, program: &[SockFilter]) -> Result<SeccompFilter, FilterError> {
        let order = self.order.unwrap_or(ByteOrder::Little);
        let filter = ::seccomp::FilterProgram::for_machine(program, order).map_err(|refusal| {
            FilterError::Rule {
                refusal,
                program: program.to_vec(),
            }
        })?;
        let pool = self.pool.clone().unwrap_or_default();
        let prepared = Prepared::new(
            filter.checked(),
            classic::Semantics::Kernel,
            self.engine,
            &pool,
        );
        let prepared = prepared.ok_or(FilterError::OtherRules)?;
        Ok(SeccompFilter { filter, prepared })
    }

    /// Reads a program in any form that tools write; the form is detected.
    pub fn parse(&self, text: &[u8]) -> Result<SeccompFilter, FilterError> {
        self.build(&classic::text::read(text, None)?)
    }
}

/// Runs one filter on call after call, in one thread.
pub struct SeccompRunner<'f> {
    filter: &'f SeccompFilter,
    machine: Machine,
}

impl SeccompRunner<'_> {
    /// The filter's return value (`SECCOMP_RET_…` and its data) for one system call.
    #[inline]
    pub fn run(&mut self, call: &SeccompData) -> u32 {
        let call = &match self.filter.filter.byte_order() {
            ByteOrder::Little => *call,
            ByteOrder::Big => call.with_halves_exchanged(),
        };
        match &self.filter.prepared {
            Prepared::Checked(program) => program
                .run_seccomp(call)
                .expect("a seccomp filter has no loops"),
            Prepared::Interp(code) => answer(code.run(&mut self.machine, &call.to_bytes())),
            Prepared::Native(code) => answer(code.run(&mut self.machine, &call.to_bytes())),
        }
    }
}

fn answer(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Returned(value) => value as u32,
        Outcome::BudgetExhausted | Outcome::DeadlinePassed => {
            unreachable!("a seccomp filter has no loops")
        }
    }
}

/// Filters of one process, in the order of their installation. All filters run, and the
/// strictest action counts.
#[derive(Default)]
pub struct FilterStack {
    filters: Vec<SeccompFilter>,
    stack: ::seccomp::Stack,
}

impl FilterStack {
    /// The filters, the oldest first.
    pub fn filters(&self) -> &[SeccompFilter] {
        &self.filters
    }

    /// Installs one more, if the kernel would: all filters of a process share a limit on
    /// their length after conversion to eBPF.
    #[doc(hidden)]
    pub fn install(&mut self, filter: SeccompFilter) -> Result<(), Refusal> {
        self.stack.install(filter.filter.clone())?;
        self.filters.push(filter);
        Ok(())
    }

    /// Returns the kernel's action for a system call.
    pub fn decide(&self, call: &SeccompData) -> Action {
        decide(self.filters.iter().map(|filter| filter.runner().run(call)))
    }

    /// Computes what the filters do with all calls.
    pub fn analyze(&self) -> Result<Analysis, Error> {
        Analysis::of(self.stack.clone())
    }

    /// The calls on which two stacks take different actions, each with an example.
    #[doc(hidden)]
    pub fn diff(&self, other: &FilterStack) -> Result<Vec<Difference>, Error> {
        Ok(::seccomp::diff(&self.stack, &other.stack)?)
    }
}

/// Symbolic analysis of a stack of filters: its actions for all calls.
pub struct Analysis {
    inner: ::seccomp::Analysis,
    stack: ::seccomp::Stack,
}

impl Analysis {
    fn of(stack: ::seccomp::Stack) -> Result<Analysis, Error> {
        Ok(Analysis {
            inner: ::seccomp::Analysis::new(&stack)?,
            stack,
        })
    }

    /// The architectures that the filters treat differently from architectures without a
    /// name in [`Arch`].
    pub fn architectures(&mut self) -> Result<Vec<Arch>, Error> {
        Ok(self.inner.architectures()?)
    }

    /// The actions of every call of an architecture, with their conditions.
    pub fn table(&mut self, arch: Arch) -> Result<Table, Error> {
        Ok(self.inner.table(arch)?)
    }

    /// The actions of one number of an architecture, with their conditions.
    pub fn cases_of(&mut self, arch: Arch, nr: u32) -> Result<Vec<Case>, Error> {
        Ok(self.inner.cases_of(arch, nr)?)
    }

    /// The actions on architectures without a name in [`Arch`].
    pub fn foreign_architectures(&mut self) -> Result<Vec<Others>, Error> {
        Ok(self.inner.foreign_architectures()?)
    }

    /// For each filter, the instructions that no call reaches.
    pub fn unreachable(&self) -> &[Vec<usize>] {
        self.inner.unreachable()
    }

    /// Common mistakes in the filters.
    #[doc(hidden)]
    pub fn findings(&mut self) -> Result<Vec<Finding>, Error> {
        Ok(self.inner.findings(&self.stack)?)
    }

    /// `None` if the filters meet an expectation, else how they miss it.
    #[doc(hidden)]
    pub fn check(&mut self, expectation: &Expectation) -> Result<Option<Miss>, Error> {
        Ok(self.inner.check(expectation, &self.stack)?)
    }
}
