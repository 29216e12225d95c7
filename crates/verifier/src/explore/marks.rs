//! Liveness by marks, before [`Behaviour::StackLiveness`]: a read marks the register or slot in the
//! checkpoints that the path came from, up to the one behind which it was written.
//!
//! Each frame knows what was written since the last checkpoint and from which place of that checkpoint
//! a register came ([`FrameMarks`]); a checkpoint keeps both as they were when it was made, and the marks
//! of reads below it. Cost: a read walks the checkpoints that have no mark yet.
//!
//! [`Behaviour::StackLiveness`]: spec::behaviour::Behaviour::StackLiveness

use super::checkpoint::Explorer;
use crate::state::{FrameMarks, RegPlace, State, StateId};

/// How the walk tells what is live; chosen once, by the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// Over the control flow.
    #[default]
    Flow,
    /// By marks along parents.
    Marks,
}

/// A place that was read.
#[derive(Clone, Copy)]
enum Read {
    Reg(RegPlace),
    Slot { frame: usize, spi: usize },
}

impl Read {
    /// Where it came from, unless it was written or made since the checkpoint before.
    fn origin(self, state: &State) -> Option<Read> {
        match self {
            Read::Reg(place) => {
                let marks = &state.frame(place.frame()).marks;
                marks.origin(place.reg()).map(Read::Reg)
            }
            Read::Slot { frame, spi } => {
                let marks = &state.frame(frame).marks;
                (!marks.is_fresh && marks.written_slots & 1 << spi == 0).then_some(self)
            }
        }
    }
}

impl Explorer {
    /// Notes that the path read a register.
    pub(crate) fn read_reg(&mut self, state: &State, frame: usize, reg: usize) {
        self.read(state, Read::Reg(RegPlace::new(frame, reg)));
    }

    /// Notes that the path read slots.
    pub(crate) fn read_slots(&mut self, state: &State, frame: usize, mut slots: u64) {
        while slots != 0 {
            let spi = slots.trailing_zeros() as usize;
            slots &= slots - 1;
            self.read(state, Read::Slot { frame, spi });
        }
    }

    fn read(&mut self, state: &State, read: Read) {
        let mut parent = state.parent;
        let mut origin = read.origin(state);
        while let (Some(id), Some(read)) = (parent, origin) {
            let checkpoint = self.checkpoint_mut(id);
            let is_new = match read {
                Read::Reg(place) => checkpoint.reads.add_reg(place.frame(), place.reg()),
                Read::Slot { frame, spi } => {
                    let has_slot = spi < checkpoint.state.frame(frame).stack.len();
                    has_slot && checkpoint.reads.add_slot(frame, spi)
                }
            };
            if !is_new {
                return;
            }
            parent = checkpoint.state.parent;
            origin = read.origin(&checkpoint.state);
        }
    }

    /// What is read below a checkpoint is read on the path that it covers (`propagate_liveness`,
    /// `propagate_liveness_reg`).
    #[doc(alias = "propagate_liveness")]
    #[doc(alias = "propagate_liveness_reg")]
    pub(super) fn propagate_reads(&mut self, state: &State, id: StateId) {
        let reads = self.checkpoint(id).reads;
        for frame in 0..=state.curframe {
            let reads = reads.of(frame);
            let first = if frame < state.curframe { 6 } else { 0 };
            for reg in (first..10).filter(|reg| reads.regs & 1 << reg != 0) {
                self.read_reg(state, frame, reg);
            }
            self.read_slots(state, frame, reads.slots);
        }
    }
}

/// Connects a path with the checkpoint that was made of it.
pub(super) fn connect(state: &mut State) {
    for number in 0..=state.curframe {
        state.frame_mut(number).marks = FrameMarks::connected(number);
    }
}
