//! Linking, program by program.
//!
//! Linking stops at the first error. A report links all programs together and, if that
//! fails, each alone, so that every obstacle is reported.
//!
//! One link; if it fails, one more for each program, up to a budget of slots.

use std::collections::BTreeSet;
use std::sync::Arc;

use isa::ebpf::{Imm64, Insn, Size, decode};
use program::{InitialContents, MapDef};
use spec::maps::MapFlags;

use super::reach::{Known, Value, reached};
use crate::attach::AttachFault;
use crate::error::{Error, Problem};
use crate::externs::ExternFault;
use crate::linked::{LinkSession, LinkedProgram, UnloadableProgram};
use crate::object::Object;
use crate::programs::ProgramId;
use crate::reference::{Reference, Referent};
use crate::relocate::RelocationFault;
use spec::Kernel;

/// Maximum number of slots linked in total.
const MAX_SLOTS: usize = 1 << 28;

/// Result of linking all programs.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Reason why the programs cannot be linked together, if any.
    pub refusal: Option<Error>,
    /// True if the kernel lacks externs that are not weak: libbpf loads no program, and those
    /// linked here have them weak, as by
    /// [`make_undefined_symbols_weak`](crate::make_undefined_symbols_weak).
    pub weak_externs: bool,
    /// Result of each program, in order.
    pub programs: Vec<ProgramLinkReport>,
}

/// Result of linking one program.
#[derive(Clone, Debug)]
pub struct ProgramLinkReport {
    /// Program index.
    pub id: ProgramId,
    /// The outcome.
    pub outcome: LinkOutcome,
}

/// Outcome of linking a program.
#[derive(Clone, Debug)]
pub enum LinkOutcome {
    /// The program can be loaded.
    Linked(Box<LinkedProgram>),
    /// The program is linked and cannot be loaded.
    Unloadable(Box<UnloadableProgram>),
    /// The program cannot be linked.
    Refused(Error),
}

impl ProgramLinkReport {
    /// Reason why it cannot be linked or loaded.
    pub fn refusal(&self) -> Option<&Error> {
        match &self.outcome {
            LinkOutcome::Linked(_) => None,
            LinkOutcome::Unloadable(program) => Some(&program.error),
            LinkOutcome::Refused(error) => Some(error),
        }
    }

    /// True if the data of the kernel leave out what decides, so that the answer for that
    /// kernel is undecided.
    pub fn is_undecided(&self) -> bool {
        let fault = self.refusal().map(|error| error.problem());
        matches!(
            fault,
            Some(
                Problem::Attach(AttachFault::LeftOut { .. })
                    | Problem::Relocation(RelocationFault::LeftOut { .. })
                    | Problem::Extern(ExternFault::NoSymbols)
            )
        )
    }

    /// References to objects that the kernel lacks, of instructions that a run may reach where
    /// constants decide branches: the kernel refuses the program if they are reachable.
    pub fn missing(&self) -> impl Iterator<Item = &Reference> {
        let references = match &self.outcome {
            LinkOutcome::Linked(program) => &program.references[..],
            LinkOutcome::Unloadable(program) => &program.references,
            LinkOutcome::Refused(_) => &[],
        };
        let is_missing = |reference: &&Reference| {
            matches!(
                reference.to,
                Referent::MissingCore(_) | Referent::MissingKfunc(_) | Referent::MissingMap(_)
            )
        };
        let missing: Vec<&Reference> = references.iter().filter(is_missing).collect();
        let reached = match missing.is_empty() {
            true => Vec::new(),
            false => self.reached(),
        };
        let is_reached = move |reference: &&Reference| {
            let reached = reached.get(reference.slot as usize);
            reached.copied().unwrap_or(true)
        };
        missing.into_iter().filter(is_reached)
    }

    /// True for each slot that a run may reach.
    fn reached(&self) -> Vec<bool> {
        match &self.outcome {
            LinkOutcome::Linked(linked) => {
                let program = &linked.program;
                reached(&program.decode(), &FrozenMaps(program.maps()))
            }
            LinkOutcome::Unloadable(program) => reached(&decode(&program.insns), &FrozenMaps(&[])),
            LinkOutcome::Refused(_) => Vec::new(),
        }
    }
}

/// Values of maps that are read-only once the program is loaded: constants and the
/// configuration.
struct FrozenMaps<'p>(&'p [Arc<MapDef>]);

impl Known for FrozenMaps<'_> {
    fn written(&self, _: usize, insn: &Insn) -> Option<Value> {
        let Insn::LoadImm64 { imm, .. } = *insn else {
            return None;
        };
        match imm {
            Imm64::Value(_) => None,
            Imm64::MapIndexValue { index, offset } => Some(Value::Place {
                index: index as u32,
                offset: offset as u32,
            }),
            _ => Some(Value::Unknown),
        }
    }

    fn at(&self, index: u32, offset: u32, size: Size) -> Option<u64> {
        let map = self.0.get(index as usize)?;
        let InitialContents::Value { image, frozen } = &map.contents else {
            return None;
        };
        let is_constant = *frozen && map.params.flags.has(MapFlags::RDONLY_PROG);
        let end = offset.checked_add(size.bytes())?;
        if !is_constant || end > image.size() {
            return None;
        }
        let mut bytes = [0; 8];
        image.read(offset, &mut bytes[..size.bytes() as usize]);
        Some(u64::from_le_bytes(bytes))
    }

    fn has_functions(&self) -> bool {
        true
    }
}

impl Object<'_> {
    /// Links these programs for a kernel, whatever their autoload.
    pub fn try_link(&self, chosen: &[ProgramId], kernel: &Kernel) -> LinkReport {
        let refused = |id: &ProgramId, refusal: &Error| ProgramLinkReport {
            id: *id,
            outcome: LinkOutcome::Refused(refusal.clone()),
        };
        let mut lacking = None;
        let session = self.link_session(kernel).or_else(|refusal| {
            if !matches!(refusal.problem(), Problem::Extern(_)) {
                return Err(refusal);
            }
            lacking = Some(refusal);
            LinkSession::with_externs(self, kernel, &self.externs().weakened())
        });
        let weak_externs = lacking.is_some();
        let mut session = match session {
            Ok(session) => session,
            Err(refusal) => {
                return LinkReport {
                    programs: chosen.iter().map(|id| refused(id, &refusal)).collect(),
                    refusal: Some(refusal),
                    weak_externs,
                };
            }
        };
        let refusal = match link_only(&mut session, chosen) {
            Ok(programs) => {
                return LinkReport {
                    refusal: lacking,
                    weak_externs,
                    programs,
                };
            }
            Err(refusal) => refusal,
        };
        let slots: usize = self.program_defs().iter().map(|(_, code)| code.len()).sum();
        let few = MAX_SLOTS / slots.max(1);
        let mut programs = Vec::with_capacity(chosen.len());
        for (tried, id) in chosen.iter().enumerate() {
            let alone = match tried < few {
                true => link_only(&mut session, &[*id]),
                false => Err(refusal.clone()),
            };
            match alone {
                Ok(linked) => programs.extend(linked),
                Err(refusal) => programs.push(refused(id, &refusal)),
            }
        }
        LinkReport {
            refusal: lacking.or(Some(refusal)),
            weak_externs,
            programs,
        }
    }

    /// Programs with autoload.
    pub fn autoloaded(&self) -> impl Iterator<Item = ProgramId> + '_ {
        let programs = self.programs().filter(|(_, code)| code.autoload);
        programs.map(|(id, _)| id)
    }
}

/// Links these programs, and those that are loaded with struct_ops.
fn link_only(
    session: &mut LinkSession<'_, '_>,
    chosen: &[ProgramId],
) -> Result<Vec<ProgramLinkReport>, Error> {
    let chosen: BTreeSet<ProgramId> = chosen.iter().copied().collect();
    let is_loaded = |id: &ProgramId| session.autoload(*id) != Some(false);
    let mut loaded: BTreeSet<ProgramId> = chosen.iter().copied().filter(is_loaded).collect();
    loaded.extend(session.struct_ops_programs());
    let loaded: Vec<ProgramId> = loaded.into_iter().collect();
    let linked = session.link(&loaded)?;
    let programs = linked
        .programs
        .into_iter()
        .map(|program| ProgramLinkReport {
            id: program.id,
            outcome: LinkOutcome::Linked(Box::new(program)),
        });
    let unloadable = linked
        .unloadable
        .into_iter()
        .map(|program| ProgramLinkReport {
            id: program.id,
            outcome: LinkOutcome::Unloadable(Box::new(program)),
        });
    let all = programs.chain(unloadable);
    let mut all: Vec<ProgramLinkReport> = all.filter(|it| chosen.contains(&it.id)).collect();
    all.sort_by_key(|link_report| link_report.id);
    Ok(all)
}
