//! The assembler: inverse of printing, labels, positions of errors.

use beebox_isa::ebpf::table::ROWS;
use beebox_isa::ebpf::{
    AsmProblem, Callee, Imm64, Insn, RawInsn, assemble, decode, encode, from_bytes, to_bytes,
};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const LLVM: &str = include_str!("llvm/text.txt");

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}

fn assembled(text: &str) -> Vec<u8> {
    let insns = assemble(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
    to_bytes(&encode(&insns).expect("assembled instructions have an encoding"))
}

/// The program as text, one instruction a line.
fn printed(insns: &[Insn]) -> String {
    insns.iter().map(|insn| format!("{insn}\n")).collect()
}

#[oracle::test]
fn llvm_text_assembles_to_llvm_bytes() {
    let mut compared = 0;
    for line in LLVM.lines().filter(|line| !line.starts_with('#')) {
        let (hex, text) = line.split_once(' ').expect("bytes and text");
        assert_eq!(assembled(text), bytes_of(hex), "{text}");
        compared += 1;
    }
    assert!(compared > 700, "{compared}");
}

#[oracle::test]
fn instructions_print_as_llvm_prints_them() {
    // Each with its number of lines and the form of register names.
    for (version, least, halves) in [
        ("19.1.7 -mcpu=v1", 500, false),
        ("19.1.7 -mcpu=v4", 300, true),
        ("22.1.8 -mcpu=v4", 50, true),
    ] {
        let section = LLVM
            .split("# version ")
            .find_map(|part| part.strip_prefix(version))
            .expect("the section of that version");
        let mut compared = 0;
        for line in section.lines().skip(1) {
            let (hex, text) = line.split_once(' ').expect("bytes and text");
            // We print 64-bit immediates in hexadecimal.
            if text.ends_with(" ll") {
                continue;
            }
            let slots = from_bytes(&bytes_of(hex)).expect("whole slots");
            let insn = decode(&slots)[0];
            let printed = if halves {
                format!("{insn:#}")
            } else {
                insn.to_string()
            };
            assert_eq!(printed, text, "{hex}");
            compared += 1;
        }
        assert!(compared > least, "{compared}");
    }
}

#[oracle::test]
fn every_row_assembles_from_its_text() {
    for row in ROWS {
        for (off, imm) in [(0, 0), (7, 9), (-7, -9), (i16::MIN, i32::MIN)] {
            let mut slots = vec![row.slot(3, 10, off, imm)];
            if row.is_wide() {
                slots.push(RawInsn {
                    imm: row.high.value_or(imm),
                    ..RawInsn::default()
                });
            }
            let text = printed(&decode(&slots));
            assert_eq!(assembled(&text), to_bytes(&slots), "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(oracle::property_seed()),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[oracle::test]
    fn printing_and_assembling_is_the_identity(
        slots in prop::collection::vec(
            (any::<u8>(), any::<u8>(), any::<i16>(), any::<i32>(), any::<[bool; 4]>()),
            0..40,
        )
    ) {
        // Fields are often zero, or most slots would be invalid.
        let slots: Vec<RawInsn> = slots
            .into_iter()
            .map(|(code, regs, off, imm, zero)| RawInsn {
                code: if zero[3] && code & 7 == 0 { 0x18 } else { code },
                regs: if zero[0] { regs & 0x77 } else { regs & 7 },
                off: if zero[1] { 0 } else { off },
                imm: if zero[2] { 0 } else { imm },
            })
            .collect();
        let insns = decode(&slots);
        let back = encode(&insns).expect("decoded instructions have an encoding");
        let normal: Vec<RawInsn> = slots
            .iter()
            .map(|slot| if slot.code == 0x95 && slot.regs == 0 && slot.imm == 0 {
                RawInsn { off: 0, ..*slot }
            } else {
                *slot
            })
            .collect();
        prop_assert_eq!(&back, &normal);
        prop_assert_eq!(assemble(&printed(&insns)), Ok(insns));
    }

    #[oracle::test]
    fn no_text_panics(text in "[ -~\n]{0,80}") {
        let _ = assemble(&text);
    }

    #[oracle::test]
    fn no_mutated_line_panics(
        line in 0usize..700, at in 0usize..60, with in "[ -~\u{e9}]{0,3}",
    ) {
        let text = LLVM.lines().filter(|l| !l.starts_with('#')).nth(line).expect("a line");
        let mut text: String = text.split_once(' ').expect("bytes and text").1.to_owned();
        let at = at % text.len();
        text.replace_range(at..at + 1, &with);
        let _ = assemble(&text);
    }
}

/// Instructions of which the log has the same text: a 64-bit immediate with a meaning, and
/// kernel functions, whose names it prints as those of helpers.
fn is_ambiguous_in_log(insn: &Insn) -> bool {
    match insn {
        Insn::LoadImm64 { imm, .. } => !matches!(imm, Imm64::Value(_)),
        Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) => true,
        _ => false,
    }
}

#[oracle::test]
fn the_log_of_the_verifier_reads_back() {
    let numbers = [0, 1, -1, 7, -300];
    let mut compared = 0;
    for code in 0..=255u8 {
        for regs in [0x00, 0x12, 0x70, 0x07] {
            for (off, imm) in numbers
                .iter()
                .flat_map(|off| numbers.map(|imm| (*off as i16, imm)))
            {
                let slot = RawInsn {
                    code,
                    regs,
                    off,
                    imm,
                };
                let high = RawInsn {
                    code: 0,
                    regs: 0,
                    off: 0,
                    imm: 3,
                };
                let slots = if code == 0x18 {
                    vec![slot, high]
                } else {
                    vec![slot]
                };
                let insns = decode(&slots);
                let names = |_| Some("bpf_name");
                let is_plain = !matches!(insns[0], Insn::Invalid { .. } | Insn::Exit);
                if !is_plain || is_ambiguous_in_log(&insns[0]) {
                    continue;
                }
                let text = format!("12: {}", insns[0].kernel_form(&names));
                assert_eq!(assemble(&text), Ok(insns), "{text}");
                compared += 1;
            }
        }
    }
    assert!(compared > 500, "{compared}");
    let log = "0: (85) call bpf_get_prandom_u32#7\n1: (95) exit\n";
    let texts: Vec<String> = assemble(log).unwrap().iter().map(Insn::to_string).collect();
    assert_eq!(texts, ["call 7", "exit"]);
    let error = assemble("0: (07) r0 -= 1").expect_err("another operation");
    assert_eq!((error.line, error.column), (1, 12));
}

#[oracle::test]
fn the_output_of_clang_reads_back() {
    let text = "
\t.text
\t.file\t\"sum.c\"
\t.section\txdp,\"ax\",@progbits
\t.globl\tsum                             # -- Begin function sum
\t.p2align\t3
\t.type\tsum,@function
sum:                                    # @sum
.Lsum$local:
\t.loc\t0 3 5 prologue_end                # sum.c:3:5
\tr2 = *(u32 *)(r1 + 0)
LBB0_1:                                 # =>This Inner Loop Header: Depth=1
\tif r2 == 0 goto LBB0_2
\tr2 += -1
\tgoto LBB0_1
LBB0_2:
\tr0 = r2
\texit
.Lfunc_end0:
\t.size\tsum, .Lfunc_end0-sum
                                        # -- End function
\t.section\t.BTF,\"\",@progbits
\t.short\t60319                           # 0xeb9f
\t.byte\t1
\t.addrsig
";
    let expected = [
        "r2 = *(u32 *)(r1 + 0)",
        "if r2 == 0 goto +2",
        "r2 += -1",
        "goto -3",
        "r0 = r2",
        "exit",
    ];
    let insns = assemble(text).expect("what clang -S writes");
    let texts: Vec<String> = insns.iter().map(Insn::to_string).collect();
    assert_eq!(texts, expected);
    let two = "\t.text\nexit\n\t.section\ttc,\"ax\",@progbits\nexit\n";
    let error = assemble(two).expect_err("two sections");
    assert_eq!(error.line, 4);
    assert!(
        error
            .to_string()
            .contains("section tc after those of section .text"),
        "{error}"
    );
}

#[oracle::test]
fn labels_count_slots() {
    let program = "
        r1 = 0x1122334455667788 ll   // two slots
    top:
        if r1 == 0 goto done; r1 += -1
        goto top
        call helper                  # a function of this program
    done: exit
    helper: w0 = 1
        r2 = func(helper) ll
        exit
    ";
    let expected = [
        "r1 = 0x1122334455667788 ll",
        "",
        "if r1 == 0 goto +3",
        "r1 += -1",
        "goto -3",
        "call pc+1",
        "exit",
        "w0 = 1",
        "r2 = func(-2) ll",
        "",
        "exit",
    ];
    let insns = assemble(program).expect("a program");
    let texts: Vec<String> = insns.iter().map(Insn::to_string).collect();
    assert_eq!(texts, expected);
}

#[oracle::test]
fn listings_read_back() {
    let listing = "
       0:\tr1 = 0x5 ll
       2:\tif r1 < 0x40 goto +0x1 <LBB0_4>
       3:\tcall 7 <bpf_get_prandom_u32>
       4:\texit
    ";
    let expected = ["r1 = 0x5 ll", "", "if r1 < 64 goto +1", "call 7", "exit"];
    let insns = assemble(listing).expect("a program");
    let texts: Vec<String> = insns.iter().map(Insn::to_string).collect();
    assert_eq!(texts, expected);
}

#[track_caller]
fn refused(text: &str, line: usize, column: usize, says: &str) {
    let error = assemble(text).expect_err(text);
    assert_eq!((error.line, error.column), (line, column), "{error}");
    assert!(error.to_string().contains(says), "{error}");
}

#[oracle::test]
fn errors_have_position_and_expectation() {
    refused("r0 = 1\n  r11 = 2", 2, 3, "found `r11`");
    refused("r0 =", 1, 5, "found the end of the statement");
    refused(
        "r0 = *(u33 *)(r1 + 0)",
        1,
        8,
        "`u8`, `u16`, `u32`, `u64`, `s8`, `s16` or `s32`",
    );
    refused(
        "r1 = 0xffffffff",
        1,
        6,
        "does not fit: the field holds -2147483648 to 2147483647",
    );
    refused("r1 = *(u32 *)(r2 + 32768)", 1, 20, "-32768 to 32767");
    refused("r1 = be16 r2", 1, 11, "expected r1 again, found r2");
    refused("goto nowhere", 1, 6, "no label `nowhere:`");
    refused(
        "a: exit\na: exit",
        2,
        1,
        "label `a` is already defined on line 1",
    );
    refused("if r1 == 1 goto 5", 1, 17, "a label or a signed distance");
    refused(
        "exit 1",
        1,
        6,
        "expected the end of the statement, found `1`",
    );
    refused(
        "r1 = 99999999999999999999 ll",
        1,
        6,
        "99999999999999999999 does not fit",
    );
    refused(".8byte x", 1, 8, "a number of 64 bits");
    refused("ééé", 1, 1, "found `é`");
    refused(
        "ld_pseudo r1, 1, 0x100000000",
        1,
        1,
        "no instruction has these values together",
    );
    assert!(matches!(
        assemble(&format!("goto far\n{}far: exit", "r0 = 0\n".repeat(40_000)))
            .expect_err("too far")
            .problem,
        AsmProblem::TooFar {
            distance: 40_000,
            reach: 32_767,
            ..
        }
    ));
    assert!(
        assemble(&format!(
            "gotol far\n{}far: exit",
            "r0 = 0\n".repeat(40_000)
        ))
        .is_ok()
    );
}
