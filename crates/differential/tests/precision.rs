//! Precision tracking on families of programs with long histories: the counts are the
//! running kernel's, the switch `precision-skip` changes none of them, and the stress
//! switches do not change the verdict.

use std::fmt::Write as _;

use isa::ebpf::{assemble, encode};
use program::Program;
use spec::programs::ProgramType;
use sys::bpf::{LogLevel, ProgLoad};
use verifier::{Options, Stress, Verdict, Verification, verify};

const RANDOM: &str = "call 7\n";

/// Branches on one unknown value, which is exact on some paths.
fn branches(count: u32) -> String {
    let mut text = format!("{RANDOM}r6 = r0\n");
    for n in 0..count {
        let (a, b) = (2 * n, 2 * n + 1);
        let _ = writeln!(text, "if r6 != {a} goto a{n}\nr6 += 1\na{n}:");
        let _ = writeln!(text, "if r6 != {b} goto b{n}\nr6 += -1\nb{n}:");
    }
    text + "r0 = r6\nexit\n"
}

/// A value that wanders between registers and stack slots before it is an offset.
fn spills(count: u32) -> String {
    let mut text = format!("r1 = 0\n{RANDOM}r6 = r0\nr6 &= 7\n");
    for n in 0..count {
        let slot = 8 * (n % 16 + 2);
        let _ = writeln!(
            text,
            "*(u64 *)(r10 - {slot}) = r6\nr7 = *(u64 *)(r10 - {slot})"
        );
        let _ = writeln!(text, "r6 = r7\nif r6 > {} goto out", n % 7 + 1);
    }
    text + "*(u64 *)(r10 - 8) = 0\nr2 = r10\nr2 += -8\nr2 += r6\n*(u8 *)(r2 + 0) = 1\nout:\nr0 = 0\nexit\n"
}

/// Calls of one function whose result is compared.
fn calls(count: u32) -> String {
    let mut text = format!("{RANDOM}r6 = r0\nr6 &= 3\n");
    for n in 0..count {
        let _ = writeln!(
            text,
            "r1 = r6\ncall pick\nif r0 == {} goto l{n}\nr6 = r0\nl{n}:",
            n % 4
        );
    }
    text + "r0 = r6\nexit\npick:\nr0 = r1\nif r0 == 2 goto more\nr0 += 1\nr0 &= 3\nmore:\nexit\n"
}

/// A counted loop.
fn rounds(count: u32) -> String {
    format!(
        "r6 = 0\nr7 = 0\nagain:\n{RANDOM}r7 ^= r0\nr6 += 1\nif r6 < {count} goto again\nr0 = r6\nexit\n"
    )
}

fn programs() -> Vec<(String, Program)> {
    let families: [Family; 4] = [
        ("branches", branches),
        ("spills", spills),
        ("calls", calls),
        ("rounds", rounds),
    ];
    let sizes = [1, 4, 16, 48, 160];
    let all = families
        .into_iter()
        .flat_map(|(name, make)| sizes.map(|size| (name, size, make(size))));
    all.map(|(name, size, text)| {
        let insns = encode(&assemble(&text).expect("a program")).expect("slots");
        let builder = Program::builder(ProgramType::SocketFilter, insns).license("GPL");
        (
            format!("{name} {size}"),
            builder.build().expect("a valid program"),
        )
    })
    .collect()
}

fn run(program: &Program, options: &Options) -> Verification {
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("a registry");
    verify(program, &kernel, registry, options)
}

/// The kernel's instruction, state and peak counts, and whether it accepts.
fn ask(program: &Program) -> Result<(bool, [u32; 4]), String> {
    let request = ProgLoad::new(ProgramType::SocketFilter.number(), program.insns())
        .with_log(LogLevel::STATS);
    let (accepted, log) = match request.load() {
        Ok((_, log)) => (true, log),
        Err(refused) if refused.log.contains("processed ") => (false, refused.log),
        Err(refused) => return Err(format!("{:?}", refused.errno)),
    };
    let line = log
        .lines()
        .find(|line| line.starts_with("processed "))
        .ok_or("no counts")?;
    let numbers: Vec<u32> = line
        .split([' ', ')'])
        .filter_map(|word| word.parse().ok())
        .collect();
    match numbers[..] {
        [insns, _, per_insn, total, peak, ..] => Ok((accepted, [insns, per_insn, total, peak])),
        _ => Err(format!("counts of another form: {line}")),
    }
}

fn counts(done: &Verification) -> [u32; 4] {
    let of = done.statistics;
    [
        of.insns_processed,
        of.max_states_per_insn,
        of.total_states,
        of.peak_states,
    ]
}

/// Name, and the text of the program of a size.
type Family = (&'static str, fn(u32) -> String);

#[oracle::test]
fn counts_are_the_running_kernels() {
    let programs = programs();
    for (name, program) in &programs {
        let Some((accepted, theirs)) = oracle::found("the running kernel's verifier", ask(program))
        else {
            return;
        };
        let done = run(program, &Options::default());
        assert_eq!(
            (done.verdict == Verdict::Accepted, counts(&done)),
            (accepted, theirs),
            "{name}: {:?}",
            done.verdict
        );
    }
}

#[oracle::test]
fn skipping_requests_changes_no_count() {
    let mut skipped = 0;
    for (name, program) in programs() {
        let with = run(&program, &Options::default());
        let without = run(
            &program,
            &Options {
                precision_skip: false,
                ..Options::default()
            },
        );
        assert_eq!(
            (&with.verdict, counts(&with)),
            (&without.verdict, counts(&without)),
            "{name}"
        );
        assert_eq!(
            with.precision.requests, without.precision.requests,
            "{name}"
        );
        assert!(with.precision.insns <= without.precision.insns, "{name}");
        assert_eq!(without.precision.skipped, 0, "{name}");
        skipped += with.precision.skipped;
    }
    assert!(skipped > 0, "no request is ever skipped");
}

#[oracle::test]
fn stress_changes_no_verdict() {
    let stress = [
        Stress {
            no_pruning: true,
            ..Stress::default()
        },
        Stress {
            all_precise: true,
            ..Stress::default()
        },
        Stress {
            checkpoint_everywhere: true,
            ..Stress::default()
        },
        Stress {
            assert_invariants: true,
            ..Stress::default()
        },
    ];
    for (name, program) in programs()
        .into_iter()
        .filter(|(name, _)| !name.ends_with("48") && !name.ends_with("160"))
    {
        let plain = run(&program, &Options::default()).verdict;
        for stress in stress {
            let verdict = run(
                &program,
                &Options {
                    stress,
                    ..Options::default()
                },
            )
            .verdict;
            let is_limit = matches!(&verdict, Verdict::Refused(refusal) if refusal.kind == verifier::RefusalKind::Complexity);
            assert!(
                is_limit || verdict == plain,
                "{name}: {verdict:?} with {stress:?}, {plain:?} without"
            );
        }
    }
}
