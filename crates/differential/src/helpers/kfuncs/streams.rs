//! Families of text that programs print into their streams.

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, VALUE, constant, words};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("streams", streams)];

/// Prints texts, right and wrong ones, so often that streams fill. Where the kernel has no memory
/// for a text (`-ENOMEM`; some machines never do), the text counts as kept.
fn streams(choices: &mut Choices<'_>) -> Case {
    let format = choices.pick(&[
        "plain",
        "%d and %u\n",
        "%llx %lld %lu",
        "%5d|%-5d|%05d",
        "%c%c",
        "%100d%100d%100d%100d%100d%100d%100d%100d%100d",
        "%100d%100d%100d%100d%100d%100d%100d%100d%100d%200d",
        "%",
        "%d %",
        "%q",
        "",
    ]);
    let mut text = words(choices, 12) + "r9 = 1\n";
    for at in 0..1 + choices.below(3) {
        let stream = match choices.below(6) {
            0 => choices.pick(&[0u64, 3, u32::MAX.into(), 1 << 32, 1 << 32 | 1]),
            _ => 1 + u64::from(choices.below(2)),
        };
        let len = match choices.below(8) {
            0 => choices.pick(&[1, 7, 9, 96]),
            1 => 8 * choices.below(12),
            _ => 8 * format.matches('%').count() as u32,
        };
        let rounds = choices.pick(&[1, 1, 2, 130]);
        text += &format!(
            "r8 = {rounds}\nround{at}:\nr1 = {stream:#x} ll\nr2 = {VALUE:#x} ll\nr3 = r10\n\
             r3 += -96\nr4 = {len}\nr5 = 0\n{}if w0 != -12 goto kept{at}\nr0 = 0\n\
             kept{at}:\nw1 = w0\nr9 *= 31\nr9 += r1\nr8 += -1\nif r8 != 0 goto round{at}\n",
            call("bpf_stream_vprintk_impl")
        );
    }
    text += "r0 = r9\nr0 >>= 32\nr0 ^= r9\nexit\n";
    Case::tc(choices, text).with_map(constant(format.as_bytes()))
}
