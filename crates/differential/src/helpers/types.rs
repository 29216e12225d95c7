//! Families about the types of the kernel: the text of objects, lookups by name.
//!
//! Linux reads and prints what it should not for ids of some kinds: it follows null pointers for
//! `void` below a typedef and for variables. So every id here is that of a type which is made of
//! structures, unions, arrays, integers, enumerations and pointers only, or of none.

use std::sync::OnceLock;

use btf::{Btf, Kind, Shape, TypeId};
use program::MapParams;
use spec::maps::MapKind;
use spec::programs::ProgramType;

use super::Family;
use super::case::{Case, MAP, Setup, VALUE, constant};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[
    Family::new("text of objects", text),
    Family::new("types by name", by_name),
];

/// A type whose objects Linux prints without harm.
struct Printable {
    id: TypeId,
    kind: Kind,
    name: String,
    size: u32,
    has_pointers: bool,
}

/// Bytes of the largest object, and of the map's value that holds one.
const LARGEST: u32 = 256;
const OBJECT: u32 = LARGEST + 64;
/// Bytes of the packet, and of text that is put into it.
const PACKET: usize = 2000;
const TEXT: u32 = 1900;

/// The printable types of the running kernel; none if it has no types.
fn printable() -> &'static [Printable] {
    static TYPES: OnceLock<Vec<Printable>> = OnceLock::new();
    TYPES.get_or_init(|| {
        let Ok(types) = sys::kernel::btf() else {
            return Vec::new();
        };
        let all = types.types().filter_map(|ty| {
            let size = types
                .size_of(ty.id())
                .filter(|size| (1..=LARGEST).contains(size))?;
            let kinds = [
                Kind::Int,
                Kind::Struct,
                Kind::Union,
                Kind::Typedef,
                Kind::Enum,
                Kind::Enum64,
            ];
            if !kinds.contains(&ty.kind()) {
                return None;
            }
            let has_pointers = has_pointers(&types, ty.id())?;
            Some(Printable {
                id: ty.id(),
                kind: ty.kind(),
                name: ty.name().to_string(),
                size,
                has_pointers,
            })
        });
        all.collect()
    })
}

/// True if an object of the type holds pointers; `None` if it holds something that Linux cannot
/// print, or enumerations of other sizes than it reads.
fn has_pointers(types: &Btf<'_>, id: TypeId) -> Option<bool> {
    let ty = types.get(id)?;
    match ty.shape() {
        Shape::Int(_) => Some(false),
        Shape::Ptr(_) => Some(true),
        Shape::Enum(of) => {
            let size = if of.wide { 8 } else { 4 };
            (of.size == size).then_some(false)
        }
        Shape::Array(array) => has_pointers(types, array.element),
        Shape::Struct(composite) | Shape::Union(composite) => {
            let mut members = composite.members();
            members.try_fold(false, |any, member| {
                Some(any | has_pointers(types, member.ty)?)
            })
        }
        Shape::Typedef(to)
        | Shape::Volatile(to)
        | Shape::Const(to)
        | Shape::Restrict(to)
        | Shape::TypeTag(to) => has_pointers(types, to),
        Shape::Void
        | Shape::Fwd(_)
        | Shape::Func(_)
        | Shape::Proto(_)
        | Shape::Var(_)
        | Shape::Datasec(_)
        | Shape::Float(_)
        | Shape::DeclTag(_) => None,
    }
}

fn choose(choices: &mut Choices<'_>) -> &'static Printable {
    const NOTHING: Printable = Printable {
        id: TypeId::VOID,
        kind: Kind::Int,
        name: String::new(),
        size: 1,
        has_pointers: false,
    };
    static NONE: Printable = NOTHING;
    match printable() {
        [] => &NONE,
        types => {
            let is_composite = choices.below(4) != 0;
            for _ in 0..20 {
                let ty = &types[choices.below(types.len() as u32) as usize];
                if ty.kind.is_composite() == is_composite {
                    return ty;
                }
            }
            &types[0]
        }
    }
}

fn array(value_size: u32) -> MapParams {
    MapParams {
        map_type: MapKind::Array.number(),
        key_size: 4,
        value_size,
        max_entries: 1,
        ..MapParams::default()
    }
}

/// Bytes of an object: zeros, a few other bytes, characters, or anything.
fn object(choices: &mut Choices<'_>) -> Vec<u8> {
    let kind = choices.below(6);
    let byte = |_| match kind {
        0 => 0,
        1 | 2 if choices.below(8) != 0 => 0,
        3 => choices.pick(b"abc \0\n\x7f\x80\xa0\xff"),
        4 => choices.below(3) as u8,
        _ => choices.below(256) as u8,
    };
    (0..OBJECT).map(byte).collect()
}

/// `bpf_snprintf_btf`.
fn text(choices: &mut Choices<'_>) -> Case {
    let ty = choose(choices);
    let value = object(choices);
    let is_zero = value.iter().all(|byte| *byte == 0);
    let mut flags = u64::from(choices.below(16));
    if ty.has_pointers && !is_zero {
        // Linux hashes other pointers than null.
        flags |= 4;
    }
    let (mut id, mut pointer_size) = (ty.id.0, 16);
    match choices.below(40) {
        0 => flags |= choices.pick(&[16, 1 << 31, 1 << 32]),
        1 => pointer_size = choices.pick(&[8, 15, 17, 24]),
        2 => id = 0,
        3 => id = choices.pick(&[0x7fff_ffff, 0x8000_0000, u32::MAX]),
        _ => {}
    }
    let size = match choices.below(4) {
        0 => choices.pick(&[1, 2, 10, 64, 200]),
        _ => TEXT,
    };
    // Addresses that the kernel has not, or a place in the map's value.
    let address = match choices.below(20) {
        0 => {
            let address = choices.pick(&[0u64, 1, 0x1000, 1 << 46, 1 << 60]);
            format!("r7 = {address:#x} ll\n")
        }
        _ => {
            let offset = choices.below(OBJECT - ty.size.max(1));
            format!("r7 += {}\n", choices.pick(&[0, offset & !7, offset]))
        }
    };
    let member_flags = choices.pick(&[0u64, 0, 1]) << 32 | u64::from(id);
    let output = MAP + 1;
    let text = format!(
        "r6 = r1\nr7 = 0\nr0 = 0\n*(u32 *)(r10 - 4) = r0\n\
         r1 = {MAP:#x} ll\nr2 = r10\nr2 += -4\ncall 1\nif r0 == 0 goto out\nr7 = r0\n\
         r1 = {output:#x} ll\nr2 = r10\nr2 += -4\ncall 1\nif r0 == 0 goto out\nr8 = r0\n\
         {address}*(u64 *)(r10 - 32) = r7\nr1 = {member_flags:#x} ll\n\
         *(u64 *)(r10 - 24) = r1\n*(u64 *)(r10 - 16) = r1\n\
         r1 = r8\nr2 = {size}\nr3 = r10\nr3 += -32\nr4 = {pointer_size}\nr5 = {flags:#x} ll\n\
         call 149\nr9 = r0\n\
         r1 = r6\nr2 = 0\nr3 = r8\nr4 = {TEXT}\nr5 = 0\ncall 9\nr0 = r9\nout:\nexit"
    );
    Case {
        packet: vec![1; PACKET],
        maps: vec![Setup(array(OBJECT), Some(value)), Setup(array(2048), None)],
        ..Case::tc(choices, text)
    }
}

/// `bpf_btf_find_by_name_kind`.
fn by_name(choices: &mut Choices<'_>) -> Case {
    let ty = choose(choices);
    // The kinds whose types every part of the kernel may be asked for.
    let kind = match choices.below(5) {
        0 => choices.pick(&[
            Kind::Int,
            Kind::Struct,
            Kind::Union,
            Kind::Enum,
            Kind::Typedef,
        ]),
        _ => ty.kind,
    };
    let mut name = ty.name.clone();
    if choices.one_in(8) {
        name += "_";
    }
    name.truncate(120);
    let size = match choices.below(8) {
        0 => 1 + choices.below(name.len() as u32 + 1),
        1 => name.len() as u32 + 2,
        _ => name.len() as u32 + 1,
    };
    let flags = choices.pick(&[0u64, 0, 0, 0, 0, 0, 0, 1, 1 << 32]);
    let text = format!(
        "r1 = {VALUE:#x} ll\nr2 = {size}\nr3 = {}\nr4 = {flags:#x} ll\ncall 167\nexit",
        kind as u32
    );
    Case {
        kind: ProgramType::Syscall,
        packet: Vec::new(),
        ..Case::tc(choices, text).with_map(constant(name.as_bytes()))
    }
}
