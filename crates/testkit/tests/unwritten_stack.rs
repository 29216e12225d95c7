//! Reads of stack memory that a program never wrote: every one that a run makes is a fact of the
//! proof, however the program is pruned, and programs that write what they read have none.

use std::fmt::Write as _;

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory};
use isa::ebpf::decode;
use program::Program;
use spec::programs::{LoadFlags, ProgramType};
use spec::{Random as _, SplitMix};
use verifier::Proof;

use beebox_testkit::verifier::assembled;

fn program(text: &str, flags: LoadFlags) -> Program {
    Program::builder(ProgramType::SchedCls, assembled(text).unwrap())
        .license("GPL")
        .flags(flags)
        .build()
        .unwrap()
}

/// The reads that the proof of a program names.
fn reads(program: &Program) -> Vec<u32> {
    let kernel = kernel_data::linux_6_18();
    let registry = kernel.registry().expect("the built-in registry");
    let proof = Proof::of(program, &kernel, registry);
    let proof = proof.unwrap_or_else(|refused| panic!("{:?}", refused.verdict));
    proof.facts().unwritten_reads.clone()
}

fn reads_of(text: &str) -> Vec<u32> {
    reads(&program(text, LoadFlags::TEST_STATE_FREQ))
}

/// The least instruction that reads unwritten stack in a run with these random numbers.
fn run(program: &Program, seed: u64) -> Option<u32> {
    let mut memory = Memory::new();
    let mut calls = Calls::basic(SplitMix::new(seed), || 0);
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    let checked = CheckedProgram::new(decode(program.insns())).with_watched_stack();
    let finish = checked.run(cx, Entry::default(), &Limits::default());
    assert!(finish.outcome.is_ok(), "{:?}", finish.outcome);
    finish.unwritten_reads.get(&0).map(|insn| *insn as u32)
}

#[test]
fn each_way_of_reading_is_a_fact() {
    let cases: [(&str, &[u32]); 12] = [
        // Whole, half and no byte of a word.
        ("r0 = *(u64 *)(r10 - 8); r0 = 0; exit", &[0]),
        (
            "*(u32 *)(r10 - 8) = 1; r0 = *(u64 *)(r10 - 8); r0 = 0; exit",
            &[1],
        ),
        (
            "*(u32 *)(r10 - 4) = 1; r0 = *(u16 *)(r10 - 2); r0 = 0; exit",
            &[],
        ),
        (
            "*(u64 *)(r10 - 8) = 1; lock *(u64 *)(r10 - 8) += r10; r0 = *(u64 *)(r10 - 8); r0 = 0; exit",
            &[],
        ),
        ("r1 = 1; lock *(u64 *)(r10 - 8) += r1; r0 = 0; exit", &[1]),
        // At a variable offset, and after a store at one, which writes one byte of eight.
        (
            "call 7; r0 &= 7; r2 = r10; r2 += -8; r2 += r0; r0 = *(u8 *)(r2 + 0); r0 = 0; exit",
            &[5],
        ),
        (
            "call 7; r0 &= 7; r2 = r10; r2 += -8; r2 += r0; *(u8 *)(r2 + 0) = 1; r0 = *(u64 *)(r10 - 8); r0 = 0; exit",
            &[6],
        ),
        (
            "call 7; r0 &= 7; *(u64 *)(r10 - 8) = 0; r2 = r10; r2 += -8; r2 += r0; *(u8 *)(r2 + 0) = 1; r0 = *(u64 *)(r10 - 8); r0 = 0; exit",
            &[],
        ),
        (
            "call 7; r0 &= 7; r2 = r10; r2 += -8; r2 += r0; *(u8 *)(r2 + 0) = 1; *(u64 *)(r10 - 8) = 0; r0 = *(u64 *)(r10 - 8); r0 = 0; exit",
            &[],
        ),
        // A function reads its caller's frame, and one its own, which is not the one that ran before.
        (
            "r1 = r10; r1 += -8; call f; r0 = 0; exit; f: r0 = *(u64 *)(r1 + 0); r0 = 0; exit",
            &[5],
        ),
        (
            "call f; call g; r0 = 0; exit; f: *(u64 *)(r10 - 8) = 1; r0 = 0; exit; g: r0 = *(u64 *)(r10 - 8); r0 = 0; exit",
            &[7],
        ),
        // Memory that a helper takes (bpf_csum_diff), of which a part was written.
        (
            "*(u32 *)(r10 - 4) = 1; r1 = r10; r1 += -8; r2 = 8; r3 = 0; r4 = 0; r5 = 0; call 28; r0 = 0; exit",
            &[7],
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(
            reads_of(&text.replace("; ", "\n").replace(": ", ":\n")),
            expected,
            "{text}"
        );
    }
}

#[test]
fn helpers_that_write_a_part_leave_unwritten_bytes() {
    let text =
        "r1 = r10; r1 += -16; r2 = 16; r3 = 0; call 115; r0 = *(u8 *)(r10 - 7); r0 = 0; exit";
    assert_eq!(reads_of(&text.replace("; ", "\n")), [5]);
    // The final zero byte is always written, and what is stored before stays.
    let first = text.replace("- 7", "- 16");
    assert!(reads_of(&first.replace("; ", "\n")).is_empty());
    let stored = format!("*(u64 *)(r10 - 8) = 0; {text}");
    assert!(reads_of(&stored.replace("; ", "\n")).is_empty());

    // A failed bpf_xdp_load_bytes writes nothing; bpf_skb_load_bytes writes zeros.
    let skb = "r2 = 0; r3 = r10; r3 += -16; r4 = 16; call 26; r0 = *(u8 *)(r10 - 7); r0 = 0; exit";
    assert!(reads_of(&skb.replace("; ", "\n")).is_empty());
    for (test, read) in [
        ("r7 = 0", Some(6)),
        ("if r0 != 0 goto out", None),
        ("if w0 != 0 goto out", None),
        ("if r0 s< 0 goto out", None),
        ("if r0 s<= -1 goto out", None),
        ("if r0 == 0 goto out", Some(6)),
        ("if r0 s>= 0 goto out", Some(6)),
        ("if r0 == 1 goto out", Some(6)),
        ("r7 = r0; r0 = 5; if r7 != 0 goto out", None),
        ("w7 = w0; r0 = 5; if w7 s< 0 goto out", None),
        ("r7 = r0; r0 = 0; if r0 != 0 goto out", Some(8)),
        ("*(u64 *)(r10 - 8) = 0", None),
    ] {
        let text = format!(
            "r2 = 0; r3 = r10; r3 += -16; r4 = 16; call 189; {test}; r1 = *(u8 *)(r10 - 7); out: r0 = 0; exit"
        );
        let text = text.replace("; ", "\n").replace(": ", ":\n");
        let program = Program::builder(ProgramType::Xdp, assembled(&text).unwrap());
        let program = program.license("GPL").build().unwrap();
        assert_eq!(reads(&program), Vec::from_iter(read), "{text}");
    }
}

#[test]
fn pruning_loses_no_read() {
    // The path that writes the word is walked first; the other one is pruned where they meet.
    let meeting = "call 7; if r0 == 0 goto meet; *(u64 *)(r10 - 8) = 1; meet: r6 = 0; r0 = *(u64 *)(r10 - 8); r0 = 0; exit";
    let spilled = "call 7; if r0 == 0 goto meet; *(u64 *)(r10 - 8) = r0; meet: r6 = 0; r0 = *(u64 *)(r10 - 8); r0 = 0; exit";
    let of_caller = "call 7; if r0 == 0 goto meet; *(u64 *)(r10 - 8) = 1; meet: r1 = r10; r1 += -8; call f; r0 = 0; exit; f: r6 = 0; r0 = *(u64 *)(r1 + 0); r0 = 0; exit";
    let in_callee = "r1 = r10; r1 += -8; call f; r0 = *(u64 *)(r10 - 8); r0 = 0; exit; f: r6 = r1; call 7; if r0 == 0 goto meet; *(u64 *)(r6 + 0) = 1; meet: r0 = 0; exit";
    for (text, read) in [(meeting, 4), (spilled, 4), (of_caller, 9), (in_callee, 3)] {
        let text = text.replace("; ", "\n").replace(": ", ":\n");
        for flags in [LoadFlags::default(), LoadFlags::TEST_STATE_FREQ] {
            assert_eq!(reads(&program(&text, flags)), [read], "{text}");
        }
    }
    // What is written behind the meeting is no read of theirs.
    let written = meeting.replace("r6 = 0", "*(u64 *)(r10 - 8) = 2");
    let written = written.replace("; ", "\n").replace(": ", ":\n");
    assert!(reads_of(&written).is_empty());
}

/// Generates programs that read and write their stack and their caller's, in branches and loops.
struct Grammar {
    random: SplitMix,
    text: String,
    labels: u32,
    loops: u32,
}

impl Grammar {
    fn below(&mut self, count: u32) -> u32 {
        self.random.next_u32() % count
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = writeln!(self.text, "{line}");
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// A load or store of up to eight bytes within 16 from an offset of a register on.
    fn access(&mut self, base: &str, start: i32) {
        let size = 1 << self.below(4);
        let at = start + (self.below(16 / size) * size) as i32;
        let bits = size * 8;
        let (sign, at) = if at < 0 { ('-', -at) } else { ('+', at) };
        match self.below(5) {
            0 | 1 => self.line(format_args!("r0 = *(u{bits} *)({base} {sign} {at})")),
            2 => self.line(format_args!("*(u{bits} *)({base} {sign} {at}) = r9")),
            _ => self.line(format_args!("*(u{bits} *)({base} {sign} {at}) = 1")),
        }
    }

    /// The same at a variable offset.
    fn indexed(&mut self) {
        let mask = [1, 3, 7][self.below(3) as usize];
        self.line(format_args!("call 7"));
        self.line(format_args!("r0 &= {mask}"));
        self.line(format_args!("r2 = r10"));
        self.line(format_args!("r2 += -16"));
        self.line(format_args!("r2 += r0"));
        match self.below(2) {
            0 => self.line(format_args!("r0 = *(u8 *)(r2 + 0)")),
            _ => self.line(format_args!("*(u8 *)(r2 + 0) = 1")),
        }
    }

    fn statement(&mut self, depth: u32, is_main: bool) {
        match self.below(if depth == 0 { 4 } else { 8 }) {
            0..=2 if is_main || self.below(3) == 0 => self.access("r10", -16),
            0..=2 => self.access("r6", 0),
            3 => self.indexed(),
            4 | 5 => {
                let (other, end) = (self.label(), self.label());
                self.line(format_args!("call 7"));
                self.line(format_args!("r0 &= 1"));
                self.line(format_args!("if r0 == 0 goto l{other}"));
                self.block(depth - 1, is_main);
                self.line(format_args!("goto l{end}"));
                self.line(format_args!("l{other}:"));
                if self.below(2) == 0 {
                    self.block(depth - 1, is_main);
                }
                self.line(format_args!("l{end}:"));
            }
            6 if self.loops < 2 => {
                let (register, again) = (7 + self.loops, self.label());
                self.loops += 1;
                let rounds = 1 + self.below(3);
                self.line(format_args!("r{register} = {rounds}"));
                self.line(format_args!("l{again}:"));
                self.block(depth - 1, is_main);
                self.line(format_args!("r{register} += -1"));
                self.line(format_args!("if r{register} != 0 goto l{again}"));
                self.loops -= 1;
            }
            _ if is_main => {
                self.line(format_args!("r1 = r10"));
                self.line(format_args!("r1 += -16"));
                let callee = ["f", "g"][self.below(2) as usize];
                self.line(format_args!("call {callee}"));
            }
            _ => self.access("r6", 0),
        }
    }

    fn block(&mut self, depth: u32, is_main: bool) {
        for _ in 0..1 + self.below(3) {
            self.statement(depth, is_main);
        }
    }

    fn program(seed: u64) -> Program {
        let mut grammar = Grammar {
            random: SplitMix::new(seed),
            text: String::new(),
            labels: 0,
            loops: 0,
        };
        grammar.line(format_args!("r9 = 5"));
        grammar.block(3, true);
        grammar.line(format_args!("r0 = 0\nexit"));
        for name in ["f", "g"] {
            grammar.line(format_args!("{name}:\nr6 = r1\nr9 = 7"));
            grammar.block(2, false);
            grammar.line(format_args!("r0 = 0\nexit"));
        }
        let text = grammar.text;
        // Functions that are not called are refused.
        let text = ["f", "g"].iter().fold(text, |text, name| {
            match text.contains(&format!("call {name}\n")) {
                true => text,
                false => format!("r1 = r10\nr1 += -16\ncall {name}\n{text}"),
            }
        });
        let flags = match seed % 3 {
            0 => LoadFlags::default(),
            _ => LoadFlags::TEST_STATE_FREQ,
        };
        program(&text, flags)
    }
}

#[test]
fn reads_of_runs_are_facts() {
    let (mut with_facts, mut with_reads) = (0, 0);
    const PROGRAMS: u64 = 400;
    for seed in 0..PROGRAMS {
        let program = Grammar::program(seed);
        let known = reads(&program);
        let found: Vec<u32> = (0..30)
            .filter_map(|numbers| run(&program, numbers))
            .collect();
        for read in &found {
            assert!(known.contains(read), "program {seed}: {read}, {known:?}");
        }
        with_facts += u64::from(!known.is_empty());
        with_reads += u64::from(!found.is_empty());
    }
    // Most facts are not only possible: runs make such reads.
    assert!(
        with_facts < PROGRAMS && with_reads * 10 >= with_facts * 9,
        "{with_facts}, {with_reads}"
    );
}
