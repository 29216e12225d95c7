//! Differences of generated types.

use btf::{Builder, Encoding, Func, Int, Kind, Linkage, Member, Param, TypeId};

use super::*;

/// Types of a kernel of this age: newer ones have members, structures and functions more, and fewer
/// others.
fn blob(age: u32) -> Vec<u8> {
    let mut builder = Builder::new();
    let int = Int {
        size: 4,
        bits: 32,
        offset: 0,
        encoding: Encoding::default(),
    };
    let name = builder.string("unsigned int");
    let number = builder.int(name, int);
    let mut last = number;
    for at in age..age + 200 {
        let none = builder.string("");
        let pointer = builder.reference(Kind::Ptr, none, last);
        let mut members = Vec::new();
        let count = 2 + (at % 7) + u32::from(at % 13 == 0) * age;
        for place in 0..count {
            members.push(Member {
                name: builder.string(format!("member_{}", at + place)),
                ty: if place % 2 == 0 { pointer } else { number },
                bit_offset: 64 * place + 32 * u32::from(at % 17 == age),
                bits: 0,
            });
        }
        let name = builder.string(format!("structure_{at}"));
        last = builder.composite(Kind::Struct, name, 8 * count, &members);
        let name = builder.string("argument");
        let proto = builder.proto(TypeId(0), &[Param { name, ty: pointer }]);
        let name = builder.string(format!("function_{at}"));
        builder.func(
            name,
            Func {
                proto,
                linkage: Linkage::STATIC,
            },
        );
    }
    builder.finish()
}

#[test]
fn a_difference_makes_the_types_byte_for_byte() {
    let base: &'static [u8] = Vec::leak(blob(5));
    let read = Base::new(base).unwrap();
    for age in [0, 4, 5, 6, 40, 300] {
        let target = blob(age);
        let difference = difference(base, &target).unwrap();
        assert_eq!(read.apply(&difference), Some(target.clone()), "{age}");
        let is_near = age.abs_diff(5) < 2;
        assert!(
            !is_near || difference.len() * 10 < target.len(),
            "{}",
            difference.len()
        );
    }
    assert!(difference(base, b"no types").is_none());
}

#[test]
fn a_cut_difference_is_refused_or_makes_other_types() {
    let base: &'static [u8] = Vec::leak(blob(5));
    let read = Base::new(base).unwrap();
    let target = blob(6);
    let whole = difference(base, &target).unwrap();
    for len in (0..whole.len()).step_by(7) {
        assert_ne!(read.apply(&whole[..len]), Some(target.clone()), "{len}");
    }
}
