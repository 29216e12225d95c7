//! What came of changes, as text and as data.

use std::fmt::Write as _;

use report::count;
use serde_json::{Value, json};

use super::{MutantOutcome, MutationReport};

impl MutationReport {
    /// For people, with the time that the changes took.
    pub fn text(&self, seconds: f64) -> String {
        let mut text = String::new();
        for missed in self.missed() {
            let note = match missed.is_executed {
                true => "",
                false => ", which no test executes",
            };
            let _ = match missed.line {
                Some((file, line, code)) => writeln!(text, "{file}:{line}{note}\n  {code}"),
                None => writeln!(text, "without a source line{note}"),
            };
            for mutant in missed.mutants {
                let (slot, before, after) = (mutant.slot, &mutant.before, &mutant.after);
                let is_executed = mutant.outcome == MutantOutcome::Missed { is_executed: true };
                // Of a line that is executed, some instructions may not be.
                let note = match is_executed || !missed.is_executed {
                    true => "",
                    false => " (not executed)",
                };
                let _ = writeln!(text, "    {slot}: {before} -> {after}{note}");
            }
        }
        let (noticed, all) = self.share();
        let percent = noticed as f64 * 100.0 / all.max(1) as f64;
        let refused = self.mutants.len() - all;
        let _ = writeln!(
            text,
            "{noticed} of {} noticed, {percent:.1} %; {refused} more are refused by the verifier; {seconds:.1} s",
            count(all, "change")
        );
        text
    }

    /// As data.
    pub fn json(&self, seconds: f64) -> Value {
        let mutants = self.mutants.iter().map(|mutant| {
            let (outcome, test) = match &mutant.outcome {
                MutantOutcome::Refused => ("refused", None),
                MutantOutcome::Noticed { test } => ("noticed", Some(test)),
                MutantOutcome::Missed { is_executed: true } => ("missed", None),
                MutantOutcome::Missed { is_executed: false } => ("not executed", None),
            };
            let mut record = json!({
                "prog": mutant.program,
                "insn": mutant.slot,
                "original": mutant.before,
                "replacement": mutant.after,
                "outcome": outcome,
            });
            if let Some((file, line, code)) = &mutant.line {
                record["file"] = json!(file);
                record["line"] = json!(line);
                record["line_text"] = json!(code);
            }
            if let Some(test) = test {
                record["test"] = json!(test);
            }
            record
        });
        let (noticed, all) = self.share();
        json!({
            "mutants": mutants.collect::<Vec<_>>(),
            "noticed": noticed,
            "verified": all,
            "refused": self.mutants.len() - all,
            "seconds": seconds,
        })
    }
}
