//! Differences from an expectation file, as text, JSON and JUnit's XML.

use std::fmt::Write as _;

use beebox::run::UnwrittenRead;
use serde_json::{Value, json};

use super::output::{not_native_line, one_line};
use super::unwritten;

/// All results of a file.
pub(super) struct Report {
    pub(super) file: String,
    /// A program that runs in the checked engine since native code does not support it, and what
    /// is not supported.
    pub(super) not_native: Option<(String, String)>,
    /// Reads of stack memory that programs never wrote.
    pub(super) unwritten: Vec<UnwrittenRead>,
    pub(super) runs: usize,
    pub(super) checked: Vec<Checked>,
}

/// An expectation that was checked.
pub(super) struct Checked {
    pub(super) line: usize,
    pub(super) text: String,
    /// The last run before it: its number and program.
    pub(super) run: Option<(usize, String)>,
    pub(super) difference: Option<Difference>,
    /// Members that the expected value leaves out, which may have any value.
    pub(super) left_out: Vec<String>,
}

/// A difference in one line, and the bytes around it.
pub(super) struct Difference {
    pub(super) what: String,
    pub(super) excerpt: String,
}

impl From<String> for Difference {
    fn from(what: String) -> Difference {
        let excerpt = String::new();
        Difference { what, excerpt }
    }
}

impl Report {
    /// True if nothing differs.
    pub(super) fn is_met(&self) -> bool {
        self.checked
            .iter()
            .all(|checked| checked.difference.is_none())
    }

    fn differing(&self) -> usize {
        let differing = self
            .checked
            .iter()
            .filter(|checked| checked.difference.is_some());
        differing.count()
    }

    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if let Some((program, what)) = &self.not_native {
            let _ = writeln!(text, "{program}: {}", not_native_line(what));
        }
        for checked in &self.checked {
            let Some(difference) = &checked.difference else {
                continue;
            };
            let run = match &checked.run {
                Some((number, program)) => format!("run {number} ({program}): "),
                None => String::new(),
            };
            let _ = writeln!(
                text,
                "{}:{}: {}\n  {run}{}",
                self.file,
                checked.line,
                checked.text,
                one_line(&difference.what)
            );
            text.push_str(&difference.excerpt);
        }
        let (all, runs) = (self.checked.len(), self.runs);
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let runs = format!("{runs} run{}", plural(runs));
        let _ = match self.differing() {
            0 => write!(text, "{all} expectation{} met, {runs}", plural(all)),
            some => write!(text, "{some} of {all} expectations not met, {runs}"),
        };
        let _ = match self.leaving_out().count() {
            0 => writeln!(text),
            1 => writeln!(text, "; 1 leaves members out"),
            some => writeln!(text, "; {some} leave members out"),
        };
        text
    }

    /// The expectations whose values leave members out.
    fn leaving_out(&self) -> impl Iterator<Item = &Checked> {
        let checked = self.checked.iter();
        checked.filter(|checked| !checked.left_out.is_empty())
    }

    pub(super) fn record(&self) -> Value {
        let differences = self.checked.iter().filter_map(|checked| {
            let difference = checked.difference.as_ref()?;
            Some(json!({
                "line": checked.line,
                "expectation": checked.text,
                "run": checked.run.as_ref().map(|(number, _)| number),
                "prog": checked.run.as_ref().map(|(_, program)| program),
                "difference": difference.what,
            }))
        });
        let left_out = self.leaving_out();
        let left_out =
            left_out.map(|checked| json!({ "line": checked.line, "members": checked.left_out }));
        let not_native = self.not_native.as_ref();
        let not_native = not_native.map(|(program, what)| json!({ "prog": program, "what": what }));
        json!({
            "file": self.file,
            "not_native": not_native,
            "unwritten_stack_reads": unwritten::record(&self.unwritten),
            "runs": self.runs,
            "expectations": self.checked.len(),
            "differences": differences.collect::<Value>(),
            "left_out": left_out.collect::<Value>(),
        })
    }

    /// JUnit's XML, a test case for each expectation.
    pub(super) fn junit(&self) -> String {
        let (tests, failures) = (self.checked.len(), self.differing());
        let file = xml(&self.file);
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites tests=\"{tests}\" failures=\"{failures}\">\n\
             <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n"
        );
        for checked in &self.checked {
            let class = match &checked.run {
                Some((number, program)) => format!("run {number} ({program})"),
                None => "maps".to_owned(),
            };
            let name = xml(&format!("line {}: {}", checked.line, checked.text));
            let _ = write!(
                text,
                "<testcase classname=\"{}\" name=\"{name}\"",
                xml(&class)
            );
            let mut inside = String::new();
            if let Some(difference) = &checked.difference {
                let (what, excerpt) = (xml(&difference.what), xml(&difference.excerpt));
                let _ = write!(inside, "<failure message=\"{what}\">{excerpt}</failure>");
            }
            if !checked.left_out.is_empty() {
                let members = xml(&checked.left_out.join(", "));
                let _ = write!(inside, "<system-out>left out: {members}</system-out>");
            }
            let _ = match inside.is_empty() {
                true => writeln!(text, "/>"),
                false => writeln!(text, ">{inside}</testcase>"),
            };
        }
        text += "</testsuite>\n</testsuites>\n";
        text
    }
}

/// Text in XML; characters that XML does not have are replaced.
fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\n' => escaped += "&#10;",
            '\t' => escaped.push(character),
            character if character.is_control() => escaped.push('\u{fffd}'),
            character => escaped.push(character),
        }
    }
    escaped
}
