//! Verified programs with maps, run as native code and in the threaded interpreter with and
//! without each pass, in the checked engine and in the running kernel: equal results, packets, contexts and maps, those
//! of the programs that they call and of the timers that they start included.
//!
//! # Modules
//!
//! Generated programs with maps, timers, sockets, tail calls and changes of packets (`generate.rs`,
//! `generate/`, `maps.rs`) as native code with and without each pass, in the checked engine
//! (`engines.rs`) and in the kernel (`in_kernel.rs`), on a machine whose sockets are real there
//! (`machine.rs`).

mod engines;
mod generate;
mod in_kernel;
mod machine;
mod maps;

pub use generate::{Features, Generated, build, generate};
pub use machine::Machine;
pub use maps::create as create_maps;

use std::fmt;
use std::ops::AddAssign;

use program::Program;
use spec::Kernel;
use spec::registry::Registry;
use verifier::Proof;

use crate::direct::DirectEngine;
use engines::{Checked, Direct};
use in_kernel::InKernel;
use lower::{Pass, Passes};
use testkit::ebpf::Choices;

/// Runs of a program, each on a packet of its own and on the next CPU; maps last from run to run.
const RUNS: u64 = 4;

/// The kernel that programs are verified for.
#[derive(Clone, Copy)]
pub struct Setting<'k> {
    /// The description of the kernel.
    pub kernel: &'k Kernel,
    /// Its registry.
    pub registry: &'k Registry,
}

/// Counts of equal results of one program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Equal {
    /// Runs without checks that were compared with the checked engine.
    pub runs: u64,
    /// Runs that the running kernel made too.
    pub witnessed: u64,
    /// Functions that timers called after runs.
    pub timers: u64,
    /// Sockets that programs found.
    pub sockets: u64,
    /// Tail calls.
    pub tail_calls: u64,
}

impl AddAssign for Equal {
    fn add_assign(&mut self, other: Equal) {
        self.runs += other.runs;
        self.witnessed += other.witnessed;
        self.timers += other.timers;
        self.sockets += other.sockets;
        self.tail_calls += other.tail_calls;
    }
}

impl fmt::Display for Equal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} runs without checks equal those in the checked engine, {} those in the running \
             kernel; in the checked engine {} functions of timers, {} sockets found, {} tail calls",
            self.runs, self.witnessed, self.timers, self.sockets, self.tail_calls
        )
    }
}

/// A program that does not run alike everywhere, or does not run at all.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed of the program.
    pub seed: u64,
    /// The difference.
    pub what: String,
    /// The program.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { seed, what, text } = self;
        write!(f, "seed {seed}: {what}\n{text}")
    }
}

/// Generates the program of a seed and compares its runs on a machine: the engines without
/// checks with all passes, with none and without one of them, the checked engine and, if `asks_kernel`, the
/// running kernel, whose machine it is then.
pub fn compare(
    setting: Setting<'_>,
    machine: &Machine,
    seed: u64,
    asks_kernel: bool,
) -> Result<Equal, Difference> {
    let mut choices = Choices::from_seed(seed);
    let features = match asks_kernel {
        true => Features::WITNESSED,
        false => Features::ALL,
    };
    let Generated { text, programs } = generate(&mut choices, features);
    let difference = |what: String| Difference {
        seed,
        what,
        text: text.clone(),
    };
    let programs = programs.map_err(difference)?;
    let run = Runs {
        setting,
        machine,
        programs: &programs,
    };
    run.compare(&mut choices, seed, asks_kernel)
        .map_err(difference)
}

/// Runs of programs, the first of which may call the others.
struct Runs<'r> {
    setting: Setting<'r>,
    machine: &'r Machine,
    programs: &'r [Program],
}

impl Runs<'_> {
    fn compare(
        &self,
        choices: &mut Choices<'_>,
        seed: u64,
        asks_kernel: bool,
    ) -> Result<Equal, String> {
        let (machine, program) = (self.machine, &self.programs[0]);
        let proofs = self.proofs()?;
        let left_out = Pass::ALL[seed as usize % Pass::ALL.len()];
        let mut direct = Vec::new();
        for passes in [Passes::ALL, Passes::NONE, Passes::ALL.without(left_out)] {
            for engine in DirectEngine::ALL {
                let compiled = Direct::new(*engine, &proofs, passes, machine);
                direct.push(compiled.map_err(|unfit| format!("{engine}, {passes:?}: {unfit}"))?);
            }
        }
        let checked = Checked::new(self.programs, machine);
        let theirs = match asks_kernel {
            true => Some(InKernel::load(self.programs)?),
            false => None,
        };
        let mut equal = Equal::default();
        for run in 0..RUNS {
            let packet = packet(choices);
            let input = engines::input(program, &packet, machine);
            let expected = checked.run(input.clone(), machine, run)?;
            let calls = checked.fire(machine, run)?;
            equal.timers += calls;
            for direct in &direct {
                let found = direct.run(input.clone(), machine, run);
                let found_calls = direct.fire(machine, run)?;
                if (&found, found_calls) != (&expected, calls) {
                    return Err(format!(
                        "run {run}, {} with {:?}: {found:?}, {found_calls} timers, checked: \
                         {expected:?}, {calls}",
                        direct.engine, direct.passes
                    ));
                }
                equal.runs += 1;
            }
            if let Some(theirs) = &theirs {
                theirs.compare(&packet, machine.cpu(run), &expected)?;
                if calls > 0 {
                    theirs.await_timers(program, &maps::timed(program, &checked.maps))?;
                }
                equal.witnessed += 1;
            }
        }
        [equal.sockets, equal.tail_calls] = checked.found.get();
        let expected = maps::contents(program, &checked.maps);
        for direct in &direct {
            let found = maps::contents(program, &direct.maps);
            if found != expected {
                return Err(format!(
                    "maps, {} with {:?}: {found:?}, checked: {expected:?}",
                    direct.engine, direct.passes
                ));
            }
        }
        if let Some(theirs) = &theirs {
            theirs.compare_maps(program, &expected)?;
        }
        Ok(equal)
    }

    fn proofs(&self) -> Result<Vec<Proof>, String> {
        let Setting { kernel, registry } = self.setting;
        let prove = |program| {
            let proof = Proof::of(program, kernel, registry);
            proof.map_err(|refused| format!("{:?}", refused.verdict))
        };
        self.programs.iter().map(prove).collect()
    }
}

/// A packet: an Ethernet frame, often with the start of an IPv4 or IPv6 packet.
fn packet(choices: &mut Choices<'_>) -> Vec<u8> {
    let len = 60 + choices.below(100) as usize;
    let mut packet: Vec<u8> = (0..len).map(|_| choices.below(256) as u8).collect();
    match choices.below(4) {
        0 | 1 => packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]),
        2 => packet[12..15].copy_from_slice(&[0x86, 0xdd, 0x60]),
        _ => {}
    }
    packet
}
