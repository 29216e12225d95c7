//! Loading: an object's programs and maps, ready to run.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use ::kernel::maps::{Arena, Host, Map};
use ::kernel::process::Process;
use ::kernel::programs::TestProgram;
use ::kernel::variables::Variables;
use btf::TypeId;
use isa::ebpf::{Callee, Imm64, Insn};
use jit::memory::Pool;
use object::Object;
use object::maps::Global;
use program::{InitialContents, MapEntry, MapId, Program};
use spec::kfuncs::KernelFunction;
use spec::maps::MapKind;
use spec::{Errno, Kernel, SplitMix};
use verifier::{Proof, Verdict};
use vm::{HostFunction, MapHandle, Stream, System};

use super::hook::HookLayout;
use super::kernel_sockets::SocketLayout;
use super::map_structure::MapLayout;
use super::program::{KernelLayouts, Prepared, Source};
use super::services::Services;
use super::task::TaskLayout;
use super::{
    NotLoaded, ObjectMap, RunnableProgram, inner_maps, native, process, tail_calls, timers,
};

/// What runs programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunEngine {
    /// Native code without checks, of verified programs. Programs that it does not support
    /// yet run in the checked engine.
    #[default]
    Native,
    /// The interpreter that checks every access.
    Checked,
}

impl RunEngine {
    /// Its name in options and output.
    pub const fn name(self) -> &'static str {
        match self {
            RunEngine::Native => "native",
            RunEngine::Checked => "checked",
        }
    }
}

/// How to load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Run programs that nothing verified, in the checked engine. What a verifier would have
    /// refused ends a run with a trap.
    pub unverified: bool,
    /// What runs verified programs.
    pub engine: RunEngine,
    /// Native code checks the deadline of [`RunnableProgram::set_limits`]; its loops are
    /// slower then.
    pub checks_deadline: bool,
    /// Indirect jumps and calls of native code go through a retpoline, which keeps processors
    /// from predicting them. Tail calls and calls of helpers are slower then.
    pub retpoline: bool,
    /// Functions of native code begin with a slot of five bytes, which a call or jump can
    /// replace.
    pub entry_slots: bool,
    /// Functions of native code save all callee-saved registers instead of those in use: for
    /// measurements.
    pub save_all_registers: bool,
    /// Possible CPUs, more than `cpu`: per-CPU maps hold a value for each.
    pub cpus: u32,
    /// The CPU that programs run on.
    pub cpu: u32,
    /// Seed of random numbers and hashes.
    pub seed: u64,
}

impl Default for LoadOptions {
    /// Verified, native, one CPU, seed 0.
    fn default() -> LoadOptions {
        LoadOptions {
            unverified: false,
            engine: RunEngine::Native,
            checks_deadline: false,
            retpoline: false,
            entry_slots: false,
            save_all_registers: false,
            cpus: 1,
            cpu: 0,
            seed: 0,
        }
    }
}

/// The programs and maps of an object, ready to run. The maps last over all runs.
#[derive(Debug)]
pub struct LoadedObject {
    pub(super) maps: Vec<Option<ObjectMap>>,
    /// The maps as native code refers to them.
    handles: Vec<MapHandle>,
    programs: Vec<Prepared>,
    /// The same as program arrays hold them.
    stored: tail_calls::Programs,
    pub(super) globals: Vec<Global>,
    pub(super) random: SplitMix,
    cpu: u32,
    pub(super) world: System,
    pub(super) host: Host,
    /// The layout of tasks, if the kernel's types are known.
    task: Option<TaskLayout>,
    /// The layouts of what contexts of netfilter programs point to, if the kernel has them.
    hook_layout: Option<HookLayout>,
    /// The layout of maps, if the kernel's types are known.
    map_layout: Option<MapLayout>,
    /// The layout of sockets, as far as the kernel's types are known.
    socket_layout: SocketLayout,
    /// The variables of the kernel that its programs refer to.
    variables: Variables,
    /// The process of its programs.
    process: Process,
    /// Number of maps that the host put into maps of maps.
    pub(super) inner_maps: AtomicU32,
}

impl LoadedObject {
    /// Links an object for a kernel, verifies its programs that are to be loaded
    /// ([`Object::set_autoload`] chooses) and creates the maps that they use.
    ///
    /// # Errors
    /// For the first program or map that cannot be loaded.
    pub fn load(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
    ) -> Result<LoadedObject, NotLoaded> {
        LoadedObject::load_all(object, kernel, options, &Arc::default())
    }

    /// As [`LoadedObject::load`], for the kernel with functions of the host, which programs call
    /// as kfuncs ([`kfunc!`](crate::kfunc)).
    ///
    /// # Errors
    /// As [`LoadedObject::load`], and [`NotLoaded::Functions`].
    pub fn load_with_functions(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
        functions: &[HostFunction],
    ) -> Result<LoadedObject, NotLoaded> {
        let prototypes = functions
            .iter()
            .map(|function| function.prototype().clone());
        let prototypes: Vec<_> = prototypes.collect();
        let kernel = kernel.clone().with_host_functions(&prototypes);
        let kernel = kernel.map_err(NotLoaded::Functions)?;
        LoadedObject::load_all(object, &kernel, options, &functions.into())
    }

    fn load_all(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
        functions: &Arc<[HostFunction]>,
    ) -> Result<LoadedObject, NotLoaded> {
        let linked = object.link(kernel);
        let mut linked = linked.map_err(|error| NotLoaded::Link(Box::new(error)))?;
        if !linked.unloadable.is_empty() {
            let error = linked.unloadable.swap_remove(0).error;
            return Err(NotLoaded::Link(Box::new(error)));
        }
        let programs = linked.programs.into_iter().map(|linked| linked.program);
        LoadedObject::of_programs(
            programs.collect(),
            object.globals().collect(),
            kernel,
            options,
            functions,
        )
    }

    /// Verifies a program that was linked already, and creates the maps that it uses.
    ///
    /// # Errors
    /// As [`LoadedObject::load`].
    pub fn of_program(
        program: Program,
        kernel: &Kernel,
        options: &LoadOptions,
    ) -> Result<LoadedObject, NotLoaded> {
        let none = Arc::default();
        LoadedObject::of_programs(vec![program], Vec::new(), kernel, options, &none)
    }

    fn of_programs(
        linked: Vec<Program>,
        globals: Vec<Global>,
        kernel: &Kernel,
        options: &LoadOptions,
        functions: &Arc<[HostFunction]>,
    ) -> Result<LoadedObject, NotLoaded> {
        let cpus = options.cpus.max(options.cpu.saturating_add(1));
        let host = Host::new(cpus, options.seed);
        let mut loaded = LoadedObject {
            maps: Vec::new(),
            handles: Vec::new(),
            programs: Vec::new(),
            stored: tail_calls::Programs::default(),
            globals,
            random: SplitMix::new(options.seed),
            cpu: options.cpu,
            world: System::DEFAULT,
            host: host.clone(),
            task: kernel.btf().and_then(|types| TaskLayout::of(types)),
            hook_layout: kernel.btf().and_then(|types| HookLayout::of(types)),
            map_layout: kernel.btf().and_then(|types| MapLayout::of(types)),
            socket_layout: match kernel.btf() {
                Some(types) => SocketLayout::of(types),
                None => SocketLayout::default(),
            },
            variables: variables(&linked, kernel, cpus),
            process: process::new(kernel, &host),
            inner_maps: AtomicU32::new(0),
        };
        let mut programs = Vec::new();
        for program in linked {
            let Some(rules) = TestProgram::of(program.kind()) else {
                return Err(NotLoaded::Type {
                    program: program.name().to_owned(),
                    kind: program.kind(),
                });
            };
            let proof = match options.unverified {
                true => None,
                false => Some(prove(&program, kernel)?),
            };
            check_functions(&program, kernel, proof.as_ref())?;
            loaded.create_maps(&program, kernel, &host)?;
            programs.push((program, rules, proof));
        }
        let pool = Pool::new();
        let handles = loaded.maps.iter().map(|map| {
            let map = map.as_ref()?;
            Some(MapHandle::new(map.map.clone()))
        });
        let handles: Vec<_> = handles.collect();
        let is_native = options.engine == RunEngine::Native;
        let compiler = jit::Options {
            deadline: options.checks_deadline,
            retpoline: options.retpoline,
            entry_slots: options.entry_slots,
            save_all_registers: options.save_all_registers,
            tail_target: tail_calls::are_used(&loaded.maps),
            ..jit::Options::default()
        };
        for ((program, rules, proof), number) in programs.into_iter().zip(0..) {
            let context_bytes = proof.as_ref().map(|proof| proof.facts().context_bytes);
            let rules = rules.with_context_bytes(context_bytes.unwrap_or_default());
            let probing = proof.as_ref().map(probing_loads).unwrap_or_default();
            let native = proof.filter(|_| is_native).map(|proof| {
                native::compile((&proof, number), &handles, functions, &pool, &compiler)
            });
            let host = functions.clone();
            let source = Source {
                program,
                number,
                kernel,
                variables: &loaded.variables,
                probing,
            };
            let prepared = Prepared::new(source, rules, native, &loaded.maps, host);
            loaded.programs.push(prepared);
        }
        loaded.handles = handles.into_iter().flatten().collect();
        inner_maps::fill(&loaded.maps)?;
        tail_calls::choose_engine(&loaded.maps, &mut loaded.programs);
        loaded.stored = tail_calls::fill(&loaded.maps, &loaded.programs)?;
        Ok(loaded)
    }

    /// Opens a perf buffer of `bytes` for each CPU in every `perf_event_array`, so that
    /// programs can write records, which
    /// [`RunnableProgram::take_records`] takes. Before, `bpf_perf_event_output` returns
    /// `-ENOENT`, as in Linux.
    ///
    /// # Errors
    /// Those of the updates of the maps.
    pub fn open_perf_buffers(&mut self, bytes: usize) -> Result<(), Errno> {
        let cpus = self.host.cpus;
        let mut maps = self.maps.iter_mut().flatten();
        maps.try_for_each(|map| map.open_perf_buffers(cpus, bytes))
    }

    /// Sets the machine, the process and the network that helpers report:
    /// [`System::DEFAULT`] until then.
    pub fn set_world(&mut self, mut world: System) {
        self.socket_layout.describe(&mut world.network.sockets);
        self.world = world;
    }

    /// The process of its programs: what they opened by `bpf_sys_bpf` and did not close.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Name of the program at an index of a program array.
    pub fn program_at(&self, map: &Map, index: u32) -> Option<&str> {
        let stored = map.operations().program(index)?;
        let prepared = self.programs.get(stored.id as usize)?;
        Some(prepared.program.name())
    }

    /// Creates the maps of a program that are not there yet.
    fn create_maps(
        &mut self,
        program: &Program,
        kernel: &Kernel,
        host: &Host,
    ) -> Result<(), NotLoaded> {
        let types = [program.btf(), kernel.btf()].map(|types| types.map(|types| &**types));
        let used = program.used_maps().into_iter();
        // With the maps that maps of maps hold from the start.
        let held = program
            .used_maps()
            .into_iter()
            .flat_map(|id| held(program, id));
        for id in used.chain(held) {
            let index = id.0 as usize;
            if self.maps.len() <= index {
                self.maps.resize_with(index + 1, || None);
            }
            if let (None, Some(def)) = (&self.maps[index], program.map(id)) {
                self.maps[index] = Some(ObjectMap::create(def, types, host)?);
            }
        }
        Ok(())
    }

    /// A program by its name.
    pub fn program(&mut self, name: &str) -> Option<RunnableProgram<'_>> {
        let place = self.place(name)?;
        let (random, world, handles) = (&mut self.random, &self.world, &self.handles);
        let timers = timers::used(&self.host.timers, &self.maps);
        let objects = (&self.host.objects, &self.process);
        let services = Services::new(random, self.cpu, world, handles, timers, objects);
        let (programs, maps) = (&self.programs, &self.maps);
        let layouts = KernelLayouts {
            task: self.task,
            map: self.map_layout,
            hook: self.hook_layout.as_ref(),
            variables: &self.variables,
        };
        Some(RunnableProgram::new(
            programs, place, maps, layouts, services,
        ))
    }

    fn place(&self, name: &str) -> Option<usize> {
        let mut programs = self.programs.iter();
        programs.position(|prepared| prepared.program.name() == name)
    }

    /// A program by its name, to run on another CPU and with random numbers of its own: threads
    /// that run programs at the same time have one each.
    pub fn program_on<'o>(
        &'o self,
        name: &str,
        cpu: u32,
        random: &'o mut SplitMix,
    ) -> Option<RunnableProgram<'o>> {
        let place = self.place(name)?;
        let timers = timers::used(&self.host.timers, &self.maps);
        let (world, handles) = (&self.world, &self.handles);
        let objects = (&self.host.objects, &self.process);
        let services = Services::new(random, cpu, world, handles, timers, objects);
        let (programs, maps) = (&self.programs, &self.maps);
        let layouts = KernelLayouts {
            task: self.task,
            map: self.map_layout,
            hook: self.hook_layout.as_ref(),
            variables: &self.variables,
        };
        Some(RunnableProgram::new(
            programs, place, maps, layouts, services,
        ))
    }

    /// Puts a program of the object into a slot of a program array, or empties the slot: tail
    /// calls reach it from the next one on, those of runs on other threads too.
    ///
    /// # Errors
    /// ENOENT if there is no such array or program, or the slot is empty already; otherwise
    /// those of the kernel: E2BIG beyond the array, EINVAL if it takes programs of another
    /// class.
    pub fn set_tail_call(
        &self,
        array: &str,
        index: u32,
        program: Option<&str>,
    ) -> Result<(), Errno> {
        let mut maps = self.maps();
        let array = maps.find(|map| map.def.name == array && map.map.kind() == MapKind::ProgArray);
        let array = array.ok_or(Errno::ENOENT)?;
        let place = |name: &str| {
            let mut programs = self.programs.iter();
            let place = programs.position(|prepared| prepared.program.name() == name);
            place.ok_or(Errno::ENOENT)
        };
        let place = program.map(place).transpose()?;
        tail_calls::set(array, index, place, &self.stored)
    }

    /// Takes the bytes that a program wrote into one of its streams (`bpf_stream_vprintk`), in
    /// all runs since they were taken last; `None` if there is no such program. A stream that
    /// holds almost 100,000 bytes takes no more.
    pub fn take_stream(&self, program: &str, stream: Stream) -> Option<Vec<u8>> {
        let place = self.place(program)?;
        Some(self.programs[place].streams.take(stream))
    }

    /// Bytes of native code, with the tables behind it, of all programs that have some.
    pub fn code_len(&self) -> usize {
        let natives = self.programs.iter().flat_map(|prepared| &prepared.native);
        natives.map(|native| native.image().len()).sum()
    }

    /// The map of this name, if a program uses it.
    pub fn map(&self, name: &str) -> Option<&Map> {
        let mut maps = self.maps();
        maps.find(|map| map.def.name == name).map(|map| &*map.map)
    }

    /// The memory of the arena of this name, if a program uses it.
    pub fn arena(&self, name: &str) -> Option<&Arena> {
        self.map(name)?.operations().arena()
    }

    /// The maps that programs use, in the object's order.
    pub fn maps(&self) -> impl Iterator<Item = &ObjectMap> {
        self.maps.iter().flatten()
    }
}

impl Drop for LoadedObject {
    /// Program arrays and the programs that they hold and that use them keep each other.
    fn drop(&mut self) {
        for map in self.maps() {
            map.map.release();
        }
    }
}

/// The variables of the kernel that programs refer to.
fn variables(programs: &[Program], kernel: &Kernel, cpus: u32) -> Variables {
    let Some(types) = kernel.btf() else {
        return Variables::default();
    };
    let insns = programs.iter().flat_map(|program| program.decode());
    let ids = insns.filter_map(|insn| match insn {
        Insn::LoadImm64 {
            imm: Imm64::BtfId { id, .. },
            ..
        } => Some(TypeId(id as u32)),
        _ => None,
    });
    Variables::new(types, ids, cpus)
}

/// Refuses calls of kernel functions that no run here can make, where a run may get to.
fn check_functions(
    program: &Program,
    kernel: &Kernel,
    proof: Option<&Proof>,
) -> Result<(), NotLoaded> {
    for (at, insn) in program.decode().iter().enumerate() {
        let is_reached = proof.is_none_or(|proof| proof.facts().insns[at].is_reached);
        let Insn::Call(Callee::Kfunc { id, .. }) = insn else {
            continue;
        };
        let refused = match KernelFunction::of_insn(kernel, insn) {
            Some(function) => ::kernel::kfuncs::why_not(function.number())
                .map(|(name, why)| (name.to_owned(), why)),
            None => Some((format!("#{id}"), "it is not built")),
        };
        if let Some((function, why)) = refused.filter(|_| is_reached) {
            return Err(NotLoaded::Function {
                program: program.name().to_owned(),
                function,
                insn: at,
                why: why.to_owned(),
            });
        }
    }
    Ok(())
}

/// The maps that a map holds from the start.
fn held(program: &Program, map: MapId) -> Vec<MapId> {
    let entries = match program.map(map).map(|def| &def.contents) {
        Some(InitialContents::Entries(entries)) => &entries[..],
        _ => &[],
    };
    let maps = entries.iter().filter_map(|(_, entry)| match entry {
        MapEntry::Map(held) => Some(*held),
        MapEntry::Program(_) => None,
    });
    maps.collect()
}

/// Slots of the loads of kernel objects, whose memory need not be there.
fn probing_loads(proof: &Proof) -> Vec<usize> {
    let facts = proof.facts().insns.iter().enumerate();
    let probing = facts.filter(|(_, fact)| fact.accesses_object);
    probing.map(|(slot, _)| slot).collect()
}

/// Verifies a program.
fn prove(program: &Program, kernel: &Kernel) -> Result<Proof, NotLoaded> {
    let registry = kernel.registry().ok_or(NotLoaded::NoRegistry)?;
    let name = program.name().to_owned();
    let verification = match Proof::of(program, kernel, registry) {
        Ok(proof) => return Ok(proof),
        Err(verification) => verification,
    };
    Err(match verification.verdict {
        Verdict::Refused(refusal) => NotLoaded::Refused {
            program: name,
            refusal,
        },
        Verdict::Unsupported(why) => NotLoaded::NotJudged { program: name, why },
        Verdict::Bug(why) => NotLoaded::NotJudged {
            program: name,
            why: format!("bug: {why}"),
        },
        Verdict::Accepted => NotLoaded::NotJudged {
            program: name,
            why: "bug: no facts of an accepted program".to_owned(),
        },
    })
}
