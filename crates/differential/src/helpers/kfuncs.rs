//! Families of kfuncs.
//!
//! A call has the number that resolved code has for a kfunc; the program for the kernel gets
//! the BTF id in its place.

mod absent;
mod arenas;
mod conntrack;
mod cpu_objects;
mod cpumasks;
mod dynptrs;
mod exceptions;
mod iterators;
mod locks;
mod maps;
mod objects;
mod pull;
mod sections;
mod streams;
mod strings;

use spec::kfuncs::KernelFunction;

use super::Family;

/// All families.
pub(super) fn families() -> impl Iterator<Item = Family> {
    let families = [
        strings::FAMILIES,
        sections::FAMILIES,
        conntrack::FAMILIES,
        maps::FAMILIES,
        pull::FAMILIES,
        absent::FAMILIES,
        iterators::FAMILIES,
        exceptions::FAMILIES,
        objects::FAMILIES,
        locks::FAMILIES,
        streams::FAMILIES,
        dynptrs::FAMILIES,
        cpumasks::FAMILIES,
        arenas::FAMILIES,
        cpu_objects::FAMILIES,
    ];
    families.into_iter().flatten().copied()
}

/// A call of a kfunc.
fn call(name: &str) -> String {
    let function = KernelFunction::of_linux(name).expect("a kfunc of Linux");
    format!("call {}\n", function.number())
}
