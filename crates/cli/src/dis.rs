//! `beebox dis`.

use crate::answer::{Answer, Failure};

/// Disassemble a classic filter, or show what it is converted to
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Result<Answer, Failure> {
    Err(Failure::new("dis is not built yet"))
}
