//! The placeholders of the table's text templates.
//!
//! | placeholder | prints | also read |
//! |---|---|---|
//! | `{dst}` `{src}` | `r3` | |
//! | `{wdst}` `{wsrc}` | `w3` | |
//! | `{rwdst}` `{rwsrc}` | `r3`, or `w3` where processors have 32-bit registers | either |
//! | `{wrsrc}` | `w3` | `r3` |
//! | `{imm}` | `-5` | hexadecimal, within 32 signed bits |
//! | `{uimm}` | `-5` | as `{imm}`, and 32 unsigned bits |
//! | `{0ximm}` | `0xfffffffb` | |
//! | `{callee}` | `bpf_get_prandom_u32#7` | not read |
//! | `{ + off}` | ` + 4`, ` - 4` | nothing, for 0 |
//! | `{? + imm}` | ` + 4`, ` - 4`, nothing for 0 | |
//! | `{+off}` `{+imm}` | `+4`, `-4` | `pc+4`, a label |
//! | `{pc+off}` `{pc+imm}` | `pc+4`, `pc-4` | a label |
//! | `{, off}` `{, high}` | `, 4`, nothing for 0 | |
//! | `{value}` | `0x1234` | decimal, negative |
//! | `{cast}` | `1, 0` | hexadecimal |

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// A register: source or destination field, and the form of its name.
    Reg { src: bool, name: RegName },
    /// The immediate in decimal; true if it may be read as unsigned.
    Imm { unsigned: bool },
    /// The immediate's bits in hexadecimal.
    HexImm,
    /// The callee's name, and its number.
    Callee,
    /// The offset, as a term of a sum.
    Displacement,
    /// The immediate, as a term of a sum, left out if 0.
    ImmDisplacement,
    /// A distance in slots: in the immediate or the offset; true if it must be prefixed by
    /// `pc`.
    Distance { long: bool, marked: bool },
    /// The offset as a further argument, left out if 0.
    OffArgument,
    /// The second slot's immediate as a further argument, left out if 0.
    HighArgument,
    /// Both slots' immediates as one number.
    Value,
    /// The immediate as a pair of address spaces.
    Cast,
}

/// Form of a register name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RegName {
    /// `r3`
    Whole,
    /// `w3`
    Half,
    /// `r3`; `w3` is read too.
    WholeOrHalf,
    /// `w3`; `r3` is read too.
    HalfOrWhole,
}

/// A piece of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// A placeholder.
    Slot(Slot),
}

/// The pieces of a template, from left to right.
pub(super) fn pieces(template: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = template;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, tail) = match rest.strip_prefix('{') {
            Some(inner) => {
                let (name, tail) = inner.split_once('}').unwrap_or((inner, ""));
                (Piece::Slot(Slot::named(name)), tail)
            }
            None => {
                let (text, tail) = rest.split_at(rest.find('{').unwrap_or(rest.len()));
                (Piece::Text(text), tail)
            }
        };
        rest = tail;
        Some(piece)
    })
}

impl Slot {
    /// The placeholder with a name. An unknown name is an error in the table, which its
    /// test reports.
    fn named(name: &str) -> Slot {
        let reg = |src, name| Slot::Reg { src, name };
        match name {
            "dst" => reg(false, RegName::Whole),
            "src" => reg(true, RegName::Whole),
            "wdst" => reg(false, RegName::Half),
            "wsrc" => reg(true, RegName::Half),
            "rwdst" => reg(false, RegName::WholeOrHalf),
            "rwsrc" => reg(true, RegName::WholeOrHalf),
            "wrsrc" => reg(true, RegName::HalfOrWhole),
            "imm" => Slot::Imm { unsigned: false },
            "uimm" => Slot::Imm { unsigned: true },
            "0ximm" => Slot::HexImm,
            "callee" => Slot::Callee,
            " + off" => Slot::Displacement,
            "? + imm" => Slot::ImmDisplacement,
            "+off" => Slot::Distance {
                long: false,
                marked: false,
            },
            "+imm" => Slot::Distance {
                long: true,
                marked: false,
            },
            "pc+off" => Slot::Distance {
                long: false,
                marked: true,
            },
            "pc+imm" => Slot::Distance {
                long: true,
                marked: true,
            },
            ", off" => Slot::OffArgument,
            ", high" => Slot::HighArgument,
            "value" => Slot::Value,
            "cast" => Slot::Cast,
            _ => unreachable!("the table uses an unknown placeholder {{{name}}}"),
        }
    }
}
