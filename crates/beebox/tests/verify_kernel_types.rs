//! Programs that reach objects of the kernel (tracepoints by BTF, iterators, kfuncs): our
//! answers with the built-in kernel are those that Linux 6.18 gave.

use std::collections::BTreeMap;
use std::path::Path;

use beebox::internal::verify::{ProgramLoader, verify};
use beebox::verify::{Options, Verdict};

/// Answers by program: verdict, instructions, states and the last line of the log.
fn recorded() -> BTreeMap<String, String> {
    let lines = include_str!("data/kernel_types.linux-6.18.txt").lines();
    let lines = lines.filter(|line| !line.starts_with('#'));
    let answers = lines.map(|line| line.split_once(": ").expect("a program and its answer"));
    answers
        .map(|(name, answer)| (name.to_owned(), answer.to_owned()))
        .collect()
}

#[oracle::test]
fn answers_about_kernel_objects_are_those_of_linux_6_18() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernel_types.bpf.o");
    let bytes = std::fs::read(path).expect("the object beside its source");
    let kernel = kernel_data::linux_6_18_minimal();
    let registry = kernel.registry().expect("the built-in registry");
    let options = Options::default();
    let mut ours = BTreeMap::new();
    let mut visit = |loaded: beebox::internal::verify::StandaloneProgram| {
        let program = loaded.program.as_ref().expect("a program that links");
        let done = verify(program, &kernel, registry, &options);
        let counts = done.statistics;
        let counts = format!("{} {}", counts.insns_processed, counts.total_states);
        let answer = match done.verdict {
            Verdict::Accepted => format!("accepted {counts}"),
            Verdict::Refused(refusal) => format!("refused {counts} {}", refusal.message().trim()),
            Verdict::Unsupported(what) => format!("unsupported: {what}"),
            Verdict::Bug(what) => format!("bug: {what}"),
        };
        ours.insert(loaded.name.clone(), answer);
    };
    ProgramLoader::new(&kernel)
        .load_each(&bytes, "kernel_types.bpf.o", &mut visit)
        .expect("an object");
    let recorded = recorded();
    assert!(recorded.len() >= 35, "only {} answers", recorded.len());
    assert_eq!(ours, recorded);
}
