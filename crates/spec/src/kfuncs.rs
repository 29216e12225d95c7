//! Kernel functions (kfuncs) in resolved code, where their calls have numbers as those of
//! helpers have.
//!
//! A program calls a kfunc by a BTF id and the number of the module that has it; what they
//! stand for depends on the kernel that it was linked for. [`KernelFunction::from_insn`] looks
//! that up, [`KernelFunction::resolved`] puts a number of a private range in its place.

use isa::ebpf::{Callee, Imm64, Insn, Value64};

use btf::{Kind, TypeId};

use crate::Kernel;
use crate::bits::BitOp;
use crate::calls;
use crate::host;
use crate::kernel::Module;
use crate::registry::SpecialKfunc;
use crate::since;

/// Functions of a range at most.
const RANGE: i32 = 0x1_0000;

/// A kernel function that an instruction refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KernelFunction {
    /// A bit operation.
    Bits(BitOp),
    /// A function of Linux, by its place in the table of all that have a release.
    Linux(u16),
    /// A function of the host, by its place in [`Kernel::host_functions`].
    Host(u16),
}

impl KernelFunction {
    /// The function of Linux with a name, if its release is known.
    pub const fn of_linux(name: &str) -> Option<KernelFunction> {
        match since::kfunc_index(name) {
            Some(index) => Some(KernelFunction::Linux(index)),
            None => None,
        }
    }

    /// Helper number that a call has in resolved code; no program can name it.
    pub const fn number(self) -> i32 {
        match self {
            KernelFunction::Bits(op) => op.number(),
            KernelFunction::Linux(index) => calls::FIRST_KFUNC + index as i32,
            KernelFunction::Host(index) => calls::FIRST_HOST_FUNCTION + index as i32,
        }
    }

    /// The function with a number of resolved code.
    pub const fn from_number(number: i32) -> Option<KernelFunction> {
        if let Some(op) = BitOp::from_number(number) {
            return Some(KernelFunction::Bits(op));
        }
        match (
            number.wrapping_sub(calls::FIRST_KFUNC),
            number.wrapping_sub(calls::FIRST_HOST_FUNCTION),
        ) {
            (index @ 0..RANGE, _) => Some(KernelFunction::Linux(index as u16)),
            (_, index @ 0..RANGE) => Some(KernelFunction::Host(index as u16)),
            _ => None,
        }
    }

    /// Its name; `None` for functions of a host, which a kernel knows.
    pub fn name(self) -> Option<&'static str> {
        match self {
            KernelFunction::Bits(op) => Some(op.name()),
            KernelFunction::Linux(index) => since::kfunc_name(index),
            KernelFunction::Host(_) => None,
        }
    }

    /// The kfunc, if it is one of Linux with rules of its own.
    pub fn special(self) -> Option<SpecialKfunc> {
        match self {
            KernelFunction::Linux(index) => SpecialKfunc::named(since::kfunc_name(index)?),
            KernelFunction::Bits(_) | KernelFunction::Host(_) => None,
        }
    }

    /// Address that programs may compare with 0; there is nothing.
    pub const fn address(self) -> u64 {
        0xffff_ffff_f000_0000 + 16 * (self.number() - calls::FIRST_HOST_FUNCTION) as u64
    }

    /// The function that an instruction calls or loads the address of, in a program that was
    /// linked for a kernel; `None` for other instructions, helpers of Linux among them, and for
    /// functions that are unknown.
    pub fn from_insn(kernel: &Kernel, insn: &Insn) -> Option<KernelFunction> {
        let (id, module) = match *insn {
            Insn::Call(Callee::Helper(number)) => {
                let mut functions = kernel.host_functions().iter();
                let number = u32::try_from(number).ok();
                let index = functions
                    .position(|function| function.helper.is_some() && function.helper == number)?;
                return Some(KernelFunction::Host(index as u16));
            }
            Insn::Call(Callee::Kfunc { id, module }) => (id, i32::from(module)),
            Insn::LoadImm64 {
                imm: Imm64::BtfId { id, module_fd },
                ..
            } => (id, module_fd),
            _ => return None,
        };
        match usize::try_from(module).ok()?.checked_sub(1) {
            Some(at) => KernelFunction::from_module(kernel.modules().get(at)?, id),
            None => {
                let func = kernel.btf()?.get(TypeId(id as u32))?;
                let name = func.name().to_str()?;
                match func.kind() {
                    Kind::Func => KernelFunction::of_linux(name),
                    _ => None,
                }
            }
        }
    }

    /// The function of a module with a BTF id, if it is one of those that are built.
    pub fn from_module(module: &Module, id: i32) -> Option<KernelFunction> {
        if module.name == host::MODULE {
            let functions = module.kfuncs.as_deref()?.iter();
            let mut functions = functions.zip(0..);
            let found = functions.find(|(function, _)| function.btf_id == id as u32);
            return found.map(|(_, index)| KernelFunction::Host(index));
        }
        let bits = BitOp::from_func(module, id).map(KernelFunction::Bits);
        if module.kfuncs.is_some() {
            return bits;
        }
        let func = module.btf.get(TypeId(id as u32))?;
        let func = Some(func).filter(|func| func.kind() == Kind::Func);
        KernelFunction::of_linux(func?.name().to_str()?)
    }

    /// The instruction with the number or the address of the function in place of its BTF
    /// id.
    pub fn resolved(self, insn: Insn) -> Insn {
        match insn {
            Insn::LoadImm64 { dst, .. } => Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(Value64::new(self.address())),
            },
            _ => Insn::Call(Callee::Helper(self.number())),
        }
    }
}

/// Support state of a kfunc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It runs, with the results of Linux.
    Runs,
    /// It runs, and answers that what it is about does not exist.
    Absent,
    /// No run reaches it: it takes an object that no other function returns here.
    Unreached,
    /// No program that it is for is run here, for this reason; loading it to run is refused by
    /// name.
    Refused(&'static str),
    /// Unsupported, with the missing model; loading to run is refused by name.
    Unsupported(&'static str),
}

impl CallState {
    /// One word for lists.
    pub const fn name(self) -> &'static str {
        match self {
            CallState::Runs => "runs",
            CallState::Absent => "absent",
            CallState::Unreached => "unreached",
            CallState::Refused(_) => "refused",
            CallState::Unsupported(_) => "unsupported",
        }
    }

    /// Reason why a program that calls it cannot be loaded to run.
    pub const fn why_not(self) -> Option<&'static str> {
        match self {
            CallState::Runs | CallState::Absent | CallState::Unreached => None,
            CallState::Refused(why) | CallState::Unsupported(why) => Some(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_functions() {
        let all = [
            KernelFunction::Bits(BitOp::Ror),
            KernelFunction::of_linux("bpf_strcmp").expect("it has a release"),
            KernelFunction::Host(0),
            KernelFunction::Host(u16::MAX),
        ];
        for function in all {
            assert_eq!(
                KernelFunction::from_number(function.number()),
                Some(function)
            );
        }
        assert_eq!(all[1].name(), Some("bpf_strcmp"));
        assert_eq!(KernelFunction::from_number(1), None);
        assert_eq!(KernelFunction::of_linux("bpf_no_such_function"), None);
    }
}
