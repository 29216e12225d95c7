//! Validity of random slots, with fields at the limits of rules, by the running kernel and
//! by the table.

use isa::ebpf::{Fault, Group, Insn, RawInsn, Row, decode};
use kernel_client::kernel_release;
use kernel_client::load::may_load;
use spec::SplitMix;
use spec::programs::ProgramType;
use std::collections::BTreeMap;
use sys::bpf::{LogLevel, ProgLoad};

const SLOTS: u64 = 20_000;

const REGS: &[u8] = &[0, 0, 0, 1, 2, 6, 7, 10, 11, 15];
const OFFS: &[i16] = &[0, 0, 0, 0, 1, 8, 16, 32, -1, 256];
const IMMS: &[i32] = &[
    0, 0, 0, 1, 7, 8, 16, 32, 64, 0x41, 0x50, 0x51, 0xa0, 0xa1, 0xe0, 0xe1, 0xf0, 0xf1, 0x100,
    0x110, -1, 0x10000,
];

/// The kernel's answer for a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    UnknownOpcode,
    ReservedField,
    RegisterOutOfRange,
    Accepted,
    /// The kernel stopped at an error unrelated to the slot's form.
    SomethingElse,
}

impl Verdict {
    /// The verdict on a program whose only doubtful slot it is.
    fn of(program: &[RawInsn]) -> Verdict {
        let request =
            ProgLoad::new(ProgramType::SocketFilter.number(), program).with_log(LogLevel::LEVEL1);
        let Err(refused) = request.load() else {
            return Verdict::Accepted;
        };
        let reason = refused.reason();
        let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
        if says(&["unknown opcode"]) {
            Verdict::UnknownOpcode
        } else if says(&[
            "uses reserved fields",
            "invalid BPF_LD_IMM",
            "invalid bpf_ld_imm64",
            "unrecognized bpf_ld_imm64",
            "invalid atomic opcode",
            "invalid may_goto",
        ]) {
            Verdict::ReservedField
        } else if reason.starts_with('R') && reason.ends_with("is invalid") {
            Verdict::RegisterOutOfRange
        } else {
            Verdict::SomethingElse
        }
    }

    /// True if the table's answer is allowed for the slot.
    fn agrees(self, raw: RawInsn, insn: Insn) -> bool {
        let fault = match insn {
            Insn::Invalid { fault, .. } => Some(fault),
            _ => None,
        };
        let later = Row::with_code(raw.code).any(|row| row.group == Group::Later);
        match self {
            Verdict::UnknownOpcode => fault == Some(Fault::UnknownOpcode) || later,
            // Of a load in no mode Linux says that its fields are wrong.
            Verdict::ReservedField if raw.code & 7 == 1 => fault.is_some(),
            Verdict::ReservedField => {
                matches!(fault, Some(Fault::ReservedField | Fault::BrokenImm64))
            }
            Verdict::RegisterOutOfRange => fault == Some(Fault::RegisterOutOfRange),
            Verdict::Accepted => fault.is_none() && !later,
            Verdict::SomethingElse => true,
        }
    }
}

/// A program in which every register has a value, and the index of the slot.
fn program(random: &mut SplitMix) -> (Vec<RawInsn>, usize) {
    let mut below = |bound: usize| (random.next_u64() % bound as u64) as usize;
    let value = |dst: u8| match dst {
        // The context, which packet loads expect there.
        6 => RawInsn {
            code: 0xbf,
            regs: 0x16,
            ..RawInsn::default()
        },
        _ => RawInsn {
            code: 0xb7,
            regs: dst,
            ..RawInsn::default()
        },
    };
    let mut program: Vec<RawInsn> = (0..10).filter(|&dst| dst != 1).map(value).collect();
    let at = program.len();
    let raw = RawInsn {
        code: below(256) as u8,
        regs: REGS[below(REGS.len())] | REGS[below(REGS.len())] << 4,
        off: OFFS[below(OFFS.len())],
        imm: IMMS[below(IMMS.len())],
    };
    program.push(raw);
    if raw.code == 0x18 && below(4) != 0 {
        program.push(RawInsn {
            off: i16::from(below(4) == 0),
            imm: below(2) as i32,
            ..RawInsn::default()
        });
    }
    program.push(value(0));
    program.push(RawInsn {
        code: 0x95,
        ..RawInsn::default()
    });
    (program, at)
}

#[oracle::test]
fn verdicts_of_slots_equal_the_kernels() {
    let what = "the kernel's verdict on instructions";
    if oracle::found(what, kernel_release()).is_none() || oracle::found(what, may_load()).is_none()
    {
        return;
    }
    let mut random = SplitMix::new(0);
    let mut verdicts = BTreeMap::new();
    for _ in 0..SLOTS {
        let (program, at) = program(&mut random);
        let verdict = Verdict::of(&program);
        let insn = decode(&program)[at];
        assert!(
            verdict.agrees(program[at], insn),
            "{:x?}: {verdict:?}, {insn:?}",
            program[at]
        );
        *verdicts.entry(verdict).or_insert(0) += 1;
    }
    // All verdicts are met, so the words that tell them apart are still right.
    let least = verdicts.values().min();
    assert!(verdicts.len() == 5 && least > Some(&100), "{verdicts:?}");
}
