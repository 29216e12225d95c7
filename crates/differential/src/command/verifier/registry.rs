//! `cargo differential compare registry`: the built-in registry beside the running kernel.

use std::fmt::Write as _;

use beebox_differential::registry::compare::{RegistryComparison, compare};

use super::PAGE;
use crate::command::Outcome;
use beebox_differential::page::write_part;

/// Compares every entry of the built-in registry that can be asked about.
pub(crate) fn compare_registry() -> Outcome {
    let kernel = sys::kernel::running()?;
    let types = kernel.btf().ok_or("the running kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_minimal_registry(types);
    let comparison = compare(&registry, 1)?;
    for difference in &comparison.differences {
        eprintln!("{difference}");
    }
    if !comparison.differences.is_empty() {
        return Err("the kernel answers differently; nothing was written".into());
    }
    let table = registry_table(&comparison);
    print!("{table}");
    write_part(PAGE, "registry", &table)
}

fn registry_table(comparison: &RegistryComparison) -> String {
    let mut table = String::from("| entries | compared | differences |\n|---|---:|---:|\n");
    for (kind, count) in &comparison.compared {
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {kind} | {count} | 0 |");
    }
    let _ = writeln!(
        table,
        "\n{} programs were given to the kernel. Not asked, because this kernel verifies no \
         such programs, and read from the source of Linux 6.18 instead: {}.",
        comparison.questions,
        comparison.unasked.join("; ")
    );
    table
}
