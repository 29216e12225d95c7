//! `beebox seccomp`.

use crate::answer::{Answer, Failure};

/// See what seccomp filters really do
#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_args: Args) -> Result<Answer, Failure> {
    Err(Failure::new("seccomp is not built yet"))
}
