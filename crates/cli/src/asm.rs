//! `beebox asm`.

use crate::answer::{Answer, Failure};

/// Assemble a classic filter: from any text form to any binary or text form
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Result<Answer, Failure> {
    Err(Failure::new("asm is not built yet"))
}
