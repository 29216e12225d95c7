//! Precision tracking: which scalars a proof relied on.
//!
//! Scalars start imprecise. When a scalar's value matters (an offset, a decided branch, a
//! size), the instructions of the path are walked backwards, from the history and the
//! checkpoints above the current state, and every register and slot that the value came
//! from is marked precise in each checkpoint on the way. A walk ends where every source
//! is a constant, no scalar, or precise already. State equality compares the ranges of
//! precise scalars only.
//!
//! With `precision-skip`, a register of the current state is marked as propagated if a
//! request for it would mark nothing new since the last checkpoint: a request was
//! carried to it, or its value is a constant or comes from memory. Copies and arithmetic
//! hand the mark on, as the walk would go on to their sources. It goes when the register
//! gets another value, is compared with another register, is linked anew, or a checkpoint
//! is made. At log level 2 nothing is skipped, as the walks are in the log.
//!
//! Without CAP_BPF every scalar counts as precise, and nothing is marked.
//!
//! Complexity: a walk is linear in the instructions of the path up to the checkpoints
//! that hold the marks already.

mod backtrack;
mod tracker;

use backtrack::Backtrack;
pub(crate) use backtrack::concerned_regs;
use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg};

use spec::behaviour::Behaviour;

use crate::Result;
use crate::env::{Check, Env};
use crate::explore::{Checkpoint, Explorer, Liveness};
use crate::log::Sink;
use crate::state::{ARGS, HistoryFlags, PreciseMask, State, StateId};
use tracker::Tracker;

/// Counts of precision tracking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrecisionCounts {
    /// Requests for a register of the current state.
    pub requests: u64,
    /// Requests that were answered without a walk.
    pub skipped: u64,
    /// Instructions walked back over.
    pub insns: u64,
}

/// Demands that the scalar in a register of the executing frame be precise wherever its
/// value came from.
pub fn mark_chain_precision(env: &mut Env<'_>, reg: Reg) -> Result<()> {
    refuse_if!(!env.reg(reg).is_scalar(), env => Flow::BacktrackMisuse);
    if !env.input.bpf_capable {
        return Ok(());
    }
    let bit = 1u16 << reg.number();
    let counts = &mut env.precision;
    counts.requests += 1;
    let skips = env.check.input.options.precision_skip && !env.check.sink.is_full();
    if skips && env.check.state.propagated & bit != 0 {
        counts.skipped += 1;
        return Ok(());
    }
    let mut bt = Backtrack::new(env.state.curframe);
    bt.regs[bt.frame] |= bit;
    mark_from_current(env, bt)?;
    env.state.propagated |= bit;
    Ok(())
}

/// Demands precision of registers and slots by frame
/// (`mark_chain_precision_batch`).
#[doc(alias = "mark_chain_precision_batch")]
pub fn mark_batch(env: &mut Env<'_>, wanted: &[PreciseMask]) -> Result<()> {
    if !env.input.bpf_capable {
        return Ok(());
    }
    let mut bt = Backtrack::new(env.state.curframe);
    for (number, mask) in wanted.iter().enumerate().take(bt.regs.len()) {
        bt.regs[number] = mask.regs;
        bt.slots[number] = mask.slots;
    }
    mark_from_current(env, bt)
}

/// Demands of the current path what a checkpoint that covers it needs precisely
/// (`propagate_precision`).
pub fn propagate_precision(env: &mut Env<'_>, covering: StateId) -> Result<()> {
    let bt = collect(env, covering, env.state.curframe);
    if env.input.rules.has(Behaviour::FramesBacktracked) {
        return mark_from_current(env, bt);
    }
    // Each alone, and over instructions of other frames as if they were of its frame.
    for frame in (0..=env.state.curframe).rev() {
        for reg in bits(u64::from(bt.regs[frame])) {
            let mut request = Backtrack::new(frame);
            request.regs[frame] = 1 << reg;
            mark_from_current(env, request)?;
        }
        for spi in bits(bt.slots[frame]) {
            let mut request = Backtrack::new(frame);
            request.slots[frame] = 1 << spi;
            mark_from_current(env, request)?;
        }
    }
    Ok(())
}

/// As [`propagate_precision`], for a path that ended in `state`; true if a mark is new.
pub fn propagate_precision_of(env: &mut Env<'_>, covering: StateId, state: &State) -> Result<bool> {
    let bt = collect(env, covering, state.curframe);
    Tracker {
        input: env.check.input,
        analysis: env.check.analysis,
        explorer: &mut env.explorer,
        counts: &mut env.precision,
        sink: &mut env.check.sink,
    }
    .mark(state, bt)
}

/// The precise scalars of a checkpoint, logged.
fn collect(env: &mut Env<'_>, covering: StateId, frame: usize) -> Backtrack {
    let checkpoint = env.explorer.checkpoint(covering);
    let state = checkpoint.state();
    let mut bt = Backtrack::new(frame);
    for number in (0..=state.curframe).rev() {
        let (regs, slots) = match env.input.bpf_capable {
            true => {
                let (regs, slots) = precise_scalars(checkpoint, number);
                match env.explorer.liveness {
                    Liveness::Flow => (regs, slots),
                    Liveness::Marks => {
                        let reads = checkpoint.reads().of(number);
                        (regs & reads.regs, slots & reads.slots)
                    }
                }
            }
            false => live_scalars(env, covering, number),
        };
        // Without CAP_BPF every scalar is precise from the start, and nothing is marked.
        if env.input.bpf_capable {
            bt.regs[number] = regs;
            bt.slots[number] = slots;
        }
        if (regs != 0 || slots != 0) && env.sink.is_full() {
            let regs = (0..10)
                .filter(|reg| regs & 1 << reg != 0)
                .map(|reg| format!("r{reg}"));
            let slots = (0..64)
                .filter(|spi| slots & 1 << spi != 0)
                .map(|spi| format!("fp{}", -8 * (spi + 1)));
            let names: Vec<String> = regs.chain(slots).collect();
            verbose!(
                env.check.sink,
                "frame {number}: propagating {}\n",
                names.join(",")
            );
        }
    }
    bt
}

/// Registers and slots of a frame that hold scalars; of a cleaned checkpoint the live ones.
fn live_scalars(env: &Env<'_>, id: StateId, number: usize) -> (u16, u64) {
    let checkpoint = env.explorer.checkpoint(id);
    let state = checkpoint.state();
    let frame = state.frame(number);
    let (live, dead) = match checkpoint.is_cleaned() {
        true => {
            let insn = state.frame_insn_idx(number) as usize;
            (
                env.analysis.insns[insn].live_regs,
                checkpoint.dead_slots(number),
            )
        }
        false => (u16::MAX, 0),
    };
    let regs = (0..10).filter(|&reg| live >> reg & 1 != 0 && frame.regs[reg].is_scalar());
    let slots = (0..frame.stack.len().min(64)).filter(|&spi| {
        dead >> spi & 1 == 0
            && frame
                .stack
                .get(spi)
                .is_some_and(|slot| slot.is_spilled_scalar())
    });
    (
        regs.fold(0, |mask, reg| mask | 1 << reg),
        slots.fold(0, |mask, spi| mask | 1 << spi),
    )
}

/// Precise registers and slots of a frame that hold scalars.
fn precise_scalars(checkpoint: &Checkpoint, number: usize) -> (u16, u64) {
    let frame = checkpoint.state().frame(number);
    let mask = checkpoint.precise().of(number);
    let (mut regs, mut slots) = (0, 0);
    for reg in bits(u64::from(mask.regs & 0x3ff)) {
        if frame.regs[reg].is_scalar() {
            regs |= 1 << reg;
        }
    }
    for spi in bits(mask.slots) {
        if frame
            .stack
            .get(spi)
            .is_some_and(|slot| slot.is_spilled_scalar())
        {
            slots |= 1 << spi;
        }
    }
    (regs, slots)
}

/// Indices of the bits that are set, ascending.
fn bits(mut mask: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let index = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            index
        })
    })
}

/// Hands the propagated marks on over an instruction that was executed.
pub fn carry_propagated(env: &mut Env<'_>, insn_idx: u32) {
    let mask = env.state.propagated;
    let has = |reg: Reg| mask & 1 << reg.number() != 0;
    let (dst, is_propagated) = match env.input.insns[insn_idx as usize] {
        Insn::Alu { op, dst, src, .. } => match (op, src) {
            (AluOp::Mov, Operand::Imm(_)) => (dst, true),
            (AluOp::Mov, Operand::Reg(src)) => (dst, has(src)),
            (_, Operand::Imm(_)) => return,
            (_, Operand::Reg(src)) => (dst, has(dst) && has(src)),
        },
        Insn::MovSx { dst, src, .. } => (dst, has(src)),
        Insn::LoadImm64 { dst, .. } => (dst, true),
        Insn::Load { dst, base, .. } | Insn::LoadAcquire { dst, base, .. } => {
            let entry = env.history_entry().map(|entry| entry.flags());
            let is_fill = match env.input.rules.has(Behaviour::StackByAnyRegister) {
                true => entry.is_some_and(|flags| flags.has(HistoryFlags::STACK_ACCESS)),
                false => base == Reg::R10,
            };
            (dst, !is_fill)
        }
        Insn::Neg { .. }
        | Insn::Endian { .. }
        | Insn::Imm64High
        | Insn::Store { .. }
        | Insn::StoreRelease { .. }
        | Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::MayGoto { .. } => return,
        Insn::Cast { .. }
        | Insn::Atomic { .. }
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. }
        | Insn::GotoReg { .. }
        | Insn::Call(_)
        | Insn::CallReg { .. }
        | Insn::Exit
        | Insn::Invalid { .. } => {
            env.state.propagated = 0;
            return;
        }
    };
    let bit = 1 << dst.number();
    env.state.propagated = if is_propagated {
        mask | bit
    } else {
        mask & !bit
    };
}

/// Hands the marks of zeros from the stack on over an instruction that is to be executed.
#[inline]
pub fn carry_stack_zeros(env: &mut Check<'_>, insn_idx: u32) {
    if env.state.stack_zeros != 0 {
        hand_on_stack_zeros(env, insn_idx);
    }
}

fn hand_on_stack_zeros(env: &mut Check<'_>, insn_idx: u32) {
    let mask = env.state.stack_zeros;
    let has = |reg: Reg| mask & 1 << reg.number() != 0;
    let (dst, is_zero) = match env.input.insns[insn_idx as usize] {
        Insn::Alu {
            op: AluOp::Mov,
            dst,
            src: Operand::Reg(src),
            ..
        } => (dst, has(src)),
        Insn::Alu {
            op: AluOp::Mov | AluOp::Div | AluOp::Mod,
            dst,
            ..
        }
        | Insn::Neg { dst, .. }
        | Insn::Endian { dst, .. }
        | Insn::LoadImm64 { dst, .. }
        | Insn::Load { dst, .. } => (dst, false),
        Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) => {
            env.state.stack_zeros &= !(ARGS | 1);
            return;
        }
        _ => return,
    };
    match is_zero {
        true => env.state.stack_zeros |= 1 << dst.number(),
        false => env.state.stack_zeros &= !(1 << dst.number()),
    }
}

fn mark_from_current(env: &mut Env<'_>, bt: Backtrack) -> Result<()> {
    Tracker {
        input: env.check.input,
        analysis: env.check.analysis,
        explorer: &mut env.explorer,
        counts: &mut env.precision,
        sink: &mut env.check.sink,
    }
    .mark(&env.check.state, bt)?;
    Ok(())
}

/// Marks every scalar of every checkpoint above a state precise (`mark_all_scalars_precise`)
/// (`bpf_mark_all_scalars_precise`).
#[doc(alias = "bpf_mark_all_scalars_precise")]
pub fn mark_all_scalars_precise(env: &mut Env<'_>, state: &State) {
    let (explorer, sink) = (&mut env.explorer, &mut env.check.sink);
    force_all_precise(explorer, sink, state.curframe, state.parent);
    if let Some(walk) = &mut sink.walk {
        walk.end_request();
    }
}

/// Marks every scalar of a checkpoint and of those above it.
fn force_all_precise(
    explorer: &mut Explorer,
    sink: &mut Sink<'_>,
    frame: usize,
    mut next: Option<StateId>,
) {
    let is_logged = sink.is_full();
    if is_logged {
        sink.write(format_args!(
            "mark_precise: frame{frame}: falling back to forcing all scalars precise\n"
        ));
    }
    // Scalars do not come to a checkpoint later. Marks are written to a log and a recorded walk again.
    let stops = !is_logged && sink.walk.is_none();
    while let Some(id) = next {
        let checkpoint = explorer.checkpoint_mut(id);
        if checkpoint.note_all_precise() && stops {
            break;
        }
        for number in 0..=checkpoint.state().curframe {
            let mut mask = checkpoint.precise().of(number);
            let state = checkpoint.state();
            let frame = state.frame(number);
            for reg in 0..10 {
                if frame.regs[reg].is_scalar() && mask.regs & 1 << reg == 0 {
                    mask.regs |= 1 << reg;
                    if is_logged {
                        sink.write(format_args!(
                            "force_precise: frame{number}: forcing r{reg} to be precise\n"
                        ));
                    }
                }
            }
            for (spi, slot) in frame.stack.iter().enumerate() {
                if slot.is_spilled_scalar() && mask.slots & 1 << spi == 0 {
                    mask.slots |= 1 << spi;
                    if is_logged {
                        let offset = -8 * (spi as i32 + 1);
                        sink.write(format_args!(
                            "force_precise: frame{number}: forcing fp{offset} to be precise\n"
                        ));
                    }
                }
            }
            note_marks(sink, checkpoint, number, mask);
            checkpoint.set_precise(number, mask);
        }
        next = checkpoint.state().parent;
    }
}

/// Notes in a recorded walk which scalars of a checkpoint become precise.
fn note_marks(sink: &mut Sink<'_>, checkpoint: &Checkpoint, frame: usize, mask: PreciseMask) {
    if let Some(walk) = &mut sink.walk {
        let before = checkpoint.precise().of(frame);
        let (regs, slots) = (mask.regs & !before.regs, mask.slots & !before.slots);
        walk.mark(checkpoint.step, frame, regs, slots);
    }
}
