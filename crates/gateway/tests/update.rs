//! The table is replaced while threads filter: each packet is matched against one set or the other,
//! never by a mixture, and no hit is lost.

use crate::support;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::support::Dice;
use crate::support::kernel::{CAPACITY, KernelProgram};
use beebox::internal::run::{LoadOptions, SplitMix};
use beebox_gateway::{Action, Capacity, Compiled, Header, Hook, Plane, RuleSet, Table};
use sys::bpf::TestRun;

const THREADS: u32 = 8;
const UPDATES: u64 = 40;
/// Updates between random sets.
const RANDOM_UPDATES: u64 = 100;

/// A packet from 10.0.0.1 to 192.0.2.7, TCP port 80.
fn packet() -> Vec<u8> {
    let mut packet = vec![0; 64];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[23] = 6;
    packet[26..34].copy_from_slice(&[10, 0, 0, 1, 192, 0, 2, 7]);
    packet[36..38].copy_from_slice(&80u16.to_be_bytes());
    packet
}

#[oracle::test]
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
    let kernel = kernel_data::linux_6_18_minimal();
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

/// Sets that replace each other, and packets.
struct Rounds {
    sets: Vec<RuleSet>,
    tables: Vec<Table>,
    packets: Vec<Vec<u8>>,
    /// Updates that were begun, and those that were done.
    begun: AtomicU64,
    done: AtomicU64,
    is_over: AtomicBool,
}

impl Rounds {
    fn new(seed: u64) -> Rounds {
        let mut dice = Dice::new(seed);
        let sets: Vec<RuleSet> = (0..7).map(|_| support::rules(&mut dice, 200)).collect();
        let mut packets = Vec::new();
        while packets.len() < 256 {
            let frame = support::frame(&mut dice);
            if frame.len() >= 54 {
                packets.push(frame);
            }
        }
        let tables = sets
            .iter()
            .map(|set| Compiled::new(set).unwrap().into_table());
        Rounds {
            tables: tables.collect(),
            sets,
            packets,
            begun: AtomicU64::new(0),
            done: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Matches packet after packet until the updates are over: `verdict_of` returns the answer for a
    /// packet, which has to be `answer` of one of the sets that were in force meanwhile.
    fn filter<T: PartialEq + std::fmt::Debug>(
        &self,
        first: u32,
        mut verdict_of: impl FnMut(&[u8]) -> T,
        answer: impl Fn(&RuleSet, u32) -> T,
    ) {
        let answers: Vec<Vec<T>> = (self.sets.iter())
            .map(|set| {
                let rule = |packet: &Vec<u8>| set.first_match(&Header::of(packet)).rule;
                (self.packets.iter())
                    .map(|packet| answer(set, rule(packet)))
                    .collect()
            })
            .collect();
        let mut number = first as usize;
        while !self.is_over.load(Ordering::SeqCst) {
            let packet = number % self.packets.len();
            number += 1;
            let from = self.done.load(Ordering::SeqCst);
            let found = verdict_of(&self.packets[packet]);
            let mut sets: RangeInclusive<u64> = from..=self.begun.load(Ordering::SeqCst);
            let is_permitted =
                sets.any(|update| answers[update as usize % self.sets.len()][packet] == found);
            assert!(
                is_permitted,
                "packet {packet} from update {from} on: {found:?}"
            );
        }
    }

    /// Makes updates, each by `put`.
    fn update(&self, mut put: impl FnMut(u64, &Table)) {
        for update in 1..=RANDOM_UPDATES {
            self.begun.store(update, Ordering::SeqCst);
            put(update, &self.tables[update as usize % self.tables.len()]);
            self.done.store(update, Ordering::SeqCst);
        }
        self.is_over.store(true, Ordering::SeqCst);
    }
}

#[oracle::test]
fn random_packets_meet_the_set_in_force() {
    let rounds = Rounds::new(5);
    let kernel = kernel_data::linux_6_18_minimal();
    let options = LoadOptions {
        cpus: THREADS,
        ..LoadOptions::default()
    };
    let table = &rounds.tables[0];
    let plane = Plane::load(table, Hook::Tc, CAPACITY, &kernel, true, &options).unwrap();
    std::thread::scope(|scope| {
        for cpu in 0..THREADS {
            let (plane, rounds) = (&plane, &rounds);
            scope.spawn(move || {
                let mut random = SplitMix::new(cpu.into());
                let mut program = plane.program(Hook::Tc, cpu, &mut random).unwrap();
                let verdict_of = |packet: &[u8]| {
                    program.test_run(packet).unwrap();
                    plane.last_rule(cpu).unwrap()
                };
                rounds.filter(cpu, verdict_of, |_, rule| Some(rule));
            });
        }
        rounds.update(|_, table| drop(plane.update(table).unwrap()));
    });
}

#[oracle::test]
fn the_kernel_matches_the_set_in_force() {
    let rounds = Rounds::new(6);
    let Some(theirs) = KernelProgram::load(Hook::Xdp) else {
        return;
    };
    theirs.put(&rounds.tables[0], 0);
    std::thread::scope(|scope| {
        for first in 0..THREADS {
            let (theirs, rounds) = (&theirs, &rounds);
            scope.spawn(move || {
                let verdict_of = |packet: &[u8]| {
                    let request = TestRun::on(packet);
                    let ran = theirs.program.test_run(&request, &mut [], &mut []);
                    ran.unwrap().retval
                };
                rounds.filter(first, verdict_of, |set, rule| match set.action(rule) {
                    Action::Drop => 1,
                    Action::Redirect(_) => 4,
                    _ => 2,
                });
            });
        }
        rounds.update(|update, table| {
            theirs.put(table, CAPACITY.counters() * (update % 2) as u32);
        });
    });
}
