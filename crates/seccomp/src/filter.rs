//! Filters as the kernel has them: checked, and stacked in the order of their
//! installation.

use classic::kernel_limits::{ConvertedLen, check_conversion, check_seccomp_memory};
use classic::run::Step;
use classic::{Checked, Program, Refusal, Rules, SeccompData, Semantics};
use isa::classic::SockFilter;

use crate::action::{Action, decide};

/// A filter that the kernel would install.
#[derive(Clone, Debug)]
pub struct Filter {
    checked: Checked,
    converted: ConvertedLen,
    program: Program,
}

impl Filter {
    /// Takes a program if the kernel would, on its own.
    pub fn new(program: &[SockFilter]) -> Result<Filter, Refusal> {
        let checked = classic::check(program, Rules::Seccomp)?;
        let converted = check_conversion(&checked)?;
        check_seccomp_memory(converted, [])?;
        Ok(Filter {
            program: Program::prepare(&checked, Semantics::Kernel),
            checked,
            converted,
        })
    }

    /// The checked program.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// What the filter returns for a system call.
    pub fn run(&self, data: &SeccompData) -> u32 {
        self.trace(data, &mut |_| ())
    }

    /// What it returns, reporting every instruction on the way.
    pub fn trace(&self, data: &SeccompData, report: &mut dyn FnMut(Step)) -> u32 {
        // It ends: seccomp filters have no backward jumps.
        self.program.trace_seccomp(data, report).unwrap_or_default()
    }
}

/// Filters in the order of their installation.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    filters: Vec<Filter>,
}

impl Stack {
    /// The filters, the oldest first.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// Installs one more, if the kernel would: all filters of a process share a
    /// limit on the length of what they are converted to.
    pub fn install(&mut self, filter: Filter) -> Result<(), Refusal> {
        let installed = self.filters.iter().map(|filter| filter.converted);
        check_seccomp_memory(filter.converted, installed)?;
        self.filters.push(filter);
        Ok(())
    }

    /// What the kernel does with a system call.
    pub fn run(&self, data: &SeccompData) -> Action {
        decide(self.filters.iter().map(|filter| filter.run(data)))
    }
}
