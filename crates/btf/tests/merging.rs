//! Deduplication, and differences of BTF.

use beebox_btf::diff::{Change, describe, diff};
use beebox_btf::ext::{
    BtfExt, CoreKind, CoreRelo, CoreSpec, ExtBuilder, ExtFault, ExtFuncInfo, ExtLineInfo,
};
use beebox_btf::{
    Array, Btf, Builder, Encoding, Enumerator, Func, FwdKind, Int, Kind, Linkage, Member, Param,
    StrOffset, TypeId, dedup, dedup_types,
};

const NONE: StrOffset = StrOffset::EMPTY;

fn int(builder: &mut Builder, name: &str, size: u32) -> TypeId {
    let name = builder.string(name);
    builder.int(
        name,
        Int {
            size,
            bits: 8 * size,
            offset: 0,
            encoding: Encoding::NONE,
        },
    )
}

fn member(builder: &mut Builder, name: &str, ty: TypeId, bit_offset: u32) -> Member {
    Member {
        name: builder.string(name),
        ty,
        bit_offset,
        bits: 0,
    }
}

/// `struct name { long first; struct name *next; }`, with its own `int`.
fn list(builder: &mut Builder, name: &str) -> TypeId {
    let long = int(builder, "long", 8);
    let next = TypeId(builder.next_id().0 + 1);
    let pointer = builder.reference(Kind::Ptr, NONE, next);
    let members = [
        member(builder, "first", long, 0),
        member(builder, "next", pointer, 64),
    ];
    let name = builder.string(name);
    builder.composite(Kind::Struct, name, 16, &members)
}

#[oracle::test]
fn equal_types_are_merged() {
    let mut builder = Builder::new();
    let first = list(&mut builder, "list");
    let second = list(&mut builder, "list");
    let other = list(&mut builder, "other");
    let name = builder.string("list");
    let declared = builder.forward(name, FwdKind::Struct);
    let blob = builder.finish();
    let btf = Btf::parse(&blob[..]).unwrap();

    let merged = dedup(&btf, None).unwrap();
    let [first, second, other, declared] =
        [first, second, other, declared].map(|id| merged.map[id.0 as usize]);
    assert_eq!(first, second);
    assert_eq!(first, declared);
    assert_ne!(first, other);
    let merged = Btf::parse(&merged.btf[..]).unwrap();
    // void, long, two structures with a pointer each.
    assert_eq!(merged.len(), 6);
    assert_eq!(merged.find_all(Kind::Struct, b"list").count(), 1);
}

#[oracle::test]
fn strings_can_stay_where_they_are() {
    let mut builder = Builder::new();
    builder.string("unused");
    list(&mut builder, "list");
    list(&mut builder, "list");
    let blob = builder.finish();
    let btf = Btf::parse(&blob[..]).unwrap();

    let kept = dedup_types(&btf, None).unwrap();
    let gathered = dedup(&btf, None).unwrap();
    assert_eq!(kept.map, gathered.map);
    let kept = Btf::parse(kept.btf).unwrap();
    assert_eq!(kept.strings(), btf.strings());
    let gathered = Btf::parse(gathered.btf).unwrap();
    assert_eq!(gathered.strings(), b"\0long\0list\0first\0next\0");
    let list = kept.find(Kind::Struct, "list").unwrap();
    assert_eq!(kept.size_of(list.id()), Some(16));
}

#[oracle::test]
fn a_definition_resolves_a_forward_declared_enumeration() {
    let mut builder = Builder::new();
    let name = builder.string("e");
    let declared = builder.enumeration(name, 4, false, &[]);
    let value = Enumerator {
        name: builder.string("ONE"),
        value: 1,
    };
    let defined = builder.enumeration(name, 4, false, &[value]);
    let blob = builder.finish();
    let merged = dedup(&Btf::parse(&blob[..]).unwrap(), None).unwrap();
    assert_eq!(
        merged.map[declared.0 as usize],
        merged.map[defined.0 as usize]
    );
    assert_eq!(Btf::parse(merged.btf).unwrap().len(), 2);
}

#[oracle::test]
fn btf_ext_follows_the_merged_types() {
    let mut builder = Builder::new();
    list(&mut builder, "list");
    let second = list(&mut builder, "list");
    let proto = builder.proto(TypeId::VOID, &[]);
    let name = builder.string("main");
    let linkage = Linkage::GLOBAL;
    let func = builder.func(name, Func { proto, linkage });
    let section = builder.string("socket");
    let access = builder.string("0:1");
    let text = builder.string("return 0;");

    let mut ext = ExtBuilder::new();
    let relo = CoreRelo {
        offset: 8,
        spec: CoreSpec {
            ty: second,
            access,
            kind: CoreKind::FIELD_BYTE_OFFSET,
        },
    };
    let line = ExtLineInfo {
        offset: 0,
        file: name,
        text,
        line: 70_000,
        column: 9,
    };
    ext.function(section, ExtFuncInfo { offset: 0, func });
    ext.line(section, line);
    ext.relocation(section, relo);
    let (blob, ext) = (builder.finish(), ext.finish());
    let btf = Btf::parse(&blob[..]).unwrap();
    let ext = BtfExt::parse(&ext[..]).unwrap();
    assert_eq!(ext.check(&btf), Ok(()));
    let found = ext.lines().next().unwrap().records().next();
    assert_eq!(found, Some(line));

    let merged = dedup(&btf, Some(&ext)).unwrap();
    let btf = Btf::parse(&merged.btf[..]).unwrap();
    let ext = BtfExt::parse(merged.ext.unwrap()).unwrap();
    assert_eq!(ext.check(&btf), Ok(()));
    let group = ext.relocations().next().unwrap();
    let relo = group.records().next().unwrap();
    assert_eq!(btf.string(group.section), "socket");
    assert_eq!(btf.string(relo.spec.access), "0:1");
    assert_eq!(btf.at(relo.spec.ty).name(), "list");
    let info = ext.functions().next().unwrap().records().next().unwrap();
    assert_eq!(btf.at(info.func).name(), "main");
}

#[oracle::test]
fn btf_ext_that_mismatches_the_types_is_refused() {
    let mut builder = Builder::new();
    let ty = int(&mut builder, "int", 4);
    let blob = builder.finish();
    let btf = Btf::parse(&blob[..]).unwrap();
    let mut ext = ExtBuilder::new();
    let info = ExtFuncInfo {
        offset: 0,
        func: ty,
    };
    ext.function(NONE, info);
    let check = |ext: &ExtBuilder| BtfExt::parse(ext.finish()).unwrap().check(&btf);
    assert_eq!(check(&ext), Err(ExtFault::NoFunction { id: ty }));
    let mut ext = ExtBuilder::new();
    let line = ExtLineInfo {
        offset: 4,
        file: NONE,
        text: NONE,
        line: 1,
        column: 1,
    };
    ext.line(NONE, line);
    assert!(matches!(check(&ext), Err(ExtFault::InsideInsn { .. })));
}

#[oracle::test]
fn differences_are_those_that_break_programs() {
    let build = |size: u32, at: u32, value: u64| {
        let mut builder = Builder::new();
        let long = int(&mut builder, "long", 8);
        let inner = [member(&mut builder, "deep", long, 0)];
        let inner = builder.composite(Kind::Union, NONE, 8, &inner);
        let members = [
            member(&mut builder, "first", long, 0),
            member(&mut builder, "", inner, at),
        ];
        let name = builder.string("s");
        builder.composite(Kind::Struct, name, size, &members);
        let value = Enumerator {
            name: builder.string("ONE"),
            value,
        };
        let name = builder.string("e");
        builder.enumeration(name, 4, false, &[value]);
        Btf::parse(builder.finish()).unwrap()
    };
    let (old, new) = (build(16, 64, 1), build(24, 128, 2));
    assert!(diff(&old, &old).is_empty());
    let changed = diff(&old, &new);
    let names: Vec<&str> = changed.iter().map(|changed| &*changed.name).collect();
    assert_eq!(names, ["s", "e"]);
    assert_eq!(changed[0].changes[0], Change::Size { old: 16, new: 24 });
    let Change::MemberChanged { name, old, new } = &changed[0].changes[1] else {
        panic!("{changed:?}")
    };
    assert_eq!((&**name, old.bit_offset, new.bit_offset), ("deep", 64, 128));
    let one = Change::ValueChanged {
        name: "ONE".to_owned(),
        old: 1,
        new: 2,
    };
    assert_eq!(changed[1].changes, [one]);
}

#[oracle::test]
fn types_in_words() {
    let mut builder = Builder::new();
    let char = int(&mut builder, "char", 1);
    let constant = builder.reference(Kind::Const, NONE, char);
    let text = builder.reference(Kind::Ptr, NONE, constant);
    let texts = builder.array(Array {
        element: text,
        index: char,
        count: 3,
    });
    let to_texts = builder.reference(Kind::Ptr, NONE, texts);
    let param = Param {
        name: NONE,
        ty: text,
    };
    let proto = builder.proto(char, &[param]);
    let call = builder.reference(Kind::Ptr, NONE, proto);
    let fixed = builder.reference(Kind::Const, NONE, text);
    let btf = Btf::parse(builder.finish()).unwrap();
    for (id, words) in [
        (text, "const char *"),
        (fixed, "const char *const"),
        (texts, "const char *[3]"),
        (to_texts, "const char *(*)[3]"),
        (call, "char (*)(const char *)"),
        (TypeId::VOID, "void"),
    ] {
        assert_eq!(describe(&btf, id), words);
    }
}
