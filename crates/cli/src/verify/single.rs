//! Files that hold one program: text cases, and instructions alone.

use std::path::Path;

use beebox::internal::ebpf::encode;
use beebox::internal::program::{LoadFlags, Program, ProgramType};
use beebox::internal::verify::results::FileContents;

use crate::answer::Failure;
use crate::case_input::{self, is_case};
use crate::dis::ebpf;
use crate::input::{LONGEST_TEXT, name};
use crate::object_input::ObjectFile;

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

/// Reads a case, or instructions if `kind` says of which type they are. `None` for an
/// object, and for what can only be meant as one. `flags` are added to those of a case.
///
/// # Errors
/// If a case or the instructions cannot be read, with line and expectation.
pub(super) fn read(
    file: &ObjectFile,
    kind: Option<ProgramType>,
    flags: LoadFlags,
) -> Result<Option<FileContents>, Failure> {
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
    let size = file.bytes().len() as u64;
    if size > LONGEST_TEXT {
        let limit = format!("{size} bytes: more than the limit of {LONGEST_TEXT} bytes");
        return Err(Failure::new(limit).within(&input));
    }
    let insns = ebpf::parse(&input, file.bytes())?;
    let insns = encode(&insns).map_err(|error| Failure::new(error).within(&input))?;
    let program = Program::builder(kind, insns)
        .license(LICENSE)
        .flags(flags)
        .build()
        .map_err(|error| Failure::new(error).within(&input))?;
    Ok(Some(FileContents::Program(Box::new(program), Vec::new())))
}

fn read_case(input: &str, bytes: &[u8], flags: LoadFlags) -> Result<FileContents, Failure> {
    let case = case_input::parse(input, bytes)?;
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
    Ok(FileContents::Program(Box::new(program), answers))
}
