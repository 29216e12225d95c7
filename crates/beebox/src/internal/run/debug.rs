//! Debugging: a program's runs on packets, stopped at instructions, forward and back.
//!
//! The runs are those of the checked engine, whose observer asks a [`FrontEnd`] what to do where they
//! stop. Runs are deterministic, so that going back is a run anew: the object is loaded again, the
//! packets in front are run again, and the run stops at an instruction by its number. What happened
//! last before an instruction (a breakpoint, a write, the begin of a line) is found by one run up to
//! it, which notes the number of the last match, and a second one to that number. Both cost as much
//! as the instructions in front, O(n).
//!
//! # Modules
//!
//! `session.rs` runs and runs anew, `state.rs` is what lasts, `plan.rs` says what a run is up to, `observer.rs` stops it,
//! `resume.rs` has it go on, `search.rs` finds what is past,
//! `breakpoint.rs` says where, `resolve.rs` finds these places, `watch.rs` finds writes. `scene.rs` is what
//! a run is on, and `view.rs` shows what is there: `value.rs` values by type and `places.rs` where they
//! are, `expression.rs` reads expressions of C and `evaluate.rs` has their values, `map_view.rs` maps,
//! `listing.rs` instructions and registers, `known.rs` what the verifier knew, `source.rs` lines. `dap/` and `terminal.rs` are front ends.

mod breakpoint;
mod dap;
mod evaluate;
mod expression;
mod int_type;
mod known;
mod listing;
mod map_view;
mod observer;
mod places;
mod plan;
mod resolve;
mod resume;
mod scene;
mod search;
mod session;
mod source;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
mod value;
mod view;
mod watch;

pub use breakpoint::{BadBreakpoint, BreakKind, Breakpoint, Breakpoints, HitChoice};
pub use dap::{refuse_launch, serve};
pub use int_type::IntType;
pub use listing::RegisterRow;
pub use places::ValuePlace;
pub use plan::{DebugStep, Position, Resume, StepKind, StopReason};
pub use session::{DebugError, DebugInput, DebugSetup, debug};
pub use source::SourcePlace;
pub use terminal::{Terminal, interact};
pub use value::{DebugValue, TreeNode, TreeRow};
pub use view::{FrameRow, Pause, View};
pub use watch::Watch;

pub(super) use observer::DebugObserver;
pub(super) use scene::Scene;
pub(super) use state::Debugging;

/// What controls a session: an editor, or a person at a terminal.
pub trait FrontEnd: Send {
    /// The run is stopped; what it goes on with.
    fn stopped(&mut self, pause: &mut Pause<'_, '_, '_>) -> Resume;

    /// Asked while a program runs: what is to happen at this instruction.
    fn poll(&mut self, breakpoints: &mut Breakpoints, view: &View<'_, '_, '_>) -> Poll;

    /// Shows a line of what runs gave: verdicts, printed texts, messages of breakpoints.
    fn show(&mut self, line: &str);

    /// What keeps the session from going on, if it ends for that.
    fn failure(&mut self) -> Option<String> {
        None
    }
}

/// What is to happen while a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// The run goes on.
    GoOn,
    /// The run stops here.
    Stop,
    /// The session ends.
    Quit,
}
