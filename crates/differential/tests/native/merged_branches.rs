//! Merged branches of packet filters: conjunctions, alternatives and near misses of both,
//! on packets that pass and fail each test, truncated at every length, against the plain
//! interpreter.

#![cfg(target_arch = "x86_64")]

use classic::text::{self, Form};
use classic::{Checked, PlainProgram, Rules, Semantics, check, convert};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};
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
const LATER: &str = "ldh [20]\njset #0x1fff, no\n";
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

fn decode(native: &Native<PacketFilter>) -> Vec<Instruction> {
    let options = DecoderOptions::NONE;
    let decoder = Decoder::with_ip(64, native.image(), 0, options);
    decoder.into_iter().collect()
}

fn is_jump(insn: &&Instruction) -> bool {
    insn.mnemonic() != Mnemonic::Jmp && format!("{:?}", insn.mnemonic()).starts_with('J')
}

fn is_conditional_move(insn: &&Instruction) -> bool {
    format!("{:?}", insn.mnemonic()).starts_with("Cmov")
}

/// Numbers of conditional jumps and conditional moves in the unchecked version of a
/// filter's code.
fn conditional(filter: &str) -> (usize, usize) {
    let insns = decode(&compile(&checked(filter), Semantics::Capture));
    // The first jump leads to the version with bounds checks.
    let first = insns.iter().find(is_jump).expect("it asks for the length");
    let checks = first.near_branch_target();
    let fast = || insns.iter().filter(|insn| insn.ip() < checks);
    // Loads that may be out of bounds jump there, too.
    let jumps = fast()
        .filter(is_jump)
        .filter(|insn| insn.near_branch_target() != checks);
    (jumps.count(), fast().filter(is_conditional_move).count())
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
fn a_conjunction_is_merged() {
    let filter = [IS_TCP, LATER, PORTS, ENDS].concat();
    agrees(&filter);
    // Three tests of which the first is a difference, and two ports; the outcome masks the
    // result.
    assert_eq!(conditional(&filter), (0, 4));
    // Other instructions than a result may follow.
    let more = [
        IS_TCP,
        LATER,
        PORTS,
        "yes: ldb [x + 26]\nand #0xf0\nret a\nno: ret #0\n",
    ]
    .concat();
    agrees(&more);
    // One jump for all tests, one for the bounds check of the last load.
    assert_eq!(conditional(&more), (2, 4));
}

#[oracle::test]
fn alternatives_are_merged() {
    let protocols = "ldh [12]\njne #0x800, no\nldb [23]\njeq #132, one\njeq #6, one\n\
                     jne #17, no\none: ";
    let filter = [protocols, LATER, PORTS, ENDS].concat();
    agrees(&filter);
    assert_eq!(conditional(&filter), (0, 6));
    // The failure target is not the next instruction.
    let elsewhere =
        "ldh [12]\njne #0x800, no\nldh [34]\njeq #22, yes\nldh [36]\njeq #22, yes, no\n";
    let filter = [elsewhere, "no: ret #0\nyes: ret #7\n"].concat();
    agrees(&filter);
    assert_eq!(conditional(&filter), (0, 2));
    let filter = [elsewhere, "ldb [0]\nret a\nyes: ret #7\nno: ret #0\n"].concat();
    agrees(&filter);
}

#[oracle::test]
fn any_two_results_are_selected() {
    let conjunction = "ldh [12]\njne #0x800, no\nldb [23]\njne #6, no\nldh [36]\njeq #22, ";
    let choice = "ldh [12]\njne #0x800, no\nldh [34]\njeq #22, yes\nldh [36]\njeq #22, ";
    for tests in [conjunction, choice] {
        let to_zero = format!("{tests}yes, no\nyes: ret #7\nno: ret #0\n");
        let (_, fewest) = conditional(&to_zero);
        for (held, failed, masked) in [
            ("7", "0", true),
            ("0", "7", true),
            ("0xffffffff", "0", true),
            ("0", "0xffffffff", true),
            ("0", "0", true),
            ("7", "7", false),
            ("7", "9", false),
        ] {
            let (yes, no) = (
                format!("yes: ret #{held}\n"),
                format!("no: ret #{failed}\n"),
            );
            agrees(&format!("{tests}yes, no\n{no}{yes}"));
            let filter = format!("{tests}yes, no\n{yes}{no}");
            agrees(&filter);
            let choices = fewest + usize::from(!masked);
            assert_eq!(conditional(&filter), (0, choices), "{filter}");
        }
    }
}

#[oracle::test]
fn only_the_link_layer_protocol_is_a_branch() {
    let filter = include_str!("../../../bench/programs/port-22.asm");
    agrees(filter);
    assert_eq!(conditional(filter), (1, 11));
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
fn the_last_test_may_skip_a_move() {
    agrees(
        "ldx #5\nldb [12]\njne #8, no\nldb [21]\njne #0, no\nldb [23]\njne #6, no\nldx #9\n\
         no: txa\nret a\n",
    );
}

#[oracle::test]
fn address_tests_stay_branches() {
    let address = "ld [26]\njne #0, no\n";
    let filter = [IS_TCP, address, LATER, PORTS, ENDS].concat();
    agrees(&filter);
    assert_eq!(conditional(&filter), (1, 5));
}

#[oracle::test]
fn other_jumps_may_target_merged_tests() {
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
fn live_registers_are_not_overwritten_speculatively() {
    // The accumulator is live where a test fails, or where an alternative holds.
    agrees(&["ldb [12]\njne #8, no\nldb [23]\njne #6, no\nldb [21]\nret a\nno: ret a\n"].concat());
    agrees(
        "ldb [13]\njne #0, no\nldb [23]\njeq #6, yes\nldb [37]\njne #22, no\nyes: ret a\nno: ret #1\n",
    );
    agrees(
        "ldb [13]\nldb [23]\njeq #6, yes\nldb [37]\njeq #22, yes\nldb [12]\njne #8, no\n\
            no: ret #1\nyes: ret a\n",
    );
    // The index register, and a word of scratch memory.
    agrees(
        "ldx #5\nldb [12]\njne #8, no\nldxb 4*([14]&0xf)\nldb [x + 14]\njne #0, no\n\
            ldb [13]\nret a\nno: txa\nret a\n",
    );
    agrees(
        "ld #5\nst M[1]\nldb [12]\njne #8, no\nldb [23]\nst M[1]\nldb [13]\njne #0, no\n\
            ldb [21]\nret #9\nno: ld M[1]\nret a\n",
    );
}

#[oracle::test]
fn a_load_that_ends_the_program_is_executed() {
    // A test that holds skips the load, one that fails does not.
    let tests = "ldx #60\nldb [13]\njne #0, no\nldb [12]\njeq #8, yes\nldb [x + 14]\n";
    let ends = "ldb [23]\nret a\n";
    agrees(&[tests, "no: ret #5\nyes: ", ends].concat());
    agrees(&[tests, "ja no\nyes: ", ends, "no: ret #5\n"].concat());
    // A load that always fails, after a test with another failure target.
    let outside = "ldb [12]\njne #8, no\nldb [21]\njne #0, no\nldx #1\nldb [x + 0x80000000]\n\
                   jne #0, no\nldb [23]\njne #6, no\nret #9\nno: ret #3\n";
    agrees(outside);
    agrees(&outside.replace("[x + 0x80000000]", "[0x80000000]"));
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
fn programs_with_side_effects_are_not_restarted() {
    // A random number, and scratch memory that is read before it is written.
    agrees(
        &[
            "ld rand\nst M[1]\n",
            IS_TCP,
            PORTS,
            "yes: ld M[1]\nret a\nno: ret #0\n",
        ]
        .concat(),
    );
    agrees(
        &[
            "ld M[1]\nadd #1\nst M[1]\n",
            IS_TCP,
            PORTS,
            "yes: ld M[1]\nret a\nno: ret #0\n",
        ]
        .concat(),
    );
    agrees(
        &[
            "ld len\nst M[1]\n",
            IS_TCP,
            PORTS,
            "yes: ld M[1]\nret a\nno: ret #0\n",
        ]
        .concat(),
    );
}

#[oracle::test]
fn known_values_survive_merging() {
    // The last value is compared with 0 after the tests.
    agrees(
        "ldb [12]\njne #8, no\nldb [21]\njne #0, no\nldb [23]\njeq #0, no\njeq #0, odd\nret #5\nodd: ret #6\n\
         no: ret #0\n",
    );
}

#[oracle::test]
fn backward_jumps_are_not_counted_twice() {
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
    let mut joined = 0;
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
        let insns = decode(&compile(&checked, Semantics::Capture));
        // One may be the returned value.
        joined += usize::from(insns.iter().filter(is_conditional_move).count() > 2);
    }
    // Otherwise the test proves little.
    assert!(joined > 500, "{joined} of 3000");
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
