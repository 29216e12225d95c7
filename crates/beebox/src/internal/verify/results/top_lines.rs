//! The source lines that a log names most often: veristat's `-S`.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

/// A source line of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopLine {
    /// Number of times that the log names it.
    count: u64,
    /// The file and the number of the line in it, if the log says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    /// Its text.
    text: String,
}

/// Counts of the source lines of a log.
#[derive(Default)]
pub(super) struct TopLines {
    counts: HashMap<String, u64>,
    /// A line whose end is not known.
    begun: String,
}

impl TopLines {
    /// Counts the lines of the next piece of the log.
    pub(super) fn write(&mut self, text: &str) {
        self.begun.push_str(text);
        let Some(end) = self.begun.rfind('\n') else {
            return;
        };
        let lines = self.begun[..end].lines();
        for line in lines.filter_map(|line| line.strip_prefix("; ")) {
            match self.counts.get_mut(line) {
                Some(count) => *count += 1,
                None => drop(self.counts.insert(line.to_owned(), 1)),
            }
        }
        self.begun.drain(..=end);
    }

    /// The lines that the log names most often, most frequent first and equal ones by their
    /// text.
    pub(super) fn finish(mut self, most: usize) -> Vec<TopLine> {
        self.write("\n");
        let mut lines: Vec<(String, u64)> = self.counts.into_iter().collect();
        lines.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
        lines.truncate(most);
        // `TEXT @ FILE:LINE`.
        let line = |(line, count): (String, u64)| {
            let parts = line.rsplit_once('@').and_then(|(text, place)| {
                let (file, line) = place.trim_start().rsplit_once(':')?;
                Some((text.trim_end(), file.to_owned(), line.parse().ok()?))
            });
            match parts {
                Some((text, file, line)) => TopLine {
                    count,
                    file: Some(file),
                    line: Some(line),
                    text: text.to_owned(),
                },
                None => TopLine {
                    count,
                    file: None,
                    line: None,
                    text: line,
                },
            }
        };
        lines.into_iter().map(line).collect()
    }
}

/// The lines that a log names most often.
pub(super) fn of_log(log: &str, most: usize) -> Vec<TopLine> {
    let mut lines = TopLines::default();
    lines.write(log);
    lines.finish(most)
}

/// Writes the lines of a program.
pub fn write_top_lines(out: &mut String, program: &str, lines: &[TopLine]) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Top source lines ({program}):");
    for line in lines {
        let _ = match (&line.file, line.line) {
            (Some(file), Some(number)) => {
                writeln!(out, "{:5}: ({file}:{number})\t{}", line.count, line.text)
            }
            _ => writeln!(out, "{:5}: {}", line.count, line.text),
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
        write_top_lines(&mut text, "p", &of_log(log, 2));
        assert_eq!(
            text,
            "Top source lines (p):\n    2: (a.c:1)\ta();\n    1: (a.c:2)\tb();\n\n"
        );
        assert_eq!(of_log(log, 9).len(), 3);
        assert!(of_log("", 9).is_empty());
    }
}
