//! Compares what other loaders parse of objects with what Beebox makes of them.

use std::path::PathBuf;

use clap::Args;
use spec::loader::LoaderKind;

use beebox_differential::loaders::compare::{Count, Explained};
use beebox_differential::loaders::{ASKED, Tool, compare_all, objects, own_objects};
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
    let is_whole = selection.paths.is_empty() && selection.loader.is_empty();
    let objects = match selection.paths.is_empty() {
        true => own_objects()?,
        false => objects(selection.paths)?,
    };
    let loaders = match selection.loader.is_empty() {
        true => ASKED.to_vec(),
        false => selection.loader,
    };
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
        let found = compare_all(&tool, &objects)?;
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
        let sum = |of: fn(&Count) -> usize| -> usize { found.counts.values().map(of).sum() };
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
