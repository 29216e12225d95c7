//! The results of tests, as text, JSON and JUnit's XML.

use std::fmt::Write;

use report::json::pretty;
use report::run::{FAILED, PASSED};
use serde_json::{Value, json};

use super::files::TestFile;
use super::run::TestOutcome;
use super::{Args, TestFormat};
use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::output_path::OutputPath;
use crate::stdout::{plain, write_answer, write_folded, write_output};

/// Prints the names of the tests.
pub(super) fn list(
    args: &Args,
    files: &[TestFile],
    output: Option<OutputPath<'_>>,
) -> Result<Answer, Failure> {
    let tests = files.iter().flat_map(|file| {
        let tests = file.tests.iter().filter(|test| test.is_chosen);
        tests.map(move |test| (file.path.display().to_string(), &test.name))
    });
    match args.format() {
        TestFormat::Text => {
            let lines = tests.map(|(file, name)| format!("{file}: {name}\n"));
            write_answer(AnswerFormat::Text, lines.collect::<String>(), output)?;
        }
        TestFormat::Json => {
            let tests = tests.map(|(file, name)| json!({ "file": file, "test": name }));
            let tests = json!({ "tests": tests.collect::<Vec<_>>() });
            write_answer(AnswerFormat::Json, pretty(&tests), output)?;
        }
        TestFormat::Junit => {
            let failure = Failure::new("--format junit has results, and --list runs nothing");
            return Err(failure.hint("--format json"));
        }
    }
    Ok(Answer::Yes)
}

/// Prints what came of tests.
pub(super) fn print(
    args: &Args,
    outcomes: &[TestOutcome],
    output: Option<OutputPath<'_>>,
) -> Result<Answer, Failure> {
    let failed = outcomes.iter().filter(|it| !it.report.is_met()).count();
    match args.format() {
        TestFormat::Text => write_folded(AnswerFormat::Text, text(outcomes, failed), output)?,
        TestFormat::Json => {
            write_answer(
                AnswerFormat::Json,
                pretty(&record(outcomes, failed)),
                output,
            )?;
        }
        TestFormat::Junit => write_output(junit(outcomes, failed).as_bytes(), output)?,
    }
    Ok(match failed {
        0 => Answer::Yes,
        _ => Answer::No,
    })
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

fn record(outcomes: &[TestOutcome], failed: usize) -> Value {
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

fn junit(outcomes: &[TestOutcome], failed: usize) -> String {
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
    let mut out = String::new();
    for each in text.chars() {
        match each {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(each),
            each if each.is_control() => out.push('\u{fffd}'),
            each => out.push(each),
        }
    }
    out
}
