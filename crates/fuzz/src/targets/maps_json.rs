//! Maps as JSON: any text fills maps or has an error, and what is written of maps fills other maps
//! alike.

use beebox::MapsJson;
use beebox::{Instance, Loader, Object};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "maps-json",
    property: "maps are filled from JSON and written as JSON that fills others alike, or have an error",
    words: &[
        "{\"open_ports\": [",
        "{\"blocked\": [",
        "{\"actions\": [",
        "{\"protocols\": [",
        "{\"maps\": ",
        "{\"key\": 80, \"value\": 0}",
        "{\"key\": {\"prefix_length\": 24, \"address\": [192, 0, 2, 0]}, ",
        "\"value\": {\"name\": \"lab\", \"hits\": 1}}",
        "\"values\": [{\"cpu\": 0, \"value\": 7}]}",
        "\"value\": \"tcp\"}",
        "\"owner\": \"task\"",
        "\"address\": \"0x7f0000000000\"",
        "]}",
        ", ",
        "-1",
        "18446744073709551616",
        "1e300",
        "null",
    ],
    run,
};

/// Objects of the examples: a trie, hash tables and per-CPU arrays; a program array.
const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../../../../examples/packets/firewall.bpf.o"),
    include_bytes!("../../../../examples/packets/dispatch.bpf.o"),
];

fn run(input: &[u8]) -> Signature {
    let maps = match MapsJson::try_parse(input) {
        Ok(maps) => maps,
        Err(error) => return Signature::of(std::mem::discriminant(&error.fault)),
    };
    let outcomes = OBJECTS.map(|file| {
        let object = Object::from_bytes(file).expect("an object");
        let instance = load(&object);
        let filled = instance.fill_maps(&object, &maps);
        let outcome = match &filled {
            Ok(left_out) => format!("{}", left_out.len()),
            Err(error) => {
                let letters = error.to_string();
                let letters = letters.chars().filter(|it| it.is_ascii_lowercase());
                letters.take(50).collect()
            }
        };
        hold(&object, &instance);
        outcome
    });
    Signature::of(outcomes)
}

/// Checks that what is written fills the maps of another instance alike.
fn hold(object: &Object, instance: &Instance) {
    let written = instance.maps_json(object).expect("maps that are read");
    let read = MapsJson::parse(written.as_bytes()).expect("JSON that was written");
    let other = load(object);
    let filled = other.fill_maps(object, &read);
    filled.expect("maps that were written");
    let again = other.maps_json(object).expect("maps that are read");
    // Hash tables have their entries in any order.
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text
            .lines()
            .map(|line| line.trim_end_matches(',').to_owned())
            .collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(sorted(&again), sorted(&written), "other contents");
}

fn load(object: &Object) -> Instance {
    let instance = Loader::default().load(object);
    instance.expect("an object that is loaded")
}
