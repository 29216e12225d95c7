//! Expectation files: one statement a line.

use std::path::{Path, PathBuf};

use super::statement::{Line, Statement, statement};
use super::{ExpectError, ExpectProblem};
use crate::internal::bytes::ByteSource;
use crate::internal::name_of;

/// The statements of expectation files, one a line, for help and errors.
pub const FORM: &str =
    "  set MAP KEY = VALUE          write an element, in the JSON of dumps of maps
  run PROGRAM PACKET [ctx=CONTEXT] [xTIMES]
                               run on a packet, none for types without packets, and a
                               context: hexadecimal, zero:N or a file
  capture PROGRAM FILE         run on each packet of a capture
  verdict NAME [COUNT]         of a packet, or of so many packets of the capture
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
  global NAME = VALUE          a global variable";

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
    pub fn open(path: impl AsRef<Path>) -> Result<ExpectFile, ExpectError> {
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
        ExpectFile::parse(&name, &text, path.parent().unwrap_or(Path::new("")))
    }

    /// Reads the text of a file. Messages begin with the name, paths in the text are relative to
    /// the directory.
    ///
    /// # Errors
    /// For a line that is no statement, and a text without statements.
    pub fn parse(name: &str, text: &str, directory: &Path) -> Result<ExpectFile, ExpectError> {
        let mut lines = Vec::new();
        for (number, text) in (1..).zip(text.lines()) {
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let statement = statement(text, directory).map_err(|what| {
                ExpectError::new(name, Some(number), ExpectProblem::Statement(what))
            })?;
            lines.push(Line {
                number,
                text: text.to_owned(),
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
        self.lines.iter().filter_map(|line| match &line.statement {
            Statement::Run { program, .. } | Statement::Capture { program, .. } => {
                Some((line.number, program.as_str()))
            }
            Statement::Set { .. } | Statement::Expect(_) => None,
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
            context,
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
                text,
                statement,
            },
        );
    }
}
