//! Listings of instructions, as text and as JSON: with what they refer to, the source lines that they
//! come from, and what Linux makes of them.

mod converted;
mod linked;
mod native;
mod plain;
mod slot;
mod unlinked;
mod xlated;

use std::fmt;

pub use converted::{ConvertedRecord, InsnRecord, converted_slots, converted_text, insn_records};
pub use linked::{
    BesideNative, Labels, LineForm, Listed, NoNative, Outcome, linked_json, linked_text,
};
pub use native::{NativeInsn, NativeListing, native_record, native_text};
pub use plain::{ListingForm, Record, listing_of, slots};
pub use slot::{Slot, SlotRecord, Source};
pub use unlinked::{unlinked_json, unlinked_text};
pub use xlated::{Xlated, xlated_json, xlated_text};

/// An object has no program of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProgram {
    /// The name.
    pub name: String,
    /// Names of the programs that the object has.
    pub known: Vec<String>,
}

impl UnknownProgram {
    /// Checks that all names are known.
    ///
    /// # Errors
    /// For the first that is not.
    pub fn check(names: &[String], known: Vec<String>) -> Result<(), UnknownProgram> {
        match names.iter().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => Err(UnknownProgram {
                name: name.clone(),
                known,
            }),
        }
    }
}

impl fmt::Display for UnknownProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the object has no program {}", self.name)
    }
}

impl std::error::Error for UnknownProgram {}
