//! Kfuncs read and write what they declare, whatever the arguments are that nothing bounds.

use std::collections::BTreeSet;

use packet::{Metadata, Packet};
use spec::kfuncs::KernelFunction;
use spec::{Random, SplitMix};
use vm::{RunContext, Timers};

use super::{declared, find, find_call};
use crate::dynptr::{Dynptr, DynptrKind};
use crate::helpers::tests::accesses::{Allowed, STRIDE, any, memory, undeclared};
use crate::helpers::tests::{Buffer, CONTEXT, MAP};

/// Bytes of objects that are made for calls: those of a mask and its reference count.
const OBJECT_BYTES: u64 = 1028;

/// Offset from a dynptr to what it points to, and the bytes of that.
const POINTEE: u64 = 64;
const POINTEE_BYTES: u64 = 32;

/// A parameter of a signature ([`spec::registry::kfunc_signature`]).
struct Parameter<'s> {
    /// The type, or what the pointer points to; nothing for a function.
    ty: &'s str,
    /// Bytes of that, if they are known.
    bytes: Option<u64>,
    is_pointer: bool,
    /// The end of its name, which says more of it.
    suffix: &'s str,
}

impl Parameter<'_> {
    fn parse(word: &str) -> Parameter<'_> {
        let word = word.trim_end_matches('@');
        let (of, suffix, is_pointer) = match word.split_once('*') {
            Some((of, suffix)) => (of, suffix, true),
            None => match word.split_once("__") {
                Some((of, _)) => (of, &word[of.len()..], false),
                None => (word, "", false),
            },
        };
        let (ty, bytes) = match of.split_once(':') {
            Some((ty, bytes)) => (ty, Some(bytes.parse().expect("a number of bytes"))),
            None => (of, None),
        };
        Parameter {
            ty,
            bytes,
            is_pointer,
            suffix: suffix.trim_start_matches('_'),
        }
    }

    /// True for the number of bytes of the argument before.
    fn is_size(&self) -> bool {
        !self.is_pointer && matches!(self.suffix, "sz" | "szk")
    }
}

/// Arguments for a signature, and the memory that the call may access.
fn arguments(
    signature: &str,
    random: &mut SplitMix,
    memory: &mut Buffer,
) -> ([u64; 5], Vec<Allowed>) {
    let (words, _) = signature.split_once("->").expect("a result");
    let parameters: Vec<Parameter<'_>> = words.split_whitespace().map(Parameter::parse).collect();
    let (mut arguments, mut allowed) = ([0; 5], Vec::new());
    for (at, parameter) in parameters.iter().enumerate() {
        let start = STRIDE * (at as u64 + 1);
        let has_size = parameters.get(at + 1).is_some_and(Parameter::is_size);
        arguments[at] = match (parameter.ty, parameter.suffix) {
            _ if parameter.is_size() => arguments[at],
            _ if !parameter.is_pointer && parameter.suffix == "k" => 1,
            _ if !parameter.is_pointer => any(random),
            (_, "ign" | "prog") | ("", _) => any(random),
            (_, "map") | ("bpf_map", _) => MAP,
            ("__sk_buff" | "xdp_md", _) => own(&mut allowed, CONTEXT, parameter.bytes.unwrap_or(0)),
            (_, "opt") if random.next_u32().is_multiple_of(4) => {
                arguments[at + 1] = u64::from(random.next_u32() % 48 + 1);
                0
            }
            _ if has_size => {
                let known = [parameter.bytes.unwrap_or(8), 12, 24, 36];
                let bytes = match random.next_u32() % 5 {
                    4 => u64::from(random.next_u32() % 48 + 1),
                    which => known[which as usize],
                };
                arguments[at + 1] = bytes;
                own(&mut allowed, start, bytes)
            }
            // A text ends where it ends: in the buffer.
            (_, "str") => own(&mut allowed, start, STRIDE),
            ("bpf_dynptr", _) => {
                let (dynptr, is_written) = dynptr(start + POINTEE, random);
                let written = dynptr.write(memory, start);
                written.expect("it is in the buffer");
                let pointee = start + POINTEE..start + POINTEE + POINTEE_BYTES;
                allowed.extend([(is_written, pointee), (true, start..start + 16)]);
                start
            }
            ("bpf_cpumask" | "cpumask", _) if random.next_u32().is_multiple_of(2) => {
                own(&mut allowed, start, parameter.bytes.unwrap_or(0))
            }
            (_, "alloc" | "refcounted_kptr")
            | ("bpf_cpumask" | "cpumask" | "bpf_list_node" | "bpf_rb_node", _) => {
                let object = memory.allocate(OBJECT_BYTES as usize);
                own(&mut allowed, object, parameter.bytes.unwrap_or(0))
            }
            _ => match parameter.bytes {
                Some(bytes) => own(&mut allowed, start, bytes),
                // An object of the kernel, of which nothing is read.
                None => 0xf000 + at as u64,
            },
        };
    }
    (arguments, allowed)
}

/// Allows accesses to memory; its address.
fn own(allowed: &mut Vec<Allowed>, start: u64, bytes: u64) -> u64 {
    allowed.push((true, start..start + bytes));
    start
}

/// A dynptr to bytes at an address or to the packet, and whether the bytes may be written.
fn dynptr(to: u64, random: &mut SplitMix) -> (Dynptr, bool) {
    let local = Dynptr::new(DynptrKind::Local, to, POINTEE_BYTES as u32);
    let made = match random.next_u32() % 6 {
        0 => local.read_only(),
        1 => Dynptr::new(DynptrKind::Skb, CONTEXT, 20),
        2 => Dynptr::new(DynptrKind::Xdp, CONTEXT, 20),
        3 => Dynptr::default(),
        _ => local,
    };
    (made, !made.is_read_only())
}

fn call(memory: &mut Buffer, number: i32, arguments: [u64; 5]) -> Result<u64, u64> {
    let mut random = SplitMix::new(0);
    let mut clock = || 77;
    let metadata = Metadata::from_cpu(3);
    let packet = Packet::whole(&[], &metadata);
    let timers = Timers::new();
    let mut cx = RunContext::new(&packet, &mut random, Some(&mut clock));
    cx.timers = Some(&timers);
    find(number).expect("it is built")(arguments, memory, &mut cx)
}

/// The numbers and names of the kfuncs of Linux that are built.
fn built() -> impl Iterator<Item = (i32, &'static str)> {
    let functions = (0..).map(KernelFunction::Linux);
    let named = functions.map_while(|it| Some((it.number(), it.name()?)));
    named.filter(|(number, _)| find::<Buffer>(*number).is_some())
}

#[test]
fn kfuncs_access_the_memory_that_they_declare() {
    let mut random = SplitMix::new(7);
    let mut faults = BTreeSet::new();
    let (mut count, mut seen) = (0, 0);
    for (number, name) in built() {
        count += 1;
        let declared = declared(number).expect(name);
        let is_native = find_call(number).is_some();
        let mut probes = false;
        for signature in vm::signatures(declared) {
            for _ in 0..200 {
                let mut memory = memory();
                if random.next_u32().is_multiple_of(2) {
                    let fill = |byte: &mut u8| *byte = random.next_u32() as u8 & 0x8f;
                    memory.bytes.iter_mut().for_each(fill);
                }
                let (arguments, allowed) = arguments(&signature, &mut random, &mut memory);
                memory.accesses.take();
                memory.is_probed.set(false);
                // A fault is an access that was noted before.
                let _ = call(&mut memory, number, arguments);
                probes |= memory.is_probed.get();
                let accesses = memory.accesses.take();
                seen += accesses.len();
                if let Some((is_write, range)) = undeclared(&accesses, &allowed) {
                    let does = if is_write { "writes" } else { "reads" };
                    faults.insert(format!("{name} {does} {range:x?} with {arguments:x?}"));
                }
            }
        }
        if probes != declared.contains('@') {
            let does = if probes { "reads" } else { "does not read" };
            faults.insert(format!(
                "{name} {does} at any address, native: {is_native}: {declared}"
            ));
        }
    }
    let faults: Vec<String> = faults.into_iter().collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(
        count > 120 && seen > 5000,
        "{count} kfuncs, {seen} accesses"
    );
}
