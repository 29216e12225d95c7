//! Register promotion of the scratch words of classic programs.
//!
//! The conversion gives `M[i]` four bytes of the stack. The most used words are promoted to
//! unused registers: a store becomes a move to the register, a load a move from it, each in
//! its slot. The promotion applies only if every access is a load or store of a whole word.
//!
//! Cost: one pass over the program, two more if it has scratch words.

use isa::ebpf::{AluOp, Insn, Operand, Reg, RegSet, Size, Width};

/// Registers that may be free, in the order of assignment. Calls and packet loads use the
/// registers that they clobber.
const CANDIDATES: [Reg; 6] = [Reg::R9, Reg::R8, Reg::R5, Reg::R4, Reg::R3, Reg::R2];

/// Number of words.
const WORDS: usize = 16;

/// An access to a word.
#[derive(Clone, Copy)]
enum Access {
    Load(Reg),
    Store(Operand),
}

/// Promotes scratch words to unused registers.
pub(crate) fn promote(insns: &mut [Insn]) {
    if !insns.iter().any(|insn| matches!(insn, Insn::Store { .. })) {
        return;
    }
    let Some((counts, used)) = count(insns) else {
        return;
    };
    let mut words: Vec<usize> = (0..WORDS).filter(|&word| counts[word] > 0).collect();
    words.sort_by_key(|&word| std::cmp::Reverse(counts[word]));
    let mut regs = [None; WORDS];
    let free = CANDIDATES.into_iter().filter(|&reg| !used.contains(reg));
    for (word, reg) in words.into_iter().zip(free) {
        regs[word] = Some(reg);
    }
    for insn in insns {
        if let Some((word, access)) = access(*insn)
            && let Some(reg) = regs[word]
        {
            let (dst, src) = match access {
                Access::Load(dst) => (dst, Operand::Reg(reg)),
                Access::Store(src) => (reg, src),
            };
            *insn = Insn::Alu {
                op: AluOp::Mov,
                width: Width::W32,
                dst,
                src,
            };
        }
    }
}

/// The number of accesses to each word, and the registers in use; `None` if the frame
/// pointer has other uses.
fn count(insns: &[Insn]) -> Option<([u32; WORDS], RegSet)> {
    let mut counts = [0; WORDS];
    let mut used = RegSet::EMPTY;
    for &insn in insns {
        match access(insn) {
            Some((word, access)) => {
                counts[word] += 1;
                let reg = match access {
                    Access::Load(reg) | Access::Store(Operand::Reg(reg)) => RegSet::of(reg),
                    Access::Store(Operand::Imm(_)) => RegSet::EMPTY,
                };
                used = used.union(reg);
            }
            None => used = used.union(insn.reads()).union(insn.writes()),
        }
    }
    (!used.contains(Reg::R10)).then_some((counts, used))
}

/// The word that an instruction accesses, and the access.
fn access(insn: Insn) -> Option<(usize, Access)> {
    let (off, access) = match insn {
        Insn::Load {
            size: Size::W,
            signed: false,
            dst,
            base: Reg::R10,
            off,
        } => (off, Access::Load(dst)),
        Insn::Store {
            size: Size::W,
            base: Reg::R10,
            off,
            src,
        } => (off, Access::Store(src)),
        _ => return None,
    };
    let from_bottom = usize::try_from(i32::from(off) + 4 * WORDS as i32).ok()?;
    let word = from_bottom / 4;
    (from_bottom.is_multiple_of(4) && word < WORDS).then_some((word, access))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    fn promoted(text: &str) -> String {
        let mut insns = assemble(text).expect(text);
        promote(&mut insns);
        insns.iter().map(|insn| insn.to_string() + "; ").collect()
    }

    #[test]
    fn words_are_promoted_to_free_registers() {
        let text = "*(u32 *)(r10 - 64) = 5\n*(u32 *)(r10 - 4) = r0\n\
                    w0 = *(u32 *)(r10 - 4)\nw7 = *(u32 *)(r10 - 64)\nr9 = *(u32 *)(r10 - 4)\nexit";
        // Two and three accesses; r9 is in use.
        assert_eq!(
            promoted(text),
            "w5 = 5; w8 = w0; w0 = w8; w7 = w5; w9 = w8; exit; "
        );
    }

    #[test]
    fn packet_loads_clobber_registers() {
        let text = "r0 = *(u16 *)skb[12]\n*(u32 *)(r10 - 4) = r0\n*(u32 *)(r10 - 8) = 1\n\
                    *(u32 *)(r10 - 12) = 1\nr0 = *(u32 *)(r10 - 12)\nr0 = *(u32 *)(r10 - 8)\nexit";
        assert_eq!(
            promoted(text),
            "r0 = *(u16 *)skb[12]; *(u32 *)(r10 - 4) = r0; w8 = 1; w9 = 1; w0 = w9; w0 = w8; exit; "
        );
    }

    #[test]
    fn other_uses_of_the_frame_pointer_prevent_promotion() {
        for text in [
            "*(u32 *)(r10 - 4) = 1\nr1 = r10\nexit",
            "*(u32 *)(r10 - 4) = 1\nr0 = *(u8 *)(r10 - 4)\nexit",
            "*(u32 *)(r10 - 4) = 1\nr0 = *(u32 *)(r10 - 6)\nexit",
            "*(u32 *)(r10 - 68) = 1\nexit",
        ] {
            let as_it_is: String = assemble(text)
                .expect(text)
                .iter()
                .map(|insn| insn.to_string() + "; ")
                .collect();
            assert_eq!(promoted(text), as_it_is);
        }
    }
}
