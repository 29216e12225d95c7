//! What the kernel finds after the walk, when it removes dead code, rewrites calls and
//! compiles several functions.

use std::ops::Range;

use isa::ebpf::{Callee, Imm64, Insn};

use crate::Result;
use crate::walk::Walk;

/// Checks what is left of the program.
pub(crate) fn check(walk: &mut Walk<'_>) -> Result<()> {
    check_absent_kfuncs(walk)?;
    check_function_addresses(walk)
}

/// True if the walk reached the instruction.
fn is_seen(walk: &Walk<'_>, at: u32) -> bool {
    walk.aux.get(at as usize).is_some_and(|aux| aux.seen)
}

/// Refuses calls of the kernel function 0, which stands for one that is absent
/// (`fixup_kfunc_call`).
fn check_absent_kfuncs(walk: &mut Walk<'_>) -> Result<()> {
    let is_absent = |insn: &Insn| matches!(insn, Insn::Call(Callee::Kfunc { id: 0, .. }));
    let insns = (0u32..).zip(&walk.env.insns);
    let mut absent = insns.filter(|(at, insn)| is_absent(insn) && is_seen(walk, *at));
    let Some((at, _)) = absent.next() else {
        return Ok(());
    };
    walk.insn_idx = at;
    Err(refuse!(
        walk,
        EINVAL,
        Unavailable,
        "invalid kernel function call not eliminated in verifier pass"
    ))
}

/// Refuses addresses of functions that are gone with the dead code: each range of dead
/// code is removed, and only addresses behind the range are moved with what follows it.
/// If several functions are left, each address must then be where one of them starts
/// (`bpf_adj_delta_to_imm`, `jit_subprogs`). The number in the message does not count
/// that jumps to the next instruction are removed, too.
fn check_function_addresses(walk: &mut Walk<'_>) -> Result<()> {
    let starts = walk.facts.subprogs.iter().map(|facts| facts.start);
    let left: Vec<u32> = starts.filter(|&start| is_seen(walk, start)).collect();
    if left.len() < 2 {
        return Ok(());
    }
    let dead = dead_ranges(walk);
    let left: Vec<u32> = left
        .iter()
        .map(|&start| after_removal(&dead, start))
        .collect();
    for (at, insn) in (0u32..).zip(&walk.env.insns) {
        let Insn::LoadImm64 {
            imm: Imm64::Func { off, .. },
            ..
        } = insn
        else {
            continue;
        };
        let place = after_removal(&dead, (at + 1).wrapping_add_signed(*off));
        if is_seen(walk, at) && !left.contains(&place) {
            walk.insn_idx = at;
            return Err(refuse!(
                walk,
                EFAULT,
                KernelBug,
                "verifier bug: No program to jit at insn {place} (subprog < 0)"
            ));
        }
    }
    Ok(())
}

/// Ranges of instructions that the walk never reached, in order.
fn dead_ranges(walk: &Walk<'_>) -> Vec<Range<u32>> {
    let mut ranges: Vec<Range<u32>> = Vec::new();
    let mut is_wide = false;
    for (at, insn) in (0u32..).zip(&walk.env.insns) {
        // The second slot of a load is reached with the first.
        let is_dead = !is_seen(walk, at) && !is_wide;
        is_wide = matches!(insn, Insn::LoadImm64 { .. }) && !is_dead;
        match ranges.last_mut() {
            Some(last) if is_dead && last.end == at => last.end += 1,
            _ if is_dead => ranges.push(at..at + 1),
            _ => {}
        }
    }
    ranges
}

/// Where an instruction is when the ranges have been removed, one after the other. One
/// inside a range stays where it was.
fn after_removal(dead: &[Range<u32>], at: u32) -> u32 {
    let (mut place, mut removed) = (at, 0);
    for range in dead {
        let len = range.end - range.start;
        if place >= range.end - removed {
            place -= len;
        }
        removed += len;
    }
    place
}
