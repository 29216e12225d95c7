//! CO-RE relocations that compilers do not emit, on types made by hand. Real objects are
//! compared with libbpf in the tests of `object`.

use beebox_btf::core::{Access, CoreError, Path, Resolution, Resolver, essential_name};
use beebox_btf::ext::{CoreKind, CoreSpec};
use beebox_btf::{Array, Btf, Builder, Encoding, Enumerator, Int, Kind, Member, StrOffset, TypeId};

/// Builder of types, with an integer of four bytes.
struct Draft {
    builder: Builder,
    int: TypeId,
}

impl Draft {
    fn new() -> Draft {
        let mut builder = Builder::new();
        let name = builder.string("unsigned int");
        let int = builder.int(name, int(4));
        Draft { builder, int }
    }

    /// A structure or union of 64 bytes: names, types and bit offsets of members.
    fn composite(&mut self, kind: Kind, name: &str, members: &[(&str, TypeId, u32)]) -> TypeId {
        let members: Vec<Member> = members
            .iter()
            .map(|&(name, ty, bit_offset)| Member {
                name: self.builder.string(name),
                ty,
                bit_offset,
                bits: 0,
            })
            .collect();
        let name = self.builder.string(name);
        self.builder.composite(kind, name, 64, &members)
    }

    fn structure(&mut self, name: &str, members: &[(&str, TypeId, u32)]) -> TypeId {
        self.composite(Kind::Struct, name, members)
    }

    fn array(&mut self, element: TypeId, count: u32) -> TypeId {
        let index = self.int;
        self.builder.array(Array {
            element,
            index,
            count,
        })
    }

    fn relo(&mut self, ty: TypeId, access: &str, kind: CoreKind) -> CoreSpec {
        let access = self.builder.string(access);
        CoreSpec { ty, access, kind }
    }

    fn finish(&self) -> Btf<'static> {
        Btf::parse(self.builder.finish()).unwrap()
    }
}

fn int(size: u32) -> Int {
    let (bits, offset, encoding) = (size * 8, 0, Encoding::NONE);
    Int {
        size,
        bits,
        offset,
        encoding,
    }
}

/// Result of one relocation.
fn resolve(local: &Draft, target: &Draft, relo: &CoreSpec) -> Result<Resolution, CoreError> {
    Resolver::new(&local.finish(), &target.finish()).resolve(relo)
}

fn value(expected: u64, value: u64) -> Result<Resolution, CoreError> {
    Ok(Resolution::Value {
        expected: Some(expected),
        value,
        access: Access::AsIs,
    })
}

/// A structure with one member, and a relocation of its offset.
fn asker(ty: fn(&mut Draft) -> TypeId, access: &str) -> (Draft, CoreSpec) {
    let mut local = Draft::new();
    let member = ty(&mut local);
    let root = local.structure("thing", &[("field", member, 32)]);
    let relo = local.relo(root, access, CoreKind::FIELD_BYTE_OFFSET);
    (local, relo)
}

fn plain(draft: &mut Draft) -> TypeId {
    draft.int
}

#[oracle::test]
fn flexible_arrays_end_their_structure() {
    let flexible = |draft: &mut Draft| draft.array(draft.int, 0);
    let (local, relo) = asker(flexible, "0:0:7");
    let mut target = Draft::new();
    let rest = flexible(&mut target);
    let last = [("first", target.int, 0), ("field", rest, 64)];
    target.structure("thing", &last);
    assert_eq!(resolve(&local, &target, &relo), value(4 + 28, 8 + 28));

    let mut target = Draft::new();
    let rest = flexible(&mut target);
    let first = [("field", rest, 64), ("last", target.int, 64)];
    target.structure("thing", &first);
    assert_eq!(resolve(&local, &target, &relo), Ok(Resolution::Poison));
}

#[oracle::test]
fn members_are_found_in_anonymous_structures() {
    let (local, relo) = asker(plain, "0:0");
    let mut target = Draft::new();
    let inner = target.structure("", &[("other", target.int, 0), ("field", target.int, 40)]);
    let inner = target.composite(Kind::Union, "", &[("wide", target.int, 0), ("", inner, 0)]);
    let inner = target
        .builder
        .reference(Kind::Const, StrOffset::EMPTY, inner);
    target.structure("thing", &[("", target.int, 0), ("", inner, 24)]);
    assert_eq!(resolve(&local, &target, &relo), value(4, 8));
}

#[oracle::test]
fn a_misfit_ends_the_search() {
    let (local, relo) = asker(plain, "0:0");
    let mut target = Draft::new();
    let pointer = target
        .builder
        .reference(Kind::Ptr, StrOffset::EMPTY, TypeId::VOID);
    let inner = target.structure("", &[("field", pointer, 0)]);
    target.structure("thing", &[("", inner, 0), ("field", target.int, 64)]);
    assert_eq!(resolve(&local, &target, &relo), Ok(Resolution::Poison));
}

#[oracle::test]
fn a_relocation_sees_what_earlier_ones_have_left() {
    let mut local = Draft::new();
    let members = [("a", local.int, 0), ("b", local.int, 32)];
    let root = local.structure("thing", &members);
    let a = local.relo(root, "0:0", CoreKind::FIELD_BYTE_OFFSET);
    let b = local.relo(root, "0:1", CoreKind::FIELD_BYTE_OFFSET);
    let mut target = Draft::new();
    target.structure("thing___one", &[("a", target.int, 64)]);
    target.structure("thing___two", &[("b", target.int, 96)]);
    let (local, target) = (local.finish(), target.finish());
    for (first, value_of_first, second) in [(a, value(0, 8), b), (b, value(4, 12), a)] {
        let mut resolver = Resolver::new(&local, &target);
        assert_eq!(resolver.resolve(&first), value_of_first);
        assert_eq!(resolver.resolve(&second), Ok(Resolution::Poison));
        assert_eq!(resolver.resolve(&first), value_of_first);
    }
}

#[oracle::test]
fn values_of_32_bits_are_signed_numbers() {
    let enumeration = |draft: &mut Draft, wide: bool| {
        let values = [Enumerator {
            name: draft.builder.string("TOP"),
            value: 0xffff_fff0,
        }];
        let name = draft.builder.string("level");
        match wide {
            true => draft.builder.enumeration64(name, 8, false, &values),
            false => draft.builder.enumeration(name, 4, false, &values),
        }
    };
    let (mut local, mut target) = (Draft::new(), Draft::new());
    let level = enumeration(&mut local, false);
    enumeration(&mut target, true);
    let relo = local.relo(level, "0", CoreKind::ENUM_VALUE);
    let expected = 0xffff_ffff_ffff_fff0;
    assert_eq!(
        resolve(&local, &target, &relo),
        value(expected, 0xffff_fff0)
    );
    let text = Path::parse(&local.finish(), &relo).unwrap().to_string();
    assert_eq!(text, "<enumval_value> [2] enum level::TOP = 4294967280");
}

#[oracle::test]
fn invalid_access_strings_are_errors() {
    let (mut local, relo) = asker(plain, "0:0");
    let target = Draft::new();
    let number = relo.ty;
    let with = |local: &mut Draft, access: &str, kind| local.relo(number, access, kind);
    let offset = CoreKind::FIELD_BYTE_OFFSET;
    let nowhere = |id, step| CoreError::NoSuchPart { id, step };
    let long = ["0"; 65].join(":");
    for (access, kind, error) in [
        ("0:1", offset, nowhere(number, 1)),
        ("0:0:0", offset, nowhere(local.int, 2)),
        ("", offset, CoreError::AccessText),
        ("0:", offset, CoreError::AccessText),
        ("0:-1", offset, CoreError::AccessText),
        ("0:99999999999", offset, CoreError::AccessText),
        ("0:0", CoreKind::TYPE_SIZE, CoreError::AccessText),
        ("0", CoreKind::ENUM_VALUE, nowhere(number, 0)),
        (&long, offset, CoreError::AccessTooLong),
    ] {
        let relo = with(&mut local, access, kind);
        assert_eq!(resolve(&local, &target, &relo), Err(error), "{access}");
        assert_eq!(error.errno(), 22);
    }
    let kind = CoreKind(13);
    let relo = with(&mut local, "0", kind);
    assert_eq!(
        resolve(&local, &target, &relo),
        Err(CoreError::UnknownKind { kind })
    );
    let id = TypeId(99);
    let relo = CoreSpec { ty: id, ..relo };
    assert_eq!(
        resolve(&local, &target, &relo),
        Err(CoreError::NoType { id })
    );
    let id = local
        .builder
        .reference(Kind::Ptr, StrOffset::EMPTY, local.int);
    let relo = local.relo(id, "0", CoreKind::TYPE_SIZE);
    assert_eq!(
        resolve(&local, &target, &relo),
        Err(CoreError::Anonymous { id })
    );
    // The id of an anonymous type can be relocated.
    let relo = local.relo(id, "0", CoreKind::TYPE_ID_LOCAL);
    let number = Resolution::Value {
        expected: None,
        value: id.0.into(),
        access: Access::AsIs,
    };
    assert_eq!(resolve(&local, &target, &relo), Ok(number));
}

#[oracle::test]
fn recursive_types_are_refused() {
    // A typedef of itself.
    let (local, relo) = asker(plain, "0:0");
    let mut target = Draft::new();
    let itself = target.builder.next_id();
    target
        .builder
        .reference(Kind::Typedef, StrOffset::EMPTY, itself);
    target.structure("thing", &[("field", itself, 0)]);
    assert_eq!(resolve(&local, &target, &relo), Err(CoreError::TypeCycle));
    // An anonymous structure that contains itself.
    let mut target = Draft::new();
    let itself = target.builder.next_id();
    target.structure("thing", &[("", itself, 0)]);
    let refused = resolve(&local, &target, &relo);
    assert_eq!(refused, Err(CoreError::TooDeep));
    assert_eq!(CoreError::TooDeep.errno(), 7);
    // Forty structures, each with the previous one twice.
    let mut target = Draft::new();
    let mut inner = target.int;
    for _ in 0..40 {
        inner = target.structure("", &[("", inner, 0), ("", inner, 0)]);
    }
    target.structure("thing", &[("", inner, 0)]);
    assert_eq!(resolve(&local, &target, &relo), Err(CoreError::TooComplex));
}

#[oracle::test]
fn total_work_is_bounded() {
    let mut local = Draft::new();
    let root = local.structure("thing", &[("field", local.int, 0)]);
    let roots: Vec<TypeId> = (0..100)
        .map(|at| local.structure(&format!("thing___{at}"), &[("field", local.int, 0)]))
        .collect();
    let relos: Vec<CoreSpec> = roots
        .into_iter()
        .map(|root| local.relo(root, "0:0", CoreKind::FIELD_EXISTS))
        .collect();
    let first = local.relo(root, "0:0", CoreKind::FIELD_EXISTS);
    let mut target = Draft::new();
    let mut inner = target.int;
    for _ in 0..18 {
        inner = target.structure("", &[("", inner, 0), ("", inner, 0)]);
    }
    target.structure("thing", &[("", inner, 0)]);
    let (local, target) = (local.finish(), target.finish());
    let mut resolver = Resolver::new(&local, &target);
    assert_eq!(resolver.resolve(&first), value(1, 0));
    let answers: Vec<_> = relos.iter().map(|relo| resolver.resolve(relo)).collect();
    assert_eq!(answers[0], value(1, 0));
    assert_eq!(answers[99], Err(CoreError::TooComplex));
}

#[oracle::test]
fn flavours_are_ignored() {
    assert_eq!(essential_name(b"task_struct___v2"), b"task_struct");
}
