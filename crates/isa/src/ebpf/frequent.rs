//! Table-driven decoding of the frequent instruction kinds.
//!
//! For each opcode a table has the instruction whose other fields are zero, its kind, and
//! the bits that must be zero; the operands are then set by kind. The table derives from
//! the instruction table; the operand positions of each kind are compared with the rows by
//! a test. Infrequent instructions are decoded by the match over all rows.

use super::insn::{Callee, Insn, Operand, RawInsn, Reg};
use super::row::Field;
use super::table::{ROWS, build};

/// The decoding of an opcode.
#[derive(Clone, Copy)]
struct OpcodeInfo {
    /// The instruction with operands of zero.
    insn: Insn,
    /// Reserved bits: those of no operand.
    reserved: u64,
    kind: Kind,
}

/// Operand positions of an instruction.
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

static OPCODES: [OpcodeInfo; 256] = {
    let mut blanks = [OpcodeInfo {
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
            let info = &mut blanks[row.code as usize];
            build(raw, 0, &mut info.insn);
            info.kind = Kind::of(info.insn);
            let src = match info.kind {
                // The source field selects the callee.
                Kind::Call => 0,
                _ => fixed(row.src) as u8 & 0xf0,
            };
            info.reserved = bits(RawInsn {
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

/// All ones for a reserved field.
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

/// Decodes a slot to `insn`, if it is of a frequent kind and valid; true if it is.
#[inline(always)]
pub(super) fn decode_frequent(raw: RawInsn, insn: &mut Insn) -> bool {
    let info = &OPCODES[raw.code as usize];
    let (Some(to), Some(from)) = (Reg::new(raw.dst()), Reg::new(raw.src())) else {
        return false;
    };
    if bits(raw) & info.reserved != 0 {
        return false;
    }
    *insn = info.insn;
    match (info.kind, insn) {
        (Kind::Alu, Insn::Alu { dst, src, .. }) => {
            *dst = to;
            set_operand(src, from, raw.imm);
        }
        (Kind::Load, Insn::Load { dst, base, off, .. }) => {
            (*dst, *base, *off) = (to, from, raw.off);
        }
        (Kind::Store, Insn::Store { base, off, src, .. }) => {
            (*base, *off) = (to, raw.off);
            set_operand(src, from, raw.imm);
        }
        (Kind::Jump, Insn::Jump { dst, off, src, .. }) => {
            (*dst, *off) = (to, raw.off);
            set_operand(src, from, raw.imm);
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

/// Sets a second operand of the kind that it has.
#[inline(always)]
fn set_operand(operand: &mut Operand, reg: Reg, imm: i32) {
    *operand = match operand {
        Operand::Imm(_) => Operand::Imm(imm),
        Operand::Reg(_) => Operand::Reg(reg),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_kinds_match_their_rows() {
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
                if decode_frequent(raw, &mut at_a_glance) {
                    assert!(build(raw, 0, &mut by_rows), "{raw:x?}");
                    assert_eq!(at_a_glance, by_rows, "{raw:x?}");
                    frequent += 1;
                }
            }
        }
        assert!(frequent > 0);
    }
}
