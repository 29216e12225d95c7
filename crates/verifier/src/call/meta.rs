//! What a call does, as its arguments say.

use btf::fields::SpecialField;
use isa::ebpf::Reg;

use super::dynptr::Dynptr;
use super::reference;
use crate::env::Check;
use crate::mem::helper_mem::RawMem;
use crate::state::{MapRef, TypeRef};

/// Record of a call of a helper or kfunc: what the checks of its arguments find, for the checks
/// behind them (`bpf_call_arg_meta`, `bpf_kfunc_call_arg_meta`).
#[doc(alias = "bpf_call_arg_meta")]
#[doc(alias = "bpf_kfunc_call_arg_meta")]
#[derive(Clone, Debug, Default)]
pub(super) struct CallMeta {
    /// The map, with the identity of the lookup that it came from.
    pub(super) map: Option<(MapRef, u32)>,
    /// The buffer at hand may be uninitialised.
    pub(super) is_raw: bool,
    /// Stack that the call writes.
    pub(super) raw: RawMem,
    /// The register whose reference is released.
    pub(super) release: Option<Reg>,
    /// The reference among the arguments; 0: none.
    pub(super) ref_obj_id: u32,
    /// Bytes of the memory that is returned.
    pub(super) mem_size: Option<u32>,
    /// The memory that is returned may only be read.
    pub(super) is_mem_rdonly: bool,
    /// Largest value of the last size argument.
    pub(super) max_size: u64,
    /// Constant key of an array.
    pub(super) const_key: Option<i64>,
    /// The constant among the arguments.
    pub(super) constant: Option<u64>,
    /// Number of the subprogram that is called back.
    pub(super) subprog: u32,
    /// The object of the call: that behind a per-CPU pointer, or what is dropped, shared, or put
    /// into a list or tree.
    pub(super) object: Option<TypeRef>,
    /// The object behind a per-CPU pointer is one that the program allocated.
    pub(super) is_percpu_allocated: bool,
    /// The shared object is one that the program owns.
    pub(super) is_owning: bool,
    /// The head of a list or root of a tree.
    pub(super) root: Option<SpecialField>,
    /// The field that `bpf_kptr_xchg` exchanges.
    pub(super) kptr: Option<SpecialField>,
    /// The initialised dynptr among the arguments.
    pub(super) dynptr: Option<Dynptr>,
    /// The register with a pointer to a dynptr that is released.
    pub(super) released_dynptr: Option<Reg>,
    /// Frame and first slot of the iterator among the arguments.
    pub(super) iter: Option<(usize, usize)>,
}

impl CallMeta {
    /// Releases the reference that an argument holds; false if it is not held (`release_reg`). Null
    /// holds none.
    #[doc(alias = "release_reg")]
    pub(super) fn release_reference(&self, env: &mut Check<'_>) -> bool {
        let Some(released) = self.release else {
            return true;
        };
        match env.reg(released).ref_obj_id {
            0 => env.reg(released).is_null(),
            id => reference::release(env, id),
        }
    }
}
