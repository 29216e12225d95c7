//! The form that Linux would keep of an accepted program (`xlated`), of which nothing runs: dead code
//! elimination, rewriting (`convert_ctx_accesses`, `do_misc_fixups`) and the checks that come with
//! them. It is shown and compared. Engines run what `lower` rewrites (`lower/src/verified.rs`).

mod dead_code;
mod kernel_code;
mod lengths;

use isa::ebpf::{Callee, Imm64, Insn};
use spec::behaviour::Behaviour;
use spec::helpers::HelperId;
use spec::registry::RegBase;

use crate::analysis::Analysis;
use crate::env::{Check, MapUse, SubprogAux};
use crate::{InsnFact, ProgramFacts, Result};

pub use dead_code::LiveCode;
use dead_code::Removal;
pub use kernel_code::{FormSlot, KernelCode};
use lengths::Lengths;
pub(crate) use lengths::note_lengths;

/// Most pairs of spills and fills around a call.
const MAX_SPILLS: usize = 6;

/// Treatment of spills and fills around calls of the `bpf_fastcall` contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spills {
    /// They stay: calls may clobber registers.
    Kept,
    /// They are removed, as the kernel does, whose native code keeps the registers.
    Dropped,
}

/// Checks what is left of the program.
pub(crate) fn check_rewriting(env: &mut Check<'_>) -> Result<()> {
    check_ctx_conversions(env)?;
    check_arena_loads(env)?;
    check_tail_calls(env)?;
    check_absent_kfuncs(env)?;
    check_function_addresses(env)
}

/// True if the walk reached the instruction.
fn is_seen(env: &Check<'_>, at: u32) -> bool {
    env.aux.get(at as usize).is_some_and(|aux| aux.seen)
}

/// Refuses accesses that no rewriting has: the walk accepts half of a field of 8 bytes of
/// `struct bpf_tcp_sock`, for one (`convert_ctx_accesses`, `bpf_convert_ctx_accesses`).
#[doc(alias = "convert_ctx_accesses")]
#[doc(alias = "bpf_convert_ctx_accesses")]
fn check_ctx_conversions(env: &mut Check<'_>) -> Result<()> {
    let lengths = Lengths::of(env);
    let mut seen = (0..env.aux.len()).filter(|&at| env.aux[at].seen);
    let Some(at) = seen.find(|&at| lengths.lacks_conversion(at)) else {
        return Ok(());
    };
    Err(refuse!(env.sink.at(at as u32) => Program::ContextConversion))
}

/// Refuses loads from arenas that extend the sign, where the kernel has no instruction for them
/// (`convert_ctx_accesses`).
fn check_arena_loads(env: &mut Check<'_>) -> Result<()> {
    if env.input.rules.has(Behaviour::ArenaSignedLoads) {
        return Ok(());
    }
    let is_signed = |at: &u32| {
        let aux = &env.aux[*at as usize];
        let is_load = matches!(
            env.input.insns[*at as usize],
            Insn::Load { signed: true, .. }
        );
        let is_arena = (aux.ptr_type).is_some_and(|ty| ty.base == RegBase::PtrToArena);
        is_load && aux.seen && is_arena
    };
    let Some(at) = (0..env.aux.len() as u32).find(is_signed) else {
        return Ok(());
    };
    Err(refuse!(env.sink.at(at) => Program::ArenaSignedLoad))
}

/// Refuses tail calls into several maps: without CAP_PERFMON, the index is masked to the size of
/// one (`do_misc_fixups`, `bpf_map_ptr_unpriv`).
#[doc(alias = "do_misc_fixups")]
#[doc(alias = "bpf_map_ptr_unpriv")]
fn check_tail_calls(env: &mut Check<'_>) -> Result<()> {
    if env.input.bypass_spec_v1 {
        return Ok(());
    }
    let is_abusing = |at: &u32| {
        let aux = &env.aux[*at as usize];
        let insn = env.input.insns[*at as usize];
        let is_tail_call = matches!(insn, Insn::Call(callee) if HelperId::of_call(callee) == Some(HelperId::TailCall));
        is_tail_call && aux.seen && aux.map == MapUse::Several
    };
    let Some(at) = (0..env.aux.len() as u32).find(is_abusing) else {
        return Ok(());
    };
    Err(refuse!(env.sink.at(at) => Program::TailCallMap))
}

/// Refuses calls of the kernel function 0, which stands for one that is absent (`fixup_kfunc_call`,
/// `bpf_fixup_kfunc_call`).
#[doc(alias = "fixup_kfunc_call")]
#[doc(alias = "bpf_fixup_kfunc_call")]
fn check_absent_kfuncs(env: &mut Check<'_>) -> Result<()> {
    let is_absent = |insn: &Insn| matches!(insn, Insn::Call(Callee::Kfunc { id: 0, .. }));
    let insns = (0u32..).zip(&env.input.insns);
    let mut absent = insns.filter(|(at, insn)| is_absent(insn) && is_seen(env, *at));
    let Some((at, _)) = absent.next() else {
        return Ok(());
    };
    Err(refuse!(env.sink.at(at) => Program::KfuncLeft))
}

/// Refuses addresses of functions that are gone with the dead code: each range of dead code is
/// removed, and only addresses behind the range are moved with what follows it
/// (`bpf_jit_subprogs`). If several functions are left, each address must then be where one of them
/// starts (`bpf_adj_delta_to_imm`, `jit_subprogs`). The message has its place in the rewritten
/// program.
#[doc(alias = "bpf_adj_delta_to_imm")]
#[doc(alias = "jit_subprogs")]
#[doc(alias = "bpf_jit_subprogs")]
fn check_function_addresses(env: &mut Check<'_>) -> Result<()> {
    let starts = env.analysis.subprogs.iter().map(|info| info.start);
    let left: Vec<u32> = starts.filter(|&start| is_seen(env, start)).collect();
    let is_address = |insn: &Insn| function_address(insn).is_some();
    if left.len() < 2 || !env.input.insns.iter().any(is_address) {
        return Ok(());
    }
    let lengths = Lengths::of(env);
    let removal = Removal::of(
        &env.input.insns,
        |slot| is_seen(env, slot as u32),
        |slot| is_dropped(env.analysis, &env.subprogs, slot),
        |slot| lengths.before_removal(slot),
    );
    let left: Vec<u32> = left.iter().map(|&start| removal.place_of(start)).collect();
    for (at, insn) in (0u32..).zip(&env.input.insns) {
        let Some(off) = function_address(insn) else {
            continue;
        };
        let place = removal.place_of((at + 1).wrapping_add_signed(off));
        if is_seen(env, at) && !left.contains(&place) {
            let place = rewritten_place(&lengths, &removal, place);
            return Err(refuse!(env.sink.at(at) => Program::NothingToJit { place }));
        }
    }
    Ok(())
}

/// Place in the rewritten program of one in the program without dead code: of an instruction, of one
/// of an inlined loop, or behind the end, where an address inside the range of dead code that ended the
/// program leads. An instruction whose number of instructions is not known counts as one.
fn rewritten_place(lengths: &Lengths<'_, '_>, removal: &Removal, place: u32) -> u32 {
    let mut rewritten = if place == 0 { 0 } else { lengths.prologue() };
    let mut before = place;
    for slot in removal.left() {
        if before < removal.length(slot) {
            rewritten += if before == 0 { 0 } else { lengths.entry(slot) };
            break;
        }
        before -= removal.length(slot);
        rewritten += lengths.entry(slot) + lengths.at(slot).unwrap_or(1);
    }
    rewritten + before
}

/// Distance of the function whose address the instruction loads.
fn function_address(insn: &Insn) -> Option<i32> {
    match insn {
        Insn::LoadImm64 {
            imm: Imm64::Func { off, .. },
            ..
        } => Some(*off),
        _ => None,
    }
}

/// True for spills and fills around calls of the `bpf_fastcall` contract that the kernel drops
/// (`remove_fastcall_spills_fills`, `bpf_remove_fastcall_spills_fills`).
#[doc(alias = "remove_fastcall_spills_fills")]
#[doc(alias = "bpf_remove_fastcall_spills_fills")]
pub(crate) fn is_dropped(analysis: &Analysis, subprogs: &[SubprogAux], slot: usize) -> bool {
    let pairs_around = |call: usize| usize::from(analysis.insns[call].fastcall_spills);
    let calls = slot.saturating_sub(MAX_SPILLS)..analysis.insns.len().min(slot + MAX_SPILLS + 1);
    let is_around = |call: usize| call != slot && call.abs_diff(slot) <= pairs_around(call);
    let mut calls = calls.filter(|&call| is_around(call));
    let is_pattern = analysis.insns[slot].fastcall_pattern;
    is_pattern
        && calls.any(|call| {
            let subprog = analysis.subprog_containing(call as u32);
            subprogs[subprog].fastcall_stack_off != i32::from(i16::MIN)
        })
}

/// The program without dead code.
pub(crate) fn live_code(insns: &[Insn], facts: &ProgramFacts, spills: Spills) -> LiveCode {
    let has = |slot: usize, holds: fn(&InsnFact) -> bool| facts.insns.get(slot).is_some_and(holds);
    let is_reached = |slot| has(slot, |fact| fact.is_reached);
    let is_dropped = |slot| spills == Spills::Dropped && has(slot, |fact| fact.is_fastcall_spill);
    Removal::of(insns, is_reached, is_dropped, |_| 1).finish()
}

/// The program as the kernel compiles it.
pub(crate) fn kernel_code(insns: &[Insn], facts: &ProgramFacts) -> KernelCode {
    kernel_code::kernel_code(&live_code(insns, facts, Spills::Dropped), facts)
}
