//! Helpers read and write what they declare, whatever the arguments are that nothing bounds.

use std::collections::BTreeSet;
use std::ops::Range;

use spec::{Random, SplitMix};

use super::super::{NUMBERS, declared};
use super::{Buffer, CONTEXT, MAP, buffer, call};
use crate::dynptr::{Dynptr, DynptrKind};

/// Bytes from one argument's memory to that of the next.
pub(crate) const STRIDE: u64 = 256;
/// Where a dynptr points to, and its bytes.
const POINTEE: u64 = 7 * STRIDE;
const POINTEE_BYTES: u64 = 32;
/// Bytes of a context, and of an object that no word describes.
const OBJECT: u64 = 0x1000;
/// Where objects are: no bytes of the buffer.
const OBJECTS: u64 = 0xd000;

/// Memory that a call may access: true where it may write.
pub(crate) type Allowed = (bool, Range<u64>);

/// Arguments for a signature, and the memory that the call may access.
struct Call {
    arguments: [u64; 5],
    memory: Vec<Allowed>,
    /// Address of the dynptr, if there is one.
    dynptr: Option<u64>,
}

fn arguments(signature: &str, random: &mut SplitMix) -> Call {
    let mut call = Call {
        arguments: [0; 5],
        memory: vec![
            (true, CONTEXT..CONTEXT + OBJECT),
            (true, POINTEE..POINTEE + POINTEE_BYTES),
        ],
        dynptr: None,
    };
    let (words, _) = signature.split_once("->").expect("a result");
    let words: Vec<&str> = words.split_whitespace().collect();
    for (at, word) in words.iter().enumerate() {
        let start = STRIDE * (at as u64 + 1);
        let mut add = |is_written, bytes| {
            call.memory.push((is_written, start..start + bytes));
            start
        };
        let name = word.split([':', '?', '=']).next().expect("a name");
        let is_written = word.contains(":w");
        let fixed = word
            .rsplit_once(':')
            .and_then(|(_, bytes)| bytes.parse().ok());
        call.arguments[at] = match (name, fixed) {
            ("map", _) => MAP,
            ("ctx", _) => CONTEXT,
            ("any", _) => any(random),
            // Its size is chosen with it.
            ("size" | "size0" | "const_alloc_size_or_zero", _) => call.arguments[at],
            ("map_key", _) => add(false, 4),
            ("map_value", _) => add(is_written, 8),
            ("mem", Some(bytes)) => add(is_written, bytes),
            ("mem", None) if word.contains('?') && random.next_u32().is_multiple_of(4) => 0,
            ("mem", None) => {
                let bytes = u64::from(random.next_u32() % 48 + 1);
                call.arguments[at + 1] = bytes;
                add(is_written, bytes)
            }
            ("dynptr", _) => *call.dynptr.insert(add(true, 16)),
            // A text ends where it ends: in the buffer.
            ("const_str", _) => add(false, STRIDE),
            _ => {
                let place = OBJECTS + OBJECT * at as u64;
                call.memory.push((true, place..place + OBJECT));
                place
            }
        };
    }
    call
}

/// A number that may be an address in the buffer, one that is not, or flags.
pub(crate) fn any(random: &mut SplitMix) -> u64 {
    match random.next_u32() % 4 {
        0 => 0,
        1 => u64::from(random.next_u32() % 4),
        2 => u64::from(random.next_u32() % 2048),
        _ => random.next_u64(),
    }
}

/// The first access that is not allowed: true for a write.
pub(crate) fn undeclared(accesses: &[Allowed], allowed: &[Allowed]) -> Option<Allowed> {
    let is_allowed = |(is_write, range): &&Allowed| {
        let mut allowed = allowed.iter();
        range.is_empty()
            || allowed.any(|(is_written, allowed)| {
                (*is_written || !is_write)
                    && allowed.start <= range.start
                    && range.end <= allowed.end
            })
    };
    accesses.iter().find(|it| !is_allowed(it)).cloned()
}

pub(crate) fn memory() -> Buffer {
    let mut memory = buffer();
    memory.bytes = vec![0; STRIDE as usize * 8];
    // Places in texts.
    for text in (0..memory.bytes.len()).step_by(STRIDE as usize) {
        memory.bytes[text..text + 9].copy_from_slice(b"%s %d %p6");
    }
    memory
}

#[test]
fn helpers_access_the_memory_that_they_declare() {
    let mut random = SplitMix::new(5);
    let (mut seen, mut probed_otherwise) = (0, BTreeSet::new());
    for &number in NUMBERS {
        let name = spec::helpers::helper(number)
            .expect("a helper of Linux")
            .name;
        let declared = declared(number).expect(name);
        let signatures = vm::signatures(declared);
        let mut probes = false;
        for signature in signatures.flat_map(|signature| std::iter::repeat_n(signature, 40)) {
            let Call {
                arguments,
                memory: allowed,
                dynptr,
            } = arguments(&signature, &mut random);
            let mut memory = memory();
            if let Some(at) = dynptr {
                let pointee = Dynptr::new(DynptrKind::Local, POINTEE, POINTEE_BYTES as u32);
                pointee.write(&mut memory, at).expect("it is in the buffer");
                memory.accesses.take();
            }
            // A fault is an access that was noted before.
            let _ = call(&mut memory, name, arguments);
            probes |= memory.is_probed.get();
            let accesses = memory.accesses.take();
            seen += accesses.len();
            let undeclared = undeclared(&accesses, &allowed);
            assert_eq!(undeclared, None, "{name} {arguments:x?} ({signature})");
        }
        if probes != declared.contains('@') {
            probed_otherwise.insert(name);
        }
    }
    // Without types and a process they have nothing to read.
    let without_any = BTreeSet::from(["bpf_snprintf_btf", "bpf_sys_bpf"]);
    assert_eq!(probed_otherwise, without_any);
    assert!(seen > 3000, "{seen} accesses");
}
