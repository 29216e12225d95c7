//! Helpers here and in the running kernel: programs that call them with ordinary, edge and
//! wrong arguments, run on both sides ([`compare`]), and the page that lists helpers.

mod callbacks;
mod case;
mod checked;
mod compare;
mod cpus;
mod encap;
mod in_kernel;
mod kfuncs;
mod locks;
mod memory;
mod native;
mod packet_loads;
mod packets;
mod page;
mod program_types;
mod routes;
mod sockets;
mod syncookies;
mod system_calls;
mod types;
mod values;

pub use checked::own_system;
pub use compare::{Comparison, compare, compare_engines, compare_text};
pub use page::page;
pub(crate) use routes::run_ip;

use case::Case;
use sys::Errno;
use vm::System;

use testkit::ebpf::Choices;

/// Programs that call some helpers.
#[derive(Clone, Copy)]
pub struct Family {
    /// Name of the group of helpers that they call.
    pub name: &'static str,
    /// Makes one program with its input.
    make: fn(&mut Choices<'_>) -> Case,
    /// Makes the network of the namespace that some programs run in, and describes it.
    network: Option<MakeNetwork>,
}

/// Changes the calling thread's network namespace, and describes it on top of a system.
type MakeNetwork = fn(&mut Choices<'_>, System) -> Result<System, Errno>;

impl Family {
    /// Programs in an empty network namespace.
    const fn new(name: &'static str, make: fn(&mut Choices<'_>) -> Case) -> Family {
        Family {
            name,
            make,
            network: None,
        }
    }
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
        memory::FAMILIES,
        syncookies::FAMILIES,
        routes::FAMILIES,
        sockets::FAMILIES,
        packet_loads::FAMILIES,
        encap::FAMILIES,
        types::FAMILIES,
        cpus::FAMILIES,
    ];
    families.into_iter().flatten().copied()
}

/// The family of system calls: what it loads is verified here, so it is compared with a setting
/// ([`compare_engines`]).
pub fn system_call_families() -> impl Iterator<Item = Family> {
    system_calls::FAMILIES.iter().copied()
}

/// The type id of the structure that programs of [`compare_text`] allocate.
pub fn item_type() -> u32 {
    program_types::TYPES.item.0
}

/// All families of kfuncs.
pub fn kfunc_families() -> impl Iterator<Item = Family> {
    kfuncs::families()
}
