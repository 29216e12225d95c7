//! Text cases on the command line.

use std::path::Path;

use beebox::internal::program::case::{Case, CaseError, CaseProblem};

use crate::answer::Failure;
use crate::input::excerpt;

/// Parses the bytes of a case. `input` is its name.
pub(crate) fn parse(input: &str, bytes: &[u8]) -> Result<Case, Failure> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = 1 + count_lines(&bytes[..error.valid_up_to()]);
        Failure::new(format_args!("line {line}: expected text in UTF-8")).within(input)
    })?;
    Case::parse(text).map_err(|error| unreadable(input, bytes, &error))
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
pub(crate) fn is_case(path: &Path, bytes: &[u8]) -> bool {
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
