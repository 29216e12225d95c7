//! Families of helpers on maps whose values have locks.

use btf::TypeId;
use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("spin locks", spin_locks)];

/// An update of the key at `r10 - 8` by the value at `r10 - 24`, whose result is mixed into
/// the word at `r10 - 32`.
fn update(choices: &mut Choices<'_>) -> String {
    let flags = choices.pick(&[0u64, 0, 4, 4, 5, 6, 1, 2, 3, 8, 12, 1 << 32]);
    let number = choices.value();
    format!(
        "r1 = {number:#x} ll\n*(u64 *)(r10 - 24) = r1\n*(u64 *)(r10 - 16) = r1\n\
         r1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\nr3 = r10\nr3 += -24\nr4 = {flags:#x} ll\n\
         call 2\nr1 = *(u64 *)(r10 - 32)\nr1 *= 31\nr1 += r0\n*(u64 *)(r10 - 32) = r1\n"
    )
}

/// Updates with and without the lock, and a change of the value under it.
fn spin_locks(choices: &mut Choices<'_>) -> Case {
    let has_lock = !choices.one_in(4);
    let kind = choices.pick(&[MapKind::Hash, MapKind::Array]);
    let kind = match has_lock || choices.one_in(2) {
        true => kind,
        false => choices.pick(&[MapKind::LruHash, MapKind::PercpuHash, MapKind::PercpuArray]),
    };
    let (entries, key) = (2 + choices.below(4), choices.below(6));
    let first: String = (0..choices.below(4)).map(|_| update(choices)).collect();
    let second: String = (0..choices.below(3)).map(|_| update(choices)).collect();
    let (lock, unlock) = match has_lock {
        true => ("r1 = r6\nr1 += 8\ncall 93\n", "r1 = r6\nr1 += 8\ncall 94\n"),
        false => ("", ""),
    };
    let lookup = format!("r1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\ncall 1\n");
    let digest = digest(32, 1);
    let text = format!(
        "*(u64 *)(r10 - 32) = 1\n*(u64 *)(r10 - 8) = {key}\n{first}{lookup}if r0 == 0 goto none\n\
         r6 = r0\n{lock}r1 = *(u64 *)(r6 + 0)\nr1 *= 31\nr1 += 5\n*(u64 *)(r6 + 0) = r1\n\
         {unlock}none:\n{second}{lookup}if r0 == 0 goto out\nr1 = *(u64 *)(r0 + 0)\n\
         r2 = *(u32 *)(r0 + 12)\nr1 += r2\nr2 = *(u64 *)(r10 - 32)\nr1 ^= r2\n\
         *(u64 *)(r10 - 32) = r1\nout:\nr0 = 0\n{digest}"
    );
    let kinds = [ProgramType::SchedCls, ProgramType::Xdp];
    let params = MapParams {
        map_type: kind.number(),
        key_size: 4,
        value_size: 16,
        max_entries: entries,
        value_type: match has_lock {
            true => TypeId(1),
            false => TypeId::VOID,
        },
        ..MapParams::default()
    };
    let case = Case {
        kind: choices.pick(&kinds),
        ..Case::tc(choices, text)
    };
    case.with_map(Setup(params, None))
}
