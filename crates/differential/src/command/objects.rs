//! Compares the loader with libbpf on the objects of the kernel's selftests.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;

use clap::Args;

use beebox_differential::objects::Oracle;
use beebox_differential::objects::page::Page;
use beebox_differential::objects::selftests::{SETS, Set};

use crate::command::Outcome;

/// Arguments that select objects.
#[derive(Args)]
pub(crate) struct ObjectSelection {
    /// A set of objects: v3, v4 or 6.12
    #[arg(long, value_parser = find_set)]
    set: Vec<&'static Set>,
    /// Objects whose name has this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Print one line for each difference
    #[arg(long)]
    list: bool,
}

fn find_set(name: &str) -> Result<&'static Set, String> {
    Set::find(name).ok_or_else(|| format!("there is no set {name:?}"))
}

/// Options of a comparison.
struct Options {
    sets: Vec<&'static Set>,
    only: Option<String>,
    list: bool,
}

impl Options {
    fn from_selection(selection: ObjectSelection) -> Options {
        let ObjectSelection { set, only, list } = selection;
        let sets = match set.is_empty() {
            true => SETS.iter().collect(),
            false => set,
        };
        Options { sets, only, list }
    }

    /// True if this run covers everything.
    fn is_whole(&self) -> bool {
        self.only.is_none() && self.sets.len() == SETS.len()
    }
}

/// Compares, prints the differences, and writes docs/loading.md.
pub(crate) fn compare(selection: ObjectSelection) -> Outcome {
    let options = Options::from_selection(selection);
    let oracle = Oracle::open()?;
    let mut page = Page::default();
    for &set in &options.sets {
        let mut objects = set.objects()?;
        if objects.is_empty() {
            return Err(format!("the set {} is not built", set.name).into());
        }
        if let Some(only) = &options.only {
            objects.retain(|path| path.to_string_lossy().contains(only));
        }
        let found = oracle.compare_all(&objects, |done| show(set, done, objects.len()))?;
        clear();
        for difference in &found.differences {
            match options.list {
                true => println!(
                    "{} {} {} {:?}",
                    set.name, difference.object, difference.at, difference.aspect
                ),
                false => println!("{} {difference}\n", set.name),
            }
        }
        for (aspect, count) in &found.counts {
            let (equal, compared) = (count.equal, count.compared);
            println!(
                "{:5} {equal:6} of {compared:6}  {}",
                set.name,
                aspect.title()
            );
        }
        page.sets.push((set, objects.len(), found));
    }
    if options.is_whole() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/loading.md");
        fs::write(file, page.markdown())?;
        println!("docs/loading.md is written");
    }
    match page.differences() {
        0 => Ok(()),
        differences => Err(format!("{differences} differences").into()),
    }
}

/// Progress on a terminal.
fn show(set: &Set, done: usize, all: usize) {
    const CELLS: usize = 40;
    if io::stderr().is_terminal() {
        let full = done * CELLS / all.max(1);
        let bar = format!("{}{}", "#".repeat(full), "-".repeat(CELLS - full));
        eprint!("\r\x1b[K{} [{bar}] {done} of {all}", set.title());
    }
}

fn clear() {
    if io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
}
