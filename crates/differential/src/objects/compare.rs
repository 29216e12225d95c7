//! Two loaders on one object: field by field, what both handed to the kernel.

use std::collections::BTreeMap;
use std::fmt::{self, Debug};

use super::syscall_record::{CreatedMap, LoadedProgram, OpenedMap, OpenedProgram, SyscallRecord};

/// Compared aspects, in the order of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Opening: success, or the class of error.
    Opening,
    /// Linking and loading: success, or the class of error.
    Whole,
    /// Result for one of its programs alone.
    Alone,
    /// The programs of the open object: names, sections, types, flags.
    Programs,
    /// The maps of the open object, with what they hold.
    Maps,
    /// The maps as they are created.
    Created,
    /// Contents written to maps, freezing and mapping before anything runs.
    Written,
    /// The type information.
    Types,
    /// Loaded programs.
    Loaded,
    /// The instructions of a program.
    Instructions,
    /// The maps that its instructions refer to.
    References,
    /// Its program type, attach type and flags.
    Attachment,
    /// The kernel's type that it attaches to.
    AttachPoint,
    /// The types of its functions.
    Functions,
    /// Its source lines.
    Lines,
    /// Its name, licence and version.
    Labels,
}

impl Aspect {
    /// All aspects.
    pub const ALL: &[Aspect] = &[
        Aspect::Opening,
        Aspect::Whole,
        Aspect::Alone,
        Aspect::Programs,
        Aspect::Maps,
        Aspect::Created,
        Aspect::Written,
        Aspect::Types,
        Aspect::Loaded,
        Aspect::Instructions,
        Aspect::References,
        Aspect::Attachment,
        Aspect::AttachPoint,
        Aspect::Functions,
        Aspect::Lines,
        Aspect::Labels,
    ];

    /// Description for tables.
    pub const fn title(self) -> &'static str {
        match self {
            Aspect::Opening => "objects: opened, or refused with the same class of error",
            Aspect::Whole => "objects as a whole: loaded, or refused with the same class of error",
            Aspect::Alone => "programs alone: loaded, or refused with the same class of error",
            Aspect::Programs => "programs of the open object: name, section, type, flags",
            Aspect::Maps => "maps of the open object, with initial contents",
            Aspect::Created => "maps as created: every attribute",
            Aspect::Written => "values written, maps frozen, arena contents",
            Aspect::Types => "BTF, byte for byte",
            Aspect::Loaded => "which programs are loaded, in which order",
            Aspect::Instructions => "programs: instructions",
            Aspect::References => "programs: maps that instructions refer to",
            Aspect::Attachment => "programs: program type, attach type, flags",
            Aspect::AttachPoint => "programs: BTF type to attach to",
            Aspect::Functions => "programs: func_info",
            Aspect::Lines => "programs: line_info",
            Aspect::Labels => "programs: name, licence, kernel version, device",
        }
    }
}

/// Counts of agreement of two loaders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Questions.
    pub compared: u64,
    /// Equal answers.
    pub equal: u64,
}

/// An answer that is not the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectDifference {
    /// The object.
    pub object: String,
    /// The part of an object and the program or map of a difference.
    pub at: String,
    /// Difference.
    pub aspect: Aspect,
    /// libbpf's answer.
    pub libbpf: String,
    /// Ours.
    pub ours: String,
}

impl fmt::Display for ObjectDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ObjectDifference {
            object,
            at,
            aspect,
            libbpf,
            ours,
        } = self;
        write!(
            f,
            "{object} {at} {aspect:?}\n  libbpf: {libbpf}\n  ours:   {ours}"
        )
    }
}

/// Result of a comparison.
#[derive(Clone, Debug, Default)]
pub struct ObjectComparison {
    /// Counts by aspect.
    pub counts: BTreeMap<Aspect, Count>,
    /// Differences.
    pub differences: Vec<ObjectDifference>,
    /// Results of libbpf: by class of error, with its number, the count of whole objects
    /// and of single programs.
    pub ends: BTreeMap<(&'static str, i32), [u64; 2]>,
}

impl ObjectComparison {
    /// Both together.
    pub fn add(&mut self, other: ObjectComparison) {
        for (aspect, count) in other.counts {
            let sum = self.counts.entry(aspect).or_default();
            sum.compared += count.compared;
            sum.equal += count.equal;
        }
        self.differences.extend(other.differences);
        for (end, [whole, alone]) in other.ends {
            let sum = self.ends.entry(end).or_default();
            sum[0] += whole;
            sum[1] += alone;
        }
    }
}

/// Compares what libbpf and we hand over for one object.
pub fn compare(object: &str, libbpf: &SyscallRecord, ours: &SyscallRecord) -> ObjectComparison {
    let mut sides = Sides {
        object,
        at: match libbpf.scope.prog.as_str() {
            "" => String::new(),
            prog => format!("[{prog}]"),
        },
        found: ObjectComparison::default(),
    };
    sides.stages(libbpf, ours);
    if libbpf.is_open() && ours.is_open() {
        sides.open_object(libbpf, ours);
    }
    if libbpf.is_loaded() && ours.is_loaded() {
        sides.loaded_object(libbpf, ours);
    }
    sides.found
}

struct Sides<'a> {
    object: &'a str,
    at: String,
    found: ObjectComparison,
}

impl Sides<'_> {
    fn stages(&mut self, libbpf: &SyscallRecord, ours: &SyscallRecord) {
        let [theirs, mine] = [libbpf, ours].map(|side| match &side.outcome {
            Some(outcome) => (outcome.class(), outcome.errno),
            None => ("crash", 0),
        });
        let is_whole = libbpf.scope.prog.is_empty();
        self.found.ends.entry(theirs).or_default()[usize::from(!is_whole)] += 1;
        let both_opened = libbpf.is_open() && ours.is_open();
        let aspect = match (is_whole, both_opened) {
            (true, false) => Aspect::Opening,
            (true, true) => Aspect::Whole,
            (false, _) => Aspect::Alone,
        };
        if aspect == Aspect::Whole {
            self.note(Aspect::Opening, "", true, Default::default);
        }
        self.note(aspect, "", theirs == mine, || {
            [(theirs, libbpf), (mine, ours)].map(|((class, errno), side)| {
                let said = side.outcome.as_ref().map(|outcome| &outcome.messages);
                format!("{class}, error {errno} {said:?}")
            })
        });
    }

    fn open_object(&mut self, libbpf: &SyscallRecord, ours: &SyscallRecord) {
        let name = |program: &OpenedProgram| program.name.clone();
        self.lists(Aspect::Programs, &libbpf.programs, &ours.programs, name);
        let name = |map: &OpenedMap| map.name.clone();
        self.lists(Aspect::Maps, &libbpf.maps, &ours.maps, name);
    }

    fn loaded_object(&mut self, libbpf: &SyscallRecord, ours: &SyscallRecord) {
        let name = |map: &CreatedMap| map.map.clone();
        self.lists(Aspect::Created, &libbpf.created, &ours.created, name);
        self.lists(Aspect::Written, &libbpf.written, &ours.written, |written| {
            written.map.clone()
        });
        self.field(Aspect::Written, "frozen", &libbpf.frozen, &ours.frozen);
        self.field(Aspect::Written, "mapped", &libbpf.contents, &ours.contents);
        let types = [libbpf, ours].map(|side| side.types.as_ref().map(|t| (t.size, t.hash)));
        self.note(Aspect::Types, "", types[0] == types[1], || {
            types.map(|types| format!("{types:?}"))
        });
        let names = [libbpf, ours].map(|side| -> Vec<&str> {
            side.loaded.iter().map(|load| load.prog.as_str()).collect()
        });
        self.field(Aspect::Loaded, "", &names[0], &names[1]);
        for theirs in &libbpf.loaded {
            if let Some(mine) = ours.loaded.iter().find(|load| load.prog == theirs.prog) {
                self.program(theirs, mine);
            }
        }
    }

    fn program(&mut self, libbpf: &LoadedProgram, ours: &LoadedProgram) {
        let name = libbpf.prog.as_str();
        self.records(Aspect::Instructions, name, &libbpf.insns, &ours.insns, 8);
        self.field(Aspect::References, name, &libbpf.maps, &ours.maps);
        let attachment = |load: &LoadedProgram| (load.kind, load.attach, load.flags);
        let [theirs, mine] = [libbpf, ours].map(attachment);
        self.field(Aspect::Attachment, name, &theirs, &mine);
        let [theirs, mine] = [libbpf, ours].map(|load| load.attach_btf_id);
        self.field(Aspect::AttachPoint, name, &theirs, &mine);
        let [theirs, mine] = [libbpf, ours].map(|load| load.func_info_size);
        self.field(Aspect::Functions, name, &theirs, &mine);
        let (theirs, mine) = (&libbpf.func_info, &ours.func_info);
        self.records(Aspect::Functions, name, theirs, mine, 8);
        let [theirs, mine] = [libbpf, ours].map(|load| load.line_info_size);
        self.field(Aspect::Lines, name, &theirs, &mine);
        let (theirs, mine) = (&libbpf.line_info, &ours.line_info);
        self.records(Aspect::Lines, name, theirs, mine, 16);
        let labels = |load: &LoadedProgram| {
            let version = (load.kern_version, load.ifindex, load.btf);
            (load.name.clone(), load.license.clone(), version)
        };
        let [theirs, mine] = [libbpf, ours].map(labels);
        self.field(Aspect::Labels, name, &theirs, &mine);
    }

    /// Entries in their order, by name: which there are, then each.
    fn lists<T: PartialEq + Debug>(
        &mut self,
        aspect: Aspect,
        libbpf: &[T],
        ours: &[T],
        name: impl Fn(&T) -> String,
    ) {
        let names = [libbpf, ours].map(|side| side.iter().map(&name).collect::<Vec<_>>());
        if names[0] != names[1] {
            self.field(aspect, "which", &names[0], &names[1]);
            return;
        }
        for ((theirs, mine), name) in libbpf.iter().zip(ours).zip(&names[0]) {
            self.field(aspect, name, theirs, mine);
        }
    }

    fn field<T: PartialEq + Debug>(&mut self, aspect: Aspect, about: &str, libbpf: &T, ours: &T) {
        self.note(aspect, about, libbpf == ours, || {
            [libbpf, ours].map(|side| format!("{side:?}"))
        });
    }

    /// Bytes as records of one size: the first different record is reported.
    fn records(&mut self, aspect: Aspect, about: &str, libbpf: &[u8], ours: &[u8], size: usize) {
        self.note(aspect, about, libbpf == ours, || {
            let count = |side: &[u8]| side.len() / size;
            let at = (0..)
                .find(|at| {
                    let record = |side| record(side, *at, size);
                    record(libbpf) != record(ours) || record(ours).is_none()
                })
                .unwrap_or_default();
            [libbpf, ours].map(|side| {
                let found = record(side, at, size).unwrap_or_default();
                let hex: String = found.iter().map(|byte| format!("{byte:02x}")).collect();
                format!("{} records, {at}: {hex}", count(side))
            })
        });
    }

    fn note(
        &mut self,
        aspect: Aspect,
        about: &str,
        equal: bool,
        answers: impl FnOnce() -> [String; 2],
    ) {
        let count = self.found.counts.entry(aspect).or_default();
        count.compared += 1;
        count.equal += u64::from(equal);
        if !equal {
            let [libbpf, ours] = answers();
            let at = format!("{} {about}", self.at);
            self.found.differences.push(ObjectDifference {
                object: self.object.to_owned(),
                at: at.trim().to_owned(),
                aspect,
                libbpf,
                ours,
            });
        }
    }
}

fn record(bytes: &[u8], at: usize, size: usize) -> Option<&[u8]> {
    let end = bytes.len().min((at + 1) * size);
    bytes
        .get(at * size..end)
        .filter(|record| !record.is_empty())
}
