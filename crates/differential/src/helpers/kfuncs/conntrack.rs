//! Families of connection tracking.

use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, bytes_at, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("connection tracking", conntrack)];

/// A lookup in the empty table of a namespace, with right and wrong options.
fn conntrack(choices: &mut Choices<'_>) -> Case {
    let (kind, name) = choices.pick(&[
        (ProgramType::SchedCls, "bpf_skb_ct_lookup"),
        (ProgramType::Xdp, "bpf_xdp_ct_lookup"),
    ]);
    let mut options = [0; 16];
    let netns = choices.pick(&[-1i32, -1, -1, -1, -2, 0, 7, i32::MIN]);
    options[..4].copy_from_slice(&netns.to_le_bytes());
    options[8] = choices.pick(&[6, 6, 17, 17, 1, 0]);
    options[9] = choices.pick(&[0, 0, 1, 2]);
    if choices.one_in(4) {
        options[10] = choices.below(3) as u8;
        options[12] = choices.below(4) as u8;
    }
    if choices.one_in(5) {
        options[13 + choices.below(3) as usize] = 1;
    }
    // For less than 8 bytes Linux writes beyond them.
    let size = choices.pick(&[16, 16, 16, 12, 12, 13, 8, 15]);
    let tuple = choices.pick(&[12, 12, 36, 36, 0, 4, 35, 11]);
    let tuple_bytes: Vec<u8> = (0..40).map(|_| choices.below(256) as u8).collect();
    let text = format!(
        "{}{}r2 = r10\nr2 += -40\nr3 = {tuple}\nr4 = r10\nr4 += -56\nr5 = {size}\nr6 = r1\n\
         {}{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n{}r6 = 2\nnone:\nr0 = r6\n{}",
        "r6 = r1\n",
        bytes_at(40, &tuple_bytes) + &bytes_at(56, &options),
        "r1 = r6\n",
        call(name),
        call("bpf_ct_release"),
        digest(56, 2)
    );
    let text = text.replacen("r6 = r1\nr1 = r6\n", "r1 = r6\n", 1);
    Case {
        kind,
        ..Case::tc(choices, text)
    }
}
