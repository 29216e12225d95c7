//! Runs of a program on a packet.

use std::time::{Duration, Instant};

use ::kernel::maps::RunGuard;
use ::kernel::programs::{PacketInput, PacketProgram, PacketVerdict, verdict};
use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory};
use isa::ebpf::{Imm64, Insn};
use program::{MapId, Program};
use spec::SplitMix;
use spec::programs::ProgramType;
use vm::World;

use super::{ObjectMap, RunError};

/// A program in the form that the engine runs.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) program: Program,
    packets: PacketProgram,
    /// The maps that it uses; instructions name them by their place here.
    maps: Vec<MapId>,
    code: CheckedProgram,
}

impl Prepared {
    pub(super) fn new(program: Program, packets: PacketProgram) -> Prepared {
        let maps = program.used_maps();
        let place = |index: &mut i32| {
            if let Some(at) = maps.iter().position(|map| map.0 as i32 == *index) {
                *index = at as i32;
            }
        };
        let mut insns = program.decode();
        for insn in &mut insns {
            if let Insn::LoadImm64 { imm, .. } = insn
                && let Imm64::MapIndex { index, .. } | Imm64::MapIndexValue { index, .. } = imm
            {
                place(index);
            }
        }
        Prepared {
            packets,
            code: CheckedProgram::new(insns),
            maps,
            program,
        }
    }

    /// File, number and text of the source line of an instruction.
    fn line_at(&self, insn: usize) -> Option<(String, u32, String)> {
        let line = self.program.line_at(insn as u32)?;
        let types = self.program.btf()?;
        let (file, text) = (types.string(line.file), types.string(line.text));
        Some((file.to_string(), line.line, text.to_string()))
    }
}

/// A program of a [`LoadedObject`](super::LoadedObject).
#[derive(Debug)]
pub struct RunnableProgram<'o> {
    prepared: &'o Prepared,
    maps: &'o [Option<ObjectMap>],
    random: &'o mut SplitMix,
    /// Nanoseconds that the time helpers return.
    time: u64,
    limits: Limits,
}

/// What a test run returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestRunOutput {
    /// The low 32 bits of `r0` of the last run.
    pub retval: u32,
    /// What that means.
    pub verdict: PacketVerdict,
    /// The packet after the runs.
    pub data_out: Vec<u8>,
    /// The context after the runs.
    pub ctx_out: Vec<u8>,
    /// Mean time of a run.
    pub duration: Duration,
}

impl<'o> RunnableProgram<'o> {
    pub(super) fn new(
        prepared: &'o Prepared,
        maps: &'o [Option<ObjectMap>],
        random: &'o mut SplitMix,
    ) -> RunnableProgram<'o> {
        RunnableProgram {
            prepared,
            maps,
            random,
            time: 0,
            limits: Limits::default(),
        }
    }

    /// Sets the time of the time helpers, in nanoseconds; it stands still in a run.
    pub fn set_time(&mut self, nanoseconds: u64) {
        self.time = nanoseconds;
    }

    /// Sets the limits of a run; the deadline is that of all runs.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// The program type.
    pub fn kind(&self) -> ProgramType {
        self.prepared.program.kind()
    }

    /// Runs the program on a packet as `BPF_PROG_TEST_RUN` does.
    ///
    /// # Errors
    /// [`RunError::Size`] for packets that the kernel does not take.
    pub fn test_run(&mut self, packet: &[u8]) -> Result<TestRunOutput, RunError> {
        self.test_run_repeated(packet, 1)
    }

    /// Runs the program so many times, at least once, on a packet: each run gets the packet
    /// as the one before left it.
    pub fn test_run_repeated(
        &mut self,
        packet: &[u8],
        repeat: u32,
    ) -> Result<TestRunOutput, RunError> {
        let packets = self.prepared.packets;
        let size = |errno| RunError::Size {
            errno,
            len: packet.len(),
            taken: packets.sizes(packet),
        };
        let mut input = packets.test_input(packet).map_err(size)?;
        let repeat = repeat.max(1);
        let mut retval = 0;
        let start = Instant::now();
        for _ in 0..repeat {
            retval = self.run(&mut input)?;
        }
        Ok(TestRunOutput {
            retval,
            verdict: verdict(self.kind(), retval),
            data_out: input.data_out(),
            ctx_out: input.context_out(),
            duration: start.elapsed() / repeat,
        })
    }

    /// Runs the program on a packet of any length, in one piece.
    pub(super) fn run_captured(&mut self, frame: &[u8]) -> Result<(u32, PacketInput), RunError> {
        let mut input = self.prepared.packets.captured(frame);
        let retval = self.run(&mut input)?;
        Ok((retval, input))
    }

    fn run(&mut self, input: &mut PacketInput) -> Result<u32, RunError> {
        let guard = RunGuard::new();
        let mut memory = Memory::new();
        // The first region has the same address in every run.
        input.set_addresses(Memory::FIRST_REGION as u32);
        memory.add_packet(input.packet.linear_part())?;
        let context = memory.add_context(&mut input.context)?;
        for id in &self.prepared.maps {
            if let Some(map) = self.maps.get(id.0 as usize).and_then(Option::as_ref) {
                memory.add_map(&*map.def.name, &map.map, &guard, map.permission())?;
            }
        }
        let entry = Entry {
            arguments: [memory.address(context), 0, 0, 0, 0],
        };
        let time = self.time;
        let random = &mut *self.random;
        let mut calls = Calls::resolved(|number, arguments, memory| {
            let helper = ::kernel::helpers::find(number)?;
            let mut clock = || time;
            let mut world = World::new(&mut *random, &mut clock, 0);
            Some(helper(arguments, memory, &mut world))
        });
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: None,
        };
        let finish = self.prepared.code.run(cx, entry, &self.limits);
        match finish.outcome {
            Ok(value) => Ok(value as u32),
            Err(trap) => {
                let line = self.prepared.line_at(trap.at);
                Err(RunError::of_trap(trap, line))
            }
        }
    }
}
