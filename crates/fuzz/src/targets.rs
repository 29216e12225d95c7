//! The targets, one module for each reader.

mod classic_program;
mod classic_text;

use crate::Target;

pub(crate) const ALL: &[Target] = &[classic_program::TARGET, classic_text::TARGET];
