//! The state of one path: frames, references, locks, counters, and the jump history
//! since the last checkpoint.

use std::ops::{Index, IndexMut};
use std::rc::Rc;

use isa::ebpf::Reg;
use spec::behaviour::{Behaviour, Behaviours};
use spec::limits;

use super::frame::Frame;
use super::history::History;
use super::reference::{LockOwner, Reference};
use super::reg::{ADD_CONST, RegState};

/// Most frames on a call chain.
pub const MAX_CALL_FRAMES: usize = limits::FRAMES as usize;
/// What is not modelled of kernels with more of them ([`Behaviour::SixteenFrames`]).
pub const MORE_FRAMES: &str = "more than 8 frames";

/// A checkpoint: index into the explorer's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateId(pub u32);

/// Registers and slots of a frame that are precise: the scalar's value matters for
/// safety.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PreciseMask {
    /// One bit each for `r0` to `r9`.
    pub regs: u16,
    /// One bit for each slot.
    pub slots: u64,
}

/// Precise scalars of all frames of a checkpoint, without the gaps that a list of [`PreciseMask`]s has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct PreciseMasks {
    regs: [u16; MAX_CALL_FRAMES],
    slots: [u64; MAX_CALL_FRAMES],
}

impl PreciseMasks {
    /// Those of a frame.
    pub fn of(&self, frame: usize) -> PreciseMask {
        PreciseMask {
            regs: self.regs[frame],
            slots: self.slots[frame],
        }
    }

    /// Adds a register of a frame; false if it was in the set.
    pub fn add_reg(&mut self, frame: usize, reg: usize) -> bool {
        let before = self.regs[frame];
        self.regs[frame] |= 1 << reg;
        self.regs[frame] != before
    }

    /// Adds a slot of a frame; false if it was in the set.
    pub fn add_slot(&mut self, frame: usize, spi: usize) -> bool {
        let before = self.slots[frame];
        self.slots[frame] |= 1 << spi;
        self.slots[frame] != before
    }

    /// True if a register of a frame is precise.
    pub fn has_reg(&self, frame: usize, reg: usize) -> bool {
        self.regs[frame] & 1 << reg != 0
    }

    /// True if a slot of a frame is precise.
    pub fn has_slot(&self, frame: usize, spi: usize) -> bool {
        self.slots[frame] & 1 << spi != 0
    }

    /// Sets those of a frame.
    pub fn set(&mut self, frame: usize, mask: PreciseMask) {
        self.regs[frame] = mask.regs;
        self.slots[frame] = mask.slots;
    }
}

/// Registers of arguments, one bit each.
pub const ARGS: u16 = 0b11_1110;

/// Abstract state at one point of a path (kernel: `struct bpf_verifier_state`)
/// (`bpf_verifier_state`).
#[doc(alias = "bpf_verifier_state")]
#[derive(Clone, Debug)]
pub struct State {
    frames: [Option<Rc<Frame>>; MAX_CALL_FRAMES],
    /// Registers of the executing frame to which a precision request was carried since the
    /// last checkpoint, one bit each (`precision-skip`).
    pub propagated: u16,
    /// Registers of the executing frame that are 0 by a read of the stack, or computed from such a one, since
    /// the last checkpoint: one bit each. Kernels without [`Behaviour::StackByAnyRegister`] call them
    /// precise.
    pub stack_zeros: u16,
    /// Number of the executing frame.
    pub curframe: usize,
    /// Acquired references and held locks, oldest first.
    pub refs: Vec<Reference>,
    /// Held `bpf_spin_lock`s and resilient locks.
    pub active_locks: u32,
    /// Depth of `bpf_preempt_disable`.
    pub active_preempt_locks: u32,
    /// Identity of the innermost saved IRQ state.
    pub active_irq_id: u32,
    /// Identity of the innermost lock.
    pub active_lock_id: u32,
    /// Object that contains the innermost lock.
    pub active_lock_owner: LockOwner,
    /// Inside `bpf_rcu_read_lock`.
    pub active_rcu_locks: u32,
    /// The path may sleep (`in_sleepable`).
    pub in_sleepable: bool,
    /// Only speculative execution takes the path.
    pub speculative: bool,
    /// Instruction that executes.
    pub insn_idx: u32,
    /// First instruction since the last checkpoint.
    pub first_insn_idx: u32,
    /// Last instruction executed; -1 at the start.
    pub last_insn_idx: i32,
    /// The checkpoint that this state continues.
    pub parent: Option<StateId>,
    /// Instructions since the last checkpoint that backtracking must know.
    pub history: History,
    /// Checkpoints above this state.
    pub dfs_depth: u32,
    /// Simulated iterations of callbacks so far.
    pub callback_unroll_depth: u32,
    /// Taken `may_goto` back edges.
    pub may_goto_depth: u32,
}

/// A section of code in which a program must not sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// RCU protects what is read in it.
    Rcu,
    /// The processor is not taken from the program.
    Preempt,
    /// Interrupts are off.
    Irq,
    /// A lock is held.
    Lock,
}

impl Section {
    /// The calls that begin and end one.
    pub const fn calls(self) -> (&'static str, &'static str) {
        match self {
            Section::Rcu => ("bpf_rcu_read_lock", "bpf_rcu_read_unlock"),
            Section::Preempt => ("bpf_preempt_disable", "bpf_preempt_enable"),
            Section::Irq => ("bpf_local_irq_save", "bpf_local_irq_restore"),
            Section::Lock => ("bpf_spin_lock", "bpf_spin_unlock"),
        }
    }
}

impl State {
    /// The state at the entry of a function.
    pub fn new(frame: Frame, insn_idx: u32, in_sleepable: bool) -> State {
        let mut frames: [Option<Rc<Frame>>; MAX_CALL_FRAMES] = Default::default();
        frames[0] = Some(Rc::new(frame));
        State {
            frames,
            propagated: 0,
            stack_zeros: 0,
            curframe: 0,
            refs: Vec::new(),
            active_locks: 0,
            active_preempt_locks: 0,
            active_irq_id: 0,
            active_lock_id: 0,
            active_lock_owner: LockOwner::None,
            active_rcu_locks: 0,
            in_sleepable,
            speculative: false,
            insn_idx,
            first_insn_idx: insn_idx,
            last_insn_idx: -1,
            parent: None,
            history: History::default(),
            dfs_depth: 0,
            callback_unroll_depth: 0,
            may_goto_depth: 0,
        }
    }

    /// The frame of that number.
    #[inline]
    pub fn frame(&self, number: usize) -> &Frame {
        self.frames[number]
            .as_deref()
            .expect("frame within curframe")
    }

    /// The frame of that number for writing; copied first if another state shares it.
    #[inline]
    pub fn frame_mut(&mut self, number: usize) -> &mut Frame {
        Rc::make_mut(self.frames[number].as_mut().expect("frame within curframe"))
    }

    /// The shared frame of that number.
    pub fn frame_rc(&self, number: usize) -> &Rc<Frame> {
        self.frames[number].as_ref().expect("frame within curframe")
    }

    /// Puts a shared frame in the place of one with the same call site.
    pub fn share_frame(&mut self, number: usize, frame: &Rc<Frame>) {
        self.frames[number] = Some(Rc::clone(frame));
    }

    /// The executing frame.
    #[inline]
    pub fn cur(&self) -> &Frame {
        self.frame(self.curframe)
    }

    /// The executing frame for writing.
    #[inline]
    pub fn cur_mut(&mut self) -> &mut Frame {
        self.frame_mut(self.curframe)
    }

    /// True in a section that RCU protects: explicit, under a lock, or in programs that do not
    /// sleep (`in_rcu_cs`).
    #[doc(alias = "in_rcu_cs")]
    pub fn in_rcu_section(&self, rules: Behaviours) -> bool {
        let in_other = self.active_preempt_locks != 0 || self.active_irq_id != 0;
        self.active_rcu_locks != 0
            || self.active_locks != 0
            || rules.has(Behaviour::SectionsProtect) && in_other
            || !self.in_sleepable
    }

    /// The first of some sections that the path is in.
    pub fn first_of(&self, sections: &[Section]) -> Option<Section> {
        let is_in = |section: &Section| match section {
            Section::Rcu => self.active_rcu_locks != 0,
            Section::Preempt => self.active_preempt_locks != 0,
            Section::Irq => self.active_irq_id != 0,
            Section::Lock => self.active_locks != 0,
        };
        sections.iter().copied().find(is_in)
    }

    /// Enters a frame above the executing one.
    pub fn push_frame(&mut self, frame: Frame) {
        self.curframe += 1;
        self.propagated = 0;
        self.stack_zeros &= ARGS;
        self.frames[self.curframe] = Some(Rc::new(frame));
    }

    /// Leaves the executing frame and returns it.
    pub fn pop_frame(&mut self) -> Option<Rc<Frame>> {
        let frame = self.frames[self.curframe].take();
        self.propagated = 0;
        self.stack_zeros &= 1;
        self.curframe = self.curframe.saturating_sub(1);
        frame
    }

    /// A register of the executing frame.
    #[inline]
    pub fn reg(&self, reg: Reg) -> &RegState {
        &self.cur().regs[reg.index()]
    }

    /// A register of the executing frame for writing.
    #[inline]
    pub fn reg_mut(&mut self, reg: Reg) -> &mut RegState {
        &mut self.cur_mut().regs[reg.index()]
    }

    /// Instruction at which the frame of that number stands.
    pub fn frame_insn_idx(&self, number: usize) -> u32 {
        if number == self.curframe {
            self.insn_idx
        } else {
            self.frame(number + 1).callsite as u32
        }
    }

    /// Ends the link of each number whose identity no other number has
    /// (`bpf_clear_singular_ids`).
    #[doc(alias = "bpf_clear_singular_ids")]
    pub fn clear_singular_ids(&mut self, rules: Behaviours) {
        let identity = |reg: &RegState| match reg.is_scalar() {
            true => reg.id & !ADD_CONST,
            false => 0,
        };
        let frames = (0..=self.curframe).map(|number| self.frame(number));
        let mut ids: Vec<u32> = frames
            .flat_map(|frame| {
                let spilled = frame.stack.iter().filter(|slot| slot.is_spilled());
                frame.regs.iter().chain(spilled.map(|slot| &slot.reg))
            })
            .map(identity)
            .filter(|&id| id != 0)
            .collect();
        ids.sort_unstable();
        let shared: Vec<u32> = ids
            .windows(2)
            .filter(|pair| pair[0] == pair[1])
            .map(|pair| pair[0])
            .collect();
        let is_singular = |reg: &RegState| {
            let id = identity(reg);
            id != 0 && shared.binary_search(&id).is_err()
        };
        self.for_each_reg_mut(is_singular, |reg| *reg = reg.without_link(rules));
    }

    /// Calls `visit` for every register and every spilled register of every frame, for
    /// writing. Frames are copied only when `wanted` is true for one of their registers.
    pub fn for_each_reg_mut(
        &mut self,
        wanted: impl Fn(&RegState) -> bool,
        mut visit: impl FnMut(&mut RegState),
    ) {
        for number in 0..=self.curframe {
            for reg in 0..Reg::COUNT {
                if wanted(&self.frame(number).regs[reg]) {
                    visit(&mut self.frame_mut(number).regs[reg]);
                }
            }
            for spi in 0..self.frame(number).stack.len() {
                let slot = &self.frame(number).stack[spi];
                if slot.is_spilled() && wanted(&slot.reg) {
                    visit(&mut self.frame_mut(number).stack.slot_mut(spi).reg);
                }
            }
        }
    }
}

impl Index<Reg> for Frame {
    type Output = RegState;
    fn index(&self, reg: Reg) -> &RegState {
        &self.regs[reg.index()]
    }
}

impl IndexMut<Reg> for Frame {
    fn index_mut(&mut self, reg: Reg) -> &mut RegState {
        &mut self.regs[reg.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::State;
    use crate::state::{Frame, MAIN_CALLSITE, RegState};
    use isa::ebpf::Reg;
    use std::rc::Rc;

    #[test]
    fn a_fork_shares_frames_until_one_side_writes() {
        let mut state = State::new(Frame::new(MAIN_CALLSITE, 0, 0), 0, false);
        state.cur_mut().grow_stack(20);
        assert_eq!(state.cur().allocated_stack(), 24);
        let fork = state.clone();
        assert!(Rc::ptr_eq(state.frame_rc(0), fork.frame_rc(0)));
        *state.reg_mut(Reg::R3) = RegState::constant(7);
        assert!(!Rc::ptr_eq(state.frame_rc(0), fork.frame_rc(0)));
        assert_eq!(*fork.reg(Reg::R3), RegState::NOT_INIT);
        assert_eq!(state.reg(Reg::R3).num.as_const(), Some(7));
    }

    #[test]
    fn only_frames_with_live_registers_are_copied() {
        let mut state = State::new(Frame::new(MAIN_CALLSITE, 0, 0), 0, false);
        state.push_frame(Frame::new(4, 1, 1));
        *state.reg_mut(Reg::R1) = RegState {
            id: 5,
            ..RegState::UNKNOWN
        };
        let fork = state.clone();
        state.for_each_reg_mut(|reg| reg.id == 5, |reg| reg.id = 0);
        assert!(Rc::ptr_eq(state.frame_rc(0), fork.frame_rc(0)));
        assert_eq!((state.reg(Reg::R1).id, fork.reg(Reg::R1).id), (0, 5));
        assert_eq!(state.frame_insn_idx(0), 4);
    }
}
