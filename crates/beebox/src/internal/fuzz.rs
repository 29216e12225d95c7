//! Coverage-guided fuzzing of a program: looks for packets, contexts, map contents and times on which a
//! property does not hold ([`crate::fuzz`] describes it).
//!
//! [`Campaign::run`] works in rounds: each job mutates inputs of the corpus, runs them in native code with
//! counters, and keeps those that increment counters as none did before, by powers of two, or that leave numbers
//! in maps and variables as none did, from which runs behind them go on. Between rounds the
//! corpora are joined in the order of the jobs, so that the seed and the number of jobs decide about
//! everything. Numbers that jumps compared (a run in the checked engine of each kept input) are put in
//! place of what they were compared with. After each input the maps are set back by what was written.

mod campaign;
mod closer;
mod corpus;
mod executor;
mod features;
mod find;
mod fit;
mod frames;
mod input;
mod layout;
mod minimize;
mod mutator;
mod output;
mod packets;
mod property;
mod random;
mod steps;
mod verdicts;
mod worker;

pub use campaign::{Campaign, FuzzPlan, FuzzProgress, FuzzReport};
pub use corpus::{Corpus, CorpusError, read_corpus, write_corpus};
pub use executor::FuzzTarget;
pub use find::{CaptureForm, FuzzFind, capture_as};
pub use input::{FuzzInput, InputElement, InputStep};
pub use output::{FindsError, make_find_directory, object_path, write_find};
pub use property::{FuzzRun, Property};

/// Bytes as hexadecimal digits.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
