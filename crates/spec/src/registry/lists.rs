//! Lists that the verifier compares names with: limits, safe fields, nullable
//! tracepoint arguments, hooks.

use std::collections::{BTreeMap, BTreeSet};

/// Limits of verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions processed (`BPF_COMPLEXITY_LIMIT_INSNS`).
    pub insns_processed: u32,
    /// Instructions of a program (`BPF_MAXINSNS`) without CAP_BPF.
    pub insns_unprivileged: u32,
    /// Jumps in flight (`BPF_COMPLEXITY_LIMIT_JMP_SEQ`).
    pub jump_sequence: u32,
    /// Explored states of an instruction without CAP_BPF
    /// (`BPF_COMPLEXITY_LIMIT_STATES`).
    pub states_unprivileged: u32,
    /// Bytes of stack (`MAX_BPF_STACK`).
    pub stack: u32,
    /// Frames (`MAX_CALL_FRAMES`).
    pub frames: u32,
    /// Subprograms (`BPF_MAX_SUBPROGS`).
    pub subprogs: u32,
    /// Maps of a program (`MAX_USED_MAPS`).
    pub maps: u32,
    /// BTF objects of a program (`MAX_USED_BTFS`).
    pub btfs: u32,
    /// kfuncs of a program (`MAX_KFUNC_DESCS`).
    pub kfuncs: u32,
    /// Bytes of variable offset (`BPF_MAX_VAR_OFF`).
    pub variable_offset: u32,
    /// Bytes of variable size (`BPF_MAX_VAR_SIZ`).
    pub variable_size: u32,
    /// Loops of `bpf_loop` (`BPF_MAX_LOOPS`).
    pub loops: u32,
}

impl Limits {
    /// Limits of Linux 6.18.
    pub const LINUX_6_18: Limits = Limits {
        insns_processed: 1_000_000,
        insns_unprivileged: 4096,
        jump_sequence: 8192,
        states_unprivileged: 64,
        stack: 512,
        frames: 8,
        subprogs: 256,
        maps: 64,
        btfs: 64,
        kfuncs: 256,
        variable_offset: 1 << 29,
        variable_size: 1 << 29,
        loops: 8 * 1024 * 1024,
    };
}

/// How far a pointer loaded from a field may be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SafeList {
    /// `X__safe_rcu`: protected by RCU.
    Rcu,
    /// `X__safe_rcu_or_null`: protected by RCU, may be null.
    RcuOrNull,
    /// `X__safe_trusted`: trusted.
    Trusted,
    /// `X__safe_trusted_or_null`: trusted, may be null.
    TrustedOrNull,
}

impl SafeList {
    /// Suffix of the types that hold the list.
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
    /// Arguments of tracepoints that may be null or errors, four bits an argument
    /// as `raw_tp_null_args` holds them: 1 may be null, 2 is an error or null.
    pub nullable_tracepoint_args: BTreeMap<Box<str>, u64>,
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
    /// Functions that fentry and friends may not attach to.
    pub attach_denied: BTreeSet<Box<str>>,
    /// Destructors of kptrs: structure, function.
    pub destructors: BTreeMap<Box<str>, Box<str>>,
}
