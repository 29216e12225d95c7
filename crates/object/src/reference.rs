//! References: the relocation that wrote an instruction, by instruction. Kept beside the
//! program for reports; the program itself is defined by its instructions alone.

use btf::TypeId;
use btf::ext::CoreSpec;
use program::{ExternId, MapId};

/// Reference of an instruction slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Slot index from the start of the program.
    pub slot: u32,
    /// Referenced object.
    pub to: Referent,
}

/// Object that a slot refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referent {
    /// Map.
    Map(MapId),
    /// Global variable: a byte of the first value of a map.
    Value {
        /// Map.
        map: MapId,
        /// Offset in bytes in the value.
        offset: u32,
    },
    /// Map that is not created: the slots are a call of a non-existent helper
    /// ([`MAP_POISON`] plus the index), so that the program is refused only if the call
    /// is reachable.
    MissingMap(MapId),
    /// Call of a subprog of this program.
    Call {
        /// First slot of the subprog.
        start: u32,
    },
    /// Address of a subprog of this program.
    FunctionAddress {
        /// First slot of the subprog.
        start: u32,
    },
    /// Call of a kfunc.
    Kfunc {
        /// Extern.
        function: ExternId,
        /// BTF id in vmlinux or the module.
        id: TypeId,
        /// Module number from 1; 0 is vmlinux.
        module: u16,
    },
    /// Call of a missing weak kfunc: the slot is a call of a non-existent helper
    /// ([`KFUNC_POISON`] plus the index).
    MissingKfunc(ExternId),
    /// Variable or function of the kernel by BTF id (typed ksym).
    Typed {
        /// Extern.
        object: ExternId,
        /// BTF id in vmlinux or the module.
        id: TypeId,
        /// Module number from 1; 0 is vmlinux.
        module: u16,
    },
    /// Address of a kernel symbol (typeless ksym); 0 if it is weak and missing.
    Address(ExternId),
    /// Result of a CO-RE relocation.
    Core(CoreSpec),
    /// Failed CO-RE relocation: the slots are a call of a non-existent helper
    /// ([`CORE_POISON`]).
    MissingCore(CoreSpec),
    /// CO-RE relocation of what the reduced BTF of the kernel lacks: the program cannot be
    /// loaded, since the kernel may have it.
    LeftOut(CoreSpec),
}

pub use program::{CORE_POISON, KFUNC_POISON, MAP_POISON};
