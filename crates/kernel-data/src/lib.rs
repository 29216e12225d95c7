//! Built-in kernel data: descriptions of kernels for machines without their files.
//!
//! [`linux_6_18`] returns a [`Kernel`] with BTF, configuration and the registry of
//! helpers, context accesses, kfuncs and map kinds. Its BTF is that of the kernel, byte for
//! byte. `cargo xtask kernel-data` extracts the data from a running kernel.
//!
//! BTF and its index are compiled in as they are (the build unpacks them, 5.5 and 1.3 MB), so
//! that only the pages that are read cost anything. Configuration and registry are compressed
//! (25 KB): each call of [`linux_6_18`] decompresses the first, the first use of the registry
//! the second.
//!
//! ```
//! use beebox_kernel_data::linux_6_18;
//! use btf::Kind;
//!
//! let kernel = linux_6_18();
//! let btf = kernel.btf().expect("built-in BTF");
//! assert!(btf.find(Kind::Struct, "task_struct").is_some());
//! assert!(kernel.config().is_some_and(|config| config.is_set("CONFIG_BPF_SYSCALL")));
//! ```
//!
//! # Modules
//!
//! What `xtask/src/kernel_data.rs` extracted from a running kernel. `build.rs` unpacks its BTF and
//! computes the index (`btf::saved_index`), which are mapped with the program; `lib.rs`
//! decompresses the rest, `symbols.rs` looks up symbols.
#![forbid(unsafe_code)]

mod symbols;

use std::io::Read as _;
use std::sync::Arc;

use btf::{Btf, Kind};
use flate2::read::GzDecoder;
use spec::Kernel;
use spec::kernel::{Features, KernelConfig, KernelVersion, Mitigations, Source};
use spec::registry::{Registry, text};

/// Release of the kernel that the data were taken from.
pub const RELEASE: &str = include_str!("../data/linux-6.18.release").trim_ascii();

/// BTF of vmlinux.
const TYPES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/linux-6.18.btf"));
/// Index of [`TYPES`].
const INDEX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/linux-6.18.index"));

/// Source of the facts of [`linux_6_18`].
pub const SOURCE: Source = Source::BuiltIn("Linux 6.18");

/// Linux 6.18 for x86-64, in the configuration of the kernel that the data were taken
/// from. It has no modules; the addresses of its symbols are those of a model.
pub fn linux_6_18() -> Kernel {
    let types = Arc::new(Btf::with_index(TYPES, INDEX).expect("the index that was built"));
    let version: KernelVersion = RELEASE.parse().expect("a release as it was written");
    let registry_types = types.clone();
    let symbols = symbols::of(types.clone());
    Kernel::new("Linux 6.18")
        .with_version(version, SOURCE)
        .with_btf(types, SOURCE)
        .with_modules(Vec::new(), SOURCE)
        .with_symbols(symbols, SOURCE)
        .with_config(linux_6_18_config(), SOURCE)
        .with_features(Features::LINUX_6_18, SOURCE)
        .with_mitigations(Mitigations::ON, SOURCE)
        .with_page_size(4096, SOURCE)
        .with_cpus(2, SOURCE)
        .with_registry(
            Box::new(move || linux_6_18_registry(&registry_types)),
            SOURCE,
        )
}

/// Configuration of [`linux_6_18`].
pub fn linux_6_18_config() -> KernelConfig {
    let config = decompress(include_bytes!("../data/linux-6.18.config.gz"));
    KernelConfig::new(String::from_utf8(config).expect("text as it was written"))
}

/// Registry of Linux 6.18 for x86-64. `types` is the BTF that programs are verified
/// against; the names of structures and kfuncs resolve to its BTF ids. Linear in the
/// text of the registry, 100 KB.
pub fn linux_6_18_registry(types: &Btf<'_>) -> Registry {
    let bytes = decompress(include_bytes!("../data/linux-6.18.registry.gz"));
    let lines = String::from_utf8(bytes).expect("text as it was written");
    let mut registry = text::parse(&lines).expect("lines as they were written");
    let id = |kind, name: &str| types.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    registry
}

fn decompress(gzip: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut decoder = GzDecoder::new(gzip);
    decoder
        .read_to_end(&mut bytes)
        .expect("bytes as they were written");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registry_ids_are_those_of_the_btf() {
        let kernel = linux_6_18();
        let types = kernel.btf().unwrap();
        let registry = kernel.registry().unwrap();
        // Kfuncs of Debian's configuration alone have no type here, and no id.
        let mut absent = 0;
        for (name, kfunc) in &registry.kfuncs {
            let id = types.find(Kind::Func, name).map_or(0, |ty| ty.id().0);
            assert_eq!(kfunc.btf_id, id, "{name}");
            absent += usize::from(id == 0);
        }
        assert!(absent * 3 < registry.kfuncs.len());
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
    fn the_built_in_data_have_types_of_each_category() {
        let kernel = linux_6_18();
        assert_eq!(kernel.version_code() >> 8, 6 << 8 | 18);
        let btf = kernel.btf().unwrap();
        let found = |kind, name| btf.find(kind, name).is_some();
        // A context and the kernel's structure behind it, arguments of a tracepoint and
        // an LSM hook, a kfunc, struct_ops, an iterator, per-CPU variables.
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
        assert!(btf.types().count() > 120_000);
        // Features that the kernel was built without, from its configuration.
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
