//! kfuncs: functions of the kernel that programs call by BTF id.

use super::SpecialKfunc;
use crate::programs::{AttachType, ProgramType};

/// Flags of a kfunc: `KF_*` of `include/linux/btf.h`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct KfuncFlags(pub u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $flag:ident = $bit:literal;)*) => {
        impl KfuncFlags {
            $($(#[$doc])* pub const $flag: KfuncFlags = KfuncFlags(1 << $bit);)*
            /// Every flag with its name, by bit.
            pub const ALL: &'static [(KfuncFlags, &'static str)] =
                &[$((KfuncFlags::$flag, stringify!($flag)),)*];
        }
    };
}

flags! {
    /// It returns a reference that the program must release (`is_kfunc_acquire`).
    #[doc(alias = "is_kfunc_acquire")]
    ACQUIRE = 0;
    /// It releases its argument (`is_kfunc_release`).
    #[doc(alias = "is_kfunc_release")]
    RELEASE = 1;
    /// It may return null (`is_kfunc_ret_null`).
    #[doc(alias = "is_kfunc_ret_null")]
    RET_NULL = 2;
    /// Its pointers must be trusted (`is_kfunc_trusted_args`).
    #[doc(alias = "is_kfunc_trusted_args")]
    TRUSTED_ARGS = 4;
    /// It may sleep (`is_kfunc_sleepable`).
    #[doc(alias = "is_kfunc_sleepable")]
    SLEEPABLE = 5;
    /// It needs CAP_SYS_BOOT (`is_kfunc_destructive`).
    #[doc(alias = "is_kfunc_destructive")]
    DESTRUCTIVE = 6;
    /// Its pointers must be trusted or protected by RCU (`is_kfunc_rcu`).
    #[doc(alias = "is_kfunc_rcu")]
    RCU = 7;
    /// It makes an iterator (`is_iter_new_kfunc`).
    #[doc(alias = "is_iter_new_kfunc")]
    ITER_NEW = 8;
    /// It advances an iterator (`is_iter_next_kfunc`).
    #[doc(alias = "is_iter_next_kfunc")]
    ITER_NEXT = 9;
    /// It ends an iterator (`is_iter_destroy_kfunc`).
    #[doc(alias = "is_iter_destroy_kfunc")]
    ITER_DESTROY = 10;
    /// It returns a pointer protected by RCU (`is_kfunc_rcu_protected`).
    #[doc(alias = "is_kfunc_rcu_protected")]
    RCU_PROTECTED = 11;
    /// Calls may be inlined without clobbering registers (`is_fastcall_kfunc_call`).
    #[doc(alias = "is_fastcall_kfunc_call")]
    FASTCALL = 12;
    /// Its arguments are in an arena: the returned pointer.
    ARENA_RET = 13;
    /// Its first argument may be in an arena.
    ARENA_ARG1 = 14;
    /// Its second argument may be in an arena.
    ARENA_ARG2 = 15;
}

impl KfuncFlags {
    /// It makes, advances or ends an iterator, which its first argument points to
    /// (`is_iter_kfunc`).
    #[doc(alias = "is_iter_kfunc")]
    pub const ITERATOR: KfuncFlags = KfuncFlags::ITER_NEW
        .with(KfuncFlags::ITER_NEXT)
        .with(KfuncFlags::ITER_DESTROY);

    /// True if all of `other` are set.
    pub const fn has(self, other: KfuncFlags) -> bool {
        self.0 & other.0 == other.0
    }

    /// True if at least one of `other` is set.
    pub const fn has_any(self, other: KfuncFlags) -> bool {
        self.0 & other.0 != 0
    }

    /// Union of both.
    #[must_use]
    pub const fn with(self, other: KfuncFlags) -> KfuncFlags {
        KfuncFlags(self.0 | other.0)
    }
}

/// A set of program types, one bit by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ProgramTypes(pub u64);

impl ProgramTypes {
    /// True if the type is in the set.
    pub const fn has(self, kind: ProgramType) -> bool {
        self.0 >> kind.number() & 1 == 1
    }

    /// The set with one more type.
    #[must_use]
    pub const fn with(self, kind: ProgramType) -> ProgramTypes {
        ProgramTypes(self.0 | 1 << kind.number())
    }
}

/// A kfunc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kfunc {
    /// Name.
    pub name: Box<str>,
    /// BTF id of its FUNC in the kernel that the registry is resolved for; 0 if it lacks
    /// the kfunc.
    pub btf_id: u32,
    /// Flags (`KF_*`) (`btf_kfunc_flags`, `btf_kfunc_check_flag`).
    #[doc(alias = "btf_kfunc_flags")]
    #[doc(alias = "btf_kfunc_check_flag")]
    pub flags: KfuncFlags,
    /// The kfunc, if it is one of Linux with rules of its own.
    pub special: Option<SpecialKfunc>,
    /// Program types that may call it (`bpf_prog_type_to_kfunc_hook`).
    #[doc(alias = "bpf_prog_type_to_kfunc_hook")]
    pub program_types: ProgramTypes,
    /// Attach types of program types whose programs may call it although
    /// [`Kfunc::program_types`] says that they may not, or the other way round.
    pub exceptions: Vec<(ProgramType, AttachType)>,
}

/// kfuncs of a module of Debian's Linux 6.18.
#[derive(Clone, Copy, Debug)]
pub struct ModuleKfuncs {
    /// Beginning of their names; the name where `rules` are stated.
    pub names: &'static str,
    /// Module that has them.
    pub module: &'static str,
    /// Flags and program type of a kfunc that no kernel at hand has built in: what Debian's Linux
    /// 6.18.15, with the module loaded, answered to a call in programs of every type, to calls with
    /// null, and to programs that do not check or do not release the result.
    pub rules: Option<(KfuncFlags, ProgramType)>,
}

/// kfuncs of modules. The first entry with the beginning of a name counts.
pub const MODULE_KFUNCS: &[ModuleKfuncs] = {
    const fn built_in_elsewhere(names: &'static str, module: &'static str) -> ModuleKfuncs {
        ModuleKfuncs {
            names,
            module,
            rules: None,
        }
    }
    const fn asked(
        names: &'static str,
        module: &'static str,
        flags: KfuncFlags,
        kind: ProgramType,
    ) -> ModuleKfuncs {
        ModuleKfuncs {
            names,
            module,
            rules: Some((flags, kind)),
        }
    }
    const CHECKED: KfuncFlags = KfuncFlags::TRUSTED_ARGS.with(KfuncFlags::RET_NULL);
    const NONE: KfuncFlags = KfuncFlags(0);
    use ProgramType::{SchedCls, Xdp};
    &[
        built_in_elsewhere("bbr_", "tcp_bbr"),
        built_in_elsewhere("bpf_ct_set_nat_info", "nf_nat"),
        built_in_elsewhere("bpf_ct_", "nf_conntrack"),
        built_in_elsewhere("bpf_skb_ct_", "nf_conntrack"),
        built_in_elsewhere("bpf_xdp_ct_", "nf_conntrack"),
        asked("bpf_xdp_flow_lookup", "nf_flow_table", CHECKED, Xdp),
        asked("bpf_skb_get_fou_encap", "fou", NONE, SchedCls),
        asked("bpf_skb_set_fou_encap", "fou", NONE, SchedCls),
        asked("bpf_skb_get_xfrm_info", "xfrm_interface", NONE, SchedCls),
        asked("bpf_skb_set_xfrm_info", "xfrm_interface", NONE, SchedCls),
    ]
};

impl Kfunc {
    /// The module that has it, if the kernel itself has not.
    pub fn module(&self) -> Option<&'static str> {
        let mut modules = MODULE_KFUNCS.iter().filter(|_| self.btf_id == 0);
        let found = modules.find(|of_module| self.name.starts_with(of_module.names));
        found.map(|of_module| of_module.module)
    }

    /// True if programs of this type and expected attach type may call it (`btf_kfunc_is_allowed`,
    /// `__btf_kfunc_is_allowed`, `btf_kfunc_id_set_contains`, `__btf_kfunc_id_set_contains`).
    #[doc(alias = "btf_kfunc_is_allowed")]
    #[doc(alias = "__btf_kfunc_is_allowed")]
    #[doc(alias = "btf_kfunc_id_set_contains")]
    #[doc(alias = "__btf_kfunc_id_set_contains")]
    pub fn is_for(&self, kind: ProgramType, attach: Option<AttachType>) -> bool {
        let is_exception = attach.is_some_and(|attach| self.exceptions.contains(&(kind, attach)));
        self.program_types.has(kind) != is_exception
    }
}
