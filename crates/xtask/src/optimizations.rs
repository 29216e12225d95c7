//! Counts what the optimizations of the engines do for programs of others.

use testkit::corpus;

use crate::Outcome;

/// Prints the table.
pub(crate) fn count() -> Outcome {
    println!("{}", corpus::page::table(&corpus::parts()));
    Ok(())
}
