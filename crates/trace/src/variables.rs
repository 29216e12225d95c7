//! The variables of a frame: which have a value that they did not have before.

use std::collections::BTreeSet;
use std::rc::Rc;

use btf::{Btf, Kind, Shape, TypeId};
use interp::checked::Memory;
use isa::ebpf::{AluOp, Insn, Operand, Reg};
use program::{Program, Subprog};

use crate::dwarf::{Debug, Found, FrameState, Function};
use crate::run::{SeenVariable, UnseenVariable};

/// Most characters of a value.
const LONGEST: usize = 200;

/// The variables of a frame.
pub(crate) struct Watch<'p> {
    debug: Option<(&'p Debug, &'p Function)>,
    /// First slot of the function.
    start: u32,
    /// The registers when the function was entered.
    entry: [u64; Reg::COUNT],
    /// Bytes of the stack that the function uses.
    stack: u64,
    /// Numbers of the lines that were executed.
    lines: BTreeSet<u32>,
    /// The last value of each variable.
    shown: Vec<Option<String>>,
    /// Why a variable in scope had none.
    missing: Vec<Option<&'static str>>,
}

impl<'p> Watch<'p> {
    pub(crate) fn new(
        debug: Option<&'p Debug>,
        (program, subprog): (&Program, Option<&Subprog>),
        entry: [u64; Reg::COUNT],
    ) -> Watch<'p> {
        let start = subprog.map_or(0, |subprog| subprog.start);
        let section = if start == 0 {
            program.section()
        } else {
            ".text"
        };
        let debug = debug.zip(subprog).and_then(|(debug, subprog)| {
            let function = debug.function(&subprog.name, section)?;
            Some((debug, function))
        });
        let count = debug.map_or(0, |(_, function)| function.variables.len());
        Watch {
            debug,
            start,
            entry,
            stack: stack_bytes(program, start),
            lines: BTreeSet::new(),
            shown: vec![None; count],
            missing: vec![None; count],
        }
    }

    /// Notes that a line is executed.
    pub(crate) fn note_line(&mut self, number: u32) {
        self.lines.insert(number);
    }

    /// Names of the functions that a slot is inlined from.
    pub(crate) fn inlined_at(&self, slot: u32) -> Vec<String> {
        let (_, function) = self.debug.unzip();
        function.map_or_else(Vec::new, |function| {
            function.inlined_at(slot.saturating_sub(self.start))
        })
    }

    /// The variables whose values are new in front of a slot.
    pub(crate) fn changed(
        &mut self,
        slot: u32,
        registers: &[u64; Reg::COUNT],
        memory: &Memory<'_>,
        describe: &dyn Fn(u64) -> Option<String>,
    ) -> Vec<SeenVariable> {
        let Some((debug, function)) = self.debug else {
            return Vec::new();
        };
        let slot = slot.saturating_sub(self.start);
        let state = FrameState {
            registers,
            entry: &self.entry,
            stack: self.stack,
            read: &|address, into| memory.peek(address, into),
        };
        let mut changed = Vec::new();
        for (index, variable) in function.variables.iter().enumerate() {
            if !function.is_in_scope(variable, slot) {
                continue;
            }
            let bytes = match debug.find(function, variable, slot, &state) {
                Found::Bytes { bytes, .. } => bytes,
                Found::Missing(why) => {
                    self.missing[index] = Some(why);
                    continue;
                }
            };
            let pointer = (debug.is_pointer(variable))
                .then(|| <[u8; 8]>::try_from(&bytes[..]).ok().map(u64::from_le_bytes));
            let value = match pointer.flatten() {
                Some(0) => "NULL".to_owned(),
                Some(address) => describe(address).unwrap_or_else(|| format!("{address:#x}")),
                None => debug.show(variable, &bytes),
            };
            let value = match value.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", &value[..end]),
                None => value,
            };
            if self.shown[index].as_ref() != Some(&value) {
                changed.push(SeenVariable {
                    name: variable.name.clone(),
                    kind: debug.type_name(variable),
                    value: value.clone(),
                });
                self.shown[index] = Some(value);
            }
        }
        changed
    }

    /// The variable that a register is at a slot; true if it is a pointer.
    pub(crate) fn name_of(
        &self,
        register: Reg,
        slot: u32,
        registers: &[u64; Reg::COUNT],
        memory: &Memory<'_>,
    ) -> Option<(Rc<str>, bool)> {
        let (debug, function) = self.debug?;
        let slot = slot.saturating_sub(self.start);
        let state = FrameState {
            registers,
            entry: &self.entry,
            stack: self.stack,
            read: &|address, into| memory.peek(address, into),
        };
        let mut variables = function.variables.iter();
        let found = variables.rfind(|variable| {
            let found = || debug.find(function, variable, slot, &state);
            let is_it = |found| matches!(found, Found::Bytes { register: Some(of), .. } if of == register.number());
            function.is_in_scope(variable, slot) && is_it(found())
        });
        found.map(|variable| (variable.name.as_str().into(), debug.is_pointer(variable)))
    }

    /// The variables that never had a value, where the path came by.
    pub(crate) fn unseen(&self, name: &str) -> Vec<UnseenVariable> {
        let Some((_, function)) = self.debug else {
            return Vec::new();
        };
        let variables = function
            .variables
            .iter()
            .zip(&self.shown)
            .zip(&self.missing);
        let unseen = variables.filter_map(|((variable, shown), missing)| {
            // One whose line was not reached has no value yet.
            let is_reached = variable.line.is_none_or(|line| self.lines.contains(&line));
            let is_told = shown.is_none() && (is_reached || Function::is_gone(variable));
            let why = (*missing).filter(|_| is_told)?;
            let function = variable.within.clone().unwrap_or_else(|| name.to_owned());
            Some(UnseenVariable {
                function,
                name: variable.name.clone(),
                why: why.to_owned(),
            })
        });
        unseen.collect()
    }

    /// The arguments of the function by BTF, for objects without debug information.
    pub(crate) fn arguments(
        &self,
        program: &Program,
        describe: &dyn Fn(u64) -> Option<String>,
    ) -> Vec<SeenVariable> {
        let Some(types) = program.btf().filter(|_| self.debug.is_none()) else {
            return Vec::new();
        };
        let mut arguments = Vec::new();
        for (index, (name, ty)) in parameters(program, self.start)
            .into_iter()
            .enumerate()
            .take(5)
        {
            let number = self.entry[index + 1];
            let value = describe(number).unwrap_or_else(|| {
                let size = types.size_of(ty).unwrap_or(8).min(8) as usize;
                let unused = 64 - 8 * size as u32;
                format!("{}", (number << unused) as i64 >> unused)
            });
            let kind = type_name(types, ty);
            arguments.push(SeenVariable { name, kind, value });
        }
        arguments
    }
}

/// Bytes of the stack that the function at a slot uses, as LLVM rounds them.
fn stack_bytes(program: &Program, start: u32) -> u64 {
    let insns = program.decode();
    let mut later = program.subprogs().iter().map(|subprog| subprog.start);
    let end = later
        .find(|slot| *slot > start)
        .map_or(insns.len(), |slot| slot as usize);
    let insns = insns.get(start as usize..end).unwrap_or_default();
    let mut lowest = 0;
    let mut copies = [false; Reg::COUNT];
    copies[Reg::R10.index()] = true;
    for insn in insns {
        let offset = match *insn {
            Insn::Load { base, off, .. }
            | Insn::Store { base, off, .. }
            | Insn::Atomic { base, off, .. }
                if base == Reg::R10 =>
            {
                i32::from(off)
            }
            Insn::Alu {
                op: AluOp::Add,
                dst,
                src: Operand::Imm(imm),
                ..
            } if copies[dst.index()] => imm,
            _ => 0,
        };
        lowest = lowest.min(offset);
        if let Insn::Alu { op, dst, src, .. } = *insn {
            copies[dst.index()] = op == AluOp::Mov && src == Operand::Reg(Reg::R10);
        }
    }
    u64::from(lowest.unsigned_abs()).next_multiple_of(8)
}

/// Names and types of the parameters of the function at a slot.
pub(crate) fn parameters(program: &Program, start: u32) -> Vec<(String, TypeId)> {
    let Some(types) = program.btf() else {
        return Vec::new();
    };
    let mut functions = program.func_info().iter();
    let found = functions.find(|function| function.insn == start);
    let proto = found.and_then(|function| match types.get(function.type_id)?.shape() {
        Shape::Func(function) => match types.get(function.proto)?.shape() {
            Shape::Proto(proto) => Some(proto),
            _ => None,
        },
        _ => None,
    });
    let parameters = proto.into_iter().flat_map(|proto| proto.params());
    parameters
        .map(|parameter| (types.string(parameter.name).to_string(), parameter.ty))
        .collect()
}

/// A type in C.
pub(crate) fn type_name(types: &Btf<'_>, ty: TypeId) -> String {
    let Some(found) = types.get(ty).filter(|_| !ty.is_void()) else {
        return "void".to_owned();
    };
    let name = found.name();
    match (found.kind(), found.shape()) {
        (_, Shape::Ptr(of)) => {
            let of = type_name(types, of);
            match of.ends_with('*') {
                true => format!("{of}*"),
                false => format!("{of} *"),
            }
        }
        (_, Shape::Array(array)) => format!("{}[{}]", type_name(types, array.element), array.count),
        (Kind::Struct, _) => format!("struct {name}"),
        (Kind::Union, _) => format!("union {name}"),
        (Kind::Enum | Kind::Enum64, _) => format!("enum {name}"),
        (_, Shape::Const(of)) => format!("const {}", type_name(types, of)),
        (_, Shape::Volatile(of)) => format!("volatile {}", type_name(types, of)),
        (_, Shape::Restrict(of) | Shape::TypeTag(of)) => type_name(types, of),
        _ => name.to_string(),
    }
}
