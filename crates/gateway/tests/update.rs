//! The table is replaced while threads filter: each packet is judged by one set or the other,
//! never by a mixture, and no hit is lost.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use beebox::run::{LoadOptions, SplitMix};
use beebox_gateway::{Capacity, Compiled, Hook, Plane, RuleSet};

const THREADS: u32 = 8;
const UPDATES: u64 = 40;

/// A packet from 10.0.0.1 to 192.0.2.7, TCP port 80.
fn packet() -> Vec<u8> {
    let mut packet = vec![0; 64];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[23] = 6;
    packet[26..34].copy_from_slice(&[10, 0, 0, 1, 192, 0, 2, 7]);
    packet[36..38].copy_from_slice(&80u16.to_be_bytes());
    packet
}

#[test]
fn packets_meet_one_table_or_the_other() {
    // Both sets drop the packet, by different rules and different fields; every mixture of the
    // fields of both would pass it.
    let sets = [
        "default pass\ndrop proto tcp from 10.0.0.1 to 192.0.2.7\npass from any\n",
        "default pass\npass proto udp from 10.0.0.0/8\npass to 198.51.100.0/24\ndrop to 192.0.2.0/24\n",
    ];
    let tables = sets.map(|text| {
        let compiled = Compiled::new(&RuleSet::parse(text).unwrap()).unwrap();
        compiled.into_table()
    });
    let capacity = Capacity {
        table: tables.iter().map(|table| table.size()).max().unwrap(),
        rules: 8,
    };
    let kernel = kernel_data::linux_6_18();
    let options = LoadOptions {
        cpus: THREADS,
        ..LoadOptions::default()
    };
    let plane = Plane::load(&tables[0], Hook::Xdp, capacity, &kernel, false, &options).unwrap();
    let is_done = AtomicBool::new(false);
    let runs = AtomicU64::new(0);
    let mut counted = 0;
    std::thread::scope(|scope| {
        for cpu in 0..THREADS {
            let (plane, is_done, runs) = (&plane, &is_done, &runs);
            scope.spawn(move || {
                let mut random = SplitMix::new(cpu.into());
                let mut program = plane.program(Hook::Xdp, cpu, &mut random).unwrap();
                let packet = packet();
                let mut own = 0;
                while !is_done.load(Ordering::Relaxed) || own == 0 {
                    let run = program.test_run(&packet).unwrap();
                    assert_eq!(run.verdict.name, "XDP_DROP");
                    own += 1;
                }
                runs.fetch_add(own, Ordering::Relaxed);
            });
        }
        for update in 1..=UPDATES {
            let hits = plane.update(&tables[update as usize % 2]).unwrap();
            counted += hits.iter().map(|hits| hits.packets).sum::<u64>();
        }
        is_done.store(true, Ordering::Relaxed);
    });
    counted += plane
        .hits()
        .unwrap()
        .iter()
        .map(|hits| hits.packets)
        .sum::<u64>();
    assert_eq!(counted, runs.into_inner());
}
