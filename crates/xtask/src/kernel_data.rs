//! `cargo xtask kernel-data`: extracts the built-in kernel data (crate `kernel-data`): BTF, symbols,
//! configuration and registry (helper prototypes and availability, contexts, return values, kfuncs, map
//! kinds, from [`differential::registry`]).
//!
//! The minimal configuration is that of the running kernel, which states the release. The other one
//! is that of a kernel that a directory describes.

use std::collections::{BTreeSet, HashSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use btf::{Btf, Kind};
use differential::registry::{build, configurations};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use kernel_data::{Configuration, DICTIONARY, OF_BOTH, mark};
use lzma_rust2::{Lzma2Options, Lzma2Writer, XzOptions, XzWriter};
use spec::kernel::{SymbolAddress, SymbolTable};
use spec::registry::{RegistryData, text};

use crate::Outcome;

/// What is known of a kernel in one configuration.
struct Kernel {
    configuration: Configuration,
    blob: Vec<u8>,
    kallsyms: String,
    config: String,
    registry: RegistryData,
}

/// Writes the data of the running kernel, or of the kernel that a directory describes.
pub(crate) fn extract(directory: Option<&Path>) -> Outcome {
    let kernel = match directory {
        None => running()?,
        Some(directory) => described(directory)?,
    };
    let data = data();
    let name = match kernel.configuration {
        Configuration::Debian => "linux-6.18",
        Configuration::Minimal => "linux-6.18-minimal",
    };
    let symbols = symbols(&kernel.kallsyms, &Btf::parse(&*kernel.blob)?);
    write(&data.join(format!("{name}.symbols.gz")), &symbols)?;
    let set = set_options(&kernel.config);
    write(&data.join(format!("{name}.config.gz")), &set)?;

    let stored = |configuration: Configuration| {
        let kernel = configuration.kernel();
        let types = kernel.btf().ok_or("built-in BTF")?;
        // Their text has names alone, and no ids.
        let lines = text::write(&configuration.registry(types));
        let registry = (*text::parse(&lines)?).clone();
        Ok::<_, Box<dyn std::error::Error>>((types.as_bytes().to_vec(), registry))
    };
    let ((debian, theirs), (minimal, ours)) = match kernel.configuration {
        Configuration::Debian => (
            (kernel.blob, kernel.registry),
            stored(Configuration::Minimal)?,
        ),
        Configuration::Minimal => (
            stored(Configuration::Debian)?,
            (kernel.blob, kernel.registry),
        ),
    };
    write_types(&data, &debian, &minimal)?;
    let (theirs, ours) = configurations::merge(theirs, ours, &Btf::parse(&*minimal)?);
    let lines = marked(&text::write(&theirs), &text::write(&ours));
    write(&data.join("linux-6.18.registry.gz"), &lines)
}

/// Asks the running kernel, of whose release the data are.
fn running() -> Result<Kernel, Box<dyn std::error::Error>> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release = release.split('-').next().unwrap_or_default().trim();
    if !release.starts_with("6.18.") {
        return Err(format!(
            "running kernel {release}: kernel data are of Linux 6.18; boot that release"
        )
        .into());
    }
    let mut config = String::new();
    GzDecoder::new(fs::File::open("/proc/config.gz")?).read_to_string(&mut config)?;
    let built = build::build()?;
    for line in &built.not_asked {
        println!("not asked: {line}");
    }
    println!("registry: {} questions", built.questions);
    fs::write(data().join("linux-6.18.release"), format!("{release}\n"))?;
    Ok(Kernel {
        configuration: Configuration::Minimal,
        blob: fs::read("/sys/kernel/btf/vmlinux")?,
        kallsyms: fs::read_to_string("/proc/kallsyms")?,
        config,
        registry: built.registry,
    })
}

/// Reads what another kernel of the release was asked: its files, and its registry as
/// `cargo differential registry` writes it.
fn described(directory: &Path) -> Result<Kernel, Box<dyn std::error::Error>> {
    let file = |name: &str| {
        let path = directory.join(name);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text = |name: &str| Ok::<_, Box<dyn std::error::Error>>(String::from_utf8(file(name)?)?);
    Ok(Kernel {
        configuration: Configuration::Debian,
        blob: file("vmlinux.btf")?,
        kallsyms: text("System.map")?,
        config: text("config")?,
        registry: (*text::parse(&text("registry.txt")?)?).clone(),
    })
}

/// Writes the BTF of Debian's configuration, and that of the minimal one as the difference to it.
fn write_types(data: &Path, debian: &[u8], minimal: &[u8]) -> Outcome {
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(9))?;
    writer.write_all(debian)?;
    let packed = writer.finish()?;
    let mut options = Lzma2Options::with_preset(9);
    options.lzma_options.dict_size = DICTIONARY;
    options.lzma_options.preset_dict = Some(debian.to_vec());
    let mut writer = Lzma2Writer::new(Vec::new(), options);
    writer.write_all(minimal)?;
    let difference = writer.finish()?;
    println!(
        "BTF: {} bytes, {} packed; minimal: {} bytes, {} as the difference",
        debian.len(),
        packed.len(),
        minimal.len(),
        difference.len()
    );
    fs::write(data.join("linux-6.18.btf.xz"), packed)?;
    Ok(fs::write(
        data.join("linux-6.18-minimal.btf.lzma2"),
        difference,
    )?)
}

/// The lines of both registries, each behind the mark of the configuration that has it.
fn marked(debian: &str, minimal: &str) -> String {
    let sets = [debian, minimal].map(|text| text.lines().collect::<HashSet<&str>>());
    let (mut theirs, mut ours) = (debian.lines().peekable(), minimal.lines().peekable());
    let mut lines = String::new();
    let mut push = |mark: &str, line: &str| lines.extend([mark, line, "\n"]);
    loop {
        match (theirs.peek(), ours.peek()) {
            (None, None) => return lines,
            (Some(one), Some(other)) if one == other => {
                push(OF_BOTH, one);
                theirs.next();
                ours.next();
            }
            (one, Some(other)) if one.is_none() || !sets[0].contains(other) => {
                push(mark(Configuration::Minimal), other);
                ours.next();
            }
            (Some(one), _) => {
                push(mark(Configuration::Debian), one);
                theirs.next();
            }
            (None, Some(_)) => unreachable!("the arm before this one takes it"),
        }
    }
}

/// The lines of a configuration that set an option.
pub(crate) fn set_options(config: &str) -> String {
    let set = config.lines().filter(|line| line.starts_with("CONFIG_"));
    set.flat_map(|line| [line, "\n"]).collect()
}

/// Which symbols `/proc/kallsyms` lists beside the functions of BTF, in the form that
/// `kernel-data` reads (`symbols.rs`), without those of padding.
pub(crate) fn symbols(text: &str, types: &Btf<'_>) -> String {
    let table = SymbolTable::read(text);
    let names = text.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(2);
        // Symbols of modules have the module behind their name.
        words.next().filter(|_| words.next().is_none())
    });
    let names: BTreeSet<&str> = names.collect();
    let functions: Vec<String> = types
        .of_kind(Kind::Func)
        .map(|function| function.name().to_string())
        .collect();
    let functions: BTreeSet<&str> = functions.iter().map(String::as_str).collect();
    let mut lines = Vec::new();
    for &name in &names {
        let is_padding = (name.strip_prefix("__pfx_")).is_some_and(|of| names.contains(of));
        match table.address(name) {
            _ if is_padding => {}
            SymbolAddress::Several(..) => lines.push(format!("*{name}")),
            SymbolAddress::At(_) | SymbolAddress::Missing if functions.contains(name) => {}
            SymbolAddress::At(_) | SymbolAddress::Missing => lines.push(name.to_owned()),
        }
    }
    let missing = functions.iter().filter(|name| !names.contains(**name));
    lines.extend(missing.map(|name| format!("-{name}")));
    lines.join("\n") + "\n"
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-data/data")
}

/// Writes a text, compressed.
fn write(path: &Path, text: &str) -> Outcome {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text.as_bytes())?;
    let packed = encoder.finish()?;
    let name = path.file_name().unwrap_or_default().display();
    println!("{name}: {} bytes, {} packed", text.len(), packed.len());
    Ok(fs::write(path, packed)?)
}
