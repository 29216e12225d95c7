//! The kernel that runs here, as what objects are linked for.
//!
//! Nothing needs root: types, configuration, version and CPUs are there for
//! everybody. Addresses of symbols are zero to those who may not see them, and are
//! only read when an object asks for one.

use std::fs;
use std::io::{self, Read};
use std::sync::OnceLock;

use btf::Btf;
use flate2::read::GzDecoder;
use object::{Features, KernelSymbols, SymbolAddress, Target};
use sys::mapping::KernelFile;

/// The longest configuration that is read, in bytes.
const LONGEST_CONFIG: u64 = 16 << 20;

/// What linking asks of the kernel that runs here.
pub struct RunningKernel {
    types: Btf<'static>,
    config: Option<String>,
    version: u32,
    cpus: u32,
    symbols: OnceLock<KernelSymbols>,
}

impl RunningKernel {
    /// Reads its types, configuration and version. A kernel without types is an
    /// error, one that hides its configuration is not.
    pub fn read() -> io::Result<RunningKernel> {
        let types = Btf::parse(type_bytes()?)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let possible = fs::read_to_string("/sys/devices/system/cpu/possible")?;
        Ok(RunningKernel {
            types,
            config: read_config(release.trim()),
            version: version(release.trim()),
            cpus: last_cpu(&possible) + 1,
            symbols: OnceLock::new(),
        })
    }

    /// Its types.
    pub fn types(&self) -> &Btf<'static> {
        &self.types
    }

    /// Calls with the kernel as a target.
    pub fn with<R>(&self, work: impl FnOnce(&Target<'_>) -> R) -> R {
        let symbols = |name: &str| self.symbol(name);
        let has_wrapper = "CONFIG_ARCH_HAS_SYSCALL_WRAPPER=y";
        let mut lines = self.config.iter().flat_map(|config| config.lines());
        work(&Target {
            types: Some(&self.types),
            config: self.config.as_deref(),
            symbols: Some(&symbols),
            version: self.version,
            cpus: self.cpus,
            features: Features {
                syscall_wrapper: lines.any(|line| line == has_wrapper),
                ..Features::LINUX_6_18
            },
            page_size: 4096,
            ..Target::default()
        })
    }

    fn symbol(&self, name: &str) -> SymbolAddress {
        let symbols = self.symbols.get_or_init(|| {
            let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
            KernelSymbols::read(&text)
        });
        symbols.address(name)
    }
}

/// The kernel's types, which are the same as long as it runs: this process has them
/// once, and where they can be mapped they take none of its memory.
fn type_bytes() -> io::Result<&'static [u8]> {
    static TYPES: OnceLock<KernelFile> = OnceLock::new();
    match TYPES.get() {
        Some(types) => Ok(types),
        None => {
            let types = KernelFile::open("/sys/kernel/btf/vmlinux")?;
            Ok(TYPES.get_or_init(|| types))
        }
    }
}

/// The configuration, from where distributions put it or from the kernel itself.
fn read_config(release: &str) -> Option<String> {
    fs::read_to_string(format!("/boot/config-{release}"))
        .or_else(|_| {
            let file = fs::File::open("/proc/config.gz")?;
            let mut text = String::new();
            let mut plain = GzDecoder::new(file).take(LONGEST_CONFIG);
            plain.read_to_string(&mut text).map(|_| text)
        })
        .ok()
}

/// The version as programs see it. Distributions keep a release's name while its last
/// number moves on, so what they note elsewhere goes first.
fn version(release: &str) -> u32 {
    let noted = |path| fs::read_to_string(path).ok();
    let ubuntu = noted("/proc/version_signature");
    let ubuntu = ubuntu
        .as_deref()
        .and_then(|text| text.split_whitespace().nth(2));
    let built = noted("/proc/sys/kernel/version");
    let debian = built
        .as_deref()
        .and_then(|text| Some(text.split_once("Debian ")?.1));
    let found = ubuntu.and_then(encode).or_else(|| debian.and_then(encode));
    found.or_else(|| encode(release)).unwrap_or(0)
}

/// Major, minor and patch in a byte each, of a text that starts with the three.
fn encode(text: &str) -> Option<u32> {
    let mut numbers = text.split('.').map(|part| {
        let end = part.find(|letter: char| !letter.is_ascii_digit());
        part[..end.unwrap_or(part.len())].parse::<u32>().ok()
    });
    let mut next = || numbers.next().flatten();
    let (major, minor, patch) = (next()?, next()?, next()?);
    Some(major << 16 | minor << 8 | patch.min(255))
}

/// The largest number in a list of CPUs such as `0-3,8`.
fn last_cpu(list: &str) -> u32 {
    let numbers = list.trim().split([',', '-']);
    numbers
        .filter_map(|number| number.parse().ok())
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_bytes() {
        assert_eq!(encode("6.18.44-foo"), Some(6 << 16 | 18 << 8 | 44));
        assert_eq!(encode("5.4.300"), Some(5 << 16 | 4 << 8 | 255));
        assert_eq!(
            (encode("6.18"), encode("6.x.1"), encode("")),
            (None, None, None)
        );
    }

    #[test]
    fn cpus_are_counted_to_the_last() {
        let counts = ["0\n", "0-3\n", "0,4-7\n", ""].map(|list| last_cpu(list) + 1);
        assert_eq!(counts, [1, 4, 8, 1]);
    }

    #[test]
    fn the_kernel_that_runs_here_is_a_target() {
        // A machine without types of its kernel has none to link for.
        let Ok(kernel) = RunningKernel::read() else {
            return;
        };
        kernel.with(|target| {
            assert!(target.version >= 5 << 16 && target.cpus > 0);
            let symbols = target.symbols.expect("a way to look them up");
            assert_eq!(symbols("no such symbol"), SymbolAddress::Missing);
        });
    }
}
