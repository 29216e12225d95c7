//! The same object in Beebox and in the running kernel: verdicts, rules and counters are equal,
//! also after the table was replaced.

mod support;

use beebox::run::{LoadOptions, SplitMix};
use beebox_gateway::{Capacity, Compiled, Header, Hits, Hook, OBJECT, Plane, Table, set_up};
use support::Dice;
use sys::bpf::{LoadedProgram, Map, TestRun};
use testkit::kernel::load::{LoadFault, LoadRequest, Loaded, load};

const CAPACITY: Capacity = Capacity {
    table: 1 << 20,
    rules: 400,
};

/// The data plane in the kernel.
struct Theirs {
    program: LoadedProgram,
    names: Vec<String>,
    maps: Vec<Option<Map>>,
    /// Keeps the map of the current table.
    _inner: Option<Map>,
}

impl Theirs {
    /// `None` if the kernel takes no programs from this process.
    fn load(hook: Hook) -> Option<Theirs> {
        let mut object = set_up(OBJECT, CAPACITY, true).unwrap();
        object.set_autoload(|program| program.name == hook.program());
        let kernel = kernel_data::linux_6_18();
        let linked = object.link(&kernel).unwrap();
        let program = &linked.programs[0].program;
        let request = LoadRequest {
            log_level: 4,
            log_size: 1 << 20,
        };
        let Loaded { answer, log, maps } = match load(program, request) {
            Err(LoadFault::Map { errno, .. }) if matches!(errno.0, 1 | 38) => {
                oracle::skip("the gateway in the kernel", "bpf(2) is not permitted");
                return None;
            }
            loaded => loaded.unwrap(),
        };
        let program_in = answer
            .result
            .unwrap_or_else(|errno| panic!("{errno}: {log}"));
        Some(Theirs {
            program: program_in,
            names: program.maps().iter().map(|map| map.name.clone()).collect(),
            maps,
            _inner: None,
        })
    }

    fn map(&self, name: &str) -> &Map {
        let at = self.names.iter().position(|it| it == name).unwrap();
        self.maps[at].as_ref().unwrap()
    }

    fn put(&mut self, table: &Table, counters: u32) {
        let request = sys::bpf::MapRequest {
            map_type: 2,
            key_size: 4,
            value_size: CAPACITY.table as u32,
            max_entries: 1,
            ..sys::bpf::MapRequest::default()
        };
        let inner = Map::create(&request).unwrap();
        let mut bytes = table.to_bytes();
        Table::set_counters_of(&mut bytes, counters);
        bytes.resize(CAPACITY.table, 0);
        inner.update(&[0; 4], &bytes).unwrap();
        let descriptor = inner.descriptor().to_ne_bytes();
        self.map("tables").update(&[0; 4], &descriptor).unwrap();
        self._inner = Some(inner);
    }

    fn hits(&self, first: u32) -> Vec<Hits> {
        let counters = self.map("counters");
        let mut value = vec![0; counters.value_len()];
        (first..first + CAPACITY.counters())
            .map(|index| {
                counters.lookup(&index.to_ne_bytes(), &mut value).unwrap();
                Hits::sum(&value)
            })
            .collect()
    }
}

#[test]
fn the_kernel_judges_alike() {
    let kernel = kernel_data::linux_6_18();
    for (seed, hook) in [(11, Hook::Xdp), (12, Hook::Tc)] {
        let Some(mut theirs) = Theirs::load(hook) else {
            return;
        };
        let mut dice = Dice::new(seed);
        let mut set = support::rules(&mut dice, 400);
        let mut compiled = Compiled::new(&set).unwrap();
        let options = LoadOptions::default();
        let table = compiled.table();
        let ours = Plane::load(table, hook, CAPACITY, &kernel, true, &options).unwrap();
        for round in 0..4 {
            let counters = CAPACITY.counters() * (round % 2);
            theirs.put(compiled.table(), counters);
            let before = theirs.hits(counters);
            let mut random = SplitMix::new(1);
            let mut runs = 0;
            {
                let mut program = ours.program(hook, 0, &mut random).unwrap();
                for _ in 0..2_000 {
                    let frame = support::frame(&mut dice);
                    if frame.len() < 54 {
                        continue;
                    }
                    let run = program.test_run(&frame).unwrap();
                    let other = theirs
                        .program
                        .test_run(&TestRun::on(&frame), &mut [], &mut []);
                    assert_eq!(run.retval, other.unwrap().retval, "{frame:02x?}\n{set}");
                    let found = ours.last_rule(0).unwrap();
                    assert_eq!(found, Some(set.first_match(&Header::of(&frame)).rule));
                    runs += 1;
                }
            }
            let after = theirs.hits(counters);
            let added: Vec<Hits> = after
                .iter()
                .zip(&before)
                .map(|(after, before)| Hits {
                    packets: after.packets - before.packets,
                    bytes: after.bytes - before.bytes,
                })
                .collect();
            let hits = ours.hits().unwrap();
            assert_eq!(hits, added);
            assert_eq!(hits.iter().map(|hits| hits.packets).sum::<u64>(), runs);
            set = support::rules(&mut dice, 400);
            compiled = Compiled::new(&set).unwrap();
            assert_eq!(ours.update(compiled.table()).unwrap(), hits);
        }
    }
}
