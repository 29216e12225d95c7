//! The actions of filters for all calls, as text and as data.

use std::fmt::Write;

use report::seccomp::{
    call_cases_json, call_cases_text, finding_json, finding_text, foreign_text, others_json,
    table_json, table_text,
};
use serde_json::{Value, json};

use super::{Analysis, Arch, Case, NamedFilter};
use crate::Error;

/// Calls by number, with their cases.
type Calls = Vec<(u32, Vec<Case>)>;

/// The cases of some calls of architectures.
pub struct CallCases(Vec<(Arch, Calls)>);

impl Analysis {
    /// The architectures to show: those that the filters treat specially, or this machine's.
    ///
    /// # Errors
    /// Beyond the budget of the analysis.
    #[doc(hidden)]
    pub fn shown_architectures(&mut self) -> Result<Vec<Arch>, Error> {
        let mut archs = self.architectures()?;
        if archs.is_empty() {
            archs.push(Arch::native().unwrap_or(Arch::X86_64));
        }
        Ok(archs)
    }

    /// The tables of architectures, those of others, and findings, as data.
    ///
    /// # Errors
    /// Beyond the budget of the analysis.
    #[doc(hidden)]
    pub fn tables_json(&mut self, archs: &[Arch]) -> Result<Value, Error> {
        let mut tables = Vec::new();
        for &arch in archs {
            tables.push(table_json(&self.table(arch)?));
        }
        let foreign = self.foreign_architectures()?;
        let findings = self.findings()?;
        Ok(json!({
            "tables": tables,
            "other_architectures": others_json(&foreign),
            "findings": findings.iter().map(finding_json).collect::<Vec<_>>(),
        }))
    }

    /// The tables of architectures, those of others, instructions that no call reaches, and
    /// findings. `programs` are the filters of the analysis; calls that get the default action are
    /// listed if `all`, otherwise counted with the hint.
    ///
    /// # Errors
    /// Beyond the budget of the analysis.
    #[doc(hidden)]
    pub fn tables_text(
        &mut self,
        programs: &[NamedFilter],
        archs: &[Arch],
        (all, hint): (bool, &str),
    ) -> Result<String, Error> {
        let mut text = String::new();
        // Writing to a string cannot fail.
        for &arch in archs {
            let _ = writeln!(text, "{}", table_text(&self.table(arch)?, all, hint));
        }
        text.push_str(&foreign_text(&self.foreign_architectures()?));
        for (program, unreachable) in programs.iter().zip(self.unreachable()) {
            if unreachable.is_empty() {
                continue;
            }
            let name = &program.name;
            let _ = writeln!(text, "\n{name}: no call reaches these instructions");
            for &at in unreachable {
                let _ = writeln!(text, "  {}", program.line(at));
            }
        }
        let findings = self.findings()?;
        if !findings.is_empty() {
            text.push('\n');
        }
        for finding in &findings {
            let _ = writeln!(text, "{}", finding_text(finding));
        }
        Ok(text)
    }

    /// The cases of calls, of each architecture those that it has: `number` is the number of a call
    /// there.
    ///
    /// # Errors
    /// Beyond the budget of the analysis.
    #[doc(hidden)]
    pub fn cases_of_calls<C>(
        &mut self,
        archs: &[Arch],
        calls: &[C],
        number: impl Fn(Arch, &C) -> Option<u32>,
    ) -> Result<CallCases, Error> {
        let mut tables = Vec::new();
        for &arch in archs {
            let mut cases = Vec::new();
            for nr in calls.iter().filter_map(|call| number(arch, call)) {
                cases.push((nr, self.cases_of(arch, nr)?));
            }
            tables.push((arch, cases));
        }
        Ok(CallCases(tables))
    }
}

impl CallCases {
    /// For people.
    pub fn text(&self) -> String {
        let tables = self.0.iter();
        let calls = tables.flat_map(|(arch, calls)| calls.iter().map(move |call| (*arch, call)));
        calls
            .map(|(arch, (nr, cases))| call_cases_text(arch, *nr, cases))
            .collect()
    }

    /// As data.
    pub fn json(&self) -> Value {
        let tables = self.0.iter();
        let tables = tables.map(|(arch, calls)| call_cases_json(*arch, calls));
        json!({ "tables": tables.collect::<Vec<_>>() })
    }
}
