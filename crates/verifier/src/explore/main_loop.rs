//! The main loop: explores a function instruction by instruction (`do_check`).

use super::dispatch::check_insn;
use super::{scc, visited};
use crate::env::{Check, Env, Outcome, assert_invariants};
use crate::state::{Frame, HistoryFlags, LinkedRegs, MAIN_CALLSITE, State};
use crate::walk::{self, StepEnd};
use crate::{Result, Stop, insn_facts, precise, recorded, refuse, refuse_if, speculation, verbose};
use spec::limits;

/// Verifies the main program or a global function on its own (`do_check_common`).
#[doc(alias = "do_check_common")]
pub(crate) fn check_function(env: &mut Env<'_>, subprog: u32) -> Result<()> {
    let start = env.analysis.subprogs[subprog as usize].start;
    env.state = State::new(
        Frame::new(MAIN_CALLSITE, 0, subprog),
        start,
        env.input.context.sleepable,
    );
    env.sink.insn_idx = start;
    env.sink.reset_line_info();
    env.sink.mark_all_scratched();
    crate::call::set_up_entry_args(env, subprog)?;
    env.sink.rewind_trace(0);
    begin_walked_path(env, walk::NONE);
    explore(env)?;
    env.sink.rewind_trace(0);
    if !env.sink.is_full() {
        env.sink.reset(0);
    }
    env.explorer.clear(&mut env.observers);
    Ok(())
}

/// Explores every path from the current state (`do_check`).
#[doc(alias = "do_check")]
fn explore(env: &mut Env<'_>) -> Result<()> {
    let mut prev_insn_idx = -1;
    let mut prints_state = false;
    loop {
        env.has_history = false;
        env.prev_insn_idx = prev_insn_idx;
        let insn_idx = env.sink.insn_idx;
        let count = env.input.insns.len();
        refuse_if!(insn_idx as usize >= count, env => Flow::InvalidInsnIdx { insn_idx, count });
        if let Some(cost) = &mut env.observers.cost {
            cost.count_insn(&env.check.state, env.check.analysis, insn_idx);
        }
        let statistics = &mut env.explorer.statistics;
        statistics.insns_processed += 1;
        if statistics.insns_processed > env.check.input.options.most_insns {
            let processed = statistics.insns_processed;
            return Err(match processed > limits::INSNS_PROCESSED {
                true => refuse!(env => Flow::TooLarge { processed }),
                false => Stop::unsupported(format!("verified for {} instructions", processed - 1)),
            });
        }
        if env.sink.counts_functions() {
            count_by_function(env);
        }
        env.state.last_insn_idx = prev_insn_idx;
        env.state.insn_idx = insn_idx;

        let info = env.analysis.insns[insn_idx as usize];
        if (info.prune_point || env.input.options.stress.checkpoint_everywhere)
            && visited::is_visited(env)?
        {
            if env.sink.walks() {
                if prints_state {
                    let how = speculative(&env.state);
                    verbose!(
                        env.sink,
                        "\nfrom {prev_insn_idx} to {insn_idx}{how}: safe\n"
                    );
                } else {
                    verbose!(env.sink, "{insn_idx}: safe\n");
                }
            }
            match next_path(env)? {
                Some(prev) => (prev_insn_idx, prints_state) = (prev, true),
                None => return Ok(()),
            }
            continue;
        }
        if info.jmp_point {
            env.push_history(HistoryFlags::NONE, LinkedRegs::default())?;
        }
        if env.sink.observes() {
            observe(env, &mut prints_state);
        }
        let is_speculative = env.state.speculative;
        if !is_speculative {
            enter(env);
        }
        prev_insn_idx = insn_idx as i32;
        if is_speculative && env.aux[insn_idx as usize].barriers.before {
            end_walked_path(env, StepEnd::Barrier);
            match next_path(env)? {
                Some(prev) => (prev_insn_idx, prints_state) = (prev, true),
                None => return Ok(()),
            }
            continue;
        }

        env.live
            .reset_write_marks(env.check.analysis, &env.check.state, insn_idx);
        precise::carry_stack_zeros(env, insn_idx);
        let outcome = match check_insn(env) {
            Err(stop) if is_speculative && speculation::is_recoverable(&stop) => {
                let barriers = &mut env.aux[insn_idx as usize].barriers;
                barriers.before = true;
                barriers.mask = None;
                Outcome::Exit
            }
            outcome => outcome?,
        };
        if env.observers.collector.is_some() && !is_speculative {
            insn_facts::leave(env, insn_idx, outcome);
        }
        for fork in env.forked.drain(..) {
            env.explorer.push(fork);
        }
        precise::carry_propagated(env, insn_idx);
        env.live.commit_write_marks();
        if env.input.options.stress.assert_invariants {
            assert_invariants(env)?;
        }
        let ends = is_speculative && env.aux[insn_idx as usize].barriers.behind;
        env.sink.insn_idx = match if ends { Outcome::Exit } else { outcome } {
            Outcome::Next => insn_idx + 1,
            Outcome::NextWide => insn_idx + 2,
            Outcome::Jump(target) | Outcome::Call(target) => target,
            Outcome::Return(target) => {
                prints_state = true;
                target
            }
            Outcome::Exit => {
                match next_path(env)? {
                    Some(prev) => (prev_insn_idx, prints_state) = (prev, true),
                    None => return Ok(()),
                }
                continue;
            }
        };
    }
}

/// Notes that a run may reach the instruction, and with which state (`sanitize_mark_insn_seen`).
#[doc(alias = "sanitize_mark_insn_seen")]
fn enter(env: &mut Env<'_>) {
    env.insn_aux().seen = true;
    if env.observers.recorder.is_some() {
        recorded::record(env);
    }
    if env.observers.collector.is_some() {
        insn_facts::enter(env);
    }
}

/// Has the next step of a recorded walk follow another one than the last.
fn begin_walked_path(env: &mut Check<'_>, before: u32) {
    if let Some(walk) = &mut env.sink.walk {
        walk.begin_path(before);
    }
}

/// Says how the path of a recorded walk ended.
fn end_walked_path(env: &mut Check<'_>, end: StepEnd) {
    if let Some(walk) = &mut env.sink.walk {
        walk.end_path(end);
    }
}

/// Counts an instruction for the functions on the chain of calls (`account_processed_insn`,
/// `account_processed_insns`).
#[doc(alias = "account_processed_insn")]
#[doc(alias = "account_processed_insns")]
#[cold]
fn count_by_function(env: &mut Env<'_>) {
    for number in 0..=env.state.curframe {
        let subprog = env.state.frame_rc(number).subprogno as usize;
        let [own, all] = &mut env.check.subprogs[subprog].insns;
        *own += u32::from(number == env.check.state.curframe);
        *all += 1;
    }
}

/// Records the instruction and its state, or logs them.
#[cold]
fn observe(env: &mut Env<'_>, prints_state: &mut bool) {
    env.check.sink.record(&env.check.state);
    if let Some(walk) = &mut env.check.sink.walk {
        walk.step(env.check.input, &env.check.state, env.check.sink.insn_idx);
    }
    if env.sink.walks() {
        log_insn(env, prints_state);
    }
}

/// Writes the state and the instruction to the log.
fn log_insn(env: &mut Env<'_>, prints_state: &mut bool) {
    let insn_idx = env.sink.insn_idx;
    let frame = env.state.curframe;
    if env.sink.is_full() && *prints_state {
        let prev = env.prev_insn_idx;
        let how = speculative(&env.state);
        verbose!(env.sink, "\nfrom {prev} to {insn_idx}{how}:");
        env.print_state(frame);
        *prints_state = false;
    }
    if env.sink.is_scratched() {
        env.print_insn_state(frame);
    }
    env.check.sink.print_insn(env.check.input, insn_idx);
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
fn next_path(env: &mut Env<'_>) -> Result<Option<i32>> {
    env.sink.mark_all_scratched();
    scc::finish_path(env)?;
    env.update_live()?;
    let Some(pending) = env.explorer.pending.pop() else {
        end_walked_path(env, StepEnd::Exits);
        return Ok(None);
    };
    begin_walked_path(env, pending.step);
    let insn_idx = env.state.insn_idx;
    env.state = pending.state;
    env.state.insn_idx = insn_idx;
    if !env.sink.is_full() {
        env.sink.reset(pending.log_position);
    }
    env.sink.rewind_trace(pending.trace_position);
    env.sink.insn_idx = pending.insn_idx;
    Ok(Some(pending.prev_insn_idx))
}
