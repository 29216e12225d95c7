//! Families of string functions.

use program::MapParams;
use spec::maps::{MapFlags, MapKind};

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, Setup, VALUE, bytes_at, digest};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("strings", strings),
    Family::new("long strings", long_strings),
    Family::new("strings at addresses of any kind", addresses),
];

/// String functions with the arguments behind the first string.
#[derive(Clone, Copy)]
enum Rest {
    Nothing,
    Text,
    Byte,
    Count,
    CountAndByte,
    TextAndCount,
}

const FUNCTIONS: &[(&str, Rest)] = &[
    ("bpf_strcmp", Rest::Text),
    ("bpf_strcasecmp", Rest::Text),
    ("bpf_strlen", Rest::Nothing),
    ("bpf_strnlen", Rest::Count),
    ("bpf_strchr", Rest::Byte),
    ("bpf_strnchr", Rest::CountAndByte),
    ("bpf_strchrnul", Rest::Byte),
    ("bpf_strrchr", Rest::Byte),
    ("bpf_strspn", Rest::Text),
    ("bpf_strcspn", Rest::Text),
    ("bpf_strstr", Rest::Text),
    ("bpf_strnstr", Rest::TextAndCount),
];

/// A call of a string function on two strings whose addresses the code puts into registers.
fn string_call(
    choices: &mut Choices<'_>,
    address: impl Fn(&str, &mut Choices<'_>, usize) -> String,
    counts: &[u64],
) -> String {
    let (name, rest) = choices.pick(FUNCTIONS);
    let mut text = address("r1", choices, 0);
    let count = choices.pick(counts);
    let byte = match choices.below(6) {
        0 => choices.value(),
        1 => 0,
        _ => u64::from(byte(choices)),
    };
    text += &match rest {
        Rest::Nothing => String::new(),
        Rest::Text => address("r2", choices, 1),
        Rest::Byte => format!("r2 = {byte:#x} ll\n"),
        Rest::Count => format!("r2 = {count:#x} ll\n"),
        Rest::CountAndByte => format!("r2 = {count:#x} ll\nr3 = {byte:#x} ll\n"),
        Rest::TextAndCount => address("r2", choices, 1) + &format!("r3 = {count:#x} ll\n"),
    };
    text + &call(name)
}

/// A byte of strings: few letters, so that strings have parts in common; letters with two
/// cases beyond ASCII, and signs between them that have none.
fn byte(choices: &mut Choices<'_>) -> u8 {
    match choices.below(12) {
        0 => choices.pick(b"\xc0\xe0\xd7\xf7\xdf\xff\xde\xfe@[`{"),
        1 => choices.below(256) as u8,
        _ => choices.pick(b"aAbB"),
    }
}

fn text(choices: &mut Choices<'_>, most: u32) -> Vec<u8> {
    let len = choices.below(most) as usize;
    (0..len).map(|_| byte(choices).max(1)).collect()
}

fn strings(choices: &mut Choices<'_>) -> Case {
    // Two strings of 64 bytes, which end in zeros.
    let mut first = text(choices, 40);
    let mut second = match choices.below(3) {
        0 => text(choices, 6),
        1 => text(choices, 40),
        _ => {
            let start = choices.below(first.len() as u32 + 1) as usize;
            let len = choices.below((first.len() - start) as u32 + 1) as usize;
            first[start..start + len].to_vec()
        }
    };
    first.resize(64, 0);
    second.resize(64, 0);
    let counts = [0, 1, 2, 3, 5, 8, 13, 21, 39, 63, 65_535, 65_536, u64::MAX];
    let address = |reg: &str, _: &mut Choices<'_>, at: usize| {
        format!("{reg} = r10\n{reg} += -{}\n", 128 - 64 * at)
    };
    let called = string_call(choices, address, &counts);
    let text = bytes_at(128, &first) + &bytes_at(64, &second) + &called + &digest(8, 1);
    Case::tc(choices, text)
}

/// A string of a map that ends behind the limit, at it, or in front of it.
fn long_strings(choices: &mut Choices<'_>) -> Case {
    const SIZE: u32 = 66_000;
    let len = choices.pick(&[65_534usize, 65_535, 65_536, 65_537, 30_000]);
    let mut value = vec![b'a'; len];
    value.resize(SIZE as usize, 0);
    if choices.one_in(3) {
        value[len - 1] = b'b';
    }
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: SIZE,
        max_entries: 1,
        flags: MapFlags::RDONLY_PROG,
        ..MapParams::default()
    };
    let offset = choices.pick(&[0u32, 0, 1, 2]);
    let counts = [65_535, 65_536, 65_537, 70_000, 20];
    let is_short = choices.one_in(2);
    let address = move |reg: &str, choices: &mut Choices<'_>, at: usize| match (at, is_short) {
        (1, true) => format!("{reg} = r10\n{reg} += -8\n"),
        _ => {
            let offset = if at == 0 { offset } else { choices.below(3) };
            format!("{reg} = {VALUE:#x} ll\n{reg} += {offset}\n")
        }
    };
    let called = string_call(choices, address, &counts);
    let short = choices.pick(&[b"a\0\0\0\0\0\0\0", b"b\0\0\0\0\0\0\0", b"aaaab\0\0\0"]);
    let text = bytes_at(8, short) + &called + &digest(8, 1);
    Case::tc(choices, text).with_map(Setup(params, Some(value)))
}

/// Addresses at which no memory is, in each part of the address space.
fn addresses(choices: &mut Choices<'_>) -> Case {
    let address = |reg: &str, choices: &mut Choices<'_>, _: usize| {
        let address = choices.pick(&[
            0u64,
            1,
            4096,
            0x7fff_ffff_efff,
            0x7fff_ffff_f000,
            0x7fff_ffff_ffff,
            0x8000_0000_0000_0000,
            0xffff_ffff_ff60_0000,
            0xffff_ffff_ffff_fff0,
        ]);
        match choices.below(4) {
            0 => format!("{reg} = r10\n{reg} += -64\n"),
            _ => format!("{reg} = {address:#x} ll\n"),
        }
    };
    let mut first = text(choices, 40);
    first.resize(64, 0);
    let called = string_call(choices, address, &[0, 1, 10, 65_536]);
    let text = bytes_at(64, &first) + &called + &digest(8, 1);
    Case::tc(choices, text)
}
