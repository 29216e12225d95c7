//! Kernels to go: what objects ask of a kernel, kept for machines that have none of
//! its files, or another.
//!
//! A [`Profile`] holds the types that programs reach from their contexts, from
//! tracepoints, hooks and kernel functions, and the kernel's configuration.
//! `cargo xtask profile` takes them from a running kernel and says what is kept;
//! docs/loading.md says how far that carries. The numbers of types are the
//! profile's own.
//!
//! [`linux_6_18_registry`] is what the verifier must know beside types: helpers,
//! contexts, kfuncs, map kinds, as the running kernel answered.
//!
//! A profile is packed in the program (some 500 KB) and unpacked when somebody asks,
//! in a few milliseconds; whoever asks keeps it.
//!
//! ```
//! use beebox_profile::Profile;
//! use btf::Kind;
//!
//! let profile = Profile::linux_6_18();
//! let task = profile.types().find(Kind::Struct, "task_struct");
//! assert!(task.is_some());
//! assert!(profile.config().contains("CONFIG_BPF_SYSCALL=y\n"));
//! ```
#![forbid(unsafe_code)]

use std::io::Read as _;

use btf::{Btf, Kind};
use flate2::read::GzDecoder;
use spec::registry::{Registry, text};

/// A kernel, as far as it was kept.
#[derive(Debug)]
pub struct Profile {
    types: Btf<'static>,
    config: String,
    version: u32,
}

impl Profile {
    /// Linux 6.18 for x86-64.
    pub fn linux_6_18() -> Profile {
        let types = unpack(include_bytes!("../data/linux-6.18.btf.gz"));
        let config = unpack(include_bytes!("../data/linux-6.18.config.gz"));
        Profile {
            types: Btf::parse(types).expect("types as they were packed"),
            config: String::from_utf8(config).expect("text as it was packed"),
            version: version(include_str!("../data/linux-6.18.release").trim()),
        }
    }

    /// Its types.
    pub fn types(&self) -> &Btf<'static> {
        &self.types
    }

    /// Its configuration: lines `CONFIG_NAME=value` of what is set.
    pub fn config(&self) -> &str {
        &self.config
    }

    /// Its version as `LINUX_KERNEL_VERSION` says it: major, minor and patch in a
    /// byte each.
    pub fn version(&self) -> u32 {
        self.version
    }
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

/// `6.18.44` as a number.
fn version(release: &str) -> u32 {
    let numbers = release
        .split('.')
        .map(|number| number.parse().unwrap_or(0u32));
    let three = numbers.chain([0; 3]).take(3);
    three.fold(0, |version, number| version << 8 | number.min(255))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_has_its_ids_from_the_types() {
        let profile = Profile::linux_6_18();
        let types = profile.types();
        let registry = linux_6_18_registry(types);
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
        let profile = Profile::linux_6_18();
        assert_eq!(profile.version() >> 8, 6 << 8 | 18);
        let found = |kind, name| profile.types().find(kind, name).is_some();
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
        assert!(profile.types().types().count() > 20_000);
        assert!(profile.config().lines().all(|line| line.contains('=')));
    }

    #[test]
    fn versions_are_numbers() {
        assert_eq!(version("6.18.44"), 0x06122c);
        assert_eq!(version("6.18"), 0x061200);
    }
}
