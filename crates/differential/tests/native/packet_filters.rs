//! Packet filters on packets that pass and fail each test, truncated at every length, against the
//! plain interpreter.

#![cfg(target_arch = "x86_64")]

use classic::text::{self, Form};
use classic::{Checked, PlainProgram, Rules, Semantics, check, convert};
use jit::memory::Pool;
use jit::{Features, Native, Optimization, Optimizations, Options};
use lower::{ClassicFilter, PacketFilter};
use packet::{Metadata, Packet};
use spec::SplitMix;
use testkit::generate::Generator;
use vm::{Machine, Outcome};

const IS_IPV4: &str = "ldh [12]\njne #0x800, no\n";
/// TCP over IPv4, as filters for a port test it.
const IS_TCP: &str = "ldh [12]\njne #0x800, no\nldb [23]\njne #6, no\n";
const PORTS: &str = "ldxb 4*([14]&0xf)\nldh [x + 14]\njeq #22, yes\n\
                     ldh [x + 16]\njne #22, no\n";
/// Tests whose both outcomes continue.
const OTHERS: &str = "ldb [46]\njeq #0x50, on\nldb [0]\njeq #9, on\nldb [1]\njeq #9, on\non: ";
const ENDS: &str = "yes: ret #7\nno: ret #0\n";

fn checked(filter: &str) -> Checked {
    let program = text::read(filter.as_bytes(), Some(Form::Asm)).expect(filter);
    check(&program, Rules::Capture).expect(filter)
}

fn compile(checked: &Checked, semantics: Semantics) -> Native<PacketFilter> {
    compile_with(&Options::default(), checked, semantics)
}

fn compile_with(
    options: &Options,
    checked: &Checked,
    semantics: Semantics,
) -> Native<PacketFilter> {
    let lowered = ClassicFilter::from_converted(convert(checked, semantics)).packet();
    let lowered = lowered.expect("the rules are those of packets");
    Native::compile(&lowered, options, &Pool::new()).expect("every filter compiles")
}

/// All optimizations but one.
fn without(optimization: Optimization) -> Options {
    Options {
        optimizations: Optimizations::ALL.without(optimization),
        ..Options::default()
    }
}

/// An SSH packet.
fn ssh() -> Vec<u8> {
    let mut bytes = vec![0; 80];
    bytes[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    bytes[23] = 6;
    bytes[34..38].copy_from_slice(&[0xc0, 0x01, 0, 22]);
    bytes[46] = 0x50;
    bytes
}

/// The packet, and others in which one or two bytes differ.
fn packets() -> Vec<Vec<u8>> {
    let with = |changes: &[(usize, u8)]| {
        let mut bytes = ssh();
        for &(at, value) in changes {
            bytes[at] = value;
        }
        bytes
    };
    let single = [
        (12, 6),
        (13, 6),
        (14, 0x46),
        (14, 0x4f),
        (14, 0x40),
        (20, 0x1f),
        (20, 0x40),
        (21, 1),
        (22, 1),
        (23, 17),
        (23, 132),
        (23, 1),
        (26, 9),
        (30, 9),
        (34, 0),
        (36, 1),
        (37, 21),
        (37, 80),
        (46, 0x80),
    ];
    let mut packets = vec![ssh(), with(&[(34, 0), (35, 22), (37, 9)])];
    for one in single {
        packets.push(with(&[one]));
        packets.extend(single.map(|other| with(&[one, other])));
    }
    packets
}

/// With the processor's features, and with none.
fn both_features() -> [Options; 2] {
    let plain = Options {
        features: Features::PLAIN,
        ..Options::default()
    };
    [Options::default(), plain]
}

fn answers(
    options: &Options,
    filter: &str,
    checked: &Checked,
    semantics: Semantics,
    packets: &[Vec<u8>],
) {
    let native = compile_with(options, checked, semantics);
    let plain = PlainProgram::prepare(checked, semantics);
    let mut machine = Machine::new();
    let meta = Metadata::UNKNOWN;
    for bytes in packets {
        for len in 0..=bytes.len() {
            let packet = Packet::captured(&bytes[..len], bytes.len() as u32, &meta);
            let value = plain.run(&packet, &mut SplitMix::new(7));
            let outcome = native.run(&mut machine, &packet, &mut SplitMix::new(7), 1 << 20);
            let Outcome::Returned(found) = outcome else {
                panic!("{filter}\nended with {outcome:?}");
            };
            assert_eq!(
                Ok(found as u32),
                value,
                "{filter}\n{semantics:?} {options:?} {len} of {bytes:02x?}"
            );
        }
    }
}

fn agrees(filter: &str) {
    let checked = checked(filter);
    let packets = packets();
    for semantics in [Semantics::Capture, Semantics::Kernel] {
        for options in both_features() {
            answers(&options, filter, &checked, semantics, &packets);
        }
    }
}

#[oracle::test]
fn arithmetic_may_come_between() {
    for by in [
        "lsh x", "rsh x", "and #6", "add #0", "mul x", "div x", "mod x", "neg",
    ] {
        agrees(&format!(
            "ldb [12]\njne #8, no\nldb [21]\njne #0, no\nldx #1\nldb [23]\njeq #17, in\n{by}\n\
             jeq #12, in\njne #6, no\nin: ldb [20]\njne #0, no\nret #9\nno: ret #3\n"
        ));
    }
}

#[oracle::test]
fn jumps_into_conjunctions_and_alternatives() {
    // Jumps to the tests after a test, to alternatives, or after alternatives; packets for
    // the port take these paths.
    let way = |target: &str| format!("ldb [37]\njset #0x10, {target}\n");
    for (target, between) in [
        (
            "in",
            "ldb [22]\njne #0, no\nin: jeq #99, no\nldb [23]\njne #6, no\n",
        ),
        (
            "in",
            "ldb [23]\njeq #6, in\njne #17, no\nin: ldb [21]\njne #0, no\n",
        ),
        (
            "in",
            "ldb [23]\njeq #6, in\njeq #132, in\njne #17, no\nin: ldb [21]\njne #0, no\n",
        ),
        (
            "behind",
            "ldb [23]\njeq #6, in\njne #17, no\nin: ldb [21]\nbehind: jeq #99, no\n",
        ),
        (
            "two",
            "ldb [23]\njeq #6, in\ntwo: jeq #22, in\njne #17, no\nin: ldb [21]\njne #0, no\n",
        ),
    ] {
        let rest = "ldb [22]\njne #0, no\n";
        agrees(&[OTHERS, IS_IPV4, &way(target), between, rest, PORTS, ENDS].concat());
    }
    // A comparison tree, too: after its last comparison, which is a jump target.
    let look_up = "ldb [37]\njset #0x40, last\nldb [23]\njeq #1, yes\njeq #2, yes\njeq #3, yes\n\
                   last: ";
    for last in ["jeq #132, no\n", "jeq #132, in\njne #6, no\nin: "] {
        let behind = "ldb [21]\njne #0, no\nldb [22]\njne #0, no\n";
        agrees(&[OTHERS, look_up, last, behind, ENDS].concat());
    }
}

#[oracle::test]
fn loads_outside_the_packet_decide() {
    // The index changes between loads.
    agrees(
        "ldb [12]\njne #8, no\nldb [13]\njne #0, no\nldxb 4*([14]&0xf)\nldb [x + 14]\n\
            jne #0, no\nldxb 4*([20]&0xf)\nldb [x + 40]\njne #0, no\nldb [23]\nret a\nno: ret #3\n",
    );
    // Offsets whose sum exceeds 32 bits, or is 0.
    for index in ["0xffffffff", "0xfffffff0", "0x7fffffff", "0x80000000"] {
        for offset in ["2", "40", "0x7ffffffe", "0x7fffffff"] {
            let loads = format!(
                "ldb [12]\njne #8, no\nldb [13]\njne #0, no\nldx #{index}\nldb [23]\njne #6, no\n\
                 ldb [x + {offset}]\njne #0, no\nldh [x + {offset}]\njne #0, no\nret #9\nno: ret #3\n"
            );
            agrees(&loads);
        }
    }
    // A load without a test, among tests.
    agrees(
        &[
            IS_TCP,
            "ldxb 4*([14]&0xf)\nldb [x + 60]\nldh [20]\njset #0x1fff, no\n",
            ENDS,
        ]
        .concat(),
    );
}

#[oracle::test]
fn backward_jumps_are_counted_once() {
    let filter = "ldb [12]\njne #8, no\nldb [23]\njne #6, no\nldx #0\nnext: txa\nadd #1\ntax\n\
                  jge #9, out\nja next\nout: ldb [21]\njne #0, no\nldb [x + 60]\njne #0, no\n\
                  ret #9\nno: ret #3\n";
    let native = compile(&checked(filter), Semantics::Capture);
    let mut machine = Machine::new();
    let bytes = &ssh()[..60];
    let packet = Packet::captured(bytes, 80, &Metadata::UNKNOWN);
    let outcome = native.run(&mut machine, &packet, &mut SplitMix::new(7), 8);
    assert_eq!(outcome, Outcome::Returned(0));
    agrees(filter);
    // A result that a backward jump reaches.
    let filter = "ja over\nback: ret #1\nover: ldb [23]\njeq #132, yes\nja back\nyes: ret #2\n";
    let native = compile(&checked(filter), Semantics::Capture);
    let outcome = native.run(&mut machine, &packet, &mut SplitMix::new(7), 0);
    assert_eq!(outcome, Outcome::BudgetExhausted);
    agrees(filter);
}

#[oracle::test]
fn generated_filters_agree() {
    for seed in 0..3000 {
        let mut generator = Generator::new(seed);
        let program = generator.filter();
        let checked = check(&program, Rules::Capture).expect("generated programs are valid");
        let packets: Vec<_> = (0..4).map(|_| generator.packet_bytes(70)).collect();
        for semantics in [Semantics::Capture, Semantics::Kernel] {
            let [all, plain] = both_features();
            let one = Optimization::ALL[seed as usize % Optimization::ALL.len()];
            for options in [all, plain, without(one)] {
                let filter = format!("{program:x?}");
                answers(&options, &filter, &checked, semantics, &packets);
            }
        }
    }
}

#[oracle::test]
fn every_optimization_can_be_disabled() {
    let filter = include_str!("../../../bench/programs/port-22.asm");
    let checked = checked(filter);
    let packets = packets();
    for semantics in [Semantics::Capture, Semantics::Kernel] {
        for &one in Optimization::ALL {
            answers(&without(one), filter, &checked, semantics, &packets);
        }
    }
}
