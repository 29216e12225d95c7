//! Filters of programs and results, and files of them.

use report::veristat::Filters;

use super::row::failure;
use crate::answer::Failure;
use crate::input::{LONGEST_TEXT, read_text};

/// Lines of a file of filters, globals or names; empty ones and comments left out.
pub(super) fn lines_of(path: &str) -> Result<Vec<String>, Failure> {
    let text = read_text(path.as_ref(), LONGEST_TEXT)?;
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    Ok(lines.map(str::to_owned).collect())
}

/// Reads filters; `@FILE` is a file with one on each line.
pub(super) fn read(texts: &[String]) -> Result<Filters, Failure> {
    let mut filters = Filters::default();
    let mut push = |text: &str| filters.push(text).map_err(|error| failure(&error));
    for text in texts {
        match text.strip_prefix('@') {
            Some(path) => lines_of(path)?.iter().try_for_each(|line| push(line))?,
            None => push(text)?,
        }
    }
    Ok(filters)
}
