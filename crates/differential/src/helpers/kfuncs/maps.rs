//! Families of functions about maps.

use program::MapParams;
use spec::maps::{MapFlags, MapKind};

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, MAP, Setup, bytes_at, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("entries of maps", entries)];

fn entries(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[
        MapKind::Hash,
        MapKind::LruHash,
        MapKind::Array,
        MapKind::LpmTrie,
    ]);
    let key_size = if kind == MapKind::LpmTrie { 8 } else { 4 };
    let params = MapParams {
        map_type: kind.number(),
        key_size,
        value_size: 8,
        max_entries: 100,
        flags: match kind {
            MapKind::LpmTrie => MapFlags::NO_PREALLOC,
            MapKind::Hash => choices.pick(&[MapFlags::default(), MapFlags::NO_PREALLOC]),
            _ => MapFlags::default(),
        },
        ..MapParams::default()
    };
    let mut text = bytes_at(24, &[0; 24]);
    for _ in 0..choices.below(10) {
        let key = choices.below(8);
        let change = match choices.below(3) {
            0 => "call 3\n",
            _ => "r3 = r10\nr3 += -8\nr4 = 0\ncall 2\n",
        };
        text += &format!(
            "r1 = {key}\n*(u32 *)(r10 - 16) = r1\nr1 = {MAP:#x} ll\nr2 = r10\nr2 += -16\n{change}"
        );
    }
    text += &format!(
        "r1 = {MAP:#x} ll\n{}{}",
        call("bpf_map_sum_elem_count"),
        digest(8, 1)
    );
    Case::tc(choices, text).with_map(Setup(params, None))
}
