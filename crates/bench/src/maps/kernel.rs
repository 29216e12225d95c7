//! The same programs in the running kernel, run by `BPF_PROG_TEST_RUN`.

use std::time::Duration;

use kernel_client::load::{LoadRequest, Loaded, load};
use program::Program;
use sys::bpf::{LoadedProgram, LogLevel, Map, MapRequest, RingBuffer, TestRun};

use super::subject::failed;
use super::workload::Entries;
use crate::Failure;
use crate::race::{Contender, NO_ANSWER};
use crate::report::Report;

/// A program in the kernel, with its maps.
pub(super) struct KernelProgram {
    program: LoadedProgram,
    maps: Vec<Option<Map>>,
}

/// True if this process may create maps; a note says why if not.
pub(super) fn is_available(report: &mut Report) -> bool {
    let request = MapRequest {
        map_type: spec::maps::MapKind::Array.number(),
        key_size: 4,
        value_size: 4,
        max_entries: 1,
        ..MapRequest::default()
    };
    let created = Map::create(&request);
    if let Err(errno) = &created {
        let note = format!("The kernel takes no maps from us ({errno}).");
        report.notes.push(note);
    }
    created.is_ok()
}

impl KernelProgram {
    pub(super) fn load(name: &str, program: &Program) -> Result<KernelProgram, Failure> {
        let request = LoadRequest {
            log_level: LogLevel::LEVEL1.0,
            log_size: 1 << 20,
        };
        let refused = |said: String| failed(format!("the kernel refuses {name}: {said}"));
        let Loaded { answer, log, maps } =
            load(program, request).map_err(|fault| refused(format!("{fault:?}")))?;
        Ok(KernelProgram {
            program: answer
                .result
                .map_err(|errno| refused(format!("{errno}\n{log}")))?,
            maps,
        })
    }

    /// Adds entries to a map.
    pub(super) fn fill(&self, map: usize, entries: &Entries) -> Result<(), Failure> {
        if entries.is_empty() {
            // The program may use no map.
            return Ok(());
        }
        let map = self.maps[map]
            .as_ref()
            .ok_or_else(|| failed("a map is not used".into()))?;
        for (key, value) in entries.iter() {
            (map.update(key, value)).map_err(|errno| failed(errno.to_string()))?;
        }
        Ok(())
    }

    /// Runs on a packet that each run leaves for the next one.
    pub(super) fn contender(&self, packet: Vec<u8>) -> Running<'_> {
        let maps = self.maps.iter().flatten();
        Running {
            theirs: self,
            rings: maps.filter_map(|map| RingBuffer::open(map).ok()).collect(),
            packet,
        }
    }
}

/// Runs of a program.
pub(super) struct Running<'t> {
    theirs: &'t KernelProgram,
    rings: Vec<RingBuffer>,
    packet: Vec<u8>,
}

impl Running<'_> {
    fn run(&mut self, repeat: u32) -> Option<(u32, Duration)> {
        for ring in &mut self.rings {
            while ring.next_record().is_some() {}
        }
        let run = TestRun {
            repeat,
            ..TestRun::on(&self.packet)
        };
        let mut after = vec![0; self.packet.len()];
        let tested = (self.theirs.program)
            .test_run(&run, &mut after, &mut [])
            .ok()?;
        self.packet = after;
        Some((tested.retval, tested.duration))
    }
}

impl Contender<()> for Running<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.run(1).map_or(NO_ANSWER, |(answer, _)| answer)
    }

    /// By the kernel's own clock, without what the system call costs.
    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        let (_, mean) = self
            .run(rounds)
            .unwrap_or((NO_ANSWER, Duration::MAX / rounds));
        mean * rounds
    }
}
