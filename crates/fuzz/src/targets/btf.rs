//! Any bytes can be read as BTF, checked, printed, written and deduplicated.
//!
//! The input is a blob. What Linux would take, we read; what we read can be
//! copied type by type, and prints the same afterwards.

use ::btf::diff::diff;
use ::btf::fields::{FieldRecord, FieldSet};
use ::btf::validate::{kernel_log, validate};
use ::btf::{Btf, Builder, COptions, RustDump, dedup, dump_c, dump_raw};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "btf",
    property: "what Linux takes can be read, and what can be read is printed, copied and deduplicated",
    words: &[
        "\u{1}\0\0\u{4}",
        "\0\0\0\u{2}",
        "\0\0\0\u{3}",
        "\u{2}\0\0\u{4}",
        "bpf_spin_lock\0",
        "contains:",
    ],
    run,
};

/// Types of which the special fields are searched.
const SEARCHED: usize = 64;

fn run(input: &[u8]) -> Signature {
    let verdict = validate(input, None);
    let log = kernel_log(input, verdict.as_ref().err());
    let reason = verdict.map_err(|refusal| std::mem::discriminant(&refusal.reason));
    let btf = match Btf::parse(input) {
        Ok(btf) => btf,
        Err(error) => {
            assert!(verdict.is_err(), "Linux takes it, we say {error:?}");
            return Signature::of((reason.err(), std::mem::discriminant(&error)));
        }
    };

    let raw = dump_raw(&btf);
    let mut builder = Builder::with_strings_of(&btf);
    for ty in btf.types() {
        builder.copy(ty, |id| id);
    }
    let copied = Btf::parse(builder.finish()).expect("what was written can be read");
    let copied_raw = dump_raw(&copied);
    assert!(
        nameless(&copied_raw) == nameless(&raw),
        "a copy prints differently"
    );

    for ty in btf.types() {
        let (size, align) = (btf.size_of(ty.id()), btf.align_of(ty.id()));
        assert_eq!(size, copied.size_of(ty.id()));
        assert_eq!(align, copied.align_of(ty.id()));
        if !ty.name().is_empty() {
            let found = btf.find_all(ty.kind(), ty.name().as_bytes());
            assert!(found.into_iter().any(|other| other.id() == ty.id()));
        }
    }
    assert!(diff(&btf, &copied).is_empty(), "a copy is different");

    // Structures in structures take no exponential time; each search is linear.
    let searched = btf.types().take(SEARCHED).map(|ty| {
        let of = |fields| FieldRecord::new(&btf, None, ty.id(), fields).is_ok();
        usize::from(of(FieldSet::MAP_VALUE)) + usize::from(of(FieldSet::OBJECT))
    });
    let searched: usize = searched.sum();

    let c = dump_c(&btf, &COptions::default());
    let mut rust = RustDump::new(&btf);
    let written = btf
        .types()
        .filter(|ty| rust.refer(ty.id(), "anonymous", "").is_ok());
    let written = written.count();
    let merged = dedup(&btf, None);
    if let Ok(merged) = &merged {
        let again = Btf::parse(&merged.btf[..]).expect("what is left can be read");
        assert!(again.len() <= btf.len());
        assert!(merged.map.iter().all(|id| again.get(*id).is_some()));
    }
    Signature::of((
        reason.err(),
        btf.len().min(8),
        c.map(|text| text.len().min(4096) / 512).ok(),
        written.min(8),
        rust.into_text().len().min(4096) / 512,
        merged.is_ok(),
        searched.min(8),
        log.len().min(2048) / 256,
    ))
}

/// An empty name may have any offset in a blob, but is 0 in a copy.
fn nameless(text: &[u8]) -> String {
    String::from_utf8_lossy(text).replace("''", "'(anon)'")
}
