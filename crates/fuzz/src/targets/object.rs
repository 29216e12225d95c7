//! Any bytes can be opened as an object and linked for a kernel, or are refused.
//!
//! The kernel has the types that one of the seeds expects. What is linked must hang
//! together: references point at slots, calls at functions, functions and lines lie
//! in order, and none of it is larger than the limits say.

use std::sync::{Arc, LazyLock};

use ::object::{Error, LinkedProgram, Object, Referent};
use spec::Kernel;
use spec::kernel::{KernelConfig, Source, SymbolAddress, Symbols};

use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "object",
    property: "an object is opened and linked or refused, the same way each time, and what is \
              linked hangs together",
    words: &[
        ".text\0",
        ".maps\0",
        ".ksyms\0",
        ".kconfig\0",
        ".data.",
        ".rodata",
        ".bss\0",
        ".struct_ops.link\0",
        ".addr_space.1\0",
        ".jumptables\0",
        "license\0",
        ".BTF.ext\0",
        "?xdp\0",
        "lsm/",
        "exception_callback:",
        "0:1:2\0",
        "\u{12}\0",
        "\u{10}\0",
    ],
    run,
};

/// A BTF file that replaces a kernel's.
const KERNEL: &[u8] = include_bytes!("../../../object/tests/objects/kernel.o");

fn kernel() -> Kernel {
    let object = Object::open(KERNEL).expect("the kernel's types");
    let types = object.btf().expect("the kernel's types").to_owned();
    let symbols = Symbols::new(|name| match name.len() % 3 {
        0 => SymbolAddress::Missing,
        1 => SymbolAddress::At(name.len() as u64),
        _ => SymbolAddress::Several(1, 2),
    });
    Kernel::new("seed")
        .with_btf(Arc::new(types), Source::Given)
        .with_symbols(symbols, Source::Given)
        .with_config(KernelConfig::new("CONFIG_HZ=250\n"), Source::Given)
}

fn run(input: &[u8]) -> Signature {
    static TARGET: LazyLock<Kernel> = LazyLock::new(kernel);
    let kernel = &*TARGET;
    let object = match Object::open(input) {
        Ok(object) => object,
        Err(error) => {
            assert_eq!(Object::open(input).err().as_ref(), Some(&error));
            return Signature::of(("open", fault(&error)));
        }
    };
    let linked = object.link(kernel);
    let again = object.link(kernel);
    let linked = match (linked, again) {
        (Ok(linked), Ok(again)) => {
            assert!(linked.programs == again.programs, "another result");
            linked
        }
        (Err(error), Err(again)) => {
            assert_eq!(error, again);
            return Signature::of(("link", fault(&error)));
        }
        (linked, again) => panic!("{:?} and {:?}", linked.err(), again.err()),
    };
    for program in &linked.programs {
        check(program);
    }
    let counts = linked.programs.iter().map(|linked| {
        (
            linked.program.kind(),
            linked.references.len().min(8),
            linked.program.subprogs().len().min(8),
        )
    });
    let refused = linked
        .unloadable
        .iter()
        .map(|program| fault(&program.error));
    Signature::of((counts.collect::<Vec<_>>(), refused.collect::<Vec<_>>()))
}

fn check(linked: &LinkedProgram) {
    let LinkedProgram {
        program,
        references,
        ..
    } = linked;
    let len = program.insns().len() as u32;
    let starts: Vec<_> = program.subprogs().iter().map(|it| it.start).collect();
    assert!(
        starts.first() == Some(&0) && starts.is_sorted(),
        "subprogs out of order"
    );
    assert!(
        starts.iter().all(|&start| start < len),
        "a subprog beyond the end"
    );
    for reference in references {
        assert!(reference.slot < len, "a reference beyond the end");
        match reference.to {
            Referent::Call { start } | Referent::FunctionAddress { start } => {
                assert!(starts.contains(&start), "a call into nowhere");
            }
            Referent::Map(map) | Referent::Value { map, .. } => {
                assert!(program.map(map).is_some(), "no such map");
            }
            _ => {}
        }
    }
    assert!(references.is_sorted_by_key(|reference| reference.slot));
    assert_eq!(program.decode().len(), program.insns().len());
    let loaded = program.insns_with_map_fds(|map| map.0 as i32);
    assert_eq!(loaded.len(), program.insns().len());
}

/// The error message without numbers.
fn fault(error: &Error) -> String {
    let text = format!("{:?}", error.problem());
    text.chars()
        .filter(|letter| !letter.is_ascii_digit())
        .take(60)
        .collect()
}
