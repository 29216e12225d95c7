//! What linking for a kernel comes to, program by program.
//!
//! A loader gives up with the first program that fails. An overview goes on: where
//! the object can't be linked as a whole, each program is linked alone, so that all
//! that are in the way are named.
//!
//! Cost: one link; where that fails, one more for each program.

use program::{Program, Reference, Referent};

use crate::error::Error;
use crate::linked::Linked;
use crate::object::Object;
use crate::programs::ProgramId;
use crate::target::Target;

/// What linking comes to.
#[derive(Clone, Debug)]
pub struct Trial {
    /// Why the object as a whole can't be linked, if it can't.
    pub refusal: Option<Error>,
    /// The programs that are to be loaded, in the object's order.
    pub programs: Vec<ProgramTrial>,
}

/// What linking a program comes to.
#[derive(Clone, Debug)]
pub struct ProgramTrial {
    /// Which.
    pub id: ProgramId,
    /// Why it can't be linked or loaded, if it can't.
    pub refusal: Option<Error>,
    /// What it refers to that the kernel lacks: a kernel refuses the program if it
    /// gets there.
    pub missing: Vec<Reference>,
}

impl Object<'_> {
    /// Links for a kernel what is to be loaded, and says how that went.
    pub fn try_link(&mut self, target: &Target<'_>) -> Trial {
        let refusal = match self.link(target) {
            Ok(linked) => {
                return Trial {
                    refusal: None,
                    programs: of_linked(&linked),
                };
            }
            Err(refusal) => refusal,
        };
        let chosen: Vec<ProgramId> = self
            .programs()
            .filter(|(_, code)| code.autoload)
            .map(|(id, _)| id)
            .collect();
        let mut programs = Vec::with_capacity(chosen.len());
        for &id in &chosen {
            self.choose(&[id]);
            match self.link(target) {
                Ok(linked) => programs.extend(of_linked(&linked)),
                Err(refusal) => programs.push(ProgramTrial {
                    id,
                    refusal: Some(refusal),
                    missing: Vec::new(),
                }),
            }
        }
        self.choose(&chosen);
        Trial {
            refusal: Some(refusal),
            programs,
        }
    }

    fn choose(&mut self, chosen: &[ProgramId]) {
        for id in 0..self.codes.len() as u32 {
            let id = ProgramId(id);
            if let Some(code) = self.codes.get_mut(id) {
                code.autoload = chosen.contains(&id);
            }
        }
    }
}

fn of_linked(linked: &Linked<'_>) -> Vec<ProgramTrial> {
    let refusal = |id: ProgramId| {
        let refused = linked.refused.iter().find(|(refused, _)| *refused == id);
        refused.map(|(_, error)| error.clone())
    };
    let trial = |(id, program): &(ProgramId, Program)| {
        let references = program.references.iter();
        let missing = references.filter(|reference| is_missing(reference.to));
        ProgramTrial {
            id: *id,
            refusal: refusal(*id),
            missing: missing.copied().collect(),
        }
    };
    linked.programs.iter().map(trial).collect()
}

fn is_missing(to: Referent) -> bool {
    matches!(
        to,
        Referent::MissingCore(_) | Referent::MissingKfunc(_) | Referent::MissingMap(_)
    )
}
