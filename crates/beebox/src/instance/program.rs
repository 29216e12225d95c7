//! Handles of programs.

use std::fmt;

use spec::programs::ProgramType;
use vm::Stream;

use super::{Instance, Runner, TestRun, TestRunResult};
use crate::engine::Engine;
use crate::failure::Error;
use crate::internal::captures::Input;
use crate::internal::run::{
    CaptureSummary, NoSuchCpu, PacketOutput, PacketRun, RunError, RunnableProgram,
};
use crate::model::{KernelModel, parse, placed};

/// A program of an [`Instance`]. Clones are the same program; any number of threads may run it at
/// the same time.
#[derive(Clone)]
pub struct Program {
    instance: Instance,
    place: usize,
}

impl Program {
    /// The program at a place of an instance.
    pub(super) fn new(instance: Instance, place: usize) -> Program {
        Program { instance, place }
    }

    /// The instance that it belongs to.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Its name.
    pub fn name(&self) -> &str {
        let mut names = self.instance.0.loaded.program_names();
        names.nth(self.place).unwrap_or_default()
    }

    /// Its type.
    pub fn kind(&self) -> ProgramType {
        self.instance.0.loaded.program_kind(self.place)
    }

    /// The engine that runs it.
    pub fn engine(&self) -> Engine {
        self.runnable(0).engine()
    }

    /// Why the requested engine does not run it, if another one does for that reason. Programs
    /// that are not verified run in the checked engine without a reason.
    pub fn fallback_reason(&self) -> Option<Error> {
        let reason = self.runnable(0).fallback_reason().cloned();
        reason.map(Error::from)
    }

    /// Runs it as `BPF_PROG_TEST_RUN` does.
    ///
    /// # Errors
    /// For packets, contexts and options that Linux's test run does not take; for runs that end
    /// at a limit or a trap.
    pub fn test_run(&self, run: &TestRun<'_>) -> Result<TestRunResult, Error> {
        self.test_run_with(run, None)
    }

    /// As [`Program::test_run`], with the process, the objects and the results of functions of a model, in the
    /// checked engine: `model.result("bpf_map_update_elem", Some(3), "-ENOSPC")` has the third update fail.
    ///
    /// # Errors
    /// As [`Program::test_run`], and for runs that read what was not given.
    pub fn test_run_in(
        &self,
        model: &mut KernelModel,
        run: &TestRun<'_>,
    ) -> Result<TestRunResult, Error> {
        self.test_run_with(run, Some(model))
    }

    fn test_run_with(
        &self,
        run: &TestRun<'_>,
        model: Option<&mut KernelModel>,
    ) -> Result<TestRunResult, Error> {
        run.check(self.kind())?;
        let cpus = self.instance.0.loaded.cpus();
        if run.cpu >= cpus {
            return Err(RunError::Cpu(NoSuchCpu { cpu: run.cpu, cpus }).into());
        }
        let mut program = self.runnable(run.cpu);
        program.set_clock(run.clock);
        if let Some(network) = run.network {
            program.set_network(network.clone());
        }
        program.collect_records(!run.keep_records);
        let context = (!run.ctx_in.is_empty()).then_some(run.ctx_in);
        let output = match model {
            None => program.test_run_with_context(run.data_in, context, run.repeat),
            Some(model) => {
                program.set_model(Some(model.lend()));
                let output = program.test_run_with_context(run.data_in, context, run.repeat);
                model.give_back(program.take_model());
                output
            }
        };
        Ok(TestRunResult::new(self.kind(), run, output?))
    }

    /// Runs it once in a model of the kernel, on arguments or fields of its context by name,
    /// `{p: @shell, old_pid: 7}`, in the checked engine. Of the options CPU and clock count. Objects stay
    /// in the model as the run left them. [`Loader::models`](super::Loader::models) has programs loaded that
    /// Linux does not test-run.
    ///
    /// # Errors
    /// For programs that get packets; for unknown names and values that do not suit; for runs that read
    /// what was not given, or end at a limit.
    pub fn model_run(
        &self,
        model: &mut KernelModel,
        arguments: &str,
        run: &TestRun<'_>,
    ) -> Result<TestRunResult, Error> {
        let cpus = self.instance.0.loaded.cpus();
        if run.cpu >= cpus {
            return Err(RunError::Cpu(NoSuchCpu { cpu: run.cpu, cpus }).into());
        }
        let mut program = self.runnable(run.cpu);
        program.set_clock(run.clock);
        program.collect_records(!run.keep_records);
        let mut lent = model.lend();
        let made = lent.make_context(program.loaded_program(), &parse(arguments)?);
        made.map_err(|error| placed(arguments, error))?;
        program.set_model(Some(lent));
        let output = program.model_run();
        model.give_back(program.take_model());
        Ok(TestRunResult::new(self.kind(), run, output?))
    }

    /// A runner on CPU 0: for many packets, in the thread that makes it.
    pub fn runner(&self) -> Runner<'_> {
        self.runner_on(0)
    }

    /// A runner on a CPU, which per-CPU maps and `bpf_get_smp_processor_id` see. Threads that run
    /// at the same time have one each, on different CPUs. Only the seed and the CPU decide about
    /// its random numbers.
    pub fn runner_on(&self, cpu: u32) -> Runner<'_> {
        let shared = &self.instance.0;
        let mut program = shared.loaded.runnable_alone(self.place, cpu);
        program.set_limits(shared.limits);
        Runner::new(program)
    }

    /// A runner whose random numbers are the next ones of the instance, so that one runner after
    /// the other goes on where the last one stopped.
    #[doc(hidden)]
    pub fn next_runner(&self) -> Runner<'_> {
        Runner::new(self.runnable(0))
    }

    /// Runs it on each packet of a capture, whose times are those of the runs. Packets that go on
    /// are written as it left them. `observe` is called after each run, with the packet as it
    /// was captured.
    ///
    /// # Errors
    /// If the capture cannot be read on, the output not be written, or a run ends without a value.
    pub fn run_capture(
        &self,
        input: Input,
        output: Option<PacketOutput<'_>>,
        observe: &mut dyn FnMut(PacketRun<'_>, &[u8]),
    ) -> Result<CaptureSummary, Error> {
        Ok(self.runnable(0).run_capture(input, output, observe)?)
    }

    /// As [`Program::run_capture`], in `jobs` threads, which are the CPUs from 0 on, as many as the
    /// instance has at most. `observe` is called in the order of packets. Runs that share maps see
    /// each other's writes in any order.
    ///
    /// # Errors
    /// As [`Program::run_capture`].
    pub fn run_capture_parallel(
        &self,
        input: Input,
        jobs: u32,
        observe: &mut dyn FnMut(PacketRun<'_>),
    ) -> Result<CaptureSummary, Error> {
        let shared = &self.instance.0;
        let set_up = |program: &mut RunnableProgram<'_>| program.set_limits(shared.limits);
        let loaded = &shared.loaded;
        let ended = loaded.run_capture_parallel(self.name(), input, jobs, &set_up, observe);
        Ok(ended.expect("a handle of a program names one")?)
    }

    /// Takes the bytes that it wrote into one of its streams (`bpf_stream_vprintk`), in all runs
    /// since they were taken last. A stream that holds almost 100,000 bytes takes no more.
    #[doc(hidden)]
    pub fn take_stream(&self, stream: Stream) -> Vec<u8> {
        self.instance.0.loaded.take_stream_of(self.place, stream)
    }

    fn runnable(&self, cpu: u32) -> RunnableProgram<'_> {
        let shared = &self.instance.0;
        let mut program = shared.loaded.runnable(self.place, cpu);
        program.set_limits(shared.limits);
        program
    }

    /// True if it belongs to this instance.
    pub(super) fn is_of(&self, instance: &Instance) -> bool {
        std::sync::Arc::ptr_eq(&self.instance.0, &instance.0)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("name", &self.name())
            .field("kind", &self.kind())
            .finish_non_exhaustive()
    }
}
