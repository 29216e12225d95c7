//! Where variables are in a frame.
//!
//! LLVM writes the place of a variable as its distance from the lowest address of the frame, and the
//! instructions name it by its distance below the highest one. The bytes between the two are the size
//! of the frame, which is in no table: it is the size for which the variables lie where the
//! instructions reach. Where several sizes do, the places stay unknown.

use isa::ebpf::{AluOp, Insn, Operand, Reg};
use program::Program;

use crate::dwarf::InFrame;

/// Most bytes of a frame (`MAX_BPF_STACK`).
const MOST_BYTES: i64 = 512;
/// Alignment of a frame from which functions are called.
const CALL_ALIGN: i64 = 8;

/// What an instruction reaches in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reach {
    /// Offset from the highest address of the frame, which is negative.
    at: i64,
    /// Bytes; 0 if the address is taken.
    size: i64,
    /// False if a number that is not known is added to the address.
    is_exact: bool,
}

/// Bytes of the frame of the function at a slot, in which variables are, for types of at most this
/// alignment; `None` if they cannot be told.
pub(crate) fn frame_bytes(
    program: &Program,
    start: u32,
    variables: &[InFrame],
    most_align: i64,
) -> Option<u64> {
    // Distances from the frame pointer.
    if variables.iter().all(|variable| variable.offset < 0) {
        return Some(0);
    }
    let (reaches, calls) = reaches(program, start);
    size_of_frame(variables, (&reaches, calls), most_align)
}

fn size_of_frame(
    variables: &[InFrame],
    (reaches, calls): (&[Reach], bool),
    most_align: i64,
) -> Option<u64> {
    let least = variables
        .iter()
        .map(|variable| variable.offset + variable.size);
    let least = least.max()?;
    let exact = reaches.iter().filter(|reach| reach.is_exact);
    let lowest = -exact.map(|reach| reach.at).min().unwrap_or(0);
    let aligns = variables.iter().filter_map(|variable| variable.align);
    let align = aligns.max().unwrap_or(1) as i64;
    let align = if calls { align.max(CALL_ALIGN) } else { align };
    let least = least.max(lowest);
    let sizes = (least..=MOST_BYTES).filter(|size| size % align == 0);
    let aligns = (align, most_align);
    let rated = sizes.filter_map(|size| Some((rating(size, aligns, reaches, variables)?, size)));
    let rated: Vec<(Rating, i64)> = rated.collect();
    let best = rated.iter().map(|(rating, _)| *rating).max()?;
    let mut sizes = rated.iter().filter(|(rating, _)| *rating == best);
    match (sizes.next(), sizes.next()) {
        (Some((_, size)), None) if best.0 > 0 => u64::try_from(*size).ok(),
        _ => None,
    }
}

/// How well a size explains the instructions: the variables that they reach, accesses beside all
/// variables, of which fewer are better, and an end of the frame where LLVM ends it.
type Rating = (usize, std::cmp::Reverse<usize>, bool);

/// The rating of a size; `None` if it cannot be.
fn rating(
    size: i64,
    (align, most_align): (i64, i64),
    reaches: &[Reach],
    variables: &[InFrame],
) -> Option<Rating> {
    let range = |variable: &InFrame| {
        (
            variable.offset - size,
            variable.offset - size + variable.size,
        )
    };
    let is_misaligned = |variable: &InFrame| {
        variable
            .align
            .is_some_and(|align| range(variable).0 % align as i64 != 0)
    };
    if variables.iter().any(is_misaligned) {
        return None;
    }
    let mut beside = 0;
    for reach in reaches.iter().filter(|reach| reach.is_exact) {
        let end = reach.at + reach.size.max(1);
        let holds = |variable: &InFrame| range(variable).0 <= reach.at && end <= range(variable).1;
        let meets = |variable: &InFrame| {
            variable.is_fixed && range(variable).0 < end && reach.at < range(variable).1
        };
        match variables.iter().any(holds) {
            true => {}
            // No access is in a variable and beside it.
            false if variables.iter().any(meets) && reach.size > 0 => return None,
            false => beside += 1,
        }
    }
    let is_reached = |variable: &&InFrame| {
        let (start, end) = range(variable);
        reaches.iter().any(|reach| match variable.align {
            Some(_) => {
                let is_whole = reach.size == 0 || reach.size == variable.size;
                reach.at == start && (is_whole || variable.size > 8)
            }
            None => (start..end).contains(&reach.at),
        })
    };
    let reached = variables.iter().filter(is_reached).count();
    let lowest = reaches.iter().filter(|reach| reach.is_exact);
    let lowest = lowest
        .map(|reach| reach.at)
        .chain(variables.iter().map(|it| range(it).0));
    let used = -lowest.min().unwrap_or(0);
    if used > size {
        return None;
    }
    let mut aligns = (0..)
        .map(|power| 1 << power)
        .skip_while(|each| *each < align);
    let ends = aligns.find(|align| used <= size && (used + align - 1) / align * align >= size);
    let is_end =
        ends.is_some_and(|align| align <= most_align && (used + align - 1) / align * align == size);
    Some((reached, std::cmp::Reverse(beside), is_end))
}

/// What the instructions of a function reach in its frame, and whether it calls functions.
fn reaches(program: &Program, start: u32) -> (Vec<Reach>, bool) {
    let insns = program.decode();
    let mut later = program.subprogs().iter().map(|subprog| subprog.start);
    let end = later.find(|slot| *slot > start);
    let end = end.map_or(insns.len(), |slot| slot as usize);
    let insns = insns.get(start as usize..end).unwrap_or_default();
    let mut found = Vec::new();
    let mut calls = false;
    // What registers hold: the frame pointer, or that and an unknown number.
    let mut held = [Held::Other; Reg::COUNT];
    held[Reg::R10.index()] = Held::End;
    for insn in insns {
        let access = match *insn {
            Insn::Load {
                size, base, off, ..
            }
            | Insn::LoadAcquire {
                size, base, off, ..
            }
            | Insn::Store {
                size, base, off, ..
            }
            | Insn::StoreRelease {
                size, base, off, ..
            }
            | Insn::Atomic {
                size, base, off, ..
            } => Some((base, off, size)),
            _ => None,
        };
        if let Some((base, off, size)) = access {
            let reach = Reach {
                at: off.into(),
                size: i64::from(size.bytes()),
                is_exact: held[base.index()] == Held::End,
            };
            match held[base.index()] {
                Held::End | Held::Inside => found.push(reach),
                Held::Other => {}
            }
        }
        match *insn {
            Insn::Alu {
                op: AluOp::Mov,
                dst,
                src: Operand::Reg(src),
                ..
            } => held[dst.index()] = held[src.index()],
            Insn::Alu {
                op: AluOp::Add,
                dst,
                src: Operand::Imm(imm),
                ..
            } if held[dst.index()] != Held::Other => {
                found.push(Reach {
                    at: imm.into(),
                    size: 0,
                    is_exact: held[dst.index()] == Held::End,
                });
                held[dst.index()] = Held::Other;
            }
            Insn::Alu {
                op: AluOp::Add,
                dst,
                src: Operand::Reg(_),
                ..
            } if held[dst.index()] != Held::Other => held[dst.index()] = Held::Inside,
            Insn::Alu { dst, .. }
            | Insn::Load { dst, .. }
            | Insn::LoadAcquire { dst, .. }
            | Insn::LoadImm64 { dst, .. }
            | Insn::MovSx { dst, .. }
            | Insn::Endian { dst, .. }
            | Insn::Neg { dst, .. }
            | Insn::Cast { dst, .. } => held[dst.index()] = Held::Other,
            Insn::Call(_) | Insn::CallReg { .. } => {
                calls = true;
                held[..=5].fill(Held::Other);
            }
            // Registers hold other values where paths join.
            Insn::Jump { .. }
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::MayGoto { .. }
            | Insn::Exit => {
                held[..Reg::R10.index()].fill(Held::Other);
            }
            _ => {}
        }
    }
    (found, calls)
}

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    /// The frame pointer.
    End,
    /// The frame pointer and an unknown number.
    Inside,
    /// Something else.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(offset: i64, size: i64, align: Option<usize>) -> InFrame {
        InFrame {
            offset,
            size,
            align,
            is_fixed: true,
        }
    }

    fn reach(at: i64, size: i64) -> Reach {
        let is_exact = true;
        Reach { at, size, is_exact }
    }

    #[test]
    fn the_size_is_that_for_which_variables_are_reached() {
        let buffer = [variable(24, 4, Some(4)), variable(0, 24, None)];
        let reaches = [reach(-4, 4), reach(-28, 0), reach(-8, 1)];
        let size = |calls| size_of_frame(&buffer, (&reaches, calls), 8);
        assert_eq!(size(false), Some(28));
        // Frames of functions that call others are aligned to 8 bytes.
        let buffer = [variable(28, 4, Some(4)), variable(4, 24, None)];
        assert_eq!(size_of_frame(&buffer, (&reaches, true), 8), Some(32));
        // Sixteen bytes are aligned to as many.
        let wide = [variable(16, 16, Some(16)), variable(8, 8, Some(8))];
        let reaches = [reach(-16, 8), reach(-8, 8), reach(-24, 8)];
        assert_eq!(size_of_frame(&wide, (&reaches, false), 16), Some(32));
    }

    #[test]
    fn places_that_the_instructions_leave_open_are_unknown() {
        let none = [variable(0, 8, Some(8))];
        assert_eq!(size_of_frame(&none, (&[], false), 8), None);
        // Slots of which two may be the variable, if the frame is aligned to 16 bytes.
        let reaches = [reach(-8, 8), reach(-16, 8), reach(-24, 8)];
        let size = |most| size_of_frame(&[variable(8, 8, None)], (&reaches, false), most);
        assert_eq!(size(8), Some(24));
        assert_eq!(size(16), None);
        let damaged = [variable(-3, 8, None), variable(8, 4, Some(4))];
        assert_eq!(size_of_frame(&damaged, (&reaches, true), 8), None);
    }
}
