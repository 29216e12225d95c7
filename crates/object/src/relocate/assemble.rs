//! Assembly of a program with the subprogs that it calls.
//!
//! The program's instructions come first. They are scanned in order; a call or address of
//! a function that is not yet part of the program appends the function, which is scanned
//! to its end first (depth-first preorder, as in libbpf). By the conventions of cilium/ebpf all
//! functions are appended first, breadth first and those of one function by name. Each program has
//! its own copy of every subprog.

use std::collections::BTreeSet;

use isa::ebpf::{PseudoCall, PseudoLoad, RawInsn};
use program::{FuncInfo, LineInfo};

use crate::error::Error;
use crate::programs::{ProgramDef, ProgramDefs, ProgramId};
use crate::reference::{Reference, Referent};
use crate::relocate::core::{Copied, Copies};
use crate::relocate::info::Info;
use crate::relocate::patches::{Goal, Patches, function_place};
use crate::relocate::{LARGEST, RelocationFault};
use crate::sections::Sections;
use spec::loader::SubprogOrder;

/// Functions in the program that is assembled.
#[derive(Debug)]
pub(crate) struct Placed {
    /// For each function: the assembly that it was last appended to, and its start there.
    last: Vec<(u32, u32)>,
    /// Number of the current assembly, from 1.
    assembly: u32,
}

impl Placed {
    /// Without an assembly, for an object of so many programs and functions.
    pub(crate) fn new(codes: usize) -> Placed {
        Placed {
            last: vec![(0, 0); codes],
            assembly: 0,
        }
    }
}

/// Assembler of the programs of an object; state of the current program.
pub(crate) struct Assembler<'o, 'a> {
    codes: &'o ProgramDefs<'a>,
    code: &'o mut Copies,
    patches: &'o Patches,
    info: &'o Info<'o>,
    sections: &'o Sections,
    order: SubprogOrder,
    placed: &'o mut Placed,
    /// Functions being scanned, with the next slot to scan.
    pending: Vec<(Piece, usize)>,
    /// Remaining budget of slots and records.
    room: usize,
}

/// A function in a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// Program or function of the object.
    pub(crate) id: ProgramId,
    /// First slot.
    pub(crate) start: u32,
}

/// A program during assembly.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) slots: Vec<RawInsn>,
    /// The main function first, then subprogs in the order of appending.
    pub(crate) pieces: Vec<Piece>,
    /// References of slots resolved so far.
    pub(crate) references: Vec<Reference>,
    /// func_info; `None` if that of the main function is missing.
    pub(crate) functions: Option<Vec<FuncInfo>>,
    /// line_info; `None` if that of the main function is missing.
    pub(crate) lines: Option<Vec<LineInfo>>,
    /// Error of the first call of a function that the loader does not find.
    pub(crate) unlinked: Option<Error>,
}

impl Assembly {
    /// Number of func_info and line_info records.
    fn records(&self) -> usize {
        let functions = self.functions.as_ref().map_or(0, Vec::len);
        functions + self.lines.as_ref().map_or(0, Vec::len)
    }
}

impl<'o, 'a> Assembler<'o, 'a> {
    /// Assembler of one object.
    pub(crate) fn new(
        (codes, sections): (&'o ProgramDefs<'a>, &'o Sections),
        code: &'o mut Copies,
        patches: &'o Patches,
        info: &'o Info<'o>,
        order: SubprogOrder,
        placed: &'o mut Placed,
    ) -> Assembler<'o, 'a> {
        Assembler {
            codes,
            code,
            patches,
            info,
            sections,
            order,
            placed,
            pending: Vec::new(),
            room: LARGEST,
        }
    }

    /// Assembles a program. `callback` resolves the exception callback, which is appended
    /// even if it is not called.
    pub(crate) fn assemble(
        &mut self,
        main: ProgramId,
        callback: impl FnOnce() -> Result<Option<ProgramId>, RelocationFault>,
    ) -> Result<Assembly, Error> {
        self.placed.assembly += 1;
        let is_called = self.codes.get(main).is_some_and(|code| code.is_called);
        let Copied { slots, mut applied } = self.code.take(main, is_called);
        let room = applied.len() + slots.len();
        applied.reserve_exact(self.patches.of(main).len());
        let mut made = Assembly {
            slots,
            pieces: Vec::new(),
            references: applied,
            functions: Some(Vec::new()),
            lines: Some(Vec::new()),
            unlinked: None,
        };
        self.enter(&mut made, main, Piece { id: main, start: 0 }, room)?;
        if self.order == SubprogOrder::BreadthFirst {
            self.append_all(&mut made, main)?;
        }
        self.read(&mut made, main)?;
        let name = self
            .codes
            .get(main)
            .map(|code| code.name)
            .unwrap_or_default();
        let callback = callback().map_err(|fault| Error::from(fault).in_program(name))?;
        if let Some(callback) = callback
            && self.place_of(callback).is_none()
        {
            self.append(&mut made, main, callback)?;
            self.read(&mut made, main)?;
        }
        Ok(made)
    }

    /// Appends all functions that a program reaches, breadth first.
    fn append_all(&mut self, made: &mut Assembly, main: ProgramId) -> Result<(), Error> {
        let mut at = 0;
        while let Some(&piece) = made.pieces.get(at) {
            for callee in self.callees_by_name(made, piece)? {
                if self.place_of(callee).is_none() {
                    self.append(made, main, callee)?;
                }
            }
            at += 1;
        }
        Ok(())
    }

    /// Functions that a function calls or takes the address of, by name.
    fn callees_by_name(&self, made: &Assembly, piece: Piece) -> Result<Vec<ProgramId>, Error> {
        let Some(code) = self.codes.get(piece.id) else {
            return Ok(Vec::new());
        };
        let mut found = BTreeSet::new();
        let slots = &made.slots[piece.start as usize..][..code.len()];
        for (slot, insn) in slots.iter().enumerate() {
            let callee = is_call(*insn).then(|| self.callee(piece.id, slot, *insn));
            let callee = callee.transpose().map_err(|fault| {
                let error = Error::from(fault).in_program(code.name);
                error.at(code.start + slot)
            })?;
            if let Some(callee) = callee.flatten() {
                let name = self.codes.get(callee).map(|code| code.name.as_bytes());
                found.insert((name, callee));
            }
        }
        Ok(found.into_iter().map(|(_, id)| id).collect())
    }

    /// First slot of a function in the current program, if it is part of it.
    fn place_of(&self, function: ProgramId) -> Option<u32> {
        let (assembly, place) = self.placed.last[function.0 as usize];
        (assembly == self.placed.assembly).then_some(place)
    }

    /// Appends a function; returns its first slot.
    fn append(
        &mut self,
        made: &mut Assembly,
        main: ProgramId,
        id: ProgramId,
    ) -> Result<u32, Error> {
        let start = made.slots.len() as u32;
        let Copied { slots, applied } = self.code.get(id);
        made.slots.extend_from_slice(slots);
        let moved = applied.iter().map(|applied| Reference {
            slot: start + applied.slot,
            to: applied.to,
        });
        made.references.extend(moved);
        let room = slots.len() + applied.len();
        self.enter(made, main, Piece { id, start }, room)?;
        Ok(start)
    }

    /// Enters an appended function; `room` is what its slots and references take from the
    /// budget.
    fn enter(
        &mut self,
        made: &mut Assembly,
        main: ProgramId,
        piece: Piece,
        room: usize,
    ) -> Result<(), Error> {
        let before = made.records();
        let Piece { id, start } = piece;
        made.pieces.push(piece);
        self.placed.last[id.0 as usize] = (self.placed.assembly, start);
        self.pending.push((piece, 0));
        let Some(code) = self.codes.get(id) else {
            return Ok(());
        };
        // A program may lack func_info and line_info, and not have them for some
        // functions only.
        let missing = |fault: RelocationFault| Err(Error::from(fault).in_program(code.name));
        if let Some(functions) = &mut made.functions
            && self.info.add_functions(code, start, functions).is_none()
        {
            if id != main {
                return missing(RelocationFault::MissingType);
            }
            made.functions = None;
        }
        if let Some(lines) = &mut made.lines
            && self.info.add_lines(code, start, lines).is_none()
        {
            if id != main {
                return missing(RelocationFault::MissingLines);
            }
            made.lines = None;
        }
        let records = made.records().saturating_sub(before);
        let added = room + self.patches.of(id).len() + records;
        let room = self.room.checked_sub(added);
        self.room = room.ok_or(RelocationFault::TooLarge { limit: LARGEST })?;
        Ok(())
    }

    /// Scans pending functions and those that they append.
    fn read(&mut self, made: &mut Assembly, main: ProgramId) -> Result<(), Error> {
        while let Some((piece, from)) = self.pending.pop() {
            let len = self.codes.get(piece.id).map_or(0, ProgramDef::len);
            let own = piece.start as usize..piece.start as usize + len;
            let calls = made.slots[own].iter().enumerate().skip(from);
            let next = calls
                .map(|(slot, insn)| (slot, *insn))
                .find(|(_, insn)| is_call(*insn));
            let Some((slot, insn)) = next else {
                continue;
            };
            let callee = self.callee(piece.id, slot, insn).map_err(|fault| {
                let code = self.codes.get(piece.id);
                let (name, start) =
                    code.map_or_else(Default::default, |code| (code.name, code.start));
                Error::from(fault).in_program(name).at(start + slot)
            })?;
            self.pending.push((piece, slot + 1));
            let Some(callee) = callee else {
                continue;
            };
            let start = match self.place_of(callee) {
                Some(start) => start,
                None => self.append(made, main, callee)?,
            };
            let at = piece.start + slot as u32;
            made.slots[at as usize].imm = start.wrapping_sub(at).wrapping_sub(1) as i32;
            let to = match insn.is_call() {
                true => Referent::Call { start },
                false => Referent::FunctionAddress { start },
            };
            made.references.push(Reference { slot: at, to });
        }
        Ok(())
    }

    /// Function that an instruction calls or takes the address of; `None` for a kfunc.
    fn callee(
        &self,
        id: ProgramId,
        slot: usize,
        insn: RawInsn,
    ) -> Result<Option<ProgramId>, RelocationFault> {
        let patches = self.patches.of(id);
        let at = patches.partition_point(|patch| (patch.slot as usize) < slot);
        let patch = patches.get(at).filter(|patch| patch.slot as usize == slot);
        let goal = patch.map(|patch| patch.goal);
        match goal {
            Some(Goal::ExternCall(_) | Goal::Unlinked(_)) => return Ok(None),
            None if !insn.is_call() => return Err(RelocationFault::MissingAddress),
            _ => {}
        }
        let code = self.codes.get(id);
        let start = code.map_or(0, |code| code.start);
        let own = code.and_then(|code| self.sections.called_from(code.section));
        let (section, target) = function_place(goal, own, start + slot, insn.imm)
            .ok_or(RelocationFault::UnexpectedReference)?;
        let callee = section
            .zip(usize::try_from(target).ok())
            .and_then(|(section, slot)| self.codes.at(section, slot));
        Ok(Some(callee.ok_or(RelocationFault::NoFunction)?))
    }
}

/// True for a call of a subprog and for a load of the address of one.
fn is_call(insn: RawInsn) -> bool {
    is_local_call(insn) || insn.pseudo_load() == Some(PseudoLoad::Func)
}

/// True for a call of a subprog.
pub(crate) fn is_local_call(insn: RawInsn) -> bool {
    insn.is_call() && insn.regs == PseudoCall::Local.number() << 4 && insn.off == 0
}
