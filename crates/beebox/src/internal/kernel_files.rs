//! Kernels from files and directories, and the running kernel with the built-in registry.
//!
//! What no file states is assumed to be as in Linux 6.18 (`Kernel::assumptions` names it).

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use btf::{Btf, Kind, ParseError};
use kernel_data::Configuration;
use spec::kernel::{
    InvalidVersion, Kernel, KernelField, KernelVersion, Module, Source, SymbolTable,
};
use spec::registry::text::{self, Malformed};
use spec::since::{Release, newest_in};
use verifier::RULES;

use crate::internal::type_file::{TypeFile, TypeFileError};
use crate::internal::{MOST_BYTES, name_of};

/// Names of files with BTF in a directory that describes a kernel: a build directory, or what was
/// copied from a machine.
pub const BTF_FILES: &[&str] = &["vmlinux.btf", "btf/vmlinux", "vmlinux"];
const CONFIG_FILES: &[&str] = &["config", ".config", "kconfig", "config.gz"];
const RELEASE_FILES: &[&str] = &["include/config/kernel.release", "kernel.release", "release"];
const SYMBOL_FILES: &[&str] = &["System.map", "kallsyms"];
const REGISTRY_FILES: &[&str] = &["registry"];
const MODULE_DIRECTORIES: &[&str] = &["btf", "modules"];

/// Bytes of the largest text.
const LONGEST_TEXT: u64 = 64 << 20;

/// The kernel that a path describes: a file with BTF (as `/sys/kernel/btf/vmlinux`, or a kernel
/// image), or a directory with `vmlinux`, `config`, `System.map`, `btf/`.
///
/// # Errors
/// If a file cannot be read or is not valid, or a directory has no BTF.
pub fn open(path: impl AsRef<Path>) -> Result<Kernel, KernelFileError> {
    let path = path.as_ref();
    let kernel = kernel_data::linux_6_18().assumed_for(path.display().to_string());
    let about = fs::metadata(path).map_err(|error| KernelFileError::Path(path.into(), error))?;
    if !about.is_dir() {
        return with_btf_file(kernel, path);
    }
    let first = |names: &[&str]| {
        let mut paths = names.iter().map(|name| path.join(name));
        paths.find(|path| path.is_file())
    };
    let Some(btf) = first(BTF_FILES) else {
        return Err(KernelFileError::NoBtf(path.into()));
    };
    let mut kernel = with_btf_file(kernel, &btf)?;
    if let Some(path) = first(RELEASE_FILES) {
        let release = read_text(&path)?;
        let version: KernelVersion = release
            .trim()
            .parse()
            .map_err(|error| KernelFileError::Release(path.clone(), error))?;
        kernel = kernel.with_version(version, file(&path));
    }
    if let Some(path) = first(CONFIG_FILES) {
        kernel = with_config_file(kernel, &path)?;
    }
    if let Some(path) = first(SYMBOL_FILES) {
        let text = read_text(&path)?;
        kernel = kernel.with_symbols(SymbolTable::read(&text).into(), file(&path));
    }
    if let Some(path) = first(REGISTRY_FILES) {
        kernel = with_registry_file(kernel, &path)?;
    } else if let Some(configuration) = built_in_registry(&kernel) {
        kernel = with_registry(kernel, configuration, configuration.source());
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
        false => with_module_files(kernel, &modules, file(path)),
    }
}

/// The running kernel, with the helpers and contexts of the built-in one.
///
/// # Errors
/// Those of the system; it has no BTF in `/sys/kernel/btf`.
pub fn running_with_registry() -> io::Result<Kernel> {
    let kernel = sys::kernel::running()?;
    let (configuration, source) = match built_in_registry(&kernel) {
        Some(configuration) => (configuration, configuration.source()),
        None => (Configuration::Debian, Source::Assumed),
    };
    Ok(with_registry(kernel, configuration, source))
}

/// The configuration of which a kernel is known to have the helpers and contexts: it is of that
/// series, and its own configuration leaves out the same parts.
fn built_in_registry(kernel: &Kernel) -> Option<Configuration> {
    let is_6_18 = (kernel.version()).is_some_and(|version| Release::from(version) == RULES);
    if !is_6_18 || kernel.config().is_none() {
        return None;
    }
    let leaves_out_the_same = |configuration: &Configuration| {
        let built_in =
            Kernel::default().with_config(configuration.config(), configuration.source());
        kernel.left_out().eq(built_in.left_out())
    };
    Configuration::ALL.into_iter().find(leaves_out_the_same)
}

/// States the helpers and contexts of a configuration of the built-in kernel, with the BTF ids of
/// this one.
fn with_registry(kernel: Kernel, configuration: Configuration, source: Source) -> Kernel {
    let Some(btf) = kernel.btf().cloned() else {
        return kernel;
    };
    let make = move || configuration.registry(&btf);
    kernel.with_registry(Box::new(make), source)
}

/// States the helpers and contexts that a file has, as `cargo differential registry` writes it inside
/// a kernel; names in it resolve to the BTF of this one.
fn with_registry_file(kernel: Kernel, path: &Path) -> Result<Kernel, KernelFileError> {
    let Some(btf) = kernel.btf().cloned() else {
        return Ok(kernel);
    };
    let mut registry = text::parse(&read_text(path)?)
        .map_err(|error| KernelFileError::Registry(path.into(), error))?;
    let id = |kind, name: &str| btf.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    Ok(kernel.with_registry(Box::new(move || registry), file(path)))
}

/// States the BTF of a file, and what it tells of the kernel. Modules are assumed from then
/// on, because their BTF continues another. An image also states its version.
///
/// # Errors
/// If the file cannot be read, or has no valid BTF.
pub fn with_btf_file(kernel: Kernel, path: &Path) -> Result<Kernel, KernelFileError> {
    let types = TypeFile::open(path).map_err(|error| KernelFileError::Types(path.into(), error))?;
    let btf = Arc::new(types.btf);
    let mut kernel = kernel
        .with_btf(btf.clone(), file(path))
        .with_reduced_btf(btf.of_kind(Kind::Func).next().is_none())
        .with_modules(Vec::new(), Source::Assumed);
    if let Some(version) = types.version {
        kernel = kernel.with_version(version, file(path));
    }
    kernel = with_wrapper_of(kernel, &btf, file(path));
    let source = kernel.source(KernelField::Registry).clone();
    let is_minimal = source == Configuration::Minimal.source();
    let configuration = match is_minimal {
        true => Configuration::Minimal,
        false => Configuration::Debian,
    };
    Ok(with_registry(kernel, configuration, source))
}

/// Declares whether system calls take their arguments in a structure, if BTF tells it: their
/// functions are then called as `__x64_sys_bpf`.
fn with_wrapper_of(kernel: Kernel, btf: &Btf<'_>, source: Source) -> Kernel {
    let has = |name: &str| btf.find(Kind::Func, name).is_some();
    let wrappers = ["x64", "arm64", "s390x", "riscv"];
    let is_wrapped = wrappers
        .iter()
        .any(|machine| has(&format!("__{machine}_sys_bpf")));
    match is_wrapped || has("__sys_bpf") || has("sys_bpf") {
        true => kernel.with_syscall_wrapper(is_wrapped, source),
        false => kernel,
    }
}

/// States the version that BTF tells where nothing else states one: the release that has the
/// newest thing of those in the BTF, if that is another than the one that is assumed.
pub fn with_version_of_types(kernel: Kernel) -> Kernel {
    let source = kernel.source(KernelField::Btf).clone();
    let is_assumed = *kernel.source(KernelField::Version) == Source::Assumed;
    let types = kernel
        .btf()
        .filter(|_| is_assumed && matches!(source, Source::File(_)));
    let newest = types.and_then(|btf| newest_in(btf));
    match newest.map(|(Release { major, minor }, _)| KernelVersion::new(major, minor, 0)) {
        Some(version) if Release::from(version) != RULES => kernel.with_version(version, source),
        _ => kernel,
    }
}

/// States the configuration of a file, and the version in its heading if nothing else states
/// that.
///
/// # Errors
/// [`KernelFileError::Config`]: the file cannot be read, or is no configuration (an error of the
/// kind `InvalidInput`).
pub fn with_config_file(mut kernel: Kernel, path: &Path) -> Result<Kernel, KernelFileError> {
    let config = sys::kernel::read_config(path)
        .map_err(|error| KernelFileError::Config(path.into(), error))?;
    let is_assumed = *kernel.source(KernelField::Version) == Source::Assumed;
    if let Some(version) = config.version().filter(|_| is_assumed) {
        kernel = kernel.with_version(version, file(path));
    }
    Ok(kernel.with_config(config, file(path)))
}

/// Adds modules whose BTF files have, which are called like the modules.
///
/// # Errors
/// If the kernel has no BTF, or that of a module cannot be read or is not valid.
pub fn with_module_files(
    kernel: Kernel,
    paths: &[PathBuf],
    source: Source,
) -> Result<Kernel, KernelFileError> {
    let base = kernel.btf().cloned().ok_or(KernelFileError::NoBase)?;
    let mut modules = kernel.modules().to_vec();
    for path in paths {
        let bytes = sys::input::read(path, MOST_BYTES)
            .map_err(|error| KernelFileError::File(path.clone(), error))?;
        let btf = read_module(path, bytes, &base, kernel.name())?;
        modules.push(Module {
            name: module_name(path).to_owned(),
            btf: Arc::new(btf),
            kfuncs: None,
        });
    }
    Ok(kernel.with_modules(modules, source))
}

/// The BTF of a module, which continues that of its kernel.
fn read_module(
    path: &Path,
    bytes: Vec<u8>,
    base: &Arc<Btf<'static>>,
    kernel: &str,
) -> Result<Btf<'static>, KernelFileError> {
    let is_whole = Btf::parse(&bytes[..]).is_ok_and(|whole| whole.own_types().next().is_some());
    if is_whole {
        return Err(KernelFileError::WholeModule(path.into()));
    }
    let of_other = || KernelFileError::OtherBuild {
        path: path.into(),
        kernel: kernel.to_owned(),
    };
    match Btf::parse_module(bytes, base.clone()) {
        Ok(btf) if btf.has_whole_names() => Ok(btf),
        Ok(_)
        | Err(
            ParseError::NoString { .. }
            | ParseError::NoType { .. }
            | ParseError::NoPrototype { .. },
        ) => Err(of_other()),
        Err(error) => Err(KernelFileError::Module(path.into(), error)),
    }
}

/// The name of the module that a file is called like.
pub fn module_name(path: &Path) -> &str {
    let name = path.file_stem().and_then(|name| name.to_str());
    name.unwrap_or_default()
}

fn read_text(path: &Path) -> Result<String, KernelFileError> {
    let failed = |error| KernelFileError::File(path.into(), error);
    let bytes = sys::input::read(path, LONGEST_TEXT).map_err(failed)?;
    String::from_utf8(bytes).map_err(|_| failed(io::ErrorKind::InvalidData.into()))
}

fn file(path: &Path) -> Source {
    Source::File(path.display().to_string())
}

/// Reason why files do not describe a kernel.
#[derive(Debug)]
#[non_exhaustive]
pub enum KernelFileError {
    /// The path that describes the kernel cannot be read.
    Path(PathBuf, io::Error),
    /// A file cannot be read.
    File(PathBuf, io::Error),
    /// The directory has no BTF of a kernel: no file of the names in [`BTF_FILES`].
    NoBtf(PathBuf),
    /// The BTF of a file is not read.
    Types(PathBuf, TypeFileError),
    /// A file states no release.
    Release(PathBuf, InvalidVersion),
    /// The file of helpers and contexts is not valid.
    Registry(PathBuf, Malformed),
    /// The configuration is not read.
    Config(PathBuf, io::Error),
    /// Modules are given, and no BTF of the kernel, which theirs continues.
    NoBase,
    /// The BTF of a module is not valid.
    Module(PathBuf, ParseError),
    /// BTF given as that of a module continues no other: it is that of a kernel or a program.
    WholeModule(PathBuf),
    /// The BTF of a module refers to names or types that the kernel's BTF has not at their places:
    /// it continues that of another build.
    OtherBuild {
        /// File of the module's BTF.
        path: PathBuf,
        /// Name of the kernel.
        kernel: String,
    },
}

impl fmt::Display for KernelFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelFileError::Path(path, error)
            | KernelFileError::File(path, error)
            | KernelFileError::Config(path, error) => write!(f, "{}: {error}", name_of(path)),
            KernelFileError::NoBtf(path) => {
                write!(
                    f,
                    "{}: the directory has no BTF of a kernel",
                    path.display()
                )
            }
            KernelFileError::Types(path, error) => write!(f, "{}: {error}", name_of(path)),
            KernelFileError::Release(path, error) => write!(f, "{}: {error}", path.display()),
            KernelFileError::Registry(path, error) => write!(f, "{}: {error}", path.display()),
            KernelFileError::NoBase => write!(
                f,
                "BTF of a module needs that of its kernel, and none is given"
            ),
            KernelFileError::Module(path, error) => write!(f, "{}: {error}", path.display()),
            KernelFileError::WholeModule(path) => write!(
                f,
                "{}: BTF of a whole kernel or program, and none of a module",
                path.display()
            ),
            KernelFileError::OtherBuild { path, kernel } => write!(
                f,
                "{}: BTF of a module of another build than {kernel}: it refers to types and names \
                 that the kernel's BTF lacks",
                path.display()
            ),
        }
    }
}

impl Error for KernelFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            KernelFileError::Path(_, error)
            | KernelFileError::File(_, error)
            | KernelFileError::Config(_, error) => Some(error),
            KernelFileError::Types(_, error) => Some(error),
            KernelFileError::Release(_, error) => Some(error),
            KernelFileError::Registry(_, error) => Some(error),
            KernelFileError::Module(_, error) => Some(error),
            KernelFileError::NoBtf(_)
            | KernelFileError::NoBase
            | KernelFileError::WholeModule(_)
            | KernelFileError::OtherBuild { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use spec::kernel::KernelConfig;

    use super::*;

    #[test]
    fn a_registry_is_built_in_for_kernels_with_the_same_parts() {
        let of = |version, config: KernelConfig| {
            let kernel = Kernel::new("a kernel").with_version(version, Source::Running);
            built_in_registry(&kernel.with_config(config, Source::Running))
        };
        for configuration in Configuration::ALL {
            let config = || configuration.config();
            let version = KernelVersion::new(6, 18, 3);
            assert_eq!(of(version, config()), Some(configuration));
            assert_eq!(of(KernelVersion::new(6, 17, 3), config()), None);
            let more = format!("{}\nCONFIG_BPF_LIRC_MODE2=y\n", config().text());
            assert_eq!(of(version, KernelConfig::new(more)), None);
        }
        let unknown =
            Kernel::new("a kernel").with_version(KernelVersion::new(6, 18, 3), Source::Running);
        assert_eq!(built_in_registry(&unknown), None);
    }
}
