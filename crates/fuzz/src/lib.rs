//! Fuzz targets: properties that hold for any input.
//!
//! A [`Target`] is a plain function of bytes. Two drivers feed it:
//!
//! * `cargo run -p beebox-fuzz`, the [`runner`]: mutates the committed seeds for
//!   a fixed time with a fixed random source, on stable Rust. It is guided by
//!   what a target says about each input (its [`Signature`]), not by coverage.
//! * `cargo +nightly fuzz run TARGET`, in the directory `fuzz`: libFuzzer with
//!   coverage of every branch.
//!
//! An input that fails a target becomes a seed when the bug is fixed, so that
//! `cargo test` runs it from then on.
#![forbid(unsafe_code)]

mod mutate;
pub mod runner;
mod targets;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

pub use mutate::Mutator;

/// A property that holds for any input.
pub struct Target {
    /// The name on the command line, and of the directory of seeds.
    pub name: &'static str,
    /// The checked property, in one line.
    pub property: &'static str,
    /// Words of the language that the target reads, for the mutator.
    pub words: &'static [&'static str],
    /// Runs one input; panics if the property does not hold.
    pub run: fn(&[u8]) -> Signature,
}

/// Every target.
pub const TARGETS: &[Target] = targets::ALL;

impl Target {
    /// Finds a target by its name.
    pub fn named(name: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.name == name)
    }

    /// Tries one input on the target of that name: what a libFuzzer binary does.
    pub fn hold(name: &str, input: &[u8]) {
        let target = Target::named(name).expect("the name of a target");
        (target.run)(input);
    }

    /// Location of its seeds.
    pub fn seed_directory(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("seeds")
            .join(self.name)
    }
}

/// Signature of an input's behaviour: of inputs with the same signature, only one is kept
/// for mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature(u64);

impl Signature {
    /// The signature of whatever describes an outcome.
    pub fn of(outcome: impl Hash) -> Signature {
        let mut hasher = DefaultHasher::new();
        outcome.hash(&mut hasher);
        Signature(hasher.finish())
    }
}
