//! Preparation of filters: checking, conversion, and compilation for the interpreter or to
//! native code.

use std::hint::black_box;

use beebox::{Rules, Semantics, SockFilter};
use classic::{Checked, check, convert};
use interp::ThreadedProgram;
use jit::memory::Pool;
use jit::{Native, Options};
use lower::ClassicFilter;
use spec::SplitMix;

use super::filters;
use crate::race;
use crate::report::{Report, Target, Unit};

const UNIT: Unit = Unit::MicrosPerThousandInsns;
const INSNS: usize = 1000;
const CHECK: &str = "check";
const CONVERT: &str = "convert";
const BOTH: &str = "check + convert";
const COMPILE: &str = "compile for interp";
const TO_NATIVE: &str = "compile for native";

pub(super) fn measure(samples: u32, report: &mut Report) {
    let mut worst: f64 = 0.0;
    for (workload, program) in [
        ("1,000 instructions as libpcap compiles", ports()),
        ("1,000 compares and returns", compares_and_returns()),
        ("1,000 instructions at random", at_random()),
    ] {
        let times = times(&program, samples);
        for (stage, value) in [CHECK, CONVERT, BOTH, COMPILE, TO_NATIVE]
            .into_iter()
            .zip(times)
        {
            report.add_row(workload, stage, UNIT, value);
            if stage == BOTH {
                worst = worst.max(value);
            }
        }
    }
    report.add_figure(
        "check_convert_us_per_1000",
        "µs to check and convert 1,000 instructions: the greatest of 3 programs",
        worst,
        Some(Target::AtMost(10.0)),
    );
}

/// The stages, in microseconds for a thousand instructions.
fn times(program: &[SockFilter], samples: u32) -> Vec<f64> {
    let check = || check(black_box(program), Rules::Socket).expect("the program is valid");
    let checked = check();
    let lowered = ClassicFilter::from_converted(convert(&checked, Semantics::Kernel));
    let lowered = lowered.packet().expect("its rules are those of sockets");
    let convert = |checked: &Checked| convert(checked, Semantics::Kernel);
    let pool = Pool::new();
    let native = |lowered| Native::compile(lowered, &Options::default(), &pool);
    let mut passes: [&mut dyn FnMut(); 5] = [
        &mut || drop(black_box(check())),
        &mut || drop(black_box(convert(black_box(&checked)))),
        &mut || drop(black_box(convert(&check()))),
        &mut || drop(black_box(ThreadedProgram::compile(black_box(&lowered)))),
        &mut || drop(black_box(native(black_box(&lowered)))),
    ];
    let thousands = program.len() as f64 / 1000.0;
    race::times(&mut passes, samples)
        .into_iter()
        .map(|nanoseconds| nanoseconds / 1000.0 / thousands)
        .collect()
}

/// Loads, arithmetic, scratch memory and branches in the proportions of what
/// libpcap compiles, in random order with forward jumps of many lengths: no
/// predictor helps.
fn at_random() -> Vec<SockFilter> {
    let mut random = SplitMix::new(7);
    let mut below = |bound: u64| random.next_u64() % bound;
    // Scratch words must be written before they are read.
    let mut program: Vec<_> = (0..4)
        .map(|word| SockFilter::new(0x02, 0, 0, word))
        .collect();
    while program.len() < INSNS - 2 {
        let left = (INSNS - 2 - program.len()) as u64;
        let mut jump = || below(left.min(200)) as u8;
        let (jt, jf) = if program.len() % 2 == 0 {
            (jump(), 0)
        } else {
            (0, jump())
        };
        let k = below(64) as u32;
        program.push(match below(20) {
            0..3 => SockFilter::new(0x28, 0, 0, k),
            3..5 => SockFilter::new(0x30, 0, 0, k),
            5 => SockFilter::new(0x20, 0, 0, k),
            6 => SockFilter::new(0xb1, 0, 0, 14),
            7 => SockFilter::new(0x48, 0, 0, k),
            8..14 => SockFilter::new(0x15, jt, jf, k),
            14 => SockFilter::new(0x45, jt, jf, 0x1fff),
            15 => SockFilter::new(0x25, jt, jf, k),
            16 => SockFilter::new(0x54, 0, 0, 0xf0),
            17 => SockFilter::new(0x74, 0, 0, 2),
            18 => SockFilter::new(0x02, 0, 0, k % 4),
            _ => SockFilter::new(0x60, 0, 0, k % 4),
        });
    }
    program.push(SockFilter::new(0x06, 0, 0, u32::MAX));
    program.push(SockFilter::new(0x06, 0, 0, 0));
    program
}

/// The code of `port 22`, repeated with other ports; a mismatch leads to the next one.
fn ports() -> Vec<SockFilter> {
    const GOTO_NEXT: SockFilter = SockFilter::new(0x05, 0, 0, 0);
    let one = filters::port_22();
    let mut program = Vec::with_capacity(INSNS);
    for port in 0.. {
        if program.len() + one.len() > INSNS - 1 {
            break;
        }
        program.extend(one.iter().map(|&insn| match (insn.code, insn.k) {
            (0x15, 22) => SockFilter { k: port, ..insn },
            (0x06, 0) => GOTO_NEXT,
            _ => insn,
        }));
    }
    program.resize(INSNS, SockFilter::new(0x06, 0, 0, 0));
    program
}

/// The shape of a long list of rules.
fn compares_and_returns() -> Vec<SockFilter> {
    let mut program = vec![SockFilter::new(0x28, 0, 0, 12)];
    for number in 0.. {
        if program.len() + 3 > INSNS {
            break;
        }
        program.push(SockFilter::new(0x15, 0, 1, number));
        program.push(SockFilter::new(0x06, 0, 0, number + 1));
    }
    program.resize(INSNS, SockFilter::new(0x06, 0, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_are_valid_and_have_the_stated_length() {
        for program in [at_random(), ports(), compares_and_returns()] {
            assert_eq!(program.len(), INSNS);
            check(&program, Rules::Socket).expect("the program is valid");
        }
    }
}
