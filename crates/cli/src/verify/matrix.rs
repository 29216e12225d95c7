//! Verdicts of several kernels beside each other: a line for each program, a column for each kernel,
//! and below it why kernels refuse.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use beebox::Kernel;
use beebox::internal::verify::results::Row;
use report::veristat::ResultVerdict;
use serde_json::{Value, json};

/// A kernel with its answers.
pub(super) struct Answers {
    /// The word that names it.
    pub(super) name: String,
    /// What it is.
    pub(super) kernel: Kernel,
    /// A row for each program.
    pub(super) rows: Vec<Row>,
}

/// Programs by file and name, in the order of the files.
pub(super) struct Matrix<'a> {
    kernels: &'a [Answers],
    programs: Vec<(&'a str, &'a str)>,
    rows: BTreeMap<(usize, &'a str, &'a str), &'a Row>,
}

/// The names of the kernels that give a reason, and the reason.
type Shared<'a> = (Vec<&'a str>, String);

impl<'a> Matrix<'a> {
    pub(super) fn of(kernels: &'a [Answers]) -> Matrix<'a> {
        let mut programs = Vec::new();
        let mut rows = BTreeMap::new();
        for (at, answers) in kernels.iter().enumerate() {
            for row in &answers.rows {
                let program = (row.file_name.as_str(), row.prog_name.as_str());
                if rows.keys().all(|&(_, file, name)| (file, name) != program) {
                    programs.push(program);
                }
                rows.insert((at, program.0, program.1), row);
            }
        }
        Matrix {
            kernels,
            programs,
            rows,
        }
    }

    /// The row of a program for a kernel; none if the kernel's types leave no such program.
    fn row(&self, at: usize, (file, program): (&'a str, &'a str)) -> Option<&'a Row> {
        self.rows.get(&(at, file, program)).copied()
    }

    fn word(&self, at: usize, program: (&'a str, &'a str)) -> &'static str {
        match self.row(at, program).map(|row| row.verdict) {
            Some(ResultVerdict::Success) => "accepted",
            Some(ResultVerdict::Failure) => "refused",
            Some(ResultVerdict::Unsupported) => "unsupported",
            None => "-",
        }
    }

    /// Heading and lines of cells.
    fn cells(&self) -> Vec<Vec<String>> {
        let names = self.kernels.iter().map(|answers| answers.name.clone());
        let mut lines: Vec<Vec<String>> =
            vec![[String::from("program")].into_iter().chain(names).collect()];
        for &program in &self.programs {
            let words = (0..self.kernels.len()).map(|at| self.word(at, program).to_owned());
            let name = format!("{}/{}", program.0, program.1);
            lines.push([name].into_iter().chain(words).collect());
        }
        lines
    }

    /// Why kernels do not accept a program: reasons in the order of the kernels that have them.
    fn reasons(&self) -> Vec<(String, Vec<Shared<'a>>)> {
        let mut all = Vec::new();
        for &program in &self.programs {
            let mut reasons: Vec<Shared<'_>> = Vec::new();
            for (at, answers) in self.kernels.iter().enumerate() {
                let row = self.row(at, program);
                let Some(row) = row.filter(|row| row.verdict != ResultVerdict::Success) else {
                    continue;
                };
                let reason = row.reason.trim();
                match reasons.iter_mut().find(|(_, known)| known == reason) {
                    Some((kernels, _)) => kernels.push(&answers.name),
                    None => reasons.push((vec![&answers.name], reason.to_owned())),
                }
            }
            if !reasons.is_empty() {
                all.push((format!("{}/{}", program.0, program.1), reasons));
            }
        }
        all
    }

    /// What the words name.
    fn titles(&self) -> String {
        let titles = self.kernels.iter().map(|answers| {
            let version = answers.kernel.version().map(|version| version.to_string());
            format!("{} is Linux {}", answers.name, version.unwrap_or_default())
        });
        titles.collect::<Vec<_>>().join("; ")
    }

    /// For people.
    pub(super) fn text(&self) -> String {
        let cells = self.cells();
        let columns = self.kernels.len() + 1;
        let width = |column: usize| cells.iter().map(|line| line[column].chars().count()).max();
        let widths: Vec<usize> = (0..columns)
            .map(|column| width(column).unwrap_or(0))
            .collect();
        let mut text = String::new();
        for line in &cells {
            let padded = line
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:width$}"));
            let padded: Vec<String> = padded.collect();
            text.push_str(padded.join("  ").trim_end());
            text.push('\n');
        }
        for (program, reasons) in self.reasons() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{program}");
            for (kernels, reason) in reasons {
                let _ = writeln!(text, "  {}: {reason}", kernels.join(", "));
            }
        }
        let _ = writeln!(text, "\n{}", self.titles());
        text
    }

    /// A table in Markdown, and a list of reasons.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        for (at, line) in self.cells().iter().enumerate() {
            let _ = writeln!(text, "| {} |", line.join(" | "));
            if at == 0 {
                let _ = writeln!(text, "|---{}|", "|---".repeat(self.kernels.len()));
            }
        }
        let _ = writeln!(text, "\n{}", self.titles());
        for (program, reasons) in self.reasons() {
            let _ = writeln!(text, "\n* {program}");
            for (kernels, reason) in reasons {
                let _ = writeln!(text, "  * {}: `{reason}`", kernels.join(", "));
            }
        }
        text
    }

    /// A line for each program and kernel.
    pub(super) fn csv(&self) -> String {
        let quoted = |cell: &str| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.to_owned(),
        };
        let mut text = String::from(
            "file_name,prog_name,kernel,version,verdict,total_insns,total_states,reason\n",
        );
        for &program in &self.programs {
            for (at, answers) in self.kernels.iter().enumerate() {
                let row = self.row(at, program);
                let version = answers.kernel.version().map(|version| version.to_string());
                let cells = [
                    program.0.to_owned(),
                    program.1.to_owned(),
                    answers.name.clone(),
                    version.unwrap_or_default(),
                    self.word(at, program).to_owned(),
                    row.map(|row| row.total_insns.to_string())
                        .unwrap_or_default(),
                    row.map(|row| row.total_states.to_string())
                        .unwrap_or_default(),
                    row.map(|row| row.reason.trim().to_owned())
                        .unwrap_or_default(),
                ];
                let cells: Vec<String> = cells.iter().map(|cell| quoted(cell)).collect();
                let _ = writeln!(text, "{}", cells.join(","));
            }
        }
        text
    }

    /// A record for each program.
    pub(super) fn json(&self) -> Vec<Value> {
        let records = self.programs.iter().map(|&program| {
            let answers = self.kernels.iter().enumerate().map(|(at, answers)| {
                let row = self.row(at, program);
                json!({
                    "kernel": answers.name,
                    "version": answers.kernel.version().map(|version| version.to_string()),
                    "verdict": self.word(at, program),
                    "total_insns": row.map(|row| row.total_insns),
                    "total_states": row.map(|row| row.total_states),
                    "reason": row.map(|row| row.reason.trim()).filter(|reason| !reason.is_empty()),
                })
            });
            json!({
                "file_name": program.0,
                "prog_name": program.1,
                "kernels": answers.collect::<Vec<_>>(),
            })
        });
        records.collect()
    }
}
