//! The programs: one loop around an operation on a map.

use std::fmt::Write as _;

use program::{Image, InitialContents, MapDef, MapParams, Program};
use spec::maps::{MapFlags, MapKind};

use super::prefixes;
use super::subject::xdp;
use super::table::TableWork;
use crate::Failure;

/// Operations of a run.
pub(super) const OPERATIONS: u32 = 32;

/// The bits of the sum of a run that are its result.
pub(super) const RESULT: u32 = 0x7fff_ffff;

// State of the generator of keys: a linear congruential one (Knuth's MMIX).
const MULTIPLIER: u64 = 0x5851_f42d_4c95_7f2d;
const INCREMENT: u64 = 0x1405_7b7e_f767_814f;

/// Spreads the number of a flow over its second word.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Addresses that the workload of prefixes looks up.
const ADDRESSES: usize = 1 << 16;

/// One program, and what it is compared with.
pub(super) struct Workload {
    pub(super) key: &'static str,
    pub(super) title: &'static str,
    kind: MapKind,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
    contents: Contents,
    body: fn() -> String,
    /// Functions behind the program.
    functions: &'static str,
    /// The same on a hash table.
    pub(super) table: Option<TableWork>,
    /// It counts for the mean of lookups.
    pub(super) is_lookup: bool,
    /// It takes long to prepare.
    pub(super) is_large: bool,
}

/// Contents of the map before the first run.
#[derive(Clone, Copy)]
enum Contents {
    Nothing,
    /// So many flows.
    Flows(u64),
    /// The prefixes of a routing table.
    Prefixes,
}

/// Keys and values, as bytes.
pub(super) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

const ONE: u64 = 0;
const MEDIUM: u64 = 4_096 - 1;
const LARGE: u64 = (1 << 20) - 1;

const HASH: Workload = Workload {
    key: "",
    title: "",
    kind: MapKind::Hash,
    key_size: 16,
    value_size: 16,
    max_entries: 4_096,
    flags: 0,
    contents: Contents::Flows(MEDIUM),
    body: String::new,
    functions: "",
    table: None,
    is_lookup: false,
    is_large: false,
};

const COUNTERS: Workload = Workload {
    kind: MapKind::Array,
    key_size: 4,
    value_size: 8,
    max_entries: 256,
    contents: Contents::Nothing,
    body: count,
    ..HASH
};

/// The workloads in the order of the tables.
pub(super) const WORKLOADS: &[Workload] = &[
    Workload {
        key: "lookup-1",
        title: "hash: lookup, 1 flow",
        max_entries: 1_024,
        contents: Contents::Flows(ONE),
        body: || lookup_flow(ONE),
        table: Some(TableWork::Lookup(ONE)),
        is_lookup: true,
        ..HASH
    },
    Workload {
        key: "lookup-4096",
        title: "hash: lookup, 4,096 flows",
        body: || lookup_flow(MEDIUM),
        table: Some(TableWork::Lookup(MEDIUM)),
        is_lookup: true,
        ..HASH
    },
    Workload {
        key: "lookup-1m",
        title: "hash: lookup, 1,048,576 flows",
        max_entries: 1 << 20,
        contents: Contents::Flows(LARGE),
        body: || lookup_flow(LARGE),
        table: Some(TableWork::Lookup(LARGE)),
        is_lookup: true,
        is_large: true,
        ..HASH
    },
    Workload {
        key: "update",
        title: "hash: update, 4,096 flows",
        body: || update_flow(MEDIUM),
        table: Some(TableWork::Update(MEDIUM)),
        ..HASH
    },
    Workload {
        key: "delete",
        title: "hash: delete and add, 4,096 flows",
        body: || delete_flow(MEDIUM),
        table: Some(TableWork::Delete(MEDIUM)),
        ..HASH
    },
    Workload {
        key: "lru",
        title: "LRU hash: update, 4,096 entries, 1,048,576 flows",
        kind: MapKind::LruHash,
        contents: Contents::Nothing,
        body: || update_flow(LARGE),
        ..HASH
    },
    Workload {
        key: "lpm",
        title: "LPM trie: lookup, 100,000 prefixes",
        kind: MapKind::LpmTrie,
        key_size: 8,
        value_size: 8,
        max_entries: 100_000,
        flags: 1,
        contents: Contents::Prefixes,
        body: lookup_prefix,
        is_large: true,
        ..HASH
    },
    Workload {
        key: "ringbuf",
        title: "ring buffer: records of 64 bytes",
        kind: MapKind::Ringbuf,
        key_size: 0,
        value_size: 0,
        max_entries: 1 << 24,
        contents: Contents::Nothing,
        body: record,
        ..HASH
    },
    Workload {
        key: "array",
        title: "array: 256 counters",
        ..COUNTERS
    },
    Workload {
        key: "percpu-array",
        title: "per-CPU array: 256 counters",
        kind: MapKind::PercpuArray,
        ..COUNTERS
    },
    Workload {
        key: "loop",
        title: "bpf_loop: a round",
        body: rounds,
        functions: ROUND,
        ..COUNTERS
    },
    Workload {
        key: "for-each-array",
        title: "bpf_for_each_map_elem: an entry of an array",
        max_entries: OPERATIONS,
        body: visits,
        functions: VISIT,
        ..COUNTERS
    },
];

/// A callback that adds its number to a word.
const ROUND: &str =
    "callback:\nr3 = *(u64 *)(r2 + 0)\nr3 += r1\n*(u64 *)(r2 + 0) = r3\nr0 = 0\nexit\n";

/// A callback that adds the value of an entry to a word.
const VISIT: &str = "callback:\nr5 = *(u64 *)(r3 + 0)\nr3 = *(u64 *)(r4 + 0)\nr3 += r5\n\
                     *(u64 *)(r4 + 0) = r3\nr0 = 0\nexit\n";

impl Workload {
    /// The program with its maps.
    pub(super) fn program(&self) -> Result<Program, Failure> {
        let params = MapParams {
            map_type: self.kind.number(),
            key_size: self.key_size,
            value_size: self.value_size,
            max_entries: self.max_entries,
            flags: MapFlags(self.flags),
            ..MapParams::default()
        };
        let mut maps = vec![MapDef::new("subject", params)];
        if let Contents::Prefixes = self.contents {
            maps.push(addresses());
        }
        xdp(&self.text(), maps)
    }

    /// The packet of the first run: the state of the generator.
    pub(super) fn first_packet(&self) -> Vec<u8> {
        vec![0; 64]
    }

    /// Contents of the map before the first run.
    pub(super) fn entries(&self) -> Entries {
        let bytes = |words: [u64; 2]| words.map(u64::to_le_bytes).concat();
        match self.contents {
            Contents::Nothing => Entries::new(),
            Contents::Flows(last) => (0..=last)
                .map(|index| (bytes(flow(index)), bytes([index, 1])))
                .collect(),
            Contents::Prefixes => prefixes::table()
                .iter()
                .zip(1u64..)
                .map(|(&(len, address), number)| {
                    let key = [len.to_le_bytes(), address.to_be_bytes()].concat();
                    (key, number.to_le_bytes().to_vec())
                })
                .collect(),
        }
    }

    /// In `r7` the generator, in `r6` the packet, in `r8` the number of the operation, in
    /// `r9` the sum; `r5` and below are the body's, and the stack.
    fn text(&self) -> String {
        let mut text = String::from(
            "r0 = 0\nr6 = *(u32 *)(r1 + 0)\nr2 = *(u32 *)(r1 + 4)\nr3 = r6\nr3 += 16\n\
             if r3 > r2 goto out\nr7 = *(u64 *)(r6 + 0)\nr8 = 0\nr9 = 0\n",
        );
        for slot in 1..=8 {
            let _ = writeln!(text, "*(u64 *)(r10 - {}) = 0", 8 * slot);
        }
        let _ = write!(
            text,
            "loop:\nr1 = {MULTIPLIER:#x} ll\nr7 *= r1\nr1 = {INCREMENT:#x} ll\nr7 += r1\n{}\
             next:\nr8 += 1\nif r8 < {OPERATIONS} goto loop\n*(u64 *)(r6 + 0) = r7\nr0 = r9\n\
             r0 &= {RESULT:#x}\nout:\nexit\n{}",
            (self.body)(),
            self.functions
        );
        text
    }
}

/// The next state of the generator of keys.
#[inline(always)]
pub(super) fn advance(state: u64) -> u64 {
    state.wrapping_mul(MULTIPLIER).wrapping_add(INCREMENT)
}

/// The number of the flow for a state.
#[inline(always)]
pub(super) fn flow_index(state: u64, mask: u64) -> u64 {
    state >> 33 & mask
}

/// The key of a flow.
#[inline(always)]
pub(super) fn flow(index: u64) -> [u64; 2] {
    [index, index.wrapping_mul(SPREAD)]
}

/// The reference to a map in `r1`.
fn map_in_r1(index: u64) -> String {
    format!(".8byte {:#x}\n.8byte 0\n", 0x5118 | index << 32)
}

/// The key of a flow at `r10 - 16`, the map in `r1`, the key's address in `r2`.
fn flow_arguments(mask: u64) -> String {
    format!(
        "r1 = r7\nr1 >>= 33\nr1 &= {mask:#x}\nr2 = {SPREAD:#x} ll\nr2 *= r1\n\
         *(u64 *)(r10 - 16) = r1\n*(u64 *)(r10 - 8) = r2\n{}r2 = r10\nr2 += -16\n",
        map_in_r1(0)
    )
}

fn lookup_flow(mask: u64) -> String {
    let arguments = flow_arguments(mask);
    format!("{arguments}call 1\nif r0 == 0 goto next\nr1 = *(u64 *)(r0 + 0)\nr9 += r1\n")
}

fn update_flow(mask: u64) -> String {
    let arguments = flow_arguments(mask);
    format!("*(u64 *)(r10 - 32) = r7\n{arguments}r3 = r10\nr3 += -32\nr4 = 0\ncall 2\nr9 += r0\n")
}

fn delete_flow(mask: u64) -> String {
    let arguments = flow_arguments(mask);
    let map = map_in_r1(0);
    format!(
        "{arguments}call 3\nr9 += r0\n*(u64 *)(r10 - 32) = r7\n{map}r2 = r10\nr2 += -16\n\
         r3 = r10\nr3 += -32\nr4 = 1\ncall 2\nr9 += r0\n"
    )
}

fn lookup_prefix() -> String {
    let value_in_r2 = format!(".8byte {:#x}\n.8byte 0\n", 0x6218 | 1u64 << 32);
    let map = map_in_r1(0);
    format!(
        "r1 = r7\nr1 >>= 48\nr1 <<= 2\n{value_in_r2}r2 += r1\nr1 = *(u32 *)(r2 + 0)\n\
         *(u32 *)(r10 - 4) = r1\n*(u32 *)(r10 - 8) = 32\n{map}r2 = r10\nr2 += -8\ncall 1\n\
         if r0 == 0 goto next\nr1 = *(u64 *)(r0 + 0)\nr9 += r1\n"
    )
}

fn record() -> String {
    let map = map_in_r1(0);
    format!(
        "*(u64 *)(r10 - 64) = r7\n{map}r2 = r10\nr2 += -64\nr3 = 64\nr4 = 1\ncall 130\nr9 += r0\n"
    )
}

fn count() -> String {
    let map = map_in_r1(0);
    format!(
        "r1 = r7\nr1 >>= 56\n*(u32 *)(r10 - 4) = r1\n{map}r2 = r10\nr2 += -4\ncall 1\n\
         if r0 == 0 goto next\nr1 = *(u64 *)(r0 + 0)\nr1 += 1\n*(u64 *)(r0 + 0) = r1\nr9 += r1\n"
    )
}

/// All operations of a run at once: a callback in a loop, which adds to a word of the stack.
fn rounds() -> String {
    format!("r1 = {OPERATIONS}\nr2 = func(callback) ll\n{WORD}call 181\n{ALL_DONE}")
}

/// As [`rounds`], over the entries of an array.
fn visits() -> String {
    let map = map_in_r1(0);
    format!("{map}r2 = func(callback) ll\n{WORD}call 164\n{ALL_DONE}")
}

/// The address of a word in `r3`, flags in `r4`.
const WORD: &str = "r3 = r10\nr3 += -16\nr4 = 0\n";

/// The loop around the body ends.
const ALL_DONE: &str = "r9 = *(u64 *)(r10 - 16)\nr8 = 31\n";

/// The addresses that are looked up, as the value of a map.
fn addresses() -> MapDef {
    let addresses = prefixes::addresses(&prefixes::table(), ADDRESSES);
    let image: Vec<u8> = addresses.iter().flat_map(|it| it.to_be_bytes()).collect();
    let params = MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size: image.len() as u32,
        max_entries: 1,
        ..MapParams::default()
    };
    MapDef {
        contents: InitialContents::Value {
            image: Image::new(&image, image.len() as u32).to_owned(),
            frozen: false,
        },
        ..MapDef::new("addresses", params)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::subject::Verifier;

    #[test]
    fn every_program_is_accepted() {
        let verifier = Verifier::new().expect("the built-in kernel");
        for workload in WORKLOADS {
            let program = workload.program().expect(workload.key);
            if let Err(failure) = verifier.prove(&program) {
                panic!("{}: {failure}", workload.key);
            }
        }
    }
}
