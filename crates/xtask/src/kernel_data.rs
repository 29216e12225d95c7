//! `cargo xtask kernel-data`: extracts the built-in kernel data (crate `kernel-data`)
//! from the running kernel. Most of them are a subset of its BTF:
//!
//! - roots that programs are given: contexts, arguments of tracepoints, hooks,
//!   iterators, kfuncs and struct_ops;
//! - roots that programs name: enumerations such as helper numbers, and functions that
//!   are often traced;
//! - the closure of the roots over references;
//! - every type of the kind and name of a kept one, so that a CO-RE lookup by name has
//!   the same candidates as in the whole BTF.
//!
//! Types keep their order; their BTF ids change. The registry (helper prototypes and
//! availability, contexts, return values, kfuncs, map kinds) comes from
//! [`testkit::registry`].

use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use btf::core::essential_name;
use btf::{Btf, Builder, Kind, Shape, Type, TypeId};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::Outcome;

/// Roots by kind and start of the name.
const ROOTS: &[(Kind, &[&str])] = &[
    (
        Kind::Struct,
        &[
            // Every program type with its context and the kernel's internal structure.
            "bpf_ctx_convert",
            "bpf_",
            // Tracepoints by format.
            "trace_event_raw_",
            "syscall_trace_",
            "pt_regs",
            // Containers of sockets and files.
            "socket_alloc",
            "sockaddr",
            "wakeup_source",
            "btf_",
        ],
    ),
    (Kind::Struct, PACKETS),
    (Kind::Union, &["tcp_word_hdr"]),
    (Kind::Union, &["bpf_"]),
    // Enumerations whose values programs look up by name.
    (Kind::Enum, NUMBERS),
    (Kind::Enum64, NUMBERS),
    // Tracepoints by argument.
    (Kind::Typedef, &["btf_trace_", "bpf_"]),
    (Kind::Func, FUNCTIONS),
    // Variables of each CPU.
    (Kind::Datasec, &[""]),
];

/// Enumerations of counters, and of arguments of system calls and helpers.
const NUMBERS: &[&str] = &[
    "bpf_",
    "BPF_",
    "btf_",
    "xdp_",
    "tc_",
    "tcp_",
    "sk_",
    "skb_",
    "sock_",
    "lwt_",
    "tcx_",
    "nf_",
    "cgroup_",
    "node_stat_item",
    "zone_stat_item",
    "vm_event_item",
    "memcg_",
    "lru_",
    "perf_",
    "pid_",
    "uts_",
    "kernel_",
    "hrtimer_",
    "rlimit",
    "scx_",
    "sched_",
    "lsm_",
    "task_",
    "lockdown_",
    "wb_",
    "migrate_",
];

/// Packet headers and tunnel metadata.
const PACKETS: &[&str] = &[
    "ethhdr",
    "vlan_",
    "arphdr",
    "iphdr",
    "ipv6hdr",
    "ipv6_opt_hdr",
    "frag_hdr",
    "tcphdr",
    "udphdr",
    "icmphdr",
    "icmp6hdr",
    "igmphdr",
    "sctphdr",
    "gre_",
    "geneve",
    "erspan_",
    "vxlan",
    "mpls_",
    "ip_auth_hdr",
    "ip_esp_hdr",
];

/// Functions that programs attach to or replace. kfuncs are found by their declaration
/// tag.
const FUNCTIONS: &[&str] = &[
    "bpf_",
    "btf_",
    "__x64_sys_",
    "__sys_",
    "ksys_",
    "do_",
    "vfs_",
    "security_",
    "d_path",
    "dentry_open",
    "filp_",
    "fput",
    "file_update_time",
    "ext4_file_",
    "ext4_sync_file",
    "xfs_file_",
    "btrfs_file_",
    "cmdline_proc_show",
    "tcp_",
    "udp_",
    "inet_",
    "inet6_",
    "ip_",
    "ip6_",
    "icmp_",
    "unix_",
    "mptcp_",
    "sk_",
    "skb_",
    "sock_",
    "kfree_skb",
    "consume_skb",
    "eth_type_trans",
    "dev_",
    "netif_",
    "__netif_",
    "napi_",
    "update_socket_protocol",
    "exit_",
    "schedule",
    "finish_task_switch",
    "try_to_wake_up",
    "wake_up_",
    "__set_task_comm",
    "cgroup_",
    "css_",
    "oom_kill_process",
    "mark_page_accessed",
    "folio_",
    "submit_bio",
    "blk_mq_start_request",
    "blk_account_io_",
    "htab_",
    "rcu_tasks_",
    "__rcu_read_",
    "trie_",
    "array_map_",
    "sched_",
    "hrtimer_",
    "lookup_elem_raw",
];

const KFUNC_TAG: &str = "bpf_kfunc";
const TYPES: &str = "/sys/kernel/btf/vmlinux";
const CONFIG: &str = "/proc/config.gz";

/// Writes BTF, configuration, registry and release of the running kernel.
pub(crate) fn extract() -> Outcome {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release = release.split('-').next().unwrap_or_default().trim();
    if !release.starts_with("6.18.") {
        return Err(format!(
            "running kernel {release}: kernel data are of Linux 6.18; boot that release"
        )
        .into());
    }
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-data/data");
    fs::write(directory.join("linux-6.18.release"), format!("{release}\n"))?;

    let whole = Btf::parse(fs::read(TYPES)?)?;
    let kept = Selection::new(&whole).kept();
    let blob = write(&whole, &kept);
    let types = compress(&blob)?;
    println!(
        "{} of {} types, {} of {} bytes, {} packed",
        kept.len(),
        whole.len() - 1,
        blob.len(),
        whole.as_bytes().len(),
        types.len()
    );
    fs::write(directory.join("linux-6.18.btf.gz"), types)?;

    let mut config = String::new();
    GzDecoder::new(fs::File::open(CONFIG)?).read_to_string(&mut config)?;
    let set = config.lines().filter(|line| line.starts_with("CONFIG_"));
    let set: String = set.flat_map(|line| [line, "\n"]).collect();
    let packed = compress(set.as_bytes())?;
    println!(
        "configuration: {} bytes, {} packed",
        set.len(),
        packed.len()
    );
    fs::write(directory.join("linux-6.18.config.gz"), packed)?;
    extract_registry(&directory)
}

/// Writes the registry: helpers, contexts, return values and kfuncs of the running kernel.
fn extract_registry(directory: &Path) -> Outcome {
    let built = testkit::registry::build::build()?;
    for line in &built.not_asked {
        println!("not asked: {line}");
    }
    let text = spec::registry::text::write(&built.registry);
    let packed = compress(text.as_bytes())?;
    println!(
        "registry: {} questions, {} bytes, {} packed",
        built.questions,
        text.len(),
        packed.len()
    );
    fs::write(directory.join("linux-6.18.registry.gz"), packed)?;
    Ok(())
}

fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Types selected so far.
struct Selection<'b> {
    btf: &'b Btf<'b>,
    kept: HashSet<TypeId>,
}

impl<'b> Selection<'b> {
    fn new(btf: &'b Btf<'b>) -> Selection<'b> {
        let kept = HashSet::new();
        Selection { btf, kept }
    }

    fn kept(mut self) -> Vec<TypeId> {
        let is_root = |ty: &Type<'_>| {
            let starts = |start: &&str| ty.name().as_bytes().starts_with(start.as_bytes());
            let by_name = !ty.name().is_empty()
                && ROOTS
                    .iter()
                    .any(|(kind, names)| *kind == ty.kind() && names.iter().any(&starts));
            by_name || ty.kind() == Kind::DeclTag && ty.name() == KFUNC_TAG
        };
        let mut roots: Vec<TypeId> = self.btf.types().filter(is_root).map(|ty| ty.id()).collect();
        while !roots.is_empty() {
            self.keep(roots);
            roots = self.namesakes();
            roots.extend(self.derived());
        }
        // Declaration tags of selected types.
        let tags = self.btf.types().filter(|ty| ty.kind() == Kind::DeclTag);
        let tags = tags.filter(|ty| ty.referred().is_some_and(|to| self.kept.contains(&to)));
        self.keep(tags.map(|ty| ty.id()).collect());
        let mut kept: Vec<TypeId> = self.kept.into_iter().collect();
        kept.sort_unstable();
        kept
    }

    /// Selects types and their closure over references.
    fn keep(&mut self, types: Vec<TypeId>) {
        let mut open = types;
        while let Some(id) = open.pop() {
            if !id.is_void() && self.kept.insert(id) {
                open.extend(references(self.btf.at(id)));
            }
        }
    }

    /// Unselected structures whose first member is a socket or a map: a pointer to it
    /// may point to them.
    fn derived(&self) -> Vec<TypeId> {
        let is_base = |id: TypeId| {
            let name = self.btf.at(id).name().as_bytes();
            let is_one = name.ends_with(b"_sock") || [&b"sock"[..], b"bpf_map"].contains(&name);
            is_one && self.kept.contains(&id)
        };
        let starts = |ty: &Type<'_>| {
            let first = ty.as_composite().and_then(|composite| composite.member(0));
            let first = first.and_then(|member| self.btf.skip_modifiers(member.ty));
            !self.kept.contains(&ty.id()) && !ty.name().is_empty() && first.is_some_and(is_base)
        };
        let derived = self.btf.types().filter(starts);
        derived.map(|ty| ty.id()).collect()
    }

    /// Unselected types with kind and name of a selected one.
    fn namesakes(&self) -> Vec<TypeId> {
        let key = |ty: Type<'b>| (ty.kind(), essential_name(ty.name().as_bytes()));
        let named = |ty: &Type<'_>| !ty.name().is_empty();
        let kept = self.kept.iter().map(|&id| self.btf.at(id)).filter(named);
        let keys: HashSet<_> = kept.map(key).collect();
        let others = self.btf.types().filter(named);
        let others = others.filter(|ty| !self.kept.contains(&ty.id()) && keys.contains(&key(*ty)));
        others.map(|ty| ty.id()).collect()
    }
}

/// Types that a type refers to.
fn references(ty: Type<'_>) -> Vec<TypeId> {
    match ty.shape() {
        Shape::Array(array) => vec![array.element, array.index],
        Shape::Struct(composite) | Shape::Union(composite) => {
            composite.members().map(|member| member.ty).collect()
        }
        Shape::Proto(proto) => {
            let params = proto.params().map(|param| param.ty);
            params.chain([proto.returns]).collect()
        }
        Shape::Datasec(section) => section.vars().map(|placed| placed.var).collect(),
        _ => ty.referred().into_iter().collect(),
    }
}

/// BTF blob of the selected types, in order.
fn write(btf: &Btf<'_>, kept: &[TypeId]) -> Vec<u8> {
    let mut numbers = vec![TypeId::VOID; btf.len()];
    for (&id, number) in kept.iter().zip(1..) {
        numbers[id.0 as usize] = TypeId(number);
    }
    let mut builder = Builder::new();
    for &id in kept {
        builder.copy(btf.at(id), |to| numbers[to.0 as usize]);
    }
    builder.finish()
}
