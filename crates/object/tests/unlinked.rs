//! Objects that are shown and not linked: big-endian ones, and those with legacy maps.

use std::fs;
use std::path::Path;

use beebox_object::Object;
use beebox_object::unlinked::{LegacyMapDef, UnlinkedObject};
use isa::ebpf::decode;

fn bytes(name: &str) -> Vec<u8> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects");
    fs::read(directory.join(name)).expect("an object")
}

/// Instructions of each program and function, with names, in the order of the file.
fn listing(object: &UnlinkedObject<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for (_, code) in object.program_defs().iter() {
        lines.push(format!("{}:", code.name));
        for (slot, insn) in decode(&object.insns(code)).into_iter().enumerate() {
            let name = object.reference(code, slot, insn).unwrap_or_default();
            lines.push(format!("{insn} {name}"));
        }
    }
    lines
}

#[oracle::test]
fn both_byte_orders_have_the_same_listing() {
    for (little, big) in [
        ("calls.o", "refused/big_endian.o"),
        ("refused/old_maps.o", "refused/old_maps_big_endian.o"),
    ] {
        let (little, big) = (bytes(little), bytes(big));
        let little = UnlinkedObject::open(&little).unwrap();
        let big = UnlinkedObject::open(&big).unwrap();
        assert!(!little.is_big_endian() && big.is_big_endian());
        assert_eq!(listing(&little), listing(&big));
        assert_eq!(little.license(), big.license());
        let definitions = |object: &UnlinkedObject<'_>| -> Vec<_> {
            let maps = object.maps().iter();
            maps.map(|map| (map.name.clone(), map.definition)).collect()
        };
        assert_eq!(definitions(&little), definitions(&big));
    }
}

#[oracle::test]
fn legacy_maps_have_their_members_and_are_named() {
    for name in ["refused/old_maps.o", "refused/gobpf.o"] {
        check_legacy_map(name);
    }
    // BCC makes the definition.
    let file = bytes("refused/bcc.o");
    let object = UnlinkedObject::open(&file).unwrap();
    let maps = object.maps().iter();
    let maps: Vec<_> = maps.map(|map| (&map.name[..], map.definition)).collect();
    assert_eq!(maps, [("table", None)]);
}

fn check_legacy_map(name: &str) {
    let file = bytes(name);
    assert!(Object::open(&file).is_err());
    let object = UnlinkedObject::open(&file).unwrap();
    assert!(object.has_legacy_maps());
    let [map] = object.maps() else {
        panic!("{:?}", object.maps());
    };
    let expected = LegacyMapDef {
        map_type: 1,
        key_size: 4,
        value_size: 8,
        max_entries: 16,
        flags: 0,
    };
    assert_eq!((&map.name[..], map.definition), ("table", Some(expected)));
    let listing = listing(&object);
    assert!(
        listing.contains(&"r1 = 0x0 ll table".to_owned()),
        "{listing:?}"
    );
    let (_, program) = object.program_defs().iter().next().unwrap();
    assert!(!object.line_info(program).is_empty());
}

#[oracle::test]
fn calls_and_addresses_name_functions() {
    let file = bytes("refused/big_endian.o");
    let listing = listing(&UnlinkedObject::open(&file).unwrap());
    let named = |name: &str| listing.iter().filter(|line| line.ends_with(name)).count();
    assert!(named(" leaf") >= 4, "{listing:#?}");
    for name in [
        " middle",
        " hidden",
        " replaceable",
        " each",
        " every",
        " counts",
    ] {
        assert!(named(name) >= 1, "{name}: {listing:#?}");
    }
}

#[oracle::test]
fn damaged_objects_are_refused_or_read_without_panic() {
    for name in [
        "refused/big_endian.o",
        "refused/old_maps_big_endian.o",
        "refused/old_maps.o",
    ] {
        let whole = bytes(name);
        for at in (0..whole.len()).step_by(7) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0xff;
            if let Ok(object) = UnlinkedObject::open(&damaged) {
                listing(&object);
            }
            if let Ok(object) = UnlinkedObject::open(&whole[..at]) {
                listing(&object);
            }
        }
    }
}
