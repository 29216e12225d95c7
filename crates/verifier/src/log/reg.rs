//! Registers: type, identity, ranges and bits.

use std::fmt::{self, Write};

use spec::behaviour::{Behaviour, Behaviours};

use crate::domain::{Scalar, Tnum};
use crate::input::Input;
use crate::state::{
    ADD_CONST, DynptrKind, MapRef, RegBase, RegKind, RegRules, RegState, RegType, TypeFlags,
};

/// A register's type, written as its name by a kernel, such as `map_value_or_null` (`reg_type_str`).
#[doc(alias = "reg_type_str")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeText(pub(crate) RegType, pub(crate) Behaviours);

impl TypeText {
    /// The type without flags that its name does not tell.
    pub fn named(self) -> RegType {
        let told = PREFIXES.iter().map(|(flag, _)| *flag);
        let told = told.fold(TypeFlags::PTR_MAYBE_NULL, TypeFlags::with);
        self.0.base.with(self.0.flags.and(told))
    }
}

/// Flags at the beginning of a type's name.
const PREFIXES: [(TypeFlags, &str); 7] = [
    (TypeFlags::MEM_RDONLY, "rdonly_"),
    (TypeFlags::MEM_RINGBUF, "ringbuf_"),
    (TypeFlags::MEM_USER, "user_"),
    (TypeFlags::MEM_PERCPU, "percpu_"),
    (TypeFlags::MEM_RCU, "rcu_"),
    (TypeFlags::PTR_UNTRUSTED, "untrusted_"),
    (TypeFlags::PTR_TRUSTED, "trusted_"),
];

impl From<RegType> for TypeText {
    fn from(ty: RegType) -> TypeText {
        TypeText(ty, Behaviours::default())
    }
}

/// Known bits, written as by a kernel (`tnum_strn`).
#[doc(alias = "tnum_strn")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitsText(pub Tnum, pub Behaviours);

impl From<Tnum> for BitsText {
    fn from(bits: Tnum) -> BitsText {
        BitsText(bits, Behaviours::default())
    }
}

impl fmt::Display for BitsText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BitsText(bits, rules) = self;
        match rules.has(Behaviour::ConstantBitsShort) {
            true => bits.fmt(f),
            false => write!(f, "({:#x}; {:#x})", bits.value, bits.mask),
        }
    }
}

impl fmt::Display for TypeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TypeText(RegType { base, flags }, rules) = *self;
        if !rules.has(Behaviour::NumbersAreScalars) {
            f.write_str(match base {
                RegBase::Scalar => "inv",
                RegBase::PtrToBuf if flags.has(TypeFlags::MEM_RDONLY) => "rdonly_buf",
                RegBase::PtrToBuf => "rdwr_buf",
                RegBase::PtrToBtfId if flags.has(TypeFlags::MEM_PERCPU) => "percpu_ptr_",
                base => RegRules::of(base).label,
            })?;
        } else {
            for (flag, prefix) in PREFIXES {
                if flags.has(flag) {
                    let is_older =
                        flag == TypeFlags::MEM_RINGBUF && !rules.has(Behaviour::RingbufNamed);
                    f.write_str(if is_older { "alloc_" } else { prefix })?;
                }
            }
            f.write_str(RegRules::of(base).label)?;
        }
        match (flags.has(TypeFlags::PTR_MAYBE_NULL), base) {
            (false, _) => Ok(()),
            (true, RegBase::PtrToBtfId) => f.write_str("or_null_"),
            (true, _) => f.write_str("_or_null"),
        }
    }
}

/// A number: decimal if it is short, else hexadecimal (`verbose_unum`, `is_unum_decimal`).
#[doc(alias = "verbose_unum")]
#[doc(alias = "is_unum_decimal")]
struct Unsigned(u64);

impl fmt::Display for Unsigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0..=0xffff => write!(f, "{}", self.0),
            long => write!(f, "{long:#x}"),
        }
    }
}

/// A signed number: decimal if it is short, else the hexadecimal bits (`verbose_snum`,
/// `is_snum_decimal`).
#[doc(alias = "verbose_snum")]
#[doc(alias = "is_snum_decimal")]
struct Signed(i64);

impl fmt::Display for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            -0x8000..=0x7fff => write!(f, "{}", self.0),
            long => write!(f, "{long:#x}"),
        }
    }
}

/// `(value; mask)`, or the constant (`tnum_strn`).
impl fmt::Display for Tnum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mask {
            0 => Unsigned(self.value).fmt(f),
            mask => write!(f, "({:#x}; {mask:#x})", self.value),
        }
    }
}

/// Writes a list with commas between its items.
struct List<'w> {
    out: &'w mut String,
    is_first: bool,
}

impl List<'_> {
    fn item(&mut self, item: fmt::Arguments<'_>) {
        if !self.is_first {
            self.out.push(',');
        }
        self.is_first = false;
        // Writing to a String does not fail.
        let _ = self.out.write_fmt(item);
    }

    fn more(&mut self, text: fmt::Arguments<'_>) {
        let _ = self.out.write_fmt(text);
    }
}

/// Appends a register of frame `frameno` (`print_reg_state`).
#[doc(alias = "print_reg_state")]
pub(crate) fn write_reg(
    input: &Input<'_>,
    out: &mut String,
    frameno: u32,
    reg: &RegState,
    is_precise: bool,
) {
    let is_scalar = reg.is_scalar();
    let bits = reg.num.var_off;
    if is_scalar && is_precise {
        out.push('P');
    }
    if is_scalar && bits.is_const() {
        let _ = write!(out, "{}", Signed(bits.value as i64));
        return;
    }
    let _ = write!(out, "{}", TypeText::from(reg.reg_type()));
    if reg.kind == RegKind::Arena && reg.flags.is_empty() {
        return;
    }
    if let RegKind::Stack { frame } = reg.kind
        && reg.flags.is_empty()
    {
        if frame != frameno {
            let _ = write!(out, "[{frame}]");
        }
        if bits.is_const() {
            let offset = bits.value.wrapping_add_signed(reg.off.into());
            let _ = write!(out, "{}", Signed(offset as i64));
            return;
        }
    }
    if let RegKind::BtfId { ty } = reg.kind {
        out.push_str(&input.type_name(ty));
    }
    out.push('(');
    let mut list = List {
        out,
        is_first: true,
    };
    write_attributes(input, &mut list, reg);
    list.out.push(')');
}

fn write_attributes(input: &Input<'_>, list: &mut List<'_>, reg: &RegState) {
    // Of an object that is held, the reference is the identity; of what is in it, it is the parent.
    let by_use = input.rules.has(Behaviour::ReferencesByUse);
    let id = if by_use && reg.id == 0 {
        reg.ref_obj_id
    } else {
        reg.id
    };
    if id != 0 {
        list.item(format_args!("id={}", id & !ADD_CONST));
    }
    if id & ADD_CONST != 0 {
        list.more(format_args!("{:+}", reg.off));
    }
    if reg.ref_obj_id != 0 && (!by_use || reg.ref_obj_id != id) {
        let name = if by_use { "parent_id" } else { "ref_obj_id" };
        list.item(format_args!("{name}={}", reg.ref_obj_id));
    }
    if reg.flags.has(TypeFlags::MEM_ALLOC) && reg.flags.has(TypeFlags::NON_OWN_REF) {
        list.item(format_args!("non_own_ref"));
    }
    if let RegKind::MapPtr { map, .. }
    | RegKind::MapValue { map, .. }
    | RegKind::MapKey { map, .. } = reg.kind
    {
        write_map(input, list, map);
    }
    let is_united = input.rules.has(Behaviour::UnitedOffsets);
    if !reg.is_scalar() && reg.off != 0 && !is_united {
        list.item(format_args!("off={}", Signed(reg.off.into())));
    }
    if let Some(range) = reg.kind.packet_range() {
        list.item(format_args!("r={}", Unsigned(i64::from(range) as u64)));
    }
    if let RegKind::Mem { size, .. } = reg.kind {
        list.item(format_args!("sz={}", Unsigned(size.into())));
    }
    if let RegKind::ConstDynptr { kind } = reg.kind {
        list.item(format_args!("type={kind}"));
    }
    let bits = reg.num.var_off;
    if bits.is_const() {
        let mut value = bits.value as i64;
        if !reg.is_scalar() && is_united {
            value = value.wrapping_add(reg.off.into());
        }
        if value != 0 {
            list.item(format_args!("imm={}", Signed(value)));
        }
        return;
    }
    write_ranges(list, &reg.num);
    if !bits.is_unknown() {
        list.item(format_args!("var_off={bits}"));
    }
}

fn write_map(input: &Input<'_>, list: &mut List<'_>, map: MapRef) {
    let name = input.map_name(map);
    if !name.is_empty() {
        list.item(format_args!("map={name}"));
    }
    let map = &input.maps[map];
    list.item(format_args!(
        "ks={},vs={}",
        map.key_size() as i32,
        map.value_size() as i32
    ));
}

/// Ends of the ranges that say something; equal ends of one direction are written once, as in
/// `smin=smin32=-5` (`print_scalar_ranges`).
#[doc(alias = "print_scalar_ranges")]
fn write_ranges(list: &mut List<'_>, num: &Scalar) {
    // A short 32-bit number reads as a 64-bit one, a long one is not sign-extended.
    let short = |value: i32| match Signed(value.into()).is_short() {
        true => i64::from(value) as u64,
        false => u64::from(value as u32),
    };
    let mut ends = [
        ("smin", num.smin as u64, num.smin == i64::MIN),
        ("smax", num.smax as u64, num.smax == i64::MAX),
        ("umin", num.umin, num.umin == 0),
        ("umax", num.umax, num.umax == u64::MAX),
        ("smin32", short(num.s32_min), num.s32_min == i32::MIN),
        ("smax32", short(num.s32_max), num.s32_max == i32::MAX),
        ("umin32", num.u32_min.into(), num.u32_min == 0),
        ("umax32", num.u32_max.into(), num.u32_max == u32::MAX),
    ];
    let is_signed = |name: &str| name.starts_with('s');
    for first in 0..ends.len() {
        let (name, value, omitted) = ends[first];
        if omitted {
            continue;
        }
        let is_negative = is_signed(name) && (value as i64) < 0;
        list.item(format_args!("{name}="));
        for (other, also, omitted) in ends[first..].iter_mut().skip(2).step_by(2) {
            let is_other_negative = is_signed(other) && (*also as i64) < 0;
            if !*omitted && *also == value && is_other_negative == is_negative {
                *omitted = true;
                list.more(format_args!("{other}="));
            }
        }
        match is_signed(name) {
            true => list.more(format_args!("{}", Signed(value as i64))),
            false => list.more(format_args!("{}", Unsigned(value))),
        }
    }
}

impl Signed {
    fn is_short(&self) -> bool {
        (-0x8000..=0x7fff).contains(&self.0)
    }
}

/// Its name (`dynptr_type_str`).
impl fmt::Display for DynptrKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DynptrKind::Local => "local",
            DynptrKind::Ringbuf => "ringbuf",
            DynptrKind::Skb => "skb",
            DynptrKind::Xdp => "xdp",
            DynptrKind::SkbMeta => "skb_meta",
            DynptrKind::File => "file",
        })
    }
}
