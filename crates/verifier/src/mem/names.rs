//! Names of register types in messages (`reg_type_str` of kernel/bpf/log.c).

use std::fmt;

use crate::domain::Tnum;
use crate::log::TnumText;
use crate::state::{RegState, TypeFlags};

/// Base type of pointers to kernel objects (`PTR_TO_BTF_ID`).
const BTF_ID: u32 = 16;

/// The name of a register's type with its modifiers.
pub(crate) fn type_name(reg: &RegState) -> String {
    name_of(reg.kind.number(), reg.flags)
}

/// The name of a base type (`enum bpf_reg_type`) with modifiers.
pub(crate) fn name_of(base: u32, flags: TypeFlags) -> String {
    const PREFIXES: [(TypeFlags, &str); 7] = [
        (TypeFlags::MEM_RDONLY, "rdonly_"),
        (TypeFlags::MEM_RINGBUF, "ringbuf_"),
        (TypeFlags::MEM_USER, "user_"),
        (TypeFlags::MEM_PERCPU, "percpu_"),
        (TypeFlags::PTR_UNTRUSTED, "untrusted_"),
        (TypeFlags::PTR_TRUSTED, "trusted_"),
        (TypeFlags::MEM_RCU, "rcu_"),
    ];
    const BASES: [&str; 22] = [
        "?",
        "scalar",
        "ctx",
        "map_ptr",
        "map_value",
        "map_key",
        "fp",
        "pkt_meta",
        "pkt",
        "pkt_end",
        "flow_keys",
        "sock",
        "sock_common",
        "tcp_sock",
        "tp_buffer",
        "xdp_sock",
        "ptr_",
        "mem",
        "arena",
        "buf",
        "func",
        "dynptr_ptr",
    ];
    let mut name = String::new();
    for (flag, prefix) in PREFIXES {
        if flags.has(flag) {
            name.push_str(prefix);
        }
    }
    name.push_str(BASES.get(base as usize).unwrap_or(&"?"));
    if flags.has(TypeFlags::PTR_MAYBE_NULL) {
        let is_btf = base == BTF_ID;
        name.push_str(if is_btf { "or_null_" } else { "_or_null" });
    }
    name
}

impl fmt::Display for Tnum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        TnumText(*self).fmt(f)
    }
}
