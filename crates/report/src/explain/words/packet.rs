//! Wording of causes: accesses to the packet.

use verifier::reason::{
    AccessKind, Cause, Explanation, PacketBase, PacketCheckFault, PacketExtent, PacketLoop,
};

use super::Words;
use crate::explain::value::{bytes, number, signed};

/// Iterations that a loop over a packet of usual size has at most.
const USUAL_ITERATIONS: u64 = 1500;

pub(super) fn words(explanation: &Explanation) -> Words {
    let Cause::Packet {
        access,
        off,
        size,
        proven,
        is_meta,
        base,
        extent,
        in_loop,
        check,
        ..
    } = &explanation.cause
    else {
        return Words::new("other", "the access is not allowed");
    };
    let verb = match access {
        AccessKind::Write => "written",
        AccessKind::Argument { .. } => "passed to a helper",
        AccessKind::Read | AccessKind::Arithmetic => "read",
    };
    let end = off + i64::from(*size);
    let what = match size {
        0 => format!("packet bytes from offset {} are {verb}", signed(*off)),
        1 => format!("packet byte {} is {}", signed(*off), verb),
        _ => format!(
            "packet bytes {} to {} are {verb}",
            signed(*off),
            signed(end - 1)
        ),
    };
    let access = Access {
        what,
        extent: *extent,
        is_meta: *is_meta,
        base: *base,
    };
    if *off < 0 {
        return Words::new(
            "packet-before-start",
            format!("{}, and the packet starts at 0", access.what),
        )
        .needed("an offset that is not negative")
        .help("go back by a constant only as far as the pointer went forward");
    }
    match in_loop {
        Some(around) => access.in_loop(*around, *proven, check),
        None => access.once(*proven, check),
    }
}

/// An access to the packet.
struct Access {
    /// Its bytes and kind, as a sentence begins.
    what: String,
    extent: PacketExtent,
    is_meta: bool,
    base: PacketBase,
}

impl Access {
    /// The bound of the memory, as programs name it.
    fn bound(&self) -> &'static str {
        match self.is_meta {
            true => "data",
            false => "data_end",
        }
    }

    /// The comparison that proves so many bytes from the pointer's base.
    fn comparison(&self, end: i64) -> String {
        let pointer = match (self.base, self.is_meta) {
            (PacketBase::Start, false) => "data",
            (PacketBase::Start, true) => "data_meta",
            (PacketBase::Variable, _) => "(void *)ptr",
        };
        format!("if ({pointer} + {end} > {})", self.bound())
    }

    /// The edit that lets the access and those behind it through.
    fn edit(&self, words: Words, how: &str) -> Words {
        let PacketExtent { next, end, .. } = self.extent;
        let words = words.help(format!("{how}: `{} return …;`", self.comparison(next)));
        match end > next {
            true => words.help(format!(
                "behind branches more is accessed through this pointer: compare again there, or \
                 once for all: `{} return …;`",
                self.comparison(end)
            )),
            false => words,
        }
    }

    /// An access outside of loops.
    fn once(&self, proven: i32, check: &PacketCheckFault) -> Words {
        let what = &self.what;
        let bound = self.bound();
        let proof = format!(
            "a comparison which proves {} from {}",
            bytes(self.extent.next),
            match (self.base, self.is_meta) {
                (PacketBase::Start, false) => "the start of the packet",
                (PacketBase::Start, true) => "the start of the metadata",
                (PacketBase::Variable, _) => "the pointer `ptr` with the variable offset",
            }
        );
        match check {
            PacketCheckFault::Missing => self.edit(
                Words::new(
                    "packet-unchecked",
                    format!("{what}, and nothing on this path compares with `{bound}`"),
                )
                .needed(proof),
                "compare before the access",
            ),
            PacketCheckFault::Difference => self.edit(
                Words::new(
                    "packet-check-difference",
                    format!("{what}, and the comparison is of a difference, which proves nothing"),
                )
                .needed(proof),
                "compare a pointer with the end, not what is between them",
            ),
            PacketCheckFault::TooShort => self.edit(
                Words::new(
                    "packet-check-short",
                    format!("{what}, and the comparison proves only {}", bytes(proven)),
                )
                .needed(proof),
                "compare for the whole access",
            ),
            PacketCheckFault::OtherPointer => self.edit(
                Words::new(
                    "packet-check-other",
                    format!("{what} through a pointer that is not the one compared with the end"),
                )
                .needed(proof),
                "a comparison proves bytes for pointers with the same variable offset only: add \
                 the variable offset first, keep the sum in a variable, and compare what is used",
            ),
            PacketCheckFault::OffsetTooWide { max } => Words::new(
                "packet-offset-wide",
                format!(
                    "the variable offset may be {}, and comparisons with the end count up to 65535",
                    number(*max)
                ),
            )
            .needed(
                "a variable offset that stays within 65535 together with the bytes behind it, \
                 bounded before it is added",
            )
            .help("bound it first: `if (off > 1500) return …;`, or mask it: `off &= 0x7ff;`"),
            PacketCheckFault::BeyondLimit => Words::new(
                "packet-offset-limit",
                format!("{what}, and comparisons with the end count up to byte 65534"),
            )
            .needed("an access that ends below offset 65536")
            .help("packets are shorter: check the offset"),
            PacketCheckFault::Beyond => self.beyond(),
        }
    }

    fn beyond(&self) -> Words {
        Words::new(
            "packet-beyond",
            format!("{} on the path on which the comparison fails", self.what),
        )
        .needed("the path on which the pointer is before the end")
        .help("the branches of the comparison may be the wrong way round")
    }

    /// An access in a loop that moves the pointer.
    fn in_loop(&self, around: PacketLoop, proven: i32, check: &PacketCheckFault) -> Words {
        let what = &self.what;
        let count = self.extent.end - self.extent.first;
        let end = match around.is_callback {
            true => "return 1",
            false => "break",
        };
        let edit = format!(
            "compare in each iteration, before the access: `if ((void *)ptr + {count} > {}) \
             {end};`, with the address that the iteration accesses first as `ptr` (`&p[i]`)",
            self.bound()
        );
        let proof = format!(
            "a comparison in the loop which proves {} from the pointer of the iteration",
            bytes(count)
        );
        let most = around
            .most
            .unwrap_or(USUAL_ITERATIONS)
            .min(USUAL_ITERATIONS);
        let bounded = format!(
            "bound the iterations by a constant as well: `for (i = 0; i < {most} && …; i++)`"
        );
        match check {
            PacketCheckFault::Missing | PacketCheckFault::Difference => Words::new(
                "packet-loop-unchecked",
                format!("{what} in a loop, and nothing on this path compares with the end"),
            )
            .needed(proof)
            .help(edit),
            PacketCheckFault::TooShort => Words::new(
                "packet-loop-check",
                format!(
                    "{what} in a loop, and the comparison before it proves only {}",
                    bytes(proven)
                ),
            )
            .needed(proof)
            .help(edit),
            PacketCheckFault::OtherPointer => Words::new(
                "packet-loop-check",
                format!("{what} in a loop, and the comparison before it is of another pointer"),
            )
            .needed(proof)
            .help(edit),
            PacketCheckFault::OffsetTooWide { max } => Words::new(
                "packet-loop-unbounded",
                format!(
                    "the loop moves the pointer by up to {}, and comparisons with the end count \
                     up to 65535",
                    number(*max)
                ),
            )
            .needed("a bound on the iterations, or on the offset in each, that keeps it below 65536")
            .help(bounded)
            .help(
                "or keep the offset as a number and bound it in each iteration, before it is \
                 added: `if (off > 1500) break;`",
            ),
            PacketCheckFault::BeyondLimit => Words::new(
                "packet-loop-unbounded",
                format!("{what} by a loop that nothing else ends before"),
            )
            .needed("a bound on the iterations that keeps offsets below 65536: comparisons with the end count up to there")
            .help(bounded),
            PacketCheckFault::Beyond => self.beyond(),
        }
    }
}
