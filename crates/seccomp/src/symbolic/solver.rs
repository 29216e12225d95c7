//! Whether a condition can hold at all, and for which system call.
//!
//! A condition on input bits alone answers by itself: any path to truth is an
//! example. One on named expressions holds if some input gives the expressions
//! the values that it asks for.

use classic::SeccompData;

use super::diagram::{Ref, TooComplex};
use super::explore::Space;
use super::value::input_bit;

/// Whether a condition can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It never does.
    Never,
    /// It does for this call.
    Example(SeccompData),
    /// Not decided within the effort allowed.
    Unknown,
}

impl Space {
    /// Whether a condition can hold, with zeros preferred in the example.
    pub(crate) fn example(&mut self, condition: Ref) -> Result<Verdict, TooComplex> {
        let Some(path) = self.diagram.example(condition) else {
            return Ok(Verdict::Never);
        };
        let mut data = SeccompData::default();
        for (level, set) in path {
            let Some((word, bit)) = input_bit(level) else {
                return Ok(Verdict::Unknown);
            };
            if set {
                let value = word.of(&data);
                word.set(&mut data, value | 1 << bit);
            }
        }
        Ok(Verdict::Example(data))
    }
}
