//! Loading: an object's programs and maps, ready to run.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use ::kernel::maps::{Host, MapMemory};
use ::kernel::programs::TestProgram;
use ::kernel::variables::Variables;
use btf::TypeId;
use isa::ebpf::{Callee, Imm64, Insn};
use jit::memory::Pool;
use object::Object;
use object::maps::Global;
use program::creation::MapCreator;
use program::{MapEntry, MapId, Program};
use spec::Kernel;
use spec::kfuncs::KernelFunction;
use verifier::{Options, Proof, Verdict, explain};
use vm::{Addresses, HostFunction, Objects, System};

#[cfg(feature = "trace")]
use trace::dwarf::LineTable;

use super::compiled::Compiler;
#[cfg(feature = "coverage")]
use super::counts::ProgramCounts;
use super::hook::HookLayout;
use super::kernel_sockets::SocketLayout;
use super::map_structure::MapLayout;
use super::maps::Creation;
use super::prepared::{Prepared, Source};
use super::random::SharedRandom;
use super::shared::Shared;
use super::task::TaskLayout;
use super::{
    LoadError, LoadOptions, LoadedObject, ObjectMap, ReusedMaps, compiled, inner_maps, process,
    tail_calls,
};
use crate::Engine;
use crate::engine::EngineRefusal;

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
    ) -> Result<LoadedObject, LoadError> {
        LoadedObject::load_reusing(object, kernel, options, &[], &ReusedMaps::default())
    }

    /// As [`LoadedObject::load`], for the kernel with functions of the host, which programs call
    /// as kfuncs ([`kfunc!`](crate::kfunc)).
    ///
    /// # Errors
    /// As [`LoadedObject::load`], and [`LoadError::Functions`].
    pub fn load_with_functions(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
        functions: &[HostFunction],
    ) -> Result<LoadedObject, LoadError> {
        LoadedObject::load_reusing(object, kernel, options, functions, &ReusedMaps::default())
    }

    /// As [`LoadedObject::load_with_functions`], with maps of other objects in place of its own.
    ///
    /// # Errors
    /// As [`LoadedObject::load_with_functions`], and [`LoadError::Reuse`].
    pub fn load_reusing(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
        functions: &[HostFunction],
        reused: &ReusedMaps,
    ) -> Result<LoadedObject, LoadError> {
        if functions.is_empty() {
            return LoadedObject::load_all(object, kernel, options, &Arc::default(), reused);
        }
        let prototypes = functions
            .iter()
            .map(|function| function.prototype().clone());
        let prototypes: Vec<_> = prototypes.collect();
        let kernel = kernel.clone().with_host_functions(&prototypes);
        let kernel = kernel.map_err(LoadError::Functions)?;
        LoadedObject::load_all(object, &kernel, options, &functions.into(), reused)
    }

    fn load_all(
        object: &Object<'_>,
        kernel: &Kernel,
        options: &LoadOptions,
        functions: &Arc<[HostFunction]>,
        reused: &ReusedMaps,
    ) -> Result<LoadedObject, LoadError> {
        let kernel = with_cpus(kernel, options.possible_cpus());
        let programs = LoadedObject::link(object, &kernel)?;
        let globals = object.globals().collect();
        let given = (functions, reused);
        let loaded = LoadedObject::from_programs(programs, globals, &kernel, options, given);
        #[cfg(feature = "trace")]
        let loaded = loaded.map(|loaded| loaded.with_line_table(object.file()));
        loaded
    }

    /// The same, with the instructions that have no source line by the line table of the file (`clang -g`).
    #[cfg(feature = "trace")]
    fn with_line_table(mut self, file: &[u8]) -> LoadedObject {
        if let Some(table) = LineTable::read(file) {
            for prepared in &mut self.shared.programs {
                let places = table.of(&prepared.program);
                prepared.program.leave_out_lines(&places);
            }
        }
        self
    }

    /// The programs of an object that are to be loaded, linked for a kernel.
    pub(crate) fn link(object: &Object<'_>, kernel: &Kernel) -> Result<Vec<Program>, LoadError> {
        let linked = object.link(kernel);
        let mut linked = linked.map_err(|error| LoadError::Link(Box::new(error)))?;
        // Those of a struct_ops are linked with it, whether they are to be loaded or not.
        let is_chosen = |id| {
            object
                .program_defs()
                .get(id)
                .is_none_or(|code| code.autoload)
        };
        linked.unloadable.retain(|program| is_chosen(program.id));
        linked.programs.retain(|linked| is_chosen(linked.id));
        if !linked.unloadable.is_empty() {
            let error = linked.unloadable.swap_remove(0).error;
            return Err(LoadError::Link(Box::new(error)));
        }
        let programs = linked.programs.into_iter().map(|linked| linked.program);
        Ok(programs.collect())
    }

    /// Verifies programs that [`LoadedObject::link`] gave, and creates the maps that they use.
    #[cfg(feature = "fuzz")]
    pub(crate) fn from_linked(
        programs: Vec<Program>,
        globals: Vec<Global>,
        kernel: &Kernel,
        options: &LoadOptions,
    ) -> Result<LoadedObject, LoadError> {
        let kernel = with_cpus(kernel, options.possible_cpus());
        let none = (&Arc::default(), &ReusedMaps::default());
        LoadedObject::from_programs(programs, globals, &kernel, options, none)
    }

    /// Verifies a program that was linked already, and creates the maps that it uses.
    ///
    /// # Errors
    /// As [`LoadedObject::load`].
    pub fn from_program(
        program: Program,
        kernel: &Kernel,
        options: &LoadOptions,
    ) -> Result<LoadedObject, LoadError> {
        let kernel = with_cpus(kernel, options.possible_cpus());
        let none = (&Arc::default(), &ReusedMaps::default());
        LoadedObject::from_programs(vec![program], Vec::new(), &kernel, options, none)
    }

    fn from_programs(
        linked: Vec<Program>,
        globals: Vec<Global>,
        kernel: &Kernel,
        options: &LoadOptions,
        (functions, reused): (&Arc<[HostFunction]>, &ReusedMaps),
    ) -> Result<LoadedObject, LoadError> {
        let cpus = kernel.cpus();
        let addresses = Addresses::from_seed(options.seed);
        let host = Host {
            memory: Arc::new(MapMemory::new(options.memory)),
            objects: Arc::new(Objects::starting_at(addresses.objects, cpus)),
            machine_memory: kernel.memory(),
            #[cfg(feature = "fuzz")]
            journals: options.journals,
            ..Host::new(cpus, options.seed)
        };
        // Made before its maps hold programs: it releases them whenever it is dropped.
        let mut loaded = LoadedObject::empty(globals, kernel, options, &host);
        loaded.shared.variables = variables(&linked, kernel, cpus, addresses.variables);
        let mut programs = Vec::new();
        for program in linked {
            let rules = match TestProgram::of(program.kind()) {
                Some(rules) => rules,
                None if options.models => TestProgram::model(program.kind()),
                None => {
                    return Err(LoadError::Type {
                        program: program.name().to_owned(),
                        kind: program.kind(),
                    });
                }
            };
            let proof = match options.unverified {
                true => None,
                false => Some(prove(&program, kernel, options.explains)?),
            };
            if !rules.is_model() {
                check_functions(&program, kernel, proof.as_ref())?;
            }
            create_maps(&mut loaded.shared.maps, &program, kernel, (&host, reused))?;
            programs.push((program, rules, proof));
        }
        let shared = &mut loaded.shared;
        let handles = shared.maps.iter().map(|map| {
            let map = map.as_ref()?;
            Some(map.map.handle().clone())
        });
        let handles: Vec<_> = handles.collect();
        let native_options = || jit::Options {
            deadline: options.checks_deadline || options.timeout.is_some(),
            retpoline: options.retpoline,
            entry_slots: options.entry_slots,
            tail_target: tail_calls::are_used(&shared.maps),
            ..jit::Options::default()
        };
        let engine = options.engine.of_objects();
        let on_machine = match engine == options.engine {
            true => None,
            false => Some(EngineRefusal::Machine(options.engine)),
        };
        let compiler = match engine {
            Engine::Native => Some(Compiler::Native(native_options(), Pool::new())),
            Engine::Interp => Some(Compiler::Interp),
            Engine::Checked => None,
        };
        for ((program, rules, proof), number) in programs.into_iter().zip(0..) {
            let context_bytes = proof.as_ref().map(|proof| proof.facts().context_bytes);
            let rules = rules.with_context_bytes(context_bytes.unwrap_or_default());
            let probing = proof.as_ref().map(probing_loads).unwrap_or_default();
            let unwritten_reads =
                (proof.as_ref()).map(|proof| proof.facts().unwritten_reads.clone());
            #[cfg(feature = "coverage")]
            let counts = (options.counts)
                .then(|| ProgramCounts::new(&program, proof.as_ref(), options.shares_counts));
            #[cfg(feature = "coverage")]
            let counting = counts.as_ref().and_then(ProgramCounts::counting);
            #[cfg(not(feature = "coverage"))]
            let counting = None;
            let to_compile = proof.filter(|_| !rules.is_model());
            let compiled = to_compile.zip(compiler.as_ref()).map(|(proof, compiler)| {
                compiled::compile((&proof, number, counting), &handles, functions, compiler)
            });
            let host = functions.clone();
            let source = Source {
                program,
                number,
                kernel,
                variables: &shared.variables,
                probing,
                unwritten_reads,
                watches_stack: options.watches_stack,
            };
            let mut prepared = Prepared::new(source, rules, compiled, &shared.maps, host);
            #[cfg(feature = "coverage")]
            {
                prepared.counts = counts;
            }
            prepared.fallback_reason = prepared.fallback_reason.or_else(|| on_machine.clone());
            shared.programs.push(prepared);
        }
        shared.handles = handles.into_iter().flatten().collect();
        inner_maps::fill(&shared.maps)?;
        tail_calls::choose_engine(&shared.maps, &mut shared.programs);
        loaded.stored = tail_calls::fill(&shared.maps, &shared.programs)?;
        Ok(loaded)
    }

    /// An object without programs and maps.
    fn empty(
        globals: Vec<Global>,
        kernel: &Kernel,
        options: &LoadOptions,
        host: &Host,
    ) -> LoadedObject {
        let types = kernel.btf().map(|types| &**types);
        LoadedObject {
            shared: Shared {
                programs: Vec::new(),
                maps: Vec::new(),
                handles: Vec::new(),
                addresses: Addresses::from_seed(options.seed),
                system: System::DEFAULT,
                timeout: options.timeout,
                memory: Arc::clone(&host.memory),
                timers: Arc::clone(&host.timers),
                objects: Arc::clone(&host.objects),
                process: process::new(kernel, host),
                variables: Variables::default(),
                task: types.and_then(TaskLayout::of),
                hook_layout: types.and_then(HookLayout::of),
                map_layout: types.and_then(MapLayout::of),
            },
            stored: tail_calls::Programs::default(),
            globals,
            random: SharedRandom::new(options.seed),
            cpu: options.cpu,
            host: host.clone(),
            socket_layout: types.map_or_else(SocketLayout::default, SocketLayout::of),
            inner_maps: AtomicU32::new(0),
        }
    }
}

/// Creates the maps of a program that are not there yet.
fn create_maps(
    maps: &mut Vec<Option<ObjectMap>>,
    program: &Program,
    kernel: &Kernel,
    (host, reused): (&Host, &ReusedMaps),
) -> Result<(), LoadError> {
    let registry = kernel.registry().ok_or(LoadError::NoRegistry)?;
    let creation = Creation {
        creator: MapCreator::new(kernel, registry),
        types: program.btf().map(|types| &**types),
        host,
        reused,
    };
    let used = program.used_maps();
    // With the maps that maps of maps hold from the start.
    let held = used.iter().flat_map(|id| held(program, *id));
    for id in used.iter().copied().chain(held) {
        let index = id.0 as usize;
        if maps.len() <= index {
            maps.resize_with(index + 1, || None);
        }
        if let (None, Some(def)) = (&maps[index], program.map(id)) {
            maps[index] = Some(ObjectMap::create(def, &creation)?);
        }
    }
    Ok(())
}

/// The variables of the kernel that programs refer to.
fn variables(programs: &[Program], kernel: &Kernel, cpus: u32, start: u64) -> Variables {
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
    Variables::new(types, ids, cpus, start)
}

/// Refuses calls of kernel functions that no run here can make, where a run may get to.
fn check_functions(
    program: &Program,
    kernel: &Kernel,
    proof: Option<&Proof>,
) -> Result<(), LoadError> {
    for (at, insn) in program.decode().iter().enumerate() {
        let is_reached = proof.is_none_or(|proof| proof.facts().insns[at].is_reached);
        let Insn::Call(Callee::Kfunc { id, .. }) = insn else {
            continue;
        };
        let refused = match KernelFunction::from_insn(kernel, insn) {
            Some(function) => ::kernel::kfuncs::why_not(function.number())
                .map(|(name, why)| (name.to_owned(), why)),
            None => Some((format!("#{id}"), "it is not built")),
        };
        if let Some((function, why)) = refused.filter(|_| is_reached) {
            return Err(LoadError::Function {
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
    let def = program.map(map);
    let entries = def.map_or(&[][..], |def| def.contents.entries());
    let maps = entries.iter().filter_map(|(_, entry)| match entry {
        MapEntry::Map(held) => Some(*held),
        MapEntry::Program(_) => None,
    });
    maps.collect()
}

/// The kernel on a machine with at least so many CPUs.
fn with_cpus(kernel: &Kernel, cpus: u32) -> Cow<'_, Kernel> {
    match kernel.cpus() < cpus {
        true => Cow::Owned(kernel.clone().with_cpus(cpus, spec::kernel::Source::Given)),
        false => Cow::Borrowed(kernel),
    }
}

/// Slots of the loads of kernel objects, whose memory need not be there.
fn probing_loads(proof: &Proof) -> Vec<usize> {
    let facts = proof.facts().insns.iter().enumerate();
    let probing = facts.filter(|(_, fact)| fact.accesses_object);
    probing.map(|(slot, _)| slot).collect()
}

/// Verifies a program.
fn prove(program: &Program, kernel: &Kernel, explains: bool) -> Result<Proof, LoadError> {
    let registry = kernel.registry().ok_or(LoadError::NoRegistry)?;
    let name = program.name().to_owned();
    let verification = match Proof::of(program, kernel, registry) {
        Ok(proof) => return Ok(proof),
        Err(verification) => verification,
    };
    let explanation = || {
        let options = Options {
            assume_rules: true,
            ..Options::default()
        };
        explain(program, kernel, registry, &options).map(Box::new)
    };
    if let Some(map) = verification.refused_map {
        return Err(LoadError::Map(map));
    }
    Err(match verification.verdict {
        Verdict::Refused(refusal) => LoadError::Refused {
            program: name,
            refusal,
            explanation: explains.then(explanation).flatten(),
        },
        Verdict::Unsupported(why) => LoadError::Unsupported { program: name, why },
        Verdict::Bug(why) => LoadError::Unsupported {
            program: name,
            why: format!("bug: {why}"),
        },
        Verdict::Accepted => LoadError::Unsupported {
            program: name,
            why: "bug: no facts of an accepted program".to_owned(),
        },
    })
}
