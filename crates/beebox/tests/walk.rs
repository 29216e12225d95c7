//! The recorded walk of the verifier is the walk that its log tells: the same instructions in the same
//! order, the same ends of paths, as many checkpoints as states were made.

use std::fs;
use std::path::{Path, PathBuf};

use beebox::internal::verify::{
    KeptSteps, LogTail, Options, ProgramLoader, StandaloneProgram, StatePlace, StepEnd, Verdict,
    verify_to, walk,
};

/// Bytes of a log that the test reads.
const LOG: usize = 64 << 20;

fn objects() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directories = [
        "examples/packets",
        "examples/verify",
        "examples/why",
        "crates/beebox/tests/run",
        "crates/testkit/cases/explain/edits",
    ];
    let files = directories.iter().flat_map(|directory| {
        let entries = fs::read_dir(root.join(directory)).expect("a directory");
        entries.map(|entry| entry.expect("a file").path())
    });
    let mut files: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|it| it == "o"))
        .collect();
    files.sort();
    files
}

/// An instruction in a log, and the end of a path there.
fn told(log: &str) -> Vec<(u32, bool)> {
    let body = log.split_once("\n0: R").map_or("", |(_, body)| body);
    let body = format!("0: R{body}");
    let lines = body.lines().filter_map(|line| {
        let line = line.strip_prefix("from ").map_or(line, |path| {
            path.split_once(" to ").map_or(path, |(_, to)| to)
        });
        let (insn, rest) = line.split_once(": ")?;
        let insn = insn
            .strip_suffix(" (speculative execution)")
            .unwrap_or(insn);
        let insn = insn.parse().ok()?;
        match rest {
            "safe" => Some((insn, true)),
            _ if rest.starts_with('(') => Some((insn, false)),
            _ => None,
        }
    });
    lines.collect()
}

#[oracle::test]
fn the_recorded_walk_is_that_of_the_log() {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("a registry");
    let everything = KeptSteps::of(0, 0);
    let (mut programs, mut steps, mut pruned, mut marks) = (0, 0, 0, 0);
    for object in objects() {
        let mut visit = |loaded: StandaloneProgram| {
            let Ok(program) = &loaded.program else {
                return;
            };
            let name = format!("{}/{}", object.display(), loaded.name);
            let options = Options {
                log_level: 2,
                ..Options::default()
            };
            let mut log = LogTail::new(LOG);
            let done = verify_to(program, &kernel, registry, &options, &mut log);
            if matches!(done.verdict, Verdict::Unsupported(_)) {
                return;
            }
            let walk = walk(program, &kernel, registry, &options, everything);
            let statistics = done.statistics;
            let is_checkpoint = walk.steps.iter().filter(|step| step.is_checkpoint);
            assert_eq!(
                is_checkpoint.count() as u32,
                statistics.total_states,
                "{name}"
            );
            let (text, left_out) = log.finish();
            assert_eq!(left_out, 0, "{name}");
            let is_pruned = |end: StepEnd| matches!(end, StepEnd::Pruned(..));
            let walked: Vec<(u32, bool)> = (walk.steps.iter())
                .map(|step| (step.insn, is_pruned(step.end)))
                .collect();
            let told = told(&text);
            // A refusal in front of the check of an instruction is told without the instruction.
            let refused = !matches!(done.verdict, Verdict::Accepted);
            let end = walked.len() - usize::from(refused && walked.len() > told.len());
            assert_eq!(walked[..end], told, "{name}");
            assert!(walk.gap.is_none(), "{name}");
            for (index, step) in walk.steps.iter().enumerate() {
                assert_eq!(step.number as usize, index, "{name}");
                let is_earlier = |other: &u32| (*other as usize) < index;
                assert!(step.before.as_ref().is_none_or(is_earlier), "{name}");
                if let StepEnd::Pruned(by, _) = step.end {
                    let by = &walk.steps[by.expect("all steps are kept") as usize];
                    assert!(by.is_checkpoint && by.insn == step.insn, "{name}");
                }
                let follows = step.before == (index as u32).checked_sub(1);
                assert!(
                    step.is_whole || follows,
                    "{name}: a branch has its whole state"
                );
            }
            for request in &walk.requests {
                for (checkpoint, ..) in &request.marked {
                    let checkpoint = checkpoint.expect("all steps are kept") as usize;
                    assert!(walk.steps[checkpoint].is_checkpoint, "{name}");
                    assert!(checkpoint <= request.step as usize, "{name}");
                }
            }
            programs += 1;
            steps += walk.steps.len();
            pruned += walked.iter().filter(|(_, is_pruned)| *is_pruned).count();
            marks += walk.requests.len();
        };
        let bytes = fs::read(&object).expect("an object");
        let loader = ProgramLoader::new(&kernel);
        let name = object.display().to_string();
        // Objects that cannot be opened have no walk.
        let _ = loader.load_each(&bytes, &name, &mut visit);
    }
    assert!(programs > 100 && steps > 10_000, "{programs} {steps}");
    assert!(pruned > 100 && marks > 20, "{pruned} {marks}");
}

#[oracle::test]
fn of_a_long_walk_the_first_and_the_last_steps_are_kept() {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("a registry");
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/packets/router.bpf.o");
    let options = Options::default();
    let mut visit = |loaded: StandaloneProgram| {
        let program = loaded.program.expect("a program that links");
        let all = walk(&program, &kernel, registry, &options, KeptSteps::of(0, 0));
        let total = all.steps.len() as u32;
        let some = walk(
            &program,
            &kernel,
            registry,
            &options,
            KeptSteps::of(total, 40),
        );
        assert_eq!(some.gap, Some((20, total - 40)));
        let numbers: Vec<u32> = some.steps.iter().map(|step| step.number).collect();
        let expected: Vec<u32> = (0..20).chain(total - 20..total).collect();
        assert_eq!(numbers, expected);
        // Behind the gap a step has its whole state, and nothing refers to what is left out.
        assert!(some.steps[20].is_whole && some.steps[20].before.is_none());
        for (step, index) in some.steps.iter().zip(0..) {
            let same = &all.steps[step.number as usize];
            assert_eq!((step.insn, step.frame), (same.insn, same.frame));
            assert!(step.before.is_none_or(|before| before < index));
        }
        let places = some.steps[20].changes.iter();
        assert!(
            places
                .clone()
                .any(|(place, _)| *place == StatePlace::Reg(0, 10))
        );
    };
    let bytes = fs::read(&object).expect("an object");
    let loaded = ProgramLoader::new(&kernel).load_each(&bytes, "router", &mut visit);
    loaded.expect("an object that opens");
}
