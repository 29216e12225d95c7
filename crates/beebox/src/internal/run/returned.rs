//! The line that returned a verdict: that of the last instruction of a run in the checked engine.

use vm::Redirect;

use super::{RunnableProgram, redirect_text};

/// Number of a program, and a slot of it.
pub(super) type Place = (u32, usize);

impl RunnableProgram<'_> {
    /// Has the next runs in the checked engine, so that it is known where they return.
    pub(super) fn note_returns(&mut self, on: bool) {
        self.attached.watchers.notes_return = on;
    }

    /// The verdict of the last run, where it redirected the packet, and the line that returned it.
    pub(super) fn comment(&self, verdict: &str, redirect: Option<Redirect>) -> String {
        let mut comment = verdict.to_owned();
        if let Some(redirect) = redirect {
            comment.push_str(" to ");
            comment.push_str(&redirect_text(redirect));
        }
        let place = self.attached.watchers.returned.and_then(|(program, slot)| {
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
