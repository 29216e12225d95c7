//! Disassembler: the LLVM form (`Display`) and the form of the verifier's log.
//!
//! Both print the templates of the instruction table, so a new row needs no change here.

use super::insn::{AddrSpaceCast, Callee, Insn, RawInsn};
use super::row::{Field, Row};
use super::template::{Piece, RegName, Slot, pieces};
use std::fmt;

/// The LLVM form, as `llvm-objdump -d --no-print-imm-hex` and inline assembly write it.
/// Invalid instructions print as a data directive; the second slot of a 64-bit immediate
/// prints as the empty string.
///
/// `{}` names registers as for the first processor versions (`-mcpu=v1` and `v2`), `{:#}`
/// as for those with 32-bit registers (`v3` on): narrow loads and stores name `w` registers
/// there. The assembler reads both. The text differs from LLVM's where that is ambiguous or
/// missing:
///
/// | what | LLVM | here |
/// |---|---|---|
/// | 64-bit immediates | `r1 = 4294967301 ll` | `r1 = 0x100000005 ll` |
/// | 64-bit immediates with a meaning | `ld_pseudo r1, 1, 5` | `r1 = map_fd(5) ll` |
/// | calls within the program | `call 5`, as of helper 5 | `call pc+5` |
/// | calls of kernel functions | none | `call kfunc(5)` |
/// | packet loads at a register and a constant | none | `r0 = *(u8 *)skb[r2 + 5]` |
/// | 32-bit atomics other than `+=` before `v3` | none | as from `v3` on |
impl fmt::Display for Insn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alternate = f.alternate();
        padded(f, |f| match (self.row_and_slots(), *self) {
            (Some((row, raw, high)), _) => Operands {
                raw,
                high,
                names: &|_| None,
                halves: alternate,
            }
            .write(f, row.llvm),
            (None, Insn::Invalid { raw, .. }) => {
                write!(f, ".8byte {:#018x}", u64::from_le_bytes(raw.to_le_bytes()))
            }
            (None, Insn::Imm64High) => Ok(()),
            (None, no_encoding) => write!(f, "{no_encoding:?}"),
        })
    }
}

/// Writes a text of several parts, padded to the formatter's width.
fn padded(
    f: &mut fmt::Formatter<'_>,
    write: impl Fn(&mut dyn fmt::Write) -> fmt::Result,
) -> fmt::Result {
    if f.width().is_none() {
        return write(f);
    }
    let mut text = String::new();
    write(&mut text)?;
    f.pad(&text)
}

/// Lookup of the names of callees.
pub type CalleeNames<'a> = &'a dyn Fn(Callee) -> Option<&'a str>;

/// An instruction as the kernel's log prints it, such as `(61) r0 = *(u32 *)(r1 +4)`
/// (`print_bpf_insn`).
#[doc(alias = "print_bpf_insn")]
#[derive(Clone, Copy)]
pub struct KernelForm<'a> {
    insn: Insn,
    names: CalleeNames<'a>,
}

impl Insn {
    /// The instruction as the kernel's log prints it. `names` returns the names of callees;
    /// a helper without a name prints as `unknown`.
    pub fn kernel_form<'a>(self, names: CalleeNames<'a>) -> KernelForm<'a> {
        KernelForm { insn: self, names }
    }
}

impl fmt::Display for KernelForm<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (row, raw, high) = match (self.insn.row_and_slots(), self.insn) {
            (Some((row, raw, high)), _) => (row, raw, high),
            // The log prints a slot before its fields are checked.
            (None, Insn::Invalid { raw, .. }) => match Row::nearest(raw) {
                Some(row) => (row, raw, 0),
                None => return write!(f, "BUG_{:02x}", raw.code),
            },
            (None, _) => return Ok(()),
        };
        padded(f, |f| {
            write!(f, "({:02x}) ", row.code)?;
            Operands {
                raw,
                high,
                names: self.names,
                halves: false,
            }
            .write(f, row.kernel)
        })
    }
}

impl Row {
    /// The row by which the log prints an invalid slot: fields that select among the rows
    /// of an opcode are compared, reserved ones are not.
    fn nearest(raw: RawInsn) -> Option<&'static Row> {
        let selectors = |row: &Row| {
            [
                (row.src, raw.src().into()),
                (row.off, raw.off.into()),
                (row.imm, raw.imm),
            ]
            .into_iter()
            .filter(|(field, _)| !matches!(field, Field::Any | Field::Ignored | Field::Is(0)))
            .try_fold(0, |count, (field, value)| {
                field.admits(value).then_some(count + 1)
            })
        };
        let rows = || Row::with_code(raw.code);
        // The first row of the best ones, in reverse order: the plain row is first.
        let selected = rows().rev().filter(|row| selectors(row).is_some());
        selected
            .max_by_key(|row| selectors(row))
            .or_else(|| rows().next())
    }
}

/// The values of a template's placeholders.
struct Operands<'a> {
    raw: RawInsn,
    /// Immediate of the second slot.
    high: i32,
    names: CalleeNames<'a>,
    /// True if registers whose upper half the instruction zeroes or ignores print as `w`.
    halves: bool,
}

impl Operands<'_> {
    fn write(&self, f: &mut dyn fmt::Write, template: &str) -> fmt::Result {
        for piece in pieces(template) {
            match piece {
                Piece::Text(text) => f.write_str(text)?,
                Piece::Slot(slot) => self.write_slot(f, slot)?,
            }
        }
        Ok(())
    }

    fn write_slot(&self, f: &mut dyn fmt::Write, slot: Slot) -> fmt::Result {
        let RawInsn { off, imm, .. } = self.raw;
        match slot {
            Slot::Reg { src, name } => {
                let letter = match name {
                    RegName::WholeOrHalf if self.halves => 'w',
                    RegName::Whole | RegName::WholeOrHalf => 'r',
                    RegName::Half | RegName::HalfOrWhole => 'w',
                };
                let number = if src { self.raw.src() } else { self.raw.dst() };
                write!(f, "{letter}{number}")
            }
            Slot::Imm { .. } => write!(f, "{imm}"),
            Slot::HexImm => write!(f, "{imm:#x}"),
            Slot::Callee => self.write_callee(f),
            Slot::Displacement => write_term(f, off.into()),
            Slot::ImmDisplacement if imm == 0 => Ok(()),
            Slot::ImmDisplacement => write_term(f, imm),
            Slot::Distance { long, marked } => {
                let distance = if long { imm } else { off.into() };
                write!(f, "{}{distance:+}", if marked { "pc" } else { "" })
            }
            Slot::OffArgument => write_argument(f, off.into()),
            Slot::HighArgument => write_argument(f, self.high),
            Slot::Value => {
                write!(
                    f,
                    "{:#x}",
                    u64::from(imm as u32) | u64::from(self.high as u32) << 32
                )
            }
            Slot::Cast => {
                let AddrSpaceCast { to, from } = AddrSpaceCast::from_imm(imm);
                write!(f, "{to}, {from}")
            }
        }
    }

    /// Writes the name or the number of what a call calls (`__func_get_name`).
    #[doc(alias = "__func_get_name")]
    fn write_callee(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        let RawInsn { off, imm, .. } = self.raw;
        let (callee, nameless) = match self.raw.src() {
            2 => (
                Callee::Kfunc {
                    id: imm,
                    module: off,
                },
                "kernel-function",
            ),
            _ => (Callee::Helper(imm), "unknown"),
        };
        write!(f, "{}#{imm}", (self.names)(callee).unwrap_or(nameless))
    }
}

fn write_term(f: &mut dyn fmt::Write, value: i32) -> fmt::Result {
    let sign = if value < 0 { '-' } else { '+' };
    write!(f, " {sign} {}", value.unsigned_abs())
}

fn write_argument(f: &mut dyn fmt::Write, value: i32) -> fmt::Result {
    if value == 0 {
        Ok(())
    } else {
        write!(f, ", {value}")
    }
}
