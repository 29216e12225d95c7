//! The answer of a kernel beside ours.

use report::veristat::ResultVerdict;

use super::{GuestAnswer, NotAsked};
use crate::internal::verify::results::Row;

/// A program with both answers.
pub struct Asked<'a> {
    /// Ours.
    pub row: &'a Row,
    /// The kernel's; none if the program cannot be linked for it.
    pub theirs: Option<Result<GuestAnswer, NotAsked>>,
}

impl Asked<'_> {
    /// The kernel's answer.
    pub fn answer(&self) -> Option<&GuestAnswer> {
        self.theirs.as_ref()?.as_ref().ok()
    }

    /// True if the machine ended before.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.theirs, Some(Err(NotAsked::NoAnswer)))
    }

    /// The kernel's verdict in a word.
    pub fn verdict_word(&self) -> &'static str {
        match &self.theirs {
            Some(Ok(answer)) if answer.is_accepted() => "accepted",
            Some(Ok(_)) => "refused",
            Some(Err(NotAsked::NoAnswer)) => "no answer",
            Some(Err(_)) | None => "not asked",
        }
    }

    /// The kernel's verdict as the key `verifier_verdict` has it, success or failure; none if there is no
    /// answer.
    pub fn verdict_name(&self) -> Option<&'static str> {
        let verdict = match self.answer()?.is_accepted() {
            true => ResultVerdict::Success,
            false => ResultVerdict::Failure,
        };
        Some(verdict.name())
    }

    /// Our verdict in a word.
    pub fn our_verdict_word(&self) -> &'static str {
        match self.row.verdict {
            ResultVerdict::Success => "accepted",
            ResultVerdict::Failure => "refused",
            ResultVerdict::Unsupported => "unsupported",
        }
    }

    /// What differs between both answers, where there are both: `verdict`, `instructions`, `states`,
    /// `reason`.
    pub fn differences(&self) -> Vec<&'static str> {
        let Some(theirs) = self.answer() else {
            return Vec::new();
        };
        let is_accepted = match self.row.verdict {
            ResultVerdict::Success => true,
            ResultVerdict::Failure => false,
            ResultVerdict::Unsupported => return Vec::new(),
        };
        if is_accepted != theirs.is_accepted() {
            return vec!["verdict"];
        }
        let mut differ = Vec::new();
        if let Some((insns, states)) = theirs.counts() {
            // What is refused before the walk has no counts in the kernel, and 0 here.
            differ.extend((insns != self.row.total_insns).then_some("instructions"));
            differ.extend((states != self.row.total_states).then_some("states"));
        }
        let reason = theirs.reason();
        let is_told = theirs.refused_map.is_none() && !theirs.log.is_empty();
        if !is_accepted && is_told && reason != last_line(self.row) {
            differ.push("reason");
        }
        differ
    }
}

/// The last line of our reason.
fn last_line(row: &Row) -> &str {
    let mut lines = row.reason.lines().rev().map(str::trim);
    lines.find(|line| !line.is_empty()).unwrap_or_default()
}

/// The first line by which two logs differ: its number, theirs and ours.
pub(super) fn first_difference<'a>(
    theirs: &'a str,
    ours: &'a str,
) -> Option<(usize, &'a str, &'a str)> {
    let is_compared = |line: &&str| !line.starts_with("verification time ");
    let mut ours = ours.lines().filter(is_compared);
    let mut at = 0;
    for line in theirs.lines().filter(is_compared) {
        at += 1;
        let own = ours.next().unwrap_or_default();
        if line.trim_end() != own.trim_end() {
            return Some((at, line, own));
        }
    }
    ours.next().map(|own| (at + 1, "", own))
}
