//! Families of iterators over numbers and bits.

use program::MapParams;
use spec::maps::{MapFlags, MapKind};

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, Setup, VALUE, bytes_at};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("numbers", numbers),
    Family::new("bits", bits),
    Family::new("bits of long masks", long_bits),
];

/// Mixes a number into `r9`.
const MIX: &str = "r9 *= 31\nr9 += r1\n";
/// Folds `r9` into the result.
const END: &str = "r0 = r9\nr0 >>= 32\nr0 ^= r9\nexit\n";

/// A loop over the iterator at an offset of the frame; `body` runs with the number in `r1`.
fn walk(label: &str, at: u32, next: &str, body: &str) -> String {
    format!(
        "{label}:\nr1 = r10\nr1 += -{at}\n{next}if r0 == 0 goto {label}_end\n\
         r1 = *(s32 *)(r0 + 0)\n{body}goto {label}\n{label}_end:\n"
    )
}

/// The bounds of a range: empty, short, and wrong ones.
fn bounds(choices: &mut Choices<'_>) -> (i32, i32) {
    let start = match choices.below(4) {
        0 => choices.pick(&[i32::MIN, i32::MAX, i32::MAX - 2, -1, 0]),
        1 => choices.value() as i32,
        _ => choices.below(50) as i32 - 25,
    };
    let end = match choices.below(8) {
        0 => choices.pick(&[i32::MIN, -1, 0]),
        // Too many.
        1 => start.saturating_add((1 << 23) + 1),
        _ => start.saturating_add(choices.below(60) as i32),
    };
    match i64::from(end) - i64::from(start) {
        // So many would take long.
        300..=0x80_0000 => (start, start),
        _ => (start, end),
    }
}

fn numbers(choices: &mut Choices<'_>) -> Case {
    let mut text = "r9 = 1\n".to_owned();
    for number in 0..1 + choices.below(2) {
        let make = |(start, end): (i32, i32), at: u32| {
            let new = call("bpf_iter_num_new");
            format!("r1 = r10\nr1 += -{at}\nr2 = {start}\nr3 = {end}\n{new}w1 = w0\n{MIX}")
        };
        let end_of = |at: u32| format!("r1 = r10\nr1 += -{at}\n{}", call("bpf_iter_num_destroy"));
        let next = call("bpf_iter_num_next");
        text += &make(bounds(choices), 8);
        let inner = match choices.one_in(2) {
            true => {
                let (start, _) = bounds(choices);
                let bounds = (start, start.saturating_add(choices.below(5) as i32));
                let inner = walk(&format!("inner{number}"), 16, &next, MIX);
                format!("{MIX}{}{inner}{}", make(bounds, 16), end_of(16))
            }
            false => MIX.to_owned(),
        };
        // A number at which the loop ends, or none.
        let label = format!("outer{number}");
        let stop = match choices.one_in(3) {
            true => format!("if w1 == {} goto {label}_end\n", choices.below(30)),
            false => String::new(),
        };
        text += &walk(&label, 8, &next, &(stop + &inner));
        text += &end_of(8);
    }
    Case::tc(choices, text + END)
}

/// An iterator over a mask, whose address the code puts into `r2`.
fn over_bits(address: &str, words: u64) -> String {
    let body = walk("bits", 16, &call("bpf_iter_bits_next"), MIX);
    format!(
        "r9 = 1\n{address}r1 = r10\nr1 += -16\nr3 = {words:#x} ll\n{}w1 = w0\n{MIX}{body}\
         r1 = r10\nr1 += -16\n{}{END}",
        call("bpf_iter_bits_new"),
        call("bpf_iter_bits_destroy")
    )
}

fn bits(choices: &mut Choices<'_>) -> Case {
    let words = choices.below(7);
    let word = |choices: &mut Choices<'_>| match choices.below(3) {
        0 => 0,
        1 => 1 << choices.below(64),
        _ => choices.value(),
    };
    let mask: Vec<u8> = (0..words.max(1))
        .flat_map(|_| word(choices).to_le_bytes())
        .collect();
    let buffer = 16 + mask.len() as u32;
    let address = match choices.below(6) {
        0 => {
            let wrong = choices.pick(&[
                0u64,
                1,
                0x7fff_ffff_0000,
                0x8000_0000_0000_0000,
                0xffff_ffff_ffff_fff0,
            ]);
            format!("r2 = {wrong:#x} ll\n")
        }
        _ => format!("r2 = r10\nr2 += -{buffer}\n"),
    };
    let count = match choices.one_in(6) {
        true => choices.pick(&[512, 513, u32::MAX.into(), 1 << 32, 1 << 32 | 1]),
        false => words.into(),
    };
    let text = bytes_at(buffer, &mask) + &over_bits(&address, count);
    Case::tc(choices, text)
}

fn long_bits(choices: &mut Choices<'_>) -> Case {
    const SIZE: u32 = 520 * 8;
    let mut mask = vec![0; SIZE as usize];
    for _ in 0..choices.below(40) {
        mask[choices.below(SIZE) as usize] = choices.below(256) as u8;
    }
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: SIZE,
        max_entries: 1,
        flags: MapFlags::RDONLY_PROG,
        ..MapParams::default()
    };
    let words = choices.pick(&[1, 2, 64, 510, 511, 512, 520]);
    let address = format!("r2 = {VALUE:#x} ll\nr2 += {}\n", 8 * choices.below(2));
    let text = over_bits(&address, words);
    Case::tc(choices, text).with_map(Setup(params, Some(mask)))
}
