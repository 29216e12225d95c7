//! BTF of the running kernel: a hundred thousand types of every kind.

use std::fs;

use beebox_btf::diff::diff;
use beebox_btf::validate::validate;
use beebox_btf::{Btf, Builder, Kind, Shape, dedup, dump_raw};

/// BTF blob; `None` if the kernel has none.
fn blob() -> Option<Vec<u8>> {
    let blob = fs::read("/sys/kernel/btf/vmlinux");
    oracle::found("types of the running kernel", blob)
}

#[oracle::test]
fn reading_and_writing_changes_nothing() {
    let Some(blob) = blob() else { return };
    let btf = Btf::parse(&blob[..]).unwrap();
    assert_eq!(Builder::with_types_of(&btf).finish(), blob);

    let mut builder = Builder::with_strings_of(&btf);
    for ty in btf.types() {
        builder.copy(ty, |id| id);
    }
    assert_eq!(builder.finish(), blob);
}

#[oracle::test]
fn rebuilding_from_parsed_types_reproduces_the_blob() {
    let Some(blob) = blob() else { return };
    let btf = Btf::parse(&blob[..]).unwrap();
    let mut builder = Builder::with_strings_of(&btf);
    for ty in btf.types() {
        let name = ty.name_offset();
        match ty.shape() {
            Shape::Void => unreachable!("void has no record"),
            Shape::Int(int) => builder.int(name, int),
            Shape::Array(array) => builder.array(array),
            Shape::Struct(of) | Shape::Union(of) => {
                let members: Vec<_> = of.members().collect();
                builder.composite(ty.kind(), name, of.size, &members)
            }
            Shape::Enum(of) => {
                let values: Vec<_> = of.values().collect();
                match of.wide {
                    true => builder.enumeration64(name, of.size, of.signed, &values),
                    false => builder.enumeration(name, of.size, of.signed, &values),
                }
            }
            Shape::Fwd(forward) => builder.forward(name, forward),
            Shape::Ptr(to)
            | Shape::Typedef(to)
            | Shape::Volatile(to)
            | Shape::Const(to)
            | Shape::Restrict(to)
            | Shape::TypeTag(to) => builder.reference(ty.kind(), name, to),
            Shape::Func(func) => builder.func(name, func),
            Shape::Proto(proto) => {
                let params: Vec<_> = proto.params().collect();
                builder.proto(proto.returns, &params)
            }
            Shape::Var(var) => builder.var(name, var),
            Shape::Datasec(section) => {
                let vars: Vec<_> = section.vars().collect();
                builder.datasec(name, section.size, &vars)
            }
            Shape::Float(size) => builder.float(name, size),
            Shape::DeclTag(tag) => builder.decl_tag(name, tag),
        };
    }
    // A structure with `kind_flag` need not have bit fields, so the decoded members are
    // compared.
    let built = builder.finish();
    let built = Btf::parse(&built[..]).unwrap();
    assert_eq!(dump_raw(&built), dump_raw(&btf));
}

#[oracle::test]
fn kernel_btf_is_valid_and_deduplicated() {
    let Some(blob) = blob() else { return };
    assert_eq!(validate(&blob, None), Ok(()));
    let btf = Btf::parse(&blob[..]).unwrap();
    let merged = dedup(&btf, None).unwrap();
    let merged = Btf::parse(&merged.btf[..]).unwrap();
    assert!(merged.len() <= btf.len() && merged.len() > btf.len() / 2);
    assert!(diff(&btf, &btf).is_empty());
}

#[oracle::test]
fn types_are_found_by_kind_and_name_and_laid_out_as_c_has_it() {
    let Some(blob) = blob() else { return };
    let btf = Btf::parse(&blob[..]).unwrap();
    assert_eq!(btf.pointer_size(), 8);
    let list = btf.find(Kind::Struct, "list_head").unwrap();
    let Shape::Struct(of) = list.shape() else {
        panic!("list_head is no structure")
    };
    let members: Vec<_> = of
        .members()
        .map(|member| {
            (
                btf.string(member.name).to_string(),
                member.bit_offset,
                btf.size_of(member.ty),
            )
        })
        .collect();
    assert_eq!(
        members,
        [
            ("next".to_owned(), 0, Some(8)),
            ("prev".to_owned(), 64, Some(8))
        ]
    );
    assert_eq!(btf.size_of(list.id()), Some(16));
    assert_eq!(btf.align_of(list.id()), Some(8));
    assert!(btf.find(Kind::Union, "list_head").is_none());
    for ty in btf.types().filter(|ty| !ty.name().is_empty()).step_by(97) {
        let first = btf.types().find(|other| {
            other.kind() == ty.kind() && other.name().as_bytes() == ty.name().as_bytes()
        });
        let found = btf.find_all(ty.kind(), ty.name().as_bytes()).next();
        assert_eq!(found.map(|ty| ty.id()), first.map(|ty| ty.id()));
    }
}
