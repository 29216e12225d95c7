//! Text of objects; byte for byte compared with the kernel's by the tests of `testkit`.

use beebox_btf::{
    Array, Btf, Builder, Encoding, Int, Kind, Member, ShowError, ShowFlags, StrOffset, TypeId,
};

/// `struct pair { int x; char text[4]; void *next; }`.
fn pair() -> (Btf<'static>, TypeId) {
    let mut builder = Builder::new();
    let mut int = |name: &str, size| {
        let name = builder.string(name);
        let (bits, offset, encoding) = (8 * size, 0, Encoding::SIGNED);
        builder.int(
            name,
            Int {
                size,
                bits,
                offset,
                encoding,
            },
        )
    };
    let (int, byte) = (int("int", 4), int("char", 1));
    let text = builder.array(Array {
        element: byte,
        index: int,
        count: 4,
    });
    let pointer = builder.reference(Kind::Ptr, StrOffset::EMPTY, TypeId::VOID);
    let members = [("x", int, 0), ("text", text, 32), ("next", pointer, 64)];
    let members = members.map(|(name, ty, bit_offset)| Member {
        name: builder.string(name),
        ty,
        bit_offset,
        bits: 0,
    });
    let name = builder.string("pair");
    let pair = builder.composite(Kind::Struct, name, 16, &members);
    let blob = builder.finish();
    (Btf::parse(blob).expect("valid types"), pair)
}

fn show(object: &[u8], flags: u64) -> String {
    let (types, pair) = pair();
    let (text, shown) = types.show(pair, 0x1000, ShowFlags(flags), &mut |at, into| {
        let at = (at - 0x1000) as usize;
        into.copy_from_slice(&object[at..at + into.len()]);
        true
    });
    assert_eq!(shown, Ok(()));
    String::from_utf8(text).expect("text of ASCII")
}

#[oracle::test]
fn members_that_are_zero_are_left_out() {
    let object = [
        0xff, 0xff, 0xff, 0xff, b'h', b'i', 0, 7, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    assert_eq!(
        show(&object, 0),
        "(struct pair){\n .x = (int)-1,\n .text = (char[])[\n  'h',\n  'i',\n ],\n}\n"
    );
    assert_eq!(
        show(&object, ShowFlags::COMPACT.0),
        "(struct pair){.x = (int)-1,.text = (char[])['h','i',],}"
    );
    let all = ShowFlags::COMPACT.0 | ShowFlags::NONAME.0 | ShowFlags::ZERO.0;
    assert_eq!(show(&object, all), "{-1,['h','i',],0x0000000000000000,}");
    assert_eq!(show(&[0; 16], ShowFlags::COMPACT.0), "(struct pair){}");
}

#[oracle::test]
fn memory_that_cannot_be_read_is_an_error() {
    let (types, pair) = pair();
    let (text, shown) = types.show(pair, 0x1000, ShowFlags(0), &mut |_, _| false);
    assert_eq!((text, shown), (Vec::new(), Err(ShowError::Memory(0x1000))));
    let (_, shown) = types.show(TypeId(99), 0, ShowFlags(0), &mut |_, _| true);
    assert_eq!(shown, Err(ShowError::Type));
}
