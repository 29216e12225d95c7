//! What generated eBPF programs promise: they are safe, whoever runs them can't
//! tell where their memory is, and together they reach everything.

use beebox_testkit::ebpf::reach::Reach;
use beebox_testkit::ebpf::reference::{self, BASE, Limits};
use beebox_testkit::ebpf::{Choices, Dialect, Entry, Generator};
use isa::ebpf::Insn;
use spec::SplitMix;

const PROGRAMS: u64 = 20_000;

fn listing(code: &[Insn]) -> String {
    let lines = code.iter().enumerate();
    lines.map(|(at, insn)| format!("{at}: {insn}\n")).collect()
}

fn check(dialect: Dialect) {
    let generator = Generator::new(dialect);
    let mut reach = Reach::new();
    for seed in 0..PROGRAMS {
        let mut choices = Choices::from_seed(seed);
        let program = generator.program(&mut choices);
        reach.made(&program.notes);
        let code = program.code(Entry::Memory);
        let words = program.memory(&mut choices);
        let memory: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut run = |base| {
            let limits = Limits {
                base,
                ..Limits::default()
            };
            let mut memory = memory.clone();
            let mut random = SplitMix::new(seed);
            let ended = reference::run(&code, &mut memory, &mut random, limits, &mut reach);
            let r0 =
                ended.unwrap_or_else(|fault| panic!("seed {seed}: {fault:?}\n{}", listing(&code)));
            (r0, memory)
        };
        assert!(
            run(BASE) == run(BASE + 0x1234_5678_9000),
            "seed {seed}: it tells where its memory is\n{}",
            listing(&code)
        );
    }
    let missing = reach.missing(dialect);
    assert!(missing.is_empty(), "not reached:\n{}", missing.join("\n"));
}

#[test]
fn programs_for_engines_are_safe_and_reach_everything() {
    check(Dialect::Engines);
}

#[test]
fn programs_for_the_kernel_are_safe_and_reach_everything() {
    check(Dialect::Kernel);
}
