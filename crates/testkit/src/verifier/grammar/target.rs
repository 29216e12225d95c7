//! Program types that the grammar writes for, with what it knows of each.

use crate::ebpf::Choices;

/// A program type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its name, as bpftool has it.
    pub(crate) name: &'static str,
    /// Directives of a case that the type needs: attach type, flags.
    pub(super) directives: &'static str,
    /// What the program attaches to, as a [name](crate::verifier::names) of the kernel's types.
    pub(super) hook: &'static str,
    /// The structures that the arguments in the context point to, and if they may be null; empty for
    /// numbers.
    pub(super) arguments: &'static [(&'static str, bool)],
    /// Structure that the context is in BTF; empty if functions cannot take it.
    pub(super) context: &'static str,
    /// Fields of the context that can be read as numbers, mostly: size and offsets.
    pub(super) fields: (&'static str, &'static [u32]),
    /// Offsets of the packet's start and end in the context, and the type of these
    /// fields.
    pub(super) packet: Option<(u32, u32, &'static str)>,
    /// True if the packet can be written.
    pub(super) writes_packet: bool,
    /// Numbers that the program may return: those below this one.
    pub(super) returns: u32,
    /// Families of helpers that the type has.
    pub(super) helpers: &'static [Family],
    /// Weight of its choice, of [`Target::choose`]'s total.
    weight: u32,
    /// True if programs are written that mostly use what Beebox runs.
    pub(super) is_run: bool,
}

/// Types that Beebox runs, whose contexts are bytes and packets.
const RUNNABLE: &[&str] = &[
    "sched_cls",
    "sched_cls",
    "sched_cls",
    "xdp",
    "xdp",
    "socket_filter",
    "cgroup_skb",
    "lwt_xmit",
    "lwt_in",
    "flow_dissector",
    "sk_lookup",
    "raw_tracepoint",
    "syscall",
];

/// Helpers that mostly come together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// bpf_skb_load_bytes and the like.
    Skb,
    /// Loads from the packet by the instructions of classic BPF.
    Legacy,
    /// Helpers that move the packet.
    PacketMoves,
    /// Lookup and release of sockets.
    Sockets,
    /// bpf_tail_call.
    TailCall,
    /// Spin locks.
    Locks,
    /// Timers.
    Timers,
    /// Kernel functions for objects that programs allocate or take a reference to.
    Objects,
}

use Family::{Legacy, Locks, Objects, PacketMoves, Skb, Sockets, TailCall, Timers};

const SKB_FIELDS: (&str, &[u32]) = ("u32", &[0, 4, 8, 16, 24, 32, 40, 48, 56, 68]);
const SKB_PACKET: Option<(u32, u32, &str)> = Some((76, 80, "u32"));

const SCHED_CLS: Target = Target {
    name: "sched_cls",
    directives: "",
    hook: "",
    arguments: &[],
    context: "__sk_buff",
    fields: SKB_FIELDS,
    packet: SKB_PACKET,
    writes_packet: true,
    returns: 3,
    helpers: &[
        Skb,
        Legacy,
        PacketMoves,
        Sockets,
        TailCall,
        Locks,
        Timers,
        Objects,
    ],
    weight: 30,
    is_run: false,
};

/// A cgroup hook without a packet.
const CGROUP: Target = Target {
    name: "cgroup_sock_addr",
    directives: ".attach_type cgroup_inet4_connect\n",
    hook: "",
    arguments: &[],
    context: "bpf_sock_addr",
    fields: ("u32", &[0, 4, 24, 28, 32, 36]),
    packet: None,
    writes_packet: false,
    returns: 2,
    helpers: &[Locks, Sockets, Objects],
    weight: 3,
    is_run: false,
};

/// A tracing type, whose context is numbers.
const TRACING: Target = Target {
    name: "raw_tracepoint",
    directives: "",
    hook: "",
    arguments: &[],
    context: "bpf_raw_tracepoint_args",
    fields: ("u64", &[0, 8, 16]),
    packet: None,
    writes_packet: false,
    returns: 100,
    helpers: &[TailCall],
    weight: 4,
    is_run: false,
};

/// Every type.
const ALL: &[Target] = &[
    SCHED_CLS,
    Target {
        name: "xdp",
        context: "xdp_md",
        fields: ("u32", &[12, 16]),
        packet: Some((0, 4, "u32")),
        helpers: &[PacketMoves, Sockets, TailCall, Locks, Timers, Objects],
        weight: 14,
        ..SCHED_CLS
    },
    Target {
        name: "socket_filter",
        packet: None,
        writes_packet: false,
        returns: 100,
        helpers: &[Skb, Legacy, TailCall],
        weight: 8,
        ..SCHED_CLS
    },
    Target {
        name: "cgroup_skb",
        directives: ".attach_type cgroup_inet_ingress\n",
        writes_packet: false,
        returns: 2,
        helpers: &[Skb, Sockets, Locks, Timers, Objects],
        weight: 6,
        ..SCHED_CLS
    },
    Target {
        name: "lwt_xmit",
        fields: ("u32", &[0, 4, 16, 24, 32, 40, 48]),
        helpers: &[Skb, PacketMoves, TailCall, Locks],
        weight: 4,
        ..SCHED_CLS
    },
    Target {
        name: "lwt_in",
        fields: ("u32", &[0, 4, 16, 24, 32, 40, 48]),
        writes_packet: false,
        helpers: &[Skb, TailCall, Locks],
        weight: 3,
        ..SCHED_CLS
    },
    Target {
        name: "sk_skb",
        directives: ".attach_type sk_skb_stream_verdict\n",
        fields: ("u32", &[0, 4, 16, 24, 32, 40, 48]),
        returns: 2,
        helpers: &[Skb, PacketMoves, Sockets, TailCall, Locks],
        weight: 3,
        ..SCHED_CLS
    },
    Target {
        name: "flow_dissector",
        directives: ".attach_type flow_dissector\n",
        fields: ("u32", &[]),
        writes_packet: false,
        returns: 3,
        helpers: &[Skb],
        weight: 3,
        ..SCHED_CLS
    },
    Target {
        name: "sk_lookup",
        directives: ".attach_type sk_lookup\n",
        context: "bpf_sk_lookup",
        fields: ("u32", &[8, 12, 16, 40, 60, 64]),
        helpers: &[Locks, TailCall],
        weight: 4,
        ..CGROUP
    },
    CGROUP,
    Target {
        name: "sock_ops",
        directives: ".attach_type cgroup_sock_ops\n",
        context: "bpf_sock_ops",
        fields: ("u32", &[0, 20, 24, 28, 68]),
        helpers: &[Locks, Objects],
        ..CGROUP
    },
    Target {
        name: "cgroup_device",
        directives: ".attach_type cgroup_device\n",
        context: "bpf_cgroup_dev_ctx",
        fields: ("u32", &[0, 4, 8]),
        helpers: &[Objects],
        weight: 2,
        ..CGROUP
    },
    Target {
        name: "cgroup_sockopt",
        directives: ".attach_type cgroup_getsockopt\n",
        context: "bpf_sockopt",
        fields: ("u32", &[24, 28, 32]),
        packet: Some((8, 16, "u64")),
        helpers: &[Objects],
        weight: 2,
        ..CGROUP
    },
    Target {
        name: "sk_msg",
        directives: ".attach_type sk_msg_verdict\n",
        context: "sk_msg_md",
        fields: ("u32", &[16, 20, 24, 68]),
        packet: Some((0, 8, "u64")),
        writes_packet: true,
        helpers: &[TailCall, Locks],
        ..CGROUP
    },
    Target {
        name: "sk_reuseport",
        directives: ".attach_type sk_reuseport_select\n",
        context: "sk_reuseport_md",
        fields: ("u32", &[16, 20, 24, 28, 32]),
        packet: Some((0, 8, "u64")),
        helpers: &[TailCall, Locks],
        weight: 2,
        ..CGROUP
    },
    TRACING,
    Target {
        name: "tracepoint",
        context: "",
        helpers: &[TailCall, Objects],
        weight: 2,
        ..TRACING
    },
    Target {
        name: "perf_event",
        context: "bpf_perf_event_data",
        helpers: &[TailCall, Objects],
        weight: 2,
        ..TRACING
    },
    Target {
        name: "kprobe",
        context: "",
        weight: 2,
        ..TRACING
    },
    Target {
        name: "syscall",
        directives: ".flags BPF_F_SLEEPABLE\n",
        context: "",
        fields: ("u32", &[0, 4, 8, 12, 60]),
        helpers: &[Objects],
        ..TRACING
    },
    Target {
        name: "netfilter",
        directives: ".attach_type netfilter\n",
        context: "",
        fields: ("u64", &[]),
        returns: 2,
        helpers: &[],
        weight: 1,
        ..TRACING
    },
];

const TASK: (&str, bool) = ("task_struct", false);
const FILE: (&str, bool) = ("file", false);
const NUMBER: (&str, bool) = ("", false);

/// A tracing type whose context holds arguments with types of the kernel.
const TYPED: Target = Target {
    name: "tracing",
    directives: ".attach_type trace_raw_tp\n",
    hook: "typedef btf_trace_sched_switch",
    arguments: &[NUMBER, TASK, TASK, NUMBER],
    context: "",
    fields: ("u64", &[]),
    helpers: &[Objects],
    weight: 6,
    ..TRACING
};

/// Types with such contexts that every kernel loads.
const BY_TYPES: &[Target] = &[
    TYPED,
    Target {
        hook: "typedef btf_trace_task_newtask",
        arguments: &[TASK, NUMBER],
        weight: 3,
        ..TYPED
    },
    Target {
        hook: "typedef btf_trace_netif_receive_skb",
        arguments: &[("sk_buff", false)],
        weight: 3,
        ..TYPED
    },
    Target {
        directives: ".attach_type trace_iter\n",
        hook: "func bpf_iter_task",
        arguments: &[("bpf_iter_meta", false), ("task_struct", true)],
        returns: 2,
        weight: 4,
        ..TYPED
    },
    Target {
        directives: ".attach_type trace_iter\n.flags BPF_F_SLEEPABLE\n",
        hook: "func bpf_iter_task_file",
        arguments: &[
            ("bpf_iter_meta", false),
            ("task_struct", true),
            NUMBER,
            ("file", true),
        ],
        returns: 2,
        weight: 2,
        ..TYPED
    },
];

/// Types that trampolines run.
const BY_TRAMPOLINES: &[Target] = &[
    Target {
        directives: ".attach_type trace_fentry\n",
        hook: "func wake_up_new_task",
        arguments: &[TASK],
        returns: 1,
        ..TYPED
    },
    Target {
        directives: ".attach_type trace_fentry\n",
        hook: "func vfs_read",
        arguments: &[FILE, NUMBER, NUMBER, NUMBER],
        returns: 1,
        ..TYPED
    },
    Target {
        directives: ".attach_type trace_fexit\n",
        hook: "func vfs_write",
        arguments: &[FILE, NUMBER, NUMBER, NUMBER, NUMBER],
        returns: 1,
        ..TYPED
    },
    Target {
        directives: ".attach_type modify_return\n",
        hook: "func security_file_open",
        arguments: &[FILE, NUMBER],
        returns: 100,
        ..TYPED
    },
    Target {
        name: "lsm",
        directives: ".attach_type lsm_mac\n",
        hook: "func bpf_lsm_file_open",
        arguments: &[FILE],
        returns: 1,
        ..TYPED
    },
    Target {
        name: "lsm",
        directives: ".attach_type lsm_mac\n.flags BPF_F_SLEEPABLE\n",
        hook: "func bpf_lsm_file_open",
        arguments: &[FILE],
        returns: 1,
        ..TYPED
    },
    Target {
        name: "lsm",
        directives: ".attach_type lsm_mac\n",
        hook: "func bpf_lsm_task_alloc",
        arguments: &[TASK, NUMBER],
        returns: 1,
        ..TYPED
    },
    Target {
        name: "lsm",
        directives: ".attach_type lsm_cgroup\n",
        hook: "func bpf_lsm_socket_bind",
        arguments: &[("socket", false), NUMBER, NUMBER],
        returns: 2,
        weight: 4,
        ..TYPED
    },
];

impl Target {
    /// One of the types, by their weights; those that trampolines run only where they load.
    pub(crate) fn choose(choices: &mut Choices<'_>, has_trampolines: bool) -> Target {
        let by_trampolines = BY_TRAMPOLINES.iter().filter(|_| has_trampolines);
        let mut all = ALL.iter().chain(BY_TYPES).chain(by_trampolines);
        let total = all.clone().map(|target| target.weight).sum();
        let mut at = choices.below(total);
        let found = all.find(|target| match at < target.weight {
            true => true,
            false => {
                at -= target.weight;
                false
            }
        });
        *found.unwrap_or(&SCHED_CLS)
    }

    /// One of the types that callers without capabilities may load.
    pub(crate) fn choose_for_all(choices: &mut Choices<'_>) -> Target {
        let name = choices.pick(&["socket_filter", "socket_filter", "cgroup_skb"]);
        let found = ALL.iter().find(|target| target.name == name);
        *found.unwrap_or(&SCHED_CLS)
    }

    /// One of the types that Beebox runs.
    pub(crate) fn choose_runnable(choices: &mut Choices<'_>) -> Target {
        let name = choices.pick(RUNNABLE);
        let found = ALL.iter().find(|target| target.name == name);
        Target {
            is_run: true,
            ..*found.unwrap_or(&SCHED_CLS)
        }
    }

    /// True if the type mostly has these helpers, and if they run where the program has to.
    pub(super) fn has(&self, family: Family) -> bool {
        self.helpers.contains(&family) && !(self.is_run && family == Timers)
    }
}
