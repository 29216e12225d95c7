//! Map kinds as the verifier sees them: which helpers take them, which programs use
//! them, how values are reached.

use crate::maps::MapKind;

/// What the verifier must know of a map kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapTraits {
    /// The kind.
    pub kind: MapKind,
    /// Helpers that take such a map, by number, ascending.
    pub helpers: Box<[u32]>,
    /// A ld_imm64 may hold the address of a value (`map_direct_value_addr`).
    pub has_direct_value: bool,
    /// Programs that may sleep may use it.
    pub in_sleepable: bool,
    /// Values may hold fields of these kinds (`enum btf_field_type` bits).
    pub special_fields: u32,
}

impl MapTraits {
    /// True if the helper takes such a map (`check_map_func_compatibility`).
    pub fn takes_helper(&self, id: u32) -> bool {
        self.helpers.binary_search(&id).is_ok()
    }
}
