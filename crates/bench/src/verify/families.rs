//! Families of generated programs that grow in one respect each: how verification
//! time grows with program size, number of branches and depth of history.
//!
//! Every program is accepted by Linux 6.18 and needs no map.

use std::fmt::Write as _;

use isa::ebpf::{RawInsn, assemble, encode};

/// A family of programs.
pub(super) struct Family {
    /// Name in reports.
    pub(super) name: &'static str,
    /// Smaller and larger size to measure.
    pub(super) sizes: [u32; 2],
    /// Text of the program of a size.
    text: fn(u32) -> String,
}

/// All families.
pub(super) const FAMILIES: &[Family] = &[
    Family {
        name: "straight arithmetic",
        sizes: [2_000, 20_000],
        text: straight,
    },
    Family {
        name: "spills and fills before one precise use",
        sizes: [200, 2_000],
        text: spills,
    },
    Family {
        name: "branches on one value that join again",
        sizes: [100, 1_000],
        text: branches,
    },
    Family {
        name: "calls of one subprogram",
        sizes: [100, 1_000],
        text: calls,
    },
    Family {
        name: "rounds of a bounded loop",
        sizes: [1_000, 10_000],
        text: rounds,
    },
];

impl Family {
    /// The program of a size.
    pub(super) fn program(&self, size: u32) -> Vec<RawInsn> {
        let text = (self.text)(size);
        let insns = assemble(&text).expect("generated text follows the grammar");
        encode(&insns).expect("assembled instructions have an encoding")
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
