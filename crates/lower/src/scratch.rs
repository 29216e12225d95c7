//! Register promotion of the scratch words of classic programs.
//!
//! The conversion gives `M[i]` four bytes of the stack. Words move to registers that the
//! program does not use, the most used ones first: a store becomes a move to the register,
//! a load a move from it, each in its slot. Only loads and stores of whole words may name
//! them, which is checked.
//!
//! Cost: one pass over the program, two more if it has scratch words.

use isa::ebpf::{AluOp, Insn, Operand, Reg, RegSet, Size, Width};

/// Registers that may be free, in the order of their use. What calls and packet
/// loads take away counts as used by them.
const CANDIDATES: [Reg; 6] = [Reg::R9, Reg::R8, Reg::R5, Reg::R4, Reg::R3, Reg::R2];

/// Words that there are.
const WORDS: usize = 16;

/// An access to a word.
#[derive(Clone, Copy)]
enum Access {
    Load(Reg),
    Store(Operand),
}

/// Puts scratch words into registers that the program does not use.
pub(crate) fn keep_in_registers(insns: &mut [Insn]) {
    if !insns.iter().any(|insn| matches!(insn, Insn::Store { .. })) {
        return;
    }
    let Some((counts, used)) = count(insns) else {
        return;
    };
    let mut words: Vec<usize> = (0..WORDS).filter(|&word| counts[word] > 0).collect();
    words.sort_by_key(|&word| std::cmp::Reverse(counts[word]));
    let mut homes = [None; WORDS];
    let free = CANDIDATES.into_iter().filter(|&reg| !used.contains(reg));
    for (word, reg) in words.into_iter().zip(free) {
        homes[word] = Some(reg);
    }
    for insn in insns {
        if let Some((word, access)) = access(*insn)
            && let Some(home) = homes[word]
        {
            let (dst, src) = match access {
                Access::Load(dst) => (dst, Operand::Reg(home)),
                Access::Store(src) => (home, src),
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

/// How often each word is named, and the registers in use; `None` if the frame
/// pointer is used for anything else.
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

/// The word that an instruction names, and what it does to it.
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

    fn kept(text: &str) -> String {
        let mut insns = assemble(text).expect(text);
        keep_in_registers(&mut insns);
        insns.iter().map(|insn| insn.to_string() + "; ").collect()
    }

    #[test]
    fn words_move_to_registers_that_are_free() {
        let text = "*(u32 *)(r10 - 64) = 5\n*(u32 *)(r10 - 4) = r0\n\
                    w0 = *(u32 *)(r10 - 4)\nw7 = *(u32 *)(r10 - 64)\nr9 = *(u32 *)(r10 - 4)\nexit";
        // Named twice, thrice; r9 is used.
        assert_eq!(
            kept(text),
            "w5 = 5; w8 = w0; w0 = w8; w7 = w5; w9 = w8; exit; "
        );
    }

    #[test]
    fn packet_loads_take_registers_away() {
        let text = "r0 = *(u16 *)skb[12]\n*(u32 *)(r10 - 4) = r0\n*(u32 *)(r10 - 8) = 1\n\
                    *(u32 *)(r10 - 12) = 1\nr0 = *(u32 *)(r10 - 12)\nr0 = *(u32 *)(r10 - 8)\nexit";
        assert_eq!(
            kept(text),
            "r0 = *(u16 *)skb[12]; *(u32 *)(r10 - 4) = r0; w8 = 1; w9 = 1; w0 = w9; w0 = w8; exit; "
        );
    }

    #[test]
    fn a_frame_pointer_that_is_used_otherwise_keeps_the_words_in_memory() {
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
            assert_eq!(kept(text), as_it_is);
        }
    }
}
