//! Targets of BPF iterators (`struct bpf_iter_reg`): what programs of type tracing,
//! attach type `trace_iter`, are given beyond the prototype of the target's function.

use super::helper::KernelType;
use super::types::RegType;

/// One target, `bpf_iter_NAME`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IteratorTarget {
    /// Arguments whose type is not that of the prototype (`ctx_arg_info`), ascending by
    /// index.
    pub args: Vec<IteratorArg>,
    /// Index of the set of helpers, where the target has its own
    /// (`get_func_proto`).
    pub helpers: Option<u32>,
}

/// An argument that the target describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IteratorArg {
    /// Index of the argument, from 0.
    pub index: u32,
    /// Type of the value read.
    pub value: RegType,
    /// The structure that the value points to.
    pub btf: Option<KernelType>,
}

impl IteratorTarget {
    /// The description of an argument.
    pub fn arg(&self, index: usize) -> Option<&IteratorArg> {
        self.args.iter().find(|arg| arg.index as usize == index)
    }
}
