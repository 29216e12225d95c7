//! The running kernel as a target, read as libbpf reads it.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::process::Command;

use btf::Btf;
use object::{Features, SymbolAddress, Target};

/// What linking asks of a kernel.
pub struct RunningKernel {
    types: Btf<'static>,
    config: String,
    symbols: HashMap<String, SymbolAddress>,
    version: u32,
    cpus: u32,
}

impl RunningKernel {
    /// Reads types, configuration, symbols and version.
    pub fn read() -> io::Result<RunningKernel> {
        let damaged = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let types = Btf::parse(fs::read("/sys/kernel/btf/vmlinux")?)
            .map_err(|_| damaged("the kernel's types"))?;
        let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
        let release = release.trim();
        let config = match fs::read_to_string(format!("/boot/config-{release}")) {
            Ok(config) => config,
            Err(_) => {
                let output = Command::new("gzip")
                    .args(["-dc", "/proc/config.gz"])
                    .output()?;
                String::from_utf8_lossy(&output.stdout).into_owned()
            }
        };
        let mut numbers = release
            .split(['.', '-'])
            .map(|number| number.parse().unwrap_or(0));
        let mut number = || -> u32 { numbers.next().unwrap_or(0) };
        let version = number() << 16 | number() << 8 | number().min(255);
        Ok(RunningKernel {
            types,
            config,
            symbols: symbols(&fs::read_to_string("/proc/kallsyms")?),
            version,
            cpus: cpus(&fs::read_to_string("/sys/devices/system/cpu/possible")?),
        })
    }

    /// Calls with the kernel as a target. As the harness answers, there is no
    /// wrapper of system calls to be seen, because this libbpf looks for one with a
    /// kprobe.
    pub fn with<R>(&self, work: impl FnOnce(&Target<'_>) -> R) -> R {
        let symbols = |name: &str| {
            let found = self.symbols.get(name);
            found.copied().unwrap_or(SymbolAddress::Missing)
        };
        work(&Target {
            types: Some(&self.types),
            modules: &[],
            core_types: None,
            config: Some(&self.config),
            symbols: Some(&symbols),
            version: self.version,
            features: Features {
                syscall_wrapper: false,
                ..Features::LINUX_6_18
            },
            cpus: self.cpus,
            page_size: 4096,
        })
    }
}

/// Lines `address kind name`, perhaps with a module behind.
fn symbols(text: &str) -> HashMap<String, SymbolAddress> {
    let mut symbols = HashMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(name)) = (words.next(), words.nth(1)) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else {
            continue;
        };
        let known = symbols.entry(name.to_owned());
        known
            .and_modify(|known| {
                if let SymbolAddress::At(first) = *known
                    && first != address
                {
                    *known = SymbolAddress::Several(first, address);
                }
            })
            .or_insert(SymbolAddress::At(address));
    }
    symbols
}

/// How many CPUs a list such as `0-3,8` names.
fn cpus(list: &str) -> u32 {
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| text.parse::<u32>().unwrap_or(0);
        number(last).saturating_sub(number(first)) + 1
    });
    ranges.sum()
}
