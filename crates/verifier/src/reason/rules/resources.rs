//! Limits: instructions, stack, frames.

use isa::ebpf::{Callee, Insn};

use super::Finding;
use crate::reason::cause::Cause;
use crate::reason::explanation::{Chain, InsnPlace};
use crate::reason::scene::Scene;
use crate::rejection::{Flow, Rejection};

/// Lines shown of a program that is too complex.
const MOST_LINES: usize = 5;

/// Too many instructions or pending branches.
pub(super) fn complexity(scene: &Scene<'_>) -> Option<Finding> {
    let lines = costly_lines(scene);
    Some(Finding::new(match &*scene.refusal.rejection {
        Rejection::Flow(Flow::TooManyJumps { .. }) => Cause::TooManyBranches { lines },
        _ => Cause::TooComplex { lines },
    }))
}

/// The source lines, or instructions, with the most instructions processed, worst first.
fn costly_lines(scene: &Scene<'_>) -> Vec<(InsnPlace, u64)> {
    let mut lines: Vec<(InsnPlace, u64)> = Vec::new();
    let line = |place: &InsnPlace| {
        let source = place.source.as_ref()?;
        Some((source.file.clone(), source.line, place.function.clone()))
    };
    for (insn, cost) in (0..).zip(&scene.ending.cost.insns) {
        if cost.processed == 0 {
            continue;
        }
        let place = scene.place(insn);
        let processed = u64::from(cost.processed);
        let same = lines
            .iter_mut()
            .rev()
            .take(64)
            .find(|(other, _)| line(other).is_some() && line(other) == line(&place));
        match same {
            Some((_, sum)) => *sum += processed,
            None => lines.push((place, processed)),
        }
    }
    lines.sort_by_key(|(_, processed)| std::cmp::Reverse(*processed));
    lines.truncate(MOST_LINES);
    lines
}

/// More stack than a call chain may use: the deepest chain.
pub(super) fn stack_size(scene: &Scene<'_>) -> Option<Finding> {
    let cost = &scene.ending.cost;
    let chain = cost.deepest_chain().into_iter().map(|index| {
        let subprog = &cost.subprogs[index];
        Chain {
            function: scene.function_at(subprog.start),
            stack: subprog.counted_stack(),
        }
    });
    let chain: Vec<Chain> = chain.collect();
    Some(Finding {
        place: chain_place(scene),
        ..Finding::new(Cause::StackDepth { chain })
    })
}

/// More frames than a call chain may have.
pub(super) fn call_depth(scene: &Scene<'_>) -> Option<Finding> {
    let insns: Vec<u32> = match scene.last() {
        Some(last) => {
            let frames = scene.trace.known(last)?.starts();
            frames.chain(scene.refusal.insn).collect()
        }
        None => {
            let cost = &scene.ending.cost;
            let chain = cost.longest_chain();
            chain
                .into_iter()
                .map(|index| cost.subprogs[index].start)
                .collect()
        }
    };
    let function = |insn: u32| scene.analysis.subprog_containing(insn);
    let called = match (scene.refusal.insn, scene.insn()) {
        (Some(at), Some(Insn::Call(Callee::Local(off)))) => {
            Some(function(at.wrapping_add_signed(off + 1)))
        }
        _ => None,
    };
    let recurses = insns.iter().any(|insn| Some(function(*insn)) == called);
    let mut chain: Vec<String> = { insns.iter() }
        .map(|insn| scene.function_at(*insn))
        .collect();
    if recurses {
        chain.extend(scene.callee().map(|callee| callee.name));
    }
    Some(Finding::new(Cause::CallDepth { chain, recurses }))
}

/// The call that makes a chain too deep, where the check names one.
fn chain_place(scene: &Scene<'_>) -> Option<InsnPlace> {
    let insn = scene.refusal.insn.filter(|&insn| insn > 0)?;
    Some(scene.place(insn))
}
