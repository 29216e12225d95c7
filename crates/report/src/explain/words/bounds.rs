//! Wording of causes: accesses out of bounds, and pointer arithmetic.

use verifier::domain::Scalar;
use verifier::reason::{
    ArithmeticFault, BoundsFault, Cause, Check, Explanation, MapPart, Note, NoteKind, PointerTarget,
};

use super::Words;
use crate::explain::value::{bytes, number, range, signed, target};

pub(super) fn words(explanation: &Explanation) -> Words {
    match &explanation.cause {
        Cause::Bounds {
            reg,
            kind,
            limit,
            off,
            size,
            index,
            fault,
            check,
            of_map,
        } => {
            let region = Region {
                reg: *reg,
                kind,
                limit: *limit,
                off: *off,
                size: *size,
                of_map: of_map.as_ref(),
            };
            let words = region.words(index.as_ref(), *fault, *check);
            let is_computed = |note: &Note| matches!(note.kind, NoteKind::Computed { .. });
            let is_stack = matches!(kind, PointerTarget::Stack { .. });
            let has_index = *fault == BoundsFault::Constant && !is_stack;
            match has_index && explanation.notes.iter().any(is_computed) {
                true => words.help(
                    "if the offset is an index, it has this one value on this path: check its \
                     bound (`>=` where `>` stands)",
                ),
                false => words,
            }
        }
        Cause::Arithmetic {
            reg,
            kind,
            fault,
            check,
        } => {
            let insn = explanation.place.as_ref().map_or("", |place| &place.text);
            arithmetic(insn, *reg, kind, fault, *check)
        }
        _ => Words::new("other", "the access is not allowed"),
    }
}

/// An access to memory of known size.
struct Region<'a> {
    reg: u8,
    kind: &'a PointerTarget,
    limit: Option<u32>,
    off: i64,
    size: u32,
    of_map: Option<&'a (MapPart, String)>,
}

impl Region<'_> {
    fn words(
        &self,
        index: Option<&(Option<u8>, Scalar)>,
        fault: BoundsFault,
        check: Check,
    ) -> Words {
        let what = target(self.kind);
        let is_stack = matches!(self.kind, PointerTarget::Stack { .. });
        let size = match self.size {
            0 => String::from("an access"),
            size => format!("an access of {}", bytes(size)),
        };
        let name = |reg: &Option<u8>| match reg {
            Some(reg) => format!("the offset (from r{reg})"),
            None => String::from("the offset"),
        };
        let (index_name, num) = match index {
            Some((reg, num)) => (name(reg), *num),
            None => (String::from("the offset"), Scalar::ZERO),
        };
        let least = if is_stack { 0 } else { (-self.off).max(0) };
        let is_before = fault == BoundsFault::Below && num.smin >= 0 && least > 0;
        let words = match fault {
            BoundsFault::Constant => return self.constant(&what, &size, is_stack),
            BoundsFault::Below if is_before => Words::new(
                "offset-negative",
                format!(
                    "{index_name} may be {}, and {size} to {what} is {} before it",
                    signed(num.smin),
                    bytes(least)
                ),
            ),
            BoundsFault::Below => Words::new(
                "offset-negative",
                format!("{index_name} may be negative in {size} to {what}"),
            ),
            BoundsFault::Above => Words::new(
                "offset-too-large",
                format!(
                    "{index_name} may be {}, too large for {size} to {what}",
                    match num.smin {
                        ..0 => signed(num.smax),
                        0.. => number(num.umax),
                    }
                ),
            ),
            BoundsFault::Unbounded => Words::new(
                "offset-unbounded",
                format!("{index_name} has no upper bound in {size} to {what}"),
            ),
            BoundsFault::Variable => {
                return Words::new(
                    "offset-variable",
                    format!("{size} to {what} with a variable offset"),
                )
                .needed("a constant offset")
                .help("select the member by a constant in each branch");
            }
        };
        let end = match is_stack {
            true => Some(0),
            false => self.limit.map(i64::from),
        };
        let most = end.map(|end| end - self.off - i64::from(self.size));
        let is_packet = matches!(self.kind, PointerTarget::Packet { .. });
        let words = match (most, is_stack) {
            (Some(most @ 0..), _) => words.needed(format!(
                "an offset from {least} to {most}{}",
                match fault {
                    BoundsFault::Below => format!("; known is {}", range(&num)),
                    _ => String::new(),
                }
            )),
            (_, true) => words.needed("an offset from fp-512 to below fp"),
            _ if is_packet => words.needed("an offset that is not negative"),
            _ => words.needed("an offset from 0 to the size of the memory"),
        };
        let limit = most.filter(|most| *most >= 0).map(|most| Limit {
            most,
            size: self.size,
            is_known_below: num.smax <= most,
        });
        if is_before {
            return words.help(format!(
                "check the lower bound too: `if (n < {least}) return …;`"
            ));
        }
        edits(words, fault, check, limit)
    }

    fn constant(&self, what: &str, size: &str, is_stack: bool) -> Words {
        let words = Words::new(
            "out-of-bounds",
            match is_stack {
                true => format!("{size} at fp{:+} is outside of the stack", self.off),
                false => format!("{size} at offset {} is outside of {what}", signed(self.off)),
            },
        );
        if let PointerTarget::Socket = self.kind {
            let headline = format!(
                "{size} at offset {} is not a field of the socket that programs may read",
                signed(self.off)
            );
            return Words::new("socket-field", headline)
                .needed("a field of `struct bpf_sock` (or `bpf_tcp_sock`), by its own width")
                .help("narrow the value after the read; some fields need bpf_sk_fullsock first");
        }
        let is_frame = is_stack && (-512..0).contains(&self.off);
        if let Some((part, map)) = self.of_map {
            let part = match part {
                MapPart::Key => "key",
                MapPart::Value => "value",
            };
            return words
                .needed(format!(
                    "the {} of a {part} of map `{map}`",
                    bytes(i64::from(self.size))
                ))
                .help(format!(
                    "pass a variable of the type that the {part}s of the map are declared with"
                ));
        }
        match (self.limit, is_stack) {
            (_, true) if is_frame => words
                .needed(format!(
                    "at most {} from fp{:+}",
                    bytes(-self.off),
                    self.off
                ))
                .help(
                    "pass the size of the buffer, or bound a computed size by it: \
                       `if (n > sizeof(buf)) n = sizeof(buf);`",
                ),
            (_, true) => words.needed("an offset from fp-512 to below fp").help(
                "a function has 512 bytes of stack: move large variables to a map (a per-CPU \
                     array of one entry), and use no negative or too large constant index",
            ),
            (Some(limit), _) => words
                .needed(format!("bytes 0 to {}", i64::from(limit) - 1))
                .help(
                    "check the size that the map, record or argument is declared with against the \
                     structure that is used",
                ),
            (None, _) => words
                .needed(format!("an offset within what r{} points to", self.reg))
                .help("check the type that the pointer is cast to"),
        }
    }
}

/// The largest offset, in bytes, that an access allows.
#[derive(Clone, Copy)]
pub(super) struct Limit {
    most: i64,
    /// Bytes of the access.
    size: u32,
    /// True if the number is known to be at most that.
    is_known_below: bool,
}

impl Limit {
    /// The limit as an index too, of elements that are as wide as the access.
    fn described(self) -> String {
        match (self.most, i64::from(self.size)) {
            (most, 0 | 1) => most.to_string(),
            (most, size) => format!("{most} (index {} of elements of {size} bytes)", most / size),
        }
    }
}

/// The edits for a number that is not bounded enough, and must be below a limit if it is known.
pub(super) fn edits(words: Words, fault: BoundsFault, check: Check, limit: Option<Limit>) -> Words {
    let compare = match (fault, limit) {
        (BoundsFault::Below, Some(limit)) if !limit.is_known_below => format!(
            "check both bounds: `if (n < 0 || n > N) return …;`, so that the offset is at most {}",
            limit.described()
        ),
        (BoundsFault::Below, _) => {
            "use an unsigned type, or check the lower bound too: `if (n < 0) return …;`".to_owned()
        }
        _ => "bound it right before its use: `if (n >= N) return …;` with an unsigned type, or \
              mask it with a power of two: `n &= N - 1;`"
            .to_owned(),
    };
    match check {
        Check::Missing => words.help(compare),
        Check::WithSize => words.help(
            "the greatest offset and the greatest size are added: bound both so that the sum fits, \
             or make the buffer as large as the sum (for an offset and a size below N each, 2 * N)",
        ),
        Check::NotApplicable => words.help(compare),
        Check::Loose => match fault {
            BoundsFault::Below => words.help(compare),
            _ => words.help("the comparison on this path allows more: lower its bound"),
        },
        Check::Copy => words
            .help(
                "the comparison is of a copy, and what it shows does not reach the value that is \
                 used: compare the same variable that is used, right before its use",
            )
            .help(
                "compilers keep a value in two registers: `barrier_var(n)` or \
                 `asm volatile(\"\" : \"+r\"(n))` before the comparison makes it one",
            ),
        Check::Before if fault == BoundsFault::Below => words.help(compare),
        Check::Before => words.help(format!(
            "the comparison is of the number before arithmetic changed it: compare the result, or \
             lower the bound so that the result {}",
            match limit {
                Some(limit) => format!("is at most {}", limit.described()),
                None => "fits".to_owned(),
            }
        )),
        Check::Reread => words.help(
            "the comparison is of an earlier read of the same memory, which may have changed since: \
             read it once into a variable, compare and use that (`READ_ONCE`, or `barrier_var(n)`)",
        ),
        Check::LowBits(bits) => words.help(format!(
            "the comparison is of the low {bits} bits, and the bits above them are used too: use \
             one type for both, so that the number is compared as wide as it is used, or cut it \
             to {bits} bits for its use as well"
        )),
        Check::Signed => match fault {
            BoundsFault::Below => words.help(
                "the comparison is unsigned or of the upper bound only: check the lower bound \
                 too (`if (n < 0) return …;`), or use an unsigned type",
            ),
            _ => words.help(
                "the comparison is signed, so that the value may still be negative, which is \
                 large as an offset: use an unsigned type, or check `n < 0` as well",
            ),
        },
    }
}

fn arithmetic(
    insn: &str,
    reg: u8,
    kind: &PointerTarget,
    fault: &ArithmeticFault,
    check: Check,
) -> Words {
    let what = target(kind);
    const NAME: &str = "pointer-arithmetic";
    let allowed = "addition and subtraction of numbers, in 64 bits";
    match fault {
        ArithmeticFault::Operation => Words::new(
            NAME,
            format!("`{insn}` on a pointer to {what}, an operation that pointers do not have"),
        )
        .needed(allowed)
        .help("compute the offset as a number, then add it to the pointer")
        .help(
            "if bytes of what the pointer points to are meant, read them through it: an address \
             `&p` where `p` is meant, or a cast of `p` to a number, takes the bytes of the \
             pointer itself",
        ),
        ArithmeticFault::TwoPointers => Words::new(NAME, format!("`{insn}` on two pointers"))
            .needed("a pointer and a number")
            .help("subtract pointers of one object to get a number; add numbers to one pointer")
            .help("an uninitialised or overwritten register may hold a pointer by mistake"),
        ArithmeticFault::Width32 => {
            Words::new(NAME, format!("32-bit arithmetic on a pointer to {what}"))
                .needed(allowed)
                .help("keep pointers in 64-bit variables; a cast to `__u32` cuts them")
        }
        // These have offsets; without CAP_PERFMON, constant ones alone.
        ArithmeticFault::Kind
            if matches!(
                kind,
                PointerTarget::Stack { .. } | PointerTarget::MapValue { .. }
            ) =>
        {
            Words::new(
                NAME,
                format!("a number that is not constant is the offset of a pointer to {what}"),
            )
            .needed("a constant offset")
            .help("choose by constants, with one access in each branch")
        }
        ArithmeticFault::Kind => Words::new(
            NAME,
            format!("arithmetic on a pointer to {what}, which has no offsets"),
        )
        .needed("the pointer as it is")
        .help(match kind {
            PointerTarget::PacketEnd => {
                "do the arithmetic on `data`: `data + N > data_end`, not `data_end - N`"
            }
            PointerTarget::Map(_) => "pass the map itself to helpers",
            _ => "read members through the pointer with constant offsets",
        }),
        ArithmeticFault::FromNumber => Words::new(
            NAME,
            format!("a pointer to {what} is subtracted from a number"),
        )
        .needed(allowed)
        .help("swap the operands, or subtract two pointers to the same object"),
        ArithmeticFault::FromStack => Words::new(
            NAME,
            "a number is subtracted from a stack pointer".to_owned(),
        )
        .needed("stack pointers take additions only")
        .help("add the negative number: `r1 += -8`"),
        ArithmeticFault::Partial => {
            Words::new(NAME, format!("part of a pointer to {what} is copied"))
                .needed("a 64-bit copy")
                .help("keep pointers in 64-bit variables; a cast to `int` or `__u32` cuts them")
        }
        ArithmeticFault::TooFar(value) => {
            let side = match value {
                ..0 => BoundsFault::Below,
                _ => BoundsFault::Above,
            };
            let words = Words::new(
                "offset-too-far",
                format!("an offset of {} for a pointer to {what}", signed(*value)),
            )
            .needed("an offset within ±2^29, and within the object when it is used");
            match check {
                Check::NotApplicable | Check::Missing => words.help(
                    "check the computation of the offset for overflow, and bound it before it is \
                     added",
                ),
                check => edits(words, side, check, None),
            }
        }
        ArithmeticFault::Unbounded { is_subtracted } => edits(
            Words::new(
                "offset-unbounded",
                match is_subtracted {
                    true => format!(
                        "a number without bounds is subtracted from r{reg}, a pointer to {what}"
                    ),
                    false => {
                        format!("a number without bounds is added to r{reg}, a pointer to {what}")
                    }
                },
            )
            .needed("a number with a lower and an upper bound"),
            BoundsFault::Unbounded,
            check,
            None,
        ),
    }
}
