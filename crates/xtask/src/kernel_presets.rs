//! `cargo xtask kernel-presets`: writes the data of presets (crate `kernel-presets`) from the directories
//! that `tools/kernels/vm describe` makes, and compares them with these entry by entry.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Instant;

use btf::Btf;
use differential::page::write_part;
use kernel_presets::Preset;
use kernel_presets::data::{Facts, Packed};
use lzma_rust2::{Lzma2Options, Lzma2Writer};
use spec::kernel::Release;
use spec::registry::text;

use crate::Outcome;
use crate::kernel_data::{set_options, symbols};

/// Writes the data of the kernels that directories describe, or compares what is there with them.
pub(crate) fn run(directories: &[String], is_check: bool) -> Outcome {
    for directory in directories {
        let directory = Path::new(directory);
        let (version, facts) = described(directory)?;
        let path = data().join(format!("linux-{version}"));
        if !is_check {
            let packed = facts.pack(compress)?;
            let packed = packed.ok_or_else(|| format!("{version}: types of an unusual form"))?;
            fs::write(&path, packed)?;
        }
        let packed = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        compare(&version, &facts, Vec::leak(packed))?;
    }
    write_part(PAGE, "presets", &table())
}

/// The presets, as a page has them.
fn table() -> String {
    let mut table = String::from(
        "| `--kernel` | also | cargo feature | data | answers |\n|---|---|---|---:|---|\n",
    );
    for preset in Preset::all() {
        let name = preset.name();
        let mut names = Vec::new();
        if preset.is_of_series() && preset.series().to_string() != name {
            names.push(format!("`{}`", preset.series()));
        }
        names.extend(preset.distribution().map(|name| format!("`{name}`")));
        let of = preset.derived_from().unwrap_or(name);
        let series = Preset::named(of).map_or(preset.series(), Preset::series);
        let size = fs::metadata(data().join(format!("linux-{name}")));
        let size = size.map_or_else(
            |_| "-".to_owned(),
            |file| format!("{} KB", file.len() / 1000),
        );
        let feature = match series == Release::LINUX_6_18 {
            true => "-".to_owned(),
            false => format!("`kernel-{series}`"),
        };
        let answers = match preset.derived_from() {
            Some(of) => format!("derived from {of}; not compared with a kernel"),
            None if preset.is_compared() => "compared with the kernel".to_owned(),
            None => "not compared with the kernel".to_owned(),
        };
        let names = names.join(", ");
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| `{name}` | {names} | {feature} | {size} | {answers} |"
        );
    }
    table
}

/// Page with the table of presets.
const PAGE: &str = "docs/kernels.md";

/// The version and the facts of the kernel that a directory describes.
fn described(directory: &Path) -> Result<(String, Facts), Box<dyn std::error::Error>> {
    let file = |name: &str| {
        let path = directory.join(name);
        fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let text_of = |name: &str| Ok::<_, Box<dyn std::error::Error>>(String::from_utf8(file(name)?)?);
    let types = file("vmlinux.btf")?;
    let registry = text::parse(&text_of("registry")?)?;
    let facts = Facts {
        symbols: symbols(&text_of("System.map")?, &Btf::parse(&*types)?),
        config: set_options(&text_of("config")?),
        registry: text::write(&registry),
        types,
    };
    Ok((text_of("kernel.release")?.trim().to_owned(), facts))
}

/// Compares what a file has with the facts, and prints what it takes.
fn compare(version: &str, facts: &Facts, packed: &'static [u8]) -> Outcome {
    let kernel = Packed(packed);
    let began = Instant::now();
    let types = kernel.types();
    let unpacked = began.elapsed();
    let mut differences = Vec::new();
    if types.as_bytes() != facts.types {
        differences.push("types".to_owned());
    }
    let mut entries = 0;
    for (what, ours, theirs) in [
        (
            "configuration",
            kernel.config().text().to_owned(),
            &facts.config,
        ),
        ("registry", kernel.registry_text(), &facts.registry),
        ("symbols", kernel.symbol_text(), &facts.symbols),
    ] {
        let [ours, theirs] = [&ours, theirs].map(|text| text.lines().collect::<Vec<&str>>());
        entries += theirs.len();
        let [ours, theirs] = [ours, theirs].map(|lines| lines.into_iter().collect::<BTreeSet<_>>());
        let others = ours.symmetric_difference(&theirs);
        differences.extend(others.map(|line| format!("{what}: {line}")));
    }
    let parts = kernel.lengths();
    println!(
        "linux-{version}: {} bytes (types {}, configuration {}, registry {}, symbols {}); types of {} \
         bytes in {} ms; {entries} lines and all types are those of the kernel",
        packed.len(),
        parts[0],
        parts[1],
        parts[2],
        parts[3],
        facts.types.len(),
        unpacked.as_millis(),
    );
    match differences.is_empty() {
        true => Ok(()),
        false => Err(format!("linux-{version} differs: {}", differences.join("; ")).into()),
    }
}

fn compress(bytes: &[u8], dictionary: Option<Vec<u8>>, size: u32) -> io::Result<Vec<u8>> {
    let mut options = Lzma2Options::with_preset(9);
    options.lzma_options.dict_size = size;
    options.lzma_options.preset_dict = dictionary;
    let mut writer = Lzma2Writer::new(Vec::new(), options);
    writer.write_all(bytes)?;
    writer.finish()
}

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-presets/data")
}
