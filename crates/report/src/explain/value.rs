//! Wording of register and stack values.

use spec::registry::RegBase;
use verifier::domain::Scalar;
use verifier::reason::{KnownValue, PointerTarget, TypeText};

/// A number, in hexadecimal where that is easier to recognise.
pub(super) fn number(value: u64) -> String {
    match value {
        0..=0xffff => value.to_string(),
        _ if value.is_multiple_of(10_000) => value.to_string(),
        _ => format!("{value:#x}"),
    }
}

pub(super) fn signed(value: i64) -> String {
    match value {
        i64::MIN..0 => format!("-{}", number(value.unsigned_abs())),
        _ => number(value as u64),
    }
}

/// The values that a number may have.
pub(super) fn range(num: &Scalar) -> String {
    if let Some(value) = num.as_const() {
        return signed(value as i64);
    }
    let is_one_sign = num.smin >= 0 || num.smax < 0;
    let mut text = if is_one_sign || num.smin > i64::MIN && num.smax < i64::MAX {
        format!("{} to {}", signed(num.smin), signed(num.smax))
    } else if num.umax < u64::MAX {
        format!("{} to {} (unsigned)", number(num.umin), number(num.umax))
    } else if num.umin > 0 {
        format!("{} or more (unsigned)", number(num.umin))
    } else if num.smin > i64::MIN {
        format!("{} or more", signed(num.smin))
    } else if num.smax < i64::MAX {
        format!("at most {}, or negative", signed(num.smax))
    } else {
        String::from("any number")
    };
    if num.smin == 0 && num.smax == i64::MAX {
        text = String::from("any number that is not negative");
    }
    let is_word = num.umax == u64::from(u32::MAX);
    if is_word && (num.s32_max < i32::MAX || num.s32_min > i32::MIN) {
        text += &format!(
            ", with sign as 32 bits {} to {}",
            signed(num.s32_min.into()),
            signed(num.s32_max.into())
        );
    }
    let has_high = num.umax > u32::MAX.into();
    if has_high && num.u32_max < u32::MAX {
        let (min, max) = (number(num.u32_min.into()), number(num.u32_max.into()));
        text += &match min == max {
            true => format!(", low 32 bits {min}"),
            false => format!(", low 32 bits {min} to {max}"),
        };
    }
    let bits = num.var_off;
    let zeros = (bits.mask | bits.value).trailing_zeros();
    if (1..12).contains(&zeros) {
        text += &format!(", a multiple of {}", 1 << zeros);
    }
    text
}

/// A count of bytes.
pub(super) fn bytes(count: impl Into<i64>) -> String {
    match count.into() {
        1 => String::from("1 byte"),
        count => format!("{} bytes", signed(count)),
    }
}

/// Text of a pointee, as in "a pointer to …".
pub(super) fn target(kind: &PointerTarget) -> String {
    match kind {
        PointerTarget::Context => String::from("the context"),
        PointerTarget::Map(map) => format!("map `{map}`"),
        PointerTarget::MapValue { map, size } => {
            format!("a value of map `{map}` ({})", bytes(*size))
        }
        PointerTarget::MapKey { map, size } => format!("a key of map `{map}` ({})", bytes(*size)),
        PointerTarget::Stack { of_caller: false } => String::from("the stack"),
        PointerTarget::Stack { of_caller: true } => String::from("the stack of a caller"),
        PointerTarget::Packet { .. } => String::from("the packet"),
        PointerTarget::PacketMeta { .. } => String::from("the metadata before the packet"),
        PointerTarget::PacketEnd => String::from("the end of the packet"),
        PointerTarget::Socket => String::from("a socket"),
        PointerTarget::Object { name, .. } => format!("`struct {name}`"),
        PointerTarget::Memory { size, record: true } => {
            format!("a ring buffer record of {}", bytes(*size))
        }
        PointerTarget::Memory { size: 0, .. } => String::from("memory of unknown size"),
        PointerTarget::Memory { size, .. } => format!("memory of {}", bytes(*size)),
        PointerTarget::Function => String::from("a function"),
        PointerTarget::Other(ty) => match other(*ty) {
            Some(words) => words.to_owned(),
            None => format!("a `{ty}` pointer's memory"),
        },
    }
}

/// The pointee of a kind of pointers that few programs have.
fn other(ty: TypeText) -> Option<&'static str> {
    Some(match ty.named().base {
        RegBase::ConstPtrToDynptr => "a dynptr",
        RegBase::PtrToFlowKeys => "the flow keys",
        RegBase::PtrToTpBuffer => "the tracepoint's buffer",
        RegBase::PtrToBuf => "the buffer that the kernel gives",
        RegBase::PtrToArena => "the arena",
        _ => return None,
    })
}

/// Text of a known value, as in "r1 is …".
pub(super) fn known(value: &KnownValue) -> String {
    words(value, true)
}

/// As [`known`], without what is proven of packets where that is nothing.
pub(super) fn brief(value: &KnownValue) -> String {
    words(value, false)
}

fn words(value: &KnownValue, in_full: bool) -> String {
    match value {
        KnownValue::Unwritten => String::from("nothing: it was not written"),
        KnownValue::Number(num) => match num.as_const() {
            Some(_) => format!("the number {}", range(num)),
            None => match range(num) {
                any if any.starts_with("any ") => any,
                range => format!("a number, {range}"),
            },
        },
        KnownValue::Pointer {
            kind,
            offset,
            variable,
            maybe_null,
            acquired,
            ..
        } => pointer(
            kind,
            *offset,
            variable.as_ref(),
            (*maybe_null, *acquired),
            in_full,
        ),
    }
}

fn pointer(
    kind: &PointerTarget,
    offset: i64,
    variable: Option<&Scalar>,
    (maybe_null, acquired): (bool, bool),
    in_full: bool,
) -> String {
    let mut text = match kind {
        PointerTarget::Object {
            untrusted: true, ..
        } => format!("an untrusted pointer to {}", target(kind)),
        PointerTarget::Other(ty) if other(*ty).is_none() => {
            format!("a pointer of type `{ty}`")
        }
        _ => format!("a pointer to {}", target(kind)),
    };
    if let PointerTarget::Stack { .. } = kind {
        text += &match offset {
            0 => String::from(", fp"),
            _ => format!(", fp{offset:+}"),
        };
    } else if offset != 0 {
        text += &format!(", offset {}", signed(offset));
    }
    if let Some(variable) = variable {
        text += &format!(" plus {}", range(variable));
    }
    if let PointerTarget::Packet { range } | PointerTarget::PacketMeta { range } = kind {
        text += &match *range {
            -1 => String::from(", at or beyond the end"),
            ..0 => String::from(", beyond the end"),
            0 if !in_full => String::new(),
            0 => String::from(", no bytes proven"),
            proven => {
                let from = if variable.is_some() {
                    " from there"
                } else {
                    ""
                };
                format!(", {} proven{from}", bytes(proven))
            }
        };
    }
    if maybe_null {
        text += ", or null";
    }
    if acquired {
        text += ", to be released";
    }
    text
}
