//! Differences between what a loader parses of an object and what Beebox makes of it.

use std::collections::BTreeMap;
use std::fmt;

use program::MapParams;
use spec::loader::LoaderKind;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::parsed::{Parsed, ParsedMap, ParsedProgram};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Whether the object is accepted.
    Accepted,
    /// The names of programs.
    Programs,
    /// Type, attach type, load flags, attach target and licence of a program.
    Type,
    /// Instructions of a program and its subprogs, with the maps that they refer to.
    Instructions,
    /// The names of maps.
    Maps,
    /// Kind, sizes, entries, flags, pinning and types of a map.
    Definition,
    /// Inner maps, elements and initial values of a map.
    Contents,
}

impl Aspect {
    /// Name in tables.
    pub fn title(self) -> &'static str {
        match self {
            Aspect::Accepted => "objects accepted or refused",
            Aspect::Programs => "names of programs",
            Aspect::Type => "types of programs",
            Aspect::Instructions => "instructions of programs",
            Aspect::Maps => "names of maps",
            Aspect::Definition => "definitions of maps",
            Aspect::Contents => "contents of maps",
        }
    }
}

/// A difference whose cause is known, and which stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Explained {
    /// aya knows called functions by their offset alone: of two at one offset of different sections
    /// it links the first only.
    FunctionsAtOneOffset,
    /// aya refuses an object with a program that calls an undefined function, or links its caller
    /// if the call is its first instruction. Beebox refuses the program.
    CallOfUndefined,
    /// cilium/ebpf refuses instructions that call helpers of numbers from 2^28 on, which no kernel
    /// has.
    HelperNumber,
    /// cilium/ebpf writes 0 for the offset of arithmetic instructions but those of signed division
    /// and sign extension: `addr_space_cast` is lost.
    ArithmeticOffset,
}

impl Explained {
    /// What the loader does.
    pub fn title(self) -> &'static str {
        match self {
            Explained::FunctionsAtOneOffset => {
                "aya links one of two functions at one offset of different sections"
            }
            Explained::CallOfUndefined => {
                "aya takes a call of an undefined function for one in its section"
            }
            Explained::ArithmeticOffset => {
                "cilium/ebpf drops the offset of addr_space_cast, and of malformed instructions"
            }
            Explained::HelperNumber => "cilium/ebpf knows helpers up to 2^28",
        }
    }
}

/// Equal and compared answers of an aspect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Equal.
    pub equal: usize,
    /// Different for a known cause.
    pub explained: usize,
    /// Compared.
    pub compared: usize,
}

/// A difference.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The loader.
    pub loader: LoaderKind,
    /// The object, and the program or map in it.
    pub place: String,
    /// What differs.
    pub aspect: Aspect,
    /// The loader's answer.
    pub theirs: String,
    /// Ours.
    pub ours: String,
    /// Its cause, if it stays.
    pub cause: Option<Explained>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference {
            loader,
            place,
            aspect,
            theirs,
            ours,
            cause,
        } = self;
        write!(f, "{place}: {}", aspect.title())?;
        if let Some(cause) = cause {
            write!(f, ", explained: {}", cause.title())?;
        }
        write!(f, "\n  {loader}: {theirs}\n  beebox: {ours}")
    }
}

/// Comparison of objects by one loader.
#[derive(Debug, Default)]
pub struct Comparison {
    /// Counts by aspect.
    pub counts: BTreeMap<Aspect, Count>,
    /// Objects that both accept.
    pub accepted: usize,
    /// Differences.
    pub differences: Vec<Difference>,
}

/// Compares the answers for one object.
pub fn compare(
    loader: LoaderKind,
    object: &str,
    theirs: &Parsed,
    ours: &Parsed,
    found: &mut Comparison,
) {
    let mut check = Check {
        loader,
        object,
        found,
    };
    let verdict = |parsed: &Parsed| match &parsed.error {
        Some(error) => format!("refused: {error}"),
        None => "accepted".to_owned(),
    };
    let is_equal = theirs.error.is_some() == ours.error.is_some();
    let cause = match loader {
        LoaderKind::Aya if ours.programs.iter().any(|it| it.calls_undefined) => {
            Some(Explained::CallOfUndefined)
        }
        LoaderKind::CiliumEbpf => {
            let error = theirs.error.as_deref().unwrap_or_default();
            let is_number = error.contains("invalid constant");
            is_number.then_some(Explained::HelperNumber)
        }
        _ => None,
    };
    check.note(Aspect::Accepted, "", is_equal, cause, || {
        (verdict(theirs), verdict(ours))
    });
    if theirs.error.is_some() || ours.error.is_some() {
        return;
    }
    check.found.accepted += 1;
    let names = |parsed: &Parsed| {
        let names = parsed.programs.iter().map(|program| program.name.clone());
        names.collect::<Vec<_>>()
    };
    let (one, other) = (names(theirs), names(ours));
    check.equal(Aspect::Programs, "", &one, &other);
    for theirs in &theirs.programs {
        let ours = ours.programs.iter().find(|ours| ours.name == theirs.name);
        if let Some(ours) = ours {
            check.program(theirs, ours);
        }
    }
    let names = |parsed: &Parsed| {
        let is_plain = |map: &&ParsedMap| map.kind != MapKind::StructOps.number();
        let names = parsed.maps.iter().filter(is_plain);
        let names = names.map(|map| map.name.clone());
        // The configuration is a map when it is loaded.
        names
            .filter(|name| !name.ends_with(".kconfig"))
            .collect::<Vec<_>>()
    };
    let (one, other) = (names(theirs), names(ours));
    check.equal(Aspect::Maps, "", &one, &other);
    for theirs in &theirs.maps {
        let ours = ours.maps.iter().find(|ours| ours.name == theirs.name);
        if let Some(ours) = ours {
            check.map(theirs, ours);
        }
    }
}

/// Slots of instructions, and the maps that they refer to.
type Slots = (Vec<[u8; 8]>, Vec<(usize, String)>);

/// Slots with 0 for the offsets of arithmetic instructions where the other's have 0.
fn without_arithmetic_offsets(theirs: &[[u8; 8]], (slots, maps): &Slots) -> Slots {
    let mut slots = slots.clone();
    for (slot, other) in slots.iter_mut().zip(theirs) {
        if matches!(slot[0] & 7, 4 | 7) && other[2..4] == [0, 0] {
            slot[2..4].fill(0);
        }
    }
    (slots, maps.clone())
}

/// Check of one object.
struct Check<'c> {
    loader: LoaderKind,
    object: &'c str,
    found: &'c mut Comparison,
}

impl Check<'_> {
    fn note(
        &mut self,
        aspect: Aspect,
        part: &str,
        is_equal: bool,
        cause: Option<Explained>,
        words: impl FnOnce() -> (String, String),
    ) {
        let count = self.found.counts.entry(aspect).or_default();
        count.compared += 1;
        count.equal += usize::from(is_equal);
        if !is_equal {
            count.explained += usize::from(cause.is_some());
            let (theirs, ours) = words();
            let place = match part {
                "" => self.object.to_owned(),
                part => format!("{} {part}", self.object),
            };
            self.found.differences.push(Difference {
                loader: self.loader,
                place,
                aspect,
                theirs,
                ours,
                cause,
            });
        }
    }

    fn equal<T: PartialEq + fmt::Debug>(
        &mut self,
        aspect: Aspect,
        part: &str,
        theirs: &T,
        ours: &T,
    ) {
        self.note(aspect, part, theirs == ours, None, || {
            (format!("{theirs:?}"), format!("{ours:?}"))
        });
    }

    fn program(&mut self, theirs: &ParsedProgram, ours: &ParsedProgram) {
        let stated = |program: &ParsedProgram| {
            // The target in a section of struct_ops is the member that refers to it, or ignored.
            let is_named = program.kind != ProgramType::StructOps.number();
            let target = theirs.target.as_ref().filter(|_| is_named);
            let target = target.map(|_| program.target.clone());
            let flags = theirs.flags.and(program.flags);
            let license = theirs.license.as_ref().and(program.license.clone());
            let own = theirs.own_insns.and(program.own_insns);
            let target = target.map(Option::unwrap_or_default);
            // The attach type of struct_ops is the index of a member, which linking sets.
            let attach = program.attach * u32::from(is_named);
            (program.kind, attach, flags, target, license, own)
        };
        self.equal(Aspect::Type, &theirs.name, &stated(theirs), &stated(ours));
        let (Some(one), Some(other)) = (&theirs.insns, &ours.insns) else {
            return;
        };
        let is_open = |slot: &usize| theirs.open.contains(slot) || ours.open.contains(slot);
        let slots = |bytes: &[u8]| {
            let (slots, _) = bytes.as_chunks::<8>();
            // The upper half of the address of a function has no meaning.
            let is_function = |slot: usize| slots[slot][0] == 0x18 && slots[slot][1] >> 4 == 4;
            let slots = slots.iter().copied().enumerate().map(|(slot, bytes)| {
                let is_upper = slot.checked_sub(1).is_some_and(is_function);
                match is_open(&slot) || is_upper {
                    true => [0; 8],
                    false => bytes,
                }
            });
            slots.collect::<Vec<_>>()
        };
        let maps = |program: &ParsedProgram| {
            let mut maps = program.maps.clone();
            maps.retain(|(slot, _)| !is_open(slot));
            maps
        };
        let (one, other) = ((slots(one), maps(theirs)), (slots(other), maps(ours)));
        let cause = match self.loader {
            LoaderKind::Aya if ours.calls_undefined => Some(Explained::CallOfUndefined),
            LoaderKind::Aya if ours.has_equal_offsets => Some(Explained::FunctionsAtOneOffset),
            LoaderKind::CiliumEbpf if one == without_arithmetic_offsets(&one.0, &other) => {
                Some(Explained::ArithmeticOffset)
            }
            _ => None,
        };
        let is_equal = one == other;
        self.note(Aspect::Instructions, &theirs.name, is_equal, cause, || {
            let words = |(slots, maps): &(Vec<[u8; 8]>, Vec<_>), others: &[[u8; 8]]| {
                let differs = |slot: &usize| slots.get(*slot) != others.get(*slot);
                let first = (0..slots.len()).find(differs);
                let first = first.map(|slot| (slot, slots[slot]));
                format!(
                    "{} slots, first other one {first:x?}, maps {maps:?}",
                    slots.len()
                )
            };
            (words(&one, &other.0), words(&other, &one.0))
        });
    }

    /// Entries of a map as it is created: loaders round sizes of ring buffers then.
    fn entries(&self, map: &ParsedMap) -> u32 {
        let mut kinds = self.loader.rules().rounded_kinds.iter();
        let mut params = MapParams {
            map_type: map.kind,
            max_entries: map.max_entries,
            ..MapParams::default()
        };
        if kinds.any(|kind| kind.number() == map.kind) {
            params.set_max_entries(map.max_entries);
        }
        params.max_entries
    }

    fn map(&mut self, theirs: &ParsedMap, ours: &ParsedMap) {
        let part = format!("map {}", theirs.name);
        let stated = |map: &ParsedMap| {
            // Go's loader maps data sections when it creates them.
            let flags = match self.loader {
                LoaderKind::CiliumEbpf => map.flags & !MapFlags::MMAPABLE.0,
                _ => map.flags,
            };
            (
                [
                    map.kind,
                    map.key_size,
                    map.value_size,
                    self.entries(map),
                    flags,
                ],
                map.pinning,
                theirs.btf_key.and(map.btf_key),
                theirs.btf_value.and(map.btf_value),
            )
        };
        let (one, other) = (stated(theirs), stated(ours));
        self.equal(Aspect::Definition, &part, &one, &other);
        let inner = |map: &ParsedMap| {
            let inner = map.inner.as_ref();
            inner.map(|map| {
                let entries = self.entries(map);
                [map.kind, map.key_size, map.value_size, entries, map.flags]
            })
        };
        let held = |map: &ParsedMap| {
            let inner = theirs.inner.as_ref().and(inner(map));
            let entries = theirs.entries.as_ref().and(map.entries.clone());
            let data = theirs.data.as_ref().and(map.data.clone());
            (inner, entries, data)
        };
        self.equal(Aspect::Contents, &part, &held(theirs), &held(ours));
    }
}
