//! Families whose calls do not change the packet: text, numbers, checksums, maps, process.

use program::MapParams;
use spec::maps::MapKind;

use super::Family;
use super::case::{Case, MAP, Setup, VALUE, bytes_at, constant, digest, words};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("differences of checksums", csum_diff),
    Family::new("differences of checksums of any size", csum_diff_size),
    Family::new("bytes of packets", load_bytes),
    Family::new("bytes from headers of packets", load_bytes_relative),
    Family::new("bytes stored in packets", store_bytes),
    Family::new("replaced checksums", csum_replace),
    Family::new("numbers in text", strtox),
    Family::new("compared text", strncmp),
    Family::new("formatted text", snprintf),
    Family::new("values without keys", queues),
    Family::new("records in rings", rings),
    Family::new("the process", process),
];

fn csum_diff(choices: &mut Choices<'_>) -> Case {
    let stores = words(choices, 8);
    let mut side = |register: u32| {
        let size = 4 * choices.below(9);
        let (from, size_in) = (register, register + 1);
        match (size, choices.one_in(8)) {
            (0, true) => format!("r{from} = 0\nr{size_in} = 0\n"),
            _ => format!(
                "r{from} = r10\nr{from} += -{}\nr{size_in} = {size}\n",
                size.max(4)
            ),
        }
    };
    let (from, to) = (side(1), side(3));
    let seed = choices.value();
    let text = format!("{stores}{from}{to}r5 = {seed:#x} ll\ncall 28\nexit");
    Case::tc(choices, text)
}

fn csum_diff_size(choices: &mut Choices<'_>) -> Case {
    let stores = words(choices, 2);
    let size = 1 + choices.below(16);
    let text =
        format!("{stores}r1 = r10\nr1 += -16\nr2 = {size}\nr3 = 0\nr4 = 0\nr5 = 0\ncall 28\nexit");
    Case::tc(choices, text)
}

/// An offset in a packet of some length: any number, one around its end, or one inside.
fn offset_in(choices: &mut Choices<'_>, len: usize, before_end: u32) -> u64 {
    match choices.below(4) {
        0 => choices.value(),
        1 => len as u64 - u64::from(choices.below(before_end)),
        _ => choices.below(len as u32).into(),
    }
}

fn load_bytes(choices: &mut Choices<'_>) -> Case {
    let packet = Case::tc(choices, String::new()).packet;
    let len = 1 + choices.below(16);
    let offset = offset_in(choices, packet.len(), 20);
    // The error, mixed with every byte that was written.
    let text = format!(
        "*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 7\nr2 = {offset:#x} ll\nr3 = r10\n\
         r3 += -16\nr4 = {len}\ncall 26\nr1 = *(u64 *)(r10 - 8)\nr0 *= 31\nr0 += r1\n\
         r1 = *(u64 *)(r10 - 16)\nr0 *= 31\nr0 += r1\nr1 = r0\nr1 >>= 32\nr0 ^= r1\nexit"
    );
    Case {
        packet,
        ..Case::tc(choices, text)
    }
}

fn load_bytes_relative(choices: &mut Choices<'_>) -> Case {
    let packet = Case::tc(choices, String::new()).packet;
    let len = 1 + choices.below(16);
    let offset = offset_in(choices, packet.len(), 34);
    let (start, digest) = (choices.below(3), digest(16, 2));
    let text = format!(
        "*(u64 *)(r10 - 8) = 7\n*(u64 *)(r10 - 16) = 7\nr2 = {offset:#x} ll\nr3 = r10\n\
         r3 += -16\nr4 = {len}\nr5 = {start}\ncall 68\n{digest}"
    );
    Case {
        packet,
        ..Case::tc(choices, text)
    }
}

fn store_bytes(choices: &mut Choices<'_>) -> Case {
    let packet = Case::tc(choices, String::new()).packet;
    let len = 1 + choices.below(16);
    let offset = offset_in(choices, packet.len(), 20);
    let flags = choices.pick(&[0u64, 0, 0, 1, 2, 3, 4, 1 << 32]);
    let words = words(choices, 2);
    let text = format!(
        "r6 = r1\n{words}r1 = r6\nr2 = {offset:#x} ll\nr3 = r10\nr3 += -16\nr4 = {len}\n\
         r5 = {flags:#x} ll\ncall 9\nexit"
    );
    Case {
        packet,
        ..Case::tc(choices, text)
    }
}

fn csum_replace(choices: &mut Choices<'_>) -> Case {
    let packet = Case::tc(choices, String::new()).packet;
    let len_of_packet = packet.len();
    let helper = choices.pick(&[10, 11]);
    let offset = match choices.below(8) {
        0 => choices.value(),
        1 => len_of_packet as u64 - choices.below(4) as u64,
        _ => u64::from(choices.below(len_of_packet as u32)) & !1,
    };
    let marks = match helper {
        11 => choices.pick(&[0, 0x10, 0x20, 0x30, 0x60, 0x90]),
        _ => 0,
    };
    let flags = match choices.below(10) {
        0 => choices.value(),
        _ => marks | choices.pick(&[0, 2, 2, 4, 4, 3, 8]),
    };
    let from = if choices.one_in(2) {
        0
    } else {
        choices.value()
    };
    let to = choices.value();
    let text = format!(
        "r2 = {offset:#x} ll\nr3 = {from:#x} ll\nr4 = {to:#x} ll\nr5 = {flags:#x} ll\n\
         call {helper}\nexit"
    );
    Case {
        packet,
        ..Case::tc(choices, text)
    }
}

fn strtox(choices: &mut Choices<'_>) -> Case {
    let helper = choices.pick(&[105, 106]);
    let mut text: Vec<u8> = (0..choices.below(3))
        .map(|_| choices.pick(b" \t\n\xa0\x0b"))
        .collect();
    text.extend(choices.pick(&["", "", "-", "+", "--"]).bytes());
    text.extend(choices.pick(&["", "", "0", "0x", "0X", "00"]).bytes());
    let digits = choices.pick(&["01", "01234567", "0123456789", "0123456789abcdefABCDEFgx"]);
    let count = choices.pick(&[0, 1, 3, 10, 18, 19, 20, 22, 70]);
    text.extend((0..count).map(|_| choices.pick(digits.as_bytes())));
    text.extend(choices.pick(&["", " ", "z", "9223372036854775808"]).bytes());
    text.resize(text.len().clamp(1, 120), 0);
    let flags = match choices.below(8) {
        0 => choices.value(),
        _ => choices.pick(&[0, 0, 0, 8, 10, 16, 2]),
    };
    let len = 1 + choices.below(text.len() as u32);
    let stores = bytes_at(136, &text);
    let digest = digest(8, 1);
    let text = format!(
        "{stores}*(u64 *)(r10 - 8) = 7\nr1 = r10\nr1 += -136\nr2 = {len}\n\
         r3 = {flags:#x} ll\nr4 = r10\nr4 += -8\ncall {helper}\n{digest}"
    );
    Case::tc(choices, text)
}

fn strncmp(choices: &mut Choices<'_>) -> Case {
    let second: Vec<u8> = (0..choices.below(20))
        .map(|_| choices.pick(b"ab\xff"))
        .collect();
    let mut first = second.clone();
    first.resize(24, 0);
    for _ in 0..choices.below(2) {
        first[choices.below(20) as usize] = choices.pick(b"ab\xff\0");
    }
    let len = 1 + choices.below(24);
    let stores = bytes_at(24, &first);
    let text =
        format!("{stores}r1 = r10\nr1 += -24\nr2 = {len}\nr3 = {VALUE:#x} ll\ncall 182\nexit");
    Case::tc(choices, text).with_map(constant(&second))
}

fn snprintf(choices: &mut Choices<'_>) -> Case {
    let kinds = [
        "d", "i", "u", "x", "X", "ld", "lu", "lx", "lld", "llX", "c", "px", "s", "pI4", "pi4",
        "pI6", "pi6",
    ];
    let flags = ["", "", "", "0", "-", "+", " ", "+0", "-0", "- "];
    let widths = ["", "", "1", "5", "12", "20"];
    let (mut format, mut data) = (String::new(), Vec::new());
    for _ in 0..choices.below(5) {
        let kind = choices.pick(&kinds);
        // What follows an address behind the end of the buffer reads wrong arguments.
        if format.contains("%pI") || format.contains("%pi") {
            break;
        }
        let is_plain = kind.len() > 1 && kind.starts_with('p');
        if !is_plain {
            format += &format!("%{}{}{kind}", choices.pick(&flags), choices.pick(&widths));
        } else {
            format += &format!("%{kind}");
        }
        format += choices.pick(&["", " ", "%%", ", "]);
        if matches!(kind, "s") {
            format += " ";
        }
        let is_address = kind == "s" || kind.contains('I') || kind.contains("pi");
        data.push(match is_address {
            true => choices.pick(&[0, 1, u64::MAX]),
            false => choices.value(),
        });
    }
    format += choices.pick(&["", "!", "end"]);
    data.resize(data.len() + choices.below(2) as usize, 5);
    let size = choices.below(65);
    let bytes: Vec<u8> = data.iter().flat_map(|word| word.to_le_bytes()).collect();
    let stores = bytes_at(64, &[0; 64]) + &bytes_at(160, &bytes);
    let (len, digest) = (bytes.len(), digest(64, 8));
    let pointer = match len {
        0 => "r4 = 0".to_owned(),
        _ => "r4 = r10\nr4 += -160".to_owned(),
    };
    let text = format!(
        "{stores}r1 = r10\nr1 += -64\nr2 = {size}\nr3 = {VALUE:#x} ll\n{pointer}\n\
             r5 = {len}\ncall 165\n{digest}"
    );
    Case::tc(choices, text).with_map(constant(format.as_bytes()))
}

fn queues(choices: &mut Choices<'_>) -> Case {
    let kind = choices.pick(&[MapKind::Queue, MapKind::Stack]);
    let params = MapParams {
        map_type: kind.number(),
        value_size: 8,
        max_entries: 3,
        ..MapParams::default()
    };
    let mut text = "r6 = 0\n*(u64 *)(r10 - 8) = 0\n".to_owned();
    for _ in 0..12 {
        let mix = "r1 = *(u64 *)(r10 - 8)\nr6 *= 31\nr6 += r0\nr6 *= 31\nr6 += r1\n";
        let value = format!("r1 = {MAP:#x} ll\nr2 = r10\nr2 += -8\n");
        text += &match choices.below(4) {
            0 => format!("{value}call 88\n{mix}"),
            1 => format!("{value}call 89\n{mix}"),
            _ => {
                let store = words(choices, 1);
                let flags = choices.pick(&[0u64, 0, 2, 1, 3, 1 << 32]);
                format!("{store}{value}r3 = {flags:#x} ll\ncall 87\n{mix}")
            }
        };
    }
    text += &format!("r0 = r6\n{}", digest(8, 1));
    Case::tc(choices, text).with_map(Setup(params, None))
}

fn rings(choices: &mut Choices<'_>) -> Case {
    let params = MapParams {
        map_type: MapKind::Ringbuf.number(),
        max_entries: 4096,
        ..MapParams::default()
    };
    let mut text = "r6 = 0\n".to_owned() + &bytes_at(400, &[7; 400]);
    let mut count = 0;
    for _ in 0..15 {
        let end = match choices.below(3) {
            0 => "",
            1 => "*(u64 *)(r0 + 0) = 5\nr1 = r0\nr2 = 0\ncall 132\n",
            _ => "r1 = r0\nr2 = 1\ncall 133\n",
        };
        if !end.is_empty() {
            let size = choices.pick(&[8u32, 9, 100, 1000, 2040, 4080, 4088, 5000, 1 << 30]);
            let flags = choices.pick(&[0u64, 0, 0, 0, 1, 1 << 32]);
            let at = count;
            count += 1;
            text += &format!(
                "r1 = {MAP:#x} ll\nr2 = {size}\nr3 = {flags:#x} ll\ncall 131\nr6 *= 31\n\
                 if r0 == 0 goto full{at}\nr6 += 1\n{end}full{at}:\n"
            );
            continue;
        }
        let size = choices.below(401);
        let flags = choices.pick(&[0u64, 0, 0, 1, 2, 3, 4, 1 << 32]);
        let query = choices.pick(&[0u64, 0, 1, 2, 3, 4, 5, 1 << 32]);
        text += &format!(
            "r1 = {MAP:#x} ll\nr2 = r10\nr2 += -400\nr3 = {size}\nr4 = {flags:#x} ll\n\
             call 130\nr6 *= 31\nr6 += r0\nr1 = {MAP:#x} ll\nr2 = {query:#x} ll\n\
             call 134\nr6 *= 31\nr6 += r0\n"
        );
    }
    text += &format!("r0 = r6\n{}", digest(400, 1));
    Case::tc(choices, text).with_map(Setup(params, None))
}

fn process(choices: &mut Choices<'_>) -> Case {
    let size = 1 + choices.below(24);
    let clear = bytes_at(24, &[7; 24]);
    let call = match choices.below(4) {
        0 => "call 14\n".to_owned(),
        1 => "call 15\n".to_owned(),
        2 => format!("r1 = r10\nr1 += -24\nr2 = {size}\ncall 16\n"),
        _ => {
            let (dev, ino) = (choices.value(), choices.value());
            format!(
                "r1 = {dev:#x} ll\nr2 = {ino:#x} ll\nr3 = r10\nr3 += -24\nr4 = {size}\n\
                 call 120\n"
            )
        }
    };
    let text = format!("{clear}{call}{}", digest(24, 3));
    Case::tc(choices, text)
}
