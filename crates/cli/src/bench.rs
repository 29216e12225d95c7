//! `beebox bench`.

use crate::answer::{Answer, Failure};

/// Measure Beebox beside its peers
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Result<Answer, Failure> {
    Err(Failure::new("bench is not built yet"))
}
