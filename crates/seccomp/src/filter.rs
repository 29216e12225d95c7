//! Checked filters, and stacks of them in the order of installation.

use classic::kernel_limits::{ConvertedLen, check_conversion, check_seccomp_memory};
use classic::run::Step;
use classic::{Checked, PlainProgram, Refusal, Rules, SeccompData, Semantics};
use isa::classic::SockFilter;

use crate::action::{Action, decide};
use crate::arch::ByteOrder;

/// A filter that the kernel accepts.
#[derive(Clone, Debug)]
pub struct FilterProgram {
    checked: Checked,
    converted: ConvertedLen,
    program: PlainProgram,
    order: ByteOrder,
}

impl FilterProgram {
    /// Checks a program by the kernel's rules for a single filter.
    pub fn new(program: &[SockFilter]) -> Result<FilterProgram, Refusal> {
        FilterProgram::for_machine(program, ByteOrder::Little)
    }

    /// The same for a machine of a byte order, which decides at which offsets the program
    /// finds the halves of arguments.
    pub fn for_machine(program: &[SockFilter], order: ByteOrder) -> Result<FilterProgram, Refusal> {
        let checked = classic::check(program, Rules::Seccomp)?;
        let converted = check_conversion(&checked)?;
        check_seccomp_memory(converted, [])?;
        Ok(FilterProgram {
            program: PlainProgram::prepare(&checked, Semantics::Kernel),
            checked,
            converted,
            order,
        })
    }

    /// Byte order of the machine that it is for.
    pub fn byte_order(&self) -> ByteOrder {
        self.order
    }

    /// The checked program.
    pub fn checked(&self) -> &Checked {
        &self.checked
    }

    /// Runs the filter on a system call; returns its return value.
    pub fn run(&self, data: &SeccompData) -> u32 {
        self.trace(data, &mut |_| ())
    }

    /// As [`run`](Self::run), reporting every executed instruction.
    pub fn trace(&self, data: &SeccompData, report: &mut dyn FnMut(Step)) -> u32 {
        let data = match self.order {
            ByteOrder::Little => *data,
            ByteOrder::Big => data.with_halves_exchanged(),
        };
        // Seccomp filters terminate: they have no backward jumps.
        self.program
            .trace_seccomp(&data, report)
            .unwrap_or_default()
    }
}

/// Filters in the order of their installation.
#[derive(Clone, Debug, Default)]
pub struct Stack {
    filters: Vec<FilterProgram>,
}

impl Stack {
    /// The filters, the oldest first.
    pub fn filters(&self) -> &[FilterProgram] {
        &self.filters
    }

    /// Adds a filter, if the total length of the converted filters stays within the
    /// kernel's limit.
    pub fn install(&mut self, filter: FilterProgram) -> Result<(), Refusal> {
        let installed = self.filters.iter().map(|filter| filter.converted);
        check_seccomp_memory(filter.converted, installed)?;
        self.filters.push(filter);
        Ok(())
    }

    /// Returns the kernel's action for a system call.
    pub fn run(&self, data: &SeccompData) -> Action {
        decide(self.filters.iter().map(|filter| filter.run(data)))
    }
}
