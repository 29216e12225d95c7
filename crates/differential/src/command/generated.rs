//! Compares generated programs with the running kernel, and records its answers: pages of
//! counts, and cases for machines without that kernel.

use std::fs;
use std::path::Path;

use beebox_differential::classic::{cases, page};
use beebox_differential::maps;
use spec::kernel::Privileges;

use crate::command::Outcome;

/// Programs for sockets; the other comparisons follow in proportion.
const PROGRAMS: u64 = 200_000;
/// Programs from which the kept cases come.
const KEPT: u64 = 1_200;

/// eBPF programs for the kernel.
const KERNEL_PROGRAMS: u64 = 101_000;
/// eBPF programs for the engines.
pub(crate) const ENGINE_PROGRAMS: u64 = 10_000_000;

/// Seeds for blobs of types, eight blobs each.
const BTF_SEEDS: u64 = 25_000;

/// Programs of each family that calls helpers.
pub(crate) const HELPER_PROGRAMS: u64 = 3_000;

/// Operations on maps of each kind.
pub(crate) const MAP_OPERATIONS: u64 = 100_000;

/// Values for the verifier's numeric domain.
pub(crate) const NUMBER_CASES: u64 = 1_000_000;

/// Compares maps: their creation, programs with maps of a fifth as many definitions, and so many
/// operations on each kind.
pub(crate) fn compare_maps(operations: u64) -> Outcome {
    let absent = |errno| format!("not asked: {errno}");
    let mut results = vec![(
        "creation",
        maps::compare_creation(0..operations / 50).map_err(absent)?,
    )];
    let definitions = |privileges, definitions| {
        let compared = maps::compare_definitions(0..definitions, privileges);
        compared.map_err(absent)
    };
    let bpf = Privileges {
        bpf: true,
        ..Privileges::NONE
    };
    let all = definitions(Privileges::ALL, operations / 5)?;
    results.push(("definitions", all));
    let some = definitions(bpf, operations / 50)?;
    results.push(("definitions of a caller with CAP_BPF alone", some));
    let made = maps::KINDS
        .into_iter()
        .filter(|kind| !maps::NOT_MADE.contains(kind));
    for kind in made {
        let comparison = maps::compare_operations(kind, 1, operations).map_err(absent)?;
        results.push((kind.name(), comparison));
    }
    println!("| map | operations | succeed | differences |\n|---|---:|---:|---:|");
    for (name, comparison) in &results {
        let (operations, successes) = (comparison.operations, comparison.successes);
        let differences = comparison.differences.len();
        println!("| {name} | {operations} | {successes} | {differences} |");
    }
    let mut differences = results
        .iter()
        .flat_map(|(_, comparison)| &comparison.differences);
    for difference in differences.clone().take(20) {
        eprintln!("{difference}");
    }
    match differences.next() {
        None => Ok(()),
        Some(_) => Err("maps differ from the kernel's".into()),
    }
}

/// Compares helpers: so many programs of each family whose name has a part.
pub(crate) fn compare_helpers(programs: u64, part: &str) -> Outcome {
    let families = beebox_differential::helpers::families();
    let families = families.filter(|family| family.name.contains(part));
    compare_calls("helpers", families, programs)
}

/// Compares kfuncs: so many programs of each family whose name has a part.
pub(crate) fn compare_kfuncs(programs: u64, part: &str) -> Outcome {
    let families = beebox_differential::helpers::kfunc_families();
    let families = families.filter(|family| family.name.contains(part));
    compare_calls("kfuncs", families, programs)
}

fn compare_calls(
    what: &str,
    families: impl Iterator<Item = beebox_differential::helpers::Family>,
    programs: u64,
) -> Outcome {
    println!("| {what} | programs | calls | differences |\n|---|---:|---:|---:|");
    let (mut calls, mut all) = (0, Vec::new());
    for family in families {
        let comparison = beebox_differential::helpers::compare(family, 1, programs);
        let comparison = comparison.map_err(|errno| format!("not asked: {errno}"))?;
        let (name, differences) = (family.name, comparison.differences.len());
        println!(
            "| {name} | {} | {} | {differences} |",
            comparison.programs, comparison.calls
        );
        calls += comparison.calls;
        all.extend(comparison.differences);
    }
    println!("\n{calls} calls");
    all.iter()
        .take(20)
        .for_each(|difference| eprintln!("{difference}"));
    match all.is_empty() {
        true => Ok(()),
        false => Err(format!("{what} differ from the kernel's").into()),
    }
}

/// Compares blobs of types, and writes docs/btf-oracle.md.
pub(crate) fn compare_btf() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = beebox_differential::btf::page::Page::ask(0..BTF_SEEDS);
    let page = page.map_err(|why| format!("not asked: {why:?}"))?;
    for difference in &page.comparison.differences {
        eprintln!("{}", difference.describe());
    }
    if !page.comparison.differences.is_empty() {
        return Err("answers differ; nothing was written".into());
    }
    fs::write(root.join("docs/btf-oracle.md"), page.markdown())?;
    Ok(())
}

/// Compares values of the verifier's numeric domain with those in the kernel's logs,
/// until so many are compared.
pub(crate) fn compare_numbers(cases: u64) -> Outcome {
    const PROGRAMS: u64 = 200;
    let mut seed = 0;
    let mut compared = 0;
    while compared < cases {
        let comparison = beebox_differential::numbers::compare(seed..seed + PROGRAMS)
            .map_err(|why| format!("not asked: {why}"))?;
        for difference in &comparison.differences {
            eprintln!("{difference}");
        }
        if !comparison.differences.is_empty() {
            return Err("values differ".into());
        }
        seed += PROGRAMS;
        compared += comparison.cases;
    }
    println!("{compared} values of {seed} programs are those of the kernel");
    Ok(())
}

/// Compares eBPF programs, so many of them on the engines, and writes
/// docs/ebpf-oracle.md.
pub(crate) fn compare_ebpf(programs: u64) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = beebox_differential::ebpf::page::compare_all(KERNEL_PROGRAMS, programs);
    let page = page.map_err(|why| format!("not asked: {why:?}"))?;
    let differences = page.differences();
    for difference in &differences {
        eprintln!("{difference}");
    }
    if !differences.is_empty() {
        return Err("answers differ; nothing was written".into());
    }
    fs::write(root.join("docs/ebpf-oracle.md"), page.markdown())?;
    Ok(())
}

/// Compares classic programs, and writes docs/classic-oracle.md and the file of
/// cases.
pub(crate) fn compare_classic() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = page::compare_all(PROGRAMS).map_err(|why| format!("not asked: {why:?}"))?;
    for (what, comparison) in &page.comparisons {
        for difference in &comparison.differences {
            eprintln!("{what}: {}", difference.describe());
        }
    }
    if page.differences() > 0 {
        return Err("the kernel answers differently; nothing was written".into());
    }
    fs::write(root.join("docs/classic-oracle.md"), page.markdown())?;
    let cases = cases::record(KEPT).map_err(|why| format!("not asked: {why:?}"))?;
    let kept = "crates/testkit/cases/classic-linux-6.18.txt";
    fs::write(root.join(kept), cases)?;
    Ok(())
}
