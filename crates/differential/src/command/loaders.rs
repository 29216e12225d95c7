//! Compares what other loaders parse of objects with what Beebox makes of them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use spec::loader::LoaderKind;

use beebox_differential::loaders::compare::{Comparison, Explained, compare};
use beebox_differential::loaders::{ASKED, Tool, ours};
use beebox_differential::page::write_part;

use crate::command::Outcome;

/// Objects and loaders.
#[derive(Args)]
pub(crate) struct LoaderSelection {
    /// Objects, and directories of objects [default: those of this repository, for the table of
    /// the page]
    paths: Vec<PathBuf>,
    /// A loader: cilium-ebpf, aya or libbpf-0.8
    #[arg(long, value_parser = find_loader)]
    loader: Vec<LoaderKind>,
    /// Print one line for each difference
    #[arg(long)]
    list: bool,
}

fn find_loader(name: &str) -> Result<LoaderKind, String> {
    let found = ASKED.into_iter().find(|loader| loader.name() == name);
    found.ok_or_else(|| "expected cilium-ebpf, aya or libbpf-0.8".to_owned())
}

/// Compares, and prints the differences.
pub(crate) fn compare_loaders(selection: LoaderSelection) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let own = [
        "crates/beebox/tests",
        "crates/bench/objects",
        "crates/bench/workloads",
        "crates/cli/tests",
        "crates/gateway/bpf",
        "crates/object/tests",
        "crates/testkit/cases",
        "examples",
    ];
    let own = own.map(|path| root.join(path));
    let is_whole = selection.paths.is_empty() && selection.loader.is_empty();
    let paths = match selection.paths.is_empty() {
        true => &own[..],
        false => &selection.paths,
    };
    let mut objects = Vec::new();
    for path in paths {
        collect(path, &mut objects)?;
    }
    objects.sort();
    let loaders = match selection.loader.is_empty() {
        true => ASKED.to_vec(),
        false => selection.loader,
    };
    let kernel = kernel_data::linux_6_18();
    let mut table = "| loader | objects | both accept | answers equal | explained | compared |\n\
                     |---|---|---|---|---|---|\n"
        .to_owned();
    let mut differences = 0;
    let mut is_skipped = false;
    for loader in loaders {
        let tool = match Tool::find(loader) {
            Ok(tool) => tool,
            Err(why) => {
                println!("skipped: {}: {why}", loader.name());
                is_skipped = true;
                continue;
            }
        };
        let mut found = Comparison::default();
        for (path, theirs) in objects.iter().zip(tool.parse(&objects)?) {
            let file = fs::read(path)?;
            let path = path.to_string_lossy();
            let ours = ours::parse(&file, &path, loader, &kernel);
            let short = path.strip_prefix(&*root.to_string_lossy()).unwrap_or(&path);
            compare(loader, short, &theirs, &ours, &mut found);
        }
        for difference in &found.differences {
            match selection.list {
                true => println!(
                    "{} {} {:?} {}",
                    loader.name(),
                    difference.place,
                    difference.aspect,
                    difference.cause.map_or("", Explained::title)
                ),
                false => println!("{difference}\n"),
            }
        }
        for (aspect, count) in &found.counts {
            let (equal, compared) = (count.equal, count.compared);
            println!(
                "{:12} {equal:6} of {compared:6}  {}",
                loader.name(),
                aspect.title()
            );
        }
        let sum = |of: fn(&beebox_differential::loaders::compare::Count) -> usize| -> usize {
            found.counts.values().map(of).sum()
        };
        let (equal, compared) = (sum(|count| count.equal), sum(|count| count.compared));
        let explained = sum(|count| count.explained);
        let (all, accepted) = (objects.len(), found.accepted);
        table +=
            &format!("| {loader} | {all} | {accepted} | {equal} | {explained} | {compared} |\n");
        differences += compared - equal - explained;
    }
    if is_whole && !is_skipped {
        write_part("docs/loaders.md", "loaders", &table)?;
        println!("the table of docs/loaders.md is written");
    }
    match differences {
        0 => Ok(()),
        differences => Err(format!("{differences} unexplained differences").into()),
    }
}

/// Objects of this byte order at a path and below.
fn collect(path: &Path, objects: &mut Vec<PathBuf>) -> Outcome {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            collect(&entry?.path(), objects)?;
        }
        return Ok(());
    }
    let is_named = [OsStr::new("o"), OsStr::new("elf")]
        .iter()
        .any(|name| path.extension() == Some(name));
    if is_named && fs::read(path)?.starts_with(b"\x7fELF\x02\x01") {
        objects.push(path.to_owned());
    }
    Ok(())
}
