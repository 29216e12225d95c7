//! All relocations of one object against one target.
//!
//! What was found out is kept: the candidates of each type of the object, and the
//! answer to each relocation. Candidates only become fewer, so an answer holds as
//! long as its type has as many as when it was given.

use std::collections::HashMap;

use super::compatible::Comparison;
use super::matching::find_in;
use super::path::Path;
use super::value::{Measure, Measured, Resolution};
use super::{CoreError, essential_name};
use crate::ext::{CoreKind, CoreQuestion};
use crate::{Btf, Kind, Type, TypeId};

/// Answers the relocations of an object.
pub struct Resolver<'b> {
    local: &'b Btf<'b>,
    kernel: &'b Btf<'b>,
    modules: Vec<&'b Btf<'b>>,
    candidates: HashMap<TypeId, Vec<Candidate<'b>>>,
    answers: HashMap<CoreQuestion, Answer>,
    /// How many steps may still be taken for all relocations together.
    work: u32,
}

/// Steps that an object may take whatever it asks, and for each question beside. The
/// largest structures of a kernel take some hundred for a question, and thirty
/// thousand to be matched whole.
const WORK: u32 = 1 << 22;
const WORK_FOR_QUESTION: u32 = 1 << 12;

/// A type of the target with the right name.
#[derive(Clone, Copy)]
struct Candidate<'b> {
    btf: &'b Btf<'b>,
    id: TypeId,
}

/// An answer, and how many candidates its type had left when it was given.
struct Answer {
    resolution: Resolution,
    candidates: usize,
}

impl<'b> Resolver<'b> {
    /// For an object with these types, against these types of a kernel.
    pub fn new(local: &'b Btf<'b>, kernel: &'b Btf<'b>) -> Resolver<'b> {
        Resolver {
            local,
            kernel,
            modules: Vec::new(),
            candidates: HashMap::new(),
            answers: HashMap::new(),
            work: WORK,
        }
    }

    /// Adds the types of a module, which are asked where the kernel has no type of
    /// a name.
    pub fn add_module(&mut self, module: &'b Btf<'b>) {
        self.modules.push(module);
    }

    /// Answers one relocation. The order counts: of several types with the right
    /// name only those are left for the next relocation that had what this one
    /// asked for.
    pub fn resolve(&mut self, question: &CoreQuestion) -> Result<Resolution, CoreError> {
        if let Some(answer) = self.answers.get(question)
            && self.candidates.get(&question.ty).map_or(0, Vec::len) == answer.candidates
        {
            return Ok(answer.resolution);
        }
        let resolution = match question.kind {
            CoreKind::TYPE_ID_LOCAL => {
                let path = Path::parse(self.local, question)?;
                let measure = Measure::take(&path)?;
                let path = &path;
                let local = Measured { path, measure };
                Resolution::new(&local, Some(&local))
            }
            _ => self.resolve_by_candidates(question)?,
        };
        let candidates = self.candidates.get(&question.ty).map_or(0, Vec::len);
        let answer = Answer {
            resolution,
            candidates,
        };
        self.answers.insert(*question, answer);
        Ok(resolution)
    }

    fn resolve_by_candidates(&mut self, question: &CoreQuestion) -> Result<Resolution, CoreError> {
        self.find_candidates(question.ty)?;
        self.work = self.work.saturating_add(WORK_FOR_QUESTION);
        let path = Path::parse(self.local, question)?;
        let mut decision: Option<(u32, Resolution)> = None;
        let mut fitting = Vec::new();
        let candidates = self.candidates.get(&question.ty);
        for candidate in candidates.into_iter().flatten() {
            let mut types = Comparison::new(self.local, candidate.btf).within(self.work);
            let before = types.work_left();
            let found = find_in(&path, &mut types, candidate.id);
            self.work -= before - types.work_left();
            let Some(found) = found? else {
                continue;
            };
            let local = Measured {
                path: &path,
                measure: Measure::take(&path)?,
            };
            let target = Measured {
                path: &found,
                measure: Measure::take(&found)?,
            };
            let place = found.bit_offset();
            let resolution = Resolution::new(&local, Some(&target));
            match decision {
                None => decision = Some((place, resolution)),
                Some((first, _)) if first != place => {
                    let other = place;
                    return Err(CoreError::Places { first, other });
                }
                Some((_, first)) => agree(first, resolution)?,
            }
            fitting.push(*candidate);
        }
        if let Some((_, resolution)) = decision {
            self.candidates.insert(question.ty, fitting);
            return Ok(resolution);
        }
        let local = Measured {
            path: &path,
            measure: Measure::take(&path)?,
        };
        Ok(Resolution::new(&local, None))
    }

    /// Finds the types of the target that have the name of a type of the object.
    fn find_candidates(&mut self, id: TypeId) -> Result<(), CoreError> {
        if self.candidates.contains_key(&id) {
            return Ok(());
        }
        let ty = self.local.get(id).ok_or(CoreError::NoType { id })?;
        if ty.name().is_empty() {
            return Err(CoreError::Anonymous { id });
        }
        let mut found = candidates_in(self.kernel, ty);
        if found.is_empty() {
            for module in &self.modules {
                found.extend(candidates_in(module, ty));
            }
        }
        self.candidates.insert(id, found);
        Ok(())
    }

    /// A question as text, as libbpf has it in messages.
    pub fn describe(&self, question: &CoreQuestion) -> Result<String, CoreError> {
        Path::parse(self.local, question).map(|path| path.to_string())
    }
}

fn candidates_in<'b>(btf: &'b Btf<'b>, ty: Type<'_>) -> Vec<Candidate<'b>> {
    let name = essential_name(ty.name().as_bytes());
    let is_enum = |kind| matches!(kind, Kind::Enum | Kind::Enum64);
    let fits = |kind| kind == ty.kind() || is_enum(kind) && is_enum(ty.kind());
    btf.find_flavours(ty.kind(), name)
        .filter(|candidate| fits(candidate.kind()))
        .map(|candidate| Candidate {
            btf,
            id: candidate.id(),
        })
        .collect()
}

/// Do two candidates give one answer?
fn agree(first: Resolution, other: Resolution) -> Result<(), CoreError> {
    let value = |resolution| match resolution {
        Resolution::Poison => None,
        Resolution::Value { value, .. } => Some(value),
    };
    let (first, other) = (value(first), value(other));
    match first == other {
        true => Ok(()),
        false => Err(CoreError::Answers { first, other }),
    }
}
