//! Instructions as text: the LLVM form (`Display`) and the kernel's log form.
//!
//! Both print a row's template, so a row is all that a new instruction needs.

use super::insn::{AddrSpaceCast, Insn, RawInsn};
use super::template::{Piece, RegName, Slot, pieces};
use std::fmt;

/// The LLVM form, as `llvm-objdump -d` and inline assembly write it. What is no
/// instruction prints as the data directive that holds its bits; the second
/// slot of a 64-bit immediate prints as nothing, since the first says it all.
impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.anatomy(), *self) {
            (Some((row, raw, high)), _) => write_template(f, row.llvm, raw, high),
            (None, Insn::Invalid { raw, .. }) => {
                write!(f, ".8byte 0x{:016x}", u64::from_le_bytes(raw.to_le_bytes()))
            }
            (None, Insn::Imm64High) => Ok(()),
            (None, other) => write!(f, "{other:?}"),
        }
    }
}

fn write_template(
    f: &mut fmt::Formatter<'_>,
    template: &str,
    raw: RawInsn,
    high: i32,
) -> fmt::Result {
    for piece in pieces(template) {
        match piece {
            Piece::Text(text) => f.write_str(text)?,
            Piece::Slot(slot) => write_slot(f, slot, raw, high)?,
        }
    }
    Ok(())
}

fn write_slot(f: &mut fmt::Formatter<'_>, slot: Slot, raw: RawInsn, high: i32) -> fmt::Result {
    match slot {
        Slot::Reg { src, name } => {
            let letter = if name == RegName::Half { 'w' } else { 'r' };
            write!(f, "{letter}{}", if src { raw.src() } else { raw.dst() })
        }
        Slot::Imm { .. } => write!(f, "{}", raw.imm),
        Slot::HexImm => write!(f, "{:#x}", raw.imm),
        Slot::Number => write!(f, "{}", raw.imm as u32),
        Slot::Displacement => write_term(f, raw.off.into()),
        Slot::ImmDisplacement if raw.imm == 0 => Ok(()),
        Slot::ImmDisplacement => write_term(f, raw.imm),
        Slot::Distance { long: false } => write!(f, "{:+}", raw.off),
        Slot::Distance { long: true } => write!(f, "{:+}", raw.imm),
        Slot::OffArgument => write_argument(f, raw.off.into()),
        Slot::HighArgument => write_argument(f, high),
        Slot::Value => {
            write!(
                f,
                "{:#x}",
                u64::from(raw.imm as u32) | u64::from(high as u32) << 32
            )
        }
        Slot::Cast { hex } => {
            let AddrSpaceCast { to, from } = AddrSpaceCast::from_imm(raw.imm);
            if hex {
                write!(f, "{to:#x}, {from:#x}")
            } else {
                write!(f, "{to}, {from}")
            }
        }
    }
}

fn write_term(f: &mut fmt::Formatter<'_>, value: i32) -> fmt::Result {
    let sign = if value < 0 { '-' } else { '+' };
    write!(f, " {sign} {}", value.unsigned_abs())
}

fn write_argument(f: &mut fmt::Formatter<'_>, value: i32) -> fmt::Result {
    if value == 0 {
        Ok(())
    } else {
        write!(f, ", {value}")
    }
}
