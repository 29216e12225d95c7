//! What reports say of arguments of calls.

use btf::{Shape, TypeId};
use isa::ebpf::{Callee, Insn};

use super::history::Scope;
use super::{Category, Finding, Noted, Scene, value};
use crate::log::TypeText;
use crate::rejection::Call;
use crate::state::TypeRef;

/// Ordinal numbers of arguments.
const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];

/// What is said of an argument.
pub(super) fn find(scene: &Scene<'_>, noted: &Noted, row: &Call) -> Option<Finding> {
    let insn = noted.insn;
    let holds = |reg: u8| scene.reg(reg).map(value::plain);
    let of = |index: &i64| u8::try_from(index + 1).ok();
    let (reg, reason, suggestion) = match row {
        Call::ArgumentType { reg, kind, expected } => {
            let names: Vec<String> = expected.iter().map(TypeText::to_string).collect();
            (
                reg.number(),
                format!("it has type {kind}, but this argument accepts {}", names.join(", ")),
                "Pass a value with one of the accepted pointer or scalar types for this call.",
            )
        }
        Call::ArgumentMaybeNull { reg } => (
            reg.number(),
            "the pointer may be NULL, but this call requires a non-NULL pointer".to_owned(),
            "Add a NULL check and make the call only on the non-NULL path.",
        ),
        Call::NotReferenced { reg, .. } => (
            reg.number(),
            "release helpers require a value that owns a live resource returned by a matching acquire helper".to_owned(),
            "Pass the resource-owning pointer returned by the matching acquire helper, and avoid calling the release helper after ownership has already been transferred or released.",
        ),
        Call::TrustedMaybeNull { index, .. } => (
            of(index)?,
            format!("the pointer may be NULL, but this kfunc requires a non-NULL value of type {}", parameter(scene, insn, of(index)?)?.pointer),
            "Add a NULL check and call the kfunc only on the non-NULL path.",
        ),
        Call::ReleaseExpectsReference { reg, .. } => (
            reg.number(),
            format!("release kfuncs require a resource-owning value of type {} returned by a matching acquire kfunc", parameter(scene, insn, reg.number())?.pointee),
            "Pass the resource-owning pointer returned by the matching acquire kfunc, and avoid calling the release kfunc after ownership has already been transferred or released.",
        ),
        Call::NotTrusted { reg } => (
            reg.number(),
            format!("the kfunc requires a trusted or resource-owning pointer to {}, but R{} is {}", parameter(scene, insn, reg.number())?.pointee, reg.number(), holds(reg.number())?),
            "Pass a pointer acquired from a verifier-tracked source, or call this kfunc only inside the required protection if it accepts RCU pointers.",
        ),
        Call::NotRcu { reg } => (
            reg.number(),
            format!("the kfunc requires an RCU-protected pointer to {}, but R{} is {}", parameter(scene, insn, reg.number())?.pointee, reg.number(), holds(reg.number())?),
            "Use this kfunc with a pointer that is valid in an RCU read lock region.",
        ),
        Call::NotStructure { index, .. } => (
            of(index)?,
            format!("the kfunc expects a pointer to {}, but this argument is {} and cannot be used as that kernel object pointer", parameter(scene, insn, of(index)?)?.pointee, holds(of(index)?)?),
            "Pass a verifier-tracked pointer to the expected kernel object type, not a pointer to stack storage or another memory buffer.",
        ),
        Call::SizedMemory { index, next } => (
            of(index)?,
            format!("it is the memory pointer in a memory/length pair with R{}, but R{} does not describe verifier-readable memory for the requested length", next + 1, of(index)?),
            "Pass a stack, map, context, or other verifier-known memory pointer, and keep the paired length within that object.",
        ),
        Call::NotContext { index, .. } => (
            of(index)?,
            format!("the kfunc expects a context pointer, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass the original program context pointer or preserve it before modifying registers.",
        ),
        Call::NotAllocated { index } => (
            of(index)?,
            format!("the kfunc expects an allocated object pointer, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass a pointer returned by the matching BPF object allocation path.",
        ),
        Call::NeitherOwning { index } => (
            of(index)?,
            format!("the kfunc expects a pointer to a BPF-managed refcounted object, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass an owning or non-owning pointer to a BPF-managed object containing a bpf_refcount field.",
        ),
        Call::NotConstantString { index } => (
            of(index)?,
            format!("the kfunc expects a pointer to a constant string stored in verifier-known memory, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass a constant string pointer that the verifier recognizes, such as a string stored in a read-only map value.",
        ),
        Call::NotIrqFlag { index } => (
            of(index)?,
            format!("the kfunc expects a stack pointer to an IRQ flag slot, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass the same stack slot used by bpf_local_irq_save() or bpf_res_spin_lock_irqsave().",
        ),
        Call::NotIterator { index } => (
            of(index)?,
            format!("iterator state must live in verifier-tracked stack memory, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass the address of a stack iterator object for iterator new, next, and destroy calls.",
        ),
        Call::ExpectsDynptr { index } => (
            of(index)?,
            format!("a dynptr argument must be a pointer to a dynptr stack slot or a verifier-provided const struct bpf_dynptr, but R{} is {}", of(index)?, holds(of(index)?)?),
            "Pass the address of a stack dynptr object, or use a const dynptr pointer returned by the verifier-supported path.",
        ),
        Call::IteratorOutsideRcu { .. } => {
            let name = callee(scene, insn)?;
            return Some(super::findings::required(&name, "Wrap iterator use in bpf_rcu_read_lock() and bpf_rcu_read_unlock(), keeping all exit paths balanced."));
        }
        _ => return None,
    };
    let name = callee(scene, insn)?;
    let ordinal = ORDINALS.get(usize::from(reg).checked_sub(1)?)?;
    let argument = format!("{ordinal} argument (R{reg})");
    let reason =
        format!("The {argument} to {name} does not satisfy the verifier contract: {reason}.");
    let finding = Finding::new(
        Category::CallType,
        "invalid call argument",
        reason,
        suggestion,
    );
    let label = format!("invalid {argument} for {name}");
    Some(finding.labelled(label).with_scope(Scope::Reg(reg)))
}

/// The name of what an instruction calls.
pub(super) fn callee(scene: &Scene<'_>, insn: u32) -> Option<String> {
    let Insn::Call(callee) = scene.input.insns[insn as usize] else {
        return None;
    };
    match callee {
        Callee::Helper(number) => Some(spec::helpers::helper(number)?.name.to_owned()),
        Callee::Kfunc { id, .. } => {
            let kfunc = scene.input.registry.kfunc(u32::try_from(id).ok()?)?;
            Some(kfunc.name.to_string())
        }
        Callee::Local(off) => {
            let start = (insn + 1).wrapping_add_signed(off);
            let subprogs = &scene.analysis.subprogs;
            let found = subprogs.iter().find(|subprog| subprog.start == start)?;
            Some(found.name.clone())
        }
    }
}

/// The type of a kfunc's parameter, in words.
struct Parameter {
    pointer: String,
    pointee: String,
}

/// The parameter of a kfunc that a register is for.
fn parameter(scene: &Scene<'_>, insn: u32, reg: u8) -> Option<Parameter> {
    let Insn::Call(Callee::Kfunc { id, module: 0 }) = scene.input.insns[insn as usize] else {
        return None;
    };
    let btf = scene.input.vmlinux?;
    let proto = match btf.get(TypeId(u32::try_from(id).ok()?))?.shape() {
        Shape::Func(func) => func.proto,
        _ => return None,
    };
    let Shape::Proto(proto) = btf.get(proto)?.shape() else {
        return None;
    };
    let mut ty = proto.params().nth(usize::from(reg).checked_sub(1)?)?.ty;
    let mut is_pointer = false;
    let pointee = loop {
        if ty.0 == 0 {
            break "(void)".to_owned();
        }
        match btf.get(ty)?.shape() {
            Shape::Ptr(target) if !is_pointer => (ty, is_pointer) = (target, true),
            Shape::Const(target) | Shape::Volatile(target) | Shape::Restrict(target) => ty = target,
            Shape::Typedef(target) => ty = target,
            Shape::TypeTag(target) => ty = target,
            _ => break value::type_text(scene.input, TypeRef::vmlinux(ty.0)),
        }
    };
    let inner = pointee.trim_matches(['(', ')']);
    Some(Parameter {
        pointer: format!("({inner} *)"),
        pointee,
    })
}
