//! Families of functions that pull data from fragments.

use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::Case;
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("data that are pulled from fragments", pull)];

fn pull(choices: &mut Choices<'_>) -> Case {
    let len = choices.pick(&[100u32, 3520, 3521, 3600, 7616, 7617, 9000, 20_000, 73_152]);
    let linear = choices.pick(&[14u32, 20, 100, 1000, 3000, 3520]);
    let mut text = "r6 = r1\nr9 = 0\n".to_owned();
    for _ in 0..1 + choices.below(3) {
        let count = match choices.below(5) {
            0 => choices.value() as u32,
            1 => len.saturating_sub(2) + choices.below(4),
            2 => choices.pick(&[3519, 3520, 3521, 3735, 3736, 3737, 3776, 4096]),
            _ => linear + choices.below(600),
        };
        text += &format!(
            "r1 = r6\nr2 = {count:#x} ll\n{}r9 *= 31\nr9 += r0\n",
            call("bpf_xdp_pull_data")
        );
        text += "r1 = *(u32 *)(r6 + 4)\nr2 = *(u32 *)(r6 + 0)\nr1 -= r2\nr9 *= 31\nr9 += r1\n";
        if choices.one_in(3) {
            let delta = choices.pick(&[-200i32, -20, 0, 20]);
            text += &format!("r1 = r6\nr2 = {delta}\ncall 44\nr9 *= 31\nr9 += r0\n");
        }
    }
    text += "r0 = r9\nr0 >>= 32\nr0 ^= r9\nexit";
    let context = match choices.below(3) {
        0 => Vec::new(),
        _ => {
            let metadata = choices.pick(&[0u32, 0, 4, 32]);
            let end = (linear + metadata).min(len);
            let fields = [metadata, end, 0, 0, 0, 0];
            fields.into_iter().flat_map(u32::to_le_bytes).collect()
        }
    };
    Case {
        packet: (0..len).map(|at| (at ^ at >> 8) as u8).collect(),
        context,
        has_fragments: true,
        ..Case::new(ProgramType::Xdp, text)
    }
}
