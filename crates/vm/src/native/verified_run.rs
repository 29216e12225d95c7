//! Runs of verified programs: what they have in common in all engines without checks.

use std::fmt;
use std::panic;
use std::sync::Arc;

use crate::{
    Counters, DirectAccess, HostFunction, MapHandle, Outcome, RunContext, RunGuard, StackFrames,
    TailTable,
};

/// What the code of a program refers to by address, which exists as long as the code, and what
/// its runs need.
#[derive(Clone, Debug)]
pub struct References {
    /// The maps, whose values helpers may probe.
    maps: Vec<MapHandle>,
    /// Objects of operations on maps.
    _accesses: Vec<DirectAccess>,
    /// The tables of targets of tail calls.
    _tail_tables: Vec<Arc<TailTable>>,
    /// The functions of the host, which code calls by index.
    host: Arc<[HostFunction]>,
    /// The counters that it increments.
    _counters: Option<Counters>,
    /// Number of CPUs that the code may run on.
    cpus: u32,
}

impl References {
    /// What code refers to.
    pub fn new(
        maps: &[MapHandle],
        accesses: &[DirectAccess],
        tail_tables: &[Arc<TailTable>],
        host: &Arc<[HostFunction]>,
    ) -> References {
        let copies = accesses.iter().filter_map(|access| match access {
            DirectAccess::Elements(elements) => Some(elements.copies()),
            DirectAccess::Maps(_) | DirectAccess::Hash(_) | DirectAccess::Function(_) => None,
        });
        let callers = tail_tables.iter().map(|table| table.cpus());
        let cpus = copies.filter(|copies| *copies > 1).chain(callers).min();
        References {
            maps: maps.to_vec(),
            _accesses: accesses.to_vec(),
            _tail_tables: tail_tables.to_vec(),
            host: host.clone(),
            _counters: None,
            cpus: cpus.unwrap_or(u32::MAX),
        }
    }

    /// With counters that the code increments.
    #[must_use]
    pub fn with_counters(self, counters: Option<Counters>) -> References {
        References {
            _counters: counters,
            ..self
        }
    }

    /// Number of CPUs that the code may run on: those of which its maps have values, and for which
    /// its program arrays take targets.
    pub fn cpus(&self) -> u32 {
        self.cpus
    }

    /// True if the code calls functions of the host.
    pub fn has_host_functions(&self) -> bool {
        !self.host.is_empty()
    }

    /// Checks the CPU of a run.
    ///
    /// # Errors
    /// If the maps have no values for it.
    #[inline]
    pub fn check_cpu(&self, cx: &RunContext<'_>) -> Result<(), NoSuchCpu> {
        let (cpu, cpus) = (cx.cpu(), self.cpus);
        match cpu < cpus {
            true => Ok(()),
            false => Err(NoSuchCpu { cpu, cpus }),
        }
    }

    /// Runs the code by `enter` in the run context of a verified program, and ends the run: a
    /// lock that it held is freed, and the panic of a helper goes on.
    ///
    /// # Safety
    /// `enter` runs code of a verified program that refers to these, on the context at `r1`, and
    /// nothing else.
    #[inline]
    pub unsafe fn run<'r>(
        &'r self,
        r1: u64,
        guard: &'r RunGuard,
        mut cx: RunContext<'r>,
        enter: impl FnOnce(&mut RunContext<'_>) -> Outcome,
    ) -> Outcome {
        if cx.maps.is_empty() {
            cx.maps = &self.maps;
        }
        // The program's loads and stores reach the packet through the context.
        cx.context = r1;
        cx.frames = StackFrames::NONE;
        cx.guard = Some(guard);
        cx.host = &self.host;
        let outcome = enter(&mut cx);
        // SAFETY: the handles keep the maps, and the run has ended.
        unsafe { guard.free_held_lock() };
        if let Some(payload) = cx.panic {
            panic::resume_unwind(payload);
        }
        outcome
    }
}

/// A program was to run on a CPU for which its maps have no values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchCpu {
    /// Number of the CPU.
    pub cpu: u32,
    /// Number of CPUs for which the maps have values.
    pub cpus: u32,
}

impl fmt::Display for NoSuchCpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSuchCpu { cpu, cpus } = self;
        write!(
            f,
            "CPU {cpu}: the program's maps have values for {cpus} CPUs, numbered from 0"
        )
    }
}

impl std::error::Error for NoSuchCpu {}
