//! Families of generated programs that grow in one respect each: how verification
//! time grows with program size, number of branches and depth of history.
//!
//! Every program is accepted by Linux 6.18 and needs no map.

use std::fmt::Write as _;

use isa::ebpf::{RawInsn, assemble, encode};
use program::Program;
use spec::programs::{LoadFlags, ProgramType};

use crate::Failure;

/// A family of programs.
pub(super) struct Family {
    /// Name in reports.
    pub(super) name: &'static str,
    /// Smaller and larger size whose time is measured.
    pub(super) sizes: [u32; 2],
    /// The size whose peak memory is measured, if it grows with checkpoints: the kernel
    /// takes up to half a minute for it.
    pub(super) largest: Option<u32>,
    /// Flags that the program is loaded with.
    pub(super) flags: LoadFlags,
    /// Text of the program of a size.
    text: fn(u32) -> String,
}

/// All families.
pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "straight arithmetic",
        sizes: [2_000, 20_000],
        largest: None,
        flags: LoadFlags(0),
        text: straight,
    },
    Family {
        name: "spills and fills before one precise use",
        sizes: [200, 2_000],
        largest: None,
        flags: LoadFlags(0),
        text: spills,
    },
    Family {
        name: "branches on one value that join again",
        sizes: [100, 1_000],
        largest: None,
        flags: LoadFlags(0),
        text: branches,
    },
    Family {
        name: "calls of one subprogram",
        sizes: [100, 1_000],
        largest: None,
        flags: LoadFlags(0),
        text: calls,
    },
    Family {
        name: "rounds of a bounded loop",
        sizes: [1_000, 10_000],
        largest: None,
        flags: LoadFlags(0),
        text: rounds,
    },
    Family {
        name: "checkpoints with the whole stack in use",
        sizes: [2_000, 20_000],
        largest: Some(200_000),
        flags: LoadFlags(0),
        text: full_stack,
    },
    Family {
        name: "rounds of a loop with the whole stack in use",
        sizes: [2_000, 20_000],
        largest: Some(240_000),
        flags: LoadFlags(0),
        text: full_stack_rounds,
    },
    Family {
        name: "the same, BPF_F_TEST_STATE_FREQ",
        sizes: [2_000, 20_000],
        largest: Some(240_000),
        flags: LoadFlags::TEST_STATE_FREQ,
        text: full_stack_rounds,
    },
];

impl Family {
    /// True if every prune point becomes a checkpoint.
    pub(super) fn has_dense_checkpoints(&self) -> bool {
        self.flags.has(LoadFlags::TEST_STATE_FREQ)
    }

    /// The instructions of the program of a size.
    fn insns(&self, size: u32) -> Vec<RawInsn> {
        let text = (self.text)(size);
        let insns = assemble(&text).expect("generated text follows the grammar");
        encode(&insns).expect("assembled instructions have an encoding")
    }

    /// The program of a size.
    pub(super) fn program(&self, size: u32) -> Result<Program, Failure> {
        Program::builder(ProgramType::SchedCls, self.insns(size))
            .license("Dual MIT/GPL")
            .flags(self.flags)
            .build()
            .map_err(|error| Failure::Process {
                purpose: "building a generated program",
                said: error.to_string(),
            })
    }
}

/// A random number in r6.
const START: &str = "call 7\nr6 = r0\n";
const END: &str = "r0 = 0\nexit\n";

/// Arithmetic on an unknown number, `size` instructions.
fn straight(size: u32) -> String {
    let mut text = String::from(START);
    for n in 0..size {
        let line = match n % 4 {
            0 => "r6 += 1",
            1 => "r6 *= 2",
            2 => "r6 ^= 85",
            _ => "r6 >>= 1",
        };
        let _ = writeln!(text, "{line}");
    }
    text + END
}

/// `size` spills and fills of a number, which then becomes an offset into the stack:
/// each of the last uses requests precision for the whole history.
fn spills(size: u32) -> String {
    let mut text = String::from(START);
    text += "r6 &= 7\n";
    for n in 0..size {
        let slot = 8 + 8 * (n % 32);
        let _ = writeln!(text, "*(u64 *)(r10 - {slot}) = r6");
        let _ = writeln!(text, "r6 = *(u64 *)(r10 - {slot})");
    }
    text += "r7 = r10\nr7 += -300\nr7 += r6\n*(u8 *)(r7 + 0) = 0\n";
    text + END
}

/// `size` comparisons of one number whose branches join again.
fn branches(size: u32) -> String {
    let mut text = String::from(START);
    for n in 0..size {
        let _ = writeln!(text, "if r6 != {} goto +1\nr6 += 1", 2 * n + 1);
    }
    text + END
}

/// `size` calls of a subprogram that branches on its argument.
fn calls(size: u32) -> String {
    let mut text = String::from(START);
    for _ in 0..size {
        text += "r1 = r6\ncall clamp\nr6 = r0\n";
    }
    text += END;
    text + "clamp:\nr0 = r1\nif r0 < 64 goto +1\nr0 = 63\nexit\n"
}

/// A loop with a known number of rounds, each of which is walked.
fn rounds(size: u32) -> String {
    let mut text = String::from(START);
    text += "r7 = 0\nhead:\nr6 += r7\nr7 += 1\n";
    let _ = writeln!(text, "if r7 != {size} goto head");
    text + END
}

/// A random number in r6, copied to all 64 slots of the stack.
fn filled_stack() -> String {
    let mut text = String::from(START);
    for slot in 1..=64 {
        let _ = writeln!(text, "*(u64 *)(r10 - {}) = r6", 8 * slot);
    }
    text
}

/// `size` instructions without a loop: in each eight, one of which writes a slot, two
/// jumps let the verifier keep a state.
fn full_stack(size: u32) -> String {
    let mut text = filled_stack();
    for n in 0..size / 8 {
        let slot = 8 + 8 * (n % 64);
        let _ = writeln!(
            text,
            "*(u64 *)(r10 - {slot}) = r6\nr6 += 1\nr6 *= 2\ngoto +0"
        );
        text += "r6 ^= 85\nr6 >>= 1\nr7 = r6\ngoto +0\n";
    }
    text + END
}

/// A loop of four instructions, one of which writes a slot, with `size` rounds.
fn full_stack_rounds(size: u32) -> String {
    let mut text = filled_stack();
    text += "r7 = 0\nhead:\nr6 += r7\nr7 += 1\n*(u64 *)(r10 - 8) = r7\n";
    let _ = writeln!(text, "if r7 != {size} goto head");
    text + END
}
