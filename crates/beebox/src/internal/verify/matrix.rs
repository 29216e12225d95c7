//! Verdicts of several kernels beside each other: which of them take a program, and of each that
//! refuses it, what decides that and the edit that would make it pass.
//!
//! Files are verified one after the other, each for every kernel, so that the programs of one file are
//! in memory at a time. What decides is searched for each refused program that another kernel takes:
//! a few verifications with behaviours of the one and of the other kernel.

mod cause;
mod edit;
mod object;
/// The matrix as a table for people, as comma-separated values and as records.
pub mod table;

use std::collections::BTreeSet;

use report::veristat::ResultVerdict;

use super::results::{FileResults, Files, Job, Row, for_each_file, verify_file};
use crate::Kernel;
use cause::{Budget, Found};

pub use cause::{Decider, DeciderKind, RefusalCause, SEARCH_INSNS};
pub use edit::{Edit, EditOutcome};
pub use object::{KernelVerdict, ProgramMatrix};

/// The answers of several kernels about the programs of files.
#[derive(Debug)]
pub struct Matrix<E> {
    /// Programs in the order of the files.
    pub programs: Vec<ProgramAnswers>,
    /// Programs that names and filters leave out, as `FILE/PROG`.
    pub left_out: Vec<String>,
    /// Names that a loader may define in one of the files.
    pub definable: BTreeSet<String>,
    /// Errors of files.
    pub failures: Vec<E>,
}

/// The answers of the kernels about one program.
#[derive(Debug)]
pub struct ProgramAnswers {
    /// Name of the file.
    pub file: String,
    /// Name of the program.
    pub name: String,
    /// By kernel; none where the kernel's types leave no such program.
    pub cells: Vec<Option<Cell>>,
}

/// The answer of a kernel.
#[derive(Debug)]
pub struct Cell {
    /// Verdict and counts.
    pub row: Row,
    /// What decides that the kernel refuses it, if that was found.
    pub cause: Option<RefusalCause>,
    /// The edit that would make it pass there.
    pub edit: Option<Edit>,
}

/// Which kernels of a row take a program; those without verdict are left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TakenBy {
    /// The first that takes it.
    pub first: Option<usize>,
    /// The last that takes it.
    pub last: Option<usize>,
    /// Those between both that refuse it.
    pub gaps: Vec<usize>,
    /// A kernel before the first refuses it.
    pub begins: bool,
    /// A kernel behind the last refuses it.
    pub ends: bool,
}

impl TakenBy {
    fn of(verdicts: impl Iterator<Item = Option<ResultVerdict>>) -> TakenBy {
        let known = verdicts
            .enumerate()
            .filter_map(|(at, verdict)| match verdict? {
                ResultVerdict::Success => Some((at, true)),
                ResultVerdict::Failure => Some((at, false)),
                ResultVerdict::Unsupported => None,
            });
        let known: Vec<(usize, bool)> = known.collect();
        let mut taking = known.iter().filter(|(_, takes)| *takes).map(|(at, _)| *at);
        let (first, last) = (taking.next(), taking.next_back());
        let last = last.or(first);
        let refusing = known.iter().filter(|(_, takes)| !takes).map(|(at, _)| *at);
        let refusing: Vec<usize> = refusing.collect();
        let is_before = |at: &usize| first.is_none_or(|first| *at < first);
        let is_behind = |at: &usize| last.is_some_and(|last| *at > last);
        TakenBy {
            begins: refusing.iter().any(is_before),
            ends: refusing.iter().any(is_behind),
            gaps: refusing
                .iter()
                .copied()
                .filter(|at| !is_before(at) && !is_behind(at))
                .collect(),
            first,
            last,
        }
    }

    /// In words, with the names of the kernels.
    pub fn text(&self, name: impl Fn(usize) -> String) -> String {
        let (Some(first), Some(last)) = (self.first, self.last) else {
            return String::from(if self.begins { "none" } else { "unknown" });
        };
        let range = match (self.begins, self.ends) {
            (false, false) => String::from("all"),
            (true, false) => format!("{} on", name(first)),
            (false, true) => format!("up to {}", name(last)),
            (true, true) if first == last => format!("{} only", name(first)),
            (true, true) => format!("{} to {}", name(first), name(last)),
        };
        let gaps = self.gaps.iter().map(|at| format!(", not {}", name(*at)));
        gaps.fold(range, |text, gap| text + &gap)
    }
}

impl ProgramAnswers {
    /// The row of a kernel.
    pub fn row(&self, at: usize) -> Option<&Row> {
        self.cells.get(at)?.as_ref().map(|cell| &cell.row)
    }

    /// Which kernels take it.
    pub fn taken_by(&self) -> TakenBy {
        TakenBy::of((0..self.cells.len()).map(|at| self.row(at).map(|row| row.verdict)))
    }

    /// Drops the program as it was loaded for each kernel.
    fn drop_loaded(&mut self) {
        for cell in self.cells.iter_mut().flatten() {
            cell.row.loaded = None;
        }
    }

    /// True if the kernels that take it process much more of it in one than in another.
    pub fn costs_differ(&self) -> bool {
        let rows = (0..self.cells.len()).filter_map(|at| self.row(at));
        let taken = rows.filter(|row| row.verdict == ResultVerdict::Success);
        let costs: Vec<[u64; 2]> = taken
            .map(|row| [row.total_insns, row.total_states])
            .collect();
        (0..2).any(|which| {
            let least = costs.iter().map(|cost| cost[which]).min().unwrap_or(0);
            let most = costs.iter().map(|cost| cost[which]).max().unwrap_or(0);
            differs_much(least, most)
        })
    }
}

/// Counts from which on a factor says something.
const NOTABLE: u64 = 100;

/// True if one count is a factor of two or more above the other, and not by a few.
pub fn differs_much(one: u64, other: u64) -> bool {
    let (least, most) = (one.min(other), one.max(other));
    most >= NOTABLE && most >= 2 * least
}

/// Verifies every selected program for several kernels, oldest first; `None` if one of them has no
/// registry. Of programs that are shown, causes are searched, and edits if refusals are explained.
pub fn verify_files<F: Files>(
    files: &F,
    job: &Job<'_>,
    kernels: &[Kernel],
    is_shown: &(dyn Fn(&ProgramAnswers) -> bool + Sync),
) -> Option<Matrix<F::Error>> {
    let registries: Option<Vec<_>> = kernels.iter().map(Kernel::registry).collect();
    let registries = registries?;
    let explains = job.explains;
    let job = &Job {
        // Edits are explained, not every refusal.
        explains: false,
        options: job.options.clone(),
        loading: job.loading.clone(),
        target: job.target.clone(),
        logs: super::results::Logs::new(0, None, None),
        ..*job
    };
    let work_at = |at: usize| {
        let contents = files.read(at)?;
        let answered = kernels.iter().zip(&registries);
        let answered = answered.map(|(kernel, registry)| {
            verify_file(files, (at, &contents), job, kernel, registry, true)
        });
        let answered: Result<Vec<FileResults>, F::Error> = answered.collect();
        answered.map(|results| of_file(results, kernels, is_shown, explains))
    };
    let mut matrix = Matrix {
        programs: Vec::new(),
        left_out: Vec::new(),
        definable: BTreeSet::new(),
        failures: Vec::new(),
    };
    for of_file in for_each_file(files, job.threads, &work_at) {
        match of_file {
            Ok((programs, left_out, definable)) => {
                matrix.programs.extend(programs);
                matrix.left_out.extend(left_out);
                matrix.definable.extend(definable);
            }
            Err(failure) => matrix.failures.push(failure),
        }
    }
    Some(matrix)
}

/// The answers about the programs of a file, with the programs that are left out and the names that
/// may be defined.
fn of_file(
    results: Vec<FileResults>,
    kernels: &[Kernel],
    is_shown: &dyn Fn(&ProgramAnswers) -> bool,
    explains: bool,
) -> (Vec<ProgramAnswers>, Vec<String>, BTreeSet<String>) {
    let (mut left_out, mut definable) = (Vec::new(), BTreeSet::new());
    let mut programs: Vec<ProgramAnswers> = Vec::new();
    for (at, result) in results.into_iter().enumerate() {
        for mut row in result.rows {
            // A kernel that lacks what the program is linked with does not take it.
            if cause::is_not_linked(&row) {
                row.verdict = ResultVerdict::Failure;
            }
            let is_same = |known: &ProgramAnswers| known.name == row.prog_name;
            let place = programs.iter().position(is_same).unwrap_or_else(|| {
                programs.push(ProgramAnswers {
                    file: row.file_name.clone(),
                    name: row.prog_name.clone(),
                    cells: kernels.iter().map(|_| None).collect(),
                });
                programs.len() - 1
            });
            programs[place].cells[at] = Some(Cell {
                row,
                cause: None,
                edit: None,
            });
        }
        if at == 0 {
            left_out = result.left_out;
        }
        definable.extend(result.definable);
    }
    let mut found = Found::default();
    for program in &mut programs {
        // What is not printed is not searched.
        match is_shown(program) {
            true => explain(program, kernels, explains, &mut found),
            false => program.drop_loaded(),
        }
    }
    (programs, left_out, definable)
}

/// Finds what decides, and edits; the programs are dropped then. Kernels are visited from the one next to
/// the kernel that takes the program outwards, so that what decides there is tried first further out.
fn explain(program: &mut ProgramAnswers, kernels: &[Kernel], explains: bool, found: &mut Found) {
    let verdicts = (0..kernels.len()).map(|at| program.row(at).map(|row| row.verdict));
    let verdicts: Vec<Option<ResultVerdict>> = verdicts.collect();
    let takes = |at: &usize| verdicts[*at] == Some(ResultVerdict::Success);
    let refused = (0..kernels.len()).filter(|at| verdicts[*at] == Some(ResultVerdict::Failure));
    let with_other = refused.map(|at| {
        // The next kernel that takes it, else the last before this one.
        let newer = (at..kernels.len()).find(takes);
        (at, newer.or_else(|| (0..at).rev().find(takes)))
    });
    let mut with_other: Vec<(usize, Option<usize>)> = with_other.collect();
    with_other.sort_by_key(|(at, other)| (*other, other.map(|other| other.abs_diff(*at)), *at));
    found.next_program();
    let budget = Budget::new();
    let mut known: Vec<(usize, RefusalCause)> = Vec::new();
    for (at, accepting) in with_other {
        let Some(row) = program.row(at) else {
            continue;
        };
        let other = accepting.and_then(|other| Some((other, program.row(other)?)));
        // A neighbour that refuses it for the same reason differs from that kernel by the same.
        let same = known.iter().find(|(before, cause)| {
            let is_alike = |before: &Row| before.reason == row.reason;
            cause.accepting == accepting
                && program.row(*before).is_some_and(is_alike)
                && kernels[*before].behaviours() == kernels[at].behaviours()
        });
        let cause = match same {
            Some((_, cause)) => Some(cause.clone()),
            None => cause::find(
                (row, &kernels[at]),
                other.map(|(to, row)| (to, row, &kernels[to])),
                found,
                &budget,
            ),
        };
        let edit = explains
            .then(|| {
                let other = other.map(|(to, row)| (row, &kernels[to]));
                edit::find(row, &kernels[at], cause.as_ref(), other)
            })
            .flatten();
        known.extend(cause.clone().map(|cause| (at, cause)));
        if let Some(cell) = &mut program.cells[at] {
            (cell.cause, cell.edit) = (cause, edit);
        }
    }
    program.drop_loaded();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_last_and_gaps_are_named() {
        let text = |verdicts: &str| {
            let verdicts = verdicts.chars().map(|verdict| match verdict {
                'y' => Some(ResultVerdict::Success),
                'n' => Some(ResultVerdict::Failure),
                '?' => Some(ResultVerdict::Unsupported),
                _ => None,
            });
            TakenBy::of(verdicts).text(|at| at.to_string())
        };
        for (verdicts, expected) in [
            ("yyyy", "all"),
            ("nnnn", "none"),
            ("?-?", "unknown"),
            ("nnyy", "2 on"),
            ("n?yy", "2 on"),
            ("?yyy", "all"),
            ("yynn", "up to 1"),
            ("nyyn", "1 to 2"),
            ("nynn", "1 only"),
            ("yyny", "all, not 2"),
            ("nynyn", "1 to 3, not 2"),
        ] {
            assert_eq!(text(verdicts), expected, "{verdicts}");
        }
        assert!(differs_much(50, 100) && differs_much(0, 100));
        assert!(!differs_much(20, 99) && !differs_much(501, 1000));
    }
}
