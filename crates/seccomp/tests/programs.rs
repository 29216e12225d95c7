//! Generators of seccomp filters, and of calls near their constants.

#![allow(dead_code, reason = "each test uses a part")]

use beebox_seccomp::{Action, Arch};
use classic::SeccompData;
use isa::classic::{AluOp, Cond, Insn, Operand, Size, SockFilter};
use proptest::prelude::*;
use std::ops::Range;

const CONSTANTS: &[u32] = &[
    0,
    1,
    2,
    3,
    5,
    8,
    16,
    40,
    56,
    101,
    257,
    0x40,
    0xff,
    0x1_0000,
    0x4000_0000,
    0x4000_0038,
    0x7e02_0000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_fffe,
    0xffff_ffff,
];

fn constant() -> impl Strategy<Value = u32> {
    prop_oneof![4 => proptest::sample::select(CONSTANTS), 1 => any::<u32>()]
}

fn offset() -> impl Strategy<Value = u32> {
    prop_oneof![
        3 => Just(0u32),
        1 => Just(4u32),
        6 => (4u32..8).prop_map(|word| word * 4),
        1 => (2u32..16).prop_map(|word| word * 4),
    ]
}

fn returns() -> impl Strategy<Value = Insn> {
    let known = [
        Action::KillProcess,
        Action::KillThread,
        Action::Trap(7),
        Action::Errno(1),
        Action::Errno(38),
        Action::UserNotif,
        Action::Trace(3),
        Action::Log,
        Action::Allow,
    ];
    prop_oneof![
        8 => proptest::sample::select(known.to_vec())
            .prop_map(|action| Insn::RetK(action.to_return())),
        1 => any::<u32>().prop_map(Insn::RetK),
        1 => (0x5_0ff0u32..0x5_1010).prop_map(Insn::RetK),
        1 => Just(Insn::RetA),
    ]
}

/// An instruction whose jumps are fractions of the remaining length.
fn step() -> impl Strategy<Value = Insn> {
    prop_oneof![31 => going_on(), 3 => returns()]
}

/// An instruction other than a return.
fn going_on() -> impl Strategy<Value = Insn> {
    let cond = proptest::sample::select(vec![Cond::Eq, Cond::Gt, Cond::Ge, Cond::Set]);
    let op = proptest::sample::select(vec![
        AluOp::Add,
        AluOp::Sub,
        AluOp::Or,
        AluOp::And,
        AluOp::Xor,
    ]);
    let source = prop_oneof![9 => constant().prop_map(Operand::K), 1 => Just(Operand::X)];
    let jump = (cond, source, any::<u8>(), any::<u8>());
    prop_oneof![
        6 => offset().prop_map(|k| Insn::LoadAbs { size: Size::W, k }),
        8 => jump.prop_map(|(cond, src, jt, jf)| Insn::Jump { cond, src, jt, jf }),
        2 => (op, constant()).prop_map(|(op, k)| Insn::Alu { op, src: Operand::K(k) }),
        1 => proptest::sample::select(vec![AluOp::And, AluOp::Or, AluOp::Xor, AluOp::Add])
            .prop_map(|op| Insn::Alu { op, src: Operand::X }),
        1 => (0u32..32).prop_map(|k| Insn::Alu { op: AluOp::Rsh, src: Operand::K(k) }),
        1 => (0u32..32).prop_map(|k| Insn::Alu { op: AluOp::Lsh, src: Operand::K(k) }),
        1 => (1u32..9).prop_map(|k| Insn::Alu { op: AluOp::Div, src: Operand::K(k) }),
        1 => (0u32..4).prop_map(|k| Insn::Alu { op: AluOp::Mul, src: Operand::K(k) }),
        1 => Just(Insn::Alu { op: AluOp::Div, src: Operand::X }),
        1 => Just(Insn::Neg),
        1 => Just(Insn::Tax),
        1 => Just(Insn::Txa),
        1 => (0u32..4).prop_map(Insn::Store),
        1 => (0u32..4).prop_map(Insn::LoadMem),
        1 => (0u32..4).prop_map(Insn::LoadXMem),
        1 => Just(Insn::LoadLen),
        1 => any::<u8>().prop_map(|k| Insn::Goto(k.into())),
    ]
}

/// A filter that the kernel accepts.
pub(crate) fn filter() -> impl Strategy<Value = Vec<SockFilter>> {
    filter_of(1..40)
}

/// A filter that the kernel accepts, with a length in a range.
pub(crate) fn filter_of(len: Range<usize>) -> impl Strategy<Value = Vec<SockFilter>> {
    from_steps(step(), len)
}

/// A filter of mostly arithmetic on several words.
pub(crate) fn arithmetic(len: Range<usize>) -> impl Strategy<Value = Vec<SockFilter>> {
    let all = vec![
        AluOp::Add,
        AluOp::Sub,
        AluOp::Mul,
        AluOp::Div,
        AluOp::Or,
        AluOp::And,
        AluOp::Xor,
        AluOp::Lsh,
        AluOp::Rsh,
    ];
    let op = proptest::sample::select(all);
    let compute = prop_oneof![
        4 => op.prop_map(|op| Insn::Alu { op, src: Operand::X }),
        2 => (0u32..8).prop_map(|word| Insn::LoadAbs { size: Size::W, k: word * 8 }),
        2 => Just(Insn::Tax),
        1 => (0u32..4).prop_map(Insn::Store),
        1 => (0u32..4).prop_map(Insn::LoadMem),
    ];
    from_steps(prop_oneof![2 => compute, 1 => going_on()], len)
}

/// A filter whose instructions are mostly reachable: it returns at its end only.
pub(crate) fn deep(len: Range<usize>) -> impl Strategy<Value = Vec<SockFilter>> {
    from_steps(going_on(), len)
}

fn from_steps(
    step: impl Strategy<Value = Insn>,
    len: Range<usize>,
) -> impl Strategy<Value = Vec<SockFilter>> {
    let body = proptest::collection::vec(step, len);
    (body, proptest::collection::vec(returns(), 1..4)).prop_map(|(body, ends)| {
        // Words are written before they are read.
        let mut insns: Vec<Insn> = (0..4).map(Insn::Store).collect();
        insns.extend(body);
        insns.extend(ends);
        let count = insns.len();
        for (at, insn) in insns.iter_mut().enumerate() {
            let room = count - at - 1;
            match insn {
                Insn::Jump { jt, jf, .. } => {
                    // Short jumps are more frequent.
                    *jt = (usize::from(*jt) % room.min(6)) as u8;
                    *jf = (usize::from(*jf) % room.min(4)) as u8;
                }
                Insn::Goto(k) => *k %= room.min(8) as u32,
                _ => {}
            }
        }
        insns.into_iter().map(Insn::encode).collect()
    })
}

/// An architecture.
pub(crate) fn interesting_arch() -> impl Strategy<Value = Arch> {
    proptest::sample::select(vec![Arch::X86_64, Arch::X86_64, Arch::I386, Arch::X32])
}

/// A call whose words are near the constants of some programs.
pub(crate) fn data_for(programs: &[Vec<SockFilter>], arch: Arch, seed: [u64; 8]) -> SeccompData {
    let constants: Vec<u32> = programs.iter().flatten().map(|insn| insn.k).collect();
    let pick = |seed: u64| {
        let near = constants[seed as usize % constants.len()];
        match seed >> 60 {
            0..8 => near,
            8 => near.wrapping_add(1),
            9 => near.wrapping_sub(1),
            10..13 => CONSTANTS[(seed >> 8) as usize % CONSTANTS.len()],
            13 => near << (seed >> 8 & 31),
            _ => (seed >> 16) as u32,
        }
    };
    let wide = |seed: u64| {
        let high = if seed >> 32 & 3 == 0 {
            pick(seed.rotate_left(13))
        } else {
            0
        };
        u64::from(high) << 32 | u64::from(pick(seed))
    };
    let mut nr = pick(seed[0]);
    if arch == Arch::X32 {
        nr = nr & 0x3fff_ffff | 0x4000_0000;
    }
    let narrow = |value: u64| {
        if arch.has_narrow_arguments() {
            value & 0xffff_ffff
        } else {
            value
        }
    };
    SeccompData {
        nr: nr as i32,
        arch: arch.audit(),
        instruction_pointer: narrow(wide(seed[1])),
        args: std::array::from_fn(|at| narrow(wide(seed[at + 2]))),
    }
}
