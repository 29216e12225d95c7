//! Read-only input of a verification: program, kernel, options, limits.

use btf::{Btf, Linkage, Shape, TypeId};
use isa::ebpf::Insn;
use program::Program;
use spec::kernel::{Module, Symbols};
use spec::registry::{ProgramContext, Registry};

use crate::options::Options;
use crate::resolve::Maps;
use crate::state::{BtfRef, MapRef, TypeRef};
use crate::type_rules::TypeRules;

/// Read-only input of a verification.
pub struct Input<'a> {
    /// The program.
    pub program: &'a Program,
    /// The kernel's registry.
    pub registry: &'a Registry,
    /// Context of the program in the registry.
    pub context: ProgramContext<'a>,
    /// Options.
    pub options: &'a Options,
    /// The program's slots, decoded.
    pub insns: Vec<Insn>,
    /// Privilege: pointers may be compared and stored where others could read them.
    pub allow_ptr_leaks: bool,
    /// Privilege: stack that was not written may be read.
    pub allow_uninit_stack: bool,
    /// Privilege: CAP_BPF.
    pub bpf_capable: bool,
    /// Speculative paths need not be verified (Spectre variant 1): the caller has
    /// CAP_PERFMON, or the kernel does not mitigate.
    pub bypass_spec_v1: bool,
    /// Writes to the stack need no barriers (Spectre variant 4), for the same reasons.
    pub bypass_spec_v4: bool,
    /// Accesses must be aligned whatever the processor allows.
    pub strict_alignment: bool,
    /// The JIT compiler gives functions stacks of their own.
    pub private_stack: bool,
    /// A checkpoint at every prune point (BPF_F_TEST_STATE_FREQ).
    pub test_state_freq: bool,
    /// Broken register invariants refuse the program (BPF_F_TEST_REG_INVARIANTS).
    pub test_reg_invariants: bool,
    /// The program's maps, and behind them the templates of the maps that they hold.
    pub maps: Maps,
    /// Types of the kernel.
    pub vmlinux: Option<&'a Btf<'static>>,
    /// Modules of the kernel; module number n is entry n - 1.
    pub modules: &'a [Module],
    /// Symbols of the kernel, if they are stated.
    pub symbols: Option<&'a Symbols>,
    /// Number of CPUs that the kernel may have.
    pub cpus: u32,
}

impl Input<'_> {
    /// True if the values of a map have addresses that programs may hold
    /// (`map_direct_value_addr`).
    #[doc(alias = "map_direct_value_addr")]
    pub fn has_direct_value(&self, map: MapRef) -> bool {
        self.maps[map]
            .kind()
            .and_then(|kind| self.registry.map(kind))
            .is_some_and(|traits| traits.has_direct_value)
    }

    /// Rules that go by the program's type.
    pub(crate) const fn type_rules(&self) -> TypeRules {
        TypeRules::of(self.context.kind)
    }

    /// The BTF object of a type.
    pub fn btf(&self, ty: TypeRef) -> Option<&Btf<'static>> {
        match ty.btf {
            BtfRef::Vmlinux => self.vmlinux,
            BtfRef::Program => self.program.btf().map(|btf| &**btf),
        }
    }

    /// The name of a type.
    pub fn type_name(&self, ty: TypeRef) -> String {
        let found = self.btf(ty).and_then(|btf| btf.get(TypeId(ty.id)));
        found.map_or_else(
            || format!("#{}", ty.id),
            |ty| ty.name().to_string_lossy().into_owned(),
        )
    }

    /// True if a structure of vmlinux has, at `off`, the expected one
    /// (`btf_struct_ids_match`); `is_strict` allows only the structure itself.
    #[doc(alias = "btf_struct_ids_match")]
    pub fn is_prefix(&self, id: u32, expected: u32, off: i32, is_strict: bool) -> bool {
        let Some(vmlinux) = self.vmlinux else {
            return false;
        };
        vmlinux.begins_with(TypeId(id), TypeId(expected), off, is_strict)
    }

    /// True if BTF says that the function at `start` is static.
    pub fn is_static(&self, start: u32) -> bool {
        let info = self.program.func_info();
        let func = info.iter().find(|func| func.insn == start);
        let (Some(func), Some(btf)) = (func, self.program.btf()) else {
            return false;
        };
        match btf.get(func.type_id).map(|ty| ty.shape()) {
            Some(Shape::Func(func)) => func.linkage == Linkage::STATIC,
            _ => false,
        }
    }
}
