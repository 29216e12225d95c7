//! The backward pass that emits the code.
//!
//! In this order the live-out set of an instruction and the distances to its targets are
//! known when its code is emitted. Backward jumps need both in advance: liveness by a
//! fixpoint before the pass, distances by a patch after it.
//!
//! Reachability is known after the pass: with forward jumps only, all instructions are
//! reachable if each but the first has a predecessor, by induction. The pass records
//! predecessors. Unreachable padding at the end is truncated; programs with other
//! unreachable code are converted once more without it.

use std::ops::Range;

use isa::classic::{self, SockFilter};
use isa::ebpf::{self, Insn, Width};

use super::forms::{Step, form};
use super::insns::{A, X, alu_imm, load_memory, mov_imm, store_memory};
use super::liveness::{self, Places, goto_target};
use super::special::Special;
use crate::Rules;

/// State at the start of an instruction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Live-in set.
    pub(super) live: Places,
    /// Number of slots from here to the end.
    pub(super) to_end: u32,
}

impl Mark {
    const END: Mark = Mark {
        live: Places::NONE,
        to_end: 0,
    };
}

/// The code of a program.
#[derive(Clone, Debug)]
pub(super) struct EmittedCode {
    pub(super) insns: Vec<Insn>,
    /// A mark for each classic instruction, and one for the end.
    marks: Vec<Mark>,
    /// Number of slots that were truncated at the end.
    padding: u32,
}

impl EmittedCode {
    /// The slots of each classic instruction.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> {
        let len = self.insns.len();
        let start = move |mark: Mark| (len + self.padding as usize - mark.to_end as usize).min(len);
        self.marks
            .windows(2)
            .map(move |marks| start(marks[0])..start(marks[1]))
    }
}

/// Converts a program.
pub(super) fn write(program: &[SockFilter], special: &Special) -> EmittedCode {
    let mut marks = vec![Mark::END; program.len() + 1];
    let mut reached = vec![true; program.len()];
    let mut padding = 0;
    let loops = special.rules == Rules::Capture && liveness::has_loops(program);
    if loops {
        liveness::iterate_to_fixpoint(program, &mut marks);
        reached = liveness::reached(program);
    }
    let mut pass = Pass::over(program, &reached, &mut marks, special);
    if !loops && pass.entered.contains(&NO) {
        match pass.padding() {
            Some(instructions) => padding = marks[program.len() - instructions].to_end,
            None => {
                reached = liveness::reached(program);
                pass = Pass::over(program, &reached, &mut marks, special);
            }
        }
    }
    let mut insns = pass.reversed;
    if loops || insns.len() > i16::MAX as usize {
        fill_long_distances(program, &reached, &marks, &mut insns);
    }
    insns.reverse();
    insns.truncate(insns.len() - padding as usize);
    EmittedCode {
        insns,
        marks,
        padding,
    }
}

/// Flags of instructions with a predecessor.
const NO: u8 = 0;
const YES: u8 = 1;

/// Result of a pass.
struct Pass {
    /// The code, last slot first.
    reversed: Vec<Insn>,
    /// For each instruction, [`YES`] if it is the first or has a reachable predecessor.
    entered: Vec<u8>,
}

impl Pass {
    /// Emits the code of reachable instructions. For programs with backward jumps, `marks`
    /// has the live-in sets.
    fn over(
        program: &[SockFilter],
        reached: &[bool],
        marks: &mut [Mark],
        special: &Special,
    ) -> Pass {
        let mut code = vec![Insn::Exit; room(program.len())];
        let mut several = Vec::new();
        let mut len = 0;
        let mut live = Places::NONE;
        let mut entered = vec![NO; program.len()];
        entered[0] = YES;
        let instructions = program.iter().zip(reached).enumerate().rev();
        for (index, (&raw, &reached)) in instructions {
            if !reached {
                marks[index].to_end = len as u32;
                continue;
            }
            let form = form(raw);
            let imm = raw.k as i32;
            let falls_through = match &form.step {
                &Step::Load(size) if special.is_plain(imm) => {
                    code[len] = Insn::PacketAbs { size, imm };
                    len += 1;
                    live = form.effect.before_plain(live);
                    true
                }
                &Step::LoadIndirect(size) => {
                    code[len] = Insn::PacketInd { size, src: X, imm };
                    len += 1;
                    live = form.effect.before_plain(live);
                    true
                }
                &Step::Constant { op, dst } => {
                    code[len] = alu_imm(op, dst, imm);
                    len += usize::from(live.has(form.writes));
                    live = form.effect.before_plain(live);
                    true
                }
                Step::Fixed(insn) => {
                    code[len] = *insn;
                    len += usize::from(live.has(form.writes));
                    live = form.effect.before_plain(live);
                    true
                }
                &Step::LoadWord(dst) => {
                    code[len] = load_memory(dst, raw.k);
                    len += usize::from(live.has(form.writes));
                    live = form.effect.before_plain(live).union(Places::memory(raw.k));
                    true
                }
                &Step::StoreWord(src) => {
                    let word = Places::memory(raw.k);
                    code[len] = store_memory(src, raw.k);
                    len += usize::from(live.has(word));
                    live = form.effect.before_plain(live.without(word));
                    true
                }
                Step::Return => {
                    code[len] = Insn::Exit;
                    code[len + 1] = mov_imm(A, imm);
                    len += 2;
                    live = Places::NONE;
                    false
                }
                Step::ReturnA => {
                    code[len] = Insn::Exit;
                    len += 1;
                    live = Places::A;
                    false
                }
                Step::Goto => {
                    let to = goto_target(index, raw.k);
                    entered[to] = YES;
                    let target = marks[to];
                    if raw.k != 0 {
                        let off = distance(len, target);
                        code[len] = Insn::Goto { off };
                        len += 1;
                    }
                    live = target.live;
                    false
                }
                &Step::Branch { conds, by_x, .. }
                    if (conds[0] == ebpf::Cond::Eq) & !by_x && is_implied(program, index) =>
                {
                    true
                }
                &Step::Branch { conds, turns, by_x } => {
                    // One successor falls through where possible.
                    let turned = turns & (raw.jt == 0);
                    let (skip, rest) = if turned {
                        (raw.jf, raw.jt)
                    } else {
                        (raw.jt, raw.jf)
                    };
                    let [to, other] = [skip, rest].map(|skip| index + 1 + usize::from(skip));
                    entered[to] = YES;
                    entered[other] = YES;
                    let (target, other) = (marks[to], marks[other]);
                    if rest != 0 {
                        let off = distance(len, other);
                        code[len] = Insn::Goto { off };
                        len += 1;
                    }
                    let src = match by_x {
                        true => ebpf::Operand::Reg(X),
                        false => ebpf::Operand::Imm(imm),
                    };
                    code[len] = Insn::Jump {
                        cond: conds[usize::from(turned)],
                        width: Width::W32,
                        dst: A,
                        src,
                        off: distance(len, target),
                    };
                    len += usize::from(skip != rest);
                    live = form.effect.before_plain(target.live.union(other.live));
                    false
                }
                _ => {
                    special.convert(raw, live, &mut several);
                    len = insert(&mut code, len, &mut several, index);
                    live = form.effect.before(raw, live);
                    true
                }
            };
            if falls_through {
                entered[index + 1] = YES;
            }
            marks[index] = Mark {
                live,
                to_end: len as u32,
            };
        }
        special.prologue(live, &mut several);
        len = insert(&mut code, len, &mut several, 0);
        code.truncate(len);
        Pass {
            reversed: code,
            entered,
        }
    }

    /// Number of unreachable instructions at the end, if all others have a predecessor.
    fn padding(&self) -> Option<usize> {
        let all = self.entered.len();
        let last = self.entered.iter().rposition(|&entered| entered == YES);
        let end = last.map_or(0, |last| last + 1);
        (!self.entered[..end].contains(&NO)).then_some(all - end)
    }
}

/// True if a comparison with a constant is redundant: its target is that of the next
/// comparison's other branch, with another constant. Filters compare with IPv6 before IPv4
/// even if both have the same target.
#[inline(always)]
fn is_implied(program: &[SockFilter], index: usize) -> bool {
    let raw = program[index];
    program.get(index + 1).is_some_and(|next| {
        (next.code == raw.code)
            & (next.k != raw.k)
            & (raw.jf == 0)
            & (u32::from(raw.jt) == u32::from(next.jf) + 1)
    })
}

/// Upper bound of the slots of the prologue and the instructions before `index`, if each
/// has a template.
const fn room(index: usize) -> usize {
    2 * index + Special::PROLOGUE
}

/// Offset of a jump to a target, with `len` slots from the jump to the end.
#[inline(always)]
fn distance(len: usize, target: Mark) -> i16 {
    (len as u32).wrapping_sub(target.to_end) as i16
}

/// Prepends several instructions and reserves space for those before `index`; returns the
/// number of slots.
#[inline(never)]
fn insert(code: &mut Vec<Insn>, len: usize, several: &mut Vec<Insn>, index: usize) -> usize {
    let end = len + several.len();
    if code.len() < end + room(index) {
        code.resize(2 * (end + room(index)), Insn::Exit);
    }
    for (place, insn) in code[len..end].iter_mut().zip(several.iter().rev()) {
        *place = *insn;
    }
    several.clear();
    end
}

/// Patches the distances of `ja`: backward ones were unknown when the code was emitted, and
/// in long programs they may exceed 16 bits. (Other jumps reach at most 255 instructions of
/// at most nine slots.)
fn fill_long_distances(
    program: &[SockFilter],
    reached: &[bool],
    marks: &[Mark],
    code: &mut [Insn],
) {
    for (index, (&raw, &reached)) in program.iter().zip(reached).enumerate() {
        if let classic::Insn::Goto(k) = classic::Insn::decode(raw)
            && k != 0
            && reached
        {
            let position = marks[index].to_end - 1;
            let target = marks[goto_target(index, k)];
            let distance = position.wrapping_sub(target.to_end) as i32;
            code[position as usize] = match i16::try_from(distance) {
                Ok(off) => Insn::Goto { off },
                Err(_) => Insn::GotoLong { off: distance },
            };
        }
    }
}
