//! Programs and maps as a loader hands them to a kernel.

use std::sync::Arc;

use program::{AttachPoint, Program, PseudoLoad, Subprogram};

use crate::attach::attachment;
use crate::error::Error;
use crate::externs::ResolvedExterns;
use crate::maps::{Bindings, NewMap};
use crate::object::Object;
use crate::programs::{Code, Codes, ProgramId};
use crate::relocate::assemble::{Assembler, Assembly};
use crate::relocate::callback::Callbacks;
use crate::relocate::core::Copies;
use crate::relocate::data::Data;
pub use crate::relocate::data::JumpTable;
use crate::relocate::info::Info;
use crate::relocate::patches::Goal;
use crate::target::Target;

/// An object that was linked for a kernel.
#[derive(Clone, Debug)]
pub struct Linked<'a> {
    /// The programs that are to be loaded, in the object's order.
    pub programs: Vec<(ProgramId, Program)>,
    /// Programs that were linked and can't be loaded, and why: what they attach to
    /// is missing, say. They are among the programs too.
    pub refused: Vec<(ProgramId, Error)>,
    /// The maps as the kernel is asked for them, by number.
    pub maps: Vec<NewMap<'a>>,
    /// Tables of places to jump to: maps behind those of the object.
    pub jump_tables: Vec<JumpTable>,
    /// What the externs turned out to be.
    pub externs: ResolvedExterns,
}

/// Links everything that is to be loaded, in libbpf's order.
pub(crate) fn link<'a>(object: &Object<'a>, target: &Target<'_>) -> Result<Linked<'a>, Error> {
    let (codes, maps) = (&object.codes, &object.maps);
    let externs = match &object.types {
        Some(types) => object
            .externs
            .resolve(types, target, object.config.as_deref())?,
        None => ResolvedExterns::default(),
    };
    let bindings = maps.bind_to_kernel(object.types.as_ref(), codes, target)?;
    let loaded = Loaded::of(codes, &bindings);
    let mut code = Copies::of(codes, &loaded)?;
    let info = match (&object.types, &object.types_of_code) {
        (Some(types), Some(ext)) => {
            code.relocate(&object.elf, codes, &loaded, (types, ext), target)?;
            Info::of(&object.elf, types, ext)
        }
        _ => Info::default(),
    };
    mark_addresses(object, &loaded, &mut code);
    let callbacks = object.types.as_ref().map(Callbacks::of).unwrap_or_default();
    let mut assembler = Assembler::new(
        codes,
        &mut code,
        &object.patches,
        &info,
        object.sections.text,
    );
    let mut assemblies = Vec::new();
    for (id, _) in codes.programs().filter(|(id, _)| loaded.has(*id)) {
        let callback = || callbacks.of_program(codes, id);
        assemblies.push((id, assembler.assemble(id, callback)?));
    }
    let mut data = Data {
        elf: &object.elf,
        sections: &object.sections,
        codes,
        patches: &object.patches,
        maps,
        externs: &object.externs,
        resolved: &externs,
        arena_offset: maps.arena_offset(target) as u32,
        jump_tables: Vec::new(),
    };
    for (id, assembly) in &mut assemblies {
        data.patch(*id, assembly)?;
    }
    let jump_tables = data.jump_tables;
    let mut finishing = Finishing {
        object,
        target,
        bindings: &bindings,
        license: object.license.as_str().into(),
        refused: Vec::new(),
    };
    let programs = assemblies.into_iter();
    let programs = programs
        .map(|(id, made)| (id, finishing.program(id, made)))
        .collect();
    let refused = finishing.refused;
    let maps = maps.created(object.types.is_some(), target, &externs, &bindings);
    Ok(Linked {
        programs,
        refused,
        maps,
        jump_tables,
        externs,
    })
}

/// Which programs and functions are loaded.
pub(crate) struct Loaded(Vec<bool>);

impl Loaded {
    /// A function for tables of the kernel goes with the tables that have it;
    /// everything else is as the user said.
    fn of(codes: &Codes<'_>, bindings: &Bindings) -> Loaded {
        let is_loaded =
            |(id, code): (ProgramId, &Code<'_>)| bindings.autoload(id).unwrap_or(code.autoload);
        Loaded(codes.iter().map(is_loaded).collect())
    }

    pub(crate) fn has(&self, id: ProgramId) -> bool {
        self.0
            .get(id.0 as usize)
            .is_some_and(|is_loaded| *is_loaded)
    }
}

/// Loads of addresses of functions are marked as such, so that the assembler finds
/// them without a look at every load's relocation.
fn mark_addresses(object: &Object<'_>, loaded: &Loaded, code: &mut Copies) {
    for (id, _) in object.codes.iter().filter(|(id, _)| loaded.has(*id)) {
        for patch in object.patches.of(id) {
            if let Goal::Address { .. } = patch.goal {
                let slot = &mut code.slots_mut(id)[patch.slot as usize];
                slot.regs = slot.dst() | (PseudoLoad::Function as u8) << 4;
            }
        }
    }
}

/// From instructions to programs.
struct Finishing<'o, 'a> {
    object: &'o Object<'a>,
    target: &'o Target<'o>,
    bindings: &'o Bindings,
    license: Arc<str>,
    refused: Vec<(ProgramId, Error)>,
}

impl Finishing<'_, '_> {
    fn program(&mut self, id: ProgramId, made: Assembly) -> Program {
        let codes = &self.object.codes;
        let mut program = Program {
            slots: made.slots,
            references: made.references,
            functions: made.functions.unwrap_or_default(),
            lines: made.lines.unwrap_or_default(),
            subprograms: Vec::with_capacity(made.pieces.len()),
            license: self.license.clone(),
            kernel_version: self.object.kernel_version.unwrap_or(self.target.version),
            ..Program::default()
        };
        for piece in made.pieces {
            let name = codes
                .get(piece.id)
                .map(|code| code.name)
                .unwrap_or_default();
            let (name, start) = (name.to_string(), piece.start);
            program.subprograms.push(Subprogram { name, start });
        }
        let Some(code) = codes.get(id) else {
            return program;
        };
        program.name = code.name.to_string();
        program.section = code.section_name.to_string();
        program.kind = code.kind;
        program.attach = code.attach;
        program.flags = code.flags.with(code.section_flags());
        let member = self.bindings.of(id).map(|binding| AttachPoint {
            id: binding.table,
            module: binding.module,
            member: Some(binding.member),
        });
        program.attach_point = member.or(code.attach_point);
        match attachment(code, program.attach_point, self.target) {
            Ok((attach, point)) => {
                program.attach = attach;
                program.attach_point = point;
            }
            Err(fault) => {
                let error = Error::from(fault)
                    .in_section(code.section_name)
                    .in_program(code.name);
                self.refused.push((id, error));
            }
        }
        program
    }
}
