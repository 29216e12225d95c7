//! The main loop: explores a function instruction by instruction (`do_check`).

use super::dispatch::check_insn;
use super::{scc, visited};
use crate::state::{Frame, HistoryFlags, LinkedRegs, MAIN_CALLSITE, State};
use crate::walk::{Outcome, Walk, assert_invariants};
use crate::{LIMITS, Result, insn_facts, log, precise, recorded, refuse, speculation, verbose};

/// Verifies the main program or a global function on its own (`do_check_common`).
#[doc(alias = "do_check_common")]
pub fn check_function(walk: &mut Walk<'_>, subprog: u32) -> Result<()> {
    let start = walk.facts.subprogs[subprog as usize].start;
    walk.state = State::new(
        Frame::new(MAIN_CALLSITE, 0, subprog),
        start,
        walk.env.context.sleepable,
    );
    walk.insn_idx = start;
    walk.sink.reset_line_info();
    walk.sink.mark_all_scratched();
    crate::call::set_up_entry_args(walk, subprog)?;
    walk.sink.rewind_trace(0);
    explore(walk)?;
    walk.sink.rewind_trace(0);
    if !walk.sink.is_full() {
        walk.sink.reset(0);
    }
    walk.explorer.clear();
    Ok(())
}

/// Explores every path from the current state (`do_check`).
#[doc(alias = "do_check")]
fn explore(walk: &mut Walk<'_>) -> Result<()> {
    let mut prev_insn_idx = -1;
    let mut prints_state = false;
    loop {
        walk.cur_history = None;
        walk.prev_insn_idx = prev_insn_idx;
        let insn_idx = walk.insn_idx;
        let count = walk.env.insns.len();
        if insn_idx as usize >= count {
            return Err(refuse!(walk => Flow::InvalidInsnIdx { insn_idx, count }));
        }
        if let Some(cost) = &mut walk.explorer.cost {
            cost.count_insn(&walk.state, walk.facts, insn_idx);
        }
        let statistics = &mut walk.explorer.statistics;
        statistics.insns_processed += 1;
        if statistics.insns_processed > LIMITS.insns_processed {
            let processed = statistics.insns_processed;
            return Err(refuse!(walk => Flow::TooLarge { processed }));
        }
        walk.state.last_insn_idx = prev_insn_idx;
        walk.state.insn_idx = insn_idx;

        let facts = walk.facts.insns[insn_idx as usize];
        if (facts.prune_point || walk.env.options.stress.checkpoint_everywhere)
            && visited::is_visited(walk)?
        {
            if walk.sink.walks() {
                if prints_state {
                    let how = speculative(&walk.state);
                    verbose!(walk, "\nfrom {prev_insn_idx} to {insn_idx}{how}: safe\n");
                } else {
                    verbose!(walk, "{insn_idx}: safe\n");
                }
            }
            match next_path(walk)? {
                Some(prev) => (prev_insn_idx, prints_state) = (prev, true),
                None => return Ok(()),
            }
            continue;
        }
        if facts.jmp_point {
            walk.push_history(HistoryFlags::NONE, LinkedRegs::default())?;
        }
        if walk.sink.observes() {
            observe(walk, &mut prints_state);
        }
        let is_speculative = walk.state.speculative;
        if !is_speculative {
            enter(walk);
        }
        prev_insn_idx = insn_idx as i32;
        if is_speculative && walk.aux[insn_idx as usize].barriers.before {
            match next_path(walk)? {
                Some(prev) => (prev_insn_idx, prints_state) = (prev, true),
                None => return Ok(()),
            }
            continue;
        }

        walk.live
            .reset_write_marks(walk.facts, &walk.state, insn_idx);
        let outcome = match check_insn(walk) {
            Err(stop) if is_speculative && speculation::is_recoverable(&stop) => {
                let barriers = &mut walk.aux[insn_idx as usize].barriers;
                barriers.before = true;
                barriers.mask = None;
                Outcome::Exit
            }
            outcome => outcome?,
        };
        if walk.explorer.collector.is_some() && !is_speculative {
            insn_facts::leave(walk, insn_idx, outcome);
        }
        precise::carry_propagated(walk, insn_idx);
        walk.live.commit_write_marks();
        if walk.env.options.stress.assert_invariants {
            assert_invariants(walk)?;
        }
        let ends = is_speculative && walk.aux[insn_idx as usize].barriers.behind;
        walk.insn_idx = match if ends { Outcome::Exit } else { outcome } {
            Outcome::Next => insn_idx + 1,
            Outcome::NextWide => insn_idx + 2,
            Outcome::Jump(target) => target,
            Outcome::Return(target) => {
                prints_state = true;
                target
            }
            Outcome::Exit => {
                match next_path(walk)? {
                    Some(prev) => (prev_insn_idx, prints_state) = (prev, true),
                    None => return Ok(()),
                }
                continue;
            }
        };
    }
}

/// Notes that a run may reach the instruction, and with which state.
fn enter(walk: &mut Walk<'_>) {
    walk.aux[walk.insn_idx as usize].seen = true;
    if walk.explorer.recorder.is_some() {
        recorded::record(walk);
    }
    if walk.explorer.collector.is_some() {
        insn_facts::enter(walk);
    }
}

/// Records the instruction and its state, or logs them.
#[cold]
fn observe(walk: &mut Walk<'_>, prints_state: &mut bool) {
    walk.sink.record(&walk.state);
    if walk.sink.walks() {
        log_insn(walk, prints_state);
    }
}

/// Writes the state and the instruction to the log.
fn log_insn(walk: &mut Walk<'_>, prints_state: &mut bool) {
    let insn_idx = walk.insn_idx;
    let frame = walk.state.curframe;
    if walk.sink.is_full() && *prints_state {
        let prev = walk.prev_insn_idx;
        let how = speculative(&walk.state);
        verbose!(walk, "\nfrom {prev} to {insn_idx}{how}:");
        log::print_verifier_state(walk.env, &mut walk.sink, &walk.state, frame, true);
        *prints_state = false;
    }
    if walk.sink.is_scratched() {
        log::print_insn_state(walk.env, &mut walk.sink, &walk.state, frame);
    }
    walk.sink.print_insn(walk.env, insn_idx);
}

/// Suffix in the log of a path that only speculative execution takes.
fn speculative(state: &State) -> &'static str {
    match state.speculative {
        true => " (speculative execution)",
        false => "",
    }
}

/// Ends the current path and goes on with a pending one; its previous instruction, or
/// `None` if there is no path left (`process_bpf_exit`) (`pop_stack`).
#[doc(alias = "pop_stack")]
#[doc(alias = "process_bpf_exit")]
fn next_path(walk: &mut Walk<'_>) -> Result<Option<i32>> {
    walk.sink.mark_all_scratched();
    scc::finish_path(walk)?;
    walk.live.update(walk.facts, &mut walk.sink, &walk.state)?;
    let Some(pending) = walk.explorer.pending.pop() else {
        return Ok(None);
    };
    let insn_idx = walk.state.insn_idx;
    walk.state = pending.state;
    walk.state.insn_idx = insn_idx;
    if !walk.sink.is_full() {
        walk.sink.reset(pending.log_position);
    }
    walk.sink.rewind_trace(pending.trace_position);
    walk.insn_idx = pending.insn_idx;
    Ok(Some(pending.prev_insn_idx))
}
