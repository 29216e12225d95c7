//! Programs of types without a packet of a device, as native code, in the checked engine and in
//! the running kernel: results, flow keys, contexts, errors, and what the programs saw.

use crate::support::packets;
use crate::support::three::Three;
use spec::kernel::{Privileges, Source};
use spec::{Random, SplitMix};

const OBJECT: &str = "tests/run/types.bpf.o";
const HOOK: &str = "tests/run/hook.bpf.o";

/// Bytes by a generator, often small or equal to others.
fn bytes(random: &mut SplitMix, len: usize) -> Vec<u8> {
    let mut byte = || {
        let number = random.next_u32();
        let mask = [0, 1, 7, 0xff][(number >> 8) as usize % 4];
        number as u8 & mask
    };
    (0..len).map(|_| byte()).collect()
}

#[oracle::test]
fn flow_dissectors_fill_the_keys_that_the_kernels_do() {
    let mut three = Three::load(OBJECT);
    let (mut random, mut results) = (SplitMix::new(1), [0; 4]);
    for (round, packet) in packets().iter().enumerate() {
        let mut flags = vec![0; 56];
        flags[48..52].copy_from_slice(&random.next_u32().to_le_bytes());
        let given: [&[u8]; 3] = [&[], &flags, &bytes(&mut random, 56)];
        let len = match random.next_u32() as usize % 3 {
            0 => packet.len(),
            _ => random.next_u32() as usize % (packet.len() + 1),
        };
        three.set("parsers", 0, (round % 7 != 0).then_some("ipv4"));
        let run = three.run_on("dissect", &packet[..len], given[round % 3]);
        results[run.map_or(3, |result| result.min(2) as usize)] += 1;
        three.number("trace");
    }
    assert!(results.iter().all(|count| *count > 3), "{results:?}");
}

#[oracle::test]
fn lookups_of_sockets_see_the_connection_that_the_kernels_see() {
    let mut three = Three::load(OBJECT);
    let (mut random, mut results) = (SplitMix::new(2), [0; 3]);
    for _ in 0..400 {
        let size = [72, 72, 72, 64, 68, 80, 12][random.next_u32() as usize % 7];
        let mut context = bytes(&mut random, size);
        context[..8].fill(0);
        let family = [2u32, 2, 10, 10, 0x1_0002, 1][random.next_u32() as usize % 6];
        context[8..12].copy_from_slice(&family.to_le_bytes());
        let port = random.next_u32() & [0xffff, 0xffff, 0x1_ffff][random.next_u32() as usize % 3];
        if let Some(field) = context.get_mut(60..64) {
            field.copy_from_slice(&port.to_le_bytes());
        }
        if random.next_u32() % 8 != 0 && context.len() > 64 {
            context[64..].fill(0);
        }
        three.set_number("added", random.next_u32() & 1);
        let run = three.run_on("lookup", &[], &context);
        results[run.map_or(2, |result| result as usize)] += 1;
        three.number("trace");
    }
    assert!(results.iter().all(|count| *count > 20), "{results:?}");
}

#[oracle::test]
fn netfilter_programs_decide_as_the_kernels_do() {
    let mut three = Three::load(OBJECT);
    let (mut random, mut results) = (SplitMix::new(3), [0; 3]);
    for packet in packets() {
        let given = match random.next_u32() % 3 {
            0 => Vec::new(),
            _ => {
                let mut state = vec![0; 48];
                state[0] = (random.next_u32() % 6) as u8;
                state[1] = [2, 10, 7][random.next_u32() as usize % 3];
                state
            }
        };
        let run = three.run_on("filter", &packet, &given);
        results[run.map_or(2, |result| result as usize)] += 1;
    }
    assert!(results.iter().all(|count| *count > 20), "{results:?}");
}

#[oracle::test]
fn netfilter_programs_read_the_objects_that_the_kernels_read() {
    // Members lie where the kernel that runs them has them.
    let types = sys::kernel::running().ok().and_then(|kernel| {
        let types = kernel.btf()?.clone();
        Some((kernel, types))
    });
    let kernel = types.map_or_else(kernel_data::linux_6_18_minimal, |(kernel, types)| {
        let make = move || kernel_data::linux_6_18_minimal_registry(&types);
        (kernel.with_registry(Box::new(make), kernel_data::Configuration::Minimal.source()))
            .with_privileges(Privileges::ALL, Source::Given)
    });
    let mut three = Three::load_for(HOOK, &kernel);
    let (mut random, mut results, mut devices) = (SplitMix::new(4), [0; 3], [0; 3]);
    for packet in packets() {
        let given = match random.next_u32() % 3 {
            0 => Vec::new(),
            _ => {
                let mut state = vec![0; 48];
                state[0] = (random.next_u32() % 6) as u8;
                state[1] = [2, 10][random.next_u32() as usize % 2];
                state
            }
        };
        let run = three.run_checked_on("null_objects", &packet, &given);
        devices[run.map_or(2, |result| result as usize)] += 1;
        let run = three.run_checked_on("hook_objects", &packet, &given);
        results[run.map_or(2, |result| result as usize)] += 1;
        three.number("trace");
    }
    assert!(results.iter().all(|count| *count > 10), "{results:?}");
    assert!(devices.iter().all(|count| *count > 10), "{devices:?}");
}

#[oracle::test]
fn syscall_programs_leave_the_context_that_the_kernels_leave() {
    let mut three = Three::load(OBJECT);
    let (mut random, mut results) = (SplitMix::new(4), [0; 3]);
    for _ in 0..400 {
        let len = [32, 32, 40, 100, 31, 8, 0][random.next_u32() as usize % 7];
        let mut context = bytes(&mut random, len);
        if let Some(choice) = context.get_mut(31) {
            *choice %= 3;
        }
        let run = three.run_on("request", &[], &context);
        results[run.map_or(2, |result| usize::from(result >= 1000))] += 1;
        three.number("trace");
    }
    assert!(results.iter().all(|count| *count > 20), "{results:?}");
    for len in [0, 16_000, 16_003, 16_004, 16_008, 65_535] {
        let context = bytes(&mut random, len);
        let run = three.run_on("long_context", &[], &context);
        assert_eq!(run.is_ok(), len >= 16_004, "{len}: {run:?}");
    }
}

#[oracle::test]
fn raw_tracepoints_get_the_arguments_that_the_kernels_get() {
    let mut three = Three::load(OBJECT);
    let (mut random, mut taken) = (SplitMix::new(5), 0);
    for len in (0..=104).cycle().take(400) {
        let context = bytes(&mut random, len);
        for name in ["arguments", "all_arguments"] {
            taken += u32::from(three.run_on(name, &[], &context).is_ok());
        }
        three.number("trace");
    }
    assert!(taken > 200, "{taken}");
}
