//! The verification as a whole: the kernel's `bpf_check` in its order.

use program::Program;
use spec::registry::Registry;

use crate::env::Env;
use crate::facts::{self, LiveStack};
use crate::log::Sink;
use crate::options::Options;
use crate::state::{Frame, MAIN_CALLSITE, State};
use crate::verdict::{Stop, Verdict, Verification};
use crate::walk::Walk;

/// Verifies a program.
pub fn verify(program: &Program, registry: &Registry, options: &Options) -> Verification {
    let env = Env {
        program,
        registry,
        options,
        insns: Vec::new(),
        allow_ptr_leaks: true,
        allow_uninit_stack: true,
        bpf_capable: true,
        strict_alignment: false,
        test_state_freq: false,
        test_reg_invariants: false,
    };
    let mut sink = Sink::new(options.log_level);
    let verdict = match facts::compute(&env, &mut sink) {
        Ok(facts) => {
            let mut walk = Walk {
                env: &env,
                facts: &facts,
                state: State::new(Frame::new(MAIN_CALLSITE, 0, 0), 0, false),
                sink,
                explorer: Default::default(),
                live: LiveStack::default(),
                aux: vec![Default::default(); env.insns.len()],
                subprogs: vec![Default::default(); facts.subprogs.len()],
                insn_idx: 0,
                prev_insn_idx: -1,
                id_gen: 0,
                cur_history: None,
                seen_direct_write: false,
            };
            let verdict = match crate::explore::check_insn(&mut walk) {
                Ok(_) => Verdict::Accepted,
                Err(stop) => Verdict::from(stop),
            };
            sink = walk.sink;
            verdict
        }
        Err(stop) => Verdict::from(stop),
    };
    Verification {
        verdict,
        statistics: Default::default(),
        stack_depth: Vec::new(),
        log: sink.into_text(),
    }
}

impl From<Stop> for Verdict {
    fn from(stop: Stop) -> Verdict {
        match stop {
            Stop::Refused(refusal) => Verdict::Refused(*refusal),
            Stop::Unsupported(what) => Verdict::Unsupported(what),
            Stop::Bug(what) => Verdict::Bug(what),
        }
    }
}
