//! Logs that are handed out while they are written: the same text, in bounded pieces.

use std::fmt::Write as _;
use std::path::Path;

use beebox::internal::ebpf::{assemble, encode};
use beebox::internal::program::{Program, ProgramType};
use beebox::internal::verify::{LogOutput, LogTail, ProgramLoader, verify, verify_to};
use beebox::verify::Options;

/// A whole log, and the longest piece of it.
#[derive(Default)]
struct Whole {
    text: String,
    longest: usize,
    truncated: usize,
}

impl LogOutput for Whole {
    fn write(&mut self, text: &str) {
        self.longest = self.longest.max(text.len());
        self.text.push_str(text);
    }

    fn truncate(&mut self, len: u64) {
        self.truncated += 1;
        self.text.truncate(len as usize);
    }
}

/// Without the line of the time.
fn timeless(log: &str) -> String {
    let lines = log
        .lines()
        .filter(|line| !line.starts_with("verification time "));
    lines.collect::<Vec<_>>().join("\n")
}

/// A program with unknown numbers on its whole stack and so many branches on another, each of
/// which logs its state.
fn branches(count: usize) -> Program {
    let mut text = String::from("call 7\nr6 = r0\n");
    for slot in 1..=64 {
        let _ = writeln!(text, "call 7\n*(u64 *)(r10 - {}) = r0", 8 * slot);
    }
    for number in 0..count {
        let _ = writeln!(text, "if r6 > {number} goto a{number}\nr6 += 1\na{number}:");
    }
    text += "r0 = 0\nexit\n";
    let insns = encode(&assemble(&text).expect("a program")).expect("instructions");
    let program = Program::builder(ProgramType::SocketFilter, insns).license("GPL");
    program.build().expect("a program")
}

fn programs() -> Vec<Program> {
    let mut programs = vec![branches(10), branches(600)];
    let kernel = kernel_data::linux_6_18();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for name in [
        "tests/data/kernel_types.bpf.o",
        "../../examples/packets/firewall.bpf.o",
    ] {
        let bytes = std::fs::read(root.join(name)).expect("an object");
        let mut visit =
            |loaded: beebox::internal::verify::StandaloneProgram| programs.extend(loaded.program);
        let loader = ProgramLoader::new(&kernel);
        loader
            .load_each(&bytes, name, &mut visit)
            .expect("an object");
    }
    programs
}

#[oracle::test]
fn logs_in_pieces_are_whole_logs() {
    const PIECE: usize = 1 << 17;
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let (mut longest, mut truncated) = (0, 0);
    for program in programs() {
        for log_level in [0, 1, 2, 4, 6] {
            let options = Options {
                log_level,
                ..Options::default()
            };
            let mut whole = Whole::default();
            let done = verify_to(&program, &kernel, registry, &options, &mut whole);
            assert_eq!((&*done.log, done.log_left_out), ("", 0));
            let kept = verify(&program, &kernel, registry, &options);
            assert_eq!(kept.log_left_out, 0);
            assert_eq!(
                timeless(&whole.text),
                timeless(&kept.log),
                "{}",
                program.name()
            );
            assert!(whole.longest <= PIECE, "{}", whole.longest);
            let mut tail = LogTail::new(1000);
            verify_to(&program, &kernel, registry, &options, &mut tail);
            let (end, left_out) = tail.finish();
            assert!(timeless(&kept.log).ends_with(&timeless(&end)));
            assert!(log_level & 4 != 0 || left_out as usize + end.len() == kept.log.len());
            longest = longest.max(whole.text.len());
            truncated += whole.truncated;
        }
    }
    assert!(longest > 20 * PIECE, "no long log: {longest}");
    assert!(truncated > 0, "no path of a log was dropped");
}
