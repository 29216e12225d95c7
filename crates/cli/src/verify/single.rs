//! Files that hold one program: text cases, and instructions alone.

use std::path::Path;

use beebox::ebpf::encode;
use beebox::program::case::{Case, CaseError, CaseProblem, KernelAnswer};
use beebox::program::{LoadFlags, Program, ProgramType};
use beebox::verify::Loaded;

use crate::answer::Failure;
use crate::dis::ebpf;
use crate::object_input::ObjectFile;
use crate::program_input::{excerpt, name};

/// Supported inputs, for the error of another file.
pub(super) const EXPECTED: &str = "an object, a text case (called NAME.case, or beginning with .program or .type), \
     or instructions alone with --type TYPE";

/// True for a C source, whose error says how it is compiled.
pub(super) fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "c")
}

/// The failure for a file that is neither an object nor a case, with one remedy. `failure` is
/// that of an object.
pub(super) fn unreadable_file(path: &Path, bytes: &[u8], failure: Failure) -> Failure {
    // Of text it says how C is compiled, which this is not.
    let is_text =
        !bytes.is_empty() && std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
    match is_text {
        true => Failure::new("this is text, but no text case")
            .within(name(path))
            .hint(EXPECTED),
        false => failure.hint(EXPECTED),
    }
}

/// The licence of instructions alone: every helper is theirs to call.
const LICENSE: &str = "GPL";

/// One program, and the answers recorded with it.
pub(super) struct Single {
    program: Program,
    pub(super) answers: Vec<KernelAnswer>,
}

impl Single {
    /// The program as loaded; one without a name is called like its file.
    pub(super) fn loaded(&self, file: &str) -> Loaded {
        let stem = || file.split('.').next().unwrap_or(file).to_owned();
        Loaded {
            name: match self.program.name() {
                "" => stem(),
                name => name.to_owned(),
            },
            section: self.program.section().to_owned(),
            kind: Some(self.program.kind()),
            program: Ok(self.program.clone()),
            weak_externs: false,
            retval: None,
            is_refused: false,
            btf_refusal: None,
        }
    }
}

/// Reads a case, or instructions if `kind` says of which type they are. `None` for an
/// object, and for what can only be meant as one. `flags` are added to those of a case.
///
/// # Errors
/// If a case or the instructions cannot be read, with line and expectation.
pub(super) fn read(
    file: &ObjectFile,
    kind: Option<ProgramType>,
    flags: LoadFlags,
) -> Result<Option<Single>, Failure> {
    if file.is_object() {
        return Ok(None);
    }
    let input = name(file.path());
    if is_case(file.path(), file.bytes()) {
        return read_case(&input, file.bytes(), flags).map(Some);
    }
    let Some(kind) = kind else {
        return Ok(None);
    };
    let insns = ebpf::parse(&input, file.bytes())?;
    let insns = encode(&insns).map_err(|error| Failure::new(error).within(&input))?;
    let program = Program::builder(kind, insns)
        .license(LICENSE)
        .flags(flags)
        .build()
        .map_err(|error| Failure::new(error).within(&input))?;
    Ok(Some(Single {
        program,
        answers: Vec::new(),
    }))
}

fn read_case(input: &str, bytes: &[u8], flags: LoadFlags) -> Result<Single, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + count_lines(&bytes[..error.valid_up_to()]);
        Failure::new(format_args!("line {line}: expected text in UTF-8")).within(input)
    })?;
    let case = Case::parse(text).map_err(|error| unreadable(input, bytes, &error))?;
    let stated = case.program.flags();
    let (program, answers) = match stated.with(flags) {
        same if same == stated => (case.program, case.answers),
        // The recorded answers are about another load.
        more => {
            let changed = case.program.to_builder().flags(more).build();
            let program = changed.map_err(|error| Failure::new(error).within(input))?;
            (program, Vec::new())
        }
    };
    Ok(Single { program, answers })
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

fn unreadable(input: &str, bytes: &[u8], error: &CaseError) -> Failure {
    let (failure, column) = match &error.problem {
        // It names its line itself.
        CaseProblem::Asm(asm) => (Failure::new(asm), asm.column),
        _ => (Failure::new(error), 1),
    };
    let failure = failure.within(input);
    let line = match error.line {
        0 => None,
        line => excerpt(bytes, line, column),
    };
    match line {
        Some(line) => failure.excerpt(line),
        None => failure,
    }
}

/// True for a file that is called `.case`, or that begins as cases are written.
fn is_case(path: &Path, bytes: &[u8]) -> bool {
    if path
        .extension()
        .is_some_and(|extension| extension == "case")
    {
        return true;
    }
    let lines = bytes.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let is_comment = |line: &[u8]| line.starts_with(b"#") || line.starts_with(b"//");
    let first = { lines }.find(|line| !line.is_empty() && !is_comment(line));
    let first = first.unwrap_or_default();
    let word = first.split(u8::is_ascii_whitespace).next();
    matches!(word, Some(b".program" | b".type"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cases_are_detected_by_name_or_first_directive() {
        let is_case = |name: &str, text: &str| is_case(Path::new(name), text.as_bytes());
        assert!(is_case("a.case", ""));
        assert!(is_case("a", "# about\n\n  .program \"x\"\n"));
        assert!(is_case("-", "// about\n.type\txdp\n"));
        assert!(!is_case("a.s", "exit\n.type xdp\n"));
        assert!(!is_case("a.s", ".types\n"));
        assert!(!is_case("a.s", ""));
    }
}
