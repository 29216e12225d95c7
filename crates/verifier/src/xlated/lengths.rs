//! Numbers of instructions that Linux makes of one after the walk (`convert_ctx_accesses`,
//! `do_misc_fixups`, `optimize_bpf_loop`), by the registry and what the walk found; the
//! instructions themselves are not made.

use btf::{Param, ParamSuffix, Shape, TypeId};
use isa::ebpf::{Access, AtomicOp, Callee, Insn, Operand, Size};
use spec::helpers::HelperId;
use spec::maps::MapFlags;
use spec::registry::{AccessForm, RegBase, SpecialKfunc};

use super::kernel_code::guarded_division;
use crate::ProgramFacts;
use crate::env::{Check, InsnAux, MapUse};
use crate::speculation::OffsetMask;
use crate::state::RegRules;

/// Instructions that count a round of `may_goto`.
pub(super) const MAY_GOTO: u32 = 7;
/// Instructions in front of a function that set the rounds of `may_goto`.
const ROUNDS: u32 = 2;
/// Offset of `tstamp_type` in `struct __sk_buff`.
const TSTAMP_TYPE: i16 = 180;

/// The lengths of a program whose walk has ended (`convert_ctx_accesses`).
#[doc(alias = "convert_ctx_accesses")]
pub(super) struct Lengths<'w, 'a> {
    env: &'w Check<'a>,
    accesses_tstamp_type: bool,
}

impl<'w, 'a> Lengths<'w, 'a> {
    /// The lengths of this walk's program.
    pub(super) fn of(env: &'w Check<'a>) -> Lengths<'w, 'a> {
        let is_of_skb = env.input.context.kind.context() == Some("__sk_buff");
        let is_tstamp_type = |(insn, aux): (&Insn, &InsnAux)| {
            let offset = insn.access().map(|access| access.off);
            aux.seen && offset == Some(TSTAMP_TYPE) && base(aux) == Some(RegBase::PtrToCtx)
        };
        let mut insns = env.input.insns.iter().zip(&env.aux);
        Lengths {
            env,
            accesses_tstamp_type: is_of_skb && insns.any(is_tstamp_type),
        }
    }

    /// Instructions that the one at a slot becomes, and those that mask it against
    /// speculation; `None` if the number is not known.
    pub(super) fn at(&self, slot: usize) -> Option<u32> {
        let (insn, aux) = (self.env.input.insns[slot], &self.env.aux[slot]);
        let barriers = u32::from(aux.barriers.before) + u32::from(aux.barriers.behind);
        let mask = aux.barriers.mask.map_or(0, masking);
        Some(self.unmasked(insn, aux)? + barriers + mask)
    }

    /// Instructions that the one at a slot is when dead code is removed: loops are inlined before
    /// (`optimize_bpf_loop`, `bpf_optimize_bpf_loop`, `inline_bpf_loop`, `is_bpf_loop_call`).
    #[doc(alias = "optimize_bpf_loop")]
    #[doc(alias = "bpf_optimize_bpf_loop")]
    #[doc(alias = "inline_bpf_loop")]
    #[doc(alias = "is_bpf_loop_call")]
    pub(super) fn before_removal(&self, slot: usize) -> u32 {
        let aux = &self.env.aux[slot];
        let is_inlined = match self.env.input.insns[slot] {
            Insn::Call(callee) => {
                HelperId::of_call(callee) == Some(HelperId::Loop) && aux.loop_inline.fits
            }
            _ => false,
        };
        if is_inlined {
            self.at(slot).unwrap_or(1)
        } else {
            1
        }
    }

    /// True for an access that the walk accepts and no instruction stands for.
    pub(super) fn lacks_conversion(&self, slot: usize) -> bool {
        let (insn, aux) = (self.env.input.insns[slot], &self.env.aux[slot]);
        let access = insn.access().zip(form(insn));
        access.is_some_and(|(access, form)| self.access(access, form, aux) == Some(0))
    }

    fn unmasked(&self, insn: Insn, aux: &InsnAux) -> Option<u32> {
        match insn {
            Insn::MayGoto { .. } => Some(MAY_GOTO),
            Insn::Call(Callee::Local(_)) => Some(1),
            Insn::Call(Callee::Helper(id)) => self.call(u32::try_from(id).ok()?, aux),
            Insn::Call(Callee::Kfunc { id, .. }) => self.kfunc(u32::try_from(id).ok()?),
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => self.packet_load(insn),
            // The upper half of a 32-bit compare-and-exchange may need an instruction.
            Insn::Atomic {
                op: AtomicOp::CmpXchg,
                size: Size::W,
                ..
            }
            | Insn::Cast { .. } => None,
            _ => match insn.access().zip(form(insn)) {
                Some((access, form)) => self.access(access, form, aux),
                None => Some(guarded_division(insn).map_or(1, |guarded| guarded.len() as u32)),
            },
        }
    }

    /// Instructions in front of the first one, which make the packet writable.
    pub(super) fn prologue(&self) -> u32 {
        let rules = self.env.input.registry.rules(&self.env.input.context);
        let prologue = rules.map_or(0, |rules| rules.prologue.into());
        if self.env.seen_direct_write {
            prologue
        } else {
            0
        }
    }

    /// Instructions in front of the function that begins at a slot.
    pub(super) fn entry(&self, slot: usize) -> u32 {
        let subprogs = &self.env.analysis.subprogs;
        let function = subprogs.iter().find(|info| info.start as usize == slot);
        let counts = function.is_some_and(|info| {
            (info.start as usize..info.end as usize).any(|slot| {
                let is_loop =
                    matches!(self.env.input.insns[slot], Insn::MayGoto { off } if off != 0);
                is_loop && self.env.aux[slot].seen
            })
        });
        if counts { ROUNDS } else { 0 }
    }

    fn access(&self, access: Access, form: AccessForm, aux: &InsnAux) -> Option<u32> {
        let input = self.env.input;
        let Some(base) = base(aux) else {
            return Some(1);
        };
        let (offset, size) = (access.off.into(), access.size.bytes());
        if base == RegBase::PtrToCtx {
            let layout = input.registry.layout(&input.context)?;
            return layout.insns(offset, size, form, self.accesses_tstamp_type);
        }
        match RegRules::of(base).is_socket {
            true => input.registry.socket_insns(base, offset, size, form),
            false => Some(1),
        }
    }

    fn call(&self, id: u32, aux: &InsnAux) -> Option<u32> {
        let input = self.env.input;
        let rewriting = &input.registry.rewriting;
        // Maps of a caller without CAP_PERFMON have their indexes masked.
        let masks = !input.bypass_spec_v1;
        let helper = i32::try_from(id).ok().and_then(HelperId::from_number);
        match helper {
            Some(HelperId::TailCall) => return Some(if masks { 3 } else { 1 }),
            Some(HelperId::Loop) if !aux.loop_inline.fits => return Some(1),
            Some(HelperId::MapLookupElem) => {}
            // The object has the address of its copies.
            Some(HelperId::PerCpuPtr | HelperId::ThisCpuPtr) if aux.is_percpu_allocated => {
                return Some(rewriting.call(id, None) + 1);
            }
            _ => return Some(rewriting.call(id, None)),
        }
        let MapUse::One(map) = aux.map else {
            // With several maps the kernel calls the function that looks at the map.
            return Some(1);
        };
        let map = &input.maps[map];
        let kind = map.kind()?;
        if map.def().params.flags.has(MapFlags::INNER_MAP) {
            return Some(1);
        }
        let mask = u32::from(masks && kind.is_array());
        Some(rewriting.call(id, Some(kind)) + mask)
    }

    /// Calls stay, behind the arguments that Linux sets: a wide load is the one that names the
    /// program.
    fn kfunc(&self, id: u32) -> Option<u32> {
        let kfunc = self.env.input.registry.kfunc(id)?;
        let arguments = kfunc.special.map_or(0, SpecialKfunc::argument_insns);
        let types = self.env.input.vmlinux?;
        let Shape::Func(function) = types.get(TypeId(id))?.shape() else {
            return None;
        };
        let Shape::Proto(proto) = types.get(function.proto)?.shape() else {
            return None;
        };
        let is_program = |param: Param| {
            let name = types.string(param.name).as_bytes();
            ParamSuffix::of(name) == Some(ParamSuffix::Program)
        };
        let program = if proto.params().any(is_program) { 2 } else { 0 };
        Some(1 + arguments + program)
    }

    fn packet_load(&self, insn: Insn) -> Option<u32> {
        let loads = self.env.input.registry.rewriting.packet_loads;
        let insns = match insn {
            Insn::PacketInd { imm: 0, .. } => loads.indirect,
            Insn::PacketInd { .. } => loads.indirect_offset,
            _ => loads.absolute,
        };
        (insns != 0).then_some(insns.into())
    }
}

/// The kind of pointer that an access goes through.
fn base(aux: &InsnAux) -> Option<RegBase> {
    aux.ptr_type.map(|ty| ty.base)
}

/// Instructions that mask the offset of pointer arithmetic.
fn masking(mask: OffsetMask) -> u32 {
    let OffsetMask::Pointer {
        pointer_in_dst,
        negative,
        constant,
        ..
    } = mask
    else {
        return 0;
    };
    let copied = u32::from(!pointer_in_dst);
    match constant {
        true => 1 + copied,
        false => 6 + copied + u32::from(negative) + u32::from(negative && pointer_in_dst),
    }
}

/// The form of a load or store.
fn form(insn: Insn) -> Option<AccessForm> {
    match insn {
        Insn::Load {
            signed, dst, base, ..
        } => Some(load_form(signed, dst == base)),
        Insn::Store { src, .. } => Some(match src {
            Operand::Reg(_) => AccessForm::Write,
            Operand::Imm(_) => AccessForm::WriteImm,
        }),
        _ => None,
    }
}

fn load_form(signed: bool, into_base: bool) -> AccessForm {
    match (signed, into_base) {
        (false, false) => AccessForm::Read,
        (false, true) => AccessForm::ReadBase,
        (true, false) => AccessForm::SignedRead,
        (true, true) => AccessForm::SignedReadBase,
    }
}

/// Adds to the facts of an accepted program what Linux makes of its instructions.
pub(crate) fn note_lengths(env: &Check<'_>, facts: &mut ProgramFacts) {
    let lengths = Lengths::of(env);
    facts.prologue = lengths.prologue();
    for (slot, fact) in facts.insns.iter_mut().enumerate() {
        if fact.is_reached {
            fact.rewritten_insns = lengths.at(slot);
        }
    }
}
