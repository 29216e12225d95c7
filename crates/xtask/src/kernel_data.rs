//! `cargo xtask kernel-data`: extracts the built-in kernel data (crate `kernel-data`)
//! from the running kernel: its BTF, symbols, configuration and release, and the registry (helper
//! prototypes and availability, contexts, return values, kfuncs, map kinds), which comes
//! from [`differential::registry`].

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use btf::{Btf, Kind};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use spec::kernel::{SymbolAddress, SymbolTable};

use crate::Outcome;

const TYPES: &str = "/sys/kernel/btf/vmlinux";
const CONFIG: &str = "/proc/config.gz";

/// Writes BTF, configuration, registry and release of the running kernel.
pub(crate) fn extract() -> Outcome {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease")?;
    let release = release.split('-').next().unwrap_or_default().trim();
    if !release.starts_with("6.18.") {
        return Err(format!(
            "running kernel {release}: kernel data are of Linux 6.18; boot that release"
        )
        .into());
    }
    let directory = directory();
    fs::write(directory.join("linux-6.18.release"), format!("{release}\n"))?;

    let blob = fs::read(TYPES)?;
    let types = Btf::parse(&*blob)?.len() - 1;
    let mut writer = XzWriter::new(Vec::new(), XzOptions::with_preset(9))?;
    writer.write_all(&blob)?;
    let packed = writer.finish()?;
    println!(
        "{types} types: {} bytes, {} packed",
        blob.len(),
        packed.len()
    );
    fs::write(directory.join("linux-6.18.btf.xz"), packed)?;

    extract_symbols(&directory, &Btf::parse(&*blob)?)?;

    let mut config = String::new();
    GzDecoder::new(fs::File::open(CONFIG)?).read_to_string(&mut config)?;
    let set = config.lines().filter(|line| line.starts_with("CONFIG_"));
    let set: String = set.flat_map(|line| [line, "\n"]).collect();
    let packed = compress(set.as_bytes())?;
    println!(
        "configuration: {} bytes, {} packed",
        set.len(),
        packed.len()
    );
    fs::write(directory.join("linux-6.18.config.gz"), packed)?;
    extract_registry(&directory)
}

/// Writes which symbols `/proc/kallsyms` lists beside the functions of BTF, in the form that
/// `kernel-data` reads (`symbols.rs`), without those of padding.
fn extract_symbols(directory: &Path, types: &Btf<'_>) -> Outcome {
    let text = fs::read_to_string("/proc/kallsyms")?;
    let table = SymbolTable::read(&text);
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
    let mut text = lines.join("\n");
    text.push('\n');
    let packed = compress(text.as_bytes())?;
    println!("symbols: {} lines, {} packed", lines.len(), packed.len());
    fs::write(directory.join("linux-6.18.symbols.gz"), packed)?;
    Ok(())
}

/// Writes the registry: helpers, contexts, return values and kfuncs of the running kernel.
fn extract_registry(directory: &Path) -> Outcome {
    let built = differential::registry::build::build()?;
    for line in &built.not_asked {
        println!("not asked: {line}");
    }
    let text = spec::registry::text::write(&built.registry);
    let packed = compress(text.as_bytes())?;
    println!(
        "registry: {} questions, {} bytes, {} packed",
        built.questions,
        text.len(),
        packed.len()
    );
    fs::write(directory.join("linux-6.18.registry.gz"), packed)?;
    Ok(())
}

/// Adds the rules of programs that trampolines run, as another kernel of the release answers
/// (`cargo differential trampolines FILE`), to the registry.
pub(crate) fn add_trampolines(rules: &Path) -> Outcome {
    let file = directory().join("linux-6.18.registry.gz");
    let mut text = String::new();
    GzDecoder::new(fs::File::open(&file)?).read_to_string(&mut text)?;
    let mut registry = (*spec::registry::text::parse(&text)?).clone();
    let other = spec::registry::text::parse(&fs::read_to_string(rules)?)?;
    differential::registry::trampolines::add(&mut registry, &other);
    let text = spec::registry::text::write(&registry);
    fs::write(file, compress(text.as_bytes())?)?;
    println!("registry: {} bytes", text.len());
    Ok(())
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-data/data")
}

fn compress(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}
