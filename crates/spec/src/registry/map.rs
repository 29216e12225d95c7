//! Properties of map kinds that the verifier checks: compatible helpers, programs and
//! access to values.

use crate::maps::MapKind;

/// Properties of a map kind that the verifier checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapTraits {
    /// Map kind.
    pub kind: MapKind,
    /// Numbers of the compatible helpers, ascending.
    pub helpers: Box<[u32]>,
    /// True if an ld_imm64 may contain the address of a value (`map_direct_value_addr`).
    pub has_direct_value: bool,
    /// True if sleepable programs may use it.
    pub in_sleepable: bool,
    /// Special fields that values may contain (`enum btf_field_type` bits).
    pub special_fields: u32,
}

impl MapTraits {
    /// True if the helper is compatible (`check_map_func_compatibility`).
    pub fn allows_helper(&self, id: u32) -> bool {
        self.helpers.binary_search(&id).is_ok()
    }
}
