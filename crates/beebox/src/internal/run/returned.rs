//! The line that returned a verdict: that of the last instruction of a run in the checked engine.

use std::ops::ControlFlow;

use interp::checked::{Moment, Observer};
use vm::Redirect;

#[cfg(feature = "coverage")]
use super::counts::CountObserver;
use super::prepared::Prepared;
use super::{RunnableProgram, redirect_text};

/// Number of a program, and a slot of it.
pub(super) type Place = (u32, usize);

/// Notes the last instruction of a run.
pub(super) struct ReturnObserver<'p> {
    /// What counts beside it, if the programs count.
    #[cfg(feature = "coverage")]
    counts: Option<CountObserver<'p>>,
    #[cfg(not(feature = "coverage"))]
    programs: std::marker::PhantomData<&'p Prepared>,
    /// The last instruction.
    pub(super) last: Option<Place>,
}

impl<'p> ReturnObserver<'p> {
    #[cfg_attr(
        not(feature = "coverage"),
        allow(unused_variables, reason = "only counts need the programs")
    )]
    pub(super) fn new(programs: &'p [Prepared]) -> ReturnObserver<'p> {
        ReturnObserver {
            #[cfg(feature = "coverage")]
            counts: CountObserver::new(programs),
            #[cfg(not(feature = "coverage"))]
            programs: std::marker::PhantomData,
            last: None,
        }
    }
}

impl Observer for ReturnObserver<'_> {
    #[inline]
    fn before(&mut self, moment: &Moment<'_, '_>) -> ControlFlow<()> {
        self.last = Some((moment.program.number(), moment.at));
        #[cfg(feature = "coverage")]
        if let Some(counts) = &mut self.counts {
            return counts.before(moment);
        }
        ControlFlow::Continue(())
    }
}

impl RunnableProgram<'_> {
    /// Has the next runs in the checked engine, so that it is known where they return.
    pub(super) fn note_returns(&mut self, on: bool) {
        self.notes_return = on;
    }

    /// The verdict of the last run, where it redirected the packet, and the line that returned it.
    pub(super) fn comment(&self, verdict: &str, redirect: Option<Redirect>) -> String {
        let mut comment = verdict.to_owned();
        if let Some(redirect) = redirect {
            comment.push_str(" to ");
            comment.push_str(&redirect_text(redirect));
        }
        let place = self.returned.and_then(|(program, slot)| {
            let prepared = self.shared.programs.get(program as usize)?;
            prepared.line_at(slot)
        });
        if let Some((file, line, _)) = place {
            let file = file.rsplit('/').next().unwrap_or_default();
            comment.push_str(&format!(" at {file}:{line}"));
        }
        comment
    }
}
