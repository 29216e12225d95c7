//! The budget of the analysis: any filter gets its table, or an error that names an
//! instruction, in bounded time and memory.
//!
//! Programs are generated from fixed seeds, in kinds of rising difficulty. The
//! ignored test measures 10,000 of them (`BEEBOX_ORACLE_PROGRAMS` sets another number)
//! and prints the table that `cargo xtask seccomp` writes into docs/seccomp.md.
//! Time is that of the processor, so that other work on the machine does not
//! count; memory is the peak of the whole process.

mod programs;

use std::fs;
use std::time::Duration;

use beebox_seccomp::{Analysis, Arch, FilterProgram, Stack, Table, TooComplex};
use isa::classic::SockFilter;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sys::process::thread_time;

/// Limits of an optimised build.
const MAX_TIME: Duration = Duration::from_secs(2);
const MAX_KILOBYTES: u64 = 200 * 1024;

/// A kind of generated programs.
struct Kind {
    name: &'static str,
    /// Share of all programs in percent.
    percent: u64,
    generate: fn(&mut TestRunner) -> Vec<SockFilter>,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "short, as in the property tests (up to 45 instructions)",
        percent: 60,
        generate: |random| draw(programs::filter(), random),
    },
    Kind {
        name: "up to 200 instructions, nearly all of them reached",
        percent: 20,
        generate: |random| draw(programs::deep(10..190), random),
    },
    Kind {
        name: "up to 4,096 instructions, with returns in between",
        percent: 5,
        generate: |random| draw(programs::filter_of(40..4088), random),
    },
    Kind {
        name: "up to 4,096 instructions, nearly all of them reached",
        percent: 10,
        generate: |random| draw(programs::deep(190..4088), random),
    },
    Kind {
        name: "up to 4,096 instructions, most of them arithmetic on two words",
        percent: 5,
        generate: |random| draw(programs::arithmetic(40..4088), random),
    },
];

fn draw(
    strategy: impl Strategy<Value = Vec<SockFilter>>,
    random: &mut TestRunner,
) -> Vec<SockFilter> {
    strategy.new_tree(random).expect("a program").current()
}

/// The program of a kind for a seed, as a stack of one filter; `None` if the
/// kernel refuses it for its length after conversion.
fn stack(kind: &Kind, seed: u64) -> Option<Stack> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let program = (kind.generate)(&mut TestRunner::new_with_rng(Config::default(), random));
    let mut stack = Stack::default();
    stack.install(FilterProgram::new(&program).ok()?).ok()?;
    Some(stack)
}

fn table(stack: &Stack) -> Result<Table, TooComplex> {
    Analysis::new(stack)?.table(Arch::X86_64)
}

#[test]
fn a_filter_gets_its_table_or_an_error_that_names_an_instruction() {
    for kind in KINDS {
        let (mut programs, mut answered) = (0, 0);
        for stack in (0..2 * kind.percent).filter_map(|seed| stack(kind, seed)) {
            programs += 1;
            match table(&stack) {
                Ok(table) => {
                    answered += 1;
                    assert!(table.groups.iter().all(|group| !group.cases.is_empty()));
                }
                Err(TooComplex { filter, insn }) => {
                    assert!(insn < stack.filters()[filter].checked().insns().len());
                }
            }
        }
        assert!(answered * 100 >= programs * 90, "{}: {answered}", kind.name);
    }
}

/// More products than an analysis names, each of the last one.
fn products() -> Stack {
    use isa::classic::{AluOp, Cond, Insn, Operand, Size};
    let load = |k| Insn::LoadAbs { size: Size::W, k };
    let multiply = Insn::Alu {
        op: AluOp::Mul,
        src: Operand::X,
    };
    let mut insns = vec![load(16), Insn::Tax, load(24)];
    insns.extend([multiply; 1600]);
    insns.push(Insn::Jump {
        cond: Cond::Gt,
        src: Operand::K(5),
        jt: 0,
        jf: 1,
    });
    insns.extend([0x5_0001, 0x7fff_0000].map(Insn::RetK));
    let code: Vec<SockFilter> = insns.into_iter().map(Insn::encode).collect();
    let mut stack = Stack::default();
    stack.install(FilterProgram::new(&code).unwrap()).unwrap();
    stack
}

#[test]
fn an_error_names_the_instruction_where_the_analysis_stopped() {
    // A generated program of each of the last kinds whose analysis exceeds the budget.
    let generated = [(2, 276), (3, 742), (4, 375)];
    let generated = generated.map(|(kind, seed)| stack(&KINDS[kind], seed).unwrap());
    for stack in [products()].into_iter().chain(generated) {
        let began = thread_time();
        let error = table(&stack).unwrap_err();
        let insns = stack.filters()[error.filter].checked().insns();
        assert!((1..insns.len()).contains(&error.insn), "{error}");
        let message = format!("too complex, at instruction {}", error.insn);
        assert_eq!(error.to_string(), message);
        // In whatever build, on whatever machine.
        assert!(thread_time() - began < Duration::from_secs(60));
    }
}

/// The peak of the process's memory since the last call, in KiB.
fn peak_memory() -> Result<u64, String> {
    let status = "/proc/self/status";
    let text = fs::read_to_string(status).map_err(|error| format!("{status}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    let reset = "/proc/self/clear_refs";
    fs::write(reset, "5").map_err(|error| format!("{reset}: {error}"))?;
    peak.ok_or_else(|| format!("{status} has no VmHWM"))
}

#[derive(Default)]
struct Measured {
    programs: u64,
    exact: u64,
    shortened: u64,
    refused: u64,
    worst: Duration,
    kilobytes: u64,
}

#[test]
#[ignore = "measures; run in an optimised build by `cargo xtask seccomp`"]
fn measure() {
    if oracle::found("memory of the seccomp analysis", peak_memory()).is_none() {
        return;
    }
    let seeds = oracle::seeds(10_000);
    let programs = seeds.end - seeds.start;
    println!(
        "| programs | number | exact table | table with shortened expressions | too complex | worst time | most memory |"
    );
    println!("|---|--:|--:|--:|--:|--:|--:|");
    for kind in KINDS {
        let mut found = Measured::default();
        for seed in seeds.start..seeds.start + programs * kind.percent / 100 {
            let Some(stack) = stack(kind, seed) else {
                continue;
            };
            peak_memory().unwrap();
            let began = thread_time();
            let answer = table(&stack);
            let took = thread_time() - began;
            found.programs += 1;
            match answer {
                // Abbreviated expressions contain an ellipsis.
                Ok(table) if format!("{table:?}").contains('…') => found.shortened += 1,
                Ok(_) => found.exact += 1,
                Err(_) => found.refused += 1,
            }
            found.worst = found.worst.max(took);
            let kilobytes = peak_memory().unwrap();
            found.kilobytes = found.kilobytes.max(kilobytes);
            assert!(took < MAX_TIME, "{}, seed {seed}: {took:?}", kind.name);
            assert!(kilobytes < MAX_KILOBYTES, "{}, seed {seed}", kind.name);
        }
        println!(
            "| {} | {} | {} | {} | {} | {:.2} s | {} MB |",
            kind.name,
            found.programs,
            found.exact,
            found.shortened,
            found.refused,
            found.worst.as_secs_f64(),
            found.kilobytes / 1024
        );
    }
}
