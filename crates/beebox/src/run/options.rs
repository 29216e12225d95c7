//! Load options of an object.

/// Engine that runs verified programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunEngine {
    /// Native code without checks. Programs that it does not support run in the checked
    /// engine.
    #[default]
    Native,
    /// The interpreter that checks every access.
    Checked,
}

impl RunEngine {
    /// Its name in options and output.
    pub const fn name(self) -> &'static str {
        match self {
            RunEngine::Native => "native",
            RunEngine::Checked => "checked",
        }
    }
}

/// Options of [`LoadedObject::load`](super::LoadedObject::load).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Run programs without verification, in the checked engine: an access or call that the
    /// verifier would have refused ends a run with a trap.
    pub unverified: bool,
    /// Engine of verified programs.
    pub engine: RunEngine,
    /// Native code checks the deadline of
    /// [`RunnableProgram::set_limits`](super::RunnableProgram::set_limits); its loops are slower
    /// then.
    pub checks_deadline: bool,
    /// Indirect jumps and calls of native code go through a retpoline, which keeps processors
    /// from predicting them. Tail calls and calls of helpers are slower then.
    pub retpoline: bool,
    /// Functions of native code begin with a slot of five bytes, which a call or jump can
    /// replace.
    pub entry_slots: bool,
    /// Functions of native code save all callee-saved registers instead of those in use: for
    /// measurements.
    pub save_all_registers: bool,
    /// Possible CPUs, more than `cpu`: per-CPU maps hold a value for each.
    pub cpus: u32,
    /// The CPU that programs run on.
    pub cpu: u32,
    /// Seed of random numbers and hashes.
    pub seed: u64,
}

impl LoadOptions {
    /// Number of possible CPUs.
    pub(super) fn possible_cpus(&self) -> u32 {
        self.cpus.max(self.cpu.saturating_add(1))
    }
}

impl Default for LoadOptions {
    /// Verified, native, one CPU, seed 0.
    fn default() -> LoadOptions {
        LoadOptions {
            unverified: false,
            engine: RunEngine::Native,
            checks_deadline: false,
            retpoline: false,
            entry_slots: false,
            save_all_registers: false,
            cpus: 1,
            cpu: 0,
            seed: 0,
        }
    }
}
