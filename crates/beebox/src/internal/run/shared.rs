//! The state that all runs of an object's programs share, on every thread: programs, maps, and
//! what helpers report of the machine. What a run has for itself is in
//! [`Services`](super::services::Services).

use std::sync::Arc;
use std::time::Duration;

use ::kernel::maps::MapMemory;
use ::kernel::process::Process;
use ::kernel::variables::Variables;
use vm::{Addresses, MapHandle, Objects, System, Timers};

use super::hook::HookLayout;
use super::map_structure::MapLayout;
use super::prepared::Prepared;
use super::random::RunRandom;
use super::services::Services;
use super::task::TaskLayout;
use super::{ObjectMap, RunnableProgram};

/// Programs and maps of a loaded object with the services that do not depend on the run.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) programs: Vec<Prepared>,
    /// The maps by their place in the object, of those that programs use.
    pub(super) maps: Vec<Option<ObjectMap>>,
    /// The maps as native code refers to them.
    pub(super) handles: Vec<MapHandle>,
    /// Most time of a run of native code without a deadline.
    pub(super) timeout: Option<Duration>,
    /// The memory of the maps.
    pub(super) memory: Arc<MapMemory>,
    /// The addresses that runs in the checked engine see, and that of the task in all.
    pub(super) addresses: Addresses,
    /// The machine and the network that helpers report.
    pub(super) system: System,
    /// The timers in values of maps.
    pub(super) timers: Arc<Timers>,
    /// The objects that programs allocate.
    pub(super) objects: Arc<Objects>,
    /// The process of the programs.
    pub(super) process: Process,
    /// The variables of the kernel that the programs refer to.
    pub(super) variables: Variables,
    /// The layout of tasks, if the kernel's types are known.
    pub(super) task: Option<TaskLayout>,
    /// The layouts of what contexts of netfilter programs point to, if the kernel has them.
    pub(super) hook_layout: Option<HookLayout>,
    /// The layout of maps, if the kernel's types are known.
    pub(super) map_layout: Option<MapLayout>,
}

impl Shared {
    /// Place of the program of this name.
    pub(super) fn place(&self, name: &str) -> Option<usize> {
        let mut programs = self.programs.iter();
        programs.position(|prepared| prepared.program.name() == name)
    }

    /// The program at a place, to run on a CPU with these random numbers.
    pub(super) fn program<'o>(
        &'o self,
        place: usize,
        cpu: u32,
        random: RunRandom<'o>,
    ) -> RunnableProgram<'o> {
        RunnableProgram::new(self, place, Services::new(self, cpu, random))
    }
}
