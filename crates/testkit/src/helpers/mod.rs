//! Helpers here and in the running kernel: programs that call them with ordinary, edge and
//! wrong arguments, run on both sides ([`compare`]), and the page that lists helpers.

mod callbacks;
mod case;
mod compare;
mod kfuncs;
mod locks;
mod packets;
mod page;
mod syncookies;
mod values;

pub use compare::{Comparison, compare};
pub use page::page;

use case::Case;

use crate::ebpf::Choices;

/// Programs that call some helpers.
#[derive(Clone, Copy)]
pub struct Family {
    /// What they call.
    pub name: &'static str,
    /// Makes one program with its input.
    make: fn(&mut Choices<'_>) -> Case,
}

impl std::fmt::Debug for Family {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// All families of helpers.
pub fn families() -> impl Iterator<Item = Family> {
    let families = [
        values::FAMILIES,
        packets::FAMILIES,
        callbacks::FAMILIES,
        locks::FAMILIES,
        syncookies::FAMILIES,
    ];
    families.into_iter().flatten().copied()
}

/// All families of kfuncs.
pub fn kfunc_families() -> impl Iterator<Item = Family> {
    kfuncs::FAMILIES.iter().copied()
}
