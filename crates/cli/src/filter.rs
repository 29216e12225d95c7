//! `beebox filter`.

use crate::answer::{Answer, Failure};

/// Filter packet captures
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Result<Answer, Failure> {
    Err(Failure::new("filter is not built yet"))
}
