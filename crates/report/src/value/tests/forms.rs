//! Forms of addresses, ports and bytes, and generated types whose values are shown and read again.

use btf::{Array, Builder, Encoding, Enumerator, Int, Kind, Member};
use serde_json::json;

use super::*;

/// Types that are made as they are needed.
struct Types(Builder);

impl Types {
    fn int(&mut self, size: u32, encoding: Encoding) -> TypeId {
        let name = self.0.string(format!("int{size}"));
        let (bits, offset) = (size * 8, 0);
        self.0.int(
            name,
            Int {
                size,
                bits,
                offset,
                encoding,
            },
        )
    }

    fn typedef(&mut self, name: &str, of: TypeId) -> TypeId {
        let name = self.0.string(name);
        self.0.reference(Kind::Typedef, name, of)
    }

    fn array(&mut self, element: TypeId, count: u32) -> TypeId {
        let index = self.int(4, Encoding::NONE);
        self.0.array(Array {
            element,
            index,
            count,
        })
    }

    fn composite(
        &mut self,
        kind: Kind,
        name: &str,
        size: u32,
        members: &[(&str, TypeId, u32)],
    ) -> TypeId {
        let members: Vec<Member> = members
            .iter()
            .map(|(name, ty, at)| Member {
                name: self.0.string(name),
                ty: *ty,
                bit_offset: at * 8,
                bits: 0,
            })
            .collect();
        let name = self.0.string(name);
        self.0.composite(kind, name, size, &members)
    }
}

#[test]
fn addresses_and_ports_are_text_by_type_and_name() {
    let mut it = Types(Builder::new());
    let [u8, u16, u32] = [1, 2, 4].map(|size| it.int(size, Encoding::NONE));
    let be16 = it.typedef("__be16", u16);
    let be32 = it.typedef("__be32", u32);
    let u8_alias = it.typedef("__u8", u8);
    let [mac, v6, words] = [(u8_alias, 6), (u8, 16), (u32, 4)].map(|(ty, n)| it.array(ty, n));
    let in6 = it.composite(Kind::Struct, "in6_addr", 16, &[("bytes", v6, 0)]);
    let members = [
        ("peer", be32, 0),
        ("seq", be32, 4),
        ("saddr", u32, 8),
        ("count", u32, 12),
        ("dport", be16, 16),
        ("h_proto", be16, 18),
        ("port", u16, 20),
        ("h_source", mac, 22),
        ("six", in6, 28),
        ("daddr", words, 44),
        ("values", words, 60),
    ];
    let all = it.composite(Kind::Struct, "all", 76, &members);
    let blob = it.0.finish();
    let types = Btf::parse(&blob).unwrap();
    let mut bytes = [0; 76];
    bytes[..4].copy_from_slice(&[192, 0, 2, 7]);
    bytes[4..8].copy_from_slice(&[1, 0, 0, 0]);
    bytes[8..12].copy_from_slice(&[10, 0, 0, 1]);
    bytes[12] = 3;
    bytes[16..22].copy_from_slice(&[1, 187, 8, 0, 80, 0]);
    bytes[22..28].copy_from_slice(&[2, 0, 0, 0, 0, 0xfe]);
    bytes[28..30].copy_from_slice(&[0xfe, 0x80]);
    bytes[44..48].copy_from_slice(&[0x20, 1, 0x0d, 0xb8]);
    bytes[59] = 1;
    let text = shown(&to_json(&types, all, &bytes));
    let expected = json!({
        "peer": "192.0.2.7", "seq": 1, "saddr": "10.0.0.1", "count": 3, "dport": 443,
        "h_proto": 8, "port": 80, "h_source": "02:00:00:00:00:fe", "six": "fe80::",
        "daddr": "2001:db8::1", "values": [0, 0, 0, 0],
    });
    assert_eq!(text, expected);
    let mut read = [0; 76];
    assert_eq!(
        fill_from_json(&types, all, &text, &mut read),
        Ok(Vec::new())
    );
    assert_eq!(read, bytes);
    // Numbers and lists are read as before.
    let plain = json!({"saddr": 0x0100_000a, "daddr": [0xb80d_0120_u32, 0, 0, 0x0100_0000]});
    from_json(&types, all, &plain, &mut read).unwrap();
    assert_eq!(read, bytes);
    for (wrong, why) in [
        (json!({"saddr": "10.0.0"}), "saddr: \"10.0.0\" is no ipv4"),
        (
            json!({"daddr": "10.0.0.1"}),
            "daddr: \"10.0.0.1\" is no ipv6",
        ),
        (json!({"h_source": "2:0"}), "h_source: \"2:0\" is no mac"),
    ] {
        assert_eq!(from_json(&types, all, &wrong, &mut read).unwrap_err(), why);
    }

    // Four numbers of any name are an address where one is given; of one number the order is unknown.
    let address = json!({"values": "2001:db8::2"});
    from_json(&types, all, &address, &mut read).unwrap();
    assert_eq!((&read[60..64], read[75]), (&[0x20, 1, 0x0d, 0xb8][..], 2));
    let unknown = json!({"count": "10.0.0.1"});
    let why = from_json(&types, all, &unknown, &mut read).unwrap_err();
    assert!(why.contains("known by their names"), "{why}");

    let mut formats = Formats::default();
    let set = |formats: &mut Formats, path: &[&str], format: &str| {
        let path = path.iter().map(|name| (*name).to_owned()).collect();
        formats.set(Some(&types), (all, 76), path, format.parse()?)
    };
    set(&mut formats, &["count"], "ipv4").unwrap();
    set(&mut formats, &["values"], "u32").unwrap();
    set(&mut formats, &["port"], "port").unwrap();
    set(&mut formats, &["six"], "hex").unwrap();
    let why = set(&mut formats, &["count"], "mac").unwrap_err();
    assert_eq!(why, "count: two forms, ipv4 and mac");
    let why = set(&mut formats, &["six", "bytes"], "hex").unwrap_err();
    assert_eq!(why, "six.bytes: two forms, hex and hex");
    let why = set(&mut formats, &["seq"], "mac").unwrap_err();
    assert_eq!(why, "seq: it has 4 bytes, mac takes 6");
    let why = set(&mut formats, &["none"], "mac").unwrap_err();
    assert_eq!(why, "none: there is no such field");
    assert!(set(&mut formats, &["count"], "dns").is_err());
    let text = shown(&to_json_as(&types, all, &bytes, &formats));
    assert_eq!(text["count"], "3.0.0.0");
    assert_eq!(text["port"], 0x5000);
    assert_eq!(text["six"].as_str().map(str::len), Some(47));
    let mut read = [0; 76];
    fill_from_json_as(&types, all, &text, &mut read, &formats).unwrap();
    assert_eq!(read, bytes);
}

#[test]
fn bytes_of_no_type_are_text_in_hexadecimal() {
    let bytes = [0x0a, 0xff, 0];
    assert_eq!(shown(&bytes_to_json(&bytes)), json!("0a ff 00"));
    for text in [
        json!("0a ff 00"),
        json!("0aff00"),
        json!(["0x0a", "0xff", "0x00"]),
        json!([10, 255, 0]),
    ] {
        let mut read = [1; 3];
        bytes_from_json(&text, &mut read).unwrap();
        assert_eq!(read, bytes);
    }
    for text in [json!("0a ff"), json!("0a f"), json!("zz zz zz"), json!([1])] {
        assert!(bytes_from_json(&text, &mut [0; 3]).is_err(), "{text}");
    }
}

/// A generator of numbers: SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// A type with its size, and the bytes of a value of it.
fn generate(it: &mut Types, random: &mut Random, depth: u32) -> (TypeId, Vec<u8>) {
    let bytes = |random: &mut Random, len: usize| -> Vec<u8> {
        (0..len).map(|_| random.next() as u8).collect()
    };
    let kinds = if depth == 0 { 6 } else { 9 };
    match random.below(kinds) {
        0 => {
            let size = 1 << random.below(4);
            let encoding = [Encoding::NONE, Encoding::SIGNED][random.below(2)];
            (it.int(size, encoding), bytes(random, size as usize))
        }
        1 => {
            let int = it.int(4, Encoding::NONE);
            (it.typedef("__be32", int), bytes(random, 4))
        }
        2 => {
            let int = it.int(2, Encoding::NONE);
            (it.typedef("__be16", int), bytes(random, 2))
        }
        3 => (it.int(1, Encoding::BOOL), bytes(random, 1)),
        4 => {
            let name = it.0.string("kind");
            let value = Enumerator {
                name: it.0.string("ONE"),
                value: 1,
            };
            let of = it.0.enumeration(name, 4, false, &[value]);
            let number = random.next() as u32 % 3;
            (of, number.to_le_bytes().to_vec())
        }
        5 => {
            let byte = it.int(1, Encoding::NONE);
            let inner = it.array(byte, 16);
            let of = it.composite(Kind::Struct, "in6_addr", 16, &[("bytes", inner, 0)]);
            (of, bytes(random, 16))
        }
        6 => {
            let (size, counts) = [(1, [4, 6, 16, 3]), (4, [4, 1, 2, 3])][random.below(2)];
            let count = counts[random.below(4)];
            let int = it.int(size, Encoding::NONE);
            (it.array(int, count), bytes(random, (size * count) as usize))
        }
        7 => {
            let (element, value) = generate(it, random, depth - 1);
            let count = random.below(3);
            (it.array(element, count as u32), value.repeat(count))
        }
        _ => {
            const NAMES: &[&str] = &[
                "saddr", "daddr", "ip", "port", "dport", "h_source", "mac", "seq", "count", "x",
            ];
            let first = random.below(NAMES.len());
            let (mut members, mut value) = (Vec::new(), Vec::new());
            for at in 0..1 + random.below(5) {
                let (ty, part) = generate(it, random, depth - 1);
                members.push((NAMES[(first + at) % NAMES.len()], ty, value.len() as u32));
                value.extend(part);
            }
            let size = value.len() as u32;
            (it.composite(Kind::Struct, "made", size, &members), value)
        }
    }
}

#[test]
fn values_of_generated_types_are_read_as_they_are_shown() {
    let (mut texts, mut random) = (0, Random(7));
    for round in 0..2_000 {
        let mut it = Types(Builder::new());
        let (ty, bytes) = generate(&mut it, &mut random, 3);
        let blob = it.0.finish();
        let types = Btf::parse(&blob).unwrap();
        let json = serde_json::to_string(&to_json(&types, ty, &bytes)).unwrap();
        texts += usize::from(json.contains("::") || json.matches('.').count() > 2);
        let value = serde_json::from_str(&json).unwrap();
        let mut read = vec![0; bytes.len()];
        let left_out = fill_from_json(&types, ty, &value, &mut read);
        assert_eq!(left_out, Ok(Vec::new()), "round {round}: {json}");
        assert_eq!(read, bytes, "round {round}: {json}");
    }
    assert!(texts > 200, "{texts} values with addresses");
}
