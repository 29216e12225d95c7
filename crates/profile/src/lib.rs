//! Built-in kernel profiles: what answers need of a kernel, for machines that have none
//! of its files.
//!
//! [`linux_6_18`] is a [`Kernel`] with the BTF that programs reach from their contexts,
//! from tracepoints, hooks and kfuncs, the kernel's configuration, and the registry of
//! helpers, contexts, kfuncs and map kinds. `cargo xtask profile` takes them from a
//! running kernel and chooses what is kept; docs/loading.md says how far that carries.
//! BTF ids are the profile's own.
//!
//! A profile is packed in the program (some 500 KB). It is unpacked by each call of
//! [`linux_6_18`], the registry when it is asked for.
//!
//! ```
//! use beebox_profile::linux_6_18;
//! use btf::Kind;
//!
//! let kernel = linux_6_18();
//! let btf = kernel.btf().expect("types are kept");
//! assert!(btf.find(Kind::Struct, "task_struct").is_some());
//! assert!(kernel.config().is_some_and(|config| config.is_set("CONFIG_BPF_SYSCALL")));
//! ```
#![forbid(unsafe_code)]

use std::io::Read as _;
use std::sync::Arc;

use btf::{Btf, Kind};
use flate2::read::GzDecoder;
use spec::Kernel;
use spec::kernel::{Features, KernelConfig, KernelVersion, Source};
use spec::registry::{Registry, text};

/// Release of the kernel that the data were taken from.
pub const RELEASE: &str = include_str!("../data/linux-6.18.release").trim_ascii();

/// Where the facts of [`linux_6_18`] come from.
pub const SOURCE: Source = Source::BuiltIn("Linux 6.18");

/// Linux 6.18 for x86-64, in the configuration of the kernel that the data were taken
/// from. It has no modules, and the addresses of its symbols are unknown.
pub fn linux_6_18() -> Kernel {
    let types = unpack(include_bytes!("../data/linux-6.18.btf.gz"));
    let config = unpack(include_bytes!("../data/linux-6.18.config.gz"));
    let types = Arc::new(Btf::parse(types).expect("types as they were packed"));
    let config = String::from_utf8(config).expect("text as it was packed");
    let version: KernelVersion = RELEASE.parse().expect("a release as it was noted");
    let of_registry = types.clone();
    Kernel::new("Linux 6.18")
        .with_version(version, SOURCE)
        .with_btf(types, SOURCE)
        .with_modules(Vec::new(), SOURCE)
        .with_config(KernelConfig::new(config), SOURCE)
        .with_features(Features::LINUX_6_18, SOURCE)
        .with_page_size(4096, SOURCE)
        .with_cpus(2, SOURCE)
        .with_registry(Box::new(move || linux_6_18_registry(&of_registry)), SOURCE)
}

/// The registry of Linux 6.18 for x86-64, with the ids that its names have in the
/// BTF that programs are verified against. Linear in its text, 100 KB.
pub fn linux_6_18_registry(types: &Btf<'_>) -> Registry {
    let packed = unpack(include_bytes!("../data/linux-6.18.registry.gz"));
    let words = String::from_utf8(packed).expect("text as it was packed");
    let mut registry = text::parse(&words).expect("lines as they were written");
    let id = |kind, name: &str| types.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    registry
}

fn unpack(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = GzDecoder::new(packed);
    decoder
        .read_to_end(&mut bytes)
        .expect("bytes as they were packed");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_has_its_ids_from_the_types() {
        let kernel = linux_6_18();
        let types = kernel.btf().unwrap();
        let registry = kernel.registry().unwrap();
        let names = registry.kfuncs.values().filter(|kfunc| kfunc.btf_id == 0);
        assert_eq!(names.count(), 0);
        let task = types.find(Kind::Struct, "task_struct").unwrap().id().0;
        let proto = registry
            .protos
            .iter()
            .find(|proto| proto.name == "bpf_get_current_task_btf");
        assert_eq!(proto.unwrap().ret_btf.as_ref().unwrap().btf_id, task);
        let kinds: std::collections::BTreeSet<_> =
            registry.programs.keys().map(|(kind, _)| *kind).collect();
        // All but lirc_mode2, which the kernel was built without.
        assert_eq!(kinds.len(), 31);
    }

    #[test]
    fn the_profile_is_what_it_says() {
        let kernel = linux_6_18();
        assert_eq!(kernel.version_code() >> 8, 6 << 8 | 18);
        let btf = kernel.btf().unwrap();
        let found = |kind, name| btf.find(kind, name).is_some();
        // A context and what the kernel has for it, what tracepoints and hooks are
        // given, a kernel function, operations, an iterator, a per-CPU variable.
        for (kind, name) in [
            (Kind::Struct, "__sk_buff"),
            (Kind::Struct, "sk_buff"),
            (Kind::Typedef, "btf_trace_sched_switch"),
            (Kind::Func, "bpf_lsm_file_open"),
            (Kind::Func, "bpf_task_acquire"),
            (Kind::Struct, "bpf_struct_ops_tcp_congestion_ops"),
            (Kind::Func, "bpf_iter_task"),
            (Kind::Enum, "bpf_func_id"),
            (Kind::Struct, "dentry"),
            (Kind::Datasec, ".data..percpu"),
            (Kind::DeclTag, "bpf_kfunc"),
        ] {
            assert!(found(kind, name), "{name}");
        }
        assert!(btf.types().count() > 20_000);
        // What the kernel of the data lacks is told from its configuration.
        let left_out: Vec<_> = kernel.left_out().collect();
        assert!(left_out.contains(&"modules") && left_out.contains(&"sched_ext"));
        assert!(
            kernel
                .config()
                .unwrap()
                .text()
                .lines()
                .all(|line| line.contains('='))
        );
    }
}
