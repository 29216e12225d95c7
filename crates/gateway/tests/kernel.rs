//! The same object in Beebox and in the running kernel: verdicts, rules and counters are equal,
//! and both are those of the first rule that matches, also after the table was replaced.

use crate::support;
use std::thread;

use crate::support::kernel::{CAPACITY, KernelProgram};
use crate::support::{Dice, amount};
use beebox::internal::run::{LoadOptions, SplitMix};
use beebox_gateway::{Compiled, Header, Hits, Hook, Plane};

#[oracle::test]
fn the_kernel_matches_alike() {
    let [sets, packets] = amount("BEEBOX_GATEWAY_KERNEL", [8, 2_000]);
    for (seed, hook) in [(11, Hook::Xdp), (12, Hook::Tc)] {
        let compare = move || compare(seed, hook, sets / 2, packets);
        thread::spawn(compare).join().unwrap();
    }
}

/// Compares random sets and packets, and the definition.
fn compare(seed: u64, hook: Hook, sets: u64, packets: u64) {
    let cpu = 0;
    // The rule of a packet is written to the map of its CPU.
    sys::network::pin_to_cpu(cpu).unwrap();
    let Some(theirs) = KernelProgram::load(hook) else {
        return;
    };
    let kernel = kernel_data::linux_6_18_minimal();
    let options = LoadOptions::default();
    let mut dice = Dice::new(seed);
    let mut set = support::rules(&mut dice, CAPACITY.rules as u64);
    let mut compiled = Compiled::new(&set).unwrap();
    let ours = Plane::load(compiled.table(), hook, CAPACITY, &kernel, true, &options).unwrap();
    let mut total = 0;
    for round in 0..sets {
        let counters = CAPACITY.counters() * (round % 2) as u32;
        theirs.put(compiled.table(), counters);
        let before = theirs.hits(counters);
        let mut random = SplitMix::new(1);
        let mut runs = 0;
        {
            let mut program = ours.program(hook, 0, &mut random).unwrap();
            while runs < packets {
                let frame = support::frame(&mut dice);
                // The kernel's test run takes no shorter ones.
                if frame.len() < 54 {
                    continue;
                }
                let expected = set.first_match(&Header::of(&frame)).rule;
                let run = program.test_run(&frame).unwrap();
                assert_eq!(
                    ours.last_rule(0).unwrap(),
                    Some(expected),
                    "{frame:02x?}\n{set}"
                );
                let other = theirs.verdict_of(&frame, cpu as usize);
                assert_eq!((run.retval, expected), other, "{frame:02x?}\n{set}");
                runs += 1;
            }
        }
        let after = theirs.hits(counters);
        let added: Vec<Hits> = (after.iter().zip(&before))
            .map(|(after, before)| Hits {
                packets: after.packets - before.packets,
                bytes: after.bytes - before.bytes,
            })
            .collect();
        let hits = ours.hits().unwrap();
        assert_eq!(hits, added);
        assert_eq!(hits.iter().map(|hits| hits.packets).sum::<u64>(), runs);
        total += runs;
        set = support::rules(&mut dice, CAPACITY.rules as u64);
        compiled = Compiled::new(&set).unwrap();
        assert_eq!(ours.update(compiled.table()).unwrap(), hits);
    }
    println!("{hook:?}: {sets} sets, {total} packets: definition, Beebox and kernel agree");
}
