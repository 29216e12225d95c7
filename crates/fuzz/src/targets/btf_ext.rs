//! Any bytes can be read as `.BTF.ext` (func_info, line_info, CO-RE relocations).
//!
//! The input: the length of the types in two bytes, the types, then `.BTF.ext`.

use ::btf::ext::{ExtBuilder, parse_access};
use ::btf::{Btf, BtfExt};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "btf-ext",
    property: "what is said of instructions can be read, checked and written again",
    words: &["\u{8}\0\0\0", "\u{10}\0\0\0", "0:1:2\0"],
    run,
};

fn run(input: &[u8]) -> Signature {
    let [low, high, rest @ ..] = input else {
        return Signature::of(());
    };
    let len = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
    let (types, ext) = rest.split_at(len);
    let ext = match BtfExt::parse(ext) {
        Ok(ext) => ext,
        Err(error) => return Signature::of(std::mem::discriminant(&error)),
    };
    let mut builder = ExtBuilder::new();
    let mut counts = [0usize; 3];
    for group in ext.functions() {
        for info in group.records() {
            builder.function(group.section, info);
            counts[0] += 1;
        }
    }
    for group in ext.lines() {
        for info in group.records() {
            builder.line(group.section, info);
            counts[1] += 1;
        }
    }
    for group in ext.relocations() {
        for info in group.records() {
            builder.relocation(group.section, info);
            counts[2] += 1;
        }
    }
    if counts != [0; 3] {
        let written = builder.finish();
        let again = BtfExt::parse(&written[..]).expect("what was written can be read");
        let records: usize = again.functions().map(|group| group.records().len()).sum();
        assert_eq!(records, counts[0]);
        let records: usize = again.lines().map(|group| group.records().len()).sum();
        assert_eq!(records, counts[1]);
        let records: usize = again.relocations().map(|group| group.records().len()).sum();
        assert_eq!(records, counts[2]);
    }
    assert_eq!(ext.mapped(|name| name, |ty| ty), ext.as_bytes());

    let mut verdict = None;
    if let Ok(btf) = Btf::parse(types) {
        verdict = Some(
            ext.check(&btf)
                .map_err(|fault| std::mem::discriminant(&fault)),
        );
        for group in ext.relocations() {
            for relo in group.records() {
                btf.string(relo.spec.access).to_str().map(parse_access);
            }
        }
    }
    Signature::of((counts.map(|count| count.min(8)), verdict))
}
