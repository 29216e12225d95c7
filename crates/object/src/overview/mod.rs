//! What an object contains, at a glance, and what a kernel must be to take it.
//!
//! Nothing here is linked: programs are looked at as they stand in the file, with
//! the functions that they reach and what their relocations name, so that an
//! overview needs no kernel and an object that can't be linked has one too.
//!
//! A [`Need`] is one thing that a kernel must have: a helper, a kind of map, an
//! instruction. All that is in a program counts, also what only runs where the
//! program found out that the kernel has it: an overview says what is used, not what
//! is reached. What is weak is left out if the object asks whether it is there.
//!
//! Cost: a pass over instructions and relocations, and for each program one over
//! what its functions need. What an object may ask for in all is bounded as it is for
//! linking: beyond that, functions are left out.

mod functions;
mod map_needs;
mod program_needs;
mod trial;

use program::{ExternId, MapId};
use spec::helpers;
use spec::maps::MapKind;
use spec::programs::{AttachType, ProgramType};
use spec::since::{Feature, Release, Since, kfunc};

use crate::object::Object;
use crate::programs::ProgramId;
use crate::relocate::LARGEST;
use functions::Functions;

pub use trial::{ProgramTrial, Trial, TrialOutcome};

/// What an object contains.
#[derive(Clone, Debug)]
pub struct Overview {
    /// The programs, in the object's order.
    pub programs: Vec<ProgramOverview>,
    /// What the maps need, by number.
    pub maps: Vec<Vec<Need>>,
}

/// What a program is and needs.
#[derive(Clone, Debug)]
pub struct ProgramOverview {
    /// Which.
    pub id: ProgramId,
    /// The functions that it reaches, in the order in which they are met.
    pub functions: Vec<ProgramId>,
    /// Slots of the program and of these functions.
    pub slots: usize,
    /// Bytes of the stack that instructions name, over the deepest chain of calls.
    pub stack: u32,
    /// How many of its slots depend on the kernel's types.
    pub relocations: usize,
    /// The maps that it refers to, by number.
    pub maps: Vec<MapId>,
    /// What a kernel must have, its maps apart.
    pub needs: Vec<Need>,
}

/// Something that a kernel must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// What.
    pub thing: Thing,
    /// What brought it to Linux; `None` if that is not known.
    pub since: Option<Since>,
    /// Where it is first used, if that is an instruction.
    pub site: Option<Site>,
}

/// An instruction of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site {
    /// The program or function that it is in.
    pub code: ProgramId,
    /// Its slot, from the start of that.
    pub slot: usize,
}

/// What a kernel may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A helper, by number.
    Helper(i32),
    /// A function that programs call by name.
    Kfunc(ExternId),
    /// A kind of map.
    MapKind(MapKind),
    /// A flag of a map, by name.
    MapFlag(&'static str),
    /// A program type.
    ProgramType(ProgramType),
    /// An attach type.
    AttachType(AttachType),
    /// Anything else that kernels learned.
    Feature(Feature),
}

impl Need {
    /// The category, such as `helper`; empty for a feature.
    pub fn category(&self) -> &'static str {
        match self.thing {
            Thing::Helper(_) => "helper",
            Thing::Kfunc(_) => "kfunc",
            Thing::MapKind(_) => "map type",
            Thing::MapFlag(_) => "map flag",
            Thing::ProgramType(_) => "program type",
            Thing::AttachType(_) => "attach type",
            Thing::Feature(_) => "",
        }
    }

    /// The name within the category, in the object that has the need.
    pub fn name_in(&self, object: &Object<'_>) -> String {
        match self.thing {
            Thing::Helper(number) => match helpers::helper(number) {
                Some(known) => known.name.to_owned(),
                None => format!("number {number}"),
            },
            Thing::Kfunc(id) => {
                let expected = object.externs().get(id);
                expected.map_or(String::new(), |expected| expected.name.clone())
            }
            Thing::MapKind(kind) => kind.name().to_owned(),
            Thing::MapFlag(name) => name.to_owned(),
            Thing::ProgramType(kind) => kind.name().to_owned(),
            Thing::AttachType(attach) => attach.name().to_owned(),
            Thing::Feature(feature) => feature.name().to_owned(),
        }
    }
}

impl Object<'_> {
    /// What it contains and needs.
    pub fn overview(&self) -> Overview {
        let functions = Functions::of(self);
        let mut room = LARGEST;
        let programs = self.programs();
        let programs = programs.map(|(id, code)| functions.overview(id, code, &mut room));
        let maps = self.maps.iter();
        Overview {
            programs: programs.collect(),
            maps: maps
                .map(|(_, map)| map_needs::needs(map, self.types()))
                .collect(),
        }
    }
}

impl Overview {
    /// What a program needs, its maps included.
    pub fn needs_of<'o>(
        &'o self,
        program: &'o ProgramOverview,
    ) -> impl Iterator<Item = &'o Need> + 'o {
        let maps = program.maps.iter();
        let maps = maps.filter_map(|id| self.maps.get(id.0 as usize));
        program.needs.iter().chain(maps.flatten())
    }

    /// All that a kernel must have for the whole object, latest first; each thing
    /// once, with its first place.
    pub fn needs(&self) -> Vec<Need> {
        let programs = self.programs.iter().flat_map(|program| &program.needs);
        collect(programs.chain(self.maps.iter().flatten()).copied())
    }
}

/// The oldest release that has all of these.
pub fn oldest<'n>(needs: impl IntoIterator<Item = &'n Need>) -> Option<Release> {
    let known = needs.into_iter().filter_map(|need| need.since);
    known.map(|since| since.release).max()
}

/// Each thing once, the latest first, then by what it is.
fn collect(needs: impl Iterator<Item = Need>) -> Vec<Need> {
    let mut all: Vec<Need> = needs.collect();
    let release = |need: &Need| need.since.map(|since| since.release);
    all.sort_by(|one, other| {
        release(other)
            .cmp(&release(one))
            .then(one.thing.cmp(&other.thing))
    });
    all.dedup_by_key(|need| need.thing);
    all
}

impl Need {
    fn of(thing: Thing, since: Option<Since>) -> Need {
        Need {
            thing,
            since,
            site: None,
        }
    }

    fn feature(feature: Feature) -> Need {
        Need::of(Thing::Feature(feature), Some(feature.since()))
    }

    fn helper(number: i32) -> Need {
        let known = helpers::helper(number);
        Need::of(Thing::Helper(number), known.map(|helper| helper.since))
    }

    fn kfunc(id: ExternId, name: &str) -> Need {
        Need::of(Thing::Kfunc(id), kfunc(name))
    }

    fn at(self, code: ProgramId, slot: usize) -> Need {
        Need {
            site: Some(Site { code, slot }),
            ..self
        }
    }
}
