//! Resolver of all relocations of an object against one target.
//!
//! Keeps the candidates of each type of the object and the resolution of each relocation.
//! Candidates are only removed, so a cached resolution is valid while its type has as
//! many candidates as before.

use std::collections::HashMap;

use super::compatible::Comparison;
use super::matching::find_in;
use super::path::Path;
use super::value::{Measure, Measured, Resolution};
use super::{CoreError, essential_name};
use crate::ext::{CoreKind, CoreSpec};
use crate::{Btf, Kind, Type, TypeId};

/// Resolver of the relocations of an object.
pub struct Resolver<'b> {
    local: &'b Btf<'b>,
    kernel: &'b Btf<'b>,
    modules: Vec<&'b Btf<'b>>,
    candidates: HashMap<TypeId, Vec<Candidate<'b>>>,
    answers: HashMap<CoreSpec, Answer>,
    /// Remaining number of steps for all relocations together.
    work: u32,
    /// True if no relocation removed a candidate.
    keeps_candidates: bool,
    /// Number of candidates that may still be kept.
    room: usize,
}

/// Number of candidates of all types together. A type of a kernel has one, or a few in its
/// modules.
const MAX_CANDIDATES: usize = 1 << 20;

/// Number of steps that an object may take in any case, and for each relocation in
/// addition. The largest structures of a kernel take a few hundred for a relocation, and
/// thirty thousand for `type_matches`.
const WORK: u32 = 1 << 22;
const WORK_FOR_QUESTION: u32 = 1 << 12;

/// A type of the target with the right name.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'b> {
    btf: &'b Btf<'b>,
    pub(super) id: TypeId,
}

/// Cached resolution, with the number of candidates when it was computed.
struct Answer {
    resolution: Resolution,
    /// True if a type of the target has the access.
    is_found: bool,
    candidates: usize,
}

impl<'b> Resolver<'b> {
    /// Resolver of an object with this BTF against the BTF of a kernel.
    pub fn new(local: &'b Btf<'b>, kernel: &'b Btf<'b>) -> Resolver<'b> {
        Resolver {
            local,
            kernel,
            modules: Vec::new(),
            candidates: HashMap::new(),
            answers: HashMap::new(),
            work: WORK,
            keeps_candidates: true,
            room: MAX_CANDIDATES,
        }
    }

    /// True if no relocation so far removed a candidate of later ones, so that the same
    /// relocations in another order have the same resolutions.
    pub fn is_order_irrelevant(&self) -> bool {
        self.keeps_candidates
    }

    /// Adds the BTF of a module, which is searched if the kernel lacks a type.
    pub fn add_module(&mut self, module: &'b Btf<'b>) {
        self.modules.push(module);
    }

    /// Resolves one relocation (`bpf_core_apply`). The order matters: candidates that lack the
    /// access are removed for later relocations.
    #[doc(alias = "bpf_core_apply")]
    pub fn resolve(&mut self, spec: &CoreSpec) -> Result<Resolution, CoreError> {
        if let Some(answer) = self.answers.get(spec)
            && self.candidates.get(&spec.ty).map_or(0, Vec::len) == answer.candidates
        {
            return Ok(answer.resolution);
        }
        let (resolution, is_found) = match spec.kind {
            CoreKind::TYPE_ID_LOCAL => {
                let path = Path::parse(self.local, spec)?;
                let measure = Measure::take(&path)?;
                let path = &path;
                let local = Measured { path, measure };
                (Resolution::new(&local, Some(&local)), true)
            }
            _ => self.resolve_by_candidates(spec)?,
        };
        let candidates = self.candidates.get(&spec.ty).map_or(0, Vec::len);
        let answer = Answer {
            resolution,
            is_found,
            candidates,
        };
        self.answers.insert(*spec, answer);
        Ok(resolution)
    }

    /// True if the target has the access of a relocation that was resolved.
    pub fn is_found(&self, spec: &CoreSpec) -> bool {
        self.answers.get(spec).is_some_and(|answer| answer.is_found)
    }

    /// Resolution, and true if the target has the access.
    fn resolve_by_candidates(&mut self, spec: &CoreSpec) -> Result<(Resolution, bool), CoreError> {
        self.find_candidates(spec.ty)?;
        self.work = self.work.saturating_add(WORK_FOR_QUESTION);
        let path = Path::parse(self.local, spec)?;
        let mut decision: Option<(u32, Resolution)> = None;
        let mut fitting = Vec::new();
        let candidates = self.candidates.get(&spec.ty);
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
            let before = self.candidates.get(&spec.ty).map_or(0, Vec::len);
            self.keeps_candidates &= fitting.len() == before;
            self.candidates.insert(spec.ty, fitting);
            return Ok((resolution, true));
        }
        let local = Measured {
            path: &path,
            measure: Measure::take(&path)?,
        };
        Ok((Resolution::new(&local, None), false))
    }

    /// Finds the candidates of a type of the object: types of the target with its
    /// essential name.
    fn find_candidates(&mut self, id: TypeId) -> Result<(), CoreError> {
        if self.candidates.contains_key(&id) {
            return Ok(());
        }
        let ty = self.local.get(id).ok_or(CoreError::NoType { id })?;
        if ty.name().is_empty() {
            return Err(CoreError::Anonymous { id });
        }
        let most = self.room + 1;
        let mut found = candidates_in(self.kernel, ty, most);
        if found.is_empty() {
            for module in &self.modules {
                found.extend(candidates_in(module, ty, most));
            }
        }
        let Some(room) = self.room.checked_sub(found.len()) else {
            self.room = 0;
            return Err(CoreError::TooComplex);
        };
        self.room = room;
        self.candidates.insert(id, found);
        Ok(())
    }

    /// Text of a relocation as in libbpf's messages.
    pub fn describe(&self, spec: &CoreSpec) -> Result<String, CoreError> {
        Path::parse(self.local, spec).map(|path| path.to_string())
    }
}

/// At most so many types of the target with the kind and the essential name of a type of the
/// object.
pub(super) fn candidates_in<'b>(btf: &'b Btf<'b>, ty: Type<'_>, most: usize) -> Vec<Candidate<'b>> {
    let name = essential_name(ty.name().as_bytes());
    let is_enum = |kind| matches!(kind, Kind::Enum | Kind::Enum64);
    let fits = |kind| kind == ty.kind() || is_enum(kind) && is_enum(ty.kind());
    btf.find_flavours(ty.kind(), name)
        .filter(|candidate| fits(candidate.kind()))
        .take(most)
        .map(|candidate| Candidate {
            btf,
            id: candidate.id(),
        })
        .collect()
}

/// Checks that two candidates give the same resolution.
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
