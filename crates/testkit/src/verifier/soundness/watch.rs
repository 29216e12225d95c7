//! The observer of a run: holds every instruction to the states and facts of the
//! verification.

use std::ops::ControlFlow;

use interp::checked::{Moment, Observer};
use isa::ebpf::Reg;
use verifier::RecordedStates;

use super::contain::{Caller, Claim, View};
use super::facts::{Claims, FactWatch};

/// The states of a verification, with what they claim.
pub(super) struct Recording {
    pub(super) claim: Claim,
    pub(super) states: RecordedStates,
}

/// Holds a run to recordings.
pub(super) struct Watcher<'w> {
    recordings: &'w [Recording],
    facts: FactWatch<'w>,
    context: u64,
    callers: Vec<Caller>,
    last: Option<(usize, [u64; Reg::COUNT])>,
    /// By recording and instruction, the state that contained the run last.
    recent: Vec<Vec<u32>>,
    /// Instructions that were checked.
    pub(super) steps: u64,
    /// The first instruction at which the run escaped, and how.
    pub(super) escape: Option<(usize, String)>,
}

impl<'w> Watcher<'w> {
    pub(super) fn new(
        recordings: &'w [Recording],
        claims: &'w Claims,
        context: u64,
    ) -> Watcher<'w> {
        let insns = claims.facts.insns.len();
        Watcher {
            recordings,
            facts: FactWatch::new(claims, context),
            context,
            callers: Vec::new(),
            last: None,
            recent: vec![vec![0; insns]; recordings.len()],
            steps: 0,
            escape: None,
        }
    }

    /// Follows calls and returns.
    fn follow(&mut self, moment: &Moment<'_, '_>) {
        if let Some((callsite, registers)) = self.last
            && moment.depth > self.callers.len()
        {
            self.callers.push(Caller {
                callsite,
                registers,
            });
        }
        self.callers.truncate(moment.depth);
        self.last = Some((moment.at, *moment.registers));
    }

    /// Checks that a state of each recording contains the run.
    fn check_states(&mut self, moment: &Moment<'_, '_>) -> Result<(), String> {
        let view = View {
            moment,
            callers: &self.callers,
            context: self.context,
        };
        for (recording, recent) in self.recordings.iter().zip(&mut self.recent) {
            let (claim, states) = (recording.claim, recording.states.at(moment.at));
            let count = states.len() as u32;
            let recent = &mut recent[moment.at];
            let mut first = None;
            let is_in = |index: &u32| {
                let Some(state) = recording.states.at(moment.at).nth(*index as usize) else {
                    return false;
                };
                let checked = view.check(state, claim);
                let is_in = checked.is_ok();
                if let Err(outside) = checked
                    && first.is_none()
                {
                    first = Some(outside);
                }
                is_in
            };
            match (*recent..count).chain(0..*recent).find(is_in) {
                Some(index) => *recent = index,
                None => {
                    return Err(match first {
                        None => format!("{claim:?}: the walk never came there"),
                        Some(outside) => {
                            format!("{claim:?}: in none of {count} states: {}", outside.0)
                        }
                    });
                }
            }
        }
        Ok(())
    }
}

impl Observer for Watcher<'_> {
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        self.follow(moment);
        self.steps += 1;
        let checked = self.check_states(moment);
        match checked.and_then(|()| self.facts.check(moment)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(how) => {
                self.escape = Some((moment.at, how));
                ControlFlow::Break(())
            }
        }
    }
}
