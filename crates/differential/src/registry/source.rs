//! Properties that the running kernel cannot be asked, or not without ambiguity, read from the
//! source of Linux 6.18. Every entry is counted among what was not asked.

use spec::kernel::Release;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::registry::{
    ArgBase, ArgDetail, ArgType, Capability, HelperProto, Kfunc, Layout, MODULE_KFUNCS,
    ProgramRules, ProgramTypes, RegistryData, RetBase, ReturnRange, TypeFlags,
};
use spec::since;

use super::build::first_function;

/// Functions of helpers that are named otherwise than the helper: the function, or
/// its beginning followed by `*`, and the helper.
const FUNCTIONS: &[(&str, &str)] = &[
    ("bpf_get_stackid_*", "bpf_get_stackid"),
    ("bpf_get_stack_*", "bpf_get_stack"),
    ("bpf_perf_event_output_*", "bpf_perf_event_output"),
    ("bpf_event_output_data", "bpf_perf_event_output"),
    ("get_func_arg_cnt", "bpf_get_func_arg_cnt"),
    ("get_func_arg", "bpf_get_func_arg"),
    ("get_func_ret", "bpf_get_func_ret"),
    ("bpf_get_attach_cookie_*", "bpf_get_attach_cookie"),
    ("bpf_get_func_ip_*", "bpf_get_func_ip"),
    ("bpf_probe_read_compat_str", "bpf_probe_read_str"),
    ("bpf_probe_read_compat", "bpf_probe_read"),
    ("bpf_task_storage_get_recur", "bpf_task_storage_get"),
    ("bpf_task_storage_delete_recur", "bpf_task_storage_delete"),
    ("bpf_get_task_stack_sleepable", "bpf_get_task_stack"),
    ("bpf_get_netns_cookie_*", "bpf_get_netns_cookie"),
    ("bpf_sk_lookup_assign", "bpf_sk_assign"),
    (
        "sk_reuseport_load_bytes_relative",
        "bpf_skb_load_bytes_relative",
    ),
    ("sk_reuseport_load_bytes", "bpf_skb_load_bytes"),
    ("sk_select_reuseport", "bpf_sk_select_reuseport"),
    ("bpf_sock_ops_load_hdr_opt", "bpf_load_hdr_opt"),
    ("bpf_sock_ops_store_hdr_opt", "bpf_store_hdr_opt"),
    ("bpf_sock_ops_reserve_hdr_opt", "bpf_reserve_hdr_opt"),
    ("bpf_sock_addr_sk_lookup_tcp", "bpf_sk_lookup_tcp"),
    ("bpf_sock_addr_sk_lookup_udp", "bpf_sk_lookup_udp"),
    ("bpf_sock_addr_skc_lookup_tcp", "bpf_skc_lookup_tcp"),
    ("bpf_xdp_sk_lookup_tcp", "bpf_sk_lookup_tcp"),
    ("bpf_xdp_sk_lookup_udp", "bpf_sk_lookup_udp"),
    ("bpf_xdp_skc_lookup_tcp", "bpf_skc_lookup_tcp"),
    ("bpf_tc_sk_lookup_tcp", "bpf_sk_lookup_tcp"),
    ("bpf_tc_sk_lookup_udp", "bpf_sk_lookup_udp"),
    ("bpf_tc_skc_lookup_tcp", "bpf_skc_lookup_tcp"),
    ("bpf_lwt_xmit_push_encap", "bpf_lwt_push_encap"),
    ("bpf_lwt_in_push_encap", "bpf_lwt_push_encap"),
    ("bpf_xdp_check_mtu", "bpf_check_mtu"),
    ("bpf_skb_check_mtu", "bpf_check_mtu"),
    ("bpf_skb_fib_lookup", "bpf_fib_lookup"),
    ("bpf_xdp_fib_lookup", "bpf_fib_lookup"),
    ("bpf_sock_ops_getsockopt", "bpf_getsockopt"),
    ("bpf_sock_ops_setsockopt", "bpf_setsockopt"),
    ("bpf_sock_addr_getsockopt", "bpf_getsockopt"),
    ("bpf_sock_addr_setsockopt", "bpf_setsockopt"),
    ("bpf_unlocked_sk_getsockopt", "bpf_getsockopt"),
    ("bpf_unlocked_sk_setsockopt", "bpf_setsockopt"),
    ("bpf_sk_getsockopt", "bpf_getsockopt"),
    ("bpf_sk_setsockopt", "bpf_setsockopt"),
    ("bpf_get_socket_cookie_*", "bpf_get_socket_cookie"),
    ("bpf_get_socket_ptr_cookie", "bpf_get_socket_cookie"),
    ("bpf_xdp_redirect_map", "bpf_redirect_map"),
    ("bpf_xdp_redirect", "bpf_redirect"),
    ("sk_skb_change_head", "bpf_skb_change_head"),
    ("sk_skb_change_tail", "bpf_skb_change_tail"),
    ("sk_skb_adjust_room", "bpf_skb_adjust_room"),
    ("sk_skb_pull_data", "bpf_skb_pull_data"),
    ("bpf_flow_dissector_load_bytes", "bpf_skb_load_bytes"),
    ("bpf_sk_storage_get_tracing", "bpf_sk_storage_get"),
    ("bpf_sk_storage_delete_tracing", "bpf_sk_storage_delete"),
    ("bpf_get_raw_cpu_id", "bpf_get_smp_processor_id"),
    ("bpf_user_rnd_u32", "bpf_get_prandom_u32"),
    ("bpf_get_cgroup_classid_curr", "bpf_get_cgroup_classid"),
];

/// Adds the kfuncs of modules of a kernel of a release that has modules.
pub fn add_module_kfuncs(registry: &mut RegistryData, release: Release) {
    for of_module in MODULE_KFUNCS {
        let since = since::kfunc(of_module.names);
        let is_newer = since.is_some_and(|since| since.release > release);
        let Some((flags, kind)) = of_module.rules.filter(|_| !is_newer) else {
            continue;
        };
        let kfunc = Kfunc {
            name: of_module.names.into(),
            special: None,
            btf_id: 0,
            flags,
            program_types: ProgramTypes::default().with(kind),
            exceptions: Vec::new(),
        };
        registry.kfuncs.entry(kfunc.name.clone()).or_insert(kfunc);
    }
}

/// The helper that a function implements. Events of packets are two helpers, told
/// apart by what they take first.
pub fn helper_of(function: &str, first: ArgBase) -> Option<&str> {
    match (function, first) {
        ("bpf_skb_event_output", ArgBase::PtrToBtfId) => return Some("bpf_skb_output"),
        ("bpf_xdp_event_output", ArgBase::PtrToBtfId) => return Some("bpf_xdp_output"),
        ("bpf_skb_event_output" | "bpf_xdp_event_output", _) => {
            return Some("bpf_perf_event_output");
        }
        _ => {}
    }
    if spec::helpers::number(function).is_some() {
        return Some(function);
    }
    let of_rule = FUNCTIONS
        .iter()
        .find(|(name, _)| match name.strip_suffix('*') {
            Some(start) => function.starts_with(start),
            None => *name == function,
        });
    of_rule.map(|(_, helper)| *helper)
}

/// The prototype of `bpf_tail_call`, which has no function.
pub fn tail_call() -> HelperProto {
    let mut args = [ArgType::new(ArgBase::DontCare, TypeFlags::NONE); 5];
    args[0] = ArgBase::PtrToCtx.into();
    args[1] = ArgBase::ConstMapPtr.into();
    args[2] = ArgBase::Anything.into();
    HelperProto {
        id: 12,
        name: "bpf_tail_call".into(),
        function: "-".into(),
        args,
        arg_details: [const { ArgDetail::None }; 5],
        ret: RetBase::Void.into(),
        ret_btf: None,
        gpl_only: false,
        pkt_access: false,
        might_sleep: false,
        allow_fastcall: false,
        restriction: None,
    }
}

/// How the refusal of a number begins to name what an argument takes; `None` where
/// that is not compared.
pub fn expected_words(base: ArgBase) -> Option<&'static str> {
    Some(match base {
        ArgBase::PtrToCtx => "ctx",
        ArgBase::PtrToBtfIdSockCommon => "sock_common",
        ArgBase::ConstMapPtr => "map_ptr",
        ArgBase::PtrToBtfId => "ptr_",
        ArgBase::DontCare | ArgBase::Anything => "none",
        _ => return None,
    })
}

/// True if programs of the type have the helper by this prototype, where prototypes
/// differ in nothing that a refusal of the first argument shows.
pub fn is_for(proto: &HelperProto, kind: ProgramType) -> bool {
    let is_tracing = matches!(kind, ProgramType::Tracing | ProgramType::Syscall);
    match (first_function(proto), proto.id) {
        (
            "bpf_sock_addr_sk_lookup_tcp"
            | "bpf_sock_addr_sk_lookup_udp"
            | "bpf_sock_addr_skc_lookup_tcp",
            _,
        ) => kind == ProgramType::CgroupSockAddr,
        (_, SK_LOOKUP_TCP | SK_LOOKUP_UDP | SKC_LOOKUP_TCP) => kind != ProgramType::CgroupSockAddr,
        ("bpf_sk_lookup_assign", _) => kind == ProgramType::SkLookup,
        ("bpf_sk_assign", _) => kind != ProgramType::SkLookup,
        ("bpf_sk_storage_get_tracing" | "bpf_sk_storage_delete_tracing", _) => is_tracing,
        ("bpf_sk_storage_get", _) if proto.args[1].base == ArgBase::PtrToCtx => {
            kind == ProgramType::CgroupSock
        }
        ("bpf_sk_storage_get", _) => !is_tracing && kind != ProgramType::CgroupSock,
        ("bpf_sk_storage_delete", _) => !is_tracing,
        _ => true,
    }
}

const SK_LOOKUP_TCP: u32 = 84;
const SK_LOOKUP_UDP: u32 = 85;
const SKC_LOOKUP_TCP: u32 = 99;

/// Helpers that programs without CAP_BPF have not (`bpf_base_func_proto`), among them
/// those of types that are not loaded without it.
const WITH_CAP_BPF: &[&str] = &[
    "bpf_spin_lock",
    "bpf_spin_unlock",
    "bpf_jiffies64",
    "bpf_per_cpu_ptr",
    "bpf_this_cpu_ptr",
    "bpf_timer_init",
    "bpf_timer_set_callback",
    "bpf_timer_start",
    "bpf_timer_cancel",
    "bpf_kptr_xchg",
    "bpf_for_each_map_elem",
    "bpf_loop",
    "bpf_user_ringbuf_drain",
    "bpf_ringbuf_reserve_dynptr",
    "bpf_ringbuf_submit_dynptr",
    "bpf_ringbuf_discard_dynptr",
    "bpf_dynptr_from_mem",
    "bpf_dynptr_read",
    "bpf_dynptr_write",
    "bpf_dynptr_data",
    "bpf_cgrp_storage_get",
    "bpf_cgrp_storage_delete",
    "bpf_get_current_cgroup_id",
    "bpf_get_current_ancestor_cgroup_id",
    "bpf_current_task_under_cgroup",
    "bpf_task_storage_get",
    "bpf_task_storage_delete",
];

/// What a program of a type that no question can tell about needs for a helper. Such a
/// type needs CAP_BPF and CAP_PERFMON itself, so that no program can see a difference.
pub fn capability(id: u32) -> Capability {
    let helper = i32::try_from(id).ok().and_then(spec::helpers::helper);
    match helper.map(|helper| helper.name) {
        Some(name) if WITH_CAP_BPF.contains(&name) => Capability::Bpf,
        _ => Capability::None,
    }
}

/// Map kinds of a helper that no program of this kernel can be asked about: LSM programs
/// alone have inodes, and no program here has an `xdp_buff` to give.
pub fn map_kinds(helper: &str) -> &'static [MapKind] {
    match helper {
        "bpf_inode_storage_get" | "bpf_inode_storage_delete" => &[MapKind::InodeStorage],
        "bpf_xdp_output" => &[MapKind::PerfEventArray],
        _ => &[],
    }
}

/// Structure that the first argument of a helper points to where the kernel keeps its id outside
/// of read-only memory; its refusals of other objects name it.
pub fn object_of(function: &str) -> Option<&'static str> {
    (function == "bpf_tcp_send_ack").then_some("tcp_sock")
}

/// True if programs of a kind that have no socket at hand may put one into a map
/// (`may_update_sockmap`).
pub fn may_update_sockmap(kind: ProgramType, attach: u32) -> bool {
    use ProgramType as P;
    let is_iterator = kind == P::Tracing && attach == super::targets::TRACE_ITER;
    is_iterator
        || matches!(
            kind,
            P::SocketFilter
                | P::SchedCls
                | P::SchedAct
                | P::Xdp
                | P::SkReuseport
                | P::FlowDissector
                | P::SkLookup
        )
}

/// Instructions in place of calls (`do_misc_fixups`), by helper: storages get flags of
/// allocation as an argument, `bpf_timer_set_callback` the program, `bpf_kptr_xchg` is an
/// exchange.
pub const UNASKED_CALLS: [(u32, u8, &str); 4] = [
    (145, 2, "bpf_inode_storage_get"),
    (170, 3, "bpf_timer_set_callback"),
    (210, 2, "bpf_cgrp_storage_get"),
    (194, 2, "bpf_kptr_xchg"),
];

/// Kinds of programs that the running kernel does not verify.
pub fn add_unasked(registry: &mut RegistryData, not_asked: &mut Vec<String>) {
    let tracing = registry
        .programs
        .get(&(ProgramType::Tracing, Some(AttachType::TraceRawTp)))
        .copied();
    let Some(tracing) = tracing else {
        return;
    };
    let btf = registry
        .layouts
        .iter()
        .position(|layout| *layout == Layout::Btf);
    let layout = btf.map(|at| at as u32);
    let unasked = ProgramRules {
        layout,
        returns: None,
        is_confirmed: false,
        ..tracing
    };
    let zero = Some(ReturnRange { min: 0, max: 0 });
    let mut add =
        |kind: ProgramType, attach: Option<AttachType>, rules: ProgramRules, from: &str| {
            registry.programs.insert((kind, attach), rules);
            let attach = attach.map_or("any attach type".to_owned(), |attach| {
                attach.number().to_string()
            });
            not_asked.push(format!("{kind} {attach}: {from}"));
        };
    let fentry = ProgramRules {
        returns: zero,
        ..unasked
    };
    add(
        ProgramType::Tracing,
        Some(AttachType::TraceFentry),
        fentry,
        "as tp_btf, returns 0",
    );
    add(
        ProgramType::Tracing,
        Some(AttachType::TraceFexit),
        fentry,
        "as tp_btf, returns 0",
    );
    add(
        ProgramType::Tracing,
        Some(AttachType::ModifyReturn),
        unasked,
        "as tp_btf, any return value",
    );
    add(
        ProgramType::Lsm,
        None,
        unasked,
        "as tp_btf; hooks' return values by list",
    );
    add(
        ProgramType::StructOps,
        None,
        unasked,
        "as tp_btf; by operations",
    );
    registry.layouts.push(Layout::OfTarget);
    let of_target = Some(registry.layouts.len() as u32 - 1);
    let ext = ProgramRules {
        layout: of_target,
        ..unasked
    };
    registry.programs.insert((ProgramType::Ext, None), ext);
    not_asked.push("ext: as its target".to_owned());
}

/// True if only programs that the kernel does not verify here have the kfunc.
pub fn is_unasked_kfunc(name: &str) -> bool {
    const STARTS: &[&str] = &[
        "bbr_",
        "cubictcp_",
        "dctcp_",
        "tcp_",
        "bpf_get_file_xattr",
        "bpf_set_dentry_xattr",
        "bpf_remove_dentry_xattr",
        "bpf_get_dentry_xattr",
    ];
    STARTS.iter().any(|start| name.starts_with(start))
}

/// The types that have a kfunc, with those that could not be asked: LSM programs
/// have what tracing programs have (`bpf_prog_type_to_kfunc_hook`).
pub fn with_unasked_types(name: &str, types: ProgramTypes) -> ProgramTypes {
    let mut types = types;
    if types.has(ProgramType::Tracing) || name.ends_with("_xattr") {
        types = types.with(ProgramType::Lsm);
    }
    let is_of_all = types.has(ProgramType::SchedCls) && types.has(ProgramType::Tracing);
    if is_of_all || is_unasked_kfunc(name) && !name.ends_with("_xattr") {
        types = types.with(ProgramType::StructOps);
    }
    types
}
