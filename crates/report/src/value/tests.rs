//! Values of every kind, shown and written again.

use btf::{Array, Builder, Encoding, Int, Kind, Linkage, Member, StrOffset, Var, VarSecinfo};
use serde_json::json;

use super::*;

mod forms;

/// A type of every kind that has a JSON form, and the section of a variable of it.
fn types() -> (Vec<u8>, TypeId, TypeId) {
    let mut it = Builder::new();
    let int = |it: &mut Builder, name: &str, size: u32, encoding| {
        let name = it.string(name);
        let (bits, offset) = (size * 8, 0);
        it.int(
            name,
            Int {
                size,
                bits,
                offset,
                encoding,
            },
        )
    };
    let unsigned = int(&mut it, "unsigned int", 4, Encoding(0));
    let character = int(&mut it, "char", 1, Encoding::SIGNED);
    let constant = it.reference(Kind::Const, StrOffset::EMPTY, character);
    let name = it.string("char_t");
    let typedef = it.reference(Kind::Typedef, name, character);
    let [text, numbers] = [constant, typedef].map(|element| {
        it.array(Array {
            element,
            index: unsigned,
            count: 4,
        })
    });
    let name = it.string("float");
    let float = it.float(name, 4);
    let mut composite = |kind, name: &str, size, members: &[(&str, TypeId, u32, u32)]| {
        let members: Vec<Member> = members
            .iter()
            .map(|&(name, ty, bit_offset, bits)| Member {
                name: it.string(name),
                ty,
                bit_offset,
                bits,
            })
            .collect();
        let name = it.string(name);
        it.composite(kind, name, size, &members)
    };
    let first = composite(
        Kind::Union,
        "",
        4,
        &[("a", unsigned, 0, 0), ("b", text, 0, 0)],
    );
    let second = composite(Kind::Struct, "", 4, &[("c", unsigned, 0, 0)]);
    let all = composite(
        Kind::Struct,
        "all",
        24,
        &[
            ("low", unsigned, 0, 3),
            ("high", unsigned, 3, 29),
            ("", first, 32, 0),
            ("", second, 64, 0),
            ("text", text, 96, 0),
            ("numbers", numbers, 128, 0),
            ("float", float, 160, 0),
        ],
    );
    let name = it.string("value");
    let var = it.var(
        name,
        Var {
            ty: all,
            linkage: Linkage(1),
        },
    );
    let name = it.string(".data");
    let section = it.datasec(
        name,
        32,
        &[VarSecinfo {
            var,
            offset: 8,
            size: 24,
        }],
    );
    (it.finish(), all, section)
}

fn shown(value: &Ordered) -> Value {
    serde_json::to_value(value).expect("keys are strings")
}

#[test]
fn what_is_shown_is_read_again() {
    let (blob, all, section) = types();
    let types = Btf::parse(&blob).unwrap();
    let value = [
        &0xffff_fffdu32.to_le_bytes()[..],
        b"ab\0\0",
        &[7, 0, 0, 0],
        b"cde\0",
        b"fg\0\0",
        &1.5f32.to_le_bytes(),
    ]
    .concat();
    let json = shown(&to_json(&types, all, &value));
    assert_eq!(json["low"], "0x5");
    assert_eq!(json["high"], "0x1fffffff");
    assert_eq!(json["text"], "cde");
    assert_eq!(json["numbers"], json!([102, 103, 0, 0]));
    assert_eq!(json["float"], 1.5);
    // JSON has one of the unnamed members: the second.
    let mut read = vec![0; 24];
    from_json(&types, all, &json, &mut read).unwrap();
    let mut expected = value.clone();
    expected[4..8].fill(0);
    assert_eq!(read, expected);

    let data = [&[0xff; 8][..], &value].concat();
    let json = shown(&to_json(&types, section, &data));
    let mut read = vec![0xff; 32];
    from_json(&types, section, &json, &mut read).unwrap();
    expected[4..8].fill(0xff);
    assert_eq!(read[8..], expected);
    let wrong = from_json(&types, section, &json!({".data": [{"x": 1}]}), &mut read);
    assert_eq!(wrong.unwrap_err(), "there is no variable \"x\"");
}

#[test]
fn members_of_the_same_bytes_have_one_value() {
    let (blob, all, _) = types();
    let types = Btf::parse(&blob).unwrap();
    let write = |value| from_json(&types, all, &value, &mut [0; 24]);
    write(json!({"a": 7, "b": "\u{7}", "c": 1})).unwrap();
    write(json!({"low": 1, "high": 2, "b": "ab"})).unwrap();
    for wrong in [json!({"a": 7, "b": "ab"}), json!({"b": "ab", "": {"a": 7}})] {
        let why = write(wrong).unwrap_err();
        assert!(why.contains("another member of the same bytes"), "{why}");
    }
}

#[test]
fn bit_fields_have_no_other_form() {
    let (blob, all, _) = types();
    let types = Btf::parse(&blob).unwrap();
    let mut formats = Formats::default();
    let mut set = |member: &str| {
        let path = vec![member.to_owned()];
        formats.set(Some(&types), (all, 24), path, "hex".parse()?)
    };
    let refused = set("low").unwrap_err();
    assert_eq!(refused, "low: a bit field has no other form");
    set("c").unwrap();
}

#[test]
fn members_that_are_written_replace_their_bits_only() {
    let (blob, all, _) = types();
    let types = Btf::parse(&blob).unwrap();
    let mut bytes = vec![0xff; 24];
    let value = json!({"low": -3, "b": "x", "c": 9, "text": "y"});
    from_json(&types, all, &value, &mut bytes).unwrap();
    assert_eq!(bytes[..4], 0xffff_fffdu32.to_le_bytes());
    assert_eq!(bytes[4..8], [b'x', 0, 0xff, 0xff]);
    assert_eq!(bytes[8..12], [9, 0, 0, 0]);
    assert_eq!(bytes[12..16], [b'y', 0, 0xff, 0xff]);
    for (value, why) in [
        (
            json!({"low": 8}),
            "low: 8 does not fit a bit field of 3 bits",
        ),
        (
            json!({"b": "abcde"}),
            "b: \"abcde\" has more than 4 elements",
        ),
        (
            json!({"float": "x"}),
            "float: \"x\" is no number of 4 or 8 bytes",
        ),
        (
            json!({"d": 1}),
            "there is no member \"d\"; members are low, high, a, b, c, text, numbers, float",
        ),
    ] {
        assert_eq!(from_json(&types, all, &value, &mut bytes).unwrap_err(), why);
    }
}

#[test]
fn unions_in_unions_take_bounded_time() {
    let mut it = Builder::new();
    let (size, bits, offset, encoding) = (4, 32, 0, Encoding(0));
    let int = Int {
        size,
        bits,
        offset,
        encoding,
    };
    let name = it.string("unsigned int");
    let mut ty = it.int(name, int);
    let mut name = it.string("a");
    // Each has the one before twice, the first levels by a name.
    for level in 0..48 {
        if level == 24 {
            name = StrOffset::EMPTY;
        }
        let member = Member {
            name,
            ty,
            bit_offset: 0,
            bits: 0,
        };
        ty = it.composite(Kind::Union, StrOffset::EMPTY, 4, &[member, member]);
    }
    let types = Btf::parse(it.finish()).expect("types");
    let start = std::time::Instant::now();
    let shown = serde_json::to_string(&to_json(&types, ty, &[1, 0, 0, 0])).expect("it is shown");
    assert!(shown.len() < 1 << 14, "{} bytes", shown.len());
    assert_eq!(shown.matches("beyond the limit of").count(), 1, "{shown}");
    for value in [
        json!({"a": 5}),
        json!({"a": {"a": 5}}),
        json!({"b": 5}),
        json!({}),
    ] {
        let _ = fill_from_json(&types, ty, &value, &mut [0; 4]);
    }
    assert!(start.elapsed().as_secs() < 60);
}

#[test]
fn structures_without_bytes_take_bounded_time_and_text() {
    let mut it = Builder::new();
    let names = [it.string("a"), it.string("b")];
    let mut ty = it.composite(Kind::Struct, StrOffset::EMPTY, 0, &[]);
    for _ in 0..48 {
        let members = names.map(|name| Member {
            name,
            ty,
            bit_offset: 0,
            bits: 0,
        });
        ty = it.composite(Kind::Struct, StrOffset::EMPTY, 0, &members);
    }
    let types = Btf::parse(it.finish()).expect("types");
    let shown = serde_json::to_string(&to_json(&types, ty, &[])).expect("it is shown");
    assert!(shown.len() < 1 << 14, "{} bytes", shown.len());
    let text = "\"...\":\"values beyond the limit of 64 for each byte are left out\"";
    assert_eq!(shown.matches(text).count(), 1, "{shown}");
}
