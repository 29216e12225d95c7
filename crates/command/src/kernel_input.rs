//! The kernel that a command answers for: one set of options for every command.
//!
//! A kernel is built in, running, a file (BTF, or a kernel image with BTF) or a
//! directory with what is known of one. Single facts can be given beside it. What
//! no source states is assumed to be as in Linux 6.18, and the output names it.

use std::convert::Infallible;
use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox::Kernel;
use beebox::internal::ask::{image_in, image_version};
use beebox::internal::kernel::files::{
    self, KernelFileError, module_name, with_btf_file, with_config_file, with_module_files,
    with_version_of_types,
};
use beebox::internal::kernel::{Features, KernelField, Source};
use beebox::internal::program::Release;
use beebox::internal::verify::RULES;
use beebox::kernel::{KernelVersion, Kernels as _, Preset};

use kernel_data::Configuration;

use crate::answer::{Failure, note};
use crate::kernel_list::{DESCRIBE, KernelWord, described, home, known, listed};
use crate::nearest::nearest;
use crate::type_file::{read_types, unreadable};

/// Fields that decide what linking comes to.
pub const FOR_LINKING: &[KernelField] = &[
    KernelField::Version,
    KernelField::Btf,
    KernelField::Modules,
    KernelField::Config,
    KernelField::Symbols,
    KernelField::Features,
    KernelField::SyscallWrapper,
    KernelField::Cpus,
];

/// Fields that decide which functions of the kernel programs may call.
pub const FOR_CALLING: &[KernelField] = &[
    KernelField::Btf,
    KernelField::Modules,
    KernelField::Registry,
];

/// Fields that decide what verification comes to.
pub const FOR_VERIFYING: &[KernelField] = &[
    KernelField::Version,
    KernelField::Btf,
    KernelField::Modules,
    KernelField::Config,
    KernelField::Symbols,
    KernelField::Features,
    KernelField::SyscallWrapper,
    KernelField::Mitigations,
    KernelField::Cpus,
    KernelField::Registry,
];

/// Names of clap's arguments of [`KernelArgs`].
pub const KERNEL: &[&str] = &[
    "kernel",
    "btf",
    "reduced_btf",
    "kconfig",
    "kernel_version",
    "module_btf",
    "core_btf",
    "machine_memory",
    "feature",
    "host_functions",
];

/// Heading of these options in help texts.
pub const KERNEL_HEADING: &str = "Kernel";

/// A kernel by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelName {
    /// The built-in Linux 6.18 by this name, in one of its configurations.
    BuiltIn(&'static str, Configuration),
    /// The running kernel.
    Running,
    /// A built-in kernel of this series, version or distribution, beside Linux 6.18.
    Preset(String, &'static str),
    /// A kernel of this series or version that `tools/kernels/vm describe` described, in this directory.
    Described(String, PathBuf),
    /// BTF, a kernel image, or a directory with what is known of a kernel.
    Path(PathBuf),
}

impl KernelName {
    /// Names beside paths.
    const WORDS: [&str; 3] = ["6.18", "6.18-minimal", "running"];

    /// The kernel of a word; a file that is not there if it is none.
    pub(crate) fn parse(text: &str) -> KernelName {
        match text {
            "6.18" => KernelName::BuiltIn("6.18", Configuration::Debian),
            kernel_data::RELEASE => {
                KernelName::BuiltIn(kernel_data::RELEASE, Configuration::Debian)
            }
            "6.18-minimal" => KernelName::BuiltIn("6.18-minimal", Configuration::Minimal),
            "running" => KernelName::Running,
            path if Path::new(path).exists() => KernelName::Path(path.into()),
            word => match (Preset::named(word), described(word)) {
                (Some(preset), _) => KernelName::Preset(word.to_owned(), preset.name()),
                (None, Some(directory)) => KernelName::Described(word.to_owned(), directory),
                (None, None) => KernelName::Path(word.into()),
            },
        }
    }

    /// True if both name one kernel.
    fn is_same(&self, other: &KernelName) -> bool {
        match (self, other) {
            (KernelName::BuiltIn(_, one), KernelName::BuiltIn(_, other)) => one == other,
            (KernelName::Preset(_, one), KernelName::Preset(_, other)) => one == other,
            (KernelName::Described(_, one), KernelName::Described(_, other)) => one == other,
            (
                KernelName::BuiltIn(..)
                | KernelName::Running
                | KernelName::Preset(..)
                | KernelName::Described(..)
                | KernelName::Path(_),
                other,
            ) => self == other,
        }
    }

    /// The kernel of the name.
    fn read(&self) -> Result<Kernel, Failure> {
        match self {
            KernelName::BuiltIn(_, configuration) => Ok(configuration.kernel()),
            KernelName::Running => running(),
            KernelName::Preset(_, name) => Kernel::preset(name).map_err(Failure::new),
            KernelName::Described(_, directory) => {
                let kernel = files::open(directory).map_err(failure)?;
                let version = kernel.version().map(|version| format!("Linux {version}"));
                Ok(kernel.with_name(version.unwrap_or_default()))
            }
            KernelName::Path(path) => files::open(path).map_err(failure),
        }
    }
}

impl Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelName::BuiltIn(word, _) => f.write_str(word),
            KernelName::Running => f.write_str("running"),
            KernelName::Preset(word, _) | KernelName::Described(word, _) => f.write_str(word),
            KernelName::Path(path) => path.display().fmt(f),
        }
    }
}

/// The option that names a kernel, of every command with one.
#[derive(clap::Args)]
pub struct KernelNameArg {
    /// The kernel: one that is built in, by series, version or distribution (5.10 to 7.3, 6.12.117,
    /// debian-12; 6.18 where no kernel needs to be named), 6.18-minimal (without modules, kprobes and
    /// sched_ext), `running`, a file with BTF (as /sys/kernel/btf/vmlinux, or a kernel image), a
    /// directory with vmlinux, config, System.map, registry, btf/, or a version that
    /// `tools/kernels/vm describe` described. `verify` takes several, with commas, and lists:
    /// `all`, `lts`, `6.1-6.12`, `6.12-`, `-6.12`
    #[arg(
        long = "kernel",
        value_name = "VERSION|running|PATH",
        value_parser = |word: &str| Ok::<_, Infallible>(KernelWord::parse(word)),
        value_delimiter = ',',
        help_heading = KERNEL_HEADING
    )]
    kernel: Vec<KernelWord>,
}

impl KernelNameArg {
    /// True if a kernel was named.
    pub fn is_given(&self) -> bool {
        !self.kernel.is_empty()
    }

    /// The one kernel that was named.
    fn one(&self) -> Result<Option<KernelName>, Failure> {
        match &self.kernel[..] {
            [] => Ok(None),
            [one] if !one.is_list() => Ok(one.kernels()?.pop()),
            several => {
                let names: Vec<String> = several.iter().map(ToString::to_string).collect();
                let what = format_args!("--kernel {}: one kernel is answered for", names.join(","));
                Err(Failure::new(what).hint("beebox verify, which takes several"))
            }
        }
    }

    /// The version of a kernel that was named; `None` for the built-in one.
    ///
    /// # Errors
    /// If nothing of what is known of the kernel states its version.
    pub fn version(&self) -> Result<Option<KernelVersion>, Failure> {
        let unknown = |what: &dyn Display, place: &dyn Display| {
            Failure::new(what)
                .within(place)
                .hint("--kernel-version VERSION, without --kernel")
        };
        match self.one()? {
            None | Some(KernelName::BuiltIn(..)) => Ok(None),
            Some(KernelName::Preset(_, name)) => Ok(Preset::named(name).map(Preset::version)),
            Some(KernelName::Running) => {
                let failed = |error: &dyn Display| unknown(error, &"the running kernel");
                let release = sys::kernel::release().map_err(|error| failed(&error))?;
                release.parse().map(Some).map_err(|error| failed(&error))
            }
            Some(KernelName::Path(path) | KernelName::Described(_, path)) => {
                let kernel = with_version_of_types(files::open(&path).map_err(failure)?);
                let place = format_args!("--kernel {}", path.display());
                let is_stated = *kernel.source(KernelField::Version) != Source::Assumed;
                let version = kernel.version().filter(|_| is_stated);
                let missing = || unknown(&"nothing there states the kernel's version", &place);
                version.map(Some).ok_or_else(missing)
            }
        }
    }
}

/// The kernel that answers are given for.
#[derive(clap::Args)]
#[command(next_help_heading = KERNEL_HEADING)]
pub struct KernelArgs {
    #[command(flatten)]
    kernel: KernelNameArg,

    /// The kernel's BTF: as /sys/kernel/btf/vmlinux, or a kernel image
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,

    /// The BTF given is a part of the kernel's: what it leaves out is unsupported, not absent.
    /// BTF without any function is such a part, also without this option
    #[arg(long)]
    reduced_btf: bool,

    /// The kernel's configuration, lines of CONFIG_NAME=value, as /boot/config-6.18 or
    /// /proc/config.gz
    #[arg(long, value_name = "FILE")]
    kconfig: Option<PathBuf>,

    /// The kernel's version, as 5.15 or 6.18.44
    #[arg(long, value_name = "VERSION")]
    kernel_version: Option<KernelVersion>,

    /// BTF of a module of the kernel; the file is called like the module
    #[arg(long, value_name = "FILE")]
    module_btf: Vec<PathBuf>,

    /// BTF that CO-RE relocations go by, in place of the kernel's and its modules'
    /// (libbpf's btf_custom_path)
    #[arg(long, value_name = "FILE")]
    core_btf: Option<PathBuf>,

    /// Memory of the machine, which limits what a map takes when it is created: bytes, or with K,
    /// M, G or T behind them; 16G if it is not stated
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    machine_memory: Option<u64>,

    /// Declare a named feature of the kernel, as syscall-wrapper=off
    #[arg(long, value_name = "NAME=on|off", value_parser = feature)]
    feature: Vec<(String, bool)>,

    /// Add functions that no Linux has as kfuncs
    #[arg(long, value_name = "NAME")]
    host_functions: Vec<HostFunctions>,
}

/// Functions that programs call as kfuncs and no Linux has.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum HostFunctions {
    /// Bit operations, as `bpf_ffs64` (`beebox kfuncs --header`)
    Bits,
}

impl KernelArgs {
    /// True if a kernel was named.
    pub fn is_given(&self) -> bool {
        self.kernel.is_given()
            || self.btf.is_some()
            || self.reduced_btf
            || self.kconfig.is_some()
            || self.kernel_version.is_some()
            || !self.module_btf.is_empty()
            || self.core_btf.is_some()
            || self.machine_memory.is_some()
            || !self.feature.is_empty()
            || !self.host_functions.is_empty()
    }

    /// Names of the options of a kernel, without dashes.
    pub fn options() -> Vec<String> {
        let command = <KernelArgs as clap::Args>::augment_args(clap::Command::new("kernel"));
        let names = command.get_arguments().filter_map(clap::Arg::get_long);
        names.map(str::to_owned).collect()
    }

    /// The files that the options name.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let named = self.btf.iter().chain(&self.kconfig).chain(&self.core_btf);
        named.chain(&self.module_btf).map(PathBuf::as_path)
    }

    /// The kernel that the options name.
    pub fn read(&self) -> Result<Kernel, Failure> {
        self.read_one(self.kernel.one()?.as_ref())
    }

    /// True if the option names a list of kernels, which may have one.
    pub fn is_list(&self) -> bool {
        self.kernel.kernel.len() > 1 || self.kernel.kernel.iter().any(KernelWord::is_list)
    }

    /// The kernels that the option lists, oldest first, each by the word that names it.
    pub fn read_several(&self) -> Result<Vec<(String, Kernel)>, Failure> {
        let mut kernels = self.read_all(&self.kernel.kernel)?;
        kernels.sort_by_key(|(_, kernel)| kernel.version().map(KernelVersion::code));
        Ok(kernels)
    }

    /// Kernels that words list, each once, with what the other options state of them.
    pub fn read_listed(&self, words: &[String]) -> Result<Vec<(String, Kernel)>, Failure> {
        let words: Vec<KernelWord> = words.iter().map(|word| KernelWord::parse(word)).collect();
        self.read_all(&words)
    }

    fn read_all(&self, words: &[KernelWord]) -> Result<Vec<(String, Kernel)>, Failure> {
        let mut names: Vec<KernelName> = Vec::new();
        for word in words {
            for name in word.kernels()? {
                if !names.iter().any(|known| known.is_same(&name)) {
                    names.push(name);
                }
            }
        }
        let read = names.iter();
        read.map(|name| Ok((name.to_string(), self.read_one(Some(name))?)))
            .collect()
    }

    /// The kernel that the options name with the image that boots it: the file itself, the one in the
    /// directory, or the one that `tools/kernels/vm` keeps. The kernel is of the image's version.
    pub fn read_bootable(&self, image: Option<&Path>) -> Result<(Kernel, PathBuf), Failure> {
        let cached = |series: &str| Some(home(series)?.join("vmlinuz")).filter(|at| at.is_file());
        let (name, own_image) = match self.kernel.one()? {
            None | Some(KernelName::BuiltIn(..)) => match described("6.18") {
                Some(directory) => {
                    let image = image_in(&directory);
                    (KernelName::Described("6.18".to_owned(), directory), image)
                }
                None => (
                    KernelName::BuiltIn("6.18", Configuration::Debian),
                    cached("6.18"),
                ),
            },
            Some(KernelName::Running) => {
                return Err(Failure::new(
                    "--kernel running: the running kernel is not booted, and answers veristat",
                )
                .hint("--kernel 6.12, or --kernel FILE with an image that boots"));
            }
            Some(KernelName::Path(path)) if path.is_dir() => {
                let image = image_in(&path);
                (KernelName::Path(path), image)
            }
            Some(KernelName::Preset(word, name)) => {
                let image = cached(&word).or_else(|| cached(name));
                (KernelName::Preset(word, name), image)
            }
            Some(KernelName::Described(word, directory)) => {
                let image = image_in(&directory);
                (KernelName::Described(word, directory), image)
            }
            Some(KernelName::Path(path)) if path.is_file() => {
                (KernelName::Path(path.clone()), Some(path))
            }
            Some(KernelName::Path(path)) => match cached(&path.to_string_lossy()) {
                // An image has the types of its kernel.
                Some(image) => (KernelName::Path(image.clone()), Some(image)),
                None => (KernelName::Path(path), None),
            },
        };
        let mut kernel = self.read_one(Some(&name))?;
        let get =
            "tools/kernels/vm fetch NAME downloads a kernel of Debian; --image FILE names another";
        let missing = || {
            let what = "there is no image of the kernel to boot";
            Failure::new(what)
                .within(format_args!("--kernel {name}"))
                .hint(get)
        };
        let image = image
            .map(Path::to_owned)
            .or(own_image)
            .ok_or_else(missing)?;
        let version = image_version(&image).map_err(|error| Failure::of_file(&image, &error))?;
        let Some(version) = version else {
            let what = "the file is no kernel that boots (a bzImage, as /boot/vmlinuz)";
            return Err(Failure::new(what).within(image.display()).hint(get));
        };
        if kernel.version() != Some(version) && self.kernel_version.is_none() {
            if let Some(own) = kernel
                .version()
                .filter(|_| kernel.name() != name.to_string())
            {
                note(format_args!(
                    "{}: the image is Linux {version}, the types are those of Linux {own}",
                    image.display()
                ));
            }
            kernel = kernel.with_version(version, Source::File(image.display().to_string()));
        }
        Ok((kernel, image))
    }

    /// The kernel of a name, with what the other options state of it.
    fn read_one(&self, named: Option<&KernelName>) -> Result<Kernel, Failure> {
        let assumed = self.assumed_name();
        let mut kernel = match (named.map(KernelName::read).transpose()?, &assumed) {
            (Some(kernel), _) => kernel,
            (None, Some(assumed)) => kernel_data::linux_6_18().assumed_for(assumed),
            (None, None) => kernel_data::linux_6_18(),
        };
        if let Some(path) = &self.btf {
            kernel = with_btf_file(kernel, path).map_err(failure)?;
        }
        if let Some(path) = &self.kconfig {
            kernel = with_config_file(kernel, path).map_err(failure)?;
        }
        let version = self.kernel_version;
        if let Some(version) = version.filter(|version| !self.names_built_in(*version)) {
            kernel = kernel.with_version(version, Source::Given);
        }
        if !self.module_btf.is_empty() {
            let names: Vec<String> = self.module_btf.iter().map(|path| name(path)).collect();
            let source = Source::File(names.join(", "));
            kernel = with_module_files(kernel, &self.module_btf, source).map_err(failure)?;
        }
        if let Some(path) = &self.core_btf {
            kernel = kernel.with_core_btf(Arc::new(read_types(path)?.btf));
        }
        if let Some(bytes) = self.machine_memory {
            kernel = kernel.with_memory(bytes, Source::Given);
        }
        if !self.feature.is_empty() {
            let mut features = kernel.features();
            for (name, is_there) in &self.feature {
                features = features.with(name, *is_there).unwrap_or(features);
            }
            // Those that are not declared remain assumed.
            let given = |field| match kernel.source(field) {
                Source::Assumed => Source::Assumed,
                _ => Source::Given,
            };
            let is_wrapper = |(name, _): &(String, bool)| name == Features::SYSCALL_WRAPPER;
            let wrapper = match self.feature.iter().any(is_wrapper) {
                true => Source::Given,
                false => kernel.source(KernelField::SyscallWrapper).clone(),
            };
            let others = given(KernelField::Features);
            kernel = kernel
                .with_features(features, others)
                .with_syscall_wrapper(features.syscall_wrapper, wrapper);
        }
        kernel = with_version_of_types(kernel);
        if self.reduced_btf {
            kernel = kernel.with_reduced_btf(true);
        }
        for functions in &self.host_functions {
            kernel = match functions {
                HostFunctions::Bits => kernel.with_bit_operations(),
            };
        }
        let replaced = self.replaced();
        if !replaced.is_empty() {
            let name = format!("{} with {}", kernel.name(), replaced.join(", "));
            kernel = kernel.with_name(name);
        }
        Ok(kernel)
    }

    /// True if a version is that of the built-in kernel, which no option replaces.
    fn names_built_in(&self, version: KernelVersion) -> bool {
        let is_replaced = self.btf.is_some() || self.kconfig.is_some();
        let is_kernel = matches!(
            self.kernel.kernel[..],
            [] | [KernelWord::One(KernelName::BuiltIn(..))]
        );
        is_built_in(version) && is_kernel && !is_replaced
    }

    /// Name of the kernel of which only some of BTF, configuration and version are given; all
    /// others of its facts are assumed. `None` if --kernel names a kernel, or none of these
    /// is given.
    fn assumed_name(&self) -> Option<String> {
        if self.kernel.is_given() {
            return None;
        }
        match (&self.btf, &self.kconfig, self.kernel_version) {
            (Some(path), ..) | (None, Some(path), _) => Some(name(path)),
            (None, None, Some(version)) if is_built_in(version) => None,
            (None, None, Some(version)) => Some(format!("Linux {}", release(version))),
            (None, None, None) => None,
        }
    }

    /// The facts that options give beside the kernel's name.
    fn replaced(&self) -> Vec<String> {
        let mut facts = Vec::new();
        facts.extend(self.btf.iter().map(|path| format!("BTF of {}", name(path))));
        let config = self.kconfig.iter();
        facts.extend(config.map(|path| format!("configuration of {}", name(path))));
        let version = self
            .kernel_version
            .filter(|version| !self.names_built_in(*version));
        facts.extend(version.map(|version| format!("version {}", release(version))));
        if self.assumed_name().is_some() {
            // The first is the kernel's name.
            facts.remove(0);
        }
        let modules = self.module_btf.iter();
        facts.extend(modules.map(|path| format!("module {}", module_name(path))));
        let core = self.core_btf.iter();
        facts.extend(core.map(|path| format!("CO-RE relocations by {}", name(path))));
        let features = self.feature.iter();
        facts.extend(features.map(|(name, is_there)| match is_there {
            true => format!("{name}=on"),
            false => format!("{name}=off"),
        }));
        let host = self.host_functions.iter();
        facts.extend(host.map(|functions| match functions {
            HostFunctions::Bits => "bit operations".to_owned(),
        }));
        facts
    }
}

/// True for the release that is built in.
fn is_built_in(version: KernelVersion) -> bool {
    release(version) == "6.18" || release(version) == kernel_data::RELEASE
}

/// A version as people write it: without the patch level 0.
fn release(version: KernelVersion) -> String {
    let KernelVersion {
        major,
        minor,
        patch,
    } = version;
    match patch {
        0 => format!("{major}.{minor}"),
        _ => format!("{major}.{minor}.{patch}"),
    }
}

/// Reads `NAME=on` or `NAME=off` with the name of a feature.
fn feature(text: &str) -> Result<(String, bool), String> {
    let (name, value) = text.split_once('=').unwrap_or((text, ""));
    if Features::LINUX_6_18.with(name, true).is_none() {
        let names = Features::NAMES.join(", ");
        return Err(format!("no feature is called {name:?}; there are {names}"));
    }
    match value {
        "on" => Ok((name.to_owned(), true)),
        "off" => Ok((name.to_owned(), false)),
        _ => Err(format!("write {name}=on or {name}=off")),
    }
}

/// Reads bytes, with K, M, G or T behind them.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let units = [('K', 10), ('M', 20), ('G', 30), ('T', 40)];
    let unit = units
        .iter()
        .find(|(unit, _)| text.ends_with([*unit, unit.to_ascii_lowercase()]));
    let (digits, shift) = unit.map_or((text, 0), |(_, shift)| (&text[..text.len() - 1], *shift));
    let bytes = digits
        .parse()
        .ok()
        .and_then(|number: u64| number.checked_mul(1 << shift));
    bytes.ok_or_else(|| format!("{text:?} is no size: write bytes, as 1073741824 or 64G"))
}

/// The facts of a kernel among these fields that no source states, in one line; `None` if
/// there are none.
pub fn assumed(kernel: &Kernel, fields: &[KernelField]) -> Option<String> {
    let is_relevant = |field: &KernelField| match field {
        // The verifier follows them for callers without CAP_PERFMON only.
        KernelField::Mitigations => fields.contains(field) && !kernel.privileges().has_perfmon(),
        _ => fields.contains(field),
    };
    let assumed = kernel.assumptions().filter(is_relevant);
    let names: Vec<&str> = assumed.map(KernelField::name).collect();
    match names.is_empty() {
        true => None,
        false => Some(format!("assumed as in Linux 6.18: {}", names.join(", "))),
    }
}

/// Prints on standard error what an answer for this kernel assumes, for answers on standard
/// output that do not name it.
pub fn note_assumed(kernel: &Kernel, fields: &[KernelField], answered: &str) {
    if let Some(assumed) = assumed(kernel, fields) {
        note(format_args!("{answered} for {}, {assumed}", kernel.name()));
    }
}

/// Configuration of the built-in kernel, for answers that depend on its types.
pub fn built_in_hint(kernel: &Kernel) -> Option<String> {
    let source = kernel.source(KernelField::Btf);
    let is_its = |configuration: &Configuration| configuration.source() == *source;
    let configuration = match source {
        Source::BuiltIn(_) => Configuration::ALL.into_iter().find(is_its)?,
        Source::Assumed => Configuration::Debian,
        Source::Running | Source::File(_) | Source::Given => return None,
    };
    let config = configuration.config();
    let compiler = config
        .compiler()
        .unwrap_or("an unknown compiler")
        .to_owned();
    let built_in = Kernel::new(configuration.title()).with_config(config, source.clone());
    let left_out: Vec<&str> = built_in.left_out().collect();
    let (title, release) = (built_in.name(), kernel_data::RELEASE);
    let (left_out, others) = (left_out.join(", "), "--kernel running or --kernel FILE");
    Some(match configuration {
        Configuration::Debian => format!(
            "the built-in {title} is {release} as Debian configures it, by {compiler}, without \
             {left_out}; --module-btf FILE adds what a module has, {others} names another"
        ),
        Configuration::Minimal => format!(
            "the built-in {title} is {release} by {compiler}, configured without {left_out}; \
             --kernel 6.18 has them, {others} names another"
        ),
    })
}

/// Prints on standard error how the built-in kernel is configured, for an answer that depends
/// on a part that the kernel lacks. Nothing if the kernel's types are not the built-in ones.
pub fn note_built_in(kernel: &Kernel) {
    if let Some(hint) = built_in_hint(kernel) {
        note(hint);
    }
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// The running kernel, with the helpers and contexts of the built-in one.
fn running() -> Result<Kernel, Failure> {
    files::running_with_registry().map_err(|error| {
        Failure::new(error).within("the running kernel").hint(
            "it needs BTF in /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF); \
             --kernel 6.18 is built in",
        )
    })
}

/// The running kernel for what is loaded into it; one without BTF is assumed to be as Linux
/// 6.18.
pub fn running_or_assumed() -> Kernel {
    running().unwrap_or_else(|_| {
        let release = sys::kernel::release().unwrap_or_default();
        let kernel = kernel_data::linux_6_18().assumed_for(format!("running kernel {release}"));
        match release.parse() {
            Ok(version) => kernel.with_version(version, Source::Running),
            Err(_) => kernel,
        }
    })
}

/// The built-in kernel of a version's series, for a hint; empty if there is none.
fn of_its_series(version: KernelVersion) -> String {
    let mut presets = Preset::all().iter();
    let near = presets.find(|preset| preset.series() == Release::from(version));
    near.map_or_else(String::new, |near| {
        format!("--kernel {}, which is {}; ", near.series(), near.name())
    })
}

/// The failure for files that describe no kernel, with a remedy.
fn failure(error: KernelFileError) -> Failure {
    match &error {
        KernelFileError::Path(path, error) => {
            let word = path.to_string_lossy();
            let has_letters = word.contains(|letter: char| letter.is_ascii_alphabetic());
            let near = nearest(&word, KernelName::WORDS.into_iter());
            if let Some(near) = near.filter(|_| has_letters && !path.exists()) {
                let what = format_args!("--kernel {word:?}: no kernel and no file of this name");
                return Failure::new(what).hint(format_args!("--kernel {near}"));
            }
            match word.parse::<KernelVersion>() {
                Ok(version) if !path.exists() => Failure::new(format_args!(
                    "--kernel {word}: no kernel {word} is known, only {}",
                    listed(&known())
                ))
                .hint(format_args!(
                    "{}--kernel FILE with the BTF of Linux {word} (its /sys/kernel/btf/vmlinux) links \
                     for it; {DESCRIBE}; --kernel-version {word} names what {word} lacks of Linux 6.18",
                    of_its_series(version)
                )),
                Err(_) if !word.contains('/') && error.kind() == io::ErrorKind::NotFound => {
                    let place =
                        format_args!("--kernel {word:?}: no kernel and no file of this name");
                    Failure::new(place).hint(format_args!(
                        "6.18 or 6.18-minimal, the built-in Linux {}; running; a file with BTF, or a \
                         directory with vmlinux; {}",
                        kernel_data::RELEASE,
                        listed(&known())
                    ))
                }
                _ => Failure::of_file(path, error),
            }
        }
        KernelFileError::File(path, error) => Failure::of_file(path, error),
        KernelFileError::Types(path, error) => unreadable(path, error),
        KernelFileError::NoBtf(_) => Failure::new(&error).hint(format_args!(
            "a file in it called {}",
            files::BTF_FILES.join(" or ")
        )),
        KernelFileError::Config(path, error) => {
            let failure = Failure::of_file(path, error);
            match error.kind() {
                io::ErrorKind::InvalidInput => {
                    failure.hint("a file as /boot/config-6.18, /proc/config.gz or .config")
                }
                _ => failure,
            }
        }
        KernelFileError::NoBase => Failure::new(error)
            .within("--module-btf")
            .hint("--btf FILE or --kernel running"),
        KernelFileError::WholeModule(_) => Failure::new(error).hint(
            "--btf FILE for the types of a kernel; --module-btf /sys/kernel/btf/MODULE for those of \
             a module",
        ),
        KernelFileError::OtherBuild { path, .. } | KernelFileError::Module(path, _) => {
            let module = module_name(path);
            Failure::new(&error).hint(format_args!(
                "/sys/kernel/btf/{module} and, with --kernel, /sys/kernel/btf/vmlinux of one machine \
                 that has the module loaded"
            ))
        }
        _ => Failure::new(error),
    }
}

/// The series of a built-in kernel that has the rules of a kernel's release, which this one lacks.
pub fn with_rules(kernel: &Kernel) -> Option<Release> {
    let release = Release::from(kernel.version().filter(|_| !kernel.has_rules())?);
    let mut presets = Preset::all().iter().map(Preset::series);
    presets.find(|series| *series == release)
}

/// Prints on standard error that programs are verified and run by the rules of another release
/// than the kernel's; nothing if they are its own.
pub fn note_rules(kernel: &Kernel) {
    if let Some(version) = kernel.version().filter(|_| !kernel.has_rules()) {
        let of_series = match with_rules(kernel) {
            Some(series) => format!("--kernel {series} has those of Linux {series}"),
            None => format!("there are none of Linux {}", Release::from(version)),
        };
        note(format_args!(
            "{}: verified and run by the rules of Linux {RULES}; {of_series}",
            kernel.name(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_options_of_a_kernel_are_all() {
        let listed: Vec<String> = KERNEL.iter().map(|id| id.replace('_', "-")).collect();
        assert_eq!(listed, KernelArgs::options());
    }

    #[test]
    fn mitigations_are_assumed_of_callers_whom_they_concern() {
        let kernel = Kernel::new("a kernel");
        let named = |kernel: &Kernel| assumed(kernel, FOR_VERIFYING).unwrap_or_default();
        let wrappers = "whether system calls have wrappers";
        assert!(named(&kernel).ends_with(&format!(": modules, features, {wrappers}, CPUs")));
        let kernel =
            kernel.with_privileges(beebox::internal::kernel::Privileges::NONE, Source::Given);
        let all = format!(": modules, features, {wrappers}, mitigations, CPUs");
        assert!(named(&kernel).ends_with(&all));
    }

    #[test]
    fn a_hint_names_the_parts_that_built_in_types_leave_out() {
        let minimal = built_in_hint(&kernel_data::linux_6_18_minimal()).unwrap();
        assert!(
            minimal.contains("configured without modules, kprobes, "),
            "{minimal}"
        );
        let hint = built_in_hint(&kernel_data::linux_6_18()).unwrap();
        assert!(
            hint.contains("without HID-BPF, lirc; --module-btf FILE"),
            "{hint}"
        );
        let assumed = kernel_data::linux_6_18().assumed_for("another");
        assert_eq!(built_in_hint(&assumed), Some(hint));
        let btf = assumed.btf().unwrap().clone();
        let other = assumed.with_btf(btf, Source::Given);
        assert_eq!(built_in_hint(&other), None);
    }
}
