//! Runs of a program on a packet.

use std::time::{Duration, Instant};

use ::kernel::maps::RunGuard;
use ::kernel::model::Model;
use ::kernel::programs::{PacketVerdict, TestInput, verdict};
use interp::checked::Limits;
use spec::Errno;
use spec::programs::ProgramType;
use vm::network::Network;
use vm::{Deadline, DirectContext, Outcome, Redirect};

use super::attached::Attached;
use super::checked::Start;
use super::compiled::{Code, Scratch};
#[cfg(feature = "html")]
use super::html::HtmlRuns;
use super::prepared::Prepared;
use super::services::{RunClock, Services};
use super::shared::Shared;
use super::{Faults, ObjectMap, PrintedText, RunError, RunRecord, records};
use crate::Engine;
use crate::engine::EngineRefusal;

/// Runs from one comparison of the deadline with the clock to the next.
const RUNS_UNCHECKED: u32 = 1024;

/// A program of a [`LoadedObject`](super::LoadedObject).
#[derive(Debug)]
pub struct RunnableProgram<'o> {
    /// The object, with all its programs: tail calls go on with them.
    pub(super) shared: &'o Shared,
    pub(super) prepared: &'o Prepared,
    pub(super) services: Services<'o>,
    ifindex: Option<u32>,
    pub(super) limits: Limits,
    /// Runs that begin before the deadline is compared with the clock again.
    unchecked_runs: u32,
    /// The maps whose records are taken after each packet.
    record_maps: Vec<&'o ObjectMap>,
    /// The context of engines without checks, which runs use one after the other.
    context: Option<DirectContext>,
    /// The machine of the threaded interpreter.
    pub(super) machine: Scratch,
    /// Packet and context of the last run on a captured packet.
    pub(super) captured: Option<Box<TestInput>>,
    /// Instructions of the last run, if it was in the checked engine.
    pub(super) executed: Option<u64>,
    /// What watches its runs, fails its calls, and is around it.
    pub(super) attached: Attached<'o>,
    /// The page that runs are written to.
    #[cfg(feature = "html")]
    pub(super) page: Option<Box<HtmlRuns<'o>>>,
}

/// Result of a test run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunOutput {
    /// The low 32 bits of `r0` of the last run.
    pub retval: u32,
    /// Its meaning.
    pub verdict: PacketVerdict,
    /// Target to which the last run redirected the packet.
    pub redirect: Option<Redirect>,
    /// The packet after the runs.
    pub data_out: Vec<u8>,
    /// The context after the runs.
    pub ctx_out: Vec<u8>,
    /// Mean time of a run.
    pub duration: Duration,
    /// Text that all runs printed.
    pub printk: PrintedText,
    /// Records of ring and perf buffers, if the program collects them ([`RunnableProgram::collect_records`]).
    pub records: Vec<RunRecord>,
}

impl<'o> RunnableProgram<'o> {
    /// The program at a place in the object.
    pub(super) fn new(
        shared: &'o Shared,
        place: usize,
        services: Services<'o>,
    ) -> RunnableProgram<'o> {
        let prepared = &shared.programs[place];
        let context = prepared.code.as_ref().map(Code::context_kind);
        RunnableProgram {
            shared,
            prepared,
            context: context.map(|kind| DirectContext::new(kind, &[])),
            machine: Scratch::default(),
            services,
            ifindex: None,
            limits: Limits::default(),
            unchecked_runs: 0,
            record_maps: Vec::new(),
            captured: None,
            executed: None,
            attached: Attached::default(),
            #[cfg(feature = "html")]
            page: None,
        }
    }

    /// Sets the clock of the time helpers; that of captures until then.
    pub fn set_clock(&mut self, clock: RunClock) {
        self.services.set_clock(clock);
    }

    /// Sets the network that helpers see, in place of the object's.
    pub(crate) fn set_network(&mut self, network: Network) {
        self.services.set_network(network);
    }

    /// Sets the index of the interface that packets come from; 1, the loopback device's,
    /// until then.
    pub fn set_ifindex(&mut self, ifindex: u32) {
        self.ifindex = Some(ifindex);
    }

    /// Sets the limits of a run; the deadline is that of all runs, and is checked before the
    /// first and every 1,024 runs. The engines without checks have no limit of instructions. The
    /// threaded interpreter checks the deadline within a run; native code does if the object was loaded with a
    /// [`timeout`](super::LoadOptions::timeout), which is the limit of each run without a
    /// deadline, or with [`LoadOptions::checks_deadline`](super::LoadOptions::checks_deadline).
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.unchecked_runs = 0;
    }

    /// Sets whether each run collects the records of ring and perf buffers, so that the buffers do
    /// not fill; otherwise, as at first, records stay there for
    /// [`Ring::consume`](crate::internal::run::Ring::consume).
    pub fn collect_records(&mut self, on: bool) {
        let maps = self.shared.maps.iter().flatten();
        let maps = maps.filter(|map| on && records::has_some(map));
        self.record_maps = maps.collect();
    }

    /// The records that wait, if they are taken.
    pub(crate) fn records(&self) -> Vec<RunRecord> {
        records::take(&self.record_maps, self.services.cpu())
    }

    /// The program type.
    pub fn kind(&self) -> ProgramType {
        self.prepared.program.kind()
    }

    /// The engine that runs it.
    pub fn engine(&self) -> Engine {
        let code = self.prepared.code.as_ref();
        code.map_or(Engine::Checked, Code::engine)
    }

    /// Why the engine of the load options does not run the program, if another one does for that
    /// reason.
    pub fn fallback_reason(&self) -> Option<&EngineRefusal> {
        self.prepared.fallback_reason.as_ref()
    }

    /// Runs the program on a packet as `BPF_PROG_TEST_RUN` does.
    ///
    /// # Errors
    /// [`RunError::Size`] for packets that the kernel does not take.
    pub fn test_run(&mut self, packet: &[u8]) -> Result<TestRunOutput, RunError> {
        self.test_run_repeated(packet, 1)
    }

    /// Runs the program `repeat` times, at least once, on a packet: each run gets the packet
    /// as the previous one left it; flow dissectors begin with the same keys each time.
    pub fn test_run_repeated(
        &mut self,
        packet: &[u8],
        repeat: u32,
    ) -> Result<TestRunOutput, RunError> {
        self.test_run_with_context(packet, None, repeat)
    }

    /// As [`test_run_repeated`](RunnableProgram::test_run_repeated), on a context that is
    /// given as `ctx_in` of `BPF_PROG_TEST_RUN`. Programs of types without packets take an empty
    /// packet.
    ///
    /// # Errors
    /// [`RunError::Context`] for contexts that the kernel does not take, empty ones among them,
    /// [`RunError::AttachType`] for programs of entries of device and CPU maps.
    pub fn test_run_with_context(
        &mut self,
        packet: &[u8],
        context: Option<&[u8]>,
        repeat: u32,
    ) -> Result<TestRunOutput, RunError> {
        self.prepared.check_attach_type()?;
        let rules = self.prepared.rules;
        let sizes = rules.sizes(packet);
        let kind = self.kind();
        let refused = |errno| match sizes.contains(&packet.len()) {
            true => RunError::Context {
                errno,
                len: context.map_or(0, <[u8]>::len),
                kind,
            },
            false => RunError::Size {
                errno,
                len: packet.len(),
                taken: (*sizes.start(), *sizes.end()),
            },
        };
        let input = match context {
            Some([]) => Err(Errno::EINVAL),
            _ => rules.test_input(packet, context.unwrap_or_default(), self.services.system()),
        };
        let mut input = input.map_err(refused)?;
        self.services.printed = PrintedText::default();
        for map in self.shared.maps.iter().flatten() {
            map.map.operations().reset();
        }
        let repeat = repeat.max(1);
        let mut retval = 0;
        let mut guard = RunGuard::new();
        let start = Instant::now();
        for _ in 0..repeat {
            retval = self.run(&mut input, &mut guard)?;
        }
        let duration = start.elapsed() / repeat;
        let retval = input.end_run(retval, self.services.system());
        let retval = retval.map_err(RunError::Group)?;
        Ok(TestRunOutput {
            retval,
            redirect: input.redirect(retval),
            verdict: verdict(self.kind(), retval),
            data_out: input.data_out(),
            ctx_out: input.context_out(),
            duration,
            printk: std::mem::take(&mut self.services.printed),
            records: self.records(),
        })
    }

    /// Runs the program on a packet of any length, in one piece, that was captured at a time;
    /// the low 32 bits of `r0`. [`RunnableProgram::captured`] is what the run left.
    #[inline]
    pub(crate) fn run_captured(
        &mut self,
        frame: &[u8],
        time: u64,
        guard: &mut RunGuard,
    ) -> Result<u32, RunError> {
        self.prepared.check_attach_type()?;
        let rules = self.prepared.rules;
        let mut input = match self.captured.take() {
            Some(mut input) => {
                rules.recapture(&mut input, frame);
                input
            }
            None => {
                let input = rules.captured(frame);
                Box::new(input.ok_or(RunError::NoPackets(self.kind()))?)
            }
        };
        self.services.packet_time = time;
        if !self.services.printed.is_empty() {
            self.services.printed = PrintedText::default();
        }
        match self.run(&mut input, guard) {
            Ok(value) => {
                self.captured = Some(input);
                Ok(value)
            }
            Err(error) => {
                self.captured = Some(input);
                Err(error)
            }
        }
    }

    /// Packet and context of the last run on a captured packet.
    #[inline]
    pub(crate) fn captured(&self) -> Option<&TestInput> {
        self.captured.as_deref()
    }

    /// Text that the last run on a captured packet printed.
    pub(crate) fn printed(&self) -> &PrintedText {
        &self.services.printed
    }

    /// Fails if the deadline has passed, which one in [`RUNS_UNCHECKED`] calls finds out.
    fn check_deadline(&mut self) -> Result<(), RunError> {
        let Some(deadline) = self.limits.deadline else {
            return Ok(());
        };
        if let Some(fewer) = self.unchecked_runs.checked_sub(1) {
            self.unchecked_runs = fewer;
            return Ok(());
        }
        self.unchecked_runs = RUNS_UNCHECKED - 1;
        match Instant::now() >= deadline {
            true => Err(RunError::Deadline),
            false => Ok(()),
        }
    }

    // Results are taken apart where they come from: moved as a whole, they cost a tenth of a run.
    pub(super) fn run(
        &mut self,
        input: &mut TestInput,
        guard: &mut RunGuard,
    ) -> Result<u32, RunError> {
        self.check_deadline()?;
        if let Some(ifindex) = self.ifindex {
            input.set_ifindex(ifindex);
        }
        self.run_timers_in(guard)?;
        input.begin_run();
        guard.renew();
        let prepared = self.prepared;
        let result = match &prepared.code {
            Some(code) if !self.attached.needs_checked() => self.run_unchecked(code, input, guard),
            _ => self.run_checked(prepared, Start::Program(input), guard),
        };
        match result {
            Ok(value) => self.end_run(value, guard),
            Err(error) => Err(self.run_failed(error)),
        }
    }

    /// Ends a run that returned a value.
    #[inline(always)]
    fn end_run(&mut self, value: u32, guard: &mut RunGuard) -> Result<u32, RunError> {
        if let Err(error) = self.run_timers_in(guard) {
            return Err(self.run_failed(error));
        }
        match self.shared.memory.take_refused() {
            true => Err(RunError::Memory(self.shared.memory.limit())),
            false => Ok(value),
        }
    }

    /// Runs the program once on the context of its model ([`RunnableProgram::set_model`]).
    pub(crate) fn model_run(&mut self) -> Result<TestRunOutput, RunError> {
        self.check_deadline()?;
        self.services.printed = PrintedText::default();
        for map in self.shared.maps.iter().flatten() {
            map.map.operations().reset();
        }
        let start = Instant::now();
        let mut guard = RunGuard::new();
        self.run_timers_in(&mut guard)?;
        guard.renew();
        let retval = match self.run_checked(self.prepared, Start::Model, &guard) {
            Ok(value) => self.end_run(value, &mut guard)?,
            Err(error) => return Err(self.run_failed(error)),
        };
        Ok(TestRunOutput {
            retval,
            redirect: None,
            verdict: verdict(self.kind(), retval),
            data_out: Vec::new(),
            ctx_out: Vec::new(),
            duration: start.elapsed(),
            printk: std::mem::take(&mut self.services.printed),
            records: self.records(),
        })
    }

    /// Sets the model of the kernel of the next runs, which are in the checked engine.
    pub(crate) fn set_model(&mut self, model: Option<Box<Model>>) {
        if let Some(model) = &model {
            let system = model.system(self.services.system());
            self.services.set_process(system, model.task());
        }
        self.attached.model = model;
    }

    /// The model of the next runs.
    pub(crate) fn model(&self) -> Option<&Model> {
        self.attached.model.as_deref()
    }

    /// The model, as the runs left it.
    pub(crate) fn take_model(&mut self) -> Option<Box<Model>> {
        self.attached.model.take()
    }

    /// The program.
    pub(crate) fn loaded_program(&self) -> &'o program::Program {
        &self.prepared.program
    }

    /// The error of a run that failed: the limit of memory, if that came first.
    #[cold]
    fn run_failed(&self, error: RunError) -> RunError {
        let is_refused = self.shared.memory.take_refused();
        match error {
            RunError::TooLong(_) | RunError::Deadline if is_refused => {
                RunError::Memory(self.shared.memory.limit())
            }
            error => error,
        }
    }

    /// Sets whether runs are in the checked engine, so that their instructions are known.
    pub(crate) fn count_executed(&mut self, on: bool) {
        self.attached.watchers.counts_executed = on;
    }

    /// Instructions of the last run, if it was in the checked engine.
    pub(crate) fn executed(&self) -> Option<u64> {
        self.executed
    }

    /// Has helpers fail on purpose in the next runs, which are in the checked engine.
    pub(crate) fn set_faults(&mut self, faults: Option<Box<Faults>>) {
        self.attached.faults = faults.filter(|faults| !faults.is_empty());
    }

    /// The helpers that fail on purpose, with the calls that were seen.
    pub(crate) fn take_faults(&mut self) -> Option<Box<Faults>> {
        self.attached.faults.take()
    }

    /// The deadline of a run without checks.
    pub(super) fn run_deadline(&self) -> Option<Deadline> {
        let given = self.limits.deadline.map(Deadline::at);
        given.or_else(|| self.shared.timeout.map(Deadline::after))
    }

    /// The error of a run that was ended at its deadline.
    pub(super) fn time_passed(&self) -> RunError {
        match (self.limits.deadline, self.shared.timeout) {
            (None, Some(timeout)) => RunError::TooLong(timeout),
            (Some(_), _) | (None, None) => RunError::Deadline,
        }
    }

    fn run_unchecked(
        &mut self,
        code: &Code,
        input: &mut TestInput,
        guard: &RunGuard,
    ) -> Result<u32, RunError> {
        let deadline = self.run_deadline();
        let context = self.context.as_mut().expect("these engines have a context");
        context.set_structure(&input.context);
        if let Some(keys) = &input.flow_keys {
            context.flow_keys_mut().copy_from_slice(keys);
        }
        if let Some(socket) = &input.packet_socket {
            context.set_socket(socket);
        }
        let (machine, packet) = (&mut self.machine, input.packet.as_mut());
        let outcome = self.services.with_context(None, |mut cx| {
            code.run(machine, packet, context, guard, cx.reborrow(), deadline)
        });
        let len = input.context.len();
        input.context.copy_from_slice(&context.structure()[..len]);
        if let Some(keys) = &mut input.flow_keys {
            keys.copy_from_slice(context.flow_keys());
        }
        match outcome? {
            Outcome::Returned(value) => Ok(value as u32),
            Outcome::BudgetExhausted | Outcome::DeadlinePassed => Err(self.time_passed()),
        }
    }
}
