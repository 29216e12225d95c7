//! The running kernel as a [`Kernel`]: BTF, modules, configuration, version, CPUs and
//! the privileges of this process.
//!
//! No privilege is needed. The kernel shows symbol addresses as zero without it;
//! `/proc/kallsyms` is read at the first symbol lookup.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use btf::Btf;
use flate2::read::GzDecoder;
use spec::Kernel;
use spec::kernel::{
    Features, KernelConfig, KernelVersion, Mitigations, Module, Privileges, Release, Source,
    SymbolTable, Symbols,
};

use crate::mapping::KernelFile;

/// Directory of the BTF of the kernel and its modules.
const BTF: &str = "/sys/kernel/btf";

/// Maximum size of the configuration text in bytes.
const MAX_CONFIG_SIZE: u64 = 16 << 20;

/// Release of the running kernel (`uname -r`).
pub fn release() -> io::Result<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    Ok(release.trim().to_owned())
}

/// Description of the running kernel. A kernel without BTF is an error; its
/// configuration is left unknown where it cannot be read.
pub fn running() -> io::Result<Kernel> {
    let btf = Arc::new(btf()?);
    let release = release()?;
    let mut kernel = Kernel::new(format!("running kernel {release}"))
        .with_btf(btf.clone(), Source::Running)
        .with_modules(modules(&btf)?, Source::Running)
        .with_symbols(symbols(), Source::Running)
        .with_page_size(page_size(), Source::Running);
    if let Some(version) = version(&release) {
        kernel = kernel.with_version(version, Source::Running);
    }
    if let Ok(possible) = fs::read_to_string("/sys/devices/system/cpu/possible") {
        kernel = kernel.with_cpus(last_cpu(&possible) + 1, Source::Running);
    }
    if let Some(privileges) = privileges() {
        kernel = kernel.with_privileges(privileges, Source::Running);
    }
    if let Some(config) = config(&release) {
        let (features, source) = features(kernel.version(), &config);
        kernel = kernel
            .with_features(features, source)
            .with_syscall_wrapper(features.syscall_wrapper, Source::Running)
            .with_config(config, Source::Running);
    }
    if let Ok(command_line) = fs::read_to_string("/proc/cmdline") {
        let is_off = command_line
            .split_whitespace()
            .any(|word| word == "mitigations=off");
        let mitigations = if is_off {
            Mitigations::OFF
        } else {
            Mitigations::ON
        };
        kernel = kernel.with_mitigations(mitigations, Source::Running);
    }
    Ok(kernel)
}

/// BTF of the running kernel. The bytes are read or mapped once in a process, since
/// they do not change while the kernel runs; a mapping takes no memory of the process.
pub fn btf() -> io::Result<Btf<'static>> {
    static BYTES: OnceLock<KernelFile> = OnceLock::new();
    let bytes = match BYTES.get() {
        Some(bytes) => bytes,
        None => {
            let file = KernelFile::open(Path::new(BTF).join("vmlinux"))?;
            BYTES.get_or_init(|| file)
        }
    };
    Btf::parse(&**bytes).map_err(invalid)
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Loaded modules with BTF, sorted by name; without those unloaded during the call.
fn modules(kernel: &Arc<Btf<'static>>) -> io::Result<Vec<Module>> {
    let mut modules = Vec::new();
    for entry in fs::read_dir(BTF)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "vmlinux" {
            continue;
        }
        if let Ok(bytes) = fs::read(entry.path()) {
            let btf = Btf::parse_module(bytes, kernel.clone()).map_err(invalid)?;
            let btf = Arc::new(btf);
            let kfuncs = None;
            modules.push(Module { name, btf, kfuncs });
        }
    }
    modules.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(modules)
}

fn symbols() -> Symbols {
    let table = OnceLock::new();
    Symbols::new(move |name| {
        let table = table.get_or_init(|| {
            let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
            SymbolTable::read(&text)
        });
        table.address(name)
    })
}

#[cfg(not(unix))]
fn page_size() -> u32 {
    4096
}

#[cfg(unix)]
fn page_size() -> u32 {
    // SAFETY: the call returns a number and accesses no memory of the process.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u32::try_from(size).unwrap_or(4096)
}

/// Effective capabilities of this process (`CapEff` of `/proc/self/status`).
fn privileges() -> Option<Privileges> {
    const NET_ADMIN: u32 = 12;
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    const BPF: u32 = 39;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let effective = lines.find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    let has = |capability: u32| effective >> capability & 1 != 0;
    Some(Privileges {
        bpf: has(BPF),
        perfmon: has(PERFMON),
        net_admin: has(NET_ADMIN),
        sys_admin: has(SYS_ADMIN),
    })
}

/// Features of a kernel with this configuration. All but the wrapper of system calls are
/// those of Linux 6.18, which is an assumption for kernels of other series.
fn features(version: Option<KernelVersion>, config: &KernelConfig) -> (Features, Source) {
    let features = Features {
        syscall_wrapper: config.has_syscall_wrapper(),
        ..Features::LINUX_6_18
    };
    let is_6_18 = version.is_some_and(|version| Release::from(version) == Release::LINUX_6_18);
    let source = match is_6_18 {
        true => Source::Running,
        false => Source::Assumed,
    };
    (features, source)
}

/// Kernel configuration from `/boot/config-RELEASE` or `/proc/config.gz`.
fn config(release: &str) -> Option<KernelConfig> {
    let boot = format!("/boot/config-{release}");
    let found = read_config(Path::new(&boot));
    found
        .or_else(|_| read_config(Path::new("/proc/config.gz")))
        .ok()
}

/// Kernel configuration in a file, as text or compressed by gzip. A file without a line of
/// an option is an error of the kind `InvalidInput`.
pub fn read_config(path: &Path) -> io::Result<KernelConfig> {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let file = crate::input::read(path, MAX_CONFIG_SIZE)?;
    let mut text = String::new();
    match file.starts_with(&GZIP) {
        true => GzDecoder::new(&file[..])
            .take(MAX_CONFIG_SIZE)
            .read_to_string(&mut text)?,
        false => (&file[..]).read_to_string(&mut text)?,
    };
    KernelConfig::parse(text).ok_or_else(|| {
        let what = "no configuration of a kernel: no line CONFIG_NAME=value";
        io::Error::new(io::ErrorKind::InvalidInput, what)
    })
}

/// Kernel version as programs see it (`LINUX_VERSION_CODE`). Ubuntu and Debian state the
/// upstream version elsewhere, because their release name keeps an older patch level.
fn version(release: &str) -> Option<KernelVersion> {
    let read = |path| fs::read_to_string(path).ok();
    let ubuntu = read("/proc/version_signature");
    let ubuntu = ubuntu
        .as_deref()
        .and_then(|text| text.split_whitespace().nth(2));
    let built = read("/proc/sys/kernel/version");
    let debian = built
        .as_deref()
        .and_then(|text| Some(text.split_once("Debian ")?.1));
    let parse = |text: &str| text.parse().ok();
    ubuntu
        .and_then(parse)
        .or_else(|| debian.and_then(parse))
        .or_else(|| parse(release))
}

/// The largest number in a list of CPUs such as `0-3,8`.
fn last_cpu(list: &str) -> u32 {
    let numbers = list.trim().split([',', '-']);
    numbers
        .filter_map(|number| number.parse().ok())
        .max()
        .unwrap_or(0)
}

/// The last line of a verifier's log that is no statistics and no source line: the reason of a refusal.
pub fn last_words(log: &str) -> Option<&str> {
    // Some messages have no newline, and the statistics follow on their line.
    let lines = log.lines().rev();
    let lines = lines.map(|line| line.split("verification time ").next().unwrap_or(line));
    lines
        .map(|line| line.trim_matches('\0').trim_end())
        .find(|line| !line.is_empty() && !line.starts_with("; ") && !is_statistics(line))
}

/// True for a line of the statistics at the end of a verifier's log. Those of Linux 7.2 and later have
/// lines for each function too.
fn is_statistics(line: &str) -> bool {
    let first = [
        "processed ",
        "verification time ",
        "stack depth ",
        "subprog ",
        "insns processed ",
    ];
    first.iter().any(|words| line.starts_with(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_the_reason() {
        let log = "0: exit\nR0 !read_ok\n; return 0; @ a.c:7\nverification time 3 usec\nstack depth 0\nprocessed 1 insns\n";
        assert_eq!(last_words(log), Some("R0 !read_ok"));
        assert_eq!(
            last_words("bad callverification time 3 usec\n"),
            Some("bad call")
        );
        assert_eq!(last_words("processed 1 insns\n"), None);
    }

    #[test]
    fn cpus_are_counted_to_the_last() {
        let counts = ["0\n", "0-3\n", "0,4-7\n", ""].map(|list| last_cpu(list) + 1);
        assert_eq!(counts, [1, 4, 8, 1]);
    }

    #[test]
    fn features_of_other_series_are_assumed() {
        let config = KernelConfig::new("CONFIG_KPROBE_EVENTS=y\n");
        let of = |minor| features(Some(KernelVersion::new(6, minor, 3)), &config);
        assert_eq!(of(18).1, Source::Running);
        assert_eq!(of(1).1, Source::Assumed);
        assert!(!of(1).0.syscall_wrapper);
        assert_eq!(features(None, &config).1, Source::Assumed);
    }

    #[test]
    fn configurations_are_read_as_text_and_compressed() {
        use std::io::Write;

        let directory = std::env::temp_dir().join(format!("beebox-config-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("config");
        let text = b"CONFIG_HZ=250\n";
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        let gzip = gzip.finish().unwrap();
        for bytes in [&text[..], &gzip] {
            fs::write(&path, bytes).unwrap();
            let config = read_config(&path).unwrap();
            assert_eq!(config.value("CONFIG_HZ"), Some("250"));
        }
        fs::write(&path, "# Kernels\n").unwrap();
        let refused = read_config(&path).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput);
        fs::remove_dir_all(&directory).unwrap();
    }
}
