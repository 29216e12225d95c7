//! Third pass of the kernel over the types (`btf_check_type_tags`): type tags precede
//! other modifiers, and chains of modifiers are bounded.

use super::blob::Blob;
use super::reason::Reason;
use crate::TypeId;
use crate::kind::Kind;

/// Maximum number of consecutive modifiers.
const MAX_CHAIN: usize = 32;

/// Checks the chain of modifiers of each type, up to the first type that is already checked
/// (`btf_check_type_tags`, `btf_check_modifier_chain_length`).
#[doc(alias = "btf_check_type_tags")]
#[doc(alias = "btf_check_modifier_chain_length")]
pub(super) fn check_tags(blob: &Blob<'_>) -> Result<(), Reason> {
    let kind = |id: TypeId| blob.record_or_void(id).kind_or_void();
    let mut looked_at = TypeId::VOID;
    for start in (1..blob.starts.len() as u32).map(TypeId) {
        if !kind(start).is_modifier() {
            continue;
        }
        let mut only_tags = kind(start) == Kind::TypeTag;
        let mut id = start;
        let mut followed = 0;
        while kind(id).is_modifier() {
            if followed == MAX_CHAIN {
                return Err(Reason::ModifierChain);
            }
            followed += 1;
            match kind(id) {
                Kind::TypeTag if !only_tags => return Err(Reason::TagOrder),
                Kind::TypeTag => {}
                _ => only_tags = false,
            }
            if id <= looked_at {
                break;
            }
            id = TypeId(blob.record_or_void(id).payload);
        }
        looked_at = start;
    }
    Ok(())
}
