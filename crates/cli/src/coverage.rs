//! `beebox coverage`: merges tracefiles of coverage, shows them, and writes them in other forms.

use std::fmt;
use std::fs;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use report::coverage::{Coverage, coverage_json, read_lcov};
use report::json::pretty;

use crate::answer::{Answer, Failure};
use crate::answer_format::{AnswerFormat, FormatArgs};
use crate::input::read_file;
use crate::output_file::write_whole;
use crate::output_path::OutputPath;
use crate::stdout::write_folded;

/// Merge coverage of several runs, show it, write it in other forms
///
/// The inputs are tracefiles of lcov, those that `beebox run --coverage lcov=FILE` writes among them.
/// Counts are added; a line that no run can reach stays out of what is missing.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox run firewall.bpf.o --pcap in.pcap --coverage lcov=one.info
  beebox run firewall.bpf.o --expect firewall.expect --coverage lcov=two.info
  beebox coverage one.info two.info
  beebox coverage one.info two.info -o lcov=all.info -o html=pages -o cobertura=all.xml
  beebox coverage all.info --least 90
  beebox coverage all.info -j | jq -r '.files[] | [.file, .missed_lines] | @json'

Exit codes: 0 it is shown or written, 1 --least is not reached, 2 could not answer.")]
pub(crate) struct Args {
    /// Tracefiles of lcov
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Write the sum: to a file in the format of the answer, or as lcov=FILE (a tracefile),
    /// cobertura=FILE (XML) or html=DIR; may be given several times [default: print it]
    #[arg(short, long, value_name = "[FORM=]OUT", value_parser = Output::parse)]
    output: Vec<Output>,

    #[command(flatten)]
    format: FormatArgs,

    /// Answer no if less than so many percent of the lines that a run can reach were executed
    #[arg(long, value_name = "PERCENT")]
    #[arg(value_parser = clap::value_parser!(u8).range(..=100))]
    least: Option<u8>,
}

/// An output: in the format of the answer, or in a form of coverage.
#[derive(Clone, Debug)]
enum Output {
    Answer(PathBuf),
    Form(CoverageOutput),
}

impl Output {
    fn parse(text: &str) -> Result<Output, String> {
        match text.split_once('=') {
            // A file may have the sign in its name.
            Some((form, _)) if !form.contains(['.', '/']) => {
                CoverageOutput::parse(text).map(Output::Form)
            }
            _ => Ok(Output::Answer(text.into())),
        }
    }
}

/// Where coverage is written.
#[derive(Clone, Debug)]
pub(crate) struct CoverageOutput {
    form: CoverageForm,
    path: PathBuf,
}

/// A form of coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CoverageForm {
    Lcov,
    Cobertura,
    Html,
}

impl CoverageOutput {
    pub(crate) fn parse(text: &str) -> Result<CoverageOutput, String> {
        const FORMS: &str = "lcov=FILE, cobertura=FILE or html=DIR is expected";
        let (form, path) = text.split_once('=').ok_or(FORMS)?;
        let form = match form {
            "lcov" => CoverageForm::Lcov,
            "cobertura" => CoverageForm::Cobertura,
            "html" => CoverageForm::Html,
            _ => return Err(format!("there is no form {form:?}: {FORMS}")),
        };
        match path {
            "" => Err(format!("it has no path: {FORMS}")),
            "-" => Err(format!("standard output holds the results: {FORMS}")),
            path => Ok(CoverageOutput {
                form,
                path: path.into(),
            }),
        }
    }
}

impl fmt::Display for CoverageOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let form = match self.form {
            CoverageForm::Lcov => "lcov",
            CoverageForm::Cobertura => "cobertura",
            CoverageForm::Html => "html",
        };
        write!(f, "{form}={}", self.path.display())
    }
}

pub(crate) fn run(args: Args) -> Result<Answer, Failure> {
    let mut coverage = Coverage::default();
    for path in &args.files {
        let bytes = read_file(path)?;
        let read = read_lcov(&String::from_utf8_lossy(&bytes)).map_err(|fault| {
            let place = format_args!("{}:{}", path.display(), fault.line).to_string();
            let failure = Failure::new(fault).within(place);
            failure.hint("a tracefile, as `beebox run --coverage lcov=FILE` writes it")
        })?;
        coverage.merge(read);
    }
    let (mut forms, mut answers) = (Vec::new(), Vec::new());
    for output in &args.output {
        match output {
            Output::Form(output) => forms.push(output.clone()),
            Output::Answer(path) => {
                let inputs = args.files.iter().map(PathBuf::as_path);
                answers.push(Some(OutputPath::new(path, inputs)?));
            }
        }
    }
    let format = args.format.format();
    // The text is for those who ask for nothing else.
    if answers.is_empty() && (forms.is_empty() || format == AnswerFormat::Json) {
        answers.push(None);
    }
    for out in answers {
        let answer = match format {
            AnswerFormat::Text => coverage.text(),
            AnswerFormat::Json => pretty(&coverage_json(&coverage)),
        };
        write_folded(format, answer, out)?;
    }
    write(&coverage, &forms)?;
    if !args.output.is_empty() {
        note(&coverage);
    }
    let Some(least) = args.least else {
        return Ok(Answer::Yes);
    };
    let lines = coverage.totals().lines;
    match lines.hit * 100 >= usize::from(least) * lines.found {
        true => Ok(Answer::Yes),
        false => {
            let (hit, found) = (lines.hit, lines.found);
            diagnostic!("beebox: {hit} of {found} lines are less than {least} %");
            Ok(Answer::No)
        }
    }
}

/// Writes coverage.
pub(crate) fn write(coverage: &Coverage, outputs: &[CoverageOutput]) -> Result<(), Failure> {
    for output in outputs {
        let path = &output.path;
        match output.form {
            CoverageForm::Lcov => write_whole(path, coverage.lcov().as_bytes())?,
            CoverageForm::Cobertura => {
                write_whole(path, coverage.cobertura(timestamp()).as_bytes())?
            }
            CoverageForm::Html => {
                if path.exists() && !path.is_dir() {
                    let failure = Failure::new("this is a file, and pages are several");
                    let failure = failure.within(path.display());
                    return Err(failure.hint("html=DIR with a directory, which is made if need be"));
                }
                fs::create_dir_all(path).map_err(|error| Failure::of_file(path, &error))?;
                let source = |name: &str| fs::read_to_string(name).ok();
                for (name, page) in coverage.html(&source) {
                    write_whole(&path.join(name), page.as_bytes())?;
                }
            }
        }
    }
    Ok(())
}

/// Says on standard error how much was covered.
pub(crate) fn note(coverage: &Coverage) {
    diagnostic!("coverage: {}", coverage.summary());
}

/// Milliseconds since 1970, of `SOURCE_DATE_EPOCH` if it is set.
fn timestamp() -> u64 {
    let fixed = std::env::var("SOURCE_DATE_EPOCH").ok();
    if let Some(seconds) = fixed.and_then(|seconds| seconds.parse::<u64>().ok()) {
        return seconds.saturating_mul(1000);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| now.as_millis() as u64)
}
