//! Verified programs with maps, run as native code with and without each pass, in the
//! checked engine and in the running kernel: equal results, packets, contexts and maps.

mod engines;
mod generate;
mod maps;

pub use generate::{Features, Generated, build, generate};
pub use maps::create as create_maps;

use std::fmt;

use program::Program;
use spec::Kernel;
use spec::registry::Registry;
use sys::bpf::TestRun;
use verifier::Proof;

use crate::ebpf::Choices;
use crate::kernel::load::{LoadRequest, Loaded, load};
use engines::{Checked, Left, Native};
use lower::{Pass, Passes};

/// Runs of a program, each on a packet of its own; maps last from run to run.
const RUNS: u64 = 4;

/// Bytes by which programs make packets longer at most.
const ROOM: usize = 4096;

/// The kernel that programs are verified for.
#[derive(Clone, Copy)]
pub struct Setting<'k> {
    /// The description of the kernel.
    pub kernel: &'k Kernel,
    /// What it offers to programs.
    pub registry: &'k Registry,
}

/// What a comparison of one program found equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Equal {
    /// Runs of native code that were compared with the checked engine.
    pub runs: u64,
    /// Runs that the running kernel made too.
    pub witnessed: u64,
}

/// A program that does not run alike everywhere, or does not run at all.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The seed of the program.
    pub seed: u64,
    /// What differs.
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

/// Generates the program of a seed and compares its runs: native code with all passes, with
/// none and without one of them, the checked engine and, if `asks_kernel`, the running
/// kernel.
pub fn compare(setting: Setting<'_>, seed: u64, asks_kernel: bool) -> Result<Equal, Difference> {
    let mut choices = Choices::from_seed(seed);
    let features = match asks_kernel {
        true => Features::WITNESSED,
        false => Features::ALL,
    };
    let Generated { text, program } = generate(&mut choices, features);
    let difference = |what: String| Difference {
        seed,
        what,
        text: text.clone(),
    };
    let program = program.map_err(difference)?;
    run_all(setting, &program, &mut choices, seed, asks_kernel).map_err(difference)
}

fn run_all(
    setting: Setting<'_>,
    program: &Program,
    choices: &mut Choices<'_>,
    seed: u64,
    asks_kernel: bool,
) -> Result<Equal, String> {
    let proof = Proof::of(program, setting.kernel, setting.registry)
        .map_err(|refused| format!("{:?}", refused.verdict))?;
    let left_out = Pass::ALL[seed as usize % Pass::ALL.len()];
    let native = [Passes::ALL, Passes::NONE, Passes::ALL.without(left_out)]
        .map(|passes| Native::new(&proof, passes).map_err(|unfit| format!("{passes:?}: {unfit}")));
    let native = native.into_iter().collect::<Result<Vec<_>, _>>()?;
    let checked = Checked::new(program);
    let theirs = match asks_kernel {
        true => Some(loaded(program)?),
        false => None,
    };
    let mut equal = Equal::default();
    for run in 0..RUNS {
        let packet = packet(choices);
        let input = engines::input(program, &packet);
        let expected = checked.run(input.clone(), run)?;
        for native in &native {
            let found = native.run(input.clone(), run);
            if found != expected {
                return Err(format!(
                    "run {run}, native with {:?}: {found:?}, checked: {expected:?}",
                    native.passes
                ));
            }
            equal.runs += 1;
        }
        if let Some(theirs) = &theirs {
            compare_with_kernel(theirs, &packet, &expected)?;
            equal.witnessed += 1;
        }
    }
    let expected = maps::contents(program, &checked.maps);
    for native in &native {
        let found = maps::contents(program, &native.maps);
        if found != expected {
            return Err(format!(
                "maps, native with {:?}: {found:?}, checked: {expected:?}",
                native.passes
            ));
        }
    }
    if let Some(theirs) = &theirs {
        let found = maps::contents_in_kernel(program, &theirs.maps);
        let ours = expected.iter().zip(&found);
        if let Some((ours, theirs)) = ours.filter(|(_, it)| it.is_some()).find(|(a, b)| a != b) {
            return Err(format!("maps: {ours:?}, in the kernel {theirs:?}"));
        }
    }
    Ok(equal)
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

fn loaded(program: &Program) -> Result<Loaded, String> {
    let request = LoadRequest {
        log_level: 1,
        log_size: 1 << 20,
    };
    let loaded = load(program, request).map_err(|fault| format!("{fault:?}"))?;
    match &loaded.answer.result {
        Ok(_) => Ok(loaded),
        Err(errno) => Err(format!("the kernel: {errno}\n{}", loaded.log)),
    }
}

fn compare_with_kernel(theirs: &Loaded, packet: &[u8], ours: &Left) -> Result<(), String> {
    let Ok(loaded) = &theirs.answer.result else {
        return Err("the kernel has no program".into());
    };
    let mut data = vec![0; packet.len() + ROOM];
    let result = loaded.test_run(&TestRun::on(packet), &mut data, &mut []);
    let result = result.map_err(|errno| format!("the kernel's test run: {errno}"))?;
    data.truncate(result.data_len);
    match result.retval == ours.r0 as u32 && data == ours.data {
        true => Ok(()),
        false => Err(format!(
            "{ours:?}, in the kernel {} {data:02x?}",
            result.retval
        )),
    }
}
