//! The code, instruction by instruction, and the jumps in it.

use isa::classic::SockFilter;
use isa::ebpf::{self, Insn, Width};

use super::forms::{Step, form};
use super::insns::{A, X, alu_imm, load_memory, mov_imm, store_memory};
use super::liveness::{Liveness, Places, goto_target};
use super::special::Special;

/// The code of a program in the making.
pub(super) struct Emitter {
    pub(super) insns: Vec<Insn>,
    /// For each instruction the slot where its code starts.
    pub(super) start: Vec<u32>,
    jumps: Vec<Jump>,
    reached: Vec<bool>,
}

/// A jump whose distance is not known yet.
#[derive(Clone, Copy)]
struct Jump {
    slot: u32,
    target: u32,
}

impl Emitter {
    /// Converts a program.
    pub(super) fn run(program: &[SockFilter], live: Liveness, special: &Special) -> Emitter {
        let mut emitter = Emitter {
            insns: Vec::with_capacity(program.len() * 2 + 8),
            start: Vec::with_capacity(program.len()),
            jumps: Vec::with_capacity(program.len()),
            reached: live.reached,
        };
        special.prologue(live.before[0], &mut emitter);
        for (index, (&raw, &after)) in program.iter().zip(&live.before[1..]).enumerate() {
            emitter.start.push(emitter.insns.len() as u32);
            if emitter.reached[index] && emitter.convert(index, raw, after, special) {
                emitter.reached[index + 1] = true;
            }
        }
        emitter.fill_distances();
        emitter
    }

    #[inline(always)]
    pub(super) fn emit(&mut self, insn: Insn) {
        self.insns.push(insn);
    }

    /// Converts one instruction, after which `live` is wanted; says whether control
    /// goes on to the next, and marks where else it goes.
    #[inline(always)]
    fn convert(&mut self, index: usize, raw: SockFilter, live: Places, special: &Special) -> bool {
        let form = form(raw);
        let imm = raw.k as i32;
        let next = index + 1;
        match &form.step {
            &Step::Load(size) if special.is_plain(imm) => {
                self.emit(Insn::PacketAbs { size, imm });
            }
            &Step::LoadIndirect(size) => self.emit(Insn::PacketInd { size, src: X, imm }),
            &Step::Constant { op, dst } => {
                if live.has(form.writes) {
                    self.emit(alu_imm(op, dst, imm));
                }
            }
            Step::Fixed(insn) => {
                if live.has(form.writes) {
                    self.emit(*insn);
                }
            }
            &Step::LoadWord(dst) => {
                if live.has(form.writes) {
                    self.emit(load_memory(dst, raw.k));
                }
            }
            &Step::StoreWord(src) => {
                if live.has(Places::memory(raw.k)) {
                    self.emit(store_memory(src, raw.k));
                }
            }
            Step::Return => {
                self.emit(mov_imm(A, imm));
                self.emit(Insn::Exit);
                return false;
            }
            Step::ReturnA => {
                self.emit(Insn::Exit);
                return false;
            }
            Step::Goto => {
                self.goto(goto_target(index, raw.k), next);
                return false;
            }
            &Step::Branch {
                cond,
                inverse,
                by_x,
            } => {
                let [holds, fails] = [raw.jt, raw.jf].map(|skip| next + usize::from(skip));
                let src = match by_x {
                    true => ebpf::Operand::Reg(X),
                    false => ebpf::Operand::Imm(imm),
                };
                // One way falls through where it can.
                let invert = (holds == next) & (cond != inverse);
                let (cond, target, rest) = match invert {
                    true => (inverse, fails, holds),
                    false => (cond, holds, fails),
                };
                if target != rest {
                    self.leads_to(target);
                    self.emit(Insn::Jump {
                        cond,
                        width: Width::W32,
                        dst: A,
                        src,
                        off: 0,
                    });
                }
                self.goto(rest, next);
                return false;
            }
            _ => special.convert(raw, live, self),
        }
        true
    }

    #[inline(always)]
    fn goto(&mut self, target: usize, next: usize) {
        if target != next {
            self.leads_to(target);
            self.emit(Insn::GotoLong { off: 0 });
        } else {
            self.reached[target] = true;
        }
    }

    /// The next slot leads to that instruction.
    #[inline(always)]
    fn leads_to(&mut self, target: usize) {
        self.reached[target] = true;
        self.jumps.push(Jump {
            slot: self.insns.len() as u32,
            target: target as u32,
        });
    }

    /// Conditional jumps reach at most 255 classic instructions, each at most nine
    /// slots long, so 16 bits always hold the distance; `ja` takes the long form
    /// where it must.
    fn fill_distances(&mut self) {
        for jump in &self.jumps {
            let distance = self.start[jump.target as usize] as i32 - (jump.slot as i32 + 1);
            match &mut self.insns[jump.slot as usize] {
                Insn::Jump { off, .. } => *off = distance as i16,
                goto => {
                    *goto = match i16::try_from(distance) {
                        Ok(off) => Insn::Goto { off },
                        Err(_) => Insn::GotoLong { off: distance },
                    }
                }
            }
        }
    }
}
