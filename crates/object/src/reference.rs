//! References: which relocation wrote an instruction, by instruction. The program
//! itself says what it refers to; this is kept beside it, for people and for reports
//! about what a kernel lacks.

use btf::TypeId;
use btf::ext::CoreQuestion;
use program::{ExternId, MapId};

/// A slot that refers to something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// The slot, from the start of the program.
    pub slot: u32,
    /// What it refers to.
    pub to: Referent,
}

/// What a slot refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referent {
    /// A map.
    Map(MapId),
    /// A byte of a map's first value: a global variable.
    Value {
        /// The map.
        map: MapId,
        /// Bytes from the start of its value.
        offset: u32,
    },
    /// A map that is not to be created: the slots call a helper that no kernel has
    /// ([`MAP_POISON`] plus the number), so that only a program that gets there
    /// fails.
    MissingMap(MapId),
    /// A call of another function of this program.
    Call {
        /// The slot where it starts.
        start: u32,
    },
    /// The address of another function of this program.
    FunctionAddress {
        /// The slot where it starts.
        start: u32,
    },
    /// A call of a function of the kernel.
    Kfunc {
        /// Which.
        function: ExternId,
        /// Its number in the types of the kernel or module.
        id: TypeId,
        /// The number of the module that it is of, from 1; 0 is the kernel itself.
        module: u16,
    },
    /// A call of a function that the kernel lacks and the program can do without:
    /// the slot calls a helper that no kernel has ([`KFUNC_POISON`] plus the number).
    MissingKfunc(ExternId),
    /// A variable or function of the kernel by its number in the types.
    Typed {
        /// Which.
        object: ExternId,
        /// Its number in the types of the kernel or module.
        id: TypeId,
        /// The number of the module that it is of, from 1; 0 is the kernel itself.
        module: u16,
    },
    /// The address of a kernel symbol as a plain number, in the slots; 0 where it
    /// has none and the program can do without.
    Address(ExternId),
    /// A number that depends on the layout of the kernel's types.
    Core(CoreQuestion),
    /// Such a number that could not be found: the slots call a helper that no
    /// kernel has ([`CORE_POISON`]).
    MissingCore(CoreQuestion),
}

/// The helper number of a call in place of a relocation that fits nothing.
pub const CORE_POISON: i32 = 0xbad_2310;
/// The helper number of a call in place of a missing map, less the map's number.
pub const MAP_POISON: i32 = 2_001_000_000;
/// The helper number of a call in place of a missing kernel function, less its
/// number among the externs.
pub const KFUNC_POISON: i32 = 2_002_000_000;
