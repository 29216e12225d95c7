//! Runs of a program on a packet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::kernel::maps::RunGuard;
use ::kernel::object_layout;
use ::kernel::programs::{PacketVerdict, TestInput, TestProgram, verdict};
use ::kernel::variables::Variables;
use btf::TypeId;
use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory};
use isa::ebpf::{Callee, Imm64, Insn, Value64};
use jit::{Native, VerifiedNative};
use lower::EntryFunction;
use program::Program;
use spec::Kernel;
use spec::kfuncs::KernelFunction;
use spec::programs::{AttachType, ProgramType};
use vm::{
    Deadline, DirectContext, FiredTimer, HostFunction, MapHandle, MapObject as _, ModelPrograms,
    ObjectLayout, Outcome, Redirect, Streams,
};

use super::hook::{HookLayout, HookObjects};
use super::map_structure::MapLayout;
use super::native::Compiled;
use super::services::{RunClock, Services};
use super::task::TaskLayout;
use super::{ObjectMap, PrintedText, RunEngine, RunError, RunRecord, records};

/// A program in the form that its engine runs.
pub(super) struct Prepared {
    pub(super) program: Program,
    rules: TestProgram,
    /// Instructions name maps by their place among those that are created.
    checked: Arc<CheckedProgram>,
    pub(super) native: Option<VerifiedNative>,
    /// Functions that timers call, as native code by their first slots.
    pub(super) callbacks: BTreeMap<u32, Native<EntryFunction>>,
    /// It calls a helper that returns the task that runs.
    asks_for_task: bool,
    /// Why there is no native code although it was asked for.
    not_native: Option<String>,
    /// The functions of the host that it may call.
    host: Arc<[HostFunction]>,
    /// Its standard output and error.
    pub(super) streams: Streams,
}

/// A program, and what the checked engine has to know of it.
pub(super) struct Source<'k> {
    pub(super) program: Program,
    pub(super) number: u32,
    pub(super) kernel: &'k Kernel,
    pub(super) variables: &'k Variables,
    /// Slots of loads from memory that need not be there, ascending.
    pub(super) probing: Vec<usize>,
}

impl Prepared {
    /// Refuses what Linux does not test-run.
    fn check_attach_type(&self) -> Result<(), RunError> {
        let attach = AttachType::from_number(self.program.expected_attach_type());
        match (self.program.kind(), attach) {
            (ProgramType::Xdp, Some(attach @ (AttachType::XdpDevmap | AttachType::XdpCpumap))) => {
                Err(RunError::AttachType(attach))
            }
            _ => Ok(()),
        }
    }

    /// Prepares a program for the checked engine, and to run as native code if there is any.
    pub(super) fn new(
        source: Source<'_>,
        rules: TestProgram,
        native: Option<Result<Compiled, String>>,
        maps: &[Option<ObjectMap>],
        host: Arc<[HostFunction]>,
    ) -> Prepared {
        let Source {
            program,
            number,
            kernel,
            variables,
            probing,
        } = source;
        let (native, not_native) = match native {
            None => (None, None),
            Some(Ok(native)) => (Some(native), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let (native, callbacks) = match native {
            Some(Compiled { program, callbacks }) => (Some(program), callbacks),
            None => (None, BTreeMap::new()),
        };
        let place = |index: &mut i32| {
            let before = maps.iter().take(usize::try_from(*index).unwrap_or(0));
            *index = before.flatten().count() as i32;
        };
        let mut insns = program.decode();
        for insn in &mut insns {
            if let Some(function) = KernelFunction::of_insn(kernel, insn) {
                *insn = function.resolved(*insn);
            }
            if let Insn::LoadImm64 { imm, .. } = insn
                && let Imm64::MapIndex { index, .. } | Imm64::MapIndexValue { index, .. } = imm
            {
                place(index);
            }
            if let Insn::LoadImm64 { imm, .. } = insn
                && let Imm64::BtfId { id, .. } = imm
                && let Some(address) = variables.address(TypeId(*id as u32))
            {
                *imm = Imm64::Value(Value64::new(address));
            }
        }
        let asks_for_task = insns.iter().any(|insn| {
            matches!(insn, Insn::Call(Callee::Helper(number)) if TASK_HELPERS.contains(number))
        });
        let exception_callback = program.exception_callback().map(|slot| slot as usize);
        let checked = CheckedProgram::new(insns)
            .with_number(number)
            .with_probing_loads(probing)
            .with_exception_callback(exception_callback);
        Prepared {
            asks_for_task,
            rules,
            checked: Arc::new(checked),
            native,
            callbacks,
            not_native,
            program,
            host,
            streams: Streams::new(),
        }
    }

    /// Has it run in the checked engine after all, for this reason.
    pub(super) fn drop_native(&mut self, why: String) {
        self.callbacks.clear();
        if self.native.take().is_some() {
            self.not_native = Some(why);
        }
    }

    /// What native code does not support, in one line, if it was asked for.
    pub(super) fn not_native(&self) -> Option<&str> {
        self.not_native.as_deref()
    }

    /// File, number and text of the source line of an instruction.
    fn line_at(&self, insn: usize) -> Option<(String, u32, String)> {
        let line = self.program.line_at(insn as u32)?;
        let types = self.program.btf()?;
        let (file, text) = (types.string(line.file), types.string(line.text));
        Some((file.to_string(), line.line, text.to_string()))
    }
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared")
            .field("program", &self.program.name())
            .field("native", &self.native.is_some())
            .finish_non_exhaustive()
    }
}

/// `bpf_get_current_task` and `bpf_get_current_task_btf`.
const TASK_HELPERS: [i32; 2] = [35, 158];

/// Layouts of the kernel's objects that programs read, as far as the kernel's types have them, and
/// its variables.
#[derive(Clone, Copy, Debug)]
pub(super) struct KernelLayouts<'o> {
    pub(super) task: Option<TaskLayout>,
    pub(super) map: Option<MapLayout>,
    pub(super) hook: Option<&'o HookLayout>,
    pub(super) variables: &'o Variables,
}

/// A program of a [`LoadedObject`](super::LoadedObject).
#[derive(Debug)]
pub struct RunnableProgram<'o> {
    /// All programs of the object; tail calls go on with them.
    pub(super) programs: &'o [Prepared],
    prepared: &'o Prepared,
    pub(super) maps: &'o [Option<ObjectMap>],
    layouts: KernelLayouts<'o>,
    pub(super) services: Services<'o>,
    ifindex: Option<u32>,
    pub(super) limits: Limits,
    /// The maps whose records are taken after each packet.
    record_maps: Vec<&'o ObjectMap>,
    /// The context of native code, which runs use one after the other.
    context: Option<DirectContext>,
    /// Packet and context of the last run on a captured packet.
    captured: Option<Box<TestInput>>,
}

/// What a test run returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunOutput {
    /// The low 32 bits of `r0` of the last run.
    pub retval: u32,
    /// What that means.
    pub verdict: PacketVerdict,
    /// Where the last run redirected the packet.
    pub redirect: Option<Redirect>,
    /// The packet after the runs.
    pub data_out: Vec<u8>,
    /// The context after the runs.
    pub ctx_out: Vec<u8>,
    /// Mean time of a run.
    pub duration: Duration,
    /// What all runs printed.
    pub printk: PrintedText,
    /// Records of ring buffers, if they are taken.
    pub records: Vec<RunRecord>,
}

impl<'o> RunnableProgram<'o> {
    pub(super) fn new(
        programs: &'o [Prepared],
        place: usize,
        maps: &'o [Option<ObjectMap>],
        layouts: KernelLayouts<'o>,
        services: Services<'o>,
    ) -> RunnableProgram<'o> {
        let prepared = &programs[place];
        let native = prepared.native.as_ref();
        let context = native.map(VerifiedNative::context_kind);
        RunnableProgram {
            programs,
            prepared,
            context: context.map(|kind| DirectContext::new(kind, &[])),
            maps,
            layouts,
            services,
            ifindex: None,
            limits: Limits::default(),
            record_maps: Vec::new(),
            captured: None,
        }
    }

    /// Sets the clock of the time helpers; that of captures until then.
    pub fn set_clock(&mut self, clock: RunClock) {
        self.services.set_clock(clock);
    }

    /// Sets the index of the interface that packets come from; 1, the loopback device's,
    /// until then.
    pub fn set_ifindex(&mut self, ifindex: u32) {
        self.ifindex = Some(ifindex);
    }

    /// Sets the limits of a run; the deadline is that of all runs. Native code has no limit
    /// of instructions, and a deadline only if the object was loaded with
    /// [`LoadOptions::checks_deadline`](super::LoadOptions::checks_deadline).
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Takes the records of ring buffers after each packet, so that the buffers do not fill;
    /// otherwise they wait there for [`Ring::consume`](crate::run::Ring::consume).
    pub fn take_records(&mut self) {
        let maps = self.maps.iter().flatten();
        self.record_maps = maps.filter(|map| records::has_some(map)).collect();
    }

    /// The records that wait, if they are taken.
    pub(super) fn records(&self) -> Vec<RunRecord> {
        records::take(&self.record_maps, self.services.cpu())
    }

    /// The program type.
    pub fn kind(&self) -> ProgramType {
        self.prepared.program.kind()
    }

    /// The engine that runs it.
    pub fn engine(&self) -> RunEngine {
        match self.prepared.native {
            Some(_) => RunEngine::Native,
            None => RunEngine::Checked,
        }
    }

    /// What native code does not support, in one line, if the program runs in the checked
    /// engine for that reason.
    pub fn not_native(&self) -> Option<&str> {
        self.prepared.not_native()
    }

    /// Runs the program on a packet as `BPF_PROG_TEST_RUN` does.
    ///
    /// # Errors
    /// [`RunError::Size`] for packets that the kernel does not take.
    pub fn test_run(&mut self, packet: &[u8]) -> Result<TestRunOutput, RunError> {
        self.test_run_repeated(packet, 1)
    }

    /// Runs the program so many times, at least once, on a packet: each run gets the packet
    /// as the one before left it; flow dissectors begin with the same keys each time.
    pub fn test_run_repeated(
        &mut self,
        packet: &[u8],
        repeat: u32,
    ) -> Result<TestRunOutput, RunError> {
        self.test_run_with_context(packet, &[], repeat)
    }

    /// As [`test_run_repeated`](RunnableProgram::test_run_repeated), on a context that is
    /// given as `ctx_in` of `BPF_PROG_TEST_RUN`, empty for none. Programs of types without
    /// packets take an empty packet.
    ///
    /// # Errors
    /// [`RunError::Context`] for contexts that the kernel does not take,
    /// [`RunError::AttachType`] for programs of entries of device and CPU maps.
    pub fn test_run_with_context(
        &mut self,
        packet: &[u8],
        context: &[u8],
        repeat: u32,
    ) -> Result<TestRunOutput, RunError> {
        self.prepared.check_attach_type()?;
        let rules = self.prepared.rules;
        let sizes = rules.sizes(packet);
        let kind = self.kind();
        let refused = |errno| match sizes.contains(&packet.len()) {
            true => RunError::Context {
                errno,
                len: context.len(),
                kind,
            },
            false => RunError::Size {
                errno,
                len: packet.len(),
                taken: (*sizes.start(), *sizes.end()),
            },
        };
        let input = rules.test_input(packet, context, self.services.world);
        let mut input = input.map_err(refused)?;
        self.services.printed = PrintedText::default();
        for map in self.maps.iter().flatten() {
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
        let retval = input.end_run(retval, self.services.world);
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
    pub(super) fn run_captured(
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
        let result = self.run(&mut input, guard);
        self.captured = Some(input);
        result
    }

    /// Packet and context of the last run on a captured packet.
    pub(super) fn captured(&self) -> Option<&TestInput> {
        self.captured.as_deref()
    }

    fn run(&mut self, input: &mut TestInput, guard: &mut RunGuard) -> Result<u32, RunError> {
        if let Some(ifindex) = self.ifindex {
            input.set_ifindex(ifindex);
        }
        self.run_timers_in(guard)?;
        input.begin_run();
        guard.renew();
        let prepared = self.prepared;
        let result = match &prepared.native {
            Some(native) => self.run_native(native, input, guard),
            None => self.run_checked(prepared, Start::Program(input), guard),
        }?;
        self.run_timers_in(guard)?;
        Ok(result)
    }

    fn run_native(
        &mut self,
        native: &VerifiedNative,
        input: &mut TestInput,
        guard: &RunGuard,
    ) -> Result<u32, RunError> {
        let deadline = self.limits.deadline.map(Deadline::at);
        let context = self.context.as_mut().expect("native code has a context");
        context.set_structure(&input.context);
        if let Some(keys) = &input.flow_keys {
            context.flow_keys_mut().copy_from_slice(keys);
        }
        if let Some(socket) = &input.packet_socket {
            context.set_socket(socket);
        }
        let outcome = match native {
            VerifiedNative::Packet(program) => {
                let packet = input.packet.as_mut();
                let packet = packet.expect("programs of these types get a packet");
                self.services.with_context(None, |mut cx| {
                    program.run_until(packet, context, guard, cx.reborrow(), deadline)
                })
            }
            VerifiedNative::Context(program) => self.services.with_context(None, |mut cx| {
                program.run_until(context, guard, cx.reborrow(), deadline)
            }),
        };
        let len = input.context.len();
        input.context.copy_from_slice(&context.structure()[..len]);
        if let Some(keys) = &mut input.flow_keys {
            keys.copy_from_slice(context.flow_keys());
        }
        match outcome? {
            Outcome::Returned(value) => Ok(value as u32),
            Outcome::BudgetExhausted | Outcome::DeadlinePassed => Err(RunError::Deadline),
        }
    }

    /// The objects that the context of a netfilter program points to.
    fn hook_objects(&self, input: &TestInput) -> Option<HookObjects<'o>> {
        let (hook, packet) = (input.hook?, input.packet.as_ref()?);
        let frame = [packet.before(), &packet.contents()].concat();
        let layout = self.layouts.hook?;
        Some(layout.objects(hook, &frame, self.services.world))
    }

    /// Runs a program, or what a timer calls of it, in the checked engine.
    pub(super) fn run_checked(
        &mut self,
        prepared: &Prepared,
        start: Start<'_>,
        guard: &RunGuard,
    ) -> Result<u32, RunError> {
        let (programs, maps, limits) = (self.programs, self.maps, self.limits);
        let inner = maps.iter().flatten().flat_map(|map| map.map.inner_maps());
        let inner: Vec<MapHandle> = inner.collect();
        // Only programs that ask for the task can read it.
        let asks = prepared.asks_for_task || self.prepared.asks_for_task;
        let layout = self.layouts.task.filter(|_| asks);
        let task = layout.map(|layout| layout.task(self.services.world));
        let model = Model(programs);
        let structure = |map: &ObjectMap| {
            let layout = self.layouts.map?;
            Some(layout.structure(&map.map))
        };
        let structures: Vec<_> = maps.iter().flatten().map(structure).collect();
        let hook = match &start {
            Start::Program(input) => self.hook_objects(input),
            Start::Timer(_) => None,
        };
        let mut memory = Memory::new();
        let mut arguments = [0; 5];
        let timer = match start {
            Start::Program(input) => {
                arguments[0] = add_input(&mut memory, input, hook.as_ref())?;
                None
            }
            Start::Timer(timer) => Some(timer),
        };
        for (map, structure) in maps.iter().flatten().zip(&structures) {
            memory.add_map(&*map.def.name, &*map.map, guard, map.permission())?;
            memory.describe_map(structure.as_deref().unwrap_or_default());
        }
        for handle in &inner {
            memory.add_inner_map(handle, guard)?;
        }
        memory.add_model(self.services.objects, &model);
        // These have addresses of the kernel, above all others.
        memory.add_sockets(&self.services.world.network.sockets);
        if let Some(task) = &task {
            memory.add_task(task);
        }
        memory.add_variables(
            self.layouts.variables.bytes(),
            self.layouts.variables.block(),
        );
        let mut slot = 0;
        if let Some(timer) = timer {
            // A value that another thread freed meanwhile is still there for the guard.
            let Some(entry) = memory.entry_at(timer.map, timer.address)? else {
                return Ok(0);
            };
            arguments[..3].copy_from_slice(&entry);
            slot = timer.callback.slot as usize;
        }
        let host = &prepared.host;
        let finish = self.services.with_context(timer, |mut cx| {
            let mut calls = Calls::resolved(|number, arguments, memory| {
                if let Some(KernelFunction::Host(index)) = KernelFunction::of_number(number) {
                    return Some(host.get(usize::from(index))?.call(arguments, memory));
                }
                let helper = ::kernel::find(number)?;
                Some(helper(arguments, memory, &mut cx))
            });
            calls.set_tail_targets(|array: u32, index: u32| {
                let array = maps.iter().flatten().nth(array as usize)?;
                let stored = array.map.operations().program(index)?;
                let target = programs.get(stored.id as usize)?;
                Some(target.checked.clone())
            });
            let cx = CheckedContext {
                memory: &mut memory,
                calls: &mut calls,
                packet: None,
            };
            let entry = Entry { arguments };
            (prepared.checked).run_function(slot, cx, entry, &limits)
        });
        match finish.outcome {
            Ok(value) => Ok(value as u32),
            Err(trap) => {
                let entered = finish.entered.as_ref();
                let entered = entered.and_then(|entered| {
                    let mut programs = self.programs.iter();
                    programs.find(|program| Arc::ptr_eq(&program.checked, entered))
                });
                let line = entered.unwrap_or(prepared).line_at(trap.at);
                let entered = entered.map(|program| program.program.name().to_owned());
                Err(RunError::of_trap(trap, entered, line))
            }
        }
    }
}

/// The programs of an object, as functions that they call know them.
struct Model<'o>(&'o [Prepared]);

impl ModelPrograms for Model<'_> {
    fn layout(&self, program: u32, type_id: u32) -> Option<ObjectLayout> {
        let program = &self.0.get(program as usize)?.program;
        object_layout(program.btf()?, None, TypeId(type_id))
    }

    fn streams(&self, program: u32) -> Option<&Streams> {
        Some(&self.0.get(program as usize)?.streams)
    }
}

/// What a run begins with.
pub(super) enum Start<'i> {
    /// A program, with its input.
    Program(&'i mut TestInput),
    /// The function that a timer calls.
    Timer(FiredTimer),
}

/// Adds the input of a program to its memory; the address of the context.
fn add_input<'m>(
    memory: &mut Memory<'m>,
    input: &'m mut TestInput,
    hook: Option<&'m HookObjects<'_>>,
) -> Result<u64, RunError> {
    if let Some(packet) = &mut input.packet {
        memory.add_packet(packet)?;
    }
    if let Some(keys) = &mut input.flow_keys {
        let keys = memory.add("flow keys", keys)?;
        let address = memory.address(keys).to_le_bytes();
        let field = TestInput::FLOW_KEYS;
        input.context[field..field + address.len()].copy_from_slice(&address);
    }
    if let Some(socket) = &input.packet_socket {
        let socket = memory.add_packet_socket(&socket.0)?;
        let address = memory.address(socket).to_le_bytes();
        let field = TestInput::SOCKET;
        input.context[field..field + address.len()].copy_from_slice(&address);
    }
    if let Some(hook) = hook {
        let pointers = hook.add(memory)?.map(u64::to_le_bytes);
        input.context.copy_from_slice(pointers.as_flattened());
    }
    let context = memory.add_context(&mut input.context)?;
    Ok(memory.address(context))
}
