//! What linking for a kernel comes to, program by program.
//!
//! A loader gives up with the first program that fails. An overview goes on: where
//! the programs can't be linked together, each is linked alone, so that all that is
//! in the way is named.
//!
//! Cost: one link; where that fails, one more for each program, as long as that is
//! no more than a few hundred million slots in all.

use std::collections::BTreeSet;

use crate::attach::AttachFault;
use crate::error::{Error, Problem};
use crate::linked::{LinkedProgram, UnloadableProgram};
use crate::object::Object;
use crate::programs::ProgramId;
use crate::reference::{Reference, Referent};
use spec::Kernel;

/// Slots that are linked in all before no more programs are tried.
const MOST: usize = 1 << 28;

/// What linking comes to.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Why the programs can't be linked together, if they can't.
    pub refusal: Option<Error>,
    /// What came of each, in the order in which they were to be linked.
    pub programs: Vec<ProgramTrial>,
}

/// What linking a program comes to.
#[derive(Clone, Debug)]
pub struct ProgramTrial {
    /// Which.
    pub id: ProgramId,
    /// The outcome.
    pub outcome: TrialOutcome,
}

/// Outcome of linking a program.
#[derive(Clone, Debug)]
pub enum TrialOutcome {
    /// It can be loaded.
    Linked(Box<LinkedProgram>),
    /// It was linked and cannot be loaded.
    Unloadable(Box<UnloadableProgram>),
    /// It cannot be linked.
    Refused(Error),
}

impl ProgramTrial {
    /// Why it cannot be linked or loaded.
    pub fn refusal(&self) -> Option<&Error> {
        match &self.outcome {
            TrialOutcome::Linked(_) => None,
            TrialOutcome::Unloadable(program) => Some(&program.error),
            TrialOutcome::Refused(error) => Some(error),
        }
    }

    /// True if the built-in description of a kernel leaves out what the program attaches
    /// to, so that it is open whether that kernel can load it.
    pub fn is_undecided(&self) -> bool {
        let fault = self.refusal().map(|error| error.problem());
        matches!(fault, Some(Problem::Attach(AttachFault::NotBuiltIn { .. })))
    }

    /// Relocations that name what the kernel lacks: the kernel refuses the program if
    /// it can reach them.
    pub fn missing(&self) -> impl Iterator<Item = &Reference> {
        let references = match &self.outcome {
            TrialOutcome::Linked(program) => &program.references[..],
            TrialOutcome::Unloadable(program) => &program.references,
            TrialOutcome::Refused(_) => &[],
        };
        references.iter().filter(|reference| {
            matches!(
                reference.to,
                Referent::MissingCore(_) | Referent::MissingKfunc(_) | Referent::MissingMap(_)
            )
        })
    }
}

impl Object<'_> {
    /// Links these programs for a kernel, and says how that went. What is to be
    /// loaded is as before when it returns.
    pub fn try_link(&mut self, chosen: &[ProgramId], kernel: &Kernel) -> Trial {
        let before: Vec<ProgramId> = self.autoloaded().collect();
        let trial = self.link_chosen(chosen, kernel);
        self.autoload_only(&before);
        trial
    }

    /// The programs that are to be loaded.
    pub fn autoloaded(&self) -> impl Iterator<Item = ProgramId> + '_ {
        let programs = self.programs().filter(|(_, code)| code.autoload);
        programs.map(|(id, _)| id)
    }

    fn link_chosen(&mut self, chosen: &[ProgramId], kernel: &Kernel) -> Trial {
        let refusal = match self.link_only(chosen, kernel) {
            Ok(programs) => {
                return Trial {
                    refusal: None,
                    programs,
                };
            }
            Err(refusal) => refusal,
        };
        let slots: usize = self.codes().iter().map(|(_, code)| code.len()).sum();
        let few = MOST / slots.max(1);
        let mut programs = Vec::with_capacity(chosen.len());
        for (tried, &id) in chosen.iter().enumerate() {
            let alone = match tried < few {
                true => self.link_only(&[id], kernel),
                false => Err(refusal.clone()),
            };
            match alone {
                Ok(linked) => programs.extend(linked),
                Err(refusal) => programs.push(ProgramTrial {
                    id,
                    outcome: TrialOutcome::Refused(refusal),
                }),
            }
        }
        Trial {
            refusal: Some(refusal),
            programs,
        }
    }

    fn link_only(
        &mut self,
        chosen: &[ProgramId],
        kernel: &Kernel,
    ) -> Result<Vec<ProgramTrial>, Error> {
        let wanted = self.autoload_only(chosen);
        let linked = self.link(kernel)?;
        let programs = linked.programs.into_iter().map(|program| ProgramTrial {
            id: program.id,
            outcome: TrialOutcome::Linked(Box::new(program)),
        });
        let unloadable = linked.unloadable.into_iter().map(|program| ProgramTrial {
            id: program.id,
            outcome: TrialOutcome::Unloadable(Box::new(program)),
        });
        let all = programs.chain(unloadable);
        let mut all: Vec<ProgramTrial> = all.filter(|it| wanted.contains(&it.id)).collect();
        all.sort_by_key(|trial| trial.id);
        Ok(all)
    }

    fn autoload_only(&mut self, chosen: &[ProgramId]) -> BTreeSet<ProgramId> {
        let wanted: BTreeSet<ProgramId> = chosen.iter().copied().collect();
        for id in (0..self.codes.len() as u32).map(ProgramId) {
            if let Some(code) = self.codes.get_mut(id).filter(|code| !code.is_function) {
                code.autoload = wanted.contains(&id);
            }
        }
        wanted
    }
}
