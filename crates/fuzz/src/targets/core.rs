//! CO-RE relocation of arbitrary types against arbitrary target types.
//!
//! The input: the lengths of the object's types and of the target's in two bytes
//! each, both, then `.BTF.ext`. Each relocation has an answer or an error, the same
//! if it is asked again at once, and a text. The types of the target can stand in
//! as a module of the object's own, too.

use std::mem::discriminant;

use ::btf::core::{CoreError, Path, Resolution, Resolver};
use ::btf::{Btf, BtfExt};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "core",
    property: "relocations are answered or refused, the same way each time, in bounded time",
    words: &[
        "0:0\0",
        "0:1:2\0",
        "0\0",
        "___",
        "\u{c}\0\0\0",
        "\u{7}\0\0\0",
    ],
    run,
};

/// Relocations of one input; more are more of the same.
const MOST: usize = 16;

fn run(input: &[u8]) -> Signature {
    let [a, b, c, d, rest @ ..] = input else {
        return Signature::of(());
    };
    let cut = |from: &mut &[u8], len: [u8; 2]| {
        let len = usize::from(u16::from_le_bytes(len)).min(from.len());
        let (part, behind) = from.split_at(len);
        *from = behind;
        part.to_vec()
    };
    let mut rest = rest;
    let (local, target) = (cut(&mut rest, [*a, *b]), cut(&mut rest, [*c, *d]));
    let (Ok(local), Ok(target), Ok(ext)) =
        (Btf::parse(local), Btf::parse(target), BtfExt::parse(rest))
    else {
        return Signature::of(());
    };
    let mut counts = [0usize; 5];
    let mut last = None;
    let mut resolver = Resolver::new(&local, &target);
    // An object is a kernel to itself, and the other has what it lacks.
    let mut modular = Resolver::new(&local, &local);
    modular.add_module(&target);
    let relos = ext.relocations().flat_map(|group| group.records());
    for relo in relos.take(MOST) {
        let answer = resolver.resolve(&relo.spec);
        if answer != Err(CoreError::TooComplex) {
            let again = resolver.resolve(&relo.spec);
            assert!(
                answer == again || again == Err(CoreError::TooComplex),
                "{answer:?}, then {again:?}"
            );
        }
        let text = Path::parse(&local, &relo.spec).map(|path| path.to_string());
        assert!(text.is_ok() || answer.is_err(), "an answer to nothing");
        let class = match &answer {
            Ok(Resolution::Poison) => 0,
            Ok(Resolution::Value { expected, .. }) => 1 + usize::from(expected.is_some()),
            Err(_) => 3,
        };
        counts[class] += 1;
        counts[4] += usize::from(modular.resolve(&relo.spec).is_ok());
        last = answer.err().map(|error| discriminant(&error)).or(last);
    }
    Signature::of((counts.map(|count| count.min(3)), last))
}
