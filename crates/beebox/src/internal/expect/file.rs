//! Expectation files: one statement a line.

use std::path::{Path, PathBuf};

use ::kernel::model::OpenBrackets;

use super::model_statement::{has_values, model_statement};
use super::statement::{ContextSource, Expected, Line, Statement, statement};
use super::{ExpectError, ExpectProblem};
use crate::internal::bytes::ByteSource;
use crate::internal::name_of;

/// The statements of expectation files, one a line, for help and errors.
pub const FORM: &str =
    "  set MAP KEY = VALUE          write an element, in the JSON of dumps of maps
  run PROGRAM PACKET [ctx=CONTEXT] [xTIMES]
                               run on a packet, none for types without packets, and a
                               context: hexadecimal, zero:N or a file
                               or a packet as `packet 17 of FILE` or `proto tcp from
                               192.0.2.1 port 4000 to 198.51.100.7 port 443 flags syn`;
                               ctx={...} has the fields of the context by name
  capture PROGRAM FILE         run on each packet of a capture
  time SPAN | time +SPAN       set or advance the clock: 5s, 250ms, 10us, 7ns
  cpu NUMBER | seed NUMBER     the CPU and the random numbers of the next runs
  ifindex NUMBER               the interface that packets come from
  fault HELPER [MAP] [at N] = RESULT
                               what a call returns in place of what it would do: an error as
                               ENOSPC, NULL, a number; the Nth of these calls, or all
  delete MAP KEY               delete an element
  given @NAME = TYPE {FIELD: VALUE}
                               an object of kernel memory; given @NAME {FIELD: VALUE} more of it
  process {pid: 7, task: @NAME}
                               the process of the next runs
  run PROGRAM {NAME: VALUE} [xTIMES]
                               run by arguments or fields, in a model of the kernel
  iterate PROGRAM [ELEMENT]    run an iterator on each, and once without one
  result FUNCTION [at N] = VALUE [{ARGUMENT: VALUE}]
                               what calls return, and what they write
  call FUNCTION {ARGUMENT: VALUE} | call [FUNCTION] none
                               the next call of a function that is not modelled
  seq TEXT | seq none          the text that an iterator wrote
  ctx {FIELD: VALUE}           fields of the context after the run
  memory @NAME.FIELD = VALUE   a field of an object after the run
  verdict NAME [COUNT]         of a packet, or of so many packets of the capture
  verdict not NAME             of a packet, or of any packet of the capture
  retval NUMBER                of a packet
  data unchanged | data HEX    the packet after the run
  data[OFFSET] HEX             bytes of it
  ctx unchanged | ctx HEX      the context after the run
  ctx[OFFSET] HEX              bytes of it
  printk TEXT | printk none    the next text that the run printed, or no further one
  record MAP = VALUE           the next record that the run wrote to a ring buffer or perf
                               buffer; members that are not named may have any value
  record MAP none              no further record
  map MAP KEY = VALUE          an element; members that are not named may have any value
  map MAP KEY absent
  map MAP entries COUNT
  global NAME = VALUE          a global variable
  redirect {\"ifindex\": 3} | redirect none
  checksums valid              of IPv4, TCP, UDP and ICMP of the packet after the run
  field NAME = TEXT            a header field of the packet after the run, as ip.ttl
  instructions [VERDICT] <= N  most instructions of a run, or of the runs with a verdict
  test NAME                    begins a test, whose maps are its own (`beebox test`)
  object FILE | maps shared | network FILE
                               in front of the tests: their object; they share its maps; the
                               network that programs see";

/// The forms of the statements that begin with the word that a text begins with; all if none does.
fn forms_of(text: &str) -> String {
    let word = text.split(|each: char| !each.is_ascii_alphabetic()).next();
    let mut is_of_word = false;
    let lines = FORM.lines().filter(|line| {
        if let Some(form) = line
            .strip_prefix("  ")
            .filter(|line| !line.starts_with(' '))
        {
            let mut alternatives = form.split(" | ").map(str::split_whitespace);
            is_of_word = alternatives.any(|mut words| {
                let first = words.next().unwrap_or_default();
                first.split('[').next() == word
            });
        }
        is_of_word
    });
    match lines.collect::<Vec<_>>() {
        none if none.is_empty() => FORM.to_owned(),
        lines => lines.join("\n"),
    }
}

/// Bytes of the largest file.
const LARGEST: u64 = 16 << 20;

/// An expectation file: runs of programs, and what they have to give.
pub struct ExpectFile {
    name: String,
    pub(super) lines: Vec<Line>,
}

impl ExpectFile {
    /// Reads a file, or standard input if the path is `-`. Paths in it are relative to its
    /// directory.
    ///
    /// # Errors
    /// If it cannot be read, has more than 16 MiB, or is as [`ExpectFile::parse`] does not take it.
    pub fn open(path: impl AsRef<Path>) -> Result<ExpectFile, crate::Error> {
        Ok(ExpectFile::try_open(path)?)
    }

    /// As [`ExpectFile::open`], with the error as data.
    #[doc(hidden)]
    pub fn try_open(path: impl AsRef<Path>) -> Result<ExpectFile, ExpectError> {
        let path = path.as_ref();
        let name = name_of(path);
        let failed = |problem| ExpectError::new(&name, None, problem);
        let bytes = sys::input::read(path, LARGEST).map_err(|error| {
            failed(ExpectProblem::File {
                path: path.to_owned(),
                error,
            })
        })?;
        let text = String::from_utf8(bytes).map_err(|_| failed(ExpectProblem::NoText))?;
        ExpectFile::try_parse(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of a file. Messages begin with the name, paths in the text are relative to
    /// the directory.
    ///
    /// # Errors
    /// For a line that is no statement, and a text without statements.
    pub fn parse(name: &str, text: &str, directory: &Path) -> Result<ExpectFile, crate::Error> {
        Ok(ExpectFile::try_parse(name, text, directory)?)
    }

    /// As [`ExpectFile::parse`], with the error as data.
    #[doc(hidden)]
    pub fn try_parse(name: &str, text: &str, directory: &Path) -> Result<ExpectFile, ExpectError> {
        let mut lines = Vec::new();
        let mut numbered = (1..).zip(text.lines());
        while let Some((number, text)) = numbered.next() {
            let mut text = text.trim().to_owned();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            // Lines keep their columns.
            let mut brackets = OpenBrackets::default();
            let mut goes_on = has_values(&text) && brackets.go_on(&text);
            while goes_on && let Some((_, more)) = numbered.next() {
                let is_comment = more.trim_start().starts_with('#');
                let more = if is_comment { "" } else { more.trim_end() };
                text.push('\n');
                text.push_str(more);
                goes_on = brackets.go_on(more);
            }
            let statement = match model_statement(&text) {
                Some(found) => found.map_err(|(below, what)| (number + below, what)),
                None => statement(&text, directory).map_err(|what| (number, what)),
            };
            let statement = statement.map_err(|(number, what)| {
                let forms = forms_of(&text);
                ExpectError::new(name, Some(number), ExpectProblem::Statement { what, forms })
            })?;
            if let Some(kind) = statement.named_once()
                && lines
                    .iter()
                    .any(|line: &Line| line.statement.named_once() == Some(kind))
            {
                let what = format!(
                    "the file names its {kind} above: tests of another one are a file of their own"
                );
                let forms = forms_of(&text);
                let problem = ExpectProblem::Statement { what, forms };
                return Err(ExpectError::new(name, Some(number), problem));
            }
            lines.push(Line {
                number,
                text: text.lines().map(str::trim).collect::<Vec<_>>().join(" "),
                source: text,
                is_setup: false,
                statement,
            });
        }
        if lines.is_empty() {
            return Err(ExpectError::new(name, None, ExpectProblem::Empty));
        }
        Ok(ExpectFile {
            name: name.to_owned(),
            lines,
        })
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The programs that it runs, with the numbers of the lines, from 1.
    pub fn programs(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.lines.iter();
        lines.filter_map(|line| Some((line.number, line.statement.program()?)))
    }

    /// True if its programs run in a model of the kernel.
    pub fn has_model(&self) -> bool {
        self.lines.iter().any(|line| line.statement.is_of_model())
    }

    /// The file that holds the object of its tests, if it names one.
    pub fn object(&self) -> Option<&Path> {
        self.lines.iter().find_map(|line| match &line.statement {
            Statement::Object(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// The file of the network that its programs see, if it names one.
    pub fn network(&self) -> Option<&Path> {
        self.lines.iter().find_map(|line| match &line.statement {
            Statement::Network(path) => Some(path.as_path()),
            _ => None,
        })
    }

    /// True if its tests have the maps as the test before left them.
    pub fn shares_maps(&self) -> bool {
        let is_it = |line: &Line| matches!(line.statement, Statement::SharedMaps);
        self.lines.iter().any(is_it)
    }

    /// The named tests of the file (`test NAME`), each with the statements in front of the first one; of
    /// tests that share maps only the first has these. Empty if the file names none.
    pub fn tests(&self) -> Vec<(String, ExpectFile)> {
        let is_test = |line: &Line| matches!(line.statement, Statement::Test(_));
        let first = self.lines.iter().position(is_test);
        let (setup, rest) = self.lines.split_at(first.unwrap_or(self.lines.len()));
        let is_run = |line: &&Line| {
            !matches!(
                line.statement,
                Statement::Test(_)
                    | Statement::Object(_)
                    | Statement::SharedMaps
                    | Statement::Network(_)
            )
        };
        let mut tests: Vec<(String, ExpectFile)> = Vec::new();
        for line in rest {
            if let Statement::Test(name) = &line.statement {
                let has_setup = tests.is_empty() || !self.shares_maps();
                let lines = setup.iter().filter(|_| has_setup).filter(is_run);
                let lines = lines.cloned().map(|line| Line {
                    is_setup: true,
                    ..line
                });
                let file = ExpectFile {
                    name: self.name.clone(),
                    lines: lines.collect(),
                };
                tests.push((name.clone(), file));
            } else if let (Some((_, file)), true) = (tests.last_mut(), is_run(&line)) {
                file.lines.push(line.clone());
            }
        }
        tests
    }

    /// True if runs have to count their instructions.
    pub(super) fn has_budgets(&self) -> bool {
        let mut lines = self.lines.iter();
        lines.any(|line| {
            matches!(
                line.statement,
                Statement::Expect(Expected::Instructions { .. })
            )
        })
    }

    /// Adds `repeat` runs of a program on a packet and a context in front of the first
    /// expectation; the text stands for the line in results.
    #[doc(hidden)]
    pub fn insert_run(
        &mut self,
        program: &str,
        packet: Option<ByteSource>,
        context: Option<ByteSource>,
        repeat: u32,
        text: &str,
    ) {
        let program = program.to_owned();
        let run = Statement::Run {
            program,
            packet,
            context: context.map(ContextSource::Bytes),
            repeat,
        };
        self.insert(run, text);
    }

    /// Adds a run of a program on each packet of a capture in front of the first expectation; the
    /// text stands for the line in results.
    #[doc(hidden)]
    pub fn insert_capture(&mut self, program: &str, path: PathBuf, text: &str) {
        let program = program.to_owned();
        self.insert(Statement::Capture { program, path }, text);
    }

    fn insert(&mut self, statement: Statement, text: &str) {
        let is_expectation = |line: &Line| matches!(line.statement, Statement::Expect(_));
        let at = self.lines.iter().position(is_expectation).unwrap_or(0);
        let number = self.lines[at].number;
        let text = text.to_owned();
        self.lines.insert(
            at,
            Line {
                number,
                source: text.clone(),
                text,
                is_setup: false,
                statement,
            },
        );
    }
}
