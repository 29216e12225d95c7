//! Seccomp filters.

use classic::{Checked, Refusal, Rules, SeccompData, Semantics, check};
use isa::classic::SockFilter;
use jit::memory::Pool;
use vm::{Machine, Outcome};

use crate::engine::{Engine, Prepared};

/// A seccomp filter, ready to run.
pub struct SeccompFilter {
    prepared: Prepared,
    checked: Checked,
    machine: Machine,
}

impl SeccompFilter {
    /// Checks a program as seccomp(2) does and prepares it for an engine.
    pub fn new(program: &[SockFilter], engine: Engine) -> Result<SeccompFilter, Refusal> {
        SeccompFilter::new_in(&Pool::new(), program, engine)
    }

    /// As [`SeccompFilter::new`], with native code in memory that many filters
    /// share.
    pub fn new_in(
        pool: &Pool,
        program: &[SockFilter],
        engine: Engine,
    ) -> Result<SeccompFilter, Refusal> {
        let checked = check(program, Rules::Seccomp)?;
        let prepared = Prepared::new(&checked, Semantics::Kernel, engine, pool);
        Ok(SeccompFilter {
            prepared,
            checked,
            machine: Machine::new(),
        })
    }

    /// The program as it was checked.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// The raw answer (`SECCOMP_RET_…` and its data) to one system call.
    #[inline]
    pub fn run(&mut self, call: &SeccompData) -> u32 {
        match &self.prepared {
            Prepared::Classic(program) => program
                .run_seccomp(call)
                .expect("a seccomp filter has no loops"),
            Prepared::Interp(code) => answer(code.run_seccomp(&mut self.machine, &call.to_bytes())),
            Prepared::Jit(code) => answer(code.run_seccomp(&mut self.machine, &call.to_bytes())),
        }
    }
}

fn answer(outcome: Outcome) -> u32 {
    match outcome {
        Outcome::Returned(value) => value as u32,
        Outcome::BudgetExhausted | Outcome::DeadlinePassed => {
            unreachable!("a seccomp filter has no loops")
        }
    }
}
