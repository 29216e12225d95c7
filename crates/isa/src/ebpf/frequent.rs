//! Slots of the kinds that programs consist of, decoded without the match over all
//! rows.
//!
//! Most slots hold arithmetic, a load, a store or a jump, and within such a kind the
//! opcode only says which operation it is. So for every opcode this keeps the
//! instruction of the slot that is otherwise zero, its kind, and which bits must be
//! zero in all its slots; operands are then filled in by kind. That is a branch of few
//! ways where the rows are one of 130, so it needs fewer instructions, and a program
//! that was never seen before is predicted better. What is here derives from the
//! table, but for where each kind keeps its operands, which a test compares with the
//! rows.

use super::insn::{Callee, Insn, Operand, RawInsn, Reg};
use super::row::Field;
use super::table::{ROWS, build};

/// What the slots of an opcode have in common.
#[derive(Clone, Copy)]
struct Blank {
    /// The instruction with operands of zero.
    insn: Insn,
    /// The bits of a slot that are no operand's.
    reserved: u64,
    kind: Kind,
}

/// Where an instruction keeps its operands.
#[derive(Clone, Copy)]
enum Kind {
    Alu,
    Load,
    Store,
    Jump,
    Goto,
    Call,
    Exit,
    Rare,
}

impl Kind {
    const fn of(insn: Insn) -> Kind {
        match insn {
            Insn::Alu { .. } => Kind::Alu,
            Insn::Load { .. } => Kind::Load,
            Insn::Store { .. } => Kind::Store,
            Insn::Jump { .. } => Kind::Jump,
            Insn::Goto { .. } => Kind::Goto,
            Insn::Call(_) => Kind::Call,
            Insn::Exit => Kind::Exit,
            _ => Kind::Rare,
        }
    }
}

static BLANKS: [Blank; 256] = {
    let mut blanks = [Blank {
        insn: Insn::Imm64High,
        reserved: 0,
        kind: Kind::Rare,
    }; 256];
    let mut index = 0;
    while index < ROWS.len() {
        let row = &ROWS[index];
        let raw = RawInsn {
            code: row.code,
            regs: 0,
            off: 0,
            imm: 0,
        };
        if row.admits(raw, 0) {
            let blank = &mut blanks[row.code as usize];
            build(raw, 0, &mut blank.insn);
            blank.kind = Kind::of(blank.insn);
            let src = match blank.kind {
                // It says what is called.
                Kind::Call => 0,
                _ => fixed(row.src) as u8 & 0xf0,
            };
            blank.reserved = bits(RawInsn {
                code: 0,
                regs: fixed(row.dst) as u8 & 0x0f | src,
                off: fixed(row.off) as i16,
                imm: fixed(row.imm),
            });
        }
        index += 1;
    }
    blanks
};

/// All ones for a field that is no operand.
const fn fixed(field: Field) -> i32 {
    match field {
        Field::Is(_) => -1,
        Field::Any | Field::Ignored => 0,
    }
}

/// The slot as one number.
#[inline(always)]
const fn bits(raw: RawInsn) -> u64 {
    raw.code as u64
        | (raw.regs as u64) << 8
        | (raw.off as u16 as u64) << 16
        | (raw.imm as u32 as u64) << 32
}

/// Writes the instruction in a slot to `insn`, if it is of a frequent kind and in
/// order.
// The operands are put into a copy of the blank: were each kind written whole, the
// compiler would gather all fields in registers and write them one by one.
#[inline(always)]
pub(super) fn build_frequent(raw: RawInsn, insn: &mut Insn) -> bool {
    let blank = &BLANKS[raw.code as usize];
    let (Some(to), Some(from)) = (Reg::new(raw.dst()), Reg::new(raw.src())) else {
        return false;
    };
    if bits(raw) & blank.reserved != 0 {
        return false;
    }
    *insn = blank.insn;
    match (blank.kind, insn) {
        (Kind::Alu, Insn::Alu { dst, src, .. }) => {
            *dst = to;
            fill(src, from, raw.imm);
        }
        (Kind::Load, Insn::Load { dst, base, off, .. }) => {
            (*dst, *base, *off) = (to, from, raw.off);
        }
        (Kind::Store, Insn::Store { base, off, src, .. }) => {
            (*base, *off) = (to, raw.off);
            fill(src, from, raw.imm);
        }
        (Kind::Jump, Insn::Jump { dst, off, src, .. }) => {
            (*dst, *off) = (to, raw.off);
            fill(src, from, raw.imm);
        }
        (Kind::Goto, Insn::Goto { off }) => *off = raw.off,
        (Kind::Call, Insn::Call(callee)) => {
            *callee = match raw.src() {
                0 => Callee::Helper(raw.imm),
                1 => Callee::Local(raw.imm),
                _ => return false,
            }
        }
        (Kind::Exit, _) => {}
        _ => return false,
    }
    true
}

/// Puts in what a second operand of the blank's kind is. No branch: the compiler writes
/// both, for they have places of their own, and so a slot takes a quarter less time.
#[inline(always)]
fn fill(operand: &mut Operand, reg: Reg, imm: i32) {
    *operand = match operand {
        Operand::Imm(_) => Operand::Imm(imm),
        Operand::Reg(_) => Operand::Reg(reg),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_kinds_are_what_their_rows_say() {
        let mut frequent = 0;
        let numbers = [0, 1, -1, 8, 0x7fff_0000, i32::MIN];
        for (code, regs) in (0..=255).flat_map(|code| (0..=255).map(move |regs| (code, regs))) {
            for (off, imm) in numbers
                .iter()
                .flat_map(|&off| numbers.map(|imm| (off, imm)))
            {
                let off = off as i16;
                let raw = RawInsn {
                    code,
                    regs,
                    off,
                    imm,
                };
                let (mut at_a_glance, mut by_rows) = (Insn::Imm64High, Insn::Imm64High);
                if build_frequent(raw, &mut at_a_glance) {
                    assert!(build(raw, 0, &mut by_rows), "{raw:x?}");
                    assert_eq!(at_a_glance, by_rows, "{raw:x?}");
                    frequent += 1;
                }
            }
        }
        assert!(frequent > 0);
    }
}
