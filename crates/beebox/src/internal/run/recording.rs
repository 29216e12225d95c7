//! The record of a run: what its observer asks of the object and the kernel.

use std::collections::HashMap;
use std::sync::Arc;

use ::kernel::maps::Map;
use btf::{Btf, Kind, Shape, TypeId};
use isa::ebpf::{Callee, Insn};
use program::MapDef;
use spec::Kernel;
use spec::kfuncs::KernelFunction;
use spec::registry::types::ArgBase;
use trace::dwarf::Debug;
use trace::{Host, Run, Traced, TracedMap};

use super::prepared::Prepared;
use super::shared::Shared;
use super::{ObjectMap, RunnableProgram};

/// What records the next run of a program.
#[derive(Debug, Default)]
pub(super) struct Recording<'o> {
    debug: Option<&'o Debug>,
    /// Names of functions, and how many arguments they take, by their numbers in resolved code.
    functions: Arc<HashMap<i32, (String, usize)>>,
    /// The instruction from which the last lines are recorded.
    pub(super) tail_from: Option<u64>,
    /// The record, when the run ended.
    pub(super) recorded: Option<Run>,
    /// Number of the program and slot of each instruction.
    #[cfg(test)]
    pub(super) insns: Vec<(u32, u32)>,
}

impl<'o> RunnableProgram<'o> {
    /// Has the next run on a packet recorded, in the checked engine.
    pub(crate) fn record(&mut self, kernel: &Kernel, debug: Option<&'o Debug>) {
        self.record_with_tail(kernel, debug, None);
    }

    /// The same; the last lines of a long run are recorded from an instruction on.
    pub(crate) fn record_with_tail(
        &mut self,
        kernel: &Kernel,
        debug: Option<&'o Debug>,
        tail_from: Option<u64>,
    ) {
        let programs = &self.shared.programs;
        let functions = programs
            .iter()
            .flat_map(|prepared| functions(prepared, kernel));
        self.attached.watchers.recording = Some(Box::new(Recording {
            debug,
            functions: Arc::new(functions.collect()),
            tail_from,
            ..Recording::default()
        }));
    }

    /// The record of the run since; the next one is not recorded.
    pub(crate) fn take_record(&mut self) -> Option<Run> {
        self.attached.watchers.recording.take()?.recorded
    }
}

/// The functions that a program calls, by their numbers.
pub(super) fn functions(prepared: &Prepared, kernel: &Kernel) -> Vec<(i32, (String, usize))> {
    let insns = prepared.program.decode();
    let calls = insns.iter().filter(|insn| matches!(insn, Insn::Call(_)));
    let named = calls.filter_map(|insn| {
        let function = KernelFunction::from_insn(kernel, insn);
        match (function, insn) {
            (Some(function), _) => {
                let name = match function {
                    KernelFunction::Host(index) => {
                        let function = kernel.host_functions().get(usize::from(index))?;
                        function.name.to_string()
                    }
                    KernelFunction::Bits(_) | KernelFunction::Linux(_) => {
                        function.name()?.to_owned()
                    }
                };
                let count = kernel
                    .btf()
                    .and_then(|types| parameters(types, &name))
                    .unwrap_or(5);
                Some((function.number(), (name, count)))
            }
            (None, Insn::Call(Callee::Helper(number))) => {
                let name = spec::calls::name(*number)?.to_owned();
                Some((*number, (name, arguments(kernel, *number))))
            }
            _ => None,
        }
    });
    named.collect()
}

/// Number of parameters of a function of the kernel.
fn parameters(types: &Btf<'_>, name: &str) -> Option<usize> {
    let function = types.find(Kind::Func, name)?;
    let Shape::Func(function) = function.shape() else {
        return None;
    };
    match types.get(function.proto)?.shape() {
        Shape::Proto(proto) => Some(proto.params().len()),
        _ => None,
    }
}

/// Number of arguments of a helper.
fn arguments(kernel: &Kernel, number: i32) -> usize {
    let protos = kernel
        .registry()
        .map_or(&[][..], |registry| &registry.protos);
    let proto = protos
        .iter()
        .find(|proto| i32::try_from(proto.id) == Ok(number));
    proto.map_or(5, |proto| {
        let mut used = proto.args.iter();
        let last = used.rposition(|argument| argument.base != ArgBase::DontCare);
        last.map_or(0, |last| last + 1)
    })
}

impl<'o> Recording<'o> {
    /// Adds the run of the program, or that of the function of a timer before or after it.
    pub(super) fn add(&mut self, run: Run, is_timer: bool) {
        let run = if is_timer { run.of_timer() } else { run };
        match &mut self.recorded {
            Some(recorded) => recorded.append(run),
            None => self.recorded = Some(run),
        }
    }

    /// The host of a run.
    pub(super) fn host<'h>(&self, shared: &'h Shared, cpu: u32) -> RunHost<'h> {
        RunHost {
            functions: self.functions.clone(),
            maps: run_maps(shared),
            types: shared
                .programs
                .iter()
                .find_map(|prepared| prepared.program.btf())
                .map(|types| &**types),
            cpu,
        }
    }

    /// The programs as the recorder knows them.
    pub(super) fn traced<'h>(&self, programs: &'h [Prepared]) -> Vec<Traced<'h>>
    where
        'o: 'h,
    {
        let traced = programs.iter().map(|prepared| Traced {
            program: &prepared.program,
            debug: self.debug,
        });
        traced.collect()
    }
}

/// Maps and functions that a run meets.
pub(super) struct RunHost<'h> {
    functions: Arc<HashMap<i32, (String, usize)>>,
    maps: Vec<RunMap<'h>>,
    types: Option<&'h Btf<'static>>,
    cpu: u32,
}

/// A map by its index in the memory of a run.
pub(super) struct RunMap<'h> {
    pub(super) name: String,
    pub(super) def: &'h MapDef,
    /// The map of the object, if it is no inner map that was made of a template.
    pub(super) object: Option<&'h ObjectMap>,
    map: Arc<Map>,
}

#[cfg(feature = "debug")]
impl RunMap<'_> {
    /// The map.
    pub(super) fn map(&self) -> &Map {
        &self.map
    }

    /// Bytes of a key.
    pub(super) fn key_size(&self) -> usize {
        self.def.params.key_size as usize
    }
}

/// The maps of a run: those of the object, and those in maps of maps.
pub(super) fn run_maps(shared: &Shared) -> Vec<RunMap<'_>> {
    let own = || shared.maps.iter().flatten();
    let mut maps: Vec<RunMap<'_>> = own()
        .map(|map| RunMap {
            name: map.def.name.clone(),
            def: &map.def,
            object: Some(map),
            map: map.map.clone(),
        })
        .collect();
    for outer in own() {
        for held in outer.map.operations().inner_maps() {
            let same = own().find(|map| Arc::ptr_eq(&map.map, &held.map));
            let def = same.map(|map| &*map.def).or(outer.def.inner.as_deref());
            maps.push(RunMap {
                name: same.map_or_else(
                    || format!("map in {}", outer.def.name),
                    |map| map.def.name.clone(),
                ),
                def: def.unwrap_or(&outer.def),
                object: same,
                map: held.map.clone(),
            });
        }
    }
    maps
}

impl Host for RunHost<'_> {
    fn function(&self, number: i32) -> (String, usize) {
        let known = self.functions.get(&number).cloned();
        known.unwrap_or_else(|| (format!("#{number}"), 5))
    }

    fn map(&self, index: u32) -> Option<TracedMap<'_>> {
        let map = self.maps.get(index as usize)?;
        let ty = map.def.params.value_type;
        Some(TracedMap {
            name: &map.name,
            key_size: map.def.params.key_size as usize,
            value_size: map.def.params.value_size as usize,
            holds_maps: map.map.kind().is_map_of_maps(),
            value: self
                .types
                .filter(|_| ty != TypeId::VOID)
                .map(|types| (types, ty)),
        })
    }

    fn lookup(&self, map: u32, key: &[u8]) -> Option<Vec<u8>> {
        let map = self.maps.get(map as usize)?;
        value_on(&map.map, key, self.cpu)
    }
}

/// The value of a key of a map, of per-CPU maps that of a CPU.
pub(super) fn value_on(map: &Map, key: &[u8], cpu: u32) -> Option<Vec<u8>> {
    let mut value = vec![0; map.value_len()];
    map.lookup(key, &mut value, 0).ok()?;
    if !map.kind().is_percpu() {
        return Some(value);
    }
    let each = (map.params().value_size as usize).next_multiple_of(8);
    let from = each * cpu as usize;
    value.get(from..from + each).map(<[u8]>::to_vec)
}
