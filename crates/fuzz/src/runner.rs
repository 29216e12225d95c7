//! The bounded fuzzer: mutates inputs of its corpus, and keeps those with a new signature.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use sys::process::{peak_memory, thread_time};

use crate::{Mutator, Signature, Target};

/// Time limit of an input.
pub const SLOW: Duration = Duration::from_secs(2);
/// Limit of the memory that an input adds to what the process had before.
pub const LARGE: u64 = 500 << 20;
/// Inputs kept beside the seeds.
const KEPT: usize = 4096;

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Seeds it started from.
    pub seeds: usize,
    /// Inputs tried.
    pub inputs: u64,
    /// Different signatures seen.
    pub signatures: usize,
}

/// An input that breaks its target.
#[derive(Debug)]
pub struct Broken {
    /// The input.
    pub input: Vec<u8>,
    /// Description.
    pub how: FailureKind,
}

/// Failure of a target on an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The target panicked (its message is on standard error).
    Panicked,
    /// It exceeded the time limit.
    Slow(Duration),
    /// It added so many bytes to the memory of the process.
    Large(u64),
}

/// Limits of a fuzzing run.
#[derive(Clone, Copy, Debug)]
pub enum Until {
    /// After so much time.
    Elapsed(Duration),
    /// After so many inputs.
    Inputs(u64),
}

/// The committed seeds of a target, in order of name.
pub fn seeds(target: &Target) -> io::Result<Vec<Vec<u8>>> {
    let mut paths = fs::read_dir(target.seed_directory())?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    paths.into_iter().map(fs::read).collect()
}

/// Tries one input, which must not take more processor time than `slow`, nor more memory
/// than [`LARGE`] beyond what inputs before it took.
pub fn attempt(target: &Target, input: &[u8], slow: Duration) -> Result<Signature, FailureKind> {
    let (began, before) = (thread_time(), peak_memory());
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    let signature = outcome.map_err(|_| FailureKind::Panicked)?;
    let took = thread_time() - began;
    if took > slow {
        return Err(FailureKind::Slow(took));
    }
    let added = peak_memory() - before;
    if added > LARGE {
        return Err(FailureKind::Large(added));
    }
    Ok(signature)
}

/// Tries the seeds, then mutations of them and of every input that did something
/// new. The inputs depend on `seed`, the target and its seeds only.
pub fn fuzz(
    target: &Target,
    seeds: Vec<Vec<u8>>,
    seed: u64,
    until: Until,
    slow: Duration,
) -> Result<Tally, Box<Broken>> {
    let mut mutator = Mutator::new(seed, target.words);
    let mut seen = HashSet::new();
    let mut inputs = 0;
    let mut try_out = |input: &[u8]| match attempt(target, input, slow) {
        Ok(signature) => Ok(seen.insert(signature)),
        Err(how) => Err(Box::new(Broken {
            input: input.to_vec(),
            how,
        })),
    };

    let mut corpus = seeds;
    corpus.push(Vec::new());
    let seeds = corpus.len() - 1;
    for input in &corpus {
        inputs += 1;
        try_out(input)?;
    }
    let began = Instant::now();
    let is_over = |inputs| match until {
        Until::Elapsed(limit) => began.elapsed() >= limit,
        Until::Inputs(limit) => inputs >= limit,
    };
    while !is_over(inputs) {
        // What was kept is mostly refused early, so every fourth starts at a seed.
        let from = match mutator.below(4) {
            0 => seeds + 1,
            _ => corpus.len(),
        };
        let input = &corpus[mutator.below(from)];
        let other = &corpus[mutator.below(corpus.len())];
        let mutated = mutator.mutate(input, other);
        inputs += 1;
        if try_out(&mutated)? {
            if corpus.len() < seeds + KEPT {
                corpus.push(mutated);
            } else {
                let replaced = seeds + mutator.below(KEPT);
                corpus[replaced] = mutated;
            }
        }
    }
    Ok(Tally {
        seeds,
        inputs,
        signatures: seen.len(),
    })
}
