//! Addresses as programs see them, and what lies behind pointers to maps and behind numbers that
//! are made pointers: as native code, in the checked engine and in the running kernel.

use crate::support::three::Three;
use crate::support::{file, packets};
use beebox::Engine;
use beebox::internal::object::Object;
use beebox::internal::run::{LoadOptions, LoadedObject};
use spec::kernel::{Privileges, Source};

const OBJECT: &str = "tests/run/pointers.bpf.o";

/// The addresses that a program saw.
fn seen(loaded: &LoadedObject) -> Vec<u64> {
    let bytes = loaded.global_bytes("seen").expect("it is used");
    let words = bytes.as_chunks::<8>().0.iter();
    words.map(|word| u64::from_le_bytes(*word)).collect()
}

#[oracle::test]
fn addresses_look_like_the_kernels() {
    for (name, all) in [("of_tc", 12), ("of_xdp", 6)] {
        let mut three = for_running();
        // No half is zero; frames and bounds of the packet are in Linux's order.
        assert_eq!(three.run_on(name, &[0; 64], &[]), Ok(3), "{name}");
        let ours = seen(&three.checked);
        let theirs = three.kernels_bytes("seen");
        let theirs = theirs.as_deref().map(|bytes| bytes.as_chunks::<8>().0);
        for (at, address) in ours[..all]
            .iter()
            .enumerate()
            .filter(|(_, seen)| **seen != 0)
        {
            let is_like = |address: u64| {
                let halves = [address >> 32, address & u64::from(u32::MAX)];
                address >> 47 == 0x1_ffff && halves.iter().all(|half| *half > 0xffff)
            };
            assert!(is_like(*address), "{name} {at}: {address:#x}");
            if let Some(theirs) = theirs.map(|words| u64::from_le_bytes(words[at])) {
                assert!(is_like(theirs), "{name} {at}: {theirs:#x}, the kernel");
                assert_eq!(
                    address % 8,
                    theirs % 8,
                    "{name} {at}: {address:#x}, {theirs:#x}"
                );
            }
        }
    }
}

#[oracle::test]
fn equal_runs_see_equal_addresses() {
    let of_a_run = || {
        let mut three = for_running();
        three.run_on("of_tc", &[0; 64], &[]).expect("it runs");
        seen(&three.checked)
    };
    assert_eq!(of_a_run(), of_a_run());
}

/// An object in the checked engine, with a seed.
fn seeded(path: &str, seed: u64) -> LoadedObject {
    let bytes = std::fs::read(file(path)).expect("a committed object");
    let options = LoadOptions {
        engine: Engine::Checked,
        seed,
        ..LoadOptions::default()
    };
    let object = Object::open(&bytes).expect("an object");
    let loaded = LoadedObject::load(&object, &kernel_data::linux_6_18_minimal(), &options);
    loaded.unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[oracle::test]
fn seeds_choose_addresses() {
    let of_seed = |seed| {
        let mut loaded = seeded(OBJECT, seed);
        let mut program = loaded.program("of_tc").expect("it is loaded");
        let run = program.test_run(&[0; 64]).expect("it runs");
        (run.retval, seen(&loaded))
    };
    let (zero, seven, eight) = (of_seed(0), of_seed(7), of_seed(8));
    assert_eq!(seven, of_seed(7));
    assert_eq!([zero.0, seven.0, eight.0], [3; 3]);
    for (at, &address) in zero.1.iter().enumerate().filter(|(_, seen)| **seen != 0) {
        let others = [seven.1[at], eight.1[at]];
        assert!(
            others[0] != others[1] && !others.contains(&address),
            "{at}: {others:x?}"
        );
        assert!(
            others
                .iter()
                .all(|other| other % 0x1000 == address % 0x1000),
            "{at}: {others:x?}"
        );
    }
}

#[oracle::test]
fn results_that_do_not_depend_on_addresses_are_those_of_every_seed() {
    let of_seed = |seed| {
        let mut loaded = seeded("../../examples/packets/firewall.bpf.o", seed);
        let mut program = loaded.program("firewall").expect("it is loaded");
        let packets = packets().into_iter().filter(|packet| packet.len() >= 14);
        let runs = packets.map(|packet| program.test_run(&packet).expect("it runs"));
        runs.map(|run| (run.retval, run.data_out))
            .collect::<Vec<_>>()
    };
    let zero = of_seed(0);
    assert!(!zero.is_empty());
    assert_eq!(zero, of_seed(7));
}

/// An object for the running kernel where there is one: types and members have its numbers.
fn for_running() -> Three {
    let types = sys::kernel::running().ok().and_then(|kernel| {
        let types = kernel.btf()?.clone();
        Some((kernel, types))
    });
    let kernel = types.map_or_else(kernel_data::linux_6_18_minimal, |(kernel, types)| {
        let make = move || kernel_data::linux_6_18_minimal_registry(&types);
        (kernel.with_registry(Box::new(make), kernel_data::Configuration::Minimal.source()))
            .with_privileges(Privileges::ALL, Source::Given)
    });
    Three::load_for(OBJECT, &kernel)
}

#[oracle::test]
fn pointers_to_maps_lead_to_what_the_kernels_lead_to() {
    let mut three = for_running();
    let run = three.run_checked_on("of_maps", &[0; 64], &[]);
    assert!(run.is_ok(), "{run:?}");
    three.number("trace");
}

#[oracle::test]
fn numbers_that_are_made_pointers_give_0() {
    let mut three = for_running();
    for address in [
        0u64,
        8,
        0x7f00_0000_1000,
        0xffff_8000_0000_1000,
        u64::MAX - 4095,
    ] {
        three.set_word("where", address);
        assert_eq!(three.run_checked_on("of_casts", &[0; 64], &[]), Ok(3));
    }
}
