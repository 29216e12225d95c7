//! Programs that expose whole return values where only accept or reject is observable.
//!
//! A datagram arrives cut to the filter's return value, so of a large value only
//! "at least the length" shows. A state dump is the program with its returns led to
//! a ladder at its end, which looks up the packet by a number that tells packets
//! apart (its length, or the number of a system call) and compares the value with
//! the one expected for it. A run that ends without a return is not led there:
//! it shows what it always showed.

use isa::classic::{Cond, Insn, Operand, Size, SockFilter};

/// Classification of inputs by a ladder, and its results.
#[derive(Clone, Copy, Debug)]
pub struct Ladder {
    /// Loads the number that tells inputs apart.
    pub key: Insn,
    /// Returned when the value is the expected one.
    pub expected: u32,
    /// Returned when it is not, or the input is not on the ladder.
    pub unexpected: u32,
}

impl Ladder {
    /// For packets of different lengths: kept whole, or dropped.
    pub const BY_LENGTH: Ladder = Ladder {
        key: Insn::LoadLen,
        expected: u32::MAX,
        unexpected: 0,
    };

    /// For calls of different numbers: two different errors.
    pub const BY_SYSCALL: Ladder = Ladder {
        key: Insn::LoadAbs {
            size: Size::W,
            k: 0,
        },
        expected: 0x0005_0001,
        unexpected: 0x0005_0002,
    };
}

/// The state dump of a valid program for these keys, each with its expected value;
/// `None` where a jump of the program would become too long.
pub fn state_dump(
    program: &[SockFilter],
    ladder: Ladder,
    expected: &[(u32, u32)],
) -> Option<Vec<SockFilter>> {
    let insns: Vec<Insn> = program.iter().map(|&raw| Insn::decode(raw)).collect();
    let starts: Vec<usize> = insns
        .iter()
        .scan(0, |next, insn| {
            let start = *next;
            *next += if matches!(insn, Insn::RetK(_)) { 2 } else { 1 };
            Some(start)
        })
        .collect();
    let end = starts.last()?
        + if matches!(insns.last()?, Insn::RetK(_)) {
            2
        } else {
            1
        };
    let mut result = Vec::with_capacity(end + 3 * expected.len() + 4);
    for (at, &insn) in insns.iter().enumerate() {
        let skip = |skipped: usize| Some(starts.get(at + 1 + skipped)? - starts[at] - 1);
        let to_ladder = |from: usize| Insn::Goto((end - from - 1) as u32);
        match insn {
            Insn::RetK(k) => result.extend([Insn::LoadImm(k), to_ladder(starts[at] + 1)]),
            Insn::RetA => result.push(to_ladder(starts[at])),
            Insn::Goto(k) => result.push(Insn::Goto(skip(k as usize)? as u32)),
            Insn::Jump { cond, src, jt, jf } => result.push(Insn::Jump {
                cond,
                src,
                jt: skip(jt.into())?.try_into().ok()?,
                jf: skip(jf.into())?.try_into().ok()?,
            }),
            other => result.push(other),
        }
    }
    result.extend([Insn::Tax, ladder.key]);
    for (rung, &(key, value)) in expected.iter().enumerate() {
        let to_verdicts: u8 = (3 * (expected.len() - rung - 1)).try_into().ok()?;
        result.extend([
            equal(key, 0, 2),
            Insn::Txa,
            equal(value, to_verdicts.checked_add(1)?, to_verdicts),
        ]);
    }
    result.extend([Insn::RetK(ladder.unexpected), Insn::RetK(ladder.expected)]);
    Some(result.into_iter().map(Insn::encode).collect())
}

fn equal(value: u32, jt: u8, jf: u8) -> Insn {
    Insn::Jump {
        cond: Cond::Eq,
        src: Operand::K(value),
        jt,
        jf,
    }
}
