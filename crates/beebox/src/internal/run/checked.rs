//! Runs in the checked engine: the memory of a run, the calls of its program, and its trap.

use std::sync::Arc;

use ::kernel::maps::{Map, RunGuard, StoredMap};
use ::kernel::object_layout;
use ::kernel::programs::TestInput;
use btf::TypeId;
use interp::checked::{Calls, CheckedContext, Entry, Memory};
use spec::kfuncs::KernelFunction;
use vm::{FiredTimer, ModelPrograms, ObjectLayout, Streams};

use super::attached::{Attached, Watched};
use super::hook::HookObjects;
use super::prepared::Prepared;
use super::{RunError, RunnableProgram};

/// Initial state of a run.
pub(super) enum Start<'i> {
    /// A program, with its input.
    Program(&'i mut TestInput),
    /// A program, on the context of its model.
    Model,
    /// The function that a timer calls.
    Timer(FiredTimer),
}

impl<'o> RunnableProgram<'o> {
    /// The objects that the context of a netfilter program points to.
    fn hook_objects(&self, input: &TestInput) -> Option<HookObjects<'o>> {
        let (hook, packet) = (input.hook?, input.packet.as_ref()?);
        let frame = [packet.before(), &packet.contents()].concat();
        let layout = self.shared.hook_layout.as_ref()?;
        Some(layout.objects(hook, &frame, self.services.system()))
    }

    /// Runs a program, or what a timer calls of it, in the checked engine.
    #[inline(never)]
    pub(super) fn run_checked(
        &mut self,
        prepared: &Prepared,
        start: Start<'_>,
        guard: &RunGuard,
    ) -> Result<u32, RunError> {
        let mut attached = std::mem::take(&mut self.attached);
        let result = self.run_attached(&mut attached, prepared, start, guard);
        self.attached = attached;
        result
    }

    fn run_attached(
        &mut self,
        attached: &mut Attached<'o>,
        prepared: &Prepared,
        start: Start<'_>,
        guard: &RunGuard,
    ) -> Result<u32, RunError> {
        let Attached {
            faults,
            model: given,
            watchers,
        } = attached;
        let given = given.as_deref();
        let (shared, limits) = (self.shared, self.limits);
        let own_system = self.services.own_system();
        let system = own_system.as_deref().unwrap_or(&shared.system);
        let (programs, maps) = (&shared.programs[..], &shared.maps[..]);
        let inner = maps.iter().flatten();
        let inner = inner.flat_map(|map| map.map.operations().inner_maps());
        let inner: Vec<Arc<StoredMap>> = inner.collect();
        // Only programs that ask for the task can read it.
        let asks = prepared.uses_current_task || self.prepared.uses_current_task;
        let asks = asks && given.is_none();
        let layout = shared.task.filter(|_| asks);
        let task = layout.map(|layout| layout.task(system, shared.addresses.task));
        let model = Model(programs);
        let structure = |map: &Map, id, name: &str| match &shared.map_layout {
            Some(layout) => layout.structure(map, id, name),
            None => Vec::new(),
        };
        let structures: Vec<_> = (1..)
            .zip(maps)
            .filter_map(|(id, map)| Some((id, map.as_ref()?)))
            .map(|(id, map)| structure(&map.map, id, &map.def.name))
            .collect();
        let held: Vec<_> = inner
            .iter()
            .map(|held| structure(&held.map, held.id, ""))
            .collect();
        let hook = match &start {
            Start::Program(input) => self.hook_objects(input),
            Start::Model | Start::Timer(_) => None,
        };
        let is_timer = matches!(start, Start::Timer(_));
        let mut memory = Memory::placed_at(shared.addresses);
        let mut arguments = [0; 5];
        let timer = match start {
            Start::Program(input) => {
                arguments[0] = add_input(&mut memory, input, hook.as_ref())?;
                None
            }
            Start::Model => {
                arguments[0] = given.as_ref().map_or(0, |model| model.context());
                None
            }
            Start::Timer(timer) => Some(timer),
        };
        if let Some(model) = given {
            memory.add_given(&model.memory);
        }
        for (map, structure) in maps.iter().flatten().zip(&structures) {
            memory.add_map(&*map.def.name, map.map.handle(), guard, map.permission())?;
            memory.describe_map(structure);
        }
        for (held, structure) in inner.iter().zip(&held) {
            memory.add_inner_map(held.map.handle(), guard)?;
            memory.describe_map(structure);
        }
        memory.add_model(&shared.objects, &model);
        // These have addresses of the kernel, above all others.
        memory.add_sockets(&system.network.sockets);
        if let Some(task) = &task {
            memory.add_task(task);
        }
        memory.add_variables(shared.variables.bytes(), shared.variables.block());
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
        let watched = Watched {
            shared,
            prepared,
            cpu: self.services.cpu(),
            is_timer,
        };
        let ground = watchers.ground(watched);
        let mut observers = watchers.observe(watched, &ground);
        let finish = self.services.with_context(timer, |mut cx| {
            let mut calls = Calls::resolved(|number, arguments, memory| {
                if let Some(faults) = faults
                    && let Some(result) = faults.result((number, arguments[0]), memory, maps)
                {
                    return Some(Ok(result));
                }
                if let Some(KernelFunction::Host(index)) = KernelFunction::from_number(number) {
                    return Some(host.get(usize::from(index))?.call(arguments, memory));
                }
                if let Some(model) = given
                    && let Some(result) = model.call(number, arguments, memory)
                {
                    return Some(result);
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
            match &mut observers {
                Some(observers) => observers.run(&prepared.checked, slot, cx, entry, &limits),
                None => (prepared.checked).run_function(slot, cx, entry, &limits),
            }
        });
        let seen = observers.map(|observers| observers.finish(&finish, &memory));
        drop(memory);
        watchers.note(seen.unwrap_or_default(), is_timer);
        if !is_timer {
            self.executed = Some(finish.executed);
        }
        for (program, insn) in finish.unwritten_reads {
            if let Some(program) = programs.get(program as usize) {
                program.note_unwritten_read(insn);
            }
        }
        match finish.outcome {
            Ok(value) => Ok(value as u32),
            Err(trap) => {
                let entered = finish.entered.as_ref();
                let entered = entered.and_then(|entered| {
                    let mut programs = programs.iter();
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
