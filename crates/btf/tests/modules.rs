//! Split BTF of modules.

use std::sync::Arc;

use beebox_btf::core::{Access, Resolution, Resolver};
use beebox_btf::ext::{CoreKind, CoreSpec};
use beebox_btf::{
    Btf, Builder, Encoding, Func, Int, Kind, Linkage, Member, Param, ParseError, TypeId, dump_raw,
};

/// Size of a header in bytes.
const HEADER: usize = 24;

fn word(blob: &[u8], at: usize) -> usize {
    u32::from_le_bytes(blob[at..at + 4].try_into().unwrap()) as usize
}

/// Split BTF: the types and strings of `whole` after those of `kernel`.
fn cut(whole: &[u8], kernel: &[u8]) -> Vec<u8> {
    let types = &whole[HEADER + word(kernel, 12)..HEADER + word(whole, 12)];
    let strings = &whole[HEADER + word(whole, 12) + word(kernel, 20)..];
    let mut blob = whole[..8].to_vec();
    for number in [0, types.len(), types.len(), strings.len()] {
        blob.extend_from_slice(&(number as u32).to_le_bytes());
    }
    [&blob, types, strings].concat()
}

fn add_int(builder: &mut Builder) -> TypeId {
    let name = builder.string("int");
    let encoding = Encoding::SIGNED;
    let (size, bits, offset) = (4, 32, 0);
    builder.int(
        name,
        Int {
            size,
            bits,
            offset,
            encoding,
        },
    )
}

fn add_struct(builder: &mut Builder, name: &str, member: &str, ty: TypeId, at: u32) -> TypeId {
    let members = [Member {
        name: builder.string(member),
        ty,
        bit_offset: at * 8,
        bits: 0,
    }];
    let name = builder.string(name);
    builder.composite(Kind::Struct, name, at + 4, &members)
}

/// BTF of a kernel, and the same with the types of a module.
fn kernel_and_whole() -> (Vec<u8>, Vec<u8>) {
    let mut builder = Builder::new();
    let int = add_int(&mut builder);
    add_struct(&mut builder, "device", "number", int, 8);
    let params = [Param {
        name: builder.string("number"),
        ty: int,
    }];
    let proto = builder.proto(int, &params);
    let kernel = builder.finish();
    add_struct(&mut builder, "device", "number", int, 16);
    add_struct(&mut builder, "gadget___v2", "number", int, 12);
    let name = builder.string("start_gadget");
    let linkage = Linkage::STATIC;
    builder.func(name, Func { proto, linkage });
    (kernel, builder.finish())
}

fn kernel_and_module() -> (Arc<Btf<'static>>, Btf<'static>) {
    let (kernel, whole) = kernel_and_whole();
    let blob = cut(&whole, &kernel);
    let kernel = Arc::new(Btf::parse(kernel).unwrap());
    let module = Btf::parse_module(blob, kernel.clone()).unwrap();
    (kernel, module)
}

#[oracle::test]
fn split_btf_continues_ids_and_strings() {
    let (kernel, module) = kernel_and_module();
    let whole = Btf::parse(kernel_and_whole().1).unwrap();
    assert_eq!(module.len(), whole.len());
    assert_eq!(module.own_types().count(), whole.len() - kernel.len());
    for (ours, theirs) in module.types().zip(whole.types()) {
        assert_eq!(format!("{ours:?}"), format!("{theirs:?}"));
        assert_eq!(module.size_of(ours.id()), whole.size_of(ours.id()));
    }
    let both = [dump_raw(&kernel), dump_raw(&module)].concat();
    assert_eq!(both, dump_raw(&whole));
    let devices = module.find_all(Kind::Struct, b"device");
    let devices: Vec<TypeId> = devices.map(|ty| ty.id()).collect();
    assert_eq!(devices, [TypeId(2), TypeId(4)]);
    assert!(kernel.find(Kind::Func, "start_gadget").is_none());
    assert!(module.find(Kind::Func, "start_gadget").is_some());
    assert!(module.get(TypeId(7)).is_none());
}

#[oracle::test]
fn writing_split_btf_includes_its_base() {
    let (_, module) = kernel_and_module();
    let whole = Btf::parse(kernel_and_whole().1).unwrap();
    assert_eq!(Builder::with_types_of(&module).finish(), whole.as_bytes());
    let mut module = module.into_owned();
    let added = module.append(add_int);
    assert_eq!(added, TypeId(whole.len() as u32));
    assert!(module.base().is_none());
    assert_eq!(module.at(TypeId(4)).name().to_str(), Some("device"));
}

#[oracle::test]
fn relocations_search_modules_if_the_kernel_lacks_the_name() {
    let (kernel, module) = kernel_and_module();
    let mut builder = Builder::new();
    let int = add_int(&mut builder);
    let device = add_struct(&mut builder, "device", "number", int, 0);
    let gadget = add_struct(&mut builder, "gadget", "number", int, 0);
    let access = builder.string("0:0");
    let local = Btf::parse(builder.finish()).unwrap();
    let question = |ty| CoreSpec {
        ty,
        access,
        kind: CoreKind::FIELD_BYTE_OFFSET,
    };
    let value = |value| Resolution::Value {
        expected: Some(0),
        value,
        access: Access::AsIs,
    };
    let mut resolver = Resolver::new(&local, &kernel);
    assert_eq!(resolver.resolve(&question(gadget)), Ok(Resolution::Poison));
    let mut resolver = Resolver::new(&local, &kernel);
    resolver.add_module(&module);
    assert_eq!(resolver.resolve(&question(device)), Ok(value(8)));
    assert_eq!(resolver.resolve(&question(gadget)), Ok(value(12)));
}

#[oracle::test]
fn names_begin_where_strings_do_on_the_own_base_alone() {
    let (_, module) = kernel_and_module();
    assert!(module.has_whole_names());
    let (kernel, whole) = kernel_and_whole();
    let mut builder = Builder::new();
    let int = add_int(&mut builder);
    add_struct(&mut builder, "device", "number", int, 8);
    let params = [Param {
        name: builder.string("number"),
        ty: int,
    }];
    builder.proto(int, &params);
    builder.string("more");
    let other = Arc::new(Btf::parse(builder.finish()).unwrap());
    let module = Btf::parse_module(cut(&whole, &kernel), other).unwrap();
    assert!(!module.has_whole_names());
}

#[oracle::test]
fn references_beyond_both_are_refused() {
    let (kernel, whole) = kernel_and_whole();
    let mut blob = cut(&whole, &kernel);
    let kernel = Arc::new(Btf::parse(kernel).unwrap());
    // Type of the member of the first structure.
    let at = HEADER + 12 + 4;
    assert_eq!(word(&blob, at), 1);
    blob[at] = 7;
    let refused = Btf::parse_module(blob, kernel.clone()).err();
    let (id, to) = (TypeId(4), TypeId(7));
    assert_eq!(refused, Some(ParseError::NoType { id, to }));
    let empty = cut(kernel.as_bytes(), kernel.as_bytes());
    let empty = Btf::parse_module(empty, kernel.clone()).unwrap();
    assert_eq!(empty.len(), kernel.len());
}
