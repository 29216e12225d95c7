//! The workloads: programs in C, compiled and committed, and what they run on.
//!
//! The objects beside the sources are made for version 3 of the instruction set, the
//! newest that all peers take (`crates/differential/tests/committed.rs` says how).

use isa::ebpf::RawInsn;
use spec::SplitMix;

use super::object::{self, Unreadable};
use crate::traffic::Traffic;

/// A workload.
pub(super) struct Workload {
    /// Its short name, such as `W3a`.
    pub(super) key: &'static str,
    /// Short description.
    about: &'static str,
    /// Its file, without extension.
    pub(super) file: &'static str,
    /// Source language.
    pub(super) source: &'static str,
    /// Object compiled by clang.
    object: &'static [u8],
    input: fn() -> Vec<u8>,
    /// Kind of most of its instructions.
    pub(super) kind: Kind,
}

/// Kind of most instructions of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// None to speak of.
    Empty,
    /// Arithmetic, memory or branches in small loops, on which interpreters are
    /// compared.
    Loop,
    /// Mixed instructions, as in whole programs.
    Mixed,
}

macro_rules! workload {
    ($key:literal, $about:literal, $file:literal, $kind:ident, $input:expr) => {
        Workload {
            key: $key,
            about: $about,
            file: $file,
            source: include_str!(concat!("../../workloads/", $file, ".c")),
            object: include_bytes!(concat!("../../workloads/", $file, ".o")),
            input: $input,
            kind: Kind::$kind,
        }
    };
}

/// Header that every workload includes.
pub(super) const HEADER: (&str, &str) = ("workload.h", include_str!("../../workloads/workload.h"));

/// All workloads.
pub(super) const WORKLOADS: &[Workload] = &[
    workload!("W0", "empty program", "w0-empty", Empty, frame),
    workload!("W1", "port 22, 24 frames", "w1-port-22", Mixed, frames),
    workload!(
        "W2",
        "tcp port 22 with payload, 24 frames",
        "w2-payload",
        Mixed,
        frames
    ),
    workload!("W3a", "arithmetic", "w3a-alu", Loop, random),
    workload!("W3b", "rotates", "w3b-rotates", Loop, random),
    workload!(
        "W4a",
        "memory: running sums of 128 pairs",
        "w4a-memory",
        Loop,
        random
    ),
    workload!(
        "W4b",
        "memory: histogram of 1,024 bytes",
        "w4b-histogram",
        Loop,
        random
    ),
    workload!(
        "W4c",
        "memory: checksum of 1,460 bytes",
        "w4c-checksum",
        Loop,
        random
    ),
    workload!(
        "W5",
        "header parsing, 24 frames",
        "w5-headers",
        Mixed,
        frames
    ),
    workload!("W6a", "calls", "w6a-calls", Mixed, random),
    workload!("W6b", "SHA-256 of 256 bytes", "w6b-sha256", Mixed, random),
    workload!(
        "W8",
        "first set bit of 384 numbers",
        "w8-first-set",
        Loop,
        sparse
    ),
    workload!("W9", "200 compares, 8 values", "w9-compares", Loop, numbers),
];

impl Workload {
    /// Name in tables.
    pub(super) fn title(&self) -> String {
        format!("{} {}", self.key, self.about)
    }

    /// Its instructions, as an XDP program.
    pub(super) fn program(&self) -> Result<Vec<RawInsn>, Unreadable> {
        object::program(self.object)
    }

    /// True for the empty program.
    pub(super) fn is_empty(&self) -> bool {
        self.kind == Kind::Empty
    }

    /// Input.
    pub(super) fn input(&self) -> Vec<u8> {
        (self.input)()
    }
}

/// Bytes of the larger inputs: as much as a test run in the kernel takes, to a
/// round number.
const BYTES: usize = 3072;

/// Bytes of a slot that holds a frame.
const SLOT: usize = 128;

/// Length of the shortest frame in bytes.
fn frame() -> Vec<u8> {
    vec![0; 64]
}

/// The mix of [`Traffic`], a frame in each slot; every sixth is one of an SSH
/// session with payload, of which so short a mix would hold none.
fn frames() -> Vec<u8> {
    let (mix, ssh) = (Traffic::mixed(BYTES / SLOT), Traffic::ssh());
    let mut bytes = Vec::with_capacity(BYTES);
    for (slot, frame) in mix.frames().into_iter().enumerate() {
        let chosen = match slot % 6 {
            5 => ssh.frames()[0],
            _ => frame,
        };
        bytes.extend_from_slice(chosen.data);
        bytes.resize((slot + 1) * SLOT, 0);
    }
    bytes
}

fn random() -> Vec<u8> {
    let mut random = SplitMix::new(3);
    (0..BYTES / 8)
        .flat_map(|_| random.next_u64().to_le_bytes())
        .collect()
}

/// Numbers whose first set bit is anywhere.
fn sparse() -> Vec<u8> {
    let mut random = SplitMix::new(8);
    (0..BYTES / 8)
        .flat_map(|_| (random.next_u64() << (random.next_u64() % 64)).to_le_bytes())
        .collect()
}

/// Numbers that rules at many places of the list match, and some that none does.
fn numbers() -> Vec<u8> {
    let rule = |n: u32| n * 5 + (n & 3);
    [
        rule(199),
        rule(20),
        7,
        rule(120),
        rule(3),
        4_000_000_000,
        rule(170),
        rule(77),
    ]
    .iter()
    .flat_map(|number| number.to_le_bytes())
    .collect()
}
