//! Built-in kernel data: Linux 6.18.44 for x86-64 in two configurations, for machines without the
//! files of a kernel.
//!
//! [`linux_6_18`] is the kernel in the configuration of Debian's Linux 6.18, which is what users
//! have: with modules, kprobes, trampolines, LSM and sched_ext. [`linux_6_18_minimal`] is one that was
//! built without these, whose every answer can be compared with the kernel that gave it. Each has BTF,
//! configuration, symbols and the registry of helpers, context accesses, kfuncs and map kinds. BTF is
//! that of the kernel, byte for byte. Where Debian's point release has another rule than 6.18.44, that
//! of 6.18.44 holds. `cargo xtask kernel-data` extracts the data.
//!
//! The BTF of [`linux_6_18`] and its index are compiled in as they are (the build unpacks them, 5.0 and
//! 1.3 MB), so that only the pages that are read cost anything. That of [`linux_6_18_minimal`] is
//! compressed as the difference to it (0.9 MB), and unpacked once, on first use. Configuration,
//! symbols and registry are compressed (0.5 MB): each call of [`linux_6_18`] decompresses the first, the
//! first use of the others these.
//!
//! ```
//! use beebox_kernel_data::linux_6_18;
//! use btf::Kind;
//!
//! let kernel = linux_6_18();
//! let btf = kernel.btf().expect("built-in BTF");
//! assert!(btf.find(Kind::Struct, "task_struct").is_some());
//! assert!(kernel.config().is_some_and(|config| config.is_set("CONFIG_BPF_LSM")));
//! ```
//!
//! # Modules
//!
//! `build.rs` unpacks the BTF of the first configuration and computes its index
//! (`btf::saved_index`), which are mapped with the program; `types.rs` has both BTFs,
//! `registry.rs` the registry of each configuration, `symbols.rs` looks up symbols.
#![forbid(unsafe_code)]

mod registry;
pub mod symbols;
mod types;

use std::io::Read as _;
use std::sync::Arc;

use btf::Btf;
use flate2::read::GzDecoder;
use spec::Kernel;
use spec::kernel::{Features, KernelConfig, KernelVersion, Mitigations, Source};
use spec::registry::Registry;

pub use registry::{OF_BOTH, mark, marked_text as registry_text};
pub use types::{DICTIONARY, TYPES};

/// Release whose rules the data are.
pub const RELEASE: &str = include_str!("../data/linux-6.18.release").trim_ascii();

/// A configuration of Linux 6.18 whose data are built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// That of Debian's Linux 6.18.
    Debian,
    /// That of a kernel without modules, kprobes, trampolines, sched_ext and BPF qdiscs, of which the
    /// rules of the release were asked.
    Minimal,
}

impl Configuration {
    /// Every configuration.
    pub const ALL: [Configuration; 2] = [Configuration::Debian, Configuration::Minimal];

    /// Name of the kernel in messages.
    pub const fn title(self) -> &'static str {
        match self {
            Configuration::Debian => "Linux 6.18",
            Configuration::Minimal => "Linux 6.18 (minimal configuration)",
        }
    }

    /// Source of the facts of the kernel.
    pub const fn source(self) -> Source {
        Source::BuiltIn(self.title())
    }

    /// Linux 6.18.44 for x86-64 in this configuration. It has no modules; the addresses of its
    /// symbols are those of a model.
    pub fn kernel(self) -> Kernel {
        let version = RELEASE.parse().expect("a release as it was written");
        let symbols = move || symbols::text(self);
        let registry = move |types: &Btf<'_>| self.registry(types);
        let features = Features::LINUX_6_18;
        assemble(
            self.title(),
            version,
            types::of(self),
            self.config(),
            features,
            symbols,
            registry,
        )
    }

    /// Symbols of the kernel beside the functions of its BTF, a line for each ([`symbols`]).
    pub fn symbol_text(self) -> String {
        symbols::text(self)
    }

    /// The configuration itself.
    pub fn config(self) -> KernelConfig {
        let config = decompress(match self {
            Configuration::Debian => include_bytes!("../data/linux-6.18.config.gz"),
            Configuration::Minimal => include_bytes!("../data/linux-6.18-minimal.config.gz"),
        });
        KernelConfig::new(String::from_utf8(config).expect("text as it was written"))
    }

    /// Registry of the kernel. `types` is the BTF that programs are verified against; the names of
    /// structures and kfuncs resolve to its BTF ids. Linear in the text of the registry, 100 KB.
    pub fn registry(self, types: &Btf<'_>) -> Registry {
        registry::of(self, types)
    }
}

/// The kernel of a title from its parts: version, types, configuration, the features that its release
/// decides, the text of [`symbols`], and the registry by its types.
pub fn assemble(
    title: &'static str,
    version: KernelVersion,
    types: Arc<Btf<'static>>,
    config: KernelConfig,
    features: Features,
    symbol_text: impl Fn() -> String + Send + Sync + 'static,
    registry: impl Fn(&Btf<'_>) -> Registry + Send + Sync + 'static,
) -> Kernel {
    let source = || Source::BuiltIn(title);
    let features = Features {
        syscall_wrapper: config.has_syscall_wrapper(),
        ..features
    };
    let of_registry = types.clone();
    let symbols = symbols::of(symbol_text, types.clone());
    Kernel::new(title)
        .with_version(version, source())
        .with_btf(types, source())
        .with_modules(Vec::new(), source())
        .with_symbols(symbols, source())
        .with_config(config, source())
        .with_features(features, source())
        .with_mitigations(Mitigations::ON, source())
        .with_page_size(4096, source())
        .with_cpus(2, source())
        .with_registry(Box::new(move || registry(&of_registry)), source())
}

/// Linux 6.18 for x86-64 in the configuration of Debian.
pub fn linux_6_18() -> Kernel {
    Configuration::Debian.kernel()
}

/// Linux 6.18 for x86-64 in a minimal configuration.
pub fn linux_6_18_minimal() -> Kernel {
    Configuration::Minimal.kernel()
}

/// Registry of [`linux_6_18`] for the BTF that programs are verified against.
pub fn linux_6_18_registry(types: &Btf<'_>) -> Registry {
    Configuration::Debian.registry(types)
}

/// Registry of [`linux_6_18_minimal`] for the BTF that programs are verified against.
pub fn linux_6_18_minimal_registry(types: &Btf<'_>) -> Registry {
    Configuration::Minimal.registry(types)
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
    use std::collections::BTreeSet;

    use btf::Kind;

    use super::*;

    #[test]
    fn registry_ids_are_those_of_the_btf() {
        for configuration in Configuration::ALL {
            let kernel = configuration.kernel();
            let types = kernel.btf().unwrap();
            let registry = kernel.registry().unwrap();
            for (name, kfunc) in &registry.kfuncs {
                let id = types.find(Kind::Func, name).map(|ty| ty.id().0);
                // Those of modules have none.
                let is_of_module = id.is_none() && configuration == Configuration::Debian;
                assert_eq!(id.unwrap_or(0), kfunc.btf_id, "{name}");
                assert!(is_of_module || id.is_some(), "{name}");
            }
            let task = types.find(Kind::Struct, "task_struct").unwrap().id().0;
            let proto = registry
                .protos
                .iter()
                .find(|proto| proto.name == "bpf_get_current_task_btf");
            assert_eq!(proto.unwrap().ret_btf.as_ref().unwrap().btf_id, task);
            let kinds: BTreeSet<_> = registry.programs.keys().map(|(kind, _)| *kind).collect();
            // All but lirc_mode2, which both kernels were built without.
            assert_eq!(kinds.len(), 31);
        }
    }

    #[test]
    fn the_built_in_data_have_types_of_each_category() {
        // A context and the kernel's structure behind it, arguments of a tracepoint and
        // an LSM hook, a kfunc, struct_ops, an iterator, per-CPU variables.
        const TYPES: [(Kind, &str); 11] = [
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
        ];
        let more = [
            (Kind::Struct, "sched_ext_ops"),
            (Kind::Func, "scx_bpf_create_dsq"),
        ];
        for configuration in Configuration::ALL {
            let kernel = configuration.kernel();
            assert_eq!(kernel.version_code() >> 8, 6 << 8 | 18);
            let btf = kernel.btf().unwrap();
            let found = |(kind, name)| btf.find(kind, name).is_some();
            let is_whole = configuration == Configuration::Debian;
            for one in TYPES {
                assert!(found(one), "{one:?}");
            }
            for one in more {
                assert_eq!(found(one), is_whole, "{one:?}");
            }
            assert!(btf.types().count() > 110_000);
            // Features that the kernel was built without, from its configuration.
            let left_out: Vec<_> = kernel.left_out().collect();
            assert_eq!(left_out.contains(&"modules"), !is_whole);
            assert_eq!(left_out.contains(&"sched_ext"), !is_whole);
            let config = kernel.config().unwrap();
            assert!(config.text().lines().all(|line| line.contains('=')));
        }
    }
}
