//! Memory accesses and calls: the verifier against answers of Linux 6.18 that are
//! recorded in a file, and the file against the running kernel.

use isa::ebpf::{RawInsn, assemble, encode};
use program::Program;
use spec::programs::ProgramType;
use sys::bpf::{LogLevel, ProgLoad};
use verifier::{Options, Verdict, verify};

/// A program and the kernel's answer.
struct Case {
    kind: ProgramType,
    answer: String,
    source: String,
}

fn cases() -> Vec<Case> {
    let text = include_str!("../../testkit/cases/verifier-accesses-linux-6.18.txt");
    text.split("\n== ")
        .skip(1)
        .map(|case| {
            let (head, source) = case.split_once('\n').expect("a program below its answer");
            let (kind, answer) = head.split_once(": ").expect("a type and an answer");
            Case {
                kind: ProgramType::from_name(kind).expect("a program type"),
                answer: answer.to_owned(),
                source: source.to_owned(),
            }
        })
        .collect()
}

impl Case {
    fn slots(&self) -> Vec<RawInsn> {
        let insns = assemble(&self.source).expect("assembly");
        encode(&insns).expect("instructions that have an encoding")
    }

    /// The answer of the verifier, in the words of the file.
    fn judged(&self, kernel: &spec::Kernel) -> String {
        let program = Program::builder(self.kind, self.slots())
            .license("GPL")
            .build()
            .expect("a program");
        let registry = kernel.registry().expect("the built-in registry");
        let done = verify(&program, kernel, registry, &Options::default());
        match done.verdict {
            Verdict::Accepted => "accepted".to_owned(),
            Verdict::Refused(refusal) => refusal.message(),
            Verdict::Unsupported(what) => format!("unsupported: {what}"),
            Verdict::Bug(what) => format!("bug: {what}"),
        }
    }
}

#[oracle::test]
fn answers_are_those_of_linux_6_18() {
    let kernel = kernel_data::linux_6_18_minimal();
    let cases = cases();
    assert!(cases.len() >= 35, "only {} cases", cases.len());
    for case in cases {
        let judged = case.judged(&kernel);
        assert_eq!(judged, case.answer, "\n{}", case.source);
    }
}

#[oracle::test]
fn recorded_answers_are_those_of_the_running_kernel() {
    let mut log = Vec::new();
    for case in cases() {
        let slots = case.slots();
        let request = ProgLoad {
            log_level: LogLevel::LEVEL1,
            log_size: 1 << 16,
            ..ProgLoad::new(case.kind.number(), &slots)
        };
        let answer = match request.load_into(&mut log).result {
            Ok(_) => "accepted".to_owned(),
            Err(errno) if log.is_empty() => {
                oracle::skip("the verifier of the running kernel", errno);
                return;
            }
            Err(_) => {
                let log = String::from_utf8_lossy(&log);
                sys::kernel::last_words(&log).unwrap_or_default().to_owned()
            }
        };
        assert_eq!(answer, case.answer, "\n{}", case.source);
    }
}
