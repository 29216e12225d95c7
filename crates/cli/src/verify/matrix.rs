//! Verdicts of several kernels beside each other: a line for each program, a column for each kernel;
//! below it why kernels refuse, what decides that, and the edit that would make the program pass.

mod data;
mod words;

use std::fmt::Write as _;

use beebox::Kernel;
use beebox::internal::kernel::{KernelField, Source};
use beebox::internal::verify::matrix::{Cell, ProgramAnswers, differs_much};
use report::run::verifier_verdict_style;
use report::terminal::{columns_of, fold};
use report::veristat::ResultVerdict;

pub(super) use data::{csv, json};

/// A kernel with the word that names it.
pub(super) struct Named {
    /// The word.
    pub(super) name: String,
    /// What it is.
    pub(super) kernel: Kernel,
}

impl Named {
    /// The kernel that its types are of, if that is another one that is built in.
    fn types_of(&self) -> Option<&'static str> {
        let source = |field| match self.kernel.source(field) {
            Source::BuiltIn(title) => Some(*title),
            _ => None,
        };
        let (own, types) = (source(KernelField::Version)?, source(KernelField::Btf)?);
        (own != types).then_some(types)
    }
}

/// What is shown of the answers about programs.
pub(super) struct Matrix<'a> {
    pub(super) kernels: &'a [Named],
    pub(super) programs: Vec<&'a ProgramAnswers>,
    /// Two kernels are compared: what changes from the first to the second.
    pub(super) is_diff: bool,
}

/// Words for verdicts.
#[derive(Clone, Copy)]
enum Form {
    /// The usual ones.
    Long,
    /// For many columns.
    Short,
}

impl<'a> Matrix<'a> {
    /// The programs whose verdict or cost changes from the first kernel to the second.
    pub(super) fn of_changes(kernels: &'a [Named], programs: &'a [ProgramAnswers]) -> Matrix<'a> {
        let changed = programs.iter().filter(|program| changes(program));
        Matrix {
            kernels,
            programs: changed.collect(),
            is_diff: true,
        }
    }

    fn name_of(&self, at: usize) -> &'a str {
        &self.kernels[at].name
    }

    fn names(&self, kernels: &[usize]) -> String {
        let names: Vec<&str> = kernels.iter().map(|at| self.name_of(*at)).collect();
        names.join(", ")
    }

    /// Heading and lines of cells.
    fn cells(&self, form: Form) -> Vec<Vec<String>> {
        let names = self.kernels.iter().map(|kernel| kernel.name.clone());
        let last = if self.is_diff { "change" } else { "taken by" };
        let heading = [String::from("program")].into_iter().chain(names);
        let mut lines: Vec<Vec<String>> = vec![heading.chain([String::from(last)]).collect()];
        let mut files = self.programs.iter().map(|program| &program.file);
        let first = files.next();
        let is_one_file = files.all(|file| Some(file) == first);
        for program in &self.programs {
            let name = match form {
                Form::Short if is_one_file => program.name.clone(),
                Form::Long | Form::Short => format!("{}/{}", program.file, program.name),
            };
            let costs = program.costs_differ();
            let words = program
                .cells
                .iter()
                .map(|cell| word(cell.as_ref(), form, costs));
            let last = match self.is_diff {
                true => change(program).unwrap_or_default(),
                false => program.taken_by().text(|at| self.name_of(at).to_owned()),
            };
            lines.push([name].into_iter().chain(words).chain([last]).collect());
        }
        lines
    }

    /// Why kernels do not take a program: kernels with the same reason, cause and edit.
    fn reasons(&self, program: &'a ProgramAnswers) -> Vec<(Vec<usize>, &'a Cell)> {
        let mut reasons: Vec<(Vec<usize>, &Cell)> = Vec::new();
        for (at, cell) in program.cells.iter().enumerate() {
            let is_open = |cell: &&Cell| cell.row.verdict != ResultVerdict::Success;
            let Some(cell) = cell.as_ref().filter(is_open) else {
                continue;
            };
            let is_same = |(_, known): &&mut (Vec<usize>, &Cell)| {
                reason(known) == reason(cell)
                    && (&known.cause, &known.edit) == (&cell.cause, &cell.edit)
            };
            match reasons.iter_mut().find(is_same) {
                Some((kernels, _)) => kernels.push(at),
                None => reasons.push((vec![at], cell)),
            }
        }
        reasons
    }

    /// What the words name, and how many programs the kernels take.
    fn titles(&self) -> String {
        let titles = self.kernels.iter().map(|named| {
            let version = named.kernel.version().map(|version| version.to_string());
            let types = match named.types_of() {
                Some(other) => format!(" with the types of {other}, not compared with a kernel"),
                None => String::new(),
            };
            let version = version.unwrap_or_default();
            format!("{} is Linux {version}{types}", named.name)
        });
        titles.collect::<Vec<_>>().join("; ")
    }

    /// For people, in lines of at most so many columns.
    pub(super) fn text(&self, width: Option<usize>) -> String {
        let long = columns(&self.cells(Form::Long));
        let fits = |text: &str| {
            width.is_none_or(|width| text.lines().all(|line| columns_of(line) <= width))
        };
        let mut text = match fits(&long) {
            true => long,
            false => columns(&self.cells(Form::Short)),
        };
        if self.programs.is_empty() {
            text = String::from(match self.is_diff {
                true => "no program changes its verdict or cost\n",
                false => "no program is selected\n",
            });
        }
        for program in &self.programs {
            let reasons = self.reasons(program);
            if reasons.is_empty() {
                continue;
            }
            // Writing to a string cannot fail.
            let _ = writeln!(text, "\n{}/{}", program.file, program.name);
            for (kernels, cell) in reasons {
                let _ = writeln!(text, "  {}: {}", self.names(&kernels), reason(cell));
                for line in words::lines(cell, self.kernels) {
                    let _ = writeln!(text, "      {line}");
                }
            }
        }
        let _ = writeln!(text, "\n{}", self.titles());
        width.map_or(text.clone(), |width| fold(&text, width))
    }

    /// A table in Markdown, and a list of reasons.
    pub(super) fn markdown(&self) -> String {
        let mut text = String::new();
        let escape = |cell: &String| cell.replace('|', "\\|");
        for (at, line) in self.cells(Form::Long).iter().enumerate() {
            let line: Vec<String> = line.iter().map(escape).collect();
            let _ = writeln!(text, "| {} |", line.join(" | "));
            if at == 0 {
                let _ = writeln!(text, "|---{}|", "|---".repeat(line.len() - 1));
            }
        }
        let _ = writeln!(text, "\n{}", self.titles());
        for program in &self.programs {
            let reasons = self.reasons(program);
            if !reasons.is_empty() {
                let _ = writeln!(text, "\n* {}/{}", program.file, program.name);
            }
            for (kernels, cell) in reasons {
                let _ = writeln!(text, "  * {}: `{}`", self.names(&kernels), reason(cell));
                for line in words::lines(cell, self.kernels) {
                    let _ = writeln!(text, "    * {line}");
                }
            }
        }
        text
    }
}

/// Why a kernel does not take a program, beside its name.
fn reason(cell: &Cell) -> &str {
    let reason = cell.row.reason.trim();
    reason
        .split_once("; the kernel is Linux ")
        .map_or(reason, |(what, _)| what)
}

/// The verdict of a cell, with what it cost where costs differ.
fn word(cell: Option<&Cell>, form: Form, costs: bool) -> String {
    let Some(cell) = cell else {
        return String::from("-");
    };
    let (long, short) = match cell.row.verdict {
        ResultVerdict::Success => ("accepted", "yes"),
        ResultVerdict::Failure => ("refused", "no"),
        ResultVerdict::Unsupported => ("unsupported", "?"),
    };
    let word = match form {
        Form::Long => long,
        Form::Short => short,
    };
    match costs && cell.row.verdict == ResultVerdict::Success {
        true => format!("{word} {}", cell.row.total_insns),
        false => word.to_owned(),
    }
}

/// True if the verdict or the cost changes from the first of two kernels to the second.
pub(super) fn changes(program: &ProgramAnswers) -> bool {
    change(program).is_some()
}

/// What changes from the first of two kernels to the second.
fn change(program: &ProgramAnswers) -> Option<String> {
    let cells: Vec<&Cell> = program.cells.iter().flatten().collect();
    let [old, new] = cells[..] else {
        return Some(String::from("absent in one"));
    };
    if old.row.verdict != new.row.verdict {
        let words = [old, new].map(|cell| word(Some(cell), Form::Long, false));
        return Some(format!("{} to {}", words[0], words[1]));
    }
    if old.row.verdict != ResultVerdict::Success {
        return None;
    }
    let counts = [
        ("instructions", old.row.total_insns, new.row.total_insns),
        ("states", old.row.total_states, new.row.total_states),
    ];
    let changed = counts
        .iter()
        .filter(|(_, old, new)| differs_much(*old, *new));
    let changed: Vec<String> = changed
        .map(|(what, old, new)| format!("{what} {old} to {new}"))
        .collect();
    (!changed.is_empty()).then(|| changed.join(", "))
}

/// Cells in columns, behind two spaces; verdicts have their colours.
fn columns(cells: &[Vec<String>]) -> String {
    let count = cells.first().map_or(0, Vec::len);
    let width = |column: usize| cells.iter().map(|line| line[column].chars().count()).max();
    let widths: Vec<usize> = (0..count)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let mut text = String::new();
    for (row, line) in cells.iter().enumerate() {
        let padded = line.iter().zip(&widths).enumerate();
        let padded = padded.map(|(column, (cell, width))| {
            let is_verdict = row > 0 && column > 0 && column + 1 < count;
            let word = cell.split(' ').next().filter(|_| is_verdict);
            let style = verifier_verdict_style(word.unwrap_or_default());
            let room = width - cell.chars().count();
            format!("{style}{cell}{style:#}{:room$}", "")
        });
        let padded: Vec<String> = padded.collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}
