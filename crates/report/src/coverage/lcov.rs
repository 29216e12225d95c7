//! The tracefile of lcov. Lines that no run can reach, and their texts, are comments (`#beebox:`), which
//! lcov skips, so that files merge without loss.

use std::fmt::{self, Write};

use super::{BranchCoverage, BranchPlace, Coverage, FileCoverage, FunctionCoverage, LineCoverage};

/// The tracefile.
pub(super) fn lcov(coverage: &Coverage) -> String {
    let mut out = String::new();
    for (name, file) in &coverage.files {
        let _ = write!(out, "TN:\nSF:{name}\n");
        write_file(&mut out, file);
        out.push_str("end_of_record\n");
    }
    out
}

fn write_file(out: &mut String, file: &FileCoverage) {
    let totals = file.totals();
    let reachable = || {
        let functions = file.functions.iter();
        functions.filter(|(_, function)| function.is_reachable)
    };
    for (name, function) in reachable() {
        let _ = writeln!(out, "FN:{},{name}", function.line);
    }
    for (name, function) in reachable() {
        let _ = writeln!(out, "FNDA:{},{name}", function.count);
    }
    for (name, function) in &file.functions {
        if !function.is_reachable {
            let _ = writeln!(out, "#beebox:dead-function:{},{name}", function.line);
        }
    }
    let functions = totals.functions;
    let _ = writeln!(out, "FNF:{}\nFNH:{}", functions.found, functions.hit);
    for (place, branch) in &file.branches {
        let line = file.lines.get(&place.line);
        let is_executed = line.is_some_and(|line| line.count > 0);
        for (way, count) in branch.ways() {
            let BranchPlace {
                line,
                column,
                number,
            } = place;
            let way = 2 * number + way;
            let _ = match is_executed {
                true => writeln!(out, "BRDA:{line},{column},{way},{count}"),
                false => writeln!(out, "BRDA:{line},{column},{way},-"),
            };
        }
    }
    let branches = totals.branches;
    let _ = writeln!(out, "BRF:{}\nBRH:{}", branches.found, branches.hit);
    for (number, line) in &file.lines {
        let _ = match line.is_reachable {
            true => writeln!(out, "DA:{number},{}", line.count),
            false => writeln!(out, "#beebox:dead-line:{number}"),
        };
    }
    for (number, text) in &file.texts {
        let _ = writeln!(out, "#beebox:text:{number},{text}");
    }
    let lines = totals.lines;
    let _ = writeln!(out, "LF:{}\nLH:{}", lines.found, lines.hit);
}

/// Why a tracefile cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LcovFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for LcovFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl std::error::Error for LcovFault {}

/// Reads a tracefile. Records that are no lines, branches or functions are skipped.
///
/// # Errors
/// For records that are not as lcov writes them.
pub fn read_lcov(text: &str) -> Result<Coverage, LcovFault> {
    let mut coverage = Coverage::default();
    let mut name: Option<String> = None;
    let mut has_records = false;
    for (number, line) in text.lines().enumerate() {
        let fault = |what: String| LcovFault {
            line: number + 1,
            what,
        };
        let (tag, rest) = line.split_once(':').unwrap_or((line, ""));
        let (tag, rest) = match (tag, rest.split_once(':')) {
            ("#beebox", Some((tag, rest))) => (tag, rest),
            _ => (tag, rest),
        };
        has_records |= tag == "SF";
        match tag {
            "SF" => {
                coverage.files.entry(rest.to_owned()).or_default();
                name = Some(rest.to_owned());
            }
            "end_of_record" => name = None,
            "DA" | "BRDA" | "FN" | "FNDA" | "dead-line" | "dead-function" | "text" => {
                let Some(file) = name.as_ref().and_then(|name| coverage.files.get_mut(name)) else {
                    return Err(fault(format!("{tag} stands outside of a file (SF:)")));
                };
                read_record(file, tag, rest).map_err(|form| {
                    fault(format!("{line:?} is no record of lcov: {form} is expected"))
                })?;
            }
            _ => {}
        }
    }
    match has_records {
        true => Ok(coverage),
        false => Err(LcovFault {
            line: 1,
            what: "it is no tracefile of lcov: it has no file (SF:)".to_owned(),
        }),
    }
}

/// Reads a record; the error is its form.
fn read_record(file: &mut FileCoverage, tag: &str, rest: &str) -> Result<(), &'static str> {
    let fields: Vec<&str> = rest.split(',').collect();
    match tag {
        "DA" => {
            let form = "DA:LINE,COUNT";
            let (line, count) = match fields[..] {
                [line, count, ..] => (line.parse(), count.parse()),
                _ => return Err(form),
            };
            let line = line.map_err(|_| form)?;
            let count = count.map_err(|_| form)?;
            let line_coverage = LineCoverage {
                count,
                is_reachable: true,
            };
            file.add_line(line, line_coverage);
        }
        "BRDA" => {
            let form = "BRDA:LINE,BLOCK,BRANCH,TAKEN";
            let [line, block, branch, taken] = fields[..] else {
                return Err(form);
            };
            let number = |text: &str| text.parse::<u32>().map_err(|_| form);
            // lcov marks blocks of exceptions by a letter.
            let column = number(block.trim_start_matches('e'))?;
            let way = number(branch)?;
            let count = match taken {
                "-" => 0,
                taken => taken.parse().map_err(|_| form)?,
            };
            let place = BranchPlace {
                line: number(line)?,
                column,
                number: way / 2,
            };
            let coverage = match way % 2 {
                0 => BranchCoverage {
                    jumped: Some(count),
                    fell: None,
                },
                _ => BranchCoverage {
                    jumped: None,
                    fell: Some(count),
                },
            };
            file.add_branch(place, coverage);
        }
        "FN" | "dead-function" => {
            let form = "FN:LINE,NAME";
            let (line, name) = rest.split_once(',').ok_or(form)?;
            // lcov 2 puts the last line between them.
            let name = match name.split_once(',') {
                Some((end, name)) if end.parse::<u32>().is_ok() => name,
                _ => name,
            };
            let function = FunctionCoverage {
                line: line.parse().map_err(|_| form)?,
                count: 0,
                is_reachable: tag == "FN",
            };
            file.add_function(name, function);
        }
        "FNDA" => {
            let form = "FNDA:COUNT,NAME";
            let (count, name) = rest.split_once(',').ok_or(form)?;
            let count: u64 = count.parse().map_err(|_| form)?;
            let function = file.functions.get_mut(name).ok_or("FN before FNDA")?;
            function.count = function.count.saturating_add(count);
        }
        "dead-line" => {
            let line = rest.parse().map_err(|_| "#beebox:dead-line:LINE")?;
            file.add_line(line, LineCoverage::default());
        }
        _ => {
            let form = "#beebox:text:LINE,TEXT";
            let (line, text) = rest.split_once(',').ok_or(form)?;
            let line = line.parse().map_err(|_| form)?;
            file.texts.insert(line, text.to_owned());
        }
    }
    Ok(())
}
