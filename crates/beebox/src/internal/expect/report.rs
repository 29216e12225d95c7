//! The results of an expectation file, as text, JSON and XML of JUnit.

use std::fmt::{self, Write as _};

use report::run::{not_native_line, one_line};
use report::xml::escaped_lines;
use serde::ser::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::internal::maps_json::LeftOut;
use crate::internal::run::{RunError, UnwrittenRead};

/// The results of an expectation file. Its text ([`Display`](fmt::Display)) has the differences and
/// a line that counts; its JSON ([`Serialize`]) is that of `beebox run --expect --format json`.
#[derive(Clone, Debug)]
pub struct CheckReport {
    /// Name of the file.
    pub file: String,
    /// The first program that runs in the checked engine since native code does not support it,
    /// and what is not supported.
    pub fallback_reason: Option<(String, String)>,
    /// Reads of stack memory that programs never wrote.
    #[doc(hidden)]
    pub unwritten: Vec<UnwrittenRead>,
    /// Programs run in a model of the kernel, not as Linux runs them.
    pub is_model: bool,
    /// Number of `run`, `capture` and `iterate` statements.
    pub runs: usize,
    /// The expectations in the order of the file, and runs that did not end with a value.
    pub expectations: Vec<CheckedExpectation>,
    /// Members of keys and values that were stored or looked up and that the file leaves out,
    /// which are 0.
    pub zeroed: Vec<LeftOut>,
}

/// An expectation that was checked, or a run that did not end with a value.
#[derive(Clone, Debug)]
pub struct CheckedExpectation {
    /// Its line, from 1.
    pub line: usize,
    /// The line as written, without blanks around it, or the text that an inserted run was given.
    pub text: String,
    /// The last run before it: its number from 1, and its program.
    pub run: Option<(usize, String)>,
    /// The difference, if it is not met.
    pub difference: Option<ExpectDifference>,
    /// Members that the expected value leaves out, which may have any value.
    pub left_out: Vec<String>,
}

/// What differs from an expectation.
#[derive(Clone, Debug)]
pub struct ExpectDifference {
    /// The difference in one line.
    pub what: String,
    /// The bytes around it, in lines that end with line feeds; may be empty.
    pub excerpt: String,
    /// The error of a run that did not end with a value: a limit or a trap.
    #[doc(hidden)]
    pub stopped: Option<RunError>,
    /// The packet of a capture that shows it first: its number, and the options of `beebox run OBJECT`
    /// that tell its run.
    #[doc(hidden)]
    pub shown_by: Option<(u64, String)>,
}

impl From<String> for ExpectDifference {
    fn from(what: String) -> ExpectDifference {
        let excerpt = String::new();
        ExpectDifference {
            what,
            excerpt,
            stopped: None,
            shown_by: None,
        }
    }
}

impl CheckReport {
    /// True if nothing differs.
    pub fn is_met(&self) -> bool {
        self.expectations
            .iter()
            .all(|checked| checked.difference.is_none())
    }

    fn differing(&self) -> usize {
        let differing = self
            .expectations
            .iter()
            .filter(|checked| checked.difference.is_some());
        differing.count()
    }

    /// The differences, in lines.
    #[doc(hidden)]
    pub fn differences_text(&self) -> String {
        let mut text = String::new();
        for checked in &self.expectations {
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
            if let Some((packet, why)) = &difference.shown_by {
                let _ = writeln!(text, "  packet {packet} is the first: {why}");
            }
        }
        text
    }

    fn text(&self) -> String {
        let mut text = String::new();
        if let Some((program, what)) = &self.fallback_reason {
            let _ = writeln!(text, "{program}: {}", not_native_line(what));
        }
        text.push_str(&self.differences_text());
        let (all, runs) = (self.expectations.len(), self.runs);
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
    fn leaving_out(&self) -> impl Iterator<Item = &CheckedExpectation> {
        let checked = self.expectations.iter();
        checked.filter(|checked| !checked.left_out.is_empty())
    }

    fn record(&self) -> Value {
        let differences = self.expectations.iter().filter_map(|checked| {
            let difference = checked.difference.as_ref()?;
            let mut record = json!({
                "line": checked.line,
                "expectation": checked.text,
                "run": checked.run.as_ref().map(|(number, _)| number),
                "prog": checked.run.as_ref().map(|(_, program)| program),
                "difference": difference.what,
            });
            if let Some((packet, why)) = &difference.shown_by {
                record["packet"] = json!(packet);
                record["why"] = json!(why);
            }
            Some(record)
        });
        let left_out = self.leaving_out();
        let left_out = left_out
            .map(|checked| json!({ "line": checked.line, "member_names": checked.left_out }));
        let fallback = self.fallback_reason.as_ref();
        let fallback = fallback.map(|(program, what)| json!({ "prog": program, "reason": what }));
        json!({
            "file": self.file,
            "fallback": fallback,
            "unwritten_stack_reads": self.unwritten,
            "runs": self.runs,
            "expectations": self.expectations.len(),
            "differences": differences.collect::<Value>(),
            "left_out": left_out.collect::<Value>(),
        })
    }

    /// XML of JUnit, with a test case for each expectation.
    pub fn junit(&self) -> String {
        let (tests, failures) = (self.expectations.len(), self.differing());
        let file = xml(&self.file);
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites tests=\"{tests}\" failures=\"{failures}\">\n\
             <testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n"
        );
        for checked in &self.expectations {
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
                let mut excerpt = difference.excerpt.clone();
                if let Some((packet, why)) = &difference.shown_by {
                    let _ = writeln!(excerpt, "packet {packet} is the first: {why}");
                }
                let (what, excerpt) = (xml(&difference.what), xml(&excerpt));
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

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl Serialize for CheckReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.record().serialize(serializer)
    }
}

/// Text in XML.
fn xml(text: &str) -> String {
    escaped_lines(text, "&#10;")
}
