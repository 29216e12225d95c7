//! Overview of an object: its contents, and the kernel features that it requires, without
//! linking.
//!
//! Programs are analysed as they are in the file, with the functions that they reach and
//! the names in their relocations, so that no kernel is needed and objects that cannot be
//! linked have an overview too.
//!
//! A [`Requirement`] is one required feature: a helper, a map kind, an instruction. Every
//! instruction counts. Helpers, kfuncs and other operands of those that no run reaches where
//! each check for a type, field, enumerator, weak symbol or release answers no are guarded: the
//! oldest release does without them. Opcodes, modes of loads, atomic operations and function
//! references are never guarded: Linux checks them before it removes dead code.
//!
//! One pass over instructions and relocations, and for each program one over the needs of
//! its functions. The total is bounded as for linking: beyond that, functions are
//! omitted.

mod functions;
mod link_report;
mod map_needs;
mod program_needs;
mod reach;

use program::{ExternId, MapId};
use spec::helpers;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::since::{Feature, Release, Since, kfunc};

use crate::object::Object;
use crate::programs::ProgramId;
use crate::relocate::LARGEST;
use functions::Functions;

pub use link_report::{LinkOutcome, LinkReport, ProgramLinkReport};

/// Overview of an object.
#[derive(Clone, Debug)]
pub struct Overview {
    /// Programs, in the object's order.
    pub programs: Vec<ProgramOverview>,
    /// Needs of each map, by index.
    pub maps: Vec<Vec<Requirement>>,
}

/// Properties and needs of a program.
#[derive(Clone, Debug)]
pub struct ProgramOverview {
    /// Program index.
    pub id: ProgramId,
    /// Functions that it reaches, in the order of the first call.
    pub functions: Vec<ProgramId>,
    /// Slots of the program and of these functions.
    pub slots: usize,
    /// Stack depth in bytes over the deepest chain of calls.
    pub stack: u32,
    /// Number of CO-RE relocations.
    pub relocations: usize,
    /// Maps that it refers to, by index.
    pub maps: Vec<MapId>,
    /// Needs of the program, without those of its maps.
    pub needs: Vec<Requirement>,
}

/// Feature that a kernel must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Feature.
    pub feature: RequiredFeature,
    /// First release with it; `None` if unknown.
    pub since: Option<Since>,
    /// First use, if it is an instruction.
    pub site: Option<UseSite>,
    /// True if all uses are behind checks of what the kernel has, and kernels without the
    /// feature accept the unreached instructions.
    pub is_guarded: bool,
    /// True if a check can guard the need.
    is_guardable: bool,
}

/// Instruction of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseSite {
    /// Program or function that contains it.
    pub code: ProgramId,
    /// Slot index from the start of that.
    pub slot: usize,
}

/// Kind of required feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RequiredFeature {
    /// A helper, by number.
    Helper(i32),
    /// kfunc.
    Kfunc(ExternId),
    /// Map kind.
    MapKind(MapKind),
    /// A flag of a map, by name.
    MapFlag(&'static str),
    /// A program type.
    ProgramType(ProgramType),
    /// An attach type.
    AttachType(AttachType),
    /// Another feature.
    Feature(Feature),
}

impl Requirement {
    /// Category, such as `helper`; empty for a feature.
    pub fn category(&self) -> &'static str {
        match self.feature {
            RequiredFeature::Helper(_) => "helper",
            RequiredFeature::Kfunc(_) => "kfunc",
            RequiredFeature::MapKind(_) => "map type",
            RequiredFeature::MapFlag(_) => "map flag",
            RequiredFeature::ProgramType(_) => "program type",
            RequiredFeature::AttachType(_) => "attach type",
            RequiredFeature::Feature(_) => "",
        }
    }

    /// Name within the category, in the object that has the need.
    pub fn name_in(&self, object: &Object<'_>) -> String {
        match self.feature {
            RequiredFeature::Helper(number) => match helpers::helper(number) {
                Some(known) => known.name.to_owned(),
                None => format!("number {number}"),
            },
            RequiredFeature::Kfunc(id) => {
                let expected = object.externs().get(id);
                expected.map_or(String::new(), |expected| expected.name.clone())
            }
            RequiredFeature::MapKind(kind) => kind.name().to_owned(),
            RequiredFeature::MapFlag(name) => name.to_owned(),
            RequiredFeature::ProgramType(kind) => kind.name().to_owned(),
            RequiredFeature::AttachType(attach) => attach.name().to_owned(),
            RequiredFeature::Feature(feature) => feature.name().to_owned(),
        }
    }
}

impl Object<'_> {
    /// Overview of the object.
    pub fn overview(&self) -> Overview {
        let functions = Functions::of(self);
        let mut room = LARGEST;
        let programs = self.programs();
        let programs = programs.map(|(id, code)| functions.overview(id, code, &mut room));
        let maps = self.maps.iter();
        Overview {
            programs: programs.collect(),
            maps: maps
                .map(|(_, map)| map_needs::needs(map, self.btf()))
                .collect(),
        }
    }
}

impl Overview {
    /// Needs of a program, those of its maps included.
    pub fn needs_of<'o>(
        &'o self,
        program: &'o ProgramOverview,
    ) -> impl Iterator<Item = &'o Requirement> + 'o {
        let maps = program.maps.iter();
        let maps = maps.filter_map(|id| self.maps.get(id.0 as usize));
        program.needs.iter().chain(maps.flatten())
    }

    /// Needs of the whole object without duplicates, latest first, each with its first
    /// use.
    pub fn needs(&self) -> Vec<Requirement> {
        let programs = self.programs.iter().flat_map(|program| &program.needs);
        collect(programs.chain(self.maps.iter().flatten()).copied())
    }
}

/// Oldest release that satisfies all needs that are not guarded.
pub fn oldest<'n>(needs: impl IntoIterator<Item = &'n Requirement>) -> Option<Release> {
    let needs = needs.into_iter().filter(|need| !need.is_guarded);
    let known = needs.filter_map(|need| need.since);
    known.map(|since| since.release).max()
}

/// Needs without duplicates, latest first, then by kind.
fn collect(needs: impl Iterator<Item = Requirement>) -> Vec<Requirement> {
    let mut all: Vec<Requirement> = needs.collect();
    let release = |need: &Requirement| need.since.map(|since| since.release);
    all.sort_by(|one, other| {
        release(other)
            .cmp(&release(one))
            .then(one.feature.cmp(&other.feature))
            .then(one.is_guarded.cmp(&other.is_guarded))
            .then(one.is_guardable.cmp(&other.is_guardable))
    });
    all.dedup_by_key(|need| need.feature);
    all
}

impl Requirement {
    fn of(feature: RequiredFeature, since: Option<Since>) -> Requirement {
        Requirement {
            feature,
            since,
            site: None,
            is_guarded: false,
            is_guardable: false,
        }
    }

    fn feature(feature: Feature) -> Requirement {
        Requirement::of(RequiredFeature::Feature(feature), Some(feature.since()))
    }

    fn helper(number: i32) -> Requirement {
        let known = helpers::helper(number);
        Requirement::of(
            RequiredFeature::Helper(number),
            known.map(|helper| helper.since),
        )
    }

    fn kfunc(id: ExternId, name: &str) -> Requirement {
        Requirement::of(RequiredFeature::Kfunc(id), kfunc(name))
    }

    fn at(self, code: ProgramId, slot: usize) -> Requirement {
        Requirement {
            site: Some(UseSite { code, slot }),
            ..self
        }
    }
}
