//! Coverage as JSON: counts of each file and of all, and what was missed.

use serde_json::{Map, Value, json};

use super::{Coverage, FileCoverage, Totals};

/// The record of `beebox coverage`.
pub fn coverage_json(coverage: &Coverage) -> Value {
    let files = coverage.files.iter().map(|(name, file)| {
        let mut record = Map::new();
        record.insert("file".to_owned(), json!(name));
        record.extend(counts(file.totals()));
        record.insert("missed_lines".to_owned(), missed_lines(file));
        record.insert("missed_functions".to_owned(), missed_functions(file));
        Value::Object(record)
    });
    let files: Vec<Value> = files.collect();
    let mut record = counts(coverage.totals());
    record.insert("files".to_owned(), json!(files));
    Value::Object(record)
}

fn counts(totals: Totals) -> Map<String, Value> {
    let counts = [
        ("line_count", totals.lines.found),
        ("executed_line_count", totals.lines.hit),
        ("branch_count", totals.branches.found),
        ("executed_branch_count", totals.branches.hit),
        ("function_count", totals.functions.found),
        ("executed_function_count", totals.functions.hit),
        ("unreachable_line_count", totals.unreachable),
    ];
    let counts = counts.into_iter();
    counts
        .map(|(key, count)| (key.to_owned(), json!(count)))
        .collect()
}

/// Numbers of lines that no run executed, of those that a run can reach.
fn missed_lines(file: &FileCoverage) -> Value {
    let lines = file.lines.iter();
    let lines = lines.filter(|(_, line)| line.is_reachable && line.count == 0);
    lines.map(|(number, _)| json!(number)).collect()
}

/// Names of functions that no run entered, of those that a run can reach.
fn missed_functions(file: &FileCoverage) -> Value {
    let functions = file.functions.iter();
    let functions = functions.filter(|(_, function)| function.is_reachable && function.count == 0);
    functions.map(|(name, _)| json!(name)).collect()
}
