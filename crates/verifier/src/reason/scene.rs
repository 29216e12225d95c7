//! The refused instruction with the path that led to it: what rules read.

use isa::ebpf::{Callee, Imm64, Insn, Operand, Reg};
use spec::helpers::HelperId;
use spec::registry::{HelperProto, Kfunc, KfuncFlags, SpecialKfunc};

use super::Ending;
use super::calls;
use super::describe;
use super::explanation::{Called, InsnPlace, Known, KnownValue, Note, NoteKind, Source};
use super::trace::Trace;
use super::values::{Branch, DefId, Holder, Values};
use crate::analysis::Analysis;
use crate::input::Input;
use crate::state::{BtfRef, RegState, TypeRef};
use crate::verdict::Refusal;

/// The refused instruction with the path that led to it.
pub(super) struct Scene<'a> {
    pub(super) ending: &'a Ending<'a>,
    pub(super) input: &'a Input<'a>,
    pub(super) analysis: &'a Analysis,
    pub(super) trace: &'a Trace,
    pub(super) refusal: &'a Refusal,
    pub(super) values: Values,
}

impl<'a> Scene<'a> {
    pub(super) fn new(ending: &'a Ending<'a>) -> Scene<'a> {
        Scene {
            ending,
            input: ending.input,
            analysis: ending.analysis,
            trace: &ending.trace,
            refusal: ending.refusal,
            values: Values::along(ending.input, &ending.trace),
        }
    }

    pub(super) fn program_name(&self) -> String {
        self.input.program.name().to_owned()
    }

    /// The step of the refused instruction; `None` if no path led to it.
    pub(super) fn last(&self) -> Option<usize> {
        let last = self.trace.len().checked_sub(1)?;
        let insn = self.trace.steps()[last].insn;
        (Some(insn) == self.refusal.insn).then_some(last)
    }

    /// The refused instruction.
    pub(super) fn insn(&self) -> Option<Insn> {
        let at = self.refusal.insn? as usize;
        self.input.insns.get(at).copied()
    }

    /// Number of the frame in which the refused instruction stands.
    pub(super) fn frame(&self) -> usize {
        let last = self.trace.steps().last();
        last.map_or(0, |step| step.frame.into())
    }

    /// A register before the refused instruction.
    pub(super) fn reg(&self, reg: Reg) -> Option<&RegState> {
        self.trace.reg(self.last()?, reg.index())
    }

    pub(super) fn value(&self, reg: &RegState) -> KnownValue {
        describe::value(self.input, self.frame(), reg)
    }

    pub(super) fn value_of(&self, reg: Reg) -> KnownValue {
        let reg = self.reg(reg);
        reg.map_or(KnownValue::Unwritten, |reg| self.value(reg))
    }

    /// The register that the check refused, as in `R3 !read_ok`.
    pub(super) fn named_register(&self) -> Option<Reg> {
        self.refusal.rejection.register()
    }

    /// The pointer of a load, store or atomic instruction, with offset and bytes.
    pub(super) fn access(&self) -> Option<isa::ebpf::Access> {
        self.insn()?.access()
    }

    /// The callee of a call instruction.
    pub(super) fn callee_at(&self, insn: u32) -> Option<Callee> {
        match self.input.insns.get(insn as usize)? {
            Insn::Call(callee) => Some(*callee),
            _ => None,
        }
    }

    /// What an instruction calls.
    pub(super) fn called(&self, insn: u32) -> Option<Called> {
        let callee = self.callee_at(insn)?;
        let kfunc = self.kfunc_at(insn);
        let name = match callee {
            Callee::Helper(number) => match spec::helpers::helper(number) {
                Some(helper) => helper.name.to_owned(),
                None => match self.input.program.absent_extern(number) {
                    Some(symbol) => symbol.name.clone(),
                    None => format!("helper {number}"),
                },
            },
            Callee::Kfunc { id, .. } => match kfunc {
                Some(kfunc) => kfunc.name.to_string(),
                None => { self.input.vmlinux }
                    .and_then(|types| types.get(btf::TypeId(id as u32)))
                    .filter(|ty| ty.kind() == btf::Kind::Func)
                    .map_or_else(
                        || format!("kfunc #{id}"),
                        |ty| ty.name().to_string_lossy().into_owned(),
                    ),
            },
            Callee::Local(off) => self.function_at(insn.wrapping_add_signed(off + 1)),
        };
        Some(Called {
            name,
            helper: HelperId::of_call(callee),
            kfunc: kfunc.and_then(|kfunc| kfunc.special),
            flags: kfunc.map_or_else(KfuncFlags::default, |kfunc| kfunc.flags),
        })
    }

    /// The module of the called kernel function, if it has a structure of this name of its own beside
    /// the kernel's.
    pub(super) fn module_with_own(&self, structure: &str) -> Option<&'a str> {
        let Callee::Kfunc { module, .. } = self.callee_at(self.refusal.insn?)? else {
            return None;
        };
        let index = u16::try_from(module).ok()?.checked_sub(1)?;
        let types = &self.input.modules.get(usize::from(index))?.btf;
        let mut named = types.find_all(btf::Kind::Struct, structure.as_bytes());
        let of_module = |id: btf::TypeId| TypeRef {
            btf: BtfRef::Module(index),
            id: id.0,
        };
        named.find_map(|ty| self.input.module_with_copy(of_module(ty.id())))
    }

    /// The kernel function that an instruction calls.
    pub(super) fn kfunc_at(&self, insn: u32) -> Option<&'a Kfunc> {
        let Callee::Kfunc { id, module } = self.callee_at(insn)? else {
            return None;
        };
        let id = u32::try_from(id).ok()?;
        match usize::try_from(module).ok()?.checked_sub(1) {
            None => self.input.registry.kfunc(id),
            Some(module) => {
                let module = self.input.modules.get(module)?;
                self.input.registry.kfunc_of_module(module, id)
            }
        }
    }

    /// True if an instruction calls this kernel function.
    pub(super) fn calls_kfunc(&self, insn: u32, kfunc: SpecialKfunc) -> bool {
        { self.kfunc_at(insn) }.is_some_and(|called| called.special == Some(kfunc))
    }

    /// The kernel function that the refused instruction calls.
    pub(super) fn kfunc(&self) -> Option<&'a Kfunc> {
        self.kfunc_at(self.refusal.insn?)
    }

    /// What the refused instruction calls.
    pub(super) fn callee(&self) -> Option<Called> {
        self.called(self.refusal.insn?)
    }

    /// The prototype of the helper that the refused instruction calls.
    pub(super) fn prototype(&self) -> Option<&'a HelperProto> {
        calls::prototype(self.input, self.callee_at(self.refusal.insn?)?)
    }

    /// Bytes that the refused call accesses through an argument, as far as they are known.
    pub(super) fn argument_bytes(&self, number: u8) -> Option<u32> {
        calls::argument_bytes(self.input, self.trace, self.last()?, number)
    }

    /// The name of the function that starts at or holds an instruction.
    pub(super) fn function_at(&self, insn: u32) -> String {
        if let Some(subprog) = self.input.program.subprog_at(insn)
            && !subprog.name.is_empty()
        {
            return subprog.name.to_string();
        }
        let index = self
            .analysis
            .subprogs
            .iter()
            .position(|subprog| (subprog.start..subprog.end).contains(&insn));
        match index.map(|index| (index, &self.analysis.subprogs[index].name)) {
            Some((_, name)) if !name.is_empty() => name.clone(),
            Some((index @ 1.., _)) => format!("func#{index}"),
            _ => String::new(),
        }
    }

    /// An instruction with its source line.
    pub(super) fn place(&self, insn: u32) -> InsnPlace {
        let program = self.input.program;
        let text = match self.input.insns.get(insn as usize) {
            Some(Insn::Call(_)) => format!("call {}", self.called(insn).unwrap_or_default()),
            Some(Insn::LoadImm64 { dst, imm }) => self.address_text(*dst, *imm),
            Some(insn) => insn.to_string(),
            None => String::new(),
        };
        let source = program.line_at(insn).and_then(|line| {
            let btf = program.btf()?;
            let string = |offset| btf.string(offset).to_string_lossy().into_owned();
            (line.line != 0).then(|| Source {
                file: string(line.file),
                line: line.line,
                column: line.column,
                text: string(line.text),
            })
        });
        InsnPlace {
            insn,
            text,
            function: self.function_at(insn),
            source,
        }
    }

    /// The text of a 64-bit immediate, with the name of the map or function.
    fn address_text(&self, dst: Reg, imm: Imm64) -> String {
        let map = |index: i32| {
            let map = self.input.program.maps().get(index as usize);
            map.map_or_else(|| format!("map {index}"), |map| map.name.to_string())
        };
        match imm {
            Imm64::MapFd { fd: index, .. } | Imm64::MapIndex { index, .. } => {
                format!("r{} = {} ll", dst.number(), map(index))
            }
            Imm64::MapValue { fd: index, offset } | Imm64::MapIndexValue { index, offset } => {
                format!("r{} = {} + {offset} ll", dst.number(), map(index))
            }
            imm => format!("{:#}", Insn::LoadImm64 { dst, imm }),
        }
    }

    pub(super) fn place_of_step(&self, step: usize) -> InsnPlace {
        self.place(self.trace.steps()[step].insn)
    }

    pub(super) fn failing_place(&self) -> Option<InsnPlace> {
        use crate::verdict::RefusalKind as Kind;
        let insn = self.refusal.insn?;
        // Before the walk, reasons without an instruction name the first.
        let is_of_program = match self.refusal.kind {
            Kind::Btf | Kind::AttachTarget | Kind::License | Kind::Limit => true,
            Kind::StackSize | Kind::CallDepth => insn == 0,
            _ => false,
        };
        (self.trace.len() > 0 || !is_of_program).then(|| self.place(insn))
    }

    pub(super) fn note(&self, step: usize, kind: NoteKind) -> Note {
        Note {
            place: self.place_of_step(step),
            step: Some(step),
            kind,
        }
    }

    /// State of the registers before the refused instruction.
    pub(super) fn known(&self, subjects: &[Reg]) -> Vec<Known> {
        let known = |&reg: &Reg| {
            Some(Known {
                holder: format!("r{}", reg.number()),
                value: self.value(self.reg(reg)?),
            })
        };
        subjects.iter().filter_map(known).collect()
    }

    /// The last step of an instruction.
    pub(super) fn step_of(&self, insn: u32) -> Option<usize> {
        self.trace
            .steps()
            .iter()
            .rposition(|step| step.insn == insn)
    }

    /// The definition that a register holds before the refused instruction.
    pub(super) fn def(&self, reg: Reg) -> DefId {
        self.values.reg(reg.index())
    }

    /// A holder before a step.
    pub(super) fn holder(&self, step: usize, holder: Holder) -> Option<&RegState> {
        match holder {
            Holder::Reg { frame, reg } => Some(&self.trace.frame(step, frame)?.regs[reg]),
            Holder::Slot { frame, spi } => {
                let slot = self.trace.frame(step, frame)?.stack.get(spi)?;
                slot.is_spilled().then_some(&slot.reg)
            }
        }
    }

    /// Value of a definition after its step.
    pub(super) fn defined(&self, id: DefId) -> Option<&RegState> {
        let def = self.values.defs.get(id)?;
        self.holder(def.from, def.holder)
    }

    /// The registers that a conditional jump compares.
    pub(super) fn compared(&self, branch: &Branch) -> Option<(Reg, Option<Reg>)> {
        let at = self.trace.steps()[branch.step].insn;
        match self.input.insns[at as usize] {
            Insn::Jump {
                dst,
                src: Operand::Reg(src),
                ..
            } => Some((dst, Some(src))),
            Insn::Jump { dst, .. } => Some((dst, None)),
            _ => None,
        }
    }

    /// The last step before `end` at which a holder's type changes, from a definition on.
    pub(super) fn type_change(&self, from: usize, end: usize, holder: Holder) -> Option<usize> {
        let changes = |&step: &usize| {
            let before = self.holder(step, holder);
            let after = self.holder(step + 1, holder);
            match (before, after) {
                (Some(before), Some(after)) => before.kind.base() != after.kind.base(),
                (Some(_), None) => matches!(holder, Holder::Slot { .. }),
                _ => false,
            }
        };
        (from..end).rev().find(changes)
    }
}

/// The context, by the kernel's types.
impl Scene<'_> {
    fn context_type(&self) -> Option<btf::Type<'_>> {
        let name = self.input.context.kind.context()?;
        self.input.vmlinux?.find(btf::Kind::Struct, name)
    }

    /// Bytes of the context.
    pub(super) fn context_size(&self) -> Option<u32> {
        let ty = self.context_type()?;
        ty.btf().size_of(ty.id())
    }

    /// The name of the context's field at an offset, with an index for arrays.
    pub(super) fn context_field(&self, off: i64) -> Option<String> {
        let ty = self.context_type()?;
        let at = u32::try_from(off).ok()?.checked_mul(8)?;
        let members = ty.as_composite()?;
        let btf = ty.btf();
        let member = (0..ty.count())
            .filter_map(|index| members.member(index))
            .filter(|member| member.bit_offset <= at)
            .max_by_key(|member| member.bit_offset)?;
        let size = btf.size_of(member.ty)?;
        let name = btf.string(member.name).to_string_lossy().into_owned();
        let into = (at - member.bit_offset) / 8;
        (into < size && !name.is_empty()).then_some(name)
    }
}
