//! The data plane as native code of Beebox and in the kernel, without what the library does for
//! each run beside it.

use std::sync::Arc;
use std::time::Duration;

use ::gateway::{Capacity, Table};
use ::kernel::maps::{Host, Map, Resources, StoredMap, ValueLayout};
use jit::memory::Pool;
use jit::{Features, Native, Options};
use kernel_client::load::{LoadRequest, Loaded, load};
use lower::{ContextKind, PacketProgram, VerifiedProgram};
use packet::{Metadata, Packet};
use program::{MapDef, Program};
use spec::SplitMix;
use sys::bpf::{LoadedProgram, TestRun};
use verifier::Proof;
use vm::{DirectContext, HEADROOM, PacketBuffer, RunContext, RunGuard, XDP};

use super::traffic::{Frame, ORDER, Traffic};
use crate::Failure;

/// The gateway on frames of a map.
const REPLAY: &[u8] = include_bytes!("../../../gateway/bpf/replay.bpf.o");
/// Runs that one guard protects, as the kernel's test run does.
const BATCH: u32 = 64;

pub(super) fn failed(said: impl ToString) -> Failure {
    Failure::Process {
        purpose: "preparing the gateway",
        said: said.to_string(),
    }
}

/// A program of the gateway, linked for a table.
pub(super) fn program(name: &str, table: &Table) -> Result<Program, Failure> {
    let mut object = ::gateway::set_up(REPLAY, Capacity::of(table), false).map_err(failed)?;
    object.set_autoload(|program| program.name == name);
    let kernel = kernel_data::linux_6_18_minimal();
    let mut linked = object.link(&kernel).map_err(failed)?;
    Ok(linked.programs.swap_remove(0).program)
}

/// Puts the frames and the order of a traffic into the maps of the replay by `put`, which gets a
/// map's name, an index and a value.
fn replay_maps(
    traffic: &Traffic,
    mut put: impl FnMut(&str, u32, &[u8]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for (index, frame) in (0..).zip(&traffic.frames) {
        put("frames", index, frame)?;
    }
    // Shorter orders are repeated.
    let order = traffic.order.iter().cycle().take(ORDER);
    for (index, at) in (0..).zip(order) {
        put("order", index, &u32::from(*at).to_ne_bytes())?;
    }
    put("position", 0, &[0; 4])
}

/// A program as native code.
pub(super) struct Ours {
    native: Native<PacketProgram>,
    names: Vec<String>,
    maps: Vec<Arc<Map>>,
}

struct One(Arc<StoredMap>);

impl Resources for One {
    fn map(&self, _: u32) -> Option<Arc<StoredMap>> {
        Some(self.0.clone())
    }
}

impl Ours {
    pub(super) fn load(program: &Program, table: &Table) -> Result<Ours, Failure> {
        let kernel = kernel_data::linux_6_18_minimal();
        let types = kernel.btf().ok_or_else(|| failed("no types"))?;
        let registry = kernel_data::linux_6_18_minimal_registry(types);
        let proof = Proof::of(program, &kernel, &registry)
            .map_err(|refused| failed(format!("{:?}", refused.verdict)))?;
        let mut maps = Vec::new();
        for def in program.maps() {
            maps.push(Arc::new(create(def, table)?));
        }
        let handles: Vec<_> = maps.iter().map(|map| Some(map.handle().clone())).collect();
        let lowered = VerifiedProgram::from_proof(&proof, &handles, ::kernel::helpers::find_call)
            .map_err(failed)?;
        let lowered = lowered
            .packet()
            .ok_or_else(|| failed("a program without a packet"))?;
        let options = Options {
            features: Features::detect(),
            ..Options::default()
        };
        let native = Native::compile(&lowered, &options, &Pool::new());
        Ok(Ours {
            native: native.map_err(|error| Failure::NotCompiled("gateway", error))?,
            names: names_of(program),
            maps,
        })
    }

    /// Has the replay read a traffic.
    pub(super) fn put(&self, traffic: &Traffic) -> Result<(), Failure> {
        replay_maps(traffic, |name, key, value| {
            let map = self.names.iter().position(|it| it == name);
            let map = map.ok_or_else(|| failed(format!("no map {name}")))?;
            let put = self.maps[map].update(&key.to_ne_bytes(), value, 0);
            put.map_err(|errno| failed(format!("{name}: {errno}")))
        })
    }

    /// Runs on packets.
    pub(super) fn runner(&self) -> Runner<'_> {
        Runner {
            ours: self,
            context: DirectContext::new(ContextKind::Xdp, &[]),
            random: SplitMix::new(1),
            metadata: Metadata::from_cpu(0),
            guard: RunGuard::new(),
            runs: 0,
        }
    }
}

/// Runs of a program.
pub(super) struct Runner<'o> {
    ours: &'o Ours,
    context: DirectContext,
    random: SplitMix,
    metadata: Metadata,
    guard: RunGuard,
    runs: u32,
}

impl Runner<'_> {
    #[inline(always)]
    pub(super) fn run(&mut self, packet: &mut PacketBuffer) -> u32 {
        let program = &self.ours.native;
        self.runs += 1;
        if self.runs.is_multiple_of(BATCH) {
            self.guard = RunGuard::new();
        }
        let mut clock = || 0;
        let no_packet = Packet::whole(&[], &self.metadata);
        let cx = RunContext::new(&no_packet, &mut self.random, Some(&mut clock));
        let result = program.run(packet, &mut self.context, &self.guard, cx);
        result.expect("the maps have values for CPU 0") as u32
    }
}

/// A packet in memory.
pub(super) fn packet(frame: &Frame) -> PacketBuffer {
    PacketBuffer::new(XDP, frame, HEADROOM, 0)
}

fn names_of(program: &Program) -> Vec<String> {
    program.maps().iter().map(|def| def.name.clone()).collect()
}

fn create(def: &MapDef, table: &Table) -> Result<Map, Failure> {
    let host = Host::new(2, 7);
    let layout = |def: &MapDef| ValueLayout::plain(def.params.value_size as usize);
    let made = |def: &MapDef, inner: Option<&Map>| {
        Map::create_with(&def.params, layout(def), &host, inner)
            .map_err(|errno| failed(format!("{}: {errno}", def.name)))
    };
    let put = |map: &Map, key: u32, value: &[u8]| {
        map.update(&key.to_ne_bytes(), value, 0)
            .map_err(|errno| failed(format!("{}: {errno}", def.name)))
    };
    let Some(template) = def.inner.as_deref() else {
        let map = made(def, None)?;
        if let Some(image) = def.initial_value() {
            put(&map, 0, &image.to_vec())?;
        }
        return Ok(map);
    };
    let inner = made(template, None)?;
    put(&inner, 0, &table.to_bytes())?;
    let map = made(def, Some(&inner))?;
    let stored = One(Arc::new(StoredMap::new(1, Arc::new(inner))));
    map.update_with(&[0; 4], &[0; 4], 0, &stored)
        .map_err(|errno| failed(format!("{}: {errno}", def.name)))?;
    Ok(map)
}

/// A program in the kernel.
pub(super) struct KernelProgram {
    program: LoadedProgram,
    names: Vec<String>,
    maps: Vec<Option<sys::bpf::Map>>,
}

impl KernelProgram {
    pub(super) fn load(program: &Program, table: &Table) -> Result<KernelProgram, Failure> {
        let request = LoadRequest {
            log_level: 4,
            log_size: 1 << 20,
        };
        let Loaded { answer, log, maps } =
            load(program, request).map_err(|fault| failed(format!("{fault:?}")))?;
        let loaded = answer
            .result
            .map_err(|errno| failed(format!("{errno}: {log}")))?;
        for (def, map) in program.maps().iter().zip(&maps) {
            let Some(map) = map else { continue };
            if def.inner.is_some() {
                let request = sys::bpf::MapRequest {
                    map_type: spec::maps::MapKind::Array.number(),
                    key_size: 4,
                    value_size: table.size() as u32,
                    max_entries: 1,
                    ..sys::bpf::MapRequest::default()
                };
                let inner = sys::bpf::Map::create(&request).map_err(failed)?;
                inner.update(&[0; 4], &table.to_bytes()).map_err(failed)?;
                // The outer map holds it from here on.
                let descriptor = inner.descriptor().to_ne_bytes();
                map.update(&[0; 4], &descriptor)
                    .map_err(|errno| failed(format!("{}: {errno}", def.name)))?;
            }
        }
        Ok(KernelProgram {
            program: loaded,
            names: names_of(program),
            maps,
        })
    }

    /// Has the replay read a traffic.
    pub(super) fn put(&self, traffic: &Traffic) -> Result<(), Failure> {
        replay_maps(traffic, |name, key, value| {
            let map = self.names.iter().position(|it| it == name);
            let map = map.and_then(|map| self.maps[map].as_ref());
            let map = map.ok_or_else(|| failed(format!("no map {name}")))?;
            let put = map.update(&key.to_ne_bytes(), value);
            put.map_err(|errno| failed(format!("{name}: {errno}")))
        })
    }

    /// Nanoseconds of a run on a packet, of so many.
    pub(super) fn run(&self, frame: &Frame, repeat: u32) -> Result<(u32, Duration), Failure> {
        let request = TestRun {
            repeat,
            ..TestRun::on(frame)
        };
        let mut out = [0; 256];
        let ran = self
            .program
            .test_run(&request, &mut out, &mut [])
            .map_err(failed)?;
        Ok((ran.retval, ran.duration))
    }
}
