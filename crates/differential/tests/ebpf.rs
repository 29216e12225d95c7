//! Properties of generated eBPF programs (safety, coverage), and the comparison of every
//! engine with the reference evaluator.
//!
//! `BEEBOX_ORACLE_PROGRAMS` and `BEEBOX_ORACLE_SEED` set the programs that the engines are
//! compared on. A long comparison says how far it has come, so that a crash names the seeds
//! to look at.

use beebox_differential::ebpf::page::compare_engines_in_pieces;
use isa::ebpf::Insn;
use spec::SplitMix;
use testkit::ebpf::coverage::Coverage;
use testkit::ebpf::reference::{self, Limits};
use testkit::ebpf::{Choices, Dialect, Entry, Generator};

/// Programs whose promises are checked.
const PROGRAMS: u64 = 20_000;
/// Programs on which the engines are compared, unless the environment says
/// otherwise.
const COMPARED: u64 = 20_000;

fn listing(code: &[Insn]) -> String {
    let lines = code.iter().enumerate();
    lines.map(|(at, insn)| format!("{at}: {insn}\n")).collect()
}

fn check(dialect: Dialect) {
    let generator = Generator::new(dialect);
    let mut coverage = Coverage::new();
    for seed in 0..PROGRAMS {
        let mut choices = Choices::from_seed(seed);
        let program = generator.program(&mut choices);
        coverage.made(&program.notes);
        let code = program.code(Entry::Memory);
        let words = program.memory(&mut choices);
        let mut memory: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut random = SplitMix::new(seed);
        let limits = Limits::default();
        let ended = reference::run(&code, &mut memory, &mut random, limits, &mut coverage);
        if let Err(fault) = ended {
            panic!("seed {seed}: {fault:?}\n{}", listing(&code));
        }
    }
    let missing = coverage.missing(dialect);
    assert!(missing.is_empty(), "not reached:\n{}", missing.join("\n"));
}

#[oracle::test]
fn programs_for_engines_are_safe_and_reach_everything() {
    check(Dialect::Engines);
}

#[oracle::test]
fn programs_for_the_kernel_are_safe_and_reach_everything() {
    check(Dialect::Kernel);
}

#[oracle::test]
fn every_engine_computes_what_the_reference_does() {
    let seeds = oracle::seeds(COMPARED);
    let programs = seeds.end - seeds.start;
    let begun = |start| {
        if programs > COMPARED {
            eprintln!("seeds from {start}");
        }
    };
    let tally = compare_engines_in_pieces(seeds, begun);
    if let Some(difference) = &tally.difference {
        panic!("{}", difference.describe());
    }
    println!(
        "{} programs, {} runs, no difference",
        tally.programs, tally.runs
    );
    if programs >= COMPARED {
        let missing = tally.coverage.missing(Dialect::Engines);
        assert!(missing.is_empty(), "not reached:\n{}", missing.join("\n"));
    }
}
