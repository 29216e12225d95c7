//! The decisions of a path: conditional jumps, calls and returns, long paths shortened.

use isa::ebpf::{Callee, Insn};

use super::explanation::{Decision, Path};
use super::scene::Scene;

/// Decisions shown at the start of a path.
const FIRST: usize = 4;
/// Decisions shown at its end.
const LAST: usize = 8;

/// Decisions of a cycle that is shown once.
const LONGEST_CYCLE: usize = 6;

/// A decision by step.
#[derive(Clone, Copy)]
struct Found {
    step: usize,
    times: usize,
}

/// The decisions of the path to the refusal.
pub(super) fn decisions(scene: &Scene<'_>) -> Path {
    let steps = scene.trace.steps();
    let mut found: Vec<Found> = Vec::new();
    for step in 0..steps.len().saturating_sub(1) {
        if !is_decision(scene, step) {
            continue;
        }
        let is_same = |last: &Found| {
            let (last, now) = (last.step, step);
            steps[last].insn == steps[now].insn && steps[last + 1].insn == steps[now + 1].insn
        };
        match found.last_mut() {
            Some(last) if is_same(last) => last.times += 1,
            _ => found.push(Found { step, times: 1 }),
        }
        fold_cycle(scene, &mut found);
    }
    let omitted = found.len().saturating_sub(FIRST + LAST);
    let omitted = if omitted > 1 { omitted } else { 0 };
    let first = if omitted > 0 { FIRST } else { found.len() };
    let shown = found[..first].iter().chain(&found[first + omitted..]);
    Path {
        decisions: shown.map(|found| decision(scene, *found)).collect(),
        omitted: (omitted > 0).then_some((first, omitted)),
        steps: steps.len(),
    }
}

/// Drops the last decisions if they repeat those before them, which then count once more.
fn fold_cycle(scene: &Scene<'_>, found: &mut Vec<Found>) {
    let steps = scene.trace.steps();
    let key = |found: &Found| (steps[found.step].insn, steps[found.step + 1].insn);
    for period in 2..=LONGEST_CYCLE {
        let Some(start) = found.len().checked_sub(2 * period) else {
            return;
        };
        let (before, last) = found[start..].split_at(period);
        if before.iter().map(key).eq(last.iter().map(key)) {
            let kept = start + period;
            for index in 0..period {
                found[start + index].times += found[kept + index].times;
            }
            found.truncate(kept);
            return;
        }
    }
}

/// True if the path may go on elsewhere than behind the instruction.
fn is_decision(scene: &Scene<'_>, step: usize) -> bool {
    let steps = scene.trace.steps();
    let (at, next) = (&steps[step], &steps[step + 1]);
    match scene.input.insns[at.insn as usize] {
        Insn::Jump { off, .. } => off != 0,
        Insn::MayGoto { .. } => true,
        Insn::Call(_) => next.frame > at.frame,
        Insn::Exit => next.frame < at.frame,
        _ => false,
    }
}

fn decision(scene: &Scene<'_>, found: Found) -> Decision {
    let steps = scene.trace.steps();
    let (at, next) = (&steps[found.step], &steps[found.step + 1]);
    let place = scene.place(at.insn);
    match scene.input.insns[at.insn as usize] {
        Insn::Call(callee) => Decision::Call {
            at: place,
            function: scene.function_at(next.insn),
            callback: !matches!(callee, Callee::Local(_)),
        },
        Insn::Exit => Decision::Return {
            at: place,
            function: scene.function_at(at.insn),
        },
        _ => Decision::Branch {
            at: place,
            taken: next.insn != at.insn + 1,
            to: scene.place(next.insn),
            times: found.times,
        },
    }
}
