//! Switch statements as clang writes them, as comparison trees: every value reaches the
//! target of its comparisons, whatever other jumps enter the tree, and dense trees become
//! tables.

#![cfg(target_arch = "x86_64")]

use std::fmt::Write;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use isa::ebpf::{Insn, assemble};
use jit::memory::Pool;
use jit::{Draft, Features, Native, Options};
use lower::{Lowered, MemoryProgram};
use spec::{Random, SplitMix};
use testkit::ebpf::coverage::Coverage;
use testkit::ebpf::reference;
use vm::{Machine, Outcome, Unchecked};

const PROGRAMS: u64 = 1500;
/// Bytes of input: the value, its upper half, where to enter the tree and how often.
const MEMORY: usize = 16;

fn parse(text: &str) -> Vec<Insn> {
    assemble(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

fn lowered(text: &str) -> Lowered<MemoryProgram> {
    // SAFETY: the programs here read the memory that they are given and compute; their
    // loops iterate eight times at most.
    let trusted = unsafe { Unchecked::assume_safe(parse(text)) };
    Lowered::from_unchecked(trusted).expect("well formed")
}

/// Code of every kind: plain, with extensions, with deadline checks.
fn natives(text: &str, pool: &Pool) -> [Native<MemoryProgram>; 3] {
    let program = lowered(text);
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

/// Compares native code with the reference evaluator on these values.
fn check(text: &str, pool: &Pool, values: &[u32], entries: &[u8]) {
    let insns = parse(text);
    let natives = natives(text, pool);
    for (&value, &entry) in values.iter().zip(entries.iter().cycle()) {
        let mut memory = [0; MEMORY];
        memory[..4].copy_from_slice(&value.to_le_bytes());
        memory[4..8].copy_from_slice(&u32::from(entry / 2).to_le_bytes());
        memory[8] = entry;
        memory[9] = entry & 7;
        let limits = reference::Limits::default();
        let mut random = SplitMix::new(0);
        let meant = reference::run(
            &insns,
            &mut memory,
            &mut random,
            limits,
            &mut Coverage::new(),
        );
        for (kind, native) in natives.iter().enumerate() {
            let outcome = native.run(&mut Machine::new(), &mut memory, &mut random);
            assert_eq!(
                outcome,
                Outcome::Returned(meant.unwrap()),
                "code {kind}, {value:#x} entered at {entry}: {text}"
            );
        }
    }
}

/// Number of jumps to an address in a register.
fn jumps_by_table(text: &str) -> usize {
    let options = Options {
        features: Features::PLAIN,
        ..Options::default()
    };
    let draft = Draft::from_insns(parse(text), &options).unwrap();
    // After the code are tables.
    let (mut end, mut count) = (draft.bytes().len() as u64, 0);
    for insn in Decoder::with_ip(64, draft.bytes(), 0, DecoderOptions::NONE) {
        if insn.ip() >= end {
            break;
        }
        if insn.is_ip_rel_memory_operand() {
            end = end.min(insn.ip_rel_memory_address());
        }
        let by_register = insn.op_count() == 1 && insn.op0_kind() == OpKind::Register;
        count += usize::from(insn.mnemonic() == Mnemonic::Jmp && by_register);
    }
    count
}

/// Generator of a tree that leads from `name` to `key` and its number, or to `default`.
struct Switch<'r> {
    text: String,
    random: &'r mut SplitMix,
    /// Condition of inner comparisons.
    above: &'static str,
    /// Mean distance of near misses among the comparisons.
    miss: u32,
    /// Number of comparisons, for labels.
    labels: usize,
}

impl Switch<'_> {
    fn below(&mut self, count: u32) -> u32 {
        self.random.next_u32() % count
    }

    /// An instruction that ends a tree, or nothing.
    fn miss(&mut self) -> &'static str {
        if self.miss == 0 || self.below(self.miss) > 0 {
            return "";
        }
        let misses = [
            "w0 = 5;",
            "w1 += 1;",
            "if r1 == 3 goto default;",
            "w1 &= 31;",
        ];
        misses[self.below(4) as usize]
    }

    fn write(&mut self, keys: &[i32], default: bool) {
        let label = self.labels;
        self.labels += 1;
        let miss = self.miss();
        let _ = write!(self.text, "at{label}: {miss}");
        if keys.len() > 2 {
            let middle = keys.len() / 2 - 1;
            // The other half is written later, at the label.
            let (low, high) = keys.split_at(middle + 1);
            let _ = writeln!(
                self.text,
                "if w1 {} {} goto up{label}",
                self.above, keys[middle]
            );
            self.write(low, default);
            let _ = write!(self.text, "up{label}: ");
            self.write(high, default);
            return;
        }
        for (index, key) in keys.iter().enumerate() {
            // A switch without default ends with its last key.
            if default || index + 1 < keys.len() {
                let _ = writeln!(self.text, "if w1 == {key} goto key{key}");
            }
        }
        let last = keys[keys.len() - 1];
        let _ = match default {
            true => writeln!(self.text, "goto default"),
            false => writeln!(self.text, "goto key{last}"),
        };
    }
}

fn name(key: i32) -> String {
    key.to_string().replace('-', "m")
}

/// A loop around a switch, which is entered where the memory says.
fn program(random: &mut SplitMix, keys: &[i32], default: bool, miss: u32) -> String {
    let signed = random.next_u32().is_multiple_of(2) || keys[0] < 0;
    let mut switch = Switch {
        text: String::new(),
        random,
        above: if signed { "s>" } else { ">" },
        miss,
        labels: 0,
    };
    switch.write(keys, default);
    let (tree, count) = (switch.text, switch.labels);
    let mut text = String::from("r2 = *(u8 *)(r1 + 8); r3 = *(u8 *)(r1 + 9); r0 = 1\n");
    text += "r1 = *(u64 *)(r1 + 0)\n";
    if miss > 0 {
        // A jump into the middle.
        let entered = random.next_u32() as usize % count;
        let _ = writeln!(text, "if r2 == 3 goto at{entered}");
    }
    // The tree follows its first comparison, or precedes it.
    match tree.split_once('\n') {
        Some((first, rest))
            if miss == 0 && keys.len() > 2 && random.next_u32().is_multiple_of(2) =>
        {
            let first = first.replace("at0: ", "");
            let _ = writeln!(text, "goto first\n{rest}\nfirst: {first}; goto at1");
        }
        _ if random.next_u32().is_multiple_of(4) => {
            let entered = random.next_u32() as usize % count;
            let _ = writeln!(
                text,
                "goto first\n{tree}\nfirst: if w1 s> 2 goto at{entered}"
            );
            text += "goto at0\n";
        }
        _ => {
            let _ = writeln!(text, "first: {tree}");
        }
    }
    let low = random.next_u32().is_multiple_of(3);
    for (number, key) in keys.iter().enumerate() {
        let change = match low {
            true => format!("w0 *= {}", number + 3),
            false => format!("r0 *= 7; r0 += {number}"),
        };
        let _ = writeln!(text, "key{key}: {change}; goto next");
    }
    text += "default: r0 ^= 77\nnext: w1 += 1; if r3 == 0 goto out; r3 += -1; goto first\n";
    text += "out: exit";
    // Labels are identifiers.
    for key in keys.iter().filter(|key| **key < 0) {
        text = text.replace(&format!("key{key}"), &format!("key{}", name(*key)));
    }
    text
}

/// Dense or sparse keys.
fn keys(random: &mut SplitMix, count: usize, apart: u32) -> Vec<i32> {
    let mut key = [0, 1, -5, 40, 1000, i32::MAX - 300, i32::MIN][random.next_u32() as usize % 7];
    let mut keys = vec![];
    while keys.len() < count {
        keys.push(key);
        let by = 1 + random.next_u32() % apart;
        let Some(next) = key.checked_add(by as i32) else {
            break;
        };
        key = next;
    }
    keys
}

fn values(keys: &[i32]) -> Vec<u32> {
    let edges = [0, i32::MAX, i32::MIN, -1];
    let around = |key: i32| [0, 1, -1].map(|by| key.wrapping_add(by) as u32);
    keys.iter()
        .chain(&edges)
        .copied()
        .flat_map(around)
        .collect()
}

#[oracle::test]
fn every_value_reaches_its_target() {
    let pool = Pool::new();
    for seed in 0..PROGRAMS {
        let mut random = SplitMix::new(seed);
        let count = [3, 7, 16, 64][seed as usize % 4];
        let apart = [1, 4, 12, 1 << 20][random.next_u32() as usize % 4];
        let keys = keys(&mut random, count, apart);
        let default = !random.next_u32().is_multiple_of(3);
        let miss = [0, 0, 60, 20][random.next_u32() as usize % 4];
        let text = program(&mut random, &keys, default, miss);
        check(&text, &pool, &values(&keys), &[0, 1, 2, 3, 7, 255]);
    }
}

#[oracle::test]
fn a_dense_switch_becomes_a_table() {
    let pool = Pool::new();
    for (count, apart, default) in [(16, 1, true), (16, 1, false), (64, 4, true)] {
        let mut random = SplitMix::new(9);
        for _ in 0..20 {
            let keys = keys(&mut random, count, apart);
            let text = program(&mut random, &keys, default, 0);
            if keys.len() == count && !text.contains("\ngoto at0") {
                assert_eq!(jumps_by_table(&text), 1, "{text}");
                let wide = text.replace("w1 == ", "r1 == ");
                assert_eq!(jumps_by_table(&wide), 0, "{wide}");
            }
            check(&text, &pool, &values(&keys), &[0, 9]);
        }
    }
}

#[oracle::test]
fn few_cases_stay_comparisons() {
    let mut random = SplitMix::new(9);
    let keys: Vec<i32> = (0..7).collect();
    let text = program(&mut random, &keys, true, 0);
    assert_eq!(jumps_by_table(&text), 0, "{text}");
}

/// A tree of many comparisons that only distinguish two ranges.
#[oracle::test]
fn a_tree_may_have_two_ranges() {
    let pool = Pool::new();
    let values = [
        0,
        1,
        8,
        9,
        10,
        11,
        40,
        1 << 31,
        (1 << 31) - 1,
        u32::MAX,
        0x8011_8120,
    ];
    for [above, below] in [[">", "<"], ["s>", "s<"], [">=", "<="], ["s>=", "s<="]] {
        for cut in [0, 9, 10, -1, -9, i32::MAX - 1] {
            let lower: String = (0..20)
                .map(|at| format!("if w1 {above} {cut} goto upper{at};"))
                .collect();
            let upper: String = (0..20)
                .map(|at| format!("upper{at}: if w1 {below} {cut} goto under;"))
                .collect();
            let text =
                format!("w1 = *(u32 *)(r1 + 0); {lower} under: w0 = 1; exit; {upper} w0 = 2; exit");
            check(&text, &pool, &values, &[0]);
        }
    }
}

#[oracle::test]
fn tables_use_wide_entries_for_far_targets() {
    let pool = Pool::new();
    let mut random = SplitMix::new(4);
    let keys: Vec<i32> = (0..16).collect();
    let text = program(&mut random, &keys, true, 0);
    let far = "r0 += 0x12345678; r0 ^= r3; ".repeat(400);
    let text = text.replace("; goto next", &format!("; {far}goto next"));
    assert_eq!(jumps_by_table(&text), 1);
    check(&text, &pool, &values(&keys), &[0, 5]);
}

#[oracle::test]
fn a_table_needs_a_free_register() {
    let pool = Pool::new();
    let mut random = SplitMix::new(4);
    let keys: Vec<i32> = (-3..20).collect();
    for used in 4..=10 {
        let registers = 4..used;
        let set: String = registers
            .clone()
            .map(|reg| format!("; r{reg} = {reg}"))
            .collect();
        let add: String = registers.map(|reg| format!("r0 += r{reg}; ")).collect();
        let text = program(&mut random, &keys, true, 0)
            .replace("r0 = 1\n", &format!("r0 = 1{set}\n"))
            .replace("out: exit", &format!("out: {add}r0 += r2; r0 += r3; exit"));
        // The value is dead.
        let last = text.replace("w1 += 1; ", "w1 = w3; ");
        for (text, spare) in [(&text, used < 8), (&last, true)] {
            if !text.contains("\ngoto at0") {
                assert_eq!(jumps_by_table(text), usize::from(spare), "{text}");
            }
            check(text, &pool, &values(&keys), &[0, 5]);
        }
    }
}
