//! `--html`: the walk of the verifier as a page to look at.

use std::path::Path;

use beebox::Kernel;
use beebox::internal::verify::results::{Job, Row};
use beebox::internal::verify::walk_page;
use report::html::SourceFinder;

use super::Args;
use crate::answer::Failure;
use crate::input::name;
use crate::output_file::write_whole;
use crate::output_path::OutputPath;

/// The page of `--html`, which is no input, and not the file of the results.
pub(super) fn page_path<'a>(
    args: &'a Args,
    inputs: &[&Path],
) -> Result<Option<OutputPath<'a>>, Failure> {
    let Some(path) = &args.html else {
        return Ok(None);
    };
    // The file of the results need not be there yet.
    if args.output.as_deref() == Some(path) {
        let file = path.display();
        let failure = Failure::new(format_args!("--html {file}: --output writes this file"));
        return Err(failure.hint("a file of its own"));
    }
    let page = OutputPath::new(path, inputs.iter().copied())?;
    match page.is_standard() {
        true => {
            Err(Failure::new("--html -: standard output holds the results")
                .hint("the name of a file"))
        }
        false => Ok(Some(page)),
    }
}

/// Writes the page of the programs of rows, which have them.
pub(super) fn write(
    args: &Args,
    page: OutputPath<'_>,
    rows: &[Row],
    job: &Job<'_>,
    kernel: &Kernel,
) -> Result<(), Failure> {
    let rows = rows.iter().filter(|row| job.filters.keep_results(row));
    let rows: Vec<&Row> = rows.collect();
    let title = match &args.files[..] {
        [file] => name(file),
        files => format!("{} files", files.len()),
    };
    let sources = SourceFinder::beside(args.files.iter().map(|file| file.as_path()));
    match walk_page(&rows, kernel, &job.options, &title, &sources) {
        Some(text) => write_whole(page.path(), text.as_bytes()),
        None => Ok(()),
    }
}
