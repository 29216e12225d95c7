//! The verifier's lists of names: safe fields, nullable tracepoint
//! arguments, hooks.

use std::collections::{BTreeMap, BTreeSet};

/// Trust in a pointer loaded from a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SafeList {
    /// `X__safe_rcu`: protected by RCU (`type_is_rcu`).
    #[doc(alias = "type_is_rcu")]
    Rcu,
    /// `X__safe_rcu_or_null`: protected by RCU, may be null (`type_is_rcu_or_null`).
    #[doc(alias = "type_is_rcu_or_null")]
    RcuOrNull,
    /// `X__safe_trusted`: trusted (`type_is_trusted`).
    #[doc(alias = "type_is_trusted")]
    Trusted,
    /// `X__safe_trusted_or_null`: trusted, may be null (`type_is_trusted_or_null`).
    #[doc(alias = "type_is_trusted_or_null")]
    TrustedOrNull,
}

impl SafeList {
    /// Suffix of the kernel types that define the list.
    pub const fn suffix(self) -> &'static str {
        match self {
            SafeList::Rcu => "__safe_rcu",
            SafeList::RcuOrNull => "__safe_rcu_or_null",
            SafeList::Trusted => "__safe_trusted",
            SafeList::TrustedOrNull => "__safe_trusted_or_null",
        }
    }

    /// Every list.
    pub const ALL: [SafeList; 4] = [
        SafeList::Rcu,
        SafeList::RcuOrNull,
        SafeList::Trusted,
        SafeList::TrustedOrNull,
    ];
}

/// Lists of names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Fields whose pointers are safe: list, structure, field.
    pub safe_fields: BTreeSet<(SafeList, Box<str>, Box<str>)>,
    /// Arguments of tracepoints that may be null or error pointers: four bits an
    /// argument, from the lowest on, as `raw_tp_null_args` of kernel/bpf/btf.c holds
    /// them. Bit 0: may be null. Bit 1: may be an error pointer.
    pub nullable_tracepoint_args: BTreeMap<Box<str>, u64>,
    /// Structures that RCU protects, so that a kptr to one may be read inside an RCU section
    /// (`rcu_protected_types`, `rcu_protected_object`).
    #[doc(alias = "rcu_protected_object")]
    pub rcu_protected: BTreeSet<Box<str>>,
    /// Functions from which `bpf_d_path` may be called.
    pub d_path: BTreeSet<Box<str>>,
    /// LSM hooks that programs may attach to.
    pub lsm_hooks: BTreeSet<Box<str>>,
    /// LSM hooks where programs may sleep.
    pub lsm_sleepable: BTreeSet<Box<str>>,
    /// LSM hooks that are refused.
    pub lsm_disabled: BTreeSet<Box<str>>,
    /// LSM hooks whose arguments are untrusted.
    pub lsm_untrusted: BTreeSet<Box<str>>,
    /// LSM hooks that return 0 or 1.
    pub lsm_bool: BTreeSet<Box<str>>,
    /// LSM hooks whose programs of cgroups set and get socket options
    /// (`bpf_lsm_locked_sockopt_hooks`, `bpf_lsm_unlocked_sockopt_hooks`).
    pub lsm_sockopt: BTreeSet<Box<str>>,
    /// Functions whose result fmod_ret programs may replace, beside those of `security_`
    /// (`register_btf_fmodret_id_set`, `check_attach_modify_return`, `btf_kfunc_is_modify_return`).
    #[doc(alias = "check_attach_modify_return")]
    #[doc(alias = "btf_kfunc_is_modify_return")]
    #[doc(alias = "register_btf_fmodret_id_set")]
    pub modify_return: BTreeSet<Box<str>>,
    /// Functions of the kernel where tracing programs may sleep (`check_attach_sleepable`,
    /// `check_non_sleepable_error_inject`).
    #[doc(alias = "check_attach_sleepable")]
    #[doc(alias = "check_non_sleepable_error_inject")]
    pub traced_sleepable: BTreeSet<Box<str>>,
    /// Tracepoints where programs may sleep (`tracepoint_is_faultable`).
    pub faultable_tracepoints: BTreeSet<Box<str>>,
    /// Functions that no tracing program may attach to (`btf_id_deny`).
    pub attach_denied: BTreeSet<Box<str>>,
    /// Functions that never return, which fexit and fmod_ret may not attach to
    /// (`noreturn_deny`).
    pub noreturn: BTreeSet<Box<str>>,
    /// Destructors of kptrs: structure, function (`btf_find_dtor_kfunc`).
    #[doc(alias = "btf_find_dtor_kfunc")]
    pub destructors: BTreeMap<Box<str>, Box<str>>,
}

/// A pointer argument of a tracepoint beyond its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracepointArg {
    /// True if it may be null.
    pub may_be_null: bool,
    /// True if it may be an error pointer, so that a program gets it as a number.
    pub may_be_error: bool,
}

impl Lists {
    /// Adds the hooks and functions of another configuration of the kernel that `is_known` does not
    /// name; of those that it names, these lists are the kernel's.
    pub fn add_functions(&mut self, other: &Lists, is_known: impl Fn(&str) -> bool) {
        for (ours, theirs) in [
            (&mut self.lsm_hooks, &other.lsm_hooks),
            (&mut self.lsm_sleepable, &other.lsm_sleepable),
            (&mut self.lsm_disabled, &other.lsm_disabled),
            (&mut self.lsm_untrusted, &other.lsm_untrusted),
            (&mut self.lsm_bool, &other.lsm_bool),
            (&mut self.lsm_sockopt, &other.lsm_sockopt),
            (&mut self.attach_denied, &other.attach_denied),
            (&mut self.noreturn, &other.noreturn),
        ] {
            let new = theirs.iter().filter(|name| !is_known(name));
            ours.extend(new.cloned());
        }
    }

    /// Argument `index` (from 0, `__data` aside) of a tracepoint.
    pub fn tracepoint_arg(&self, tracepoint: &str, index: usize) -> TracepointArg {
        let mask = self.nullable_tracepoint_args.get(tracepoint);
        let shifted = u32::try_from(index * 4).ok();
        let bits = mask
            .zip(shifted)
            .and_then(|(mask, shift)| mask.checked_shr(shift))
            .unwrap_or(0);
        TracepointArg {
            may_be_null: bits & 1 != 0,
            may_be_error: bits & 2 != 0,
        }
    }
}
