//! Special fields of map values: what the search finds, and which values count as invalid.

use beebox_btf::fields::{FieldFault, FieldKind, FieldRecord, FieldSet, StructureFields};
use beebox_btf::{
    AccessFault, Array, Btf, Builder, DeclTag, Encoding, Int, Kind, Member, StrOffset, TypeId,
};

/// Structures of the kernel that special fields are, with their sizes.
const STRUCTS: [(&str, u32); 4] = [
    ("bpf_spin_lock", 4),
    ("bpf_res_spin_lock", 4),
    ("bpf_timer", 16),
    ("bpf_list_node", 24),
];

/// Types of a program with the special structures, a kptr and the value `members`, each a
/// name of a type and an offset in bytes.
fn value(members: &[(&str, u32)]) -> (Btf<'static>, TypeId) {
    let mut builder = Builder::new();
    let name = builder.string("int");
    let int = builder.int(
        name,
        Int {
            size: 4,
            bits: 32,
            offset: 0,
            encoding: Encoding::SIGNED,
        },
    );
    let mut types = vec![("int", int)];
    for (name, size) in STRUCTS {
        let text = builder.string(name);
        types.push((name, builder.composite(Kind::Struct, text, size, &[])));
    }
    let name = builder.string("task_struct");
    let task = builder.composite(Kind::Struct, name, 8, &[]);
    let tag = builder.string("kptr");
    let tagged = builder.reference(Kind::TypeTag, tag, task);
    let kptr = builder.reference(Kind::Ptr, StrOffset::EMPTY, tagged);
    types.push(("kptr", kptr));
    types.push((
        "kptr[3]",
        builder.array(Array {
            element: kptr,
            index: int,
            count: 3,
        }),
    ));
    let members: Vec<Member> = members
        .iter()
        .map(|(name, offset)| Member {
            name: StrOffset::EMPTY,
            ty: types
                .iter()
                .find(|(known, _)| known == name)
                .expect("a type")
                .1,
            bit_offset: offset * 8,
            bits: 0,
        })
        .collect();
    let name = builder.string("value");
    let value = builder.composite(Kind::Struct, name, 64, &members);
    let btf = Btf::parse(builder.finish()).expect("a blob of the builder");
    (btf, value)
}

fn found(members: &[(&str, u32)]) -> Result<Vec<(FieldKind, u32)>, FieldFault> {
    let (btf, value) = value(members);
    let record = FieldRecord::new(&btf, None, value, FieldSet::MAP_VALUE)?;
    let fields = record.fields().iter();
    Ok(fields.map(|field| (field.kind, field.offset)).collect())
}

#[oracle::test]
fn fields_are_found_at_their_offsets() {
    let members = [
        ("int", 0),
        ("bpf_spin_lock", 4),
        ("bpf_timer", 8),
        ("kptr[3]", 24),
    ];
    let expected = [
        (FieldKind::SpinLock, 4),
        (FieldKind::Timer, 8),
        (FieldKind::KptrRef, 24),
        (FieldKind::KptrRef, 32),
        (FieldKind::KptrRef, 40),
    ];
    assert_eq!(found(&members), Ok(expected.to_vec()));
}

#[oracle::test]
fn values_have_no_nodes() {
    let members = [("bpf_list_node", 0), ("bpf_spin_lock", 24)];
    assert_eq!(found(&members), Ok(vec![(FieldKind::SpinLock, 24)]));
    let (btf, object) = value(&members);
    let record = FieldRecord::new(&btf, None, object, FieldSet::OBJECT);
    assert!(record.is_ok_and(|record| record.has(FieldKind::ListNode)));
}

#[oracle::test]
fn invalid_fields_are_reported() {
    let twice = [("bpf_spin_lock", 0), ("bpf_spin_lock", 4)];
    assert_eq!(found(&twice), Err(FieldFault::Twice));
    let both = [("bpf_spin_lock", 0), ("bpf_res_spin_lock", 4)];
    assert_eq!(found(&both), Err(FieldFault::TwoLocks));
    let overlapping = [("bpf_timer", 0), ("kptr", 8)];
    assert_eq!(found(&overlapping), Err(FieldFault::Overlap));
    let many = [
        ("kptr[3]", 0),
        ("kptr[3]", 24),
        ("kptr[3]", 48),
        ("kptr[3]", 72),
    ];
    assert_eq!(found(&many), Err(FieldFault::TooMany));
}

#[oracle::test]
fn fields_at_unfit_offsets_are_none() {
    assert_eq!(found(&[("bpf_timer", 4)]), Ok(Vec::new()));
    assert_eq!(found(&[("kptr", 2)]), Ok(Vec::new()));
}

/// Structures of which each has the one before twice, `levels` of them; the first has `first`.
fn doubled(levels: usize, first: &[&str]) -> (Btf<'static>, TypeId) {
    let mut builder = Builder::new();
    let mut members = Vec::new();
    for name in first {
        let name = builder.string(name);
        members.push(builder.composite(Kind::Struct, name, 0, &[]));
    }
    let member = |ty: TypeId| Member {
        name: StrOffset::EMPTY,
        ty,
        bit_offset: 0,
        bits: 0,
    };
    let members: Vec<Member> = members.into_iter().map(member).collect();
    let mut ty = builder.composite(Kind::Struct, StrOffset::EMPTY, 0, &members);
    for _ in 1..levels {
        let twice = [member(ty), member(ty)];
        ty = builder.composite(Kind::Struct, StrOffset::EMPTY, 0, &twice);
    }
    let btf = Btf::parse(builder.finish()).expect("a blob of the builder");
    (btf, ty)
}

#[oracle::test]
fn structures_that_have_others_twice_take_bounded_time() {
    for first in [&[][..], &["plain"]] {
        let (btf, value) = doubled(31, first);
        let record = FieldRecord::new(&btf, None, value, FieldSet::MAP_VALUE);
        assert_eq!(record, Ok(FieldRecord::default()));
    }
    let (btf, value) = doubled(33, &[]);
    let record = FieldRecord::new(&btf, None, value, FieldSet::MAP_VALUE);
    assert_eq!(record, Err(FieldFault::TooDeep));
}

#[oracle::test]
fn a_known_structure_still_counts_its_depth() {
    // The value has a short chain first, then the same chain below the limit of the depth.
    let mut builder = Builder::new();
    let member = |ty: TypeId| Member {
        name: StrOffset::EMPTY,
        ty,
        bit_offset: 0,
        bits: 0,
    };
    let mut chain = |depth: usize, mut ty: TypeId| {
        for _ in 0..depth {
            ty = builder.composite(Kind::Struct, StrOffset::EMPTY, 0, &[member(ty)]);
        }
        ty
    };
    let shared = chain(4, TypeId::VOID);
    let deep = chain(30, shared);
    let value = builder.composite(
        Kind::Struct,
        StrOffset::EMPTY,
        0,
        &[member(shared), member(deep)],
    );
    let btf = Btf::parse(builder.finish()).expect("a blob of the builder");
    let record = FieldRecord::new(&btf, None, value, FieldSet::MAP_VALUE);
    assert_eq!(record, Err(FieldFault::TooDeep));
}

/// An object with a node of a list, and one with a lock and the head of a list of the former.
fn owner() -> (Btf<'static>, TypeId, TypeId) {
    let mut builder = Builder::new();
    let structure = |builder: &mut Builder, name: &str, size, members: &[(&str, TypeId, u32)]| {
        let members: Vec<Member> = members
            .iter()
            .map(|&(name, ty, offset)| Member {
                name: builder.string(name),
                ty,
                bit_offset: offset * 8,
                bits: 0,
            })
            .collect();
        let name = builder.string(name);
        builder.composite(Kind::Struct, name, size, &members)
    };
    let lock = structure(&mut builder, "bpf_spin_lock", 4, &[]);
    let node = structure(&mut builder, "bpf_list_node", 24, &[]);
    let head = structure(&mut builder, "bpf_list_head", 16, &[]);
    let object = structure(&mut builder, "object", 32, &[("node", node, 8)]);
    let members = [("lock", lock, 0), ("head", head, 8)];
    let owner = structure(&mut builder, "owner", 24, &members);
    let text = builder.string("contains:object:node");
    let target = owner;
    builder.decl_tag(
        text,
        DeclTag {
            target,
            component: 1,
        },
    );
    let btf = Btf::parse(builder.finish()).expect("a blob of the builder");
    (btf, object, owner)
}

#[oracle::test]
fn structures_with_fields_know_what_they_own() {
    let (btf, object, owner) = owner();
    let found = StructureFields::new(&btf, None).expect("valid fields");
    let record = found.get(owner).expect("fields of the owner");
    let head = record.field_at(FieldKind::ListHead, 8).expect("the head");
    assert_eq!((head.target, head.node), (object, 8));
    assert!(record.has_lock() && record.field_at(FieldKind::ListHead, 0).is_none());
    let record = found.get(object).expect("fields of the object");
    assert!(record.has(FieldKind::ListNode) && !record.has_lock());
    assert_eq!(found.get(TypeId(1)), None);
}

#[oracle::test]
fn the_walk_to_a_structure_in_front_says_what_it_finds() {
    let (btf, object, owner) = owner();
    let lock = btf
        .find(Kind::Struct, "bpf_spin_lock")
        .expect("a lock")
        .id();
    assert_eq!(btf.begins_with(owner, lock, 0, false), Ok(true));
    assert_eq!(btf.begins_with(owner, lock, 0, true), Ok(false));
    assert_eq!(btf.begins_with(owner, owner, 0, true), Ok(true));
    // The lock has no member.
    let none = btf.begins_with(owner, object, 0, false);
    assert!(matches!(none, Err(AccessFault::NoMember { off: 0, .. })));
}
