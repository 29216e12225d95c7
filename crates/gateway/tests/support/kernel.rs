//! The data plane in the running kernel.

use beebox_gateway::{Capacity, Hits, Hook, OBJECT, Table, set_up};
use kernel_client::load::{LoadFault, LoadRequest, Loaded, load};
use sys::bpf::{LoadedProgram, Map, TestRun};

/// Room of the tables and counters.
pub(crate) const CAPACITY: Capacity = Capacity {
    table: 1 << 20,
    rules: 400,
};

/// The data plane in the kernel.
pub(crate) struct KernelProgram {
    pub(crate) program: LoadedProgram,
    names: Vec<String>,
    maps: Vec<Option<Map>>,
}

impl KernelProgram {
    /// `None` if the kernel takes no programs from this process.
    pub(crate) fn load(hook: Hook) -> Option<KernelProgram> {
        let mut object = set_up(OBJECT, CAPACITY, true).unwrap();
        object.set_autoload(|program| program.name == hook.program());
        let kernel = kernel_data::linux_6_18_minimal();
        let linked = object.link(&kernel).unwrap();
        let program = &linked.programs[0].program;
        let request = LoadRequest {
            log_level: 4,
            log_size: 1 << 20,
        };
        let Loaded { answer, log, maps } = match load(program, request) {
            Err(LoadFault::Map { errno, .. } | LoadFault::Btf(errno))
                if matches!(errno.0, 1 | 38) =>
            {
                oracle::skip("the gateway in the kernel", "bpf(2) is not permitted");
                return None;
            }
            loaded => loaded.unwrap(),
        };
        let program_in = answer
            .result
            .unwrap_or_else(|errno| panic!("{errno}: {log}"));
        Some(KernelProgram {
            program: program_in,
            names: program.maps().iter().map(|map| map.name.clone()).collect(),
            maps,
        })
    }

    fn map(&self, name: &str) -> &Map {
        let at = self.names.iter().position(|it| it == name).unwrap();
        self.maps[at].as_ref().unwrap()
    }

    pub(crate) fn put(&self, table: &Table, counters: u32) {
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
        // The outer map keeps it.
        self.map("tables").update(&[0; 4], &descriptor).unwrap();
    }

    pub(crate) fn hits(&self, first: u32) -> Vec<Hits> {
        let counters = self.map("counters");
        let mut value = vec![0; counters.value_len()];
        (first..first + CAPACITY.counters())
            .map(|index| {
                counters.lookup(&index.to_ne_bytes(), &mut value).unwrap();
                Hits::sum(&value)
            })
            .collect()
    }

    /// The verdict and the rule of a frame. The calling thread stays on one CPU.
    pub(crate) fn verdict_of(&self, frame: &[u8], cpu: usize) -> (u32, u32) {
        let request = TestRun::on(frame);
        let ran = self.program.test_run(&request, &mut [], &mut []).unwrap();
        let found = self.map("found");
        let mut value = vec![0; found.value_len()];
        found.lookup(&[0; 4], &mut value).unwrap();
        let rule = value[8 * cpu..][..4].try_into().unwrap();
        (ran.retval, u32::from_ne_bytes(rule))
    }
}
