//! Input of classic programs: a file or standard input in any form, or an expression that
//! libpcap compiles.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use beebox::captures::LinkType;
use beebox::internal::classic::check;
use beebox::internal::program::case::Case;
use beebox::internal::text::{
    self, ByteOrder, Form, MAX_BYTES, Problem, ReadError, TextPlace, dump_line,
};
use beebox::internal::{Checked, Refusal};
use beebox::{Expression, FilterError, Rules, SockFilter};

use crate::answer::Failure;
use crate::case_input::{self, is_case};
use crate::input::{LONGEST_TEXT, excerpt, name, read_at_most};
use crate::object_input::ObjectFile;

/// The options of a command that takes one program.
#[derive(clap::Args)]
pub(crate) struct ProgramInput {
    /// The program, in any form; `-` is standard input
    #[arg(value_name = "FILE", conflicts_with = "expression")]
    file: Option<PathBuf>,

    /// The form of FILE [default: detected]
    #[arg(long, value_name = "FORM", conflicts_with = "expression")]
    form: Option<ClassicForm>,

    /// Instead of FILE an expression as tcpdump takes it, compiled by the
    /// system's libpcap
    #[arg(short, long, value_name = "EXPR")]
    expression: Option<String>,

    /// Leave out libpcap's optimizer
    #[arg(short = 'O', long, requires = "expression")]
    no_optimize: bool,

    /// The link type that EXPR is compiled for: EN10MB, RAW, LINUX_SLL, … (`beebox
    /// filter -L` lists them) or a number
    #[arg(long, value_name = "LINKTYPE", default_value = "EN10MB")]
    #[arg(requires = "expression", conflicts_with = "file")]
    #[arg(value_parser = parse_link_type)]
    linktype: LinkType,

    /// The bytes that EXPR keeps of a packet that matches
    #[arg(long, value_name = "N", default_value_t = 262_144)]
    #[arg(requires = "expression", conflicts_with = "file")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    snaplen: u32,
}

impl ProgramInput {
    /// Its name in messages.
    pub(crate) fn name(&self) -> String {
        match (&self.expression, &self.file) {
            (Some(expression), _) => format!("{expression:?}"),
            (None, Some(path)) => name(path),
            (None, None) => name(Path::new("-")),
        }
    }

    /// The file that it is read from, `-` for standard input; `None` for an expression.
    pub(crate) fn path(&self) -> Option<&Path> {
        let file = self.file.as_deref().unwrap_or(Path::new("-"));
        self.expression.is_none().then_some(file)
    }

    /// The bytes of an eBPF program, which only a file can hold.
    pub(crate) fn read_file(&self, limit: u64) -> Result<Vec<u8>, Failure> {
        let path = self.file.as_deref().unwrap_or(Path::new("-"));
        read_at_most(path, limit)
    }

    /// The object in the file; `None` if the input is something else.
    pub(crate) fn read_object(&self) -> Result<Option<ObjectFile>, Failure> {
        let path = self.file.as_deref().filter(|path| *path != Path::new("-"));
        match (path, self.form) {
            (Some(path), None) if ObjectFile::is_at(path)? => ObjectFile::read(path).map(Some),
            _ => Ok(None),
        }
    }

    /// The text case in the file; `None` if the input is something else.
    pub(crate) fn read_case(&self) -> Result<Option<Case>, Failure> {
        let path = self.file.as_deref().filter(|path| *path != Path::new("-"));
        let (Some(path), None) = (path, self.form) else {
            return Ok(None);
        };
        let is_text = |about: &fs::Metadata| about.is_file() && about.len() <= LONGEST_TEXT;
        if !fs::metadata(path).is_ok_and(|about| is_text(&about)) {
            return Ok(None);
        }
        let bytes = read_at_most(path, LONGEST_TEXT)?;
        match is_case(path, &bytes) {
            true => case_input::parse(&name(path), &bytes).map(Some),
            false => Ok(None),
        }
    }

    /// Reads the program.
    pub(crate) fn read(&self) -> Result<Vec<SockFilter>, Failure> {
        if let Some(expression) = &self.expression {
            return compile(expression, self.linktype, self.snaplen, !self.no_optimize);
        }
        let form = self.form.map(ClassicForm::form);
        match &self.file {
            Some(path) => parse_program(path, &read_bytes(path)?, form, true),
            None if io::stdin().is_terminal() => Err(Failure::new("no program is given")
                .hint("name a FILE, or - to type one and end it with Ctrl-D")),
            None => {
                let path = Path::new("-");
                parse_program(path, &read_bytes(path)?, form, true)
            }
        }
    }
}

fn parse_link_type(name: &str) -> Result<LinkType, String> {
    let numbered = || name.parse().ok().map(LinkType);
    LinkType::named(name)
        .or_else(numbered)
        .ok_or_else(|| "no link type has that name: `beebox filter -L` lists them".to_owned())
}

/// Compiles an expression as for a capture with that link type.
fn compile(
    expression: &str,
    link_type: LinkType,
    snaplen: u32,
    optimizes: bool,
) -> Result<Vec<SockFilter>, Failure> {
    let compiled = Expression::new(expression)
        .and_then(|expression| expression.optimize(optimizes).program(link_type, snaplen));
    compiled.map_err(|error| filter_failure(&error))
}

/// The failure for a filter that can't be made.
pub(crate) fn filter_failure(error: &FilterError) -> Failure {
    match error {
        FilterError::Rule { refusal, program } => refused(program, *refusal),
        FilterError::NoLibpcap(_) => Failure::new(error).hint(
            "apt install libpcap0.8 (Debian and Ubuntu), or take a compiled filter instead: \
             tcpdump -ddd EXPR prints one (beebox filter has -F for it)",
        ),
        error => Failure::new(error),
    }
}

/// Names of the forms on the command line.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ClassicForm {
    /// struct sock_filter array, byte order of this machine
    Raw,
    /// struct sock_filter array, little-endian
    RawLe,
    /// struct sock_filter array, big-endian
    RawBe,
    /// listing, as tcpdump -d prints
    D,
    /// C array, as tcpdump -dd prints
    Dd,
    /// decimal numbers, as tcpdump -ddd prints
    Ddd,
    /// one line with commas, as bpf_asm prints and xt_bpf and tc take
    Oneline,
    /// source in the language of bpf_asm
    Asm,
}

impl ClassicForm {
    pub(crate) fn form(self) -> Form {
        match self {
            ClassicForm::Raw => Form::Raw(ByteOrder::NATIVE),
            ClassicForm::RawLe => Form::Raw(ByteOrder::Little),
            ClassicForm::RawBe => Form::Raw(ByteOrder::Big),
            ClassicForm::D => Form::Dump,
            ClassicForm::Dd => Form::CArray,
            ClassicForm::Ddd => Form::Decimal,
            ClassicForm::Oneline => Form::OneLine,
            ClassicForm::Asm => Form::Asm,
        }
    }
}

/// Reads a program from the bytes of a file, in a form or in the one that is detected.
/// `has_form` is true for commands with the option --form.
pub(crate) fn parse_program(
    path: &Path,
    bytes: &[u8],
    form: Option<Form>,
    has_form: bool,
) -> Result<Vec<SockFilter>, Failure> {
    let can_name = has_form && form.is_none();
    text::read(bytes, form).map_err(|error| unreadable(path, bytes, can_name, &error))
}

/// The bytes of a file or of standard input, if they are no more than a program can have.
pub(crate) fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    read_at_most(path, MAX_BYTES as u64)
}

fn unreadable(path: &Path, bytes: &[u8], can_name: bool, error: &ReadError) -> Failure {
    let failure = Failure::new(format_args!("{}: {error}", name(path)));
    let excerpt = match error.place {
        TextPlace::Text { line, column } => excerpt(bytes, line, column),
        TextPlace::Input | TextPlace::Byte(_) => None,
    };
    let failure = match excerpt {
        Some(lines) => failure.excerpt(lines),
        None => failure,
    };
    match (&error.problem, error.form) {
        (Problem::Unrecognized, _) if can_name => {
            failure.hint("--form FORM, if it is in one of the forms that --help lists")
        }
        (
            Problem::OtherFile {
                what: "a JSON document",
            },
            _,
        ) => failure.hint("beebox seccomp compile makes a program of a seccomp profile"),
        (
            Problem::OtherFile {
                what: "a packet capture",
            },
            _,
        ) => failure.hint("beebox filter reads captures"),
        (
            Problem::OtherFile {
                what: "an ELF object",
            },
            _,
        ) => failure.hint(format_args!(
            "beebox dis {} lists its programs",
            path.display()
        )),
        // The form may have been guessed wrong.
        (Problem::Expected { .. }, Some(form)) if can_name => {
            failure.hint(format_args!("--form, if it is not a {}", form.name()))
        }
        _ => failure,
    }
}

/// Checks a program by rules.
pub(crate) fn check_program(program: &[SockFilter], rules: Rules) -> Result<Checked, Failure> {
    check(program, rules).map_err(|refusal| refused(program, refusal))
}

/// The failure for a program that breaks a rule.
pub(crate) fn refused(program: &[SockFilter], refusal: Refusal) -> Failure {
    let sentence = refusal.rule.sentence();
    match refusal.at {
        Some(at) => {
            Failure::new(format_args!("instruction {at} breaks a rule: {sentence}")).excerpt(
                format_args!("  {}", dump_line(at, program[at]).replace('\t', " ")),
            )
        }
        None => Failure::new(format_args!("the program breaks a rule: {sentence}")),
    }
}
