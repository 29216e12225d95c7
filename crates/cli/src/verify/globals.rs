//! Global variables that are set before programs are loaded: veristat's `-G`.

use beebox::Assignment;
use beebox::internal::variables::{FORM, VariableError, VariableFault};

use crate::answer::Failure;

/// Reads assignments; `@FILE` is a file with one on each line, `#` begins a comment.
pub(crate) fn read(texts: &[String]) -> Result<Vec<Assignment>, Failure> {
    let parse = |text: &str| Assignment::try_parse(text).map_err(failure);
    let mut all = Vec::new();
    for text in texts {
        let Some(path) = text.strip_prefix('@') else {
            all.push(parse(text)?);
            continue;
        };
        for line in super::filter::lines_of(path)? {
            all.push(parse(&line)?);
        }
    }
    Ok(all)
}

/// The failure for a variable, with a remedy.
pub(crate) fn failure(error: VariableError) -> Failure {
    let failure = Failure::new(&error);
    match error.fault {
        VariableFault::NoAssignment => failure.hint(FORM),
        VariableFault::NoVariable { known } if !known.is_empty() => {
            failure.hint(format_args!("one of {}", known.join(", ")))
        }
        _ => failure,
    }
}
