//! Families of kfuncs: strings, sections, casts, connection tracking, maps, fragments, and
//! what does not exist.
//!
//! A call has the number that resolved code has for a kfunc; the program for the kernel gets
//! the BTF id in its place.

use program::MapParams;
use spec::kfuncs::KernelFunction;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup, VALUE, bytes_at, digest};
use crate::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("strings", strings),
    Family::new("long strings", long_strings),
    Family::new("strings at addresses of any kind", addresses),
    Family::new("sections and casts", sections),
    Family::new("connection tracking", conntrack),
    Family::new("entries of maps", entries),
    Family::new("data that are pulled from fragments", pull),
    Family::new("objects of the kernel that do not exist", absent),
    Family::new(
        "objects for system calls that do not exist",
        absent_in_syscalls,
    ),
];

/// A call of a kfunc.
fn call(name: &str) -> String {
    let function = KernelFunction::of_linux(name).expect("a kfunc of Linux");
    format!("call {}\n", function.number())
}

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

fn sections(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[ProgramType::SchedCls, ProgramType::Xdp]);
    let mut text = format!("r6 = r1\nr9 = 0\n{}", bytes_at(8, &[0; 8]));
    for at in 0..1 + choices.below(4) {
        let (before, behind) = match choices.below(3) {
            0 => ("bpf_rcu_read_lock", "bpf_rcu_read_unlock"),
            1 => ("bpf_preempt_disable", "bpf_preempt_enable"),
            _ => {
                text += &format!(
                    "r1 = r6\n{}if r0 == 0 goto none{at}\nr9 += 1\nnone{at}:\n",
                    call("bpf_cast_to_kern_ctx")
                );
                continue;
            }
        };
        text += &format!("{}r9 *= 31\nr9 += {at}\n{}", call(before), call(behind));
    }
    text += &format!("r0 = r9\n{}", digest(8, 1));
    Case {
        kind,
        ..Case::tc(choices, text)
    }
}

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
        kind: ProgramType::Xdp,
        text,
        maps: Vec::new(),
        packet: (0..len).map(|at| (at ^ at >> 8) as u8).collect(),
        context,
        has_fragments: true,
    }
}

fn absent(choices: &mut Choices<'_>) -> Case {
    let lookup = |get: &str, release: &str, argument: u64| {
        format!(
            "r1 = {argument:#x} ll\n{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n{}r6 = 2\nnone:\n",
            call(get),
            call(release)
        )
    };
    let mut kind = ProgramType::SchedCls;
    let words = bytes_at(48, &[7; 48]);
    let call = match choices.below(5) {
        0 => lookup(
            "bpf_task_from_pid",
            "bpf_task_release",
            choices.pick(&[u64::MAX, 99_999_999, 1 << 31]),
        ),
        1 => lookup(
            "bpf_task_from_vpid",
            "bpf_task_release",
            choices.pick(&[u64::MAX, 99_999_999]),
        ),
        2 => lookup(
            "bpf_cgroup_from_id",
            "bpf_cgroup_release",
            choices.pick(&[0, u64::MAX, 1 << 50]),
        ),
        3 => lookup(
            "bpf_lookup_system_key",
            "bpf_key_put",
            choices.pick(&[3, 5, u64::MAX]),
        ),
        _ => {
            kind = ProgramType::Xdp;
            let size = choices.pick(&[36, 36, 36, 35, 4, 3, 0, 8]);
            let netns = choices.pick(&[-1i32, -1, -2, 0, 7]) as u32;
            format!(
                "r6 = r1\n{words}r1 = {netns:#x} ll\n*(u32 *)(r10 - 44) = r1\nr1 = r6\nr2 = r10\n\
                 r2 += -48\nr3 = {size}\n{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n{}r6 = 2\n\
                 none:\n",
                call("bpf_xdp_get_xfrm_state"),
                call("bpf_xdp_xfrm_state_release")
            )
        }
    };
    let clear = match kind {
        ProgramType::Xdp => String::new(),
        _ => words,
    };
    let text = format!("{clear}{call}r0 = r6\n{}", digest(48, 2));
    Case {
        kind,
        ..Case::tc(choices, text)
    }
}

fn absent_in_syscalls(choices: &mut Choices<'_>) -> Case {
    let clear = bytes_at(424, &[7; 424]);
    let called = match choices.below(3) {
        0 => {
            let size = choices.pick(&[408, 408, 408, 407, 1]);
            let reserved = choices.pick(&[0, 0, 1]);
            format!(
                "r1 = {reserved}\n*(u16 *)(r10 - 394) = r1\nr1 = 0\n*(u8 *)(r10 - 395) = r1\n\
                 r1 = r10\nr1 += -408\nr2 = {size}\nr3 = r10\nr3 += -424\n{}r6 = 1\n\
                 if r0 == 0 goto none\nr1 = r0\n{}r6 = 2\nnone:\n",
                call("bpf_crypto_ctx_create"),
                call("bpf_crypto_ctx_release")
            )
        }
        1 => {
            let flags = choices.pick(&[0u64, 0, 1, 1, 2, u64::MAX]);
            let size = choices.pick(&[0, 1, 8, 16]);
            let from = choices.pick(&[0u64, 1, 0x10]);
            format!(
                "r1 = r10\nr1 += -424\nr2 = {size}\nr3 = {from:#x} ll\nr4 = {flags:#x} ll\n{}r6 = r0\n",
                call("bpf_copy_from_user_str")
            )
        }
        _ => {
            let (serial, flags) = (
                choices.pick(&[0x7fff_fff0u64, 1 << 30]),
                choices.pick(&[0, 8]),
            );
            format!(
                "r1 = {serial:#x} ll\nr2 = {flags}\n{}r6 = 1\nif r0 == 0 goto none\nr1 = r0\n\
                 {}r6 = 2\nnone:\n",
                call("bpf_lookup_user_key"),
                call("bpf_key_put")
            )
        }
    };
    let text = format!("{clear}{called}r0 = r6\n{}", digest(424, 2));
    Case {
        kind: ProgramType::Syscall,
        packet: Vec::new(),
        ..Case::tc(choices, text)
    }
}
