//! The rewriting of verified programs that runs: map references become addresses, context
//! accesses those of the internal context (`convert_ctx_accesses`, `do_misc_fixups`). What Linux
//! would make of them is `verifier/src/xlated.rs`.

use std::fmt;
use std::sync::Arc;

use isa::ebpf::{AluOp, Effect, Imm64, Insn, Operand, Reg, Size, Value64, Width};
use program::{MapDef, Program};
use spec::kfuncs::KernelFunction;
use spec::maps::MapKind;
use spec::programs::{ProgramType, TestRunKind};
use spec::registry::Erased;
use verifier::{InsnFact, PointerKind, Proof, Value};
use vm::{CellSlice, ContextKind, DirectContext, MapHandle, TailTable};

use crate::{Malformed, callbacks, premises};

/// Reason why a verified program cannot be lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnsupportedConstruct {
    /// Native code has no context for programs of this type.
    ProgramType(ProgramType),
    /// The map of this index is missing though an instruction refers to it, or is another
    /// than the program declares.
    Map(usize),
    /// The program array of this index has no table of native code for programs of this
    /// type: it holds a program that has none, or belongs to programs of another type.
    TailCalls(usize),
    /// The instruction at this slot accesses an object of the kernel, or loads a pointer to one
    /// from the context.
    KernelObject(usize),
    /// The instruction at this slot makes a pointer into an arena.
    Arena(usize),
    /// The instruction at this slot refers to what has no address here: a variable of the
    /// kernel.
    Reference(usize),
    /// The program was verified for other functions of a host.
    HostFunctions,
    /// The call with this number of resolved code was verified with another signature than
    /// those that its function is written for, or with other maps.
    Signature(i32),
    /// The instruction at this slot accesses a field that native code has not, or otherwise, in
    /// the context or in a socket.
    Field(usize),
    /// The verifier relied on barriers and masks against speculative execution, because the
    /// caller has no CAP_PERFMON; native code has none.
    Speculation,
    /// Timers that may call the function at this slot are in values of maps of different
    /// sizes, or in maps of maps.
    Callback(usize),
    /// The program is too long for the sequences that take the place of instructions.
    TooLong,
    /// A structural error, among them helpers that are not there.
    Malformed(Malformed),
}

/// The context of a type of programs.
pub(crate) fn context_of(kind: ProgramType) -> Result<ContextKind, UnsupportedConstruct> {
    let unsupported = Err(UnsupportedConstruct::ProgramType(kind));
    match kind.test_run() {
        Some(TestRunKind::Xdp) => Ok(ContextKind::Xdp),
        Some(TestRunKind::Skb(_)) if kind == ProgramType::LwtSeg6local => unsupported,
        Some(TestRunKind::Skb(_)) => Ok(ContextKind::SkBuff),
        Some(TestRunKind::FlowDissector) => Ok(ContextKind::FlowDissector),
        Some(TestRunKind::Netfilter) => Ok(ContextKind::Netfilter),
        Some(TestRunKind::SkLookup) => Ok(ContextKind::SkLookup),
        Some(TestRunKind::RawTracepoint) if kind == ProgramType::RawTracepoint => {
            Ok(ContextKind::Arguments)
        }
        Some(TestRunKind::Syscall) => Ok(ContextKind::Syscall),
        Some(TestRunKind::RawTracepoint | TestRunKind::Model) | None => unsupported,
    }
}

/// The maps that a program uses, as its instructions refer to them.
pub(crate) struct UsedMaps<'a> {
    handles: &'a [Option<MapHandle>],
    /// By map: what native code sees of a program array.
    pub(crate) tables: Vec<Option<Arc<TailTable>>>,
}

impl<'a> UsedMaps<'a> {
    /// The maps of a program, if they are as it declares them.
    pub(crate) fn new(
        program: &Program,
        handles: &'a [Option<MapHandle>],
        kind: ContextKind,
    ) -> Result<UsedMaps<'a>, UnsupportedConstruct> {
        let mut tables = vec![None; handles.len()];
        for id in program.used_maps() {
            let index = id.0 as usize;
            let handle = handles.get(index).and_then(Option::as_ref);
            let handle = match (handle, program.map(id)) {
                (Some(handle), Some(def)) if is_as_declared(handle, def) => handle,
                _ => return Err(UnsupportedConstruct::Map(index)),
            };
            if handle.kind == MapKind::ProgArray {
                let table = handle.operations().tail_table();
                let table = table.filter(|table| table.admits(kind));
                tables[index] = Some(table.ok_or(UnsupportedConstruct::TailCalls(index))?);
            }
        }
        Ok(UsedMaps { handles, tables })
    }

    /// Address of a map in instructions.
    fn address(&self, index: i32) -> Option<u64> {
        let index = usize::try_from(index).ok()?;
        match self.tables.get(index)? {
            Some(table) => Some(table.address()),
            None => Some(self.handles[index].as_ref()?.address()),
        }
    }

    fn handle(&self, index: i32) -> Option<&MapHandle> {
        self.handles.get(usize::try_from(index).ok()?)?.as_ref()
    }
}

/// The instructions of a program with a number, for its context and these maps
/// (`do_misc_fixups`).
#[doc(alias = "do_misc_fixups")]
pub(crate) fn rewrite(
    proof: &Proof,
    kind: ContextKind,
    maps: &UsedMaps<'_>,
    number: u32,
) -> Result<Vec<Insn>, UnsupportedConstruct> {
    let mut insns = proof.program().decode();
    let mut is_second_slot = false;
    for (slot, (insn, fact)) in insns.iter_mut().zip(&proof.facts().insns).enumerate() {
        if is_second_slot {
            is_second_slot = false;
            continue;
        }
        is_second_slot = fact.is_reached && matches!(insn, Insn::LoadImm64 { .. });
        if !fact.is_reached {
            *insn = Insn::Exit;
            continue;
        }
        if !premises::has_place(*insn, fact, kind) {
            return Err(UnsupportedConstruct::Field(slot));
        }
        if let Some(function) = proof.kernel_function(slot) {
            *insn = inlined(function, *insn).unwrap_or_else(|| function.resolved(*insn));
        }
        rewrite_insn(insn, slot, fact, (maps, number))?;
    }
    Ok(insns)
}

/// Replacement of a call of a function that only the verifier sees.
fn inlined(function: KernelFunction, insn: Insn) -> Option<Insn> {
    let Insn::Call(_) = insn else {
        return None;
    };
    let src = match function.special()?.erased()? {
        Erased::Nothing => Operand::Imm(0),
        Erased::Argument => Operand::Reg(Reg::R1),
    };
    Some(Insn::Alu {
        op: AluOp::Mov,
        width: Width::W64,
        dst: Reg::R0,
        src,
    })
}

/// True if a map is the one that was verified, as far as code without checks rests on it. Special
/// fields of values are left out: locks and timers are bytes of the value to this code, and it
/// follows no pointer to an object that a value holds ([`UnsupportedConstruct::KernelObject`]).
fn is_as_declared(handle: &MapHandle, def: &MapDef) -> bool {
    let (map, params) = (handle, &def.params);
    params.kind() == Some(map.kind)
        && map.key_size == params.key_size as usize
        && map.value_size == params.value_size as usize
        && map.flags == params.flags
        && (map.max_entries == params.max_entries || map.kind.is_lru())
        && (!def.is_frozen() || has_initial_value(handle, def))
}

/// True if a map holds what it holds for ever: the verifier took its contents for
/// constants.
fn has_initial_value(handle: &MapHandle, def: &MapDef) -> bool {
    let value = handle.operations().direct_value().map(CellSlice::to_vec);
    def.initial_value().map(|image| image.to_vec()) == value
}

/// Linux's `convert_ctx_accesses`.
#[doc(alias = "convert_ctx_accesses")]
fn rewrite_insn(
    insn: &mut Insn,
    slot: usize,
    fact: &InsnFact,
    (maps, number): (&UsedMaps<'_>, u32),
) -> Result<(), UnsupportedConstruct> {
    if fact.accesses_object && !is_socket(fact) {
        return Err(UnsupportedConstruct::KernelObject(slot));
    }
    if let Insn::Cast { .. } = insn {
        return Err(UnsupportedConstruct::Arena(slot));
    }
    match insn.effect() {
        Some(Effect::Wide) => {
            if let Insn::LoadImm64 { imm, .. } = insn {
                let value = callbacks::number(*imm, slot, number).or_else(|| address(*imm, maps));
                let value = value.ok_or(UnsupportedConstruct::Reference(slot))?;
                *imm = Imm64::Value(Value64::new(value));
            }
        }
        Some(Effect::Load) => {
            if let Insn::Load {
                size, off, signed, ..
            } = insn
                && is_context(fact)
            {
                match field(fact) {
                    Field::Number => {}
                    // The verifier has the field loaded whole.
                    Field::Bound(bound) => (*size, *off, *signed) = (Size::DW, bound, false),
                    Field::Object => return Err(UnsupportedConstruct::KernelObject(slot)),
                }
            }
        }
        Some(
            Effect::Compute
            | Effect::Store
            | Effect::Atomic
            | Effect::Packet
            | Effect::Branch
            | Effect::Goto
            | Effect::GotoLong
            | Effect::GotoReg
            | Effect::Call
            | Effect::Exit,
        )
        | None => {}
    }
    Ok(())
}

/// The value of a 64-bit immediate (`convert_pseudo_ld_imm64`).
#[doc(alias = "convert_pseudo_ld_imm64")]
fn address(imm: Imm64, maps: &UsedMaps<'_>) -> Option<u64> {
    match imm {
        Imm64::Value(value) => Some(value.get()),
        Imm64::MapIndex { index, .. } => maps.address(index),
        Imm64::MapIndexValue { index, offset } => {
            let map = maps.handle(index)?.operations();
            if let Some(arena) = map.arena() {
                return Some(arena.user_start() + u64::from(offset as u32));
            }
            let value = map.direct_value()?;
            Some(value.address().expose_provenance() as u64 + u64::from(offset as u32))
        }
        Imm64::MapFd { .. } | Imm64::MapValue { .. } | Imm64::BtfId { .. } | Imm64::Func { .. } => {
            None
        }
    }
}

/// True if an access is one to the context. The verifier has no instruction access the
/// context and something else, nor the context behind an offset in the register.
fn is_context(fact: &InsnFact) -> bool {
    let pointer = fact.access.as_ref().and_then(Value::pointer);
    pointer.is_some_and(|pointer| pointer.kind == PointerKind::Context)
}

/// True if an access reads a structure of a socket as programs see it, which is in memory.
fn is_socket(fact: &InsnFact) -> bool {
    let pointer = fact.access.as_ref().and_then(Value::pointer);
    pointer.is_some_and(|pointer| premises::socket_bytes(pointer.kind).is_some())
}

/// Field that a load from the context reads.
enum Field {
    /// Bytes of the structure: a number, or the pointer to flow keys or to a socket.
    Number,
    /// A bound of the packet, at this offset.
    Bound(i16),
    /// A pointer to an object of the kernel.
    Object,
}

fn field(fact: &InsnFact) -> Field {
    match &fact.result {
        Some((_, Value::Pointer(pointer))) => match pointer.kind {
            PointerKind::Packet => Field::Bound(DirectContext::DATA),
            PointerKind::PacketEnd => Field::Bound(DirectContext::DATA_END),
            PointerKind::PacketMeta => Field::Bound(DirectContext::DATA_META),
            PointerKind::FlowKeys => Field::Number,
            kind if premises::socket_bytes(kind).is_some() => Field::Number,
            PointerKind::Context
            | PointerKind::Map(_)
            | PointerKind::MapValue(_)
            | PointerKind::MapKey(_)
            | PointerKind::Stack { .. }
            | PointerKind::Memory { .. }
            | PointerKind::Function { .. }
            | PointerKind::Other { .. } => Field::Object,
        },
        Some((_, Value::Mixed)) => Field::Object,
        Some((_, Value::Scalar(_))) | None => Field::Number,
    }
}

impl fmt::Display for UnsupportedConstruct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnsupportedConstruct::ProgramType(kind) => {
                write!(f, "programs of type {kind:?} do not run natively")
            }
            UnsupportedConstruct::Map(index) => {
                write!(f, "map {index} is not the one that the program declares")
            }
            UnsupportedConstruct::TailCalls(index) => {
                write!(
                    f,
                    "map {index} holds programs that native code cannot enter"
                )
            }
            UnsupportedConstruct::KernelObject(slot) => {
                write!(
                    f,
                    "slot {slot}: it uses an object of the kernel that is not there"
                )
            }
            UnsupportedConstruct::Arena(slot) => {
                write!(f, "slot {slot}: it makes a pointer into an arena")
            }
            UnsupportedConstruct::Reference(slot) => {
                write!(f, "slot {slot}: the reference has no address")
            }
            UnsupportedConstruct::HostFunctions => {
                f.write_str("the program was verified for other functions of a host")
            }
            UnsupportedConstruct::Signature(number) => {
                let helper = spec::helpers::helper(*number).map(|helper| helper.name);
                let kfunc = || KernelFunction::from_number(*number)?.name();
                let name = helper.or_else(kfunc).unwrap_or("a function of the host");
                write!(
                    f,
                    "{name}: the program was verified with another prototype than its function has"
                )
            }
            UnsupportedConstruct::Field(slot) => write!(
                f,
                "slot {slot}: the context or the socket has no such field here"
            ),
            UnsupportedConstruct::Speculation => f.write_str(
                "without CAP_PERFMON, programs need barriers against speculative execution, \
                 which native code has not",
            ),
            UnsupportedConstruct::Callback(slot) => write!(
                f,
                "slot {slot}: the function is called by timers of several kinds of values"
            ),
            UnsupportedConstruct::TooLong => f.write_str("the program has too long jumps"),
            UnsupportedConstruct::Malformed(malformed) => malformed.fmt(f),
        }
    }
}

impl std::error::Error for UnsupportedConstruct {}
