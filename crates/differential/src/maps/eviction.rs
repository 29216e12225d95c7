//! Eviction of LRU maps beside the kernel's: programs on each CPU and bpf(2) use ranges of keys,
//! then the keys that are left and the results of all operations are compared.

use std::fmt;

use ::kernel::maps::{Host, Map, RunGuard, ValueLayout};
use isa::ebpf::{assemble, encode};
use program::MapParams;
use spec::Errno;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;
use sys::bpf::{LoadedProgram, Map as KernelMap, MapRequest, ProgLoad, TestRun};
use sys::network::pin_to_cpu;

use super::generate::{Dice, Shape};
use super::{MapComparison, MapDifference, errno};

/// Uses of a range of keys.
#[derive(Clone, Copy, Debug)]
struct Step {
    user: User,
    operation: Operation,
    first: u32,
    count: u32,
    stride: u32,
}

/// Who uses keys.
#[derive(Clone, Copy, Debug)]
enum User {
    /// A program on a CPU.
    Program(u32),
    /// bpf(2), on CPU 0.
    System,
}

#[derive(Clone, Copy, Debug)]
enum Operation {
    Lookup,
    Update(u64),
    Delete,
    /// Lookup and deletion in one; of programs a deletion.
    Take,
}

/// A map and what happens to it.
struct Case {
    shape: Shape,
    cpus: u32,
    steps: Vec<Step>,
}

/// What an operation list leaves: a digest of the results, and the keys in ascending order.
#[derive(PartialEq, Eq)]
struct Left {
    results: u64,
    keys: Vec<u32>,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Left { results, keys } = self;
        write!(f, "results {results:x}, {} keys {keys:?}", keys.len())
    }
}

const KEY_SIZE: u32 = 4;
const VALUE_SIZE: u32 = 8;

/// Compares what is left of LRU maps after random uses of ranges of keys, one list for each
/// seed. The error is the kernel's, if it makes no maps or programs.
pub fn compare_eviction(seeds: std::ops::Range<u64>) -> Result<MapComparison, Errno> {
    super::on_own_thread(|| compare(seeds))
}

fn compare(seeds: std::ops::Range<u64>) -> Result<MapComparison, Errno> {
    let cpus = sys::bpf::possible_cpus() as u32;
    let mut comparison = MapComparison::default();
    for seed in seeds {
        let case = Case::of(&mut Dice::new(seed), cpus);
        let (kernel, ours) = (case.in_kernel()?, case.in_ours()?);
        comparison.operations += case
            .steps
            .iter()
            .map(|step| u64::from(step.count))
            .sum::<u64>();
        comparison.successes += kernel.keys.len() as u64;
        if kernel != ours {
            comparison.differences.push(MapDifference {
                seed,
                shape: case.shape,
                operation: format!("{:?}", case.steps),
                kernel: kernel.to_string(),
                ours: ours.to_string(),
            });
        }
    }
    Ok(comparison)
}

impl Case {
    fn of(dice: &mut Dice, cpus: u32) -> Case {
        let sizes = [
            1, 2, 3, 4, 5, 7, 8, 16, 20, 31, 64, 100, 128, 200, 255, 256, 257, 300, 512, 600, 1000,
            1500, 2100,
        ];
        let max_entries = dice.pick(&sizes);
        let kind = dice.pick(&[MapKind::LruHash, MapKind::LruPercpuHash]);
        let shape = Shape(MapParams {
            map_type: kind as u32,
            key_size: KEY_SIZE,
            value_size: VALUE_SIZE,
            max_entries,
            flags: match dice.one_in(3) {
                true => MapFlags::NO_COMMON_LRU,
                false => MapFlags(0),
            },
            ..MapParams::default()
        });
        let steps = 2 + dice.below(24);
        let has_system = dice.one_in(2);
        Case {
            shape,
            cpus,
            steps: (0..steps)
                .map(|_| Step::of(dice, max_entries, cpus, has_system))
                .collect(),
        }
    }

    fn in_ours(&self) -> Result<Left, Errno> {
        let layout = ValueLayout::plain(VALUE_SIZE as usize);
        let map = Map::create(&self.shape.0, layout, &Host::new(self.cpus, 7))?;
        let mut results = 0;
        for step in &self.steps {
            for key in step.keys() {
                results = fold(results, step.apply_to_ours(&map, &key.to_ne_bytes()));
            }
        }
        let mut keys = Vec::new();
        let mut key = [0; KEY_SIZE as usize];
        let mut last: Option<[u8; KEY_SIZE as usize]> = None;
        while map
            .next_key(last.as_ref().map(|key| &key[..]), &mut key)
            .is_ok()
        {
            keys.push(u32::from_ne_bytes(key));
            last = Some(key);
        }
        keys.sort_unstable();
        Ok(Left { results, keys })
    }

    fn in_kernel(&self) -> Result<Left, Errno> {
        let params = self.shape.0;
        let request = MapRequest {
            map_type: params.map_type,
            key_size: KEY_SIZE,
            value_size: VALUE_SIZE,
            max_entries: params.max_entries,
            flags: params.flags.0,
            ..MapRequest::default()
        };
        let map = KernelMap::create(&request).map_err(errno)?;
        let programs = Programs::load(&map)?;
        let mut results = 0;
        for step in &self.steps {
            match step.user {
                User::Program(cpu) => {
                    pin_to_cpu(cpu).map_err(errno)?;
                    results = programs.run(step, results)?;
                }
                User::System => {
                    pin_to_cpu(0).map_err(errno)?;
                    for key in step.keys() {
                        let result = step.apply_to_kernel(&map, &key.to_ne_bytes());
                        results = fold(results, result);
                    }
                }
            }
        }
        let mut keys = Vec::new();
        let mut last = None;
        while let Ok(Some(key)) = map.next_key(last.as_deref()) {
            keys.push(u32::from_ne_bytes(key[..].try_into().unwrap_or_default()));
            last = Some(key);
        }
        keys.sort_unstable();
        Ok(Left { results, keys })
    }
}

impl Step {
    fn of(dice: &mut Dice, entries: u32, cpus: u32, has_system: bool) -> Step {
        let universe = entries + entries / 2 + 8;
        let operation = match dice.below(20) {
            0..=9 => Operation::Update(0),
            10 => Operation::Update(1),
            11 => Operation::Update(2),
            12..=16 => Operation::Lookup,
            17 | 18 => Operation::Delete,
            _ => Operation::Take,
        };
        Step {
            user: match has_system && dice.one_in(4) {
                true => User::System,
                false => User::Program(dice.below(cpus)),
            },
            operation,
            first: dice.below(universe),
            count: 1 + match dice.below(4) {
                0 => dice.below(4),
                1 => dice.below(entries),
                _ => dice.below(universe),
            },
            stride: dice.pick(&[1, 1, 1, 2, 3, 7]),
        }
    }

    fn keys(&self) -> impl Iterator<Item = u32> {
        let Step { first, stride, .. } = *self;
        (0..self.count).map(move |number| first + number * stride)
    }

    fn apply_to_ours(&self, map: &Map, key: &[u8]) -> Result<bool, Errno> {
        let mut value = vec![7; map.value_len()];
        match (self.user, self.operation) {
            (User::Program(cpu), Operation::Lookup) => {
                let guard = RunGuard::new();
                Ok(map.operations().lookup(&guard, cpu, key).is_some())
            }
            (User::Program(cpu), Operation::Update(flags)) => {
                let updated =
                    map.operations()
                        .update(cpu, key, &value[..VALUE_SIZE as usize], flags);
                updated.map(|()| false)
            }
            (User::Program(cpu), Operation::Delete | Operation::Take) => {
                map.operations().delete(cpu, key).map(|()| false)
            }
            (User::System, Operation::Lookup) => map.lookup(key, &mut value, 0).map(|()| false),
            (User::System, Operation::Update(flags)) => {
                map.update(key, &value, flags).map(|()| false)
            }
            (User::System, Operation::Delete) => map.delete(key).map(|()| false),
            (User::System, Operation::Take) => {
                map.lookup_and_delete(key, &mut value, 0).map(|()| false)
            }
        }
    }

    fn apply_to_kernel(&self, map: &KernelMap, key: &[u8]) -> Result<bool, Errno> {
        let mut value = vec![7; map.value_len()];
        let done = match self.operation {
            Operation::Lookup => map.lookup(key, &mut value),
            Operation::Update(flags) => map.update_with(key, &value, flags),
            Operation::Delete => map.delete(key),
            Operation::Take => map.lookup_and_delete(key, &mut value),
        };
        done.map(|()| false).map_err(errno)
    }
}

/// Adds a result to a digest, as the programs do.
fn fold(results: u64, result: Result<bool, Errno>) -> u64 {
    let number = match result {
        Ok(found) => u64::from(found),
        Err(Errno(errno)) => i64::from(-errno) as u64,
    };
    results.wrapping_mul(31).wrapping_add(number)
}

/// The programs of a map: each run uses one key and goes on to the next.
struct Programs {
    lookup: LoadedProgram,
    update: LoadedProgram,
    delete: LoadedProgram,
    /// Next key and stride, flags, digest.
    state: KernelMap,
}

impl Programs {
    fn load(map: &KernelMap) -> Result<Programs, Errno> {
        let request = MapRequest {
            map_type: MapKind::Array.number(),
            key_size: 4,
            value_size: 24,
            max_entries: 1,
            ..MapRequest::default()
        };
        let state = KernelMap::create(&request).map_err(errno)?;
        let descriptors = [map, &state].map(|map| map.descriptor() as i32);
        let load = |call: &str| {
            let insns = assemble(&program(call)).expect("the programs are right");
            let slots = encode(&insns).expect("assembled instructions have an encoding");
            let request = ProgLoad {
                fd_array: &descriptors,
                ..ProgLoad::new(ProgramType::Xdp.number(), &slots)
            };
            let loaded = request.load().map_err(|error| errno(error.errno));
            loaded.map(|(program, _)| program)
        };
        let found = "if r0 == 0 goto absent\nr0 = 1\nabsent:\n";
        Ok(Programs {
            lookup: load(&format!("call 1\n{found}"))?,
            update: load(
                "r3 = 7\n*(u64 *)(r10 - 16) = r3\nr3 = r10\nr3 += -16\nr4 = *(u64 *)(r6 + 8)\n\
                 call 2\n",
            )?,
            delete: load("call 3\n")?,
            state,
        })
    }

    /// Has programs use the keys of a step; the new digest.
    fn run(&self, step: &Step, results: u64) -> Result<u64, Errno> {
        let (program, flags) = match step.operation {
            Operation::Lookup => (&self.lookup, 0),
            Operation::Update(flags) => (&self.update, flags),
            Operation::Delete | Operation::Take => (&self.delete, 0),
        };
        let keys = u64::from(step.stride) << 32 | u64::from(step.first);
        let mut state = [keys, flags, results].map(u64::to_ne_bytes).concat();
        self.state.update(&[0; 4], &state).map_err(errno)?;
        let run = TestRun {
            repeat: step.count,
            ..TestRun::on(&[0; 64])
        };
        let ran = program.test_run(&run, &mut [0; 64], &mut []);
        ran.map_err(errno)?;
        self.state.lookup(&[0; 4], &mut state).map_err(errno)?;
        let digest: [u8; 8] = state[16..].try_into().unwrap_or_default();
        Ok(u64::from_ne_bytes(digest))
    }
}

/// A program that calls a helper of a map with the next key and adds `r0` to the digest.
fn program(call: &str) -> String {
    format!(
        "ld_pseudo r6, 6, 1\n\
         r1 = *(u32 *)(r6 + 0)\n\
         *(u32 *)(r10 - 4) = r1\n\
         r2 = *(u32 *)(r6 + 4)\n\
         r1 += r2\n\
         *(u32 *)(r6 + 0) = r1\n\
         ld_pseudo r1, 5, 0\n\
         r2 = r10\n\
         r2 += -4\n\
         {call}\
         r1 = *(u64 *)(r6 + 16)\n\
         r1 *= 31\n\
         r1 += r0\n\
         *(u64 *)(r6 + 16) = r1\n\
         r0 = 2\n\
         exit"
    )
}
