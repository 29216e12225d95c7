//! Coverage of source lines, branches and functions, merged over runs, as lcov, Cobertura's XML, HTML,
//! JSON and text.
//!
//! What no run can reach is known from the verifier: it is shown as such and is not missing. Merging adds
//! counts; what one of the merged runs can reach is reachable.

mod cobertura;
mod html;
mod json;
mod lcov;
mod text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use json::coverage_json;
pub use lcov::{LcovFault, read_lcov};

/// Coverage of source files by their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The files.
    #[doc(hidden)]
    pub files: BTreeMap<String, FileCoverage>,
}

/// Coverage of a source file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileCoverage {
    /// Lines with instructions, by their numbers.
    pub lines: BTreeMap<u32, LineCoverage>,
    /// Conditional jumps.
    pub branches: BTreeMap<BranchPlace, BranchCoverage>,
    /// Functions by their names.
    pub functions: BTreeMap<String, FunctionCoverage>,
    /// Texts of lines, where they are known.
    pub texts: BTreeMap<u32, String>,
}

/// Coverage of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCoverage {
    /// How often it was executed: in each function the most of its instructions, in all together the sum.
    pub count: u64,
    /// A run can come there.
    pub is_reachable: bool,
}

/// The place of a conditional jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BranchPlace {
    /// The line.
    pub line: u32,
    /// The column, 0 if it is not known.
    pub column: u32,
    /// Number among the jumps of a function with this line and column.
    pub number: u32,
}

/// How often a conditional jump went either way; `None` for a way that no run can take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BranchCoverage {
    /// It jumped.
    pub jumped: Option<u64>,
    /// It went on behind.
    pub fell: Option<u64>,
}

/// Coverage of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionCoverage {
    /// Its first line.
    pub line: u32,
    /// How often it was entered.
    pub count: u64,
    /// A run can come there.
    pub is_reachable: bool,
}

/// Covered ones of a number of things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// How many were executed.
    pub hit: usize,
    /// How many there are that a run can reach.
    pub found: usize,
}

impl Share {
    fn of(counts: impl Iterator<Item = u64>) -> Share {
        counts.fold(Share::default(), |share, count| Share {
            hit: share.hit + usize::from(count > 0),
            found: share.found + 1,
        })
    }

    fn plus(self, other: Share) -> Share {
        Share {
            hit: self.hit + other.hit,
            found: self.found + other.found,
        }
    }

    /// The covered part, 1 of nothing.
    fn rate(self) -> f64 {
        match self.found {
            0 => 1.0,
            found => self.hit as f64 / found as f64,
        }
    }

    /// The covered part in percent.
    fn percent(self) -> String {
        match self.found {
            0 => "-".to_owned(),
            // Never 100 % where something is missing.
            _ => format!("{:.1} %", (self.rate() * 1000.0).floor() / 10.0),
        }
    }
}

/// Lines, branches and functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Lines.
    pub lines: Share,
    /// Ways of conditional jumps.
    pub branches: Share,
    /// Functions.
    pub functions: Share,
    /// Lines that no run can reach.
    pub unreachable: usize,
}

impl BranchCoverage {
    /// The counts of the ways that a run can take, with their numbers: 0 where it jumps.
    fn ways(self) -> impl Iterator<Item = (u32, u64)> {
        let ways = [(0, self.jumped), (1, self.fell)];
        ways.into_iter()
            .filter_map(|(number, count)| Some((number, count?)))
    }

    fn merge(&mut self, other: BranchCoverage) {
        let add = |count: &mut Option<u64>, more: Option<u64>| {
            *count = match (*count, more) {
                (None, None) => None,
                (count, more) => Some(count.unwrap_or(0).saturating_add(more.unwrap_or(0))),
            };
        };
        add(&mut self.jumped, other.jumped);
        add(&mut self.fell, other.fell);
    }
}

impl FileCoverage {
    /// Adds a count of a line.
    pub fn add_line(&mut self, number: u32, line: LineCoverage) {
        let known = self.lines.entry(number).or_default();
        known.count = known.count.saturating_add(line.count);
        known.is_reachable |= line.is_reachable;
    }

    /// Adds counts of a conditional jump.
    pub fn add_branch(&mut self, place: BranchPlace, branch: BranchCoverage) {
        self.branches.entry(place).or_default().merge(branch);
    }

    /// Adds a count of a function.
    pub fn add_function(&mut self, name: &str, function: FunctionCoverage) {
        let known = self.functions.entry(name.to_owned()).or_default();
        known.line = function.line;
        known.count = known.count.saturating_add(function.count);
        known.is_reachable |= function.is_reachable;
    }

    fn totals(&self) -> Totals {
        let reachable = self.lines.values().filter(|line| line.is_reachable);
        let functions = self.functions.values();
        let functions = functions.filter(|function| function.is_reachable);
        let ways = self.branches.values().flat_map(|branch| branch.ways());
        let lines = Share::of(reachable.map(|line| line.count));
        Totals {
            lines,
            branches: Share::of(ways.map(|(_, count)| count)),
            functions: Share::of(functions.map(|function| function.count)),
            unreachable: self.lines.len() - lines.found,
        }
    }

    /// The conditional jumps of a line.
    pub(crate) fn branches_of(
        &self,
        line: u32,
    ) -> impl Iterator<Item = (&BranchPlace, &BranchCoverage)> + use<'_> {
        self.branches.range(
            BranchPlace {
                line,
                column: 0,
                number: 0,
            }..=BranchPlace {
                line,
                column: u32::MAX,
                number: u32::MAX,
            },
        )
    }
}

impl Coverage {
    /// Adds the counts of other runs.
    pub fn merge(&mut self, other: Coverage) {
        for (name, more) in other.files {
            let file = self.files.entry(name).or_default();
            for (number, line) in more.lines {
                file.add_line(number, line);
            }
            for (place, branch) in more.branches {
                file.add_branch(place, branch);
            }
            for (name, function) in more.functions {
                file.add_function(&name, function);
            }
            file.texts.extend(more.texts);
        }
    }

    /// True if there are no lines.
    pub fn is_empty(&self) -> bool {
        self.files.values().all(|file| file.lines.is_empty())
    }

    /// The totals of all files.
    pub fn totals(&self) -> Totals {
        let files = self.files.values().map(FileCoverage::totals);
        files.fold(Totals::default(), |all, file| Totals {
            lines: all.lines.plus(file.lines),
            branches: all.branches.plus(file.branches),
            functions: all.functions.plus(file.functions),
            unreachable: all.unreachable + file.unreachable,
        })
    }

    /// Names of the source files.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// The lines of a file that have instructions, by their numbers, with how often they were executed:
    /// `None` for those that no run can reach.
    pub fn lines(&self, file: &str) -> impl Iterator<Item = (u32, Option<u64>)> {
        let lines = self.files.get(file).into_iter();
        let lines = lines.flat_map(|file| &file.lines);
        lines.map(|(number, line)| (*number, line.is_reachable.then_some(line.count)))
    }

    /// The functions of a file by their names, with how often they were entered: `None` for those that
    /// no run can reach.
    pub fn functions(&self, file: &str) -> impl Iterator<Item = (&str, Option<u64>)> {
        let functions = self.files.get(file).into_iter();
        let functions = functions.flat_map(|file| &file.functions);
        functions.map(|(name, it)| (&**name, it.is_reachable.then_some(it.count)))
    }

    /// The tracefile of lcov.
    pub fn lcov(&self) -> String {
        lcov::lcov(self)
    }

    /// Cobertura's XML. `timestamp` is in milliseconds since 1970.
    pub fn cobertura(&self, timestamp: u64) -> String {
        cobertura::cobertura(self, timestamp)
    }

    /// Pages by the names of their files: `index.html`, and one for each source file. `source` is the
    /// text of a source file, if it is known.
    pub fn html(&self, source: &dyn Fn(&str) -> Option<String>) -> BTreeMap<String, String> {
        html::html(self, source)
    }

    /// A table of the files, and below the lines, branches and functions that were missed.
    pub fn text(&self) -> String {
        text::text(self)
    }

    /// One line about all files.
    pub fn summary(&self) -> String {
        text::summary(self)
    }

    /// Names files by where they are: a relative name that is none here, but is one beside the
    /// object, is that one.
    pub fn find_sources(&mut self, beside: &Path) {
        let found = |name: &str| {
            let path = Path::new(name);
            if path.is_absolute() || path.exists() {
                return None;
            }
            let base = path.file_name().map(Path::new);
            let names = [Some(path), base].into_iter().flatten();
            let mut places = names.map(|name| beside.join(name));
            places.find(|place| place.is_file())
        };
        let files = std::mem::take(&mut self.files);
        for (name, file) in files {
            let place: Option<PathBuf> = found(&name);
            let name = place.map_or(name, |place| place.display().to_string());
            let one = Coverage {
                files: BTreeMap::from([(name, file)]),
            };
            self.merge(one);
        }
    }
}

#[cfg(test)]
mod tests;
