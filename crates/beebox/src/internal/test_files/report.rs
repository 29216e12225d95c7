//! The results of tests, as text, JSON and JUnit's XML.

use std::fmt::Write;

use report::run::{FAILED, PASSED};
use report::xml::escaped_lines;
use serde_json::{Value, json};

use super::{TestFile, TestOutcome};
use crate::coverage::Coverage;

/// What came of tests.
pub struct TestResults {
    /// Each test, in the order of the files.
    pub outcomes: Vec<TestOutcome>,
    /// What they executed, if that was counted.
    pub coverage: Coverage,
}

/// Files and names of the tests that are chosen.
fn chosen(files: &[TestFile]) -> impl Iterator<Item = (String, &String)> {
    files.iter().flat_map(|file| {
        let tests = file.tests.iter().filter(|test| test.is_chosen);
        tests.map(move |test| (file.path.display().to_string(), &test.name))
    })
}

/// The names of tests, one a line.
pub fn list_text(files: &[TestFile]) -> String {
    let lines = chosen(files).map(|(file, name)| format!("{file}: {name}\n"));
    lines.collect()
}

/// The names of tests as data.
pub fn list_json(files: &[TestFile]) -> Value {
    let tests = chosen(files).map(|(file, name)| json!({ "file": file, "test": name }));
    json!({ "tests": tests.collect::<Vec<_>>() })
}

impl TestResults {
    /// Number of tests that do not pass.
    pub fn failed(&self) -> usize {
        let outcomes = self.outcomes.iter();
        outcomes.filter(|it| !it.report.is_met()).count()
    }

    /// For people, with styles for a terminal.
    pub fn text(&self) -> String {
        text(&self.outcomes, self.failed())
    }

    /// As data; `plain` takes the styles of a text out.
    pub fn json(&self, plain: &dyn Fn(&str) -> String) -> Value {
        record(&self.outcomes, self.failed(), plain)
    }

    /// XML of JUnit, with a test case for each test.
    pub fn junit(&self, plain: &dyn Fn(&str) -> String) -> String {
        junit(&self.outcomes, self.failed(), plain)
    }
}

fn text(outcomes: &[TestOutcome], failed: usize) -> String {
    let mut out = String::new();
    for TestOutcome {
        file,
        name,
        report,
        why,
        ..
    } in outcomes
    {
        let label = if report.is_model { " (model)" } else { "" };
        let (style, outcome) = match report.is_met() {
            true => (PASSED, "ok  "),
            false => (FAILED, "FAIL"),
        };
        let _ = writeln!(out, "{style}{outcome}{style:#}  {file}: {name}{label}");
        out.push_str(&indented(&report.differences_text()));
        if let Some(why) = why {
            out.push_str(&indented(why));
        }
    }
    let all = report::count(outcomes.len(), "test");
    let _ = match failed {
        0 => writeln!(out, "{PASSED}{all} passed{PASSED:#}"),
        failed => writeln!(out, "{FAILED}{failed} of {all} failed{FAILED:#}"),
    };
    out
}

fn indented(text: &str) -> String {
    let lines = text.lines().map(|line| match line {
        "" => "\n".to_owned(),
        line => format!("      {line}\n"),
    });
    lines.collect()
}

fn record(outcomes: &[TestOutcome], failed: usize, plain: &dyn Fn(&str) -> String) -> Value {
    let tests = outcomes.iter().map(|it| {
        let report = serde_json::to_value(&it.report).unwrap_or_default();
        let mut test = json!({
            "file": it.file,
            "test": it.name,
            "passed": it.report.is_met(),
            "model": it.report.is_model,
            "seconds": it.time.as_secs_f64(),
            "runs": it.report.runs,
            "expectations": it.report.expectations.len(),
            "differences": report["differences"],
        });
        if let Some(why) = &it.why {
            test["why_text"] = json!(plain(why));
        }
        test
    });
    json!({ "tests": tests.collect::<Vec<_>>(), "failed": failed })
}

fn junit(outcomes: &[TestOutcome], failed: usize, plain: &dyn Fn(&str) -> String) -> String {
    let tests = outcomes.len();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{tests}\" \
         failures=\"{failed}\">\n"
    );
    for of_file in outcomes.chunk_by(|one, other| one.file == other.file) {
        let failed = of_file.iter().filter(|it| !it.report.is_met()).count();
        let time: f64 = of_file.iter().map(|it| it.time.as_secs_f64()).sum();
        let file = xml(&of_file[0].file);
        let tests = of_file.len();
        let _ = writeln!(
            out,
            "<testsuite name=\"{file}\" tests=\"{tests}\" failures=\"{failed}\" errors=\"0\" \
             time=\"{time:.6}\">"
        );
        for it in of_file {
            let (name, time) = (xml(&it.name), it.time.as_secs_f64());
            let _ = write!(
                out,
                "<testcase classname=\"{file}\" name=\"{name}\" time=\"{time:.6}\""
            );
            let _ = match it.report.is_met() {
                true => writeln!(out, "/>"),
                false => {
                    let text = it.report.differences_text();
                    let first = text.lines().nth(1).unwrap_or_default().trim();
                    let why = it.why.as_deref().map(plain).unwrap_or_default();
                    let (first, text) = (xml(first), xml(&format!("{text}{why}")));
                    writeln!(
                        out,
                        "><failure message=\"{first}\">{text}</failure></testcase>"
                    )
                }
            };
        }
        out.push_str("</testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// Text in XML.
fn xml(text: &str) -> String {
    escaped_lines(text, "\n")
}
