//! Different spellings of one type by compilers are no difference.

use beebox_btf::diff::diff;
use beebox_btf::{Array, Btf, Builder, Encoding, Int, Kind, Member, TypeId};

/// BTF of `struct s { unsigned long a; const char b[0]; }`: the spelling of the integer,
/// and true if both array and element are `const`.
fn blob(long: &str, both_const: bool) -> Btf<'static> {
    let mut builder = Builder::new();
    let int = |builder: &mut Builder, name: &str, size: u32| {
        let name = builder.string(name);
        builder.int(
            name,
            Int {
                size,
                bits: size * 8,
                offset: 0,
                encoding: Encoding::default(),
            },
        )
    };
    let long = int(&mut builder, long, 8);
    let char = int(&mut builder, "char", 1);
    let empty = builder.string("");
    let element = builder.reference(Kind::Const, empty, char);
    let array = builder.array(Array {
        element,
        index: long,
        count: 0,
    });
    let array = match both_const {
        true => builder.reference(Kind::Const, empty, array),
        false => array,
    };
    let mut member = |name: &str, ty: TypeId, bit_offset: u32| Member {
        name: builder.string(name),
        ty,
        bit_offset,
        bits: 0,
    };
    let members = [member("a", long, 0), member("b", array, 64)];
    let name = builder.string("s");
    builder.composite(Kind::Struct, name, 8, &members);
    Btf::parse(builder.finish()).expect("a blob")
}

#[oracle::test]
fn spellings_of_one_type_are_no_change() {
    let gcc = blob("long unsigned int", true);
    let clang = blob("unsigned long", false);
    assert_eq!(diff(&gcc, &clang), []);
    assert_eq!(diff(&clang, &gcc), []);
    let other = blob("long long unsigned int", false);
    assert_eq!(diff(&clang, &other).len(), 1);
}
