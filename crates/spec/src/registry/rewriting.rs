//! Numbers of instructions that Linux makes of one when it rewrites an accepted program
//! (`convert_ctx_accesses`, `do_misc_fixups`). An instruction without an entry stays one.

use std::collections::BTreeMap;

use crate::maps::MapKind;

/// Form of an access, as far as Linux makes different code of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AccessForm {
    /// A load into another register than the pointer's.
    Read,
    /// A load into the pointer's register.
    ReadBase,
    /// A load with sign extension into another register than the pointer's.
    SignedRead,
    /// A load with sign extension into the pointer's register.
    SignedReadBase,
    /// A store of a register.
    Write,
    /// A store of an immediate.
    WriteImm,
}

impl AccessForm {
    /// All forms.
    pub const ALL: [AccessForm; 6] = [
        AccessForm::Read,
        AccessForm::ReadBase,
        AccessForm::SignedRead,
        AccessForm::SignedReadBase,
        AccessForm::Write,
        AccessForm::WriteImm,
    ];

    /// True for stores.
    pub const fn writes(self) -> bool {
        matches!(self, AccessForm::Write | AccessForm::WriteImm)
    }

    /// True for loads with sign extension.
    pub const fn is_signed(self) -> bool {
        matches!(self, AccessForm::SignedRead | AccessForm::SignedReadBase)
    }

    /// Letter of the form in the text of a registry.
    pub const fn letter(self) -> char {
        match self {
            AccessForm::Read => 'r',
            AccessForm::ReadBase => 'R',
            AccessForm::SignedRead => 's',
            AccessForm::SignedReadBase => 'S',
            AccessForm::Write => 'w',
            AccessForm::WriteImm => 'i',
        }
    }
}

/// Number of instructions that Linux makes of an access to a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rewritten {
    /// Form of the access.
    pub form: AccessForm,
    /// Bytes of the access.
    pub bytes: u8,
    /// True if the number holds in programs that also access `tstamp_type` of
    /// `struct __sk_buff`, which changes what `tstamp` means.
    pub beside_tstamp_type: bool,
    /// Instructions; 0 for an access that Linux accepts in the walk and fails to rewrite
    /// ("error during ctx access conversion").
    pub insns: u8,
}

/// Numbers of instructions that Linux makes of calls and of legacy packet loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewriting {
    /// By helper, and of lookups by kind of map.
    pub calls: BTreeMap<(u32, Option<MapKind>), u8>,
    /// Legacy packet loads.
    pub packet_loads: PacketLoads,
}

/// Numbers of instructions that Linux makes of legacy packet loads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketLoads {
    /// At a constant offset.
    pub absolute: u8,
    /// At a register.
    pub indirect: u8,
    /// At a register plus a constant.
    pub indirect_offset: u8,
}

impl Rewriting {
    /// Instructions that a call of a helper, of a lookup in a map of a kind, becomes.
    pub fn call(&self, helper: u32, map: Option<MapKind>) -> u32 {
        self.calls.get(&(helper, map)).copied().unwrap_or(1).into()
    }
}
