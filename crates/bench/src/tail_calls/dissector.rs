//! A flow dissector of which each protocol is a program: results and times of frames here and
//! in the kernel's test run.
//!
//! Runs of both sides begin with new flow keys. What a run costs without anything in it is
//! measured by a program that does nothing, and subtracted in the summary.

use std::time::Duration;

use beebox::internal::object::Object;
use beebox::internal::run::{LoadOptions, LoadedObject};
use kernel_client::object::ObjectInKernel;
use sys::bpf::TestRun;

use super::frames::{FRAMES, frame};
use super::{BEEBOX, KERNEL, failed};
use crate::Failure;
use crate::race::{Contender, NO_ANSWER, Race};
use crate::report::{Report, Unit};

/// The program that does nothing.
pub(super) const NOTHING: &str = "flow dissector, nothing";

const OBJECT: &[u8] = include_bytes!("../../objects/tail-calls/dissector.bpf.o");

/// Title of a frame's workload.
pub(super) fn title(frame: &str) -> String {
    format!("flow dissector, {frame}")
}

/// Titles of the workloads that dissect.
pub(super) fn titles() -> impl Iterator<Item = String> {
    FRAMES.iter().map(|(name, _)| title(name))
}

/// Measures every frame.
pub(super) fn measure(samples: u32, report: &mut Report) -> Result<(), Failure> {
    let kernel = kernel_data::linux_6_18_minimal();
    let object = Object::open(OBJECT).map_err(|error| failed(error.to_string()))?;
    let ours = LoadedObject::load(&object, &kernel, &LoadOptions::default());
    let mut ours = ours.map_err(|error| failed(error.to_string()))?;
    let linked = object.link(&kernel);
    let linked = linked.map_err(|error| failed(error.to_string()))?;
    let theirs = ObjectInKernel::load(linked.programs.iter().map(|linked| &linked.program));
    if let Err(why) = &theirs {
        let note = format!("The kernel does not take the flow dissector: {why}.");
        report.notes.push(note);
    }
    let dissected = FRAMES
        .iter()
        .map(|(name, _)| ("dissect", title(name), *name));
    let nothing = ("nothing", NOTHING.to_owned(), FRAMES[0].0);
    for (program, title, name) in [nothing].into_iter().chain(dissected) {
        let packet = frame(name);
        let mut race = Race::new(title.clone(), &[()]);
        race.add_contender(BEEBOX, Ours::new(&mut ours, program, &packet));
        if let Ok(theirs) = &theirs {
            let (object, packet) = (theirs, &packet[..]);
            race.add_contender(
                KERNEL,
                KernelProgram {
                    object,
                    program,
                    packet,
                },
            );
        }
        for (engine, nanoseconds) in race.run(samples)? {
            report.add_row(title.clone(), engine, Unit::NsPerRun, nanoseconds);
        }
    }
    Ok(())
}

/// Result and flow keys in one number.
fn digest(retval: u32, keys: &[u8]) -> u32 {
    let fold = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add((*byte).into());
    keys.iter().fold(retval, fold)
}

/// Runs as native code.
struct Ours<'o> {
    object: &'o mut LoadedObject,
    program: &'static str,
    packet: &'o [u8],
}

impl<'o> Ours<'o> {
    fn new(object: &'o mut LoadedObject, program: &'static str, packet: &'o [u8]) -> Ours<'o> {
        Ours {
            object,
            program,
            packet,
        }
    }

    /// The digest of the last run, and the mean time.
    fn run(&mut self, rounds: u32) -> Option<(u32, Duration)> {
        let mut program = self.object.program(self.program)?;
        if program.fallback_reason().is_some() {
            return None;
        }
        let run = program.test_run_repeated(self.packet, rounds).ok()?;
        Some((digest(run.retval, &run.data_out), run.duration * rounds))
    }
}

impl Contender<()> for Ours<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.run(1).map_or(NO_ANSWER, |(answer, _)| answer)
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        self.run(rounds).map_or(Duration::MAX, |(_, time)| time)
    }
}

/// Runs in the kernel, timed by its own clock.
struct KernelProgram<'k> {
    object: &'k ObjectInKernel,
    program: &'static str,
    packet: &'k [u8],
}

impl KernelProgram<'_> {
    fn run(&self, rounds: u32) -> Option<(u32, Duration)> {
        let program = self.object.program(self.program)?;
        let mut keys = vec![0; 256];
        let request = TestRun {
            repeat: rounds,
            ..TestRun::on(self.packet)
        };
        let run = program.test_run(&request, &mut keys, &mut []).ok()?;
        Some((
            digest(run.retval, &keys[..run.data_len]),
            run.duration * rounds,
        ))
    }
}

impl Contender<()> for KernelProgram<'_> {
    fn answer(&mut self, _: &()) -> u32 {
        self.run(1).map_or(NO_ANSWER, |(answer, _)| answer)
    }

    fn pass(&mut self, _: &[()], rounds: u32) -> Duration {
        self.run(rounds).map_or(Duration::MAX, |(_, time)| time)
    }
}
