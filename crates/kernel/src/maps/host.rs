//! What maps use of the machine that they stand for.

/// CPUs and randomness of the model machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// Possible CPUs, at least 1: per-CPU maps hold a value for each.
    pub cpus: u32,
    /// Seed of hash functions: the same seed gives the same order of iteration.
    pub seed: u64,
}

impl Default for Host {
    /// One CPU, seed 0.
    fn default() -> Host {
        Host { cpus: 1, seed: 0 }
    }
}
