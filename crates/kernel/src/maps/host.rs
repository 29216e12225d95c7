//! The machine that maps belong to.

use std::sync::Arc;

use spec::kernel::DEFAULT_MEMORY;
use vm::{Objects, Timers};

use super::MapMemory;

/// CPUs, randomness, timers, objects and memory of the model machine.
#[derive(Clone, Debug)]
pub struct Host {
    /// Possible CPUs, at least 1: per-CPU maps hold a value for each.
    pub cpus: u32,
    /// Seed of hash functions: the same seed gives the same order of iteration.
    pub seed: u64,
    /// Bytes of memory of the model machine, which limit what a map takes when it is created.
    pub machine_memory: u64,
    /// The timers in values of maps, which a map frees with the values that hold them.
    pub timers: Arc<Timers>,
    /// The objects that programs allocate, which maps free as they free timers.
    pub objects: Arc<Objects>,
    /// The memory of the maps.
    pub memory: Arc<MapMemory>,
    /// Maps whose kind allows it have a [`Journal`](super::Journal).
    pub journals: bool,
}

impl Host {
    /// A machine of [`DEFAULT_MEMORY`] without timers and objects, whose maps may take all of it.
    pub fn new(cpus: u32, seed: u64) -> Host {
        Host {
            cpus,
            seed,
            machine_memory: DEFAULT_MEMORY,
            timers: Arc::default(),
            objects: Arc::new(Objects::new(cpus)),
            memory: Arc::default(),
            journals: false,
        }
    }
}

impl Default for Host {
    /// One CPU, seed 0.
    fn default() -> Host {
        Host::new(1, 0)
    }
}
