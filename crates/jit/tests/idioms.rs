//! What compilers write for counts of bits, as clang writes it for each version
//! of the instruction set, and everything that looks nearly like it: each of its
//! instructions left out, looked at, jumped to, or with another constant. All of
//! it computes what the reference evaluator does, and the real ones are one
//! instruction of the machine. So do divisions by constants and inverted masks,
//! whatever registers they are in.

#![cfg(target_arch = "x86_64")]

use std::fmt::Write;

use beebox_jit::memory::Pool;
use beebox_jit::{Draft, Features, Native, Options};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};
use isa::ebpf::{Insn, assemble};
use lower::Lowered;
use spec::{Random, SplitMix};
use testkit::ebpf::reach::Reach;
use testkit::ebpf::reference;
use vm::{Machine, Outcome, Trusted};

const ONES_32: &str = "w2 = w1; w2 >>= 1; w2 &= 0x55555555; w1 -= w2; w0 = w1
    w0 &= 0x33333333; w1 >>= 2; w1 &= 0x33333333; w0 += w1; w1 = w0; w1 >>= 4
    w0 += w1; w0 &= 0x0f0f0f0f; w0 *= 0x01010101; w0 >>= 24";
/// Of instruction sets without 32-bit operations.
const ONES_32_OLD: &str = "r2 = r1; r2 >>= 1; r2 &= 0x55555555; r1 -= r2; r0 = r1
    r0 &= 0x33333333; r1 >>= 2; r1 &= 0x33333333; r0 += r1; r1 = r0; r1 >>= 4
    r0 += r1; r0 &= 0x0f0f0f0f; r0 *= 0x01010101; r1 = 0xff000000 ll; r0 &= r1
    r0 >>= 24";
const ONES_64: &str = "r2 = r1; r2 >>= 1; r3 = 0x5555555555555555 ll; r2 &= r3; r1 -= r2
    r2 = 0x3333333333333333 ll; r0 = r1; r0 &= r2; r1 >>= 2; r1 &= r2; r0 += r1
    r1 = r0; r1 >>= 4; r0 += r1; r1 = 0x0f0f0f0f0f0f0f0f ll; r0 &= r1
    r1 = 0x0101010101010101 ll; r0 *= r1; r0 >>= 56";
/// Of a number that is wanted afterwards.
const ONES_64_KEPT: &str = "r2 = r1; r2 >>= 1; r3 = 0x5555555555555555 ll; r2 &= r3; r3 = r1
    r3 -= r2; r2 = 0x3333333333333333 ll; r0 = r3; r0 &= r2; r3 >>= 2; r3 &= r2
    r0 += r3; r2 = r0; r2 >>= 4; r0 += r2; r2 = 0x0f0f0f0f0f0f0f0f ll; r0 &= r2
    r2 = 0x0101010101010101 ll; r0 *= r2; r0 >>= 56; r0 += r1";
const BEFORE_FIRST_32: &str = "w2 = w1; w2 += -1; w1 ^= -1; w1 &= w2\n";
const BEFORE_FIRST_64: &str = "r2 = r1; r2 += -1; r1 ^= -1; r1 &= r2\n";
/// Every round of a loop adds up a count, with its masks from before the loop.
const LOOP: &str = "r0 = 0; r2 = 0x5555555555555555 ll; r3 = 0x3333333333333333 ll
    r4 = 0x0f0f0f0f0f0f0f0f ll; r5 = 0x0101010101010101 ll; r9 = 3
    again: r7 = r1; r8 = r7; r8 >>= 1; r8 &= r2; r7 -= r8; r8 = r7; r8 &= r3; r7 >>= 2
    r7 &= r3; r8 += r7; r7 = r8; r7 >>= 4; r8 += r7; r8 &= r4; r8 *= r5; r8 >>= 56
    w0 += w8; r1 *= 3; r9 += -1; if r9 != 0 goto again";

/// The bits of a number spread to all below them, and inverted.
fn spread(bits: u32) -> String {
    let name = if bits == 32 { 'w' } else { 'r' };
    let mut text = String::new();
    for by in (0..bits.trailing_zeros()).map(|log| 1 << log) {
        let _ = writeln!(
            text,
            "{name}2 = {name}1; {name}2 >>= {by}; {name}1 |= {name}2"
        );
    }
    text + &format!("{name}1 ^= -1\n")
}

/// The same for the low half, of instruction sets without 32-bit operations.
fn spread_old() -> String {
    let mut text = String::new();
    for by in [1, 2, 4, 8, 16] {
        let mask = u32::MAX << by;
        let _ = writeln!(
            text,
            "r2 = {mask} ll; r3 = r1; r3 &= r2; r3 >>= {by}; r1 |= r3"
        );
    }
    text + "r1 ^= -1\n"
}

/// Every idiom with what it becomes.
fn idioms() -> Vec<(String, Mnemonic)> {
    vec![
        (ONES_32.to_owned(), Mnemonic::Popcnt),
        (ONES_32_OLD.to_owned(), Mnemonic::Popcnt),
        (ONES_64.to_owned(), Mnemonic::Popcnt),
        (ONES_64_KEPT.to_owned(), Mnemonic::Popcnt),
        (LOOP.to_owned(), Mnemonic::Popcnt),
        (BEFORE_FIRST_32.to_owned() + ONES_32, Mnemonic::Tzcnt),
        (BEFORE_FIRST_64.to_owned() + ONES_32_OLD, Mnemonic::Tzcnt),
        (BEFORE_FIRST_64.to_owned() + ONES_64, Mnemonic::Tzcnt),
        (spread(32) + ONES_32, Mnemonic::Lzcnt),
        (spread_old() + ONES_32_OLD, Mnemonic::Lzcnt),
        (spread(64) + ONES_64, Mnemonic::Lzcnt),
    ]
}

/// The statements of a text.
fn statements(text: &str) -> Vec<String> {
    let parts = text.split([';', '\n']).map(|part| part.trim().to_owned());
    parts.filter(|part| !part.is_empty()).collect()
}

/// A whole program: `r1` is a number from memory, other registers are set too.
fn program(statements: &[String], end: &str) -> Vec<Insn> {
    let text = statements.join("\n");
    let text = format!(
        "r6 = r1; r1 = *(u64 *)(r6 + 0); r0 = 5; r2 = 6; r3 = 7; r4 = 8; r5 = 9; r7 = 10
        r8 = 11; r9 = 1\n{text}\n{end}\nexit"
    );
    assemble(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

const NOTHING: &str = "";
/// What shows the registers at the end.
const SHOW: &str = "*(u64 *)(r6 + 8) = r1; *(u64 *)(r6 + 16) = r2; *(u64 *)(r6 + 24) = r3
    *(u64 *)(r6 + 32) = r7; *(u64 *)(r6 + 40) = r8";

fn numbers() -> Vec<u64> {
    let mut numbers = vec![0, 1, 3, 8, u64::MAX, 1 << 63, 1 << 32, 0xffff_ffff, 7 << 31];
    let mut random = SplitMix::new(1);
    for _ in 0..12 {
        let wide = u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        numbers.extend([wide, wide & wide << 13 & wide << 7, wide >> (wide & 63)]);
    }
    numbers
}

/// Compares native code with the reference evaluator.
fn check(insns: &[Insn], pool: &Pool) {
    let natives: Vec<Native> = [Features::detect(), Features::PLAIN]
        .into_iter()
        .map(|features| {
            // SAFETY: it accesses the memory that it is given by constant offsets,
            // and its only loop ends.
            let trusted = unsafe { Trusted::assume_safe(insns.to_vec()) };
            let lowered = Lowered::from_trusted(trusted).unwrap();
            let options = Options {
                features,
                ..Options::default()
            };
            Native::compile(&lowered, &options, pool).unwrap()
        })
        .collect();
    let mut reach = Reach::new();
    for number in numbers() {
        let mut before = [0; 48];
        before[..8].copy_from_slice(&number.to_le_bytes());
        let mut meant = before;
        let mut random = SplitMix::new(0);
        let limits = reference::Limits::default();
        let value = reference::run(insns, &mut meant, &mut random, limits, &mut reach).unwrap();
        for native in &natives {
            let mut memory = before;
            let outcome = native.run_memory(&mut Machine::new(), &mut memory, &mut random);
            let Outcome::Returned(found) = outcome else {
                panic!("{outcome:?}");
            };
            if (found, memory) != (value, meant) {
                let text: Vec<String> = insns.iter().map(|insn| insn.to_string()).collect();
                panic!(
                    "{number:#x}: {found:#x}, not {value:#x}\n{}",
                    text.join("\n")
                );
            }
        }
    }
}

fn count(insns: &[Insn], features: Features, mnemonic: Mnemonic) -> usize {
    let options = Options {
        features,
        ..Options::default()
    };
    let draft = Draft::of_insns(insns.to_vec(), &options).unwrap();
    let decoder = Decoder::with_ip(64, draft.bytes(), 0, DecoderOptions::NONE);
    decoder
        .into_iter()
        .filter(|insn| insn.mnemonic() == mnemonic)
        .count()
}

/// All that code is ever written for.
const ALL: Features = Features {
    bmi1: true,
    bmi2: true,
    movbe: true,
    popcnt: true,
    lzcnt: true,
};

#[test]
fn counts_of_bits_are_one_instruction() {
    let pool = Pool::new();
    for (text, meant) in idioms() {
        let insns = program(&statements(&text), NOTHING);
        check(&insns, &pool);
        assert_eq!(count(&insns, ALL, meant), 1, "{text}");
        assert_eq!(count(&insns, ALL, Mnemonic::Imul), 0, "{text}");
        assert_eq!(count(&insns, Features::PLAIN, meant), 0, "{text}");
        // Without the better instruction the ones are counted.
        let only = Features {
            popcnt: true,
            ..Features::PLAIN
        };
        assert_eq!(count(&insns, only, Mnemonic::Popcnt), 1, "{text}");
    }
}

#[test]
fn registers_that_a_count_goes_through_hold_what_they_should() {
    let pool = Pool::new();
    for (text, _) in idioms() {
        check(&program(&statements(&text), SHOW), &pool);
    }
}

#[test]
fn near_misses_stay_what_they_are() {
    let pool = Pool::new();
    for (text, _) in idioms() {
        let whole = statements(&text);
        for at in 0..whole.len() {
            // A loop goes on as it did.
            if whole[at].starts_with("r9") || whole[at].starts_with("if") {
                continue;
            }
            for variant in twists(&whole, at) {
                for end in [NOTHING, SHOW] {
                    check(&program(&variant, end), &pool);
                }
            }
        }
    }
}

#[test]
fn divisions_by_constants_multiply() {
    let pool = Pool::new();
    let mut divisors = vec![
        3, 5, 6, 7, 9, 10, 11, 12, 25, 28, 60, 100, 125, 641, 1000, 3600,
    ];
    divisors.extend([
        86_400,
        1_000_000,
        6_700_417,
        1_000_000_000,
        i32::MAX - 1,
        i32::MAX,
    ]);
    divisors.extend([
        (1 << 30) + 1,
        (1 << 30) - 1,
        65_535,
        65_537,
        -3,
        i32::MIN + 1,
    ]);
    for divisor in divisors {
        for (operator, reg) in ["/", "%"].into_iter().zip(["r1", "r2"]) {
            // Into a register from another, with all of them wanted and not.
            for end in [NOTHING, SHOW] {
                for moved in ["r0", "r1", "r2", "r3", "r7"] {
                    let text = format!(
                        "{reg} ^= {divisor}; {moved} = r1; {moved} {operator}= {divisor}; r0 ^= {moved}"
                    );
                    let insns = program(&statements(&text), end);
                    check(&insns, &pool);
                    assert_eq!(count(&insns, ALL, Mnemonic::Div), 0, "{text}");
                }
            }
            // Around multiples of the divisor.
            for add in [-1, 0, 1] {
                let text = format!(
                    "r0 = r1; r0 /= {divisor}; r0 *= {divisor}; r0 += {add}; r0 {operator}= {divisor}"
                );
                check(&program(&statements(&text), NOTHING), &pool);
            }
        }
        // Of 32 bits in a register of 64.
        let text = format!("w1 = w1; r2 = r1; r1 /= {divisor}; r2 %= {divisor}; r0 = r1; r0 ^= r2");
        check(&program(&statements(&text), SHOW), &pool);
    }
}

#[test]
fn a_mask_is_inverted_with_its_use() {
    let pool = Pool::new();
    for invert in ["r1 ^= -1", "w1 ^= -1"] {
        for and in ["r1 &= r2", "w1 &= w2", "r2 &= r1", "w2 &= w1", "r1 &= r1"] {
            for before in ["r2 = r1; r2 *= 77", "r1 = r1", "w2 = w2; r1 <<= 9"] {
                for after in [
                    "r0 = r2",
                    "r0 = r1",
                    "w0 = w2",
                    "if r2 == 0 goto +1; r0 = r1",
                ] {
                    let text = format!("{before}; {invert}; {and}; {after}");
                    for end in [NOTHING, "r0 ^= r1", "if w1 s> 0 goto +1; r0 += 1"] {
                        check(&program(&statements(&text), end), &pool);
                    }
                }
            }
        }
    }
    let text = "r2 = r1; r2 *= 77; r1 ^= -1; r2 &= r1; r0 = r2";
    let insns = program(&statements(text), NOTHING);
    assert_eq!(count(&insns, ALL, Mnemonic::Andn), 1);
    assert_eq!(count(&insns, ALL, Mnemonic::Not), 0);
    assert_eq!(count(&insns, Features::PLAIN, Mnemonic::Andn), 0);
}

#[test]
fn loops_are_entered_in_the_middle() {
    let pool = Pool::new();
    // Behind the test of the loop: what is done when it ends, if anything.
    let ends = [
        "if r7 != 5 goto body; r2 ^= 3; goto out",
        "if r7 == 5 goto +1; goto body; r2 ^= 3; goto out",
        "if r7 == 5 goto out; goto body",
        "if r7 == 5 goto out; if r1 s> 0 goto body; r1 += 9; if r1 s> 0 goto body; goto out",
        "if r7 < 5 goto body; if r1 s> 0 goto far; goto out",
        "if r7 == 5 goto out; if r1 s> 0 goto body; if r2 s> 0 goto out; goto body",
        "if r7 != 5 goto body; *(u64 *)(r6 + 40) = r2; exit",
        "if r7 > 4 goto out",
        "if r7 > 4 goto +1; goto body; r2 ^= 1; goto out",
    ];
    let bodies = [
        "r2 += r1; r1 *= 3; goto test",
        "r3 = r2; w4 = 1; if r3 > r1 goto test; w4 = 0; goto test",
        "r2 ^= r1; if r2 s> 0 goto +1; goto test; r2 += 7; goto test",
        "r2 += 1; if r2 s> r1 goto out; goto test",
        "r4 = r1; goto more; inner: r8 += 1; if r8 != 14 goto more; goto +3; more: r4 += r8
         goto inner; r4 ^= 1; r8 = 11; goto test",
    ];
    let before = "r0 = 0; r7 = 0; goto body; test: r7 += 1; r2 += r4";
    for end in ends {
        for body in bodies {
            let text = format!(
                "{before}; {end}; body: {body}; far: r0 += 2; out: r0 += r2; r0 ^= r3; r0 += r8"
            );
            check(&program(&statements(&text), NOTHING), &pool);
        }
    }
}

/// A statement left out, its result looked at or changed, jumped to, jumped over,
/// made twice, or with another constant.
fn twists(whole: &[String], at: usize) -> Vec<Vec<String>> {
    let statement = &whole[at];
    let (label, plain) = statement.split_once(": ").unwrap_or(("", statement));
    let reg = format!("r{}", &plain[1..2]);
    let replaced = |with: Vec<String>| {
        let mut variant = whole.to_vec();
        variant.splice(at..=at, with);
        if !label.is_empty() {
            variant.insert(at, format!("{label}:"));
        }
        variant
    };
    let also = |more: String| replaced(vec![plain.to_owned(), more]);
    let mut all = vec![
        replaced(vec![]),
        replaced(vec![plain.to_owned(), plain.to_owned()]),
        also(format!("*(u64 *)(r6 + 40) = {reg}")),
        also(format!("{reg} ^= 1")),
        also(format!("r4 += {reg}; *(u64 *)(r6 + 40) = r4")),
        also(format!("if {reg} > 9 goto +1; {reg} = 9")),
        also(format!("if {reg} > 9 goto +1; r1 = 9")),
        also("r1 = *(u64 *)(r6 + 0)".to_owned()),
        replaced(vec![format!("if r1 s> 0 goto over; {plain}; over:")]),
    ];
    let mut jumped = vec!["if r1 s> 0 goto middle".to_owned()];
    jumped.extend(replaced(vec![format!("middle: {plain}")]));
    all.push(jumped);
    let (rest, last) = plain.rsplit_once("= ").expect("all of them assign");
    let (number, wide) = match last.strip_suffix(" ll") {
        Some(number) => (number, " ll"),
        None => (last, ""),
    };
    let parsed = match number.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => number.parse::<i64>().ok().map(|number| number as u64),
    };
    if let Some(number) = parsed {
        let shifts = rest.contains(">>");
        let others = [number ^ 1, number.wrapping_add(2), number ^ 1 << 30];
        for other in others.into_iter().take(if shifts { 2 } else { 3 }) {
            let other = if wide.is_empty() {
                (other as i32).to_string()
            } else {
                other.to_string()
            };
            all.push(replaced(vec![format!("{rest}= {other}{wide}")]));
        }
    }
    all
}
