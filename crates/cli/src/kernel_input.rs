//! The kernel that a command answers for: one set of options for every command.
//!
//! A kernel is built in, running, a file (BTF, or a kernel image with BTF) or a
//! directory with what is known of one. Single facts can be given beside it. What
//! no source states is assumed to be as in Linux 6.18, and the output names it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use beebox::Kernel;
use beebox::btf::Btf;
use beebox::kernel::{
    self, Features, KernelConfig, KernelField, KernelVersion, Module, Source, SymbolTable,
};

use crate::answer::Failure;
use crate::btf::Types;

/// Names of files in a directory that describes a kernel: a build directory, or what was
/// copied from a machine.
const BTF_FILES: &[&str] = &["vmlinux.btf", "btf/vmlinux", "vmlinux"];
const CONFIG_FILES: &[&str] = &["config", ".config", "kconfig"];
const RELEASE_FILES: &[&str] = &["include/config/kernel.release", "kernel.release", "release"];
const SYMBOL_FILES: &[&str] = &["System.map", "kallsyms"];
const MODULE_DIRECTORIES: &[&str] = &["btf", "modules"];

/// Fields that decide what linking comes to.
pub(crate) const FOR_LINKING: &[KernelField] = &[
    KernelField::Version,
    KernelField::Btf,
    KernelField::Modules,
    KernelField::Config,
    KernelField::Symbols,
    KernelField::Features,
];

/// Fields that decide what verification comes to.
pub(crate) const FOR_VERIFYING: &[KernelField] = &[
    KernelField::Version,
    KernelField::Btf,
    KernelField::Modules,
    KernelField::Config,
    KernelField::Symbols,
    KernelField::Features,
    KernelField::Registry,
];

/// The kernel that answers are given for.
#[derive(clap::Args)]
#[command(next_help_heading = "Kernel")]
pub(crate) struct KernelArgs {
    /// The kernel: 6.18 (built in, and without this option with bit operations as kfuncs), `running`, a file with BTF (as /sys/kernel/btf/vmlinux,
    /// or a kernel image), or a directory with vmlinux, config, System.map, btf/
    #[arg(long, value_name = "6.18|running|PATH")]
    kernel: Option<String>,

    /// The kernel's BTF: as /sys/kernel/btf/vmlinux, or a kernel image
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,

    /// The kernel's configuration, lines of CONFIG_NAME=value
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

    /// Declare a named feature of the kernel, as syscall-wrapper=off
    #[arg(long, value_name = "NAME=on|off", value_parser = feature)]
    feature: Vec<(String, bool)>,
}

impl KernelArgs {
    /// True if a kernel was named.
    pub(crate) fn is_given(&self) -> bool {
        self.kernel.is_some()
            || self.btf.is_some()
            || self.kconfig.is_some()
            || self.kernel_version.is_some()
            || !self.module_btf.is_empty()
            || self.core_btf.is_some()
            || !self.feature.is_empty()
    }

    /// The kernel that the options name.
    pub(crate) fn read(&self) -> Result<Kernel, Failure> {
        let mut kernel = match (self.kernel.as_deref(), self.btf.as_deref()) {
            (Some("6.18"), _) => kernel_data::linux_6_18(),
            (Some("running"), _) => running()?,
            (Some(path), _) => of_path(Path::new(path))?,
            (None, Some(btf)) => kernel_data::linux_6_18().assumed_for(name(btf)),
            (None, None) => kernel_data::linux_6_18().with_bit_operations(),
        };
        if let Some(path) = &self.btf {
            kernel = with_btf(kernel, path)?;
        }
        if let Some(path) = &self.kconfig {
            kernel = with_config(kernel, path)?;
        }
        if let Some(version) = self.kernel_version {
            kernel = kernel.with_version(version, Source::Given);
        }
        if !self.module_btf.is_empty() {
            kernel = with_modules(kernel, &self.module_btf)?;
        }
        if let Some(path) = &self.core_btf {
            kernel = kernel.with_core_btf(Arc::new(Types::read(path)?.btf));
        }
        if !self.feature.is_empty() {
            let mut features = kernel.features();
            for (name, is_there) in &self.feature {
                features = features.with(name, *is_there).unwrap_or(features);
            }
            kernel = kernel.with_features(features, Source::Given);
        }
        Ok(kernel)
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

/// The facts of a kernel among these fields that no source states, in one line; `None` if
/// there are none.
pub(crate) fn assumed(kernel: &Kernel, fields: &[KernelField]) -> Option<String> {
    let assumed = kernel.assumptions().filter(|field| fields.contains(field));
    let names: Vec<&str> = assumed.map(KernelField::name).collect();
    match names.is_empty() {
        true => None,
        false => Some(format!("assumed as in Linux 6.18: {}", names.join(", "))),
    }
}

/// Build options of the built-in kernel, for answers that depend on them.
pub(crate) fn built_in_hint(kernel: &Kernel) -> Option<String> {
    let Source::BuiltIn(name) = kernel.source(KernelField::Config) else {
        return None;
    };
    let compiler = kernel.config().and_then(KernelConfig::compiler);
    let left_out: Vec<&str> = kernel.left_out().collect();
    Some(format!(
        "the built-in {name} is {} by {}, configured without {}; \
         --kernel running or --kernel FILE names another",
        kernel_data::RELEASE,
        compiler.unwrap_or("an unknown compiler"),
        left_out.join(", ")
    ))
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

fn file(path: &Path) -> Source {
    Source::File(name(path))
}

/// The running kernel, with the helpers and contexts of the built-in one: those of its
/// own series are known to be the same.
fn running() -> Result<Kernel, Failure> {
    let kernel = kernel::running().map_err(|error| {
        Failure::new(error).within("the running kernel").hint(
            "it needs BTF in /sys/kernel/btf/vmlinux (CONFIG_DEBUG_INFO_BTF); \
             --kernel 6.18 is built in",
        )
    })?;
    let version = kernel.version();
    let is_same = version.is_some_and(|version| (version.major, version.minor) == (6, 18));
    let source = match is_same {
        true => kernel_data::SOURCE,
        false => Source::Assumed,
    };
    Ok(with_registry(kernel, source))
}

/// States the helpers and contexts of the built-in kernel, with the BTF ids of this one.
fn with_registry(kernel: Kernel, source: Source) -> Kernel {
    let Some(btf) = kernel.btf().cloned() else {
        return kernel;
    };
    let make = move || kernel_data::linux_6_18_registry(&btf);
    kernel.with_registry(Box::new(make), source)
}

fn of_path(path: &Path) -> Result<Kernel, Failure> {
    let failed = |error| {
        let word = path.to_string_lossy();
        match word.parse::<KernelVersion>() {
            Ok(_) if !path.exists() => Failure::new(format_args!(
                "--kernel {word}: no kernel {word} is built in, only 6.18"
            ))
            .hint(format_args!(
                "--kernel FILE with the BTF of Linux {word} (its /sys/kernel/btf/vmlinux), \
                 --kernel running, or --kernel-version {word} to change the version alone"
            )),
            _ => Failure::of_file(path, &error),
        }
    };
    let kernel = kernel_data::linux_6_18().assumed_for(name(path));
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        return with_btf(kernel, path);
    }
    let first = |names: &[&str]| {
        let mut paths = names.iter().map(|name| path.join(name));
        paths.find(|path| path.is_file())
    };
    let Some(btf) = first(BTF_FILES) else {
        return Err(Failure::new("the directory has no BTF of a kernel")
            .within(name(path))
            .hint(format_args!(
                "a file in it called {}",
                BTF_FILES.join(" or ")
            )));
    };
    let mut kernel = with_btf(kernel, &btf)?;
    if let Some(path) = first(RELEASE_FILES) {
        let release = fs::read_to_string(&path).map_err(|error| Failure::of_file(&path, &error))?;
        let version: KernelVersion = release
            .trim()
            .parse()
            .map_err(|error| Failure::new(error).within(name(&path)))?;
        kernel = kernel.with_version(version, file(&path));
    }
    if let Some(path) = first(CONFIG_FILES) {
        kernel = with_config(kernel, &path)?;
    }
    if let Some(path) = first(SYMBOL_FILES) {
        let text = fs::read_to_string(&path).map_err(|error| Failure::of_file(&path, &error))?;
        kernel = kernel.with_symbols(SymbolTable::read(&text).into(), file(&path));
    }
    let mut modules = Vec::new();
    for directory in MODULE_DIRECTORIES.iter().map(|name| path.join(name)) {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        modules.extend(paths.filter(|path| path.is_file() && module_name(path) != "vmlinux"));
    }
    modules.sort();
    match modules.is_empty() {
        true => Ok(kernel),
        false => with_modules(kernel, &modules),
    }
}

/// States the BTF of a file, and that of modules no more: it continues another. An image
/// also says its version.
fn with_btf(kernel: Kernel, path: &Path) -> Result<Kernel, Failure> {
    let types = Types::read(path)?;
    let modules = match kernel.source(KernelField::Modules) {
        Source::Assumed => Source::Assumed,
        _ => Source::Given,
    };
    let mut kernel = kernel
        .with_btf(Arc::new(types.btf), file(path))
        .with_modules(Vec::new(), modules);
    if let Some(version) = types.version {
        kernel = kernel.with_version(version, file(path));
    }
    let source = kernel.source(KernelField::Registry).clone();
    Ok(with_registry(kernel, source))
}

fn with_config(kernel: Kernel, path: &Path) -> Result<Kernel, Failure> {
    let text = fs::read_to_string(path).map_err(|error| Failure::of_file(path, &error))?;
    let config = KernelConfig::new(text);
    Ok(kernel.with_config(config, file(path)))
}

fn with_modules(kernel: Kernel, paths: &[PathBuf]) -> Result<Kernel, Failure> {
    let Some(base) = kernel.btf().cloned() else {
        return Err(Failure::new(
            "--module-btf: BTF of a module needs that of its kernel, and none is given",
        )
        .hint("--btf FILE or --kernel running"));
    };
    let mut modules = kernel.modules().to_vec();
    for path in paths {
        let bytes = fs::read(path).map_err(|error| Failure::of_file(path, &error))?;
        let btf = Btf::parse_module(bytes, base.clone())
            .map_err(|error| Failure::new(error).within(name(path)))?;
        modules.push(Module {
            name: module_name(path).to_owned(),
            btf: Arc::new(btf),
            kfuncs: None,
        });
    }
    Ok(kernel.with_modules(modules, Source::Given))
}

/// The name of the module that a file is called like.
fn module_name(path: &Path) -> &str {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.unwrap_or_default()
}
