//! Native code of verified programs, and why some of them run in the checked engine.

use std::sync::Arc;

use isa::ebpf::{Callee, Insn, Reg};
use jit::memory::Pool;
use jit::{Native, Options};
use lower::{Lowered, Passes, Problem, Unfit};
use program::{MapId, Program};
use spec::kfuncs::KernelFunction;
use verifier::{PointerKind, Proof};
use vm::{HostFunction, MapHandle};

/// Compiles a verified program for its maps, which are numbered as in the program. The error
/// names what native code does not support, in one line.
pub(super) fn compile(
    proof: &Proof,
    maps: &[Option<MapHandle>],
    host: &Arc<[HostFunction]>,
    pool: &Pool,
    options: &Options,
) -> Result<Native, String> {
    if let Some(slot) = text_by_pointer(proof) {
        let what = "a call of a text helper that may read what an argument points to (%s)";
        return Err(at(proof.program(), slot, what));
    }
    let find_call = ::kernel::find_call;
    let lowered = Lowered::from_verified_for(proof, maps, find_call, host, Passes::ALL);
    let lowered = lowered.map_err(|unfit| describe(&unfit, proof.program()))?;
    Native::compile(&lowered, options, pool).map_err(|error| error.to_string())
}

fn describe(unfit: &Unfit, program: &Program) -> String {
    match unfit {
        Unfit::ProgramType(kind) => format!("programs of type {}", kind.name()),
        Unfit::Map(index) => match program.maps().get(*index) {
            Some(map) => format!("map {}", map.name),
            None => format!("map {index}"),
        },
        Unfit::TailCalls(index) => {
            let map = program.maps().get(*index);
            let name = map.map_or("a program array", |map| &*map.name);
            format!("{name} holds programs without native code")
        }
        Unfit::KernelObject(slot) => {
            let what = "it uses an object of the kernel";
            at(program, *slot, what)
        }
        Unfit::Reference(slot) => at(program, *slot, "the address of a variable of the kernel"),
        Unfit::TooLong | Unfit::HostFunctions => unfit.to_string(),
        Unfit::Malformed(malformed) => {
            let what = match malformed.problem {
                Problem::UnknownHelper(number) => {
                    let helper = spec::helpers::helper(number).map(|helper| helper.name);
                    let kfunc = || KernelFunction::of_number(number)?.name();
                    match helper.or_else(kfunc) {
                        Some(name) => format!("a call of {name}"),
                        None => format!("a call of helper {number}"),
                    }
                }
                problem => problem.to_string(),
            };
            at(program, malformed.slot, &what)
        }
    }
}

fn at(program: &Program, slot: usize, what: &str) -> String {
    match program.decode().get(slot) {
        Some(insn) => format!("instruction {slot} ({insn}): {what}"),
        None => what.to_owned(),
    }
}

/// The first call that may format what a pointer points to: helpers of native code follow no
/// pointers that the verifier did not check.
fn text_by_pointer(proof: &Proof) -> Option<usize> {
    let insns = proof.program().decode();
    let facts = proof.facts().insns.iter();
    let mut calls = insns.iter().zip(facts).enumerate();
    let found = calls.find(|(_, (insn, fact))| {
        let Insn::Call(Callee::Helper(number)) = insn else {
            return false;
        };
        let name = spec::helpers::helper(*number).map(|helper| helper.name);
        let format = match name {
            Some("bpf_trace_printk" | "bpf_trace_vprintk") => Reg::R1,
            Some("bpf_snprintf") => Reg::R3,
            _ => return false,
        };
        let pointer = fact.operand(format).and_then(|value| value.pointer());
        let format = pointer.and_then(|pointer| {
            let PointerKind::MapValue(map) = pointer.kind else {
                return None;
            };
            let offset = usize::try_from(pointer.offset.constant()?).ok()?;
            constant_text(proof.program(), MapId(map.0), offset)
        });
        fact.is_reached && format.is_none_or(|format| follows_pointers(&format))
    });
    found.map(|(slot, _)| slot)
}

/// The text at an offset in the value of a frozen map.
fn constant_text(program: &Program, map: MapId, offset: usize) -> Option<Vec<u8>> {
    let def = program.map(map).filter(|def| def.is_frozen())?;
    let bytes = def.initial_value()?.to_vec();
    let text = bytes.get(offset..)?;
    let end = text.iter().position(|byte| *byte == 0)?;
    Some(text[..end].to_vec())
}

/// True if a format has a conversion that reads memory: `%s`, `%pks`, `%pus`, `%pI4` and the
/// like.
fn follows_pointers(format: &[u8]) -> bool {
    let mut rest = format.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'%' || rest.next_if_eq(&b'%').is_some() {
            continue;
        }
        while rest
            .next_if(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b' '))
            .is_some()
        {}
        match rest.next() {
            Some(b's') => return true,
            Some(b'p') if rest.peek().is_some_and(|byte| b"Iikus".contains(byte)) => return true,
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::follows_pointers;

    #[test]
    fn conversions_that_read_memory_are_found() {
        for format in [
            "%s",
            "a %-12s b",
            "%%%s",
            "%pI4",
            "%d %pi6",
            "%pks", // A blank is a flag.
            "100% sure",
        ] {
            assert!(follows_pointers(format.as_bytes()), "{format}");
        }
        for format in [
            "",
            "%%s",
            "%d",
            "%05lu %x",
            "%px",
            "%p",
            "%pK",
            "%",
            "100%, sure",
        ] {
            assert!(!follows_pointers(format.as_bytes()), "{format}");
        }
    }
}
