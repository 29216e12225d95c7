//! Counts what the optimizations of the engines do for programs of others.

use testkit::corpus;

use crate::Outcome;

/// Prints the table.
pub(crate) fn count() -> Outcome {
    let parts = corpus::parts();
    println!("{}", corpus::page::table(&parts));
    println!("{}", corpus::page::fusion_table(&parts));
    Ok(())
}
