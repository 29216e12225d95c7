//! Selections between 0 and 1 and read-modify-write operations, as clang writes them; and
//! random loops of such statements against the reference evaluator, with every kind of
//! native code.

#![cfg(target_arch = "x86_64")]

use isa::ebpf::{Insn, assemble};
use jit::memory::Pool;
use jit::{Features, Native, Options};
use lower::{Lowered, MemoryProgram};
use spec::{Random, SplitMix};
use testkit::ebpf::coverage::Coverage;
use testkit::ebpf::reference;
use vm::{Machine, Outcome, Unchecked};

const MEMORY: usize = 128;
/// Registers that statements write; `r6` is the memory, `r9` the loop counter.
const VALUES: [u32; 8] = [0, 1, 2, 3, 4, 5, 7, 8];
const PROGRAMS: u64 = 3000;

/// A counter in memory at an index.
const COUNTER: &str = "r2 = *(u8 *)(r1 + 0); r2 &= 8; *(u64 *)(r10 - 16) = 1
    *(u64 *)(r10 - 8) = 2; r3 = r10; r3 += -16; r3 += r2; r2 = *(u32 *)(r3 + 0); w2 += 1
    *(u32 *)(r3 + 0) = r2; r0 = *(u64 *)(r10 - 8); exit";
/// Counts how often a comparison holds.
const CONDITIONS: &str = "r0 = *(u64 *)(r1 + 0); r2 = *(u64 *)(r1 + 8); w3 = 1
    if r0 > r2 goto +1; w3 = 0; w4 = 0; if r0 != 7 goto +1; w4 = 1; w0 = w3; w0 <<= 1
    w0 |= w4; exit";

fn parse(text: &str) -> Vec<Insn> {
    assemble(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn lowered(insns: &[Insn]) -> Lowered<MemoryProgram> {
    // SAFETY: the programs here access the memory that they are given, and the stack, by
    // offsets that are known; their loops iterate three times at most.
    let trusted = unsafe { Unchecked::assume_safe(insns.to_vec()) };
    Lowered::from_unchecked(trusted).expect("well formed")
}

/// Code of every kind: plain, with extensions, with deadline checks.
fn natives(insns: &[Insn], pool: &Pool) -> [Native<MemoryProgram>; 3] {
    let program = lowered(insns);
    let options = |features, deadline| Options {
        features,
        deadline,
        ..Options::default()
    };
    let compile = |options| Native::compile(&program, &options, pool).unwrap();
    [
        compile(options(Features::detect(), false)),
        compile(options(Features::PLAIN, false)),
        compile(options(Features::detect(), true)),
    ]
}

/// Compares native code with the reference evaluator.
fn check(insns: &[Insn], pool: &Pool, seed: u64) {
    let mut random = SplitMix::new(seed);
    let natives = natives(insns, pool);
    for _ in 0..3 {
        let mut before = [0; MEMORY];
        before.fill_with(|| random.next_u32() as u8);
        let mut meant = before;
        let limits = reference::Limits::default();
        let mut coverage = Coverage::new();
        let value = reference::run(
            insns,
            &mut meant,
            &mut SplitMix::new(0),
            limits,
            &mut coverage,
        )
        .unwrap();
        for (kind, native) in natives.iter().enumerate() {
            let mut memory = before;
            let outcome = native.run(&mut Machine::new(), &mut memory, &mut SplitMix::new(0));
            if (outcome, memory) != (Outcome::Returned(value), meant) {
                let text: Vec<String> = insns.iter().map(|insn| insn.to_string()).collect();
                panic!(
                    "code {kind}, seed {seed}: {outcome:x?}, not {value:#x}; {memory:x?}, \
                     not {meant:x?}\n{}",
                    text.join("\n")
                );
            }
        }
    }
}

#[oracle::test]
fn selections_and_updates_match_the_evaluator() {
    let pool = Pool::new();
    check(&parse(COUNTER), &pool, 1);
    check(&parse(CONDITIONS), &pool, 1);
}

/// Generator of loops.
struct LoopGenerator {
    random: SplitMix,
    text: String,
}

impl LoopGenerator {
    fn below(&mut self, end: u32) -> u32 {
        self.random.next_u32() % end
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u32) as usize]
    }

    /// A register, often one of the first few, so that statements depend on each other.
    fn value(&mut self) -> u32 {
        let among = if self.below(3) == 0 { 8 } else { 4 };
        VALUES[self.below(among) as usize]
    }

    fn add(&mut self, statement: &str) {
        self.text += statement;
        self.text.push('\n');
    }

    fn copy(&mut self) {
        let (a, b, kind) = (self.value(), self.value(), self.of(&["r", "r", "w"]));
        self.add(&format!("{kind}{a} = {kind}{b}"));
    }

    fn statement(&mut self) {
        let (a, b, kind) = (self.value(), self.value(), self.of(&["r", "r", "w"]));
        let other = VALUES[(self.below(7) as usize + place(a) + 1) % 8];
        let size = self.of(&["u8", "u16", "u32", "u64"]);
        let bytes = 8 * self.below(10);
        let imm = self.of(&["1", "-1", "7", "255", "70000"]);
        match self.below(12) {
            0 => self.copy(),
            1..4 => {
                let op = self.of(&["+", "-", "*", "&", "|", "^"]);
                self.add(&format!("{kind}{a} {op}= {kind}{b}"));
            }
            4 => self.add(&format!("{kind}{a} += {imm}")),
            5 => {
                let op = self.of(&["<<", ">>", "s>>"]);
                let by = self.below(31);
                self.add(&format!("{kind}{a} {op}= {by}"));
            }
            6 => self.add(&format!("r{a} = *({size} *)(r6 + {bytes})")),
            7 => self.add(&format!("*({size} *)(r6 + {bytes}) = r{a}")),
            8 => {
                let cond = self.of(&[">", "==", "!=", "s<", "<="]);
                self.add(&format!("if {kind}{a} {cond} {kind}{b} goto +1"));
                self.copy();
            }
            9 => {
                let (cond, truth) = (self.of(&[">", "==", "!=", "s<", "<="]), self.below(2));
                self.add(&format!("w{a} = {truth}"));
                if self.below(2) == 0 {
                    self.add(&format!("r{other} += {imm}"));
                }
                let not = truth ^ 1;
                self.add(&format!("if {kind}{other} {cond} {kind}{b} goto +1"));
                self.add(&format!("{kind}{a} = {not}"));
            }
            10 => {
                let op = self.of(&["+", "&", "^"]);
                self.add(&format!(
                    "r{a} = r9; r{a} <<= 3; r{other} = r6; r{other} += r{a}"
                ));
                self.add(&format!("r{a} = *({size} *)(r{other} + 0)"));
                self.add(&format!("{kind}{a} {op}= {imm}"));
                self.add(&format!("*({size} *)(r{other} + 0) = r{a}"));
                self.add(&format!("r{a} = 5; w{other} = 1"));
            }
            _ => {
                self.add(&format!("r{a} = r9; r{a} <<= 3; r{a} += r6"));
                self.add(&format!(
                    "r{other} = *({size} *)(r{a} + 0); r{a} = r{other}"
                ));
            }
        }
    }

    fn program(mut self) -> String {
        for (index, value) in VALUES.into_iter().enumerate() {
            if value != 1 {
                self.add(&format!("r{value} = *(u64 *)(r1 + {})", 8 * index));
            }
        }
        self.add("r6 = r1; r1 = 3; r9 = 3\nagain:");
        for _ in 0..2 + self.below(10) {
            self.statement();
        }
        for _ in 0..1 + self.below(3) {
            self.copy();
        }
        let end = self.of(&[
            "r9 += -1; if r9 != 0 goto again",
            "r9 += -1; if r9 == 0 goto +1; goto again",
            "r9 += -1; if r9 == 0 goto done; goto again\ndone:",
            "if r9 == 1 goto done; r9 += -1; goto again\ndone:",
        ]);
        self.add(end);
        for (index, value) in VALUES.into_iter().enumerate() {
            if self.below(3) == 0 {
                self.add(&format!("*(u64 *)(r6 + {}) = r{value}", 64 + 8 * index));
            }
        }
        let result = self.value();
        self.text + &format!("r0 = r{result}; exit")
    }
}

fn place(value: u32) -> usize {
    VALUES.iter().position(|&other| other == value).unwrap()
}

#[oracle::test]
fn random_loops_match_the_evaluator() {
    let pool = Pool::new();
    for seed in 0..PROGRAMS {
        let writer = LoopGenerator {
            random: SplitMix::new(seed),
            text: String::new(),
        };
        check(&parse(&writer.program()), &pool, seed);
    }
}
