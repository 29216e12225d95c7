//! Verified programs as native code and in the threaded interpreter, with maps of our own.

use std::sync::Arc;
use std::time::Duration;

use interp::ThreadedProgram;
use jit::memory::Pool;
use jit::{Features, Native, Options};
use kernel::maps::{Host, Map, Ring, ValueLayout};
use lower::{ContextKind, PacketProgram, VerifiedProgram};
use packet::{Metadata, Packet};
use program::Program;
use spec::SplitMix;
use vm::{
    DirectContext, HEADROOM, Machine, MapHandle, Outcome, PacketBuffer, RunContext, RunGuard, XDP,
};

use super::subject::{Verifier, failed};
use super::workload::Entries;
use crate::Failure;
use crate::race::{Contender, timed};

/// CPU that programs run on.
const CPU: u32 = 0;

/// Runs for which one guard keeps what they look up.
pub(super) const BATCH: u32 = 64;

/// A program with its maps.
pub(super) struct Ours {
    pub(super) native: Native<PacketProgram>,
    threaded: ThreadedProgram<PacketProgram>,
    maps: Vec<Arc<Map>>,
}

impl Ours {
    /// Verifies and compiles a program, and creates its maps with their initial values.
    pub(super) fn new(
        name: &'static str,
        program: &Program,
        verifier: &Verifier,
    ) -> Result<Ours, Failure> {
        let proof = verifier.prove(program)?;
        let mut maps = Vec::new();
        for def in program.maps() {
            let layout = ValueLayout::plain(def.params.value_size as usize);
            let map = Map::create(&def.params, layout, &Host::new(2, 7));
            let map = map.map_err(|errno| failed(format!("{}: {errno}", def.name)))?;
            if let Some(image) = def.initial_value() {
                map.update(&[0; 4], &image.to_vec(), 0)
                    .map_err(|errno| failed(format!("{}: {errno}", def.name)))?;
            }
            maps.push(Arc::new(map));
        }
        let handles: Vec<Option<MapHandle>> =
            maps.iter().map(|map| Some(map.handle().clone())).collect();
        let lowered = VerifiedProgram::from_proof(&proof, &handles, ::kernel::helpers::find_call)
            .map_err(|unfit| failed(unfit.to_string()))?;
        let lowered = lowered
            .packet()
            .ok_or_else(|| failed("a program without a packet".into()))?;
        let options = Options {
            features: Features::detect(),
            ..Options::default()
        };
        let native = Native::compile(&lowered, &options, &Pool::new());
        let threaded = ThreadedProgram::compile(&lowered);
        Ok(Ours {
            threaded: threaded.map_err(|error| failed(error.to_string()))?,
            native: native.map_err(|error| Failure::NotCompiled(name, error))?,
            maps,
        })
    }

    /// Adds entries to a map.
    pub(super) fn fill(&self, map: usize, entries: &Entries) -> Result<(), Failure> {
        for (key, value) in entries.iter() {
            (self.maps[map].update(key, value, 0)).map_err(|errno| failed(errno.to_string()))?;
        }
        Ok(())
    }

    /// Runs on a packet that each run leaves for the next one.
    pub(super) fn contender(&self, packet: &[u8]) -> Running<'_> {
        Running {
            ours: self,
            machine: None,
            packet: PacketBuffer::new(XDP, packet, HEADROOM, 0),
            context: DirectContext::new(ContextKind::Xdp, &[]),
            random: SplitMix::new(1),
        }
    }
}

impl<'o> Running<'o> {
    /// The same in the threaded interpreter.
    pub(super) fn in_interpreter(self) -> Running<'o> {
        Running {
            machine: Some(Box::default()),
            ..self
        }
    }
}

/// Runs of a program.
pub(super) struct Running<'o> {
    ours: &'o Ours,
    /// The machine of the threaded interpreter, if that runs it.
    machine: Option<Box<Machine>>,
    packet: PacketBuffer,
    context: DirectContext,
    random: SplitMix,
}

impl Running<'_> {
    /// The result of so many runs. As in the kernel's test run, one guard lasts for several.
    fn run(&mut self, rounds: u32) -> u32 {
        let Ours {
            native, threaded, ..
        } = self.ours;
        let mut result = 0;
        let (mut guard, mut clock) = (RunGuard::new(), || 0);
        let metadata = Metadata::from_cpu(CPU);
        let no_packet = Packet::whole(&[], &metadata);
        for round in 0..rounds {
            if round % BATCH == 0 {
                drop(guard);
                guard = RunGuard::new();
            }
            let cx = RunContext::new(&no_packet, &mut self.random, Some(&mut clock));
            let (packet, context) = (&mut self.packet, &mut self.context);
            let outcome = match &mut self.machine {
                None => native.run_until(packet, context, &guard, cx, None),
                Some(machine) => threaded.run_until(machine, packet, context, &guard, cx, None),
            };
            match outcome {
                Ok(Outcome::Returned(r0)) => result = r0 as u32,
                Ok(_) | Err(_) => return crate::race::NO_ANSWER,
            }
        }
        result
    }

    /// Discards the records that runs left in ring buffers.
    fn empty_rings(&self) {
        for ring in self
            .ours
            .maps
            .iter()
            .filter_map(|map| map.of_kind::<Ring>())
        {
            while ring.consume().is_some() {}
        }
    }
}

impl Contender<()> for Running<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.run(1)
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        self.empty_rings();
        timed(|| self.run(rounds))
    }
}
