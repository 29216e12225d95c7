//! The source lines that a log names most often: veristat's `-S`.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

/// A source line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct TopLine {
    /// Number of times that the log names it.
    count: u64,
    /// `FILE:LINE`, if the log says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<String>,
    /// Its text.
    text: String,
}

/// The lines that a log names most often, most frequent first and equal ones by their
/// text.
pub(super) fn of_log(log: &str, most: usize) -> Vec<TopLine> {
    let mut counts: HashMap<&str, u64> = HashMap::new();
    for line in log.lines().filter_map(|line| line.strip_prefix("; ")) {
        *counts.entry(line).or_default() += 1;
    }
    let mut lines: Vec<(&str, u64)> = counts.into_iter().collect();
    lines.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    lines.truncate(most);
    let line = |(line, count): (&str, u64)| match line.rsplit_once('@') {
        Some((text, place)) => TopLine {
            count,
            place: Some(place.trim_start().to_owned()),
            text: text.trim_end().to_owned(),
        },
        None => TopLine {
            count,
            place: None,
            text: line.to_owned(),
        },
    };
    lines.into_iter().map(line).collect()
}

/// Writes the lines of a program.
pub(super) fn write(out: &mut String, program: &str, lines: &[TopLine]) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Top source lines ({program}):");
    for line in lines {
        let _ = match &line.place {
            Some(place) => writeln!(out, "{:5}: ({place})\t{}", line.count, line.text),
            None => writeln!(out, "{:5}: {}", line.count, line.text),
        };
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_and_sorted() {
        let log = "func#0 @0\n; b(); @ a.c:2\n1: (95) exit\n; a(); @ a.c:1\n; a(); @ a.c:1\n; c\n";
        let mut text = String::new();
        write(&mut text, "p", &of_log(log, 2));
        assert_eq!(
            text,
            "Top source lines (p):\n    2: (a.c:1)\ta();\n    1: (a.c:2)\tb();\n\n"
        );
        assert_eq!(of_log(log, 9).len(), 3);
        assert!(of_log("", 9).is_empty());
    }
}
