//! Profiles of runs by source line and chain of calls, as a table, folded stacks, pprof and speedscope.

mod pprof;
mod speedscope;

use std::collections::{BTreeMap, HashMap};
use std::fmt::{self, Write};

pub use pprof::pprof;
pub use speedscope::speedscope;

use crate::table::{Side, Table};

/// Rows of the table.
const ROWS: usize = 25;

/// What runs executed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// Number of runs.
    pub runs: u64,
    /// Instructions of the shortest run.
    pub least: u64,
    /// Instructions of the longest run.
    pub most: u64,
    /// Counts by chain of calls.
    pub samples: Vec<ProfileSample>,
}

/// Counts of a line in a chain of calls, or of a helper that it called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProfileSample {
    /// The frames, the outermost first.
    pub stack: Vec<ProfileFrame>,
    /// Instructions that were executed in the last frame.
    pub instructions: u64,
    /// Calls of the helper that is the last frame.
    pub calls: u64,
    /// Nanoseconds in the last frame, if they were measured: of a line without its calls of helpers.
    pub nanoseconds: u64,
}

/// A function and a line of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileFrame {
    /// The function.
    pub function: String,
    /// The file of the line.
    pub file: Option<String>,
    /// The line; `None` for helpers, and where it is not known.
    pub line: Option<u32>,
    /// Text of the line.
    pub text: Option<String>,
}

impl ProfileFrame {
    /// The frame of a helper or kfunc.
    pub fn of_helper(name: &str) -> ProfileFrame {
        ProfileFrame {
            function: name.to_owned(),
            ..ProfileFrame::default()
        }
    }
}

impl fmt::Display for ProfileFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                let base = file.rsplit('/').next().unwrap_or(file);
                write!(f, "{} ({base}:{line})", self.function)
            }
            _ => f.write_str(&self.function),
        }
    }
}

impl Profile {
    /// All instructions.
    pub fn instructions(&self) -> u64 {
        self.samples.iter().map(|sample| sample.instructions).sum()
    }

    /// Adds samples of equal stacks, and puts them into order.
    pub fn merge_equal(&mut self) {
        let mut merged: BTreeMap<Vec<ProfileFrame>, (u64, u64, u64)> = BTreeMap::new();
        for sample in self.samples.drain(..) {
            let counts = merged.entry(sample.stack).or_default();
            counts.0 += sample.instructions;
            counts.1 += sample.calls;
            counts.2 += sample.nanoseconds;
        }
        let merged = merged.into_iter();
        let samples = merged.map(|(stack, counts)| ProfileSample {
            stack,
            instructions: counts.0,
            calls: counts.1,
            nanoseconds: counts.2,
        });
        self.samples = samples.collect();
    }

    /// The lines that cost most, functions, and calls of helpers.
    pub fn text(&self) -> String {
        let all = self.instructions();
        let percent = |count: u64| match all {
            0 => "-".to_owned(),
            all => format!("{:.1} %", count as f64 * 100.0 / all as f64),
        };
        let mean = all.checked_div(self.runs).unwrap_or(0);
        let runs = crate::count(self.runs as usize, "run");
        let mut out = format!(
            "{runs}, {all} instructions: {mean} a run, from {} to {}\n\n",
            self.least, self.most
        );
        let mut lines: HashMap<&ProfileFrame, u64> = HashMap::new();
        // Of a function: its own, and with those of what it calls.
        let mut functions: HashMap<&str, (u64, u64)> = HashMap::new();
        let mut calls: HashMap<(&str, String), u64> = HashMap::new();
        for sample in &self.samples {
            let Some((last, above)) = sample.stack.split_last() else {
                continue;
            };
            if sample.calls > 0 {
                let place = above.last().map(ToString::to_string);
                *calls
                    .entry((&last.function, place.unwrap_or_default()))
                    .or_default() += sample.calls;
                continue;
            }
            *lines.entry(last).or_default() += sample.instructions;
            functions.entry(&last.function).or_default().0 += sample.instructions;
            let mut seen: Vec<&str> = Vec::new();
            for frame in &sample.stack {
                if !seen.contains(&&*frame.function) {
                    seen.push(&frame.function);
                    functions.entry(&frame.function).or_default().1 += sample.instructions;
                }
            }
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_by_key(|(frame, count)| (std::cmp::Reverse(*count), *frame));
        let mut table = Table::new(&[
            ("instructions", Side::Right),
            ("share", Side::Right),
            ("place", Side::Left),
            ("line", Side::Left),
        ]);
        for (frame, count) in lines {
            let text = frame.text.clone().unwrap_or_default();
            table.row([count.to_string(), percent(count), frame.to_string(), text]);
        }
        table.write(&mut out, ROWS, "; --profile folded=FILE has all");
        let mut functions: Vec<_> = functions.into_iter().collect();
        functions.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.1), *name));
        let mut table = Table::new(&[
            ("with calls", Side::Right),
            ("alone", Side::Right),
            ("share", Side::Right),
            ("function", Side::Left),
        ]);
        for (name, (own, total)) in functions {
            let cells = [own, total].map(|count| count.to_string());
            let [own, whole] = cells;
            table.row([whole, own, percent(total), name.to_owned()]);
        }
        out.push('\n');
        table.write(&mut out, ROWS, "");
        if !calls.is_empty() {
            let mut calls: Vec<_> = calls.into_iter().collect();
            calls.sort_by(|(a, first), (b, second)| second.cmp(first).then(a.cmp(b)));
            let mut table = Table::new(&[
                ("calls", Side::Right),
                ("helper", Side::Left),
                ("by", Side::Left),
            ]);
            for ((name, place), count) in calls {
                table.row([count.to_string(), name.to_owned(), place]);
            }
            out.push('\n');
            table.write(&mut out, ROWS, "");
        }
        out
    }

    /// The time of lines with the helpers that they call, and of helpers, where it was measured.
    pub fn times_text(&self) -> String {
        let all: u64 = self.samples.iter().map(|sample| sample.nanoseconds).sum();
        let percent = |time: u64| match all {
            0 => "-".to_owned(),
            all => format!("{:.1} %", time as f64 * 100.0 / all as f64),
        };
        let mut lines: HashMap<&ProfileFrame, (u64, u64)> = HashMap::new();
        let mut helpers: HashMap<&str, (u64, u64)> = HashMap::new();
        for sample in &self.samples {
            let line = match &sample.stack[..] {
                [.., line, helper] if sample.calls > 0 => {
                    let known = helpers.entry(&helper.function).or_default();
                    known.0 += sample.nanoseconds;
                    known.1 += sample.calls;
                    line
                }
                [.., line] => line,
                [] => continue,
            };
            let known = lines.entry(line).or_default();
            known.0 += sample.nanoseconds;
            known.1 += sample.instructions;
        }
        let mean = all.checked_div(self.runs).unwrap_or(0);
        let runs = crate::count(self.runs as usize, "run");
        let mut out = format!("{runs}, {mean} ns a run in the checked engine\n\n");
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort_by_key(|(frame, counts)| (std::cmp::Reverse(*counts), *frame));
        let mut table = Table::new(&[
            ("time (us)", Side::Right),
            ("share", Side::Right),
            ("instructions", Side::Right),
            ("place", Side::Left),
            ("line", Side::Left),
        ]);
        let microseconds = |time: u64| format!("{:.1}", time as f64 / 1000.0);
        for (frame, (time, count)) in lines {
            let text = frame.text.clone().unwrap_or_default();
            let (share, place) = (percent(time), frame.to_string());
            table.row([microseconds(time), share, count.to_string(), place, text]);
        }
        table.write(&mut out, ROWS, "; --profile pprof=FILE has all");
        if !helpers.is_empty() {
            let mut helpers: Vec<_> = helpers.into_iter().collect();
            helpers.sort_by_key(|(name, counts)| (std::cmp::Reverse(*counts), *name));
            let mut table = Table::new(&[
                ("time (us)", Side::Right),
                ("share", Side::Right),
                ("calls", Side::Right),
                ("helper", Side::Left),
            ]);
            for (name, (time, calls)) in helpers {
                let share = percent(time);
                table.row([
                    microseconds(time),
                    share,
                    calls.to_string(),
                    name.to_owned(),
                ]);
            }
            out.push('\n');
            table.write(&mut out, ROWS, "");
        }
        out
    }

    /// Folded stacks: a line for each chain of calls, frames between semicolons, and its instructions.
    pub fn folded(&self) -> String {
        let mut out = String::new();
        for sample in self.samples.iter().filter(|it| it.instructions > 0) {
            let frames: Vec<String> = sample.stack.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "{} {}", frames.join(";"), sample.instructions);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(function: &str, line: u32) -> ProfileFrame {
        ProfileFrame {
            function: function.to_owned(),
            file: Some("a.c".to_owned()),
            line: Some(line),
            text: Some("text".to_owned()),
        }
    }

    fn profile() -> Profile {
        let sample = |stack: &[ProfileFrame], instructions, calls| ProfileSample {
            stack: stack.to_vec(),
            instructions,
            calls,
            nanoseconds: 1000 * instructions + 4000 * calls,
        };
        let (main, inner) = (frame("main", 3), frame("inner", 9));
        let helper = ProfileFrame::of_helper("bpf_map_lookup_elem");
        let mut profile = Profile {
            runs: 2,
            least: 5,
            most: 9,
            samples: vec![
                sample(std::slice::from_ref(&main), 4, 0),
                sample(&[main.clone(), inner.clone()], 10, 0),
                sample(&[main.clone(), inner, helper], 0, 2),
                sample(&[main], 0, 0),
            ],
        };
        profile.merge_equal();
        profile
    }

    #[test]
    fn functions_have_what_they_call() {
        let text = profile().text();
        assert!(text.starts_with("2 runs, 14 instructions: 7 a run, from 5 to 9\n"));
        let has = |row: &[&str]| {
            text.lines()
                .any(|line| line.split_whitespace().collect::<Vec<_>>() == row)
        };
        assert!(has(&["14", "4", "100.0", "%", "main"]), "{text}");
        assert!(has(&["10", "10", "71.4", "%", "inner"]), "{text}");
        assert!(
            has(&["2", "bpf_map_lookup_elem", "inner", "(a.c:9)"]),
            "{text}"
        );
    }

    #[test]
    fn lines_have_the_time_of_their_helpers() {
        let text = profile().times_text();
        assert!(text.starts_with("2 runs, 11000 ns a run"), "{text}");
        let has = |row: &[&str]| {
            let mut lines = text.lines();
            lines.any(|line| line.split_whitespace().collect::<Vec<_>>() == row)
        };
        let inner = ["18.0", "81.8", "%", "10", "inner", "(a.c:9)", "text"];
        assert!(has(&inner), "{text}");
        let helper = ["8.0", "36.4", "%", "2", "bpf_map_lookup_elem"];
        assert!(has(&helper), "{text}");
    }

    #[test]
    fn stacks_are_folded() {
        assert_eq!(
            profile().folded(),
            "main (a.c:3) 4\nmain (a.c:3);inner (a.c:9) 10\n"
        );
    }

    #[test]
    fn speedscope_has_weights_of_all_instructions() {
        let value: serde_json::Value = serde_json::from_str(&speedscope(&profile())).expect("JSON");
        let weights = value["profiles"][0]["weights"].as_array().expect("weights");
        let sum: u64 = weights.iter().filter_map(serde_json::Value::as_u64).sum();
        assert_eq!(sum, 14);
        assert_eq!(value["profiles"][0]["endValue"], 14);
    }
}
