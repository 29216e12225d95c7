//! Structures of operations that programs of type struct_ops implement: one row for each.
//!
//! Arguments that may be null or that hold a reference are not here: BTF names them
//! (`NAME__MEMBER`, the stub of an operation).

use crate::helpers::HelperId;

/// What goes by a structure of operations (`struct bpf_struct_ops`, its `bpf_verifier_ops`).
#[derive(Clone, Copy, Debug)]
#[doc(alias = "bpf_struct_ops")]
pub struct StructOps {
    /// Name of the structure.
    pub name: &'static str,
    /// Members that programs implement.
    pub operations: Operations,
    /// Operations that may sleep (`check_member`).
    pub sleepable: Operations,
    /// Helpers beyond those that all programs have (`bpf_base_func_proto`): a function of the same
    /// prototype, and an operation that lacks the helper.
    pub helpers: &'static [(HelperId, &'static str, Option<&'static str>)],
    /// Helpers of all programs that these lack.
    pub without: &'static [HelperId],
    /// Kfuncs that no operation of another structure has, with the operations that have them.
    pub kfuncs: &'static [(&'static str, Operations)],
    /// An argument of an operation, by index, that Linux gives as an object of this structure.
    pub objects: &'static [(&'static str, usize, &'static str)],
    /// Objects of the kernel that programs write to (`btf_struct_access`).
    pub writes: Writes,
    /// Arguments of the first structure are of the second (`is_valid_access`).
    pub narrows: Option<(&'static str, &'static str)>,
}

/// Members of a structure.
#[derive(Clone, Copy, Debug)]
pub enum Operations {
    /// Every one.
    All,
    /// These.
    Only(&'static [&'static str]),
    /// All but these.
    Except(&'static [&'static str]),
}

impl Operations {
    /// True if a member is one of them.
    pub fn has(self, member: &str) -> bool {
        match self {
            Operations::All => true,
            Operations::Only(members) => members.contains(&member),
            Operations::Except(members) => !members.contains(&member),
        }
    }
}

/// Which objects of the kernel programs write to, and what Linux says of others.
#[derive(Clone, Copy, Debug)]
pub enum Writes {
    /// All of this structure.
    Whole(&'static str),
    /// Members of structures, which a write must not exceed.
    Members(&'static [WrittenMember]),
    /// The same, and Linux says nothing of other writes.
    UnloggedMembers(&'static [WrittenMember]),
}

/// A member that programs write to.
#[derive(Clone, Copy, Debug)]
pub struct WrittenMember {
    /// The structure that the pointer points to.
    pub object: &'static str,
    /// The structure that declares the member; the object begins with it.
    pub structure: &'static str,
    /// The member, and members of members behind dots.
    pub member: &'static str,
    /// The structure that lies in the member, and the member of that, if it is not all of it.
    pub inner: Option<(&'static str, &'static str)>,
    /// Writes may begin at each of its bytes, not at the first alone.
    pub anywhere: bool,
}

macro_rules! members {
    ($($object:literal $structure:literal $member:literal
        $(($inner:literal $inner_member:literal))? $($anywhere:ident)?;)*) => {
        &[$(WrittenMember {
            object: $object,
            structure: $structure,
            member: $member,
            inner: members!(@ as $($inner $inner_member)?),
            anywhere: members!(@ $($anywhere)?),
        }),*]
    };
    (@ as) => { None };
    (@ as $inner:literal $member:literal) => { Some(($inner, $member)) };
    (@) => { false };
    (@ anywhere) => { true };
}

/// What programs write that handle packets: entries of connection tracking
/// (`nf_conntrack_btf_struct_access`), where the kernel has it built in.
#[doc(alias = "nf_conntrack_btf_struct_access")]
pub const PACKET_WRITES: &[WrittenMember] = members! {
    "nf_conn" "nf_conn" "mark";
    "nf_conn___init" "nf_conn" "mark";
};

/// Every structure.
const ALL: &[StructOps] = &[
    StructOps {
        name: "bpf_dummy_ops",
        operations: Operations::All,
        sleepable: Operations::Only(&["test_sleepable"]),
        helpers: &[],
        without: &[],
        kfuncs: &[],
        objects: &[],
        writes: Writes::Whole("bpf_dummy_ops_state"),
        narrows: None,
    },
    StructOps {
        name: "tcp_congestion_ops",
        operations: Operations::Except(&["get_info"]),
        sleepable: Operations::All,
        helpers: &[
            (HelperId::TcpSendAck, "bpf_tcp_send_ack", None),
            (HelperId::SkStorageGet, "bpf_sk_storage_get", None),
            (HelperId::SkStorageDelete, "bpf_sk_storage_delete", None),
            (
                HelperId::Setsockopt,
                "bpf_unlocked_sk_setsockopt",
                Some("release"),
            ),
            (
                HelperId::Getsockopt,
                "bpf_unlocked_sk_getsockopt",
                Some("release"),
            ),
            (HelperId::KtimeGetCoarseNs, "bpf_ktime_get_coarse_ns", None),
        ],
        without: &[],
        kfuncs: &[],
        objects: &[],
        writes: Writes::Members(members! {
            "tcp_sock" "sock" "sk_pacing_rate";
            "tcp_sock" "sock" "sk_pacing_status";
            "tcp_sock" "inet_connection_sock" "icsk_ca_priv" anywhere;
            "tcp_sock" "inet_connection_sock" "icsk_ack.pending";
            "tcp_sock" "tcp_sock" "snd_cwnd";
            "tcp_sock" "tcp_sock" "snd_cwnd_cnt";
            "tcp_sock" "tcp_sock" "snd_cwnd_stamp";
            "tcp_sock" "tcp_sock" "snd_ssthresh";
            "tcp_sock" "tcp_sock" "ecn_flags";
            "tcp_sock" "tcp_sock" "app_limited";
        }),
        narrows: Some(("sock", "tcp_sock")),
    },
    StructOps {
        name: "sched_ext_ops",
        operations: Operations::All,
        sleepable: Operations::Only(&[
            "init_task",
            "cgroup_init",
            "cgroup_exit",
            "cgroup_prep_move",
            "cpu_online",
            "cpu_offline",
            "init",
            "exit",
        ]),
        helpers: &[
            (HelperId::TaskStorageGet, "bpf_task_storage_get", None),
            (HelperId::TaskStorageDelete, "bpf_task_storage_delete", None),
        ],
        without: &[],
        kfuncs: &[],
        objects: &[],
        writes: Writes::UnloggedMembers(members! {
            "task_struct" "task_struct" "scx.slice" anywhere;
            "task_struct" "task_struct" "scx.dsq_vtime" anywhere;
            "task_struct" "task_struct" "scx.disallow" anywhere;
        }),
        narrows: None,
    },
    StructOps {
        name: "Qdisc_ops",
        operations: Operations::Only(&["enqueue", "dequeue", "init", "reset", "destroy"]),
        sleepable: Operations::All,
        helpers: &[],
        without: &[],
        kfuncs: &[
            ("bpf_skb_get_hash", Operations::All),
            ("bpf_kfree_skb", Operations::All),
            ("bpf_qdisc_skb_drop", Operations::Only(&["enqueue"])),
            (
                "bpf_qdisc_watchdog_schedule",
                Operations::Only(&["enqueue", "dequeue"]),
            ),
            ("bpf_qdisc_bstats_update", Operations::Only(&["dequeue"])),
            ("bpf_qdisc_init_prologue", Operations::Only(&[])),
            ("bpf_qdisc_reset_destroy_epilogue", Operations::Only(&[])),
        ],
        objects: &[("enqueue", 2, "bpf_sk_buff_ptr")],
        writes: Writes::Members(members! {
            "sk_buff" "sk_buff" "tstamp";
            "sk_buff" "sk_buff" "cb" ("qdisc_skb_cb" "data") anywhere;
            "Qdisc" "Qdisc" "limit";
            "Qdisc" "Qdisc" "q.qlen";
            "Qdisc" "Qdisc" "qstats" anywhere;
        }),
        narrows: None,
    },
];

impl StructOps {
    /// The row of a structure.
    pub fn named(name: &str) -> Option<&'static StructOps> {
        ALL.iter().find(|row| row.name == name)
    }

    /// True if the operation `member` of this structure may call a kfunc that programs of type
    /// struct_ops may.
    pub fn has_kfunc(&self, kfunc: &str, member: &str) -> bool {
        let of = |row: &'static StructOps| row.kfuncs.iter().find(|(name, _)| *name == kfunc);
        match ALL.iter().find_map(|row| Some((row, of(row)?))) {
            Some((row, (_, operations))) => row.name == self.name && operations.has(member),
            None => true,
        }
    }

    /// A function with the prototype that the operation `member` has for a helper beyond those of
    /// all programs.
    pub fn helper(&self, id: HelperId, member: &str) -> Option<&'static str> {
        let mut rows = self.helpers.iter();
        let row = rows.find(|(helper, _, lacking)| *helper == id && *lacking != Some(member));
        row.map(|(_, function, _)| *function)
    }
}
