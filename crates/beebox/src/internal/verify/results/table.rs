//! Results for people, with logs, explanations, costs and facts in front.

use std::fmt::Write as _;

use report::terminal::fold;
use report::veristat::{Column, Emit, ResultVerdict, push_columns, push_columns_within};

use super::{Row, with_heading, write_top_lines};

/// Numbers of programs by verdict, of all that were verified.
pub struct Counts {
    accepted: usize,
    refused: usize,
    unsupported: usize,
}

impl Counts {
    /// Counts the verdicts of rows.
    pub fn of(rows: &[Row]) -> Counts {
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        Counts {
            accepted: count(ResultVerdict::Success),
            refused: count(ResultVerdict::Failure),
            unsupported: count(ResultVerdict::Unsupported),
        }
    }
}

/// Columns of text, in lines of at most `width` columns, with the logs of programs that have one in
/// front; rows may be fewer than the counts say.
pub fn table(rows: &[Row], emit: &Emit, counts: &Counts, width: Option<usize>) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.log.is_empty()) {
        let name = format!("{}/{}", row.file_name, row.prog_name);
        let (verdict, left_out) = (row.verdict.name(), row.log_left_out);
        text.push_str(&with_heading(&name, verdict, &row.log, left_out));
    }
    let log_end = text.len();
    for row in rows {
        if let Some(explanation) = &row.explanation {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}/{}", row.file_name, row.prog_name);
            text.push_str(&explanation.text);
            if let Some(hint) = hint_of(&explanation.data) {
                let _ = writeln!(text, "try: {hint}");
            }
            text.push('\n');
        }
        if let Some(cost) = &row.cost {
            let _ = writeln!(text, "{}/{}", row.file_name, row.prog_name);
            cost.write(&mut text);
        }
        if let Some(facts) = &row.facts {
            let _ = writeln!(text, "{}/{}", row.file_name, row.prog_name);
            facts.write(&mut text);
        }
    }
    for row in rows.iter().filter(|row| !row.top_lines.is_empty()) {
        write_top_lines(&mut text, &row.prog_name, &row.top_lines);
    }
    if let Some(width) = width {
        let folded = fold(&text[log_end..], width);
        text.replace_range(log_end.., &folded);
    }
    let columns = emit.columns().unwrap_or(Column::SHOWN);
    let headings = columns.iter().map(|column| column.heading().to_owned());
    let mut cells: Vec<Vec<String>> = vec![headings.collect()];
    for row in rows {
        cells.push(columns.iter().map(|&column| row.text(column)).collect());
    }
    match width {
        None => push_columns(&mut text, columns, &cells),
        Some(width) => {
            let mut results = String::new();
            let may_omit = emit.columns().is_none();
            push_columns_within(&mut results, columns, &cells, width, may_omit);
            text.push_str(&fold(&results, width));
        }
    }
    for row in rows {
        text.extend(
            row.recorded
                .iter()
                .map(|agreement| format!("{}: {agreement}\n", row.file_name)),
        );
    }
    let Counts {
        accepted,
        refused,
        unsupported,
    } = counts;
    let _ = writeln!(
        text,
        "{accepted} accepted, {refused} refused, {unsupported} unsupported"
    );
    text
}

/// The option or command that helps with the cause of a refusal.
fn hint_of(explanation: &serde_json::Value) -> Option<&'static str> {
    Some(match explanation.get("cause")?.as_str()? {
        "core-relocation" => "beebox dis, which names the field",
        "too-complex" => "--cost, the cost of each source line",
        _ => return None,
    })
}
