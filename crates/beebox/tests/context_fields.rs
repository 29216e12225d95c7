//! Every number in the context of every type with a packet: what programs read there in a test
//! run without a context, and with contexts of all kinds, as native code, in the checked engine and
//! in the running kernel.

use crate::support::packets;
use crate::support::three::Three;
use spec::{Random, SplitMix};

const OF_SKB: [&str; 8] = [
    "classifier",
    "actor",
    "filter",
    "ingress",
    "egress",
    "tunnel_in",
    "tunnel_out",
    "tunnel_xmit",
];

/// Offsets and sizes of the fields of a `struct __sk_buff` that a test run takes.
const GIVEN: [(usize, usize); 12] = [
    (8, 4),
    (32, 4),
    (36, 4),
    (48, 4),
    (52, 4),
    (60, 4),
    (64, 4),
    (152, 8),
    (160, 4),
    (164, 4),
    (176, 4),
    (184, 8),
];

/// A context with some of the fields; now and then one that is not taken.
fn context(random: &mut SplitMix, packet: usize) -> Vec<u8> {
    let mut choose = |below: u32| random.next_u32() % below;
    let mut context = vec![0; [192, 192, 192, 184, 164, 8, 200][choose(7) as usize]];
    for (at, size) in GIVEN {
        let value = match (at, choose(4)) {
            (_, 0 | 1) => continue,
            // Segments and lengths have limits.
            (160, 2) => packet as u64 + u64::from(choose(1000)),
            (164 | 176, 2) => choose(0x1_0001).into(),
            (_, 2) => choose(3).into(),
            _ => u64::from(choose(u32::MAX)) << 17 | u64::from(choose(1 << 16)),
        };
        if let Some(field) = context.get_mut(at..at + size) {
            field.copy_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    if choose(16) == 0 {
        let at = choose(context.len() as u32) as usize;
        context[at] = 1;
    }
    context
}

/// What a program recorded, which is the same everywhere.
fn compare_seen(three: &Three, about: &str) {
    let own = three.native.global_bytes("seen").expect("it is used");
    let checked = three.checked.global_bytes("seen").expect("it is used");
    assert_eq!(own, checked, "{about}: native code, the checked engine");
    if let Some(theirs) = three.kernels_bytes("seen") {
        assert_eq!(own[..], theirs[..own.len()], "{about}: the kernel");
    }
}

#[oracle::test]
fn programs_read_what_the_kernels_programs_read() {
    let mut three = Three::load("tests/run/fields.bpf.o");
    let (mut random, mut results) = (SplitMix::new(7), [0; 2]);
    for (round, packet) in packets().iter().enumerate() {
        for (number, name) in OF_SKB.iter().enumerate() {
            let given = match (round + number) % 4 {
                0 => Vec::new(),
                1 => vec![0; 192],
                _ => context(&mut random, packet.len()),
            };
            let run = three.run_on(name, packet, &given);
            results[usize::from(run.is_ok())] += 1;
            compare_seen(&three, &format!("{name} on {packet:02x?}, {given:02x?}"));
        }
        let mut given = vec![0; 24];
        given[4..8].copy_from_slice(&(packet.len() as u32).to_le_bytes());
        given[12] = random.next_u32() as u8 % 2;
        for given in [&[][..], &given] {
            three.run_on("driver", packet, given).expect("it is taken");
            compare_seen(&three, &format!("driver on {packet:02x?}, {given:02x?}"));
        }
    }
    assert!(results.iter().all(|count| *count > 20), "{results:?}");
}
