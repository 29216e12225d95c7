//! The observer of a run: holds every instruction to the states and facts of the
//! verification.

use std::ops::ControlFlow;

use interp::checked::{Moment, Observer};
use isa::ebpf::{Callee, Insn, Reg};
use spec::calls::TAIL_CALL;
use verifier::RecordedStates;

use super::Used;
use super::contain::{Caller, Claim, View};
use super::facts::{Claims, FactWatch};
use super::setting::Places;

/// The states of a verification, with what they claim.
pub(super) struct Recording {
    pub(super) claim: Claim,
    pub(super) states: RecordedStates,
}

/// Holds a run to recordings.
pub(super) struct Watcher<'w> {
    recordings: &'w [Recording],
    facts: FactWatch<'w>,
    places: Places<'w>,
    callers: Vec<Caller>,
    /// Numbers of the frames in which the main program began.
    main_frames: Vec<usize>,
    last: Option<(usize, [u64; Reg::COUNT])>,
    /// By recording and instruction, the state that contained the run last.
    recent: Vec<Vec<u32>>,
    /// Instructions that were checked.
    pub(super) steps: u64,
    /// Helpers and maps that were used.
    pub(super) used: Used,
    /// The first instruction at which the run escaped, and how.
    pub(super) escape: Option<(usize, String)>,
}

impl<'w> Watcher<'w> {
    pub(super) fn new(
        recordings: &'w [Recording],
        claims: &'w Claims,
        places: Places<'w>,
    ) -> Watcher<'w> {
        let insns = claims.facts.insns.len();
        Watcher {
            recordings,
            facts: FactWatch::new(claims, places),
            places,
            callers: Vec::new(),
            main_frames: vec![0],
            last: None,
            recent: vec![vec![0; insns]; recordings.len()],
            steps: 0,
            used: Used::default(),
            escape: None,
        }
    }

    /// Follows calls and returns, and tail calls, which begin the program again.
    fn follow(&mut self, moment: &Moment<'_, '_>) {
        self.main_frames.retain(|&frame| frame <= moment.depth);
        let is_tail_call = |last: usize| {
            matches!(
                moment.program.insns().get(last),
                Some(Insn::Call(Callee::Helper(TAIL_CALL)))
            )
        };
        if moment.at == 0 && self.last.is_some_and(|(last, _)| is_tail_call(last)) {
            self.main_frames.retain(|&frame| frame < moment.depth);
            self.main_frames.push(moment.depth);
            self.facts.restart();
        }
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
            main_frame: self.main_frames.last().copied().unwrap_or_default(),
            places: self.places,
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
        if let Insn::Call(Callee::Helper(number)) = moment.insn() {
            let map = moment.memory.map_at(moment.registers[1]);
            let map = map.and_then(|map| moment.memory.map_kind(map));
            self.used.count(number, map);
        }
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
