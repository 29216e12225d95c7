//! Description of a kernel: version, BTF of vmlinux and modules, configuration, symbols,
//! features, privileges, mitigations and registry, each with its source.
//!
//! A [`Kernel`] is a value that callers pass in. `kernel-data` (built in), `sys` (the
//! running kernel) and the command (files and options) construct it. Unstated fields are
//! assumed; [`Kernel::assumptions`] returns them.
//!
//! Cloning shares the data.

mod config;
mod features;
mod symbols;
mod version;

use std::fmt;
use std::sync::{Arc, LazyLock};

use btf::Btf;

use crate::behaviour::{Behaviours, is_between_compared, is_compared};
use crate::host::Prototype;
use crate::registry::{Kfunc, Registry};

pub use config::KernelConfig;
pub use features::{Features, InvalidPrivileges, Mitigations, Privileges};
pub use symbols::{SymbolAddress, SymbolTable, Symbols};
pub use version::{BadRelease, InvalidVersion, KernelVersion, Release};

/// Memory in bytes of a machine of which nothing is stated.
pub const DEFAULT_MEMORY: u64 = 16 << 30;

/// Description of the kernel that programs are linked and verified for.
#[derive(Clone)]
pub struct Kernel {
    name: String,
    version: Sourced<Option<Versioned>>,
    btf: Sourced<Option<Arc<Btf<'static>>>>,
    core_btf: Option<Arc<Btf<'static>>>,
    /// True if the BTF is a part of the kernel's.
    is_btf_reduced: bool,
    modules: Sourced<Vec<Module>>,
    config: Sourced<Option<Arc<KernelConfig>>>,
    symbols: Sourced<Option<Symbols>>,
    features: Sourced<Features>,
    /// Source of [`Features::syscall_wrapper`], which BTF may tell.
    syscall_wrapper: Source,
    privileges: Sourced<Privileges>,
    mitigations: Sourced<Mitigations>,
    page_size: Sourced<u32>,
    cpus: Sourced<u32>,
    memory: Sourced<u64>,
    registry: Sourced<Option<LazyRegistry>>,
    /// True if its rules are those of the table of behaviours, whether or not a kernel of its release was
    /// compared.
    has_rules_by_table: bool,
    /// What the verifier does, if that is not what kernels of the version do.
    behaviours: Option<Behaviours>,
    /// Functions of the host, in the order of their module.
    pub(crate) host: Arc<[Prototype]>,
}

/// Registry, computed on first use.
type LazyRegistry = Arc<LazyLock<Registry, Box<dyn FnOnce() -> Registry + Send>>>;

/// A value and its source.
#[derive(Clone, Debug)]
struct Sourced<T> {
    value: T,
    source: Source,
}

impl<T> Sourced<T> {
    fn assumed(value: T) -> Sourced<T> {
        Sourced {
            value,
            source: Source::Assumed,
        }
    }
}

/// Source of a field of the description of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// Built-in data of this name.
    BuiltIn(&'static str),
    /// The running kernel.
    Running,
    /// A file.
    File(String),
    /// Stated by the caller.
    Given,
    /// Unstated: a default is assumed.
    Assumed,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::BuiltIn(name) => write!(f, "built in ({name})"),
            Source::Running => f.write_str("running kernel"),
            Source::File(path) => f.write_str(path),
            Source::Given => f.write_str("given"),
            Source::Assumed => f.write_str("assumed"),
        }
    }
}

/// Field of the description of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KernelField {
    /// Version.
    Version,
    /// BTF of vmlinux.
    Btf,
    /// Modules and their BTF.
    Modules,
    /// Configuration.
    Config,
    /// Symbols.
    Symbols,
    /// Named features, but for that of system calls.
    Features,
    /// Whether system calls take their arguments in a structure.
    SyscallWrapper,
    /// Privileges of the caller of bpf(2).
    Privileges,
    /// Mitigations of speculative execution.
    Mitigations,
    /// Size of a page in bytes.
    PageSize,
    /// Number of possible CPUs.
    Cpus,
    /// Memory of the machine in bytes.
    Memory,
    /// Helpers, contexts, kfuncs and limits.
    Registry,
}

impl KernelField {
    /// Every field.
    pub const ALL: [KernelField; 13] = [
        KernelField::Version,
        KernelField::Btf,
        KernelField::Modules,
        KernelField::Config,
        KernelField::Symbols,
        KernelField::Features,
        KernelField::SyscallWrapper,
        KernelField::Privileges,
        KernelField::Mitigations,
        KernelField::PageSize,
        KernelField::Cpus,
        KernelField::Memory,
        KernelField::Registry,
    ];

    /// Name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            KernelField::Version => "version",
            KernelField::Btf => "BTF",
            KernelField::Modules => "modules",
            KernelField::Config => "configuration",
            KernelField::Symbols => "symbols",
            KernelField::Features => "features",
            KernelField::SyscallWrapper => "whether system calls have wrappers",
            KernelField::Privileges => "privileges",
            KernelField::Mitigations => "mitigations",
            KernelField::PageSize => "page size",
            KernelField::Cpus => "CPUs",
            KernelField::Memory => "memory",
            KernelField::Registry => "helpers and contexts",
        }
    }
}

/// A module of a kernel.
#[derive(Clone, Debug)]
pub struct Module {
    /// Name of the module.
    pub name: String,
    /// BTF of the module, split BTF on that of vmlinux.
    pub btf: Arc<Btf<'static>>,
    /// Its kfuncs, ascending by BTF id; `None` if they are unknown.
    pub kfuncs: Option<Arc<[Kfunc]>>,
}

impl Module {
    /// The kfunc with a BTF id of its BTF.
    pub fn kfunc(&self, btf_id: u32) -> Option<&Kfunc> {
        let kfuncs = self.kfuncs.as_deref()?;
        let place = kfuncs.binary_search_by_key(&btf_id, |kfunc| kfunc.btf_id);
        place.ok().map(|place| &kfuncs[place])
    }
}

/// A version, and what the verifiers of its kernels do.
#[derive(Clone, Copy, Debug)]
struct Versioned {
    version: KernelVersion,
    behaviours: Behaviours,
}

impl Versioned {
    fn new(version: KernelVersion) -> Versioned {
        let behaviours = Behaviours::of(version);
        Versioned {
            version,
            behaviours,
        }
    }
}

/// Defines the setter that states a field and its source.
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident: $field:ident = $value:ident: $ty:ty => $stored:expr;)*) => {
        impl Kernel {
            $($(#[$doc])*
            #[must_use]
            #[doc(hidden)]
            pub fn $setter(mut self, $value: $ty, source: Source) -> Kernel {
                self.$field = Sourced { value: $stored, source };
                self
            })*
        }
    };
}

setters! {
    /// Sets the version.
    with_version: version = version: KernelVersion => Some(Versioned::new(version));
    /// Sets the BTF of vmlinux.
    with_btf: btf = btf: Arc<Btf<'static>> => Some(btf);
    /// Sets the modules, in the order of their numbers.
    with_modules: modules = modules: Vec<Module> => modules;
    /// Sets the configuration.
    with_config: config = config: KernelConfig => Some(Arc::new(config));
    /// Sets the symbols.
    with_symbols: symbols = symbols: Symbols => Some(symbols);
    /// Sets the privileges of the caller of bpf(2).
    with_privileges: privileges = privileges: Privileges => privileges;
    /// Sets the mitigations of speculative execution.
    with_mitigations: mitigations = mitigations: Mitigations => mitigations;
    /// Sets the size of a page in bytes.
    with_page_size: page_size = size: u32 => size;
    /// Sets the number of possible CPUs.
    with_cpus: cpus = cpus: u32 => cpus;
    /// Sets the memory of the machine in bytes, which limits what maps take when they are
    /// created.
    with_memory: memory = bytes: u64 => bytes;
    /// Sets the registry of helpers, contexts, kfuncs and limits; `make` is called on
    /// first use.
    with_registry: registry = make: Box<dyn FnOnce() -> Registry + Send> =>
        Some(Arc::new(LazyLock::new(make)));
}

impl Kernel {
    /// Kernel with this name. Features, privileges, page size and memory are assumed to be those
    /// of Linux 6.18 on x86-64, used by root; other fields are unknown.
    #[doc(hidden)]
    pub fn new(name: impl Into<String>) -> Kernel {
        Kernel {
            name: name.into(),
            version: Sourced::assumed(None),
            btf: Sourced::assumed(None),
            core_btf: None,
            is_btf_reduced: false,
            modules: Sourced::assumed(Vec::new()),
            config: Sourced::assumed(None),
            symbols: Sourced::assumed(None),
            features: Sourced::assumed(Features::LINUX_6_18),
            syscall_wrapper: Source::Assumed,
            privileges: Sourced::assumed(Privileges::ALL),
            mitigations: Sourced::assumed(Mitigations::ON),
            page_size: Sourced::assumed(4096),
            cpus: Sourced::assumed(0),
            memory: Sourced::assumed(DEFAULT_MEMORY),
            registry: Sourced::assumed(None),
            has_rules_by_table: false,
            behaviours: None,
            host: Arc::default(),
        }
    }

    /// Copy with another name in which every field is assumed, but for symbols, which are
    /// unknown: addresses are those of one kernel.
    #[must_use]
    #[doc(hidden)]
    pub fn assumed_for(mut self, name: impl Into<String>) -> Kernel {
        self.name = name.into();
        self.symbols.value = None;
        let sources = [
            &mut self.version.source,
            &mut self.btf.source,
            &mut self.modules.source,
            &mut self.config.source,
            &mut self.symbols.source,
            &mut self.features.source,
            &mut self.syscall_wrapper,
            &mut self.privileges.source,
            &mut self.mitigations.source,
            &mut self.page_size.source,
            &mut self.cpus.source,
            &mut self.memory.source,
            &mut self.registry.source,
        ];
        for source in sources {
            *source = Source::Assumed;
        }
        self
    }

    /// Sets the features, that of system calls included.
    #[must_use]
    #[doc(hidden)]
    pub fn with_features(mut self, features: Features, source: Source) -> Kernel {
        self.syscall_wrapper = source.clone();
        self.features = Sourced {
            value: features,
            source,
        };
        self
    }

    /// Sets whether system calls take their arguments in a structure, and leaves the other
    /// features as they are.
    #[must_use]
    #[doc(hidden)]
    pub fn with_syscall_wrapper(mut self, is_there: bool, source: Source) -> Kernel {
        self.features.value.syscall_wrapper = is_there;
        self.syscall_wrapper = source;
        self
    }

    /// States that the rules of its verifier are those that the table of behaviours has for its
    /// version, also if no kernel of its release was compared with it.
    #[must_use]
    #[doc(hidden)]
    pub fn with_rules_by_table(mut self) -> Kernel {
        self.has_rules_by_table = true;
        self
    }

    /// Changes the name.
    #[must_use]
    #[doc(hidden)]
    pub fn with_name(mut self, name: impl Into<String>) -> Kernel {
        self.name = name.into();
        self
    }

    /// Sets what the verifier does, whatever kernels of the version do: to find which behaviour
    /// decides an answer.
    #[must_use]
    #[doc(hidden)]
    pub fn with_behaviours(mut self, behaviours: Behaviours) -> Kernel {
        self.behaviours = Some(behaviours);
        self
    }

    /// Sets the target BTF of CO-RE relocations, which replaces that of vmlinux and
    /// modules (libbpf's `btf_custom_path`).
    #[must_use]
    #[doc(hidden)]
    pub fn with_core_btf(mut self, btf: Arc<Btf<'static>>) -> Kernel {
        self.core_btf = Some(btf);
        self
    }

    /// States whether the BTF of vmlinux is a part of the kernel's, as tools write it for
    /// some programs. What such BTF lacks, the kernel may have.
    #[must_use]
    #[doc(hidden)]
    pub fn with_reduced_btf(mut self, is_reduced: bool) -> Kernel {
        self.is_btf_reduced = is_reduced;
        self
    }

    /// Name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Version.
    pub fn version(&self) -> Option<KernelVersion> {
        self.version.value.map(|of| of.version)
    }

    /// Version as `LINUX_VERSION_CODE`; 0 if it is unknown.
    #[doc(hidden)]
    pub fn version_code(&self) -> u32 {
        self.version().map_or(0, KernelVersion::code)
    }

    /// What the verifier of the kernel does, by its version unless it is set; that of Linux 6.18 if the
    /// version is unknown.
    #[doc(hidden)]
    pub fn behaviours(&self) -> Behaviours {
        let of_version = self.version.value.map(|of| of.behaviours);
        let stated = self.behaviours.or(of_version);
        stated.unwrap_or(Behaviours::LINUX_6_18)
    }

    /// True if the rules of the kernel's verifier are known: it is of the release whose rules are known
    /// in every detail, or of one that was compared, and its helpers and contexts are its own. Of a
    /// derived preset, they are those of the table.
    #[doc(hidden)]
    pub fn has_rules(&self) -> bool {
        let is_own = *self.source(KernelField::Registry) != Source::Assumed;
        self.version().map(Release::from).is_none_or(|release| {
            let is_known =
                is_compared(release) || self.has_rules_by_table && is_between_compared(release);
            release == Release::LINUX_6_18 || is_own && is_known
        })
    }

    /// BTF of vmlinux.
    #[doc(hidden)]
    pub fn btf(&self) -> Option<&Arc<Btf<'static>>> {
        self.btf.value.as_ref()
    }

    /// True if the BTF of vmlinux is a part of the kernel's.
    #[doc(hidden)]
    pub fn is_btf_reduced(&self) -> bool {
        self.is_btf_reduced
    }

    /// Target BTF of CO-RE relocations, if it is not the kernel's own.
    #[doc(hidden)]
    pub fn core_btf(&self) -> Option<&Arc<Btf<'static>>> {
        self.core_btf.as_ref()
    }

    /// Modules; module number n is entry n - 1.
    #[doc(hidden)]
    pub fn modules(&self) -> &[Module] {
        &self.modules.value
    }

    /// Configuration.
    #[doc(hidden)]
    pub fn config(&self) -> Option<&KernelConfig> {
        self.config.value.as_deref()
    }

    /// Symbols.
    #[doc(hidden)]
    pub fn symbols(&self) -> Option<&Symbols> {
        self.symbols.value.as_ref()
    }

    /// Named features.
    #[doc(hidden)]
    pub fn features(&self) -> Features {
        self.features.value
    }

    /// Privileges of the caller of bpf(2).
    #[doc(hidden)]
    pub fn privileges(&self) -> Privileges {
        self.privileges.value
    }

    /// Mitigations of speculative execution.
    #[doc(hidden)]
    pub fn mitigations(&self) -> Mitigations {
        self.mitigations.value
    }

    /// Size of a page in bytes.
    pub fn page_size(&self) -> u32 {
        self.page_size.value
    }

    /// Number of possible CPUs; 0 if unknown.
    pub fn cpus(&self) -> u32 {
        self.cpus.value
    }

    /// Memory of the machine in bytes, [`DEFAULT_MEMORY`] unless it is stated: of the machine
    /// that is described, whatever machine answers.
    pub fn memory(&self) -> u64 {
        self.memory.value
    }

    /// Helpers, contexts, kfuncs and limits.
    #[doc(hidden)]
    pub fn registry(&self) -> Option<&Registry> {
        self.registry.value.as_ref().map(|registry| &***registry)
    }

    /// Functions of the host that programs can call.
    #[doc(hidden)]
    pub fn host_functions(&self) -> &Arc<[Prototype]> {
        &self.host
    }

    /// Source of a field.
    #[doc(hidden)]
    pub fn source(&self, field: KernelField) -> &Source {
        match field {
            KernelField::Version => &self.version.source,
            KernelField::Btf => &self.btf.source,
            KernelField::Modules => &self.modules.source,
            KernelField::Config => &self.config.source,
            KernelField::Symbols => &self.symbols.source,
            KernelField::Features => &self.features.source,
            KernelField::SyscallWrapper => &self.syscall_wrapper,
            KernelField::Privileges => &self.privileges.source,
            KernelField::Mitigations => &self.mitigations.source,
            KernelField::PageSize => &self.page_size.source,
            KernelField::Cpus => &self.cpus.source,
            KernelField::Memory => &self.memory.source,
            KernelField::Registry => &self.registry.source,
        }
    }

    /// True if a field has a stated or assumed value; false if it is unknown.
    #[doc(hidden)]
    pub fn has(&self, field: KernelField) -> bool {
        match field {
            KernelField::Version => self.version.value.is_some(),
            KernelField::Btf => self.btf.value.is_some(),
            KernelField::Config => self.config.value.is_some(),
            KernelField::Symbols => self.symbols.value.is_some(),
            KernelField::Registry => self.registry.value.is_some(),
            KernelField::Modules
            | KernelField::Features
            | KernelField::SyscallWrapper
            | KernelField::Privileges
            | KernelField::Mitigations
            | KernelField::PageSize
            | KernelField::Cpus
            | KernelField::Memory => true,
        }
    }

    /// Fields whose values are assumed.
    #[doc(hidden)]
    pub fn assumptions(&self) -> impl Iterator<Item = KernelField> + '_ {
        KernelField::ALL
            .into_iter()
            .filter(|&field| self.has(field) && *self.source(field) == Source::Assumed)
    }

    /// Features of Linux for BPF programs that the configuration disables; empty if the
    /// configuration is unknown.
    #[doc(hidden)]
    pub fn left_out(&self) -> impl Iterator<Item = &'static str> + '_ {
        const PARTS: &[(&str, &str)] = &[
            ("CONFIG_MODULES", "modules"),
            ("CONFIG_KPROBES", "kprobes"),
            ("CONFIG_DYNAMIC_FTRACE", "ftrace"),
            ("CONFIG_BPF_LSM", "BPF LSM"),
            ("CONFIG_SCHED_CLASS_EXT", "sched_ext"),
            ("CONFIG_HID_BPF", "HID-BPF"),
            ("CONFIG_NET_SCH_BPF", "BPF qdisc"),
            ("CONFIG_BPF_LIRC_MODE2", "lirc"),
        ];
        let config = self.config();
        let is_missing = move |option: &str| config.is_some_and(|config| !config.is_set(option));
        PARTS
            .iter()
            .filter(move |(option, _)| is_missing(option))
            .map(|&(_, part)| part)
    }
}

impl Default for Kernel {
    fn default() -> Kernel {
        Kernel::new("unknown kernel")
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name)
            .field("version", &self.version())
            .field("btf", &self.btf)
            .field("features", &self.features)
            .field("privileges", &self.privileges)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assumed_fields_are_named() {
        let config = KernelConfig::new("CONFIG_MODULES=y\nCONFIG_KPROBES=m\n");
        let kernel = Kernel::new("a kernel")
            .with_config(config, Source::File("config".into()))
            .with_version(KernelVersion::new(5, 15, 3), Source::Given);
        let assumed: Vec<_> = kernel.assumptions().map(KernelField::name).collect();
        let expected = [
            "modules",
            "features",
            "whether system calls have wrappers",
            "privileges",
            "mitigations",
            "page size",
            "CPUs",
            "memory",
        ];
        assert_eq!(assumed, expected);
        assert_eq!(kernel.version_code(), 0x050f03);
        let left_out: Vec<_> = kernel.left_out().take(2).collect();
        assert_eq!(left_out, ["ftrace", "BPF LSM"]);
        assert_eq!(Kernel::default().left_out().count(), 0);
        let told = kernel
            .clone()
            .with_syscall_wrapper(false, Source::File("vmlinux".into()));
        let of_told: Vec<_> = told.assumptions().collect();
        assert!(of_told.contains(&KernelField::Features));
        assert!(!of_told.contains(&KernelField::SyscallWrapper));
        assert!(!told.features().syscall_wrapper);
        let other = told.assumed_for("another");
        assert_eq!(other.assumptions().count(), 10);
        assert_eq!(other.version_code(), 0x050f03);
    }
}
