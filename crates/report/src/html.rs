//! Pages to look at: one self-contained file each, for a run and for a verification.
//!
//! The data is JSON in a script element, in which every `<`, `>` and `&` is escaped, so that no name of
//! an object ends the element; the scripts put texts into the page as text alone. A page loads nothing:
//! its policy forbids it. Strings, places and events are written once and named by their numbers.

mod page;
mod run;
mod source;
mod strings;
mod verify;

pub use run::{PacketLine, RunPage, RunSummary};
pub use source::SourceFinder;
pub use verify::{VerifyPage, WalkedProgram};
