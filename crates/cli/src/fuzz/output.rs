//! What fuzzing found, as text, JSON and files.

use std::fmt::Write;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use beebox::internal::fuzz::{CaptureForm, FuzzFind, FuzzReport, capture_as};
use report::json::pretty;
use serde_json::{Value, json};

use super::Args;
use crate::answer::{Answer, Failure};
use crate::answer_format::AnswerFormat;
use crate::stdout::{print_folded, write_json};

/// What came of a campaign.
pub(super) struct Outcome<'o> {
    pub(super) program: &'o str,
    pub(super) report: &'o FuzzReport,
    /// The form of captures, if it gets packets.
    pub(super) captures: Option<CaptureForm>,
}

impl Outcome<'_> {
    pub(super) fn print(&self, args: &Args) -> Result<Answer, Failure> {
        let mut files = Vec::new();
        for find in &self.report.finds {
            files.push(match &args.output {
                Some(directory) => write(directory, find, self.captures)?,
                None => Vec::new(),
            });
        }
        match args.format.format() {
            AnswerFormat::Text => print_folded(&self.text(&files))?,
            AnswerFormat::Json => write_json(pretty(&self.record(&files)).as_bytes())?,
        }
        Ok(match self.report.finds.is_empty() {
            true => Answer::Yes,
            false => Answer::No,
        })
    }

    fn text(&self, files: &[Vec<PathBuf>]) -> String {
        let report = self.report;
        let mut text = String::new();
        for (find, files) in report.finds.iter().zip(files) {
            let _ = writeln!(text, "found: {}: {}", find.property, find.what);
            if files.is_empty() {
                for line in find.test.lines().filter(|line| !line.starts_with('#')) {
                    let _ = match line {
                        "" => writeln!(text),
                        line => writeln!(text, "  {line}"),
                    };
                }
            } else {
                let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
                let _ = writeln!(text, "  {}", names.join(", "));
            }
            if !find.test_fails {
                let _ = writeln!(text, "  no statement of a test says what is wrong");
            }
        }
        if !report.kept_maps.is_empty() {
            let maps = report.kept_maps.join(", ");
            let _ = writeln!(text, "note: not set back between inputs: {maps}");
        }
        let seconds = report.time.as_secs_f64();
        let each = report.runs as f64 / seconds.max(1e-9);
        let (hit, all) = report.covered;
        let found = match report.finds.len() {
            0 => "nothing found".to_owned(),
            finds => format!("{finds} found"),
        };
        let _ = writeln!(
            text,
            "{}: {found}, {} inputs kept, {hit} of {all} counters, {} runs in {seconds:.2} s, \
             {each:.0} a second",
            self.program,
            report.corpus.len(),
            report.runs
        );
        text
    }

    fn record(&self, files: &[Vec<PathBuf>]) -> Value {
        let finds = self.report.finds.iter().zip(files);
        let finds = finds.map(|(find, files)| {
            let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
            json!({
                "property": find.property,
                "what": find.what,
                "input": find.input.json(),
                "step": find.step,
                "runs": find.runs,
                "seconds": find.time.as_secs_f64(),
                "test_text": find.test,
                "test_fails": find.test_fails,
                "files": files,
            })
        });
        json!({
            "prog": self.program,
            "finds": finds.collect::<Vec<_>>(),
            "runs": self.report.runs,
            "seconds": self.report.time.as_secs_f64(),
            "kept": self.report.corpus.len(),
            "counters_hit": self.report.covered.0,
            "counters": self.report.covered.1,
            "kept_maps": self.report.kept_maps,
        })
    }
}

/// Makes the directory of finds, so that it is known before the runs that it can be written.
pub(super) fn check_directory(directory: &Path) -> Result<(), Failure> {
    if directory.exists() && !directory.is_dir() {
        let failure =
            Failure::new("this is a file, and finds are several").within(directory.display());
        return Err(failure.hint("-o with a directory, which is made if need be"));
    }
    fs::create_dir_all(directory).map_err(|error| Failure::of_file(directory, &error))?;
    let probe = directory.join(format!(".beebox-fuzz-{}", std::process::id()));
    let made = File::create(&probe).and_then(|_| fs::remove_file(&probe));
    made.map_err(|error| Failure::of_file(directory, &error))
}

/// The path of the object as tests in a directory name it.
pub(super) fn object_path(object: &Path, directory: Option<&Path>) -> PathBuf {
    let Some(directory) = directory else {
        return object.to_owned();
    };
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let (Some(object_whole), Some(directory)) = (whole(object), whole(directory)) else {
        return object.to_owned();
    };
    let (to, from): (Vec<_>, Vec<_>) = (
        object_whole.components().collect(),
        directory.components().collect(),
    );
    let common = to
        .iter()
        .zip(&from)
        .take_while(|(to, from)| to == from)
        .count();
    let up = from[common..].iter().map(|_| Path::new("..").as_os_str());
    let down = to[common..].iter().map(|part| part.as_os_str());
    up.chain(down).collect()
}

/// Writes a find: a test, and a capture if there are packets; its files.
fn write(
    directory: &Path,
    find: &FuzzFind,
    captures: Option<CaptureForm>,
) -> Result<Vec<PathBuf>, Failure> {
    const MOST: u32 = 10_000;
    let has_packets = find.input.steps.iter().any(|step| !step.packet.is_empty());
    for number in 1..=MOST {
        let name = match number {
            1 => find.slug(),
            number => format!("{}-{number}", find.slug()),
        };
        let path = directory.join(format!("{name}.expect"));
        let capture = directory.join(format!("{name}.pcap"));
        if capture.exists() {
            continue;
        }
        match create(&path, find.test.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made.map_err(|error| Failure::of_file(&path, &error))?,
        }
        let mut files = vec![path];
        if let Some(form) = captures.filter(|_| has_packets) {
            let made = create(&capture, &capture_as(&find.input, form));
            made.map_err(|error| Failure::of_file(&capture, &error))?;
            files.push(capture);
        }
        return Ok(files);
    }
    let what = format!("it has {MOST} finds called {}", find.slug());
    Err(Failure::new(what).within(directory.display()))
}

/// Writes a file that is not there.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}
