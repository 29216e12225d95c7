//! Definitions along a path: which step defined each register and stack slot, and from
//! what, by one pass forward over the instructions. Copies, spills and fills keep the
//! value that they copy, so that two registers can be told to hold the same one.

use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg, Width};

use super::calls;
use super::trace::Trace;
use crate::input::Input;
use crate::mem::STACK_END;
use crate::state::RegKind;

/// A definition: index into [`Values::defs`].
pub(super) type DefId = usize;

/// One value that a step defined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Def {
    /// The step; a value of the entry has step 0.
    pub(super) step: usize,
    /// The first step before which it holds.
    pub(super) from: usize,
    pub(super) kind: DefKind,
    pub(super) holder: Holder,
}

/// The register or stack slot that a definition wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    Reg { frame: usize, reg: usize },
    Slot { frame: usize, spi: usize },
}

/// Source of a definition.
#[derive(Clone, Copy, Debug)]
pub(super) enum DefKind {
    /// Never written on the path.
    Unwritten,
    /// An argument of the function that is verified, or of a callback.
    Argument,
    /// An immediate, or the address of a map, variable or function.
    Immediate,
    /// The same value.
    Copy(DefId),
    /// The same value, passed to a function or returned by one.
    Passed(DefId),
    /// The same value, stored in a stack slot.
    Spill(DefId),
    /// The same value, read back from a stack slot.
    Fill(DefId),
    /// The low bits of a value, zero- or sign-extended.
    Narrowed(DefId),
    /// Bytes of the stack that no single store wrote.
    StackBytes {
        /// The frame of the stack.
        frame: usize,
        /// Offset of the first from the frame pointer.
        at: i32,
        /// The latest store to some of them.
        latest: Option<DefId>,
        /// The step of the call that wrote them all, and no store since.
        call: Option<usize>,
    },
    /// Arithmetic on a value, and another unless the other operand is an immediate.
    Computed(DefId, Option<DefId>),
    /// Read from memory through a pointer.
    Loaded(DefId),
    /// The result of a call.
    Returned,
    /// Lost in a call.
    Clobbered,
}

/// A conditional jump on the path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    pub(super) step: usize,
    pub(super) dst: DefId,
    pub(super) src: Option<DefId>,
}

/// The definitions along a path, and those that reach its last step.
pub(super) struct Values {
    pub(super) defs: Vec<Def>,
    pub(super) branches: Vec<Branch>,
    frames: Vec<Holders>,
}

/// Definitions in the registers and slots of a frame.
#[derive(Clone)]
struct Holders {
    regs: [DefId; 11],
    /// Stores: offset from the frame pointer, bytes, definition.
    stores: Vec<(i32, u32, DefId)>,
    /// What calls wrote: offset from the frame pointer, bytes, step.
    written: Vec<(i32, u32, usize)>,
}

impl Values {
    /// The definitions that reach the last step of a path.
    pub(super) fn along(input: &Input<'_>, trace: &Trace) -> Values {
        let mut values = Values {
            defs: Vec::new(),
            branches: Vec::new(),
            frames: Vec::new(),
        };
        values.enter(0, 0, DefKind::Argument);
        values.defs.iter_mut().for_each(|def| def.from = 0);
        let count = trace.len();
        for step in 0..count.saturating_sub(1) {
            values.advance(input, trace, step);
        }
        values
    }

    /// The definition that a register of the executing frame holds at the last step.
    pub(super) fn reg(&self, reg: usize) -> DefId {
        self.frames.last().map_or(0, |frame| frame.regs[reg])
    }

    /// The value itself: copies, passing, spills and fills left out.
    pub(super) fn same(&self, mut id: DefId) -> DefId {
        while let DefKind::Copy(from)
        | DefKind::Passed(from)
        | DefKind::Spill(from)
        | DefKind::Fill(from) = self.defs[id].kind
        {
            id = from;
        }
        id
    }

    /// True if a value was made of another, by arithmetic or narrowing; `Some(true)` if
    /// arithmetic is among it.
    pub(super) fn made_of(&self, id: DefId, origin: DefId) -> Option<bool> {
        const MOST: usize = 64;
        let mut pending = vec![(id, false)];
        for _ in 0..MOST {
            let (id, computed) = pending.pop()?;
            let id = self.same(id);
            if id == origin {
                return Some(computed);
            }
            match self.defs[id].kind {
                DefKind::Narrowed(from) => pending.push((from, computed)),
                DefKind::Computed(left, right) => {
                    pending.push((left, true));
                    pending.extend(right.map(|right| (right, true)));
                }
                _ => {}
            }
        }
        None
    }

    /// The value that others were narrowed from or that constants were added to.
    pub(super) fn base(&self, mut id: DefId) -> DefId {
        loop {
            id = self.same(id);
            match self.defs[id].kind {
                DefKind::Narrowed(from) | DefKind::Computed(from, None) => id = from,
                _ => return id,
            }
        }
    }

    fn define(&mut self, step: usize, kind: DefKind, holder: Holder) -> DefId {
        self.defs.push(Def {
            step,
            from: step + 1,
            kind,
            holder,
        });
        self.defs.len() - 1
    }

    /// Adds a frame in which only the arguments hold something.
    fn enter(&mut self, step: usize, frame: usize, argument: DefKind) {
        let mut regs = [0; 11];
        for (reg, def) in regs.iter_mut().enumerate() {
            let kind = match reg {
                1..=5 => argument,
                10 => DefKind::Immediate,
                _ => DefKind::Unwritten,
            };
            *def = self.define(step, kind, Holder::Reg { frame, reg });
        }
        self.frames.truncate(frame);
        self.frames.push(Holders {
            regs,
            stores: Vec::new(),
            written: Vec::new(),
        });
    }

    fn get(&self, frame: usize, reg: Reg) -> DefId {
        self.frames[frame].regs[reg.index()]
    }

    fn set(&mut self, step: usize, frame: usize, reg: Reg, kind: DefKind) {
        let holder = Holder::Reg {
            frame,
            reg: reg.index(),
        };
        let id = self.define(step, kind, holder);
        self.frames[frame].regs[reg.index()] = id;
    }

    fn advance(&mut self, input: &Input<'_>, trace: &Trace, step: usize) {
        let (at, next) = (&trace.steps()[step], &trace.steps()[step + 1]);
        let (frame, next_frame) = (usize::from(at.frame), usize::from(next.frame));
        if frame + 1 != self.frames.len() {
            // An asynchronous callback starts in frames of its own.
            self.frames.truncate(frame + 1);
            while self.frames.len() <= frame {
                self.enter(step, self.frames.len(), DefKind::Argument);
            }
        }
        match input.insns[at.insn as usize] {
            Insn::Alu {
                op: AluOp::Mov,
                width,
                dst,
                src,
            } => {
                let kind = match src {
                    Operand::Imm(_) => DefKind::Immediate,
                    Operand::Reg(src) if width == Width::W64 => DefKind::Copy(self.get(frame, src)),
                    Operand::Reg(src) => DefKind::Narrowed(self.get(frame, src)),
                };
                self.set(step, frame, dst, kind);
            }
            Insn::Alu { dst, src, .. } => {
                let with = match src {
                    Operand::Reg(src) => Some(self.get(frame, src)),
                    Operand::Imm(_) => None,
                };
                let kind = DefKind::Computed(self.get(frame, dst), with);
                self.set(step, frame, dst, kind);
            }
            Insn::Neg { dst, .. } | Insn::Endian { dst, .. } => {
                let kind = DefKind::Computed(self.get(frame, dst), None);
                self.set(step, frame, dst, kind);
            }
            Insn::MovSx { dst, src, .. } => {
                let kind = DefKind::Narrowed(self.get(frame, src));
                self.set(step, frame, dst, kind);
            }
            Insn::Cast { dst, src, .. } => {
                let kind = DefKind::Copy(self.get(frame, src));
                self.set(step, frame, dst, kind);
            }
            Insn::LoadImm64 { dst, .. } => self.set(step, frame, dst, DefKind::Immediate),
            Insn::Load {
                dst,
                base,
                off,
                size,
                ..
            }
            | Insn::LoadAcquire {
                dst,
                base,
                off,
                size,
            } => {
                let kind = self.load(trace, step, base, off, size.bytes());
                self.set(step, frame, dst, kind);
            }
            Insn::Store {
                base,
                off,
                size,
                src,
            } => {
                let src = match src {
                    Operand::Reg(src) => Some(src),
                    Operand::Imm(_) => None,
                };
                self.store(trace, step, base, off, size.bytes(), src);
            }
            Insn::StoreRelease {
                base,
                off,
                size,
                src,
            } => self.store(trace, step, base, off, size.bytes(), Some(src)),
            Insn::Atomic { op, base, src, .. } => {
                if op.fetches_into_src() {
                    let kind = DefKind::Loaded(self.get(frame, base));
                    self.set(step, frame, src, kind);
                } else if op.fetches_into_r0() {
                    let kind = DefKind::Loaded(self.get(frame, base));
                    self.set(step, frame, Reg::R0, kind);
                }
            }
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => self.call(step, frame),
            Insn::Jump { dst, src, .. } => {
                let src = match src {
                    Operand::Reg(src) => Some(self.get(frame, src)),
                    Operand::Imm(_) => None,
                };
                let dst = self.get(frame, dst);
                self.branches.push(Branch { step, dst, src });
            }
            Insn::Call(callee) if next_frame == frame + 1 => {
                let args = self.frames[frame].regs;
                self.enter(step, next_frame, DefKind::Argument);
                if let Callee::Local(_) = callee {
                    for reg in isa::ebpf::RegSet::ARGUMENTS.iter() {
                        let kind = DefKind::Passed(args[reg.index()]);
                        self.set(step, next_frame, reg, kind);
                    }
                }
                self.call(step, frame);
            }
            Insn::Call(callee) => {
                self.forget_written(input, trace, step, callee);
                self.call(step, frame);
            }
            Insn::CallReg { .. } => self.call(step, frame),
            Insn::Exit if next_frame + 1 == frame => {
                let result = self.get(frame, Reg::R0);
                self.frames.truncate(frame);
                self.set(step, next_frame, Reg::R0, DefKind::Passed(result));
            }
            Insn::Exit => self.enter(step, next_frame, DefKind::Argument),
            Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::MayGoto { .. }
            | Insn::Invalid { .. } => {}
        }
    }

    fn call(&mut self, step: usize, frame: usize) {
        for reg in isa::ebpf::RegSet::ARGUMENTS.iter() {
            self.set(step, frame, reg, DefKind::Clobbered);
        }
        self.set(step, frame, Reg::R0, DefKind::Returned);
    }

    /// Forgets the stores to stack that a call writes: what its prototype says, and slots
    /// that have another state behind it.
    fn forget_written(&mut self, input: &Input<'_>, trace: &Trace, step: usize, callee: Callee) {
        let mut written = Vec::new();
        for reg in isa::ebpf::RegSet::ARGUMENTS.iter() {
            let number = reg.number();
            if calls::writes_through(input, callee, number)
                && let Some((owner, at)) = Values::stack_address(trace, step, reg, 0)
                && let Some(size) = calls::argument_bytes(input, trace, step, number)
            {
                written.push((owner, at, size));
            }
        }
        for (owner, frame) in self.frames.iter_mut().enumerate() {
            let own = written.iter().filter(|(of, ..)| *of == owner);
            (frame.written).extend(own.map(|&(_, at, size)| (at, size, step)));
            let slot = |step: usize, spi: usize| trace.frame(step, owner)?.stack.get(spi);
            frame.stores.retain(|&(start, size, _)| {
                let end = start + size as i32;
                let is_written = written.iter().any(|&(written, at, bytes)| {
                    written == owner && at < end && start < at.saturating_add_unsigned(bytes)
                });
                let spi = (-start - 1) as usize / 8;
                let is_changed = match (slot(step, spi), slot(step + 1, spi)) {
                    (Some(before), Some(after)) => before.kinds != after.kinds,
                    _ => false,
                };
                !is_written && !is_changed
            });
        }
    }

    /// The frame and the byte offset that a stack pointer points to.
    fn stack_address(trace: &Trace, step: usize, base: Reg, off: i16) -> Option<(usize, i32)> {
        let frame = usize::from(trace.steps()[step].frame);
        if base == Reg::R10 {
            return Some((frame, off.into()));
        }
        let reg = trace.reg(step, base.index())?;
        let RegKind::Stack { frame } = reg.kind else {
            return None;
        };
        let fixed = reg.off.wrapping_add(reg.num.as_const()? as i32);
        Some((frame as usize, fixed.wrapping_add(off.into())))
    }

    fn load(&self, trace: &Trace, step: usize, base: Reg, off: i16, size: u32) -> DefKind {
        let frame = usize::from(trace.steps()[step].frame);
        let Some((owner, at)) = Values::stack_address(trace, step, base, off) else {
            return DefKind::Loaded(self.get(frame, base));
        };
        let stores = self.frames.get(owner).map(|frame| &frame.stores[..]);
        let mut stores = stores.unwrap_or_default().iter();
        match stores.find(|(start, ..)| *start == at) {
            Some(&(_, stored, id)) if stored == size => DefKind::Fill(id),
            Some(&(_, stored, id)) if stored > size => DefKind::Narrowed(id),
            _ => {
                let end = at + size as i32;
                let overlaps = |(start, stored, _): &&(i32, u32, DefId)| {
                    *start < end && at < start + *stored as i32
                };
                let stores = self.frames.get(owner).map(|frame| &frame.stores[..]);
                let latest = stores.unwrap_or_default().iter().filter(overlaps);
                let latest = latest.map(|&(.., id)| id).max();
                let written = self.frames.get(owner).map(|frame| &frame.written[..]);
                let mut written = written.unwrap_or_default().iter().rev();
                let call = written.find(|(start, bytes, _)| {
                    *start <= at && end <= start.saturating_add_unsigned(*bytes)
                });
                DefKind::StackBytes {
                    frame: owner,
                    at,
                    latest,
                    call: call.filter(|_| latest.is_none()).map(|&(.., step)| step),
                }
            }
        }
    }

    fn store(
        &mut self,
        trace: &Trace,
        step: usize,
        base: Reg,
        off: i16,
        size: u32,
        src: Option<Reg>,
    ) {
        let frame = usize::from(trace.steps()[step].frame);
        let Some((owner, at)) = Values::stack_address(trace, step, base, off) else {
            return;
        };
        if owner >= self.frames.len() || !(STACK_END..0).contains(&at) {
            return;
        }
        let kind = match src {
            Some(src) => DefKind::Spill(self.get(frame, src)),
            None => DefKind::Immediate,
        };
        let spi = (-at - 1) as usize / 8;
        let id = self.define(step, kind, Holder::Slot { frame: owner, spi });
        let stores = &mut self.frames[owner].stores;
        let end = at + size as i32;
        stores.retain(|&(start, size, _)| start + size as i32 <= at || end <= start);
        stores.push((at, size, id));
    }
}
