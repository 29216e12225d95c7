//! Registers in the words of reports.

use btf::Kind;
use btf::TypeId;

use crate::domain::{Scalar, Tnum};
use crate::input::Input;
use crate::log::TypeText;
use crate::state::{RegKind, RegState, TypeFlags, TypeRef};

/// What a register holds, in a few words.
pub(super) fn plain(reg: &RegState) -> String {
    let is_nullable = reg.may_be_null();
    let words = match reg.kind {
        RegKind::NotInit => "an uninitialized value",
        RegKind::Scalar => "an integer scalar",
        RegKind::Ctx => "a context pointer",
        RegKind::Stack { .. } => "a stack pointer",
        RegKind::MapValue { .. } if is_nullable => "a nullable map value pointer",
        RegKind::MapValue { .. } => "a map value pointer",
        RegKind::Mem { .. } if is_nullable => "a nullable memory pointer",
        RegKind::Mem { .. } => "a memory pointer",
        RegKind::BtfId { .. } if is_nullable => "a nullable kernel object pointer",
        RegKind::BtfId { .. } if reg.is_non_owning() => "a borrowed allocated object pointer",
        RegKind::BtfId { .. } if reg.is_allocated() => "an owned allocated object pointer",
        RegKind::BtfId { .. } if reg.flags.has(TypeFlags::PTR_UNTRUSTED) => {
            "an untrusted kernel object pointer"
        }
        RegKind::BtfId { .. } => "a kernel object pointer",
        RegKind::MapPtr { .. }
        | RegKind::MapKey { .. }
        | RegKind::PacketMeta { .. }
        | RegKind::Packet { .. }
        | RegKind::PacketEnd
        | RegKind::FlowKeys
        | RegKind::Socket
        | RegKind::SockCommon
        | RegKind::TcpSock
        | RegKind::TpBuffer
        | RegKind::XdpSock
        | RegKind::Arena
        | RegKind::Buf
        | RegKind::Func { .. }
        | RegKind::Insn { .. }
        | RegKind::ConstDynptr { .. } => return TypeText::from(reg.reg_type()).to_string(),
    };
    words.to_owned()
}

/// The value of a register, with its range and what it points to.
pub(super) fn describe(input: &Input<'_>, reg: &RegState) -> String {
    let number = reg.whole_offset(input.rules);
    let offset = || offset(&number);
    let of_map = |kind: &str, map| match input.map_name(map) {
        "" => kind.to_owned(),
        name => format!("{kind} from {name}"),
    };
    let named = |words: &str, ty| format!("{words} type={}", type_text(input, ty));
    match reg.kind {
        RegKind::NotInit => "uninitialized value".to_owned(),
        RegKind::Scalar => scalar(&reg.num),
        RegKind::Ctx => format!("context pointer {}", offset()),
        RegKind::Stack { .. } => format!("stack pointer {}", offset()),
        RegKind::MapValue { map, .. } => {
            let kind = match reg.may_be_null() {
                true => "nullable map value",
                false => "map value",
            };
            format!("{} {}", of_map(kind, map), offset())
        }
        RegKind::MapPtr { map, .. } => match input.map_name(map) {
            "" => "map pointer".to_owned(),
            name => format!("map pointer for map {name}"),
        },
        RegKind::BtfId { ty } if reg.is_non_owning() => {
            named("borrowed allocated object pointer", ty)
        }
        RegKind::BtfId { ty } if reg.is_allocated() => named("owned allocated object pointer", ty),
        RegKind::BtfId { ty } => {
            let words = TypeText::from(reg.reg_type()).to_string();
            format!("{} {}", named(&words, ty), offset())
        }
        RegKind::MapKey { .. }
        | RegKind::PacketMeta { .. }
        | RegKind::Packet { .. }
        | RegKind::PacketEnd
        | RegKind::FlowKeys
        | RegKind::Socket
        | RegKind::SockCommon
        | RegKind::TcpSock
        | RegKind::TpBuffer
        | RegKind::XdpSock
        | RegKind::Mem { .. }
        | RegKind::Arena
        | RegKind::Buf
        | RegKind::Func { .. }
        | RegKind::Insn { .. }
        | RegKind::ConstDynptr { .. } => {
            format!("{} {}", TypeText::from(reg.reg_type()), offset())
        }
    }
}

/// A type as BTF shows it, such as `(struct sock)`.
pub(super) fn type_text(input: &Input<'_>, ty: TypeRef) -> String {
    let kind = input
        .btf(ty)
        .and_then(|btf| btf.get(TypeId(ty.id)))
        .map(|found| found.kind());
    let word = match kind {
        Some(Kind::Struct) => "struct ",
        Some(Kind::Union) => "union ",
        Some(Kind::Enum | Kind::Enum64) => "enum ",
        _ => "",
    };
    format!("({word}{})", input.type_name(ty))
}

fn is_unknown(number: &Scalar) -> bool {
    let ranges = (number.smin, number.smax, number.umin, number.umax);
    number.var_off == Tnum::UNKNOWN && ranges == (i64::MIN, i64::MAX, 0, u64::MAX)
}

fn scalar(number: &Scalar) -> String {
    if let Some(value) = number.as_const() {
        return format!("integer scalar value {}", value as i64);
    }
    if is_unknown(number) {
        return "integer scalar with unknown value".to_owned();
    }
    match number.smin == number.smax {
        true => format!("integer scalar value {}", number.smin),
        false => format!("integer scalar with {}", range(number)),
    }
}

fn bits(of: Tnum) -> String {
    let (value, mask) = (of.value, of.mask);
    format!("known bits {value:#x}, unknown mask {mask:#x}")
}

fn range(number: &Scalar) -> String {
    let signed = |value: i64| match value {
        i64::MIN => "S64_MIN".to_owned(),
        i64::MAX => "S64_MAX".to_owned(),
        value => value.to_string(),
    };
    let unsigned = |value: u64| match value {
        u64::MAX => "U64_MAX".to_owned(),
        value => value.to_string(),
    };
    format!(
        "signed range [{}, {}], unsigned range [{}, {}]",
        signed(number.smin),
        signed(number.smax),
        unsigned(number.umin),
        unsigned(number.umax)
    )
}

fn offset(number: &Scalar) -> String {
    if let Some(value) = number.as_const() {
        return format!("at offset {}", value as i64);
    }
    match is_unknown(number) {
        true => "with unknown offset".to_owned(),
        false => format!(
            "with variable offset: {}, {}",
            bits(number.var_off),
            range(number)
        ),
    }
}

/// A bound of a pointer plus the offset of an access.
pub(super) fn sum(bound: i64, off: i32) -> String {
    match bound.checked_add(off.into()) {
        Some(sum) => sum.to_string(),
        None => {
            let beyond = if off < 0 {
                "below S64_MIN"
            } else {
                "above S64_MAX"
            };
            format!("{bound} plus {off} ({beyond})")
        }
    }
}

/// The offset of an access, in words.
pub(super) fn access_offset(number: &Scalar, off: i32) -> String {
    if let Some(value) = number.as_const() {
        return format!("constant {}", sum(value as i64, off));
    }
    if is_unknown(number) {
        return "unbounded".to_owned();
    }
    let fixed = match off {
        0 => String::new(),
        off => format!(", plus fixed offset {off}"),
    };
    format!(
        "variable: {}{fixed}; {}",
        bits(number.var_off),
        range(number)
    )
}
