//! Verdicts for releases of Linux other than the one whose rules this verifier has.
//!
//! What the tables of releases ([`spec::since`]) know to be absent refuses a program, where Linux
//! looks for it at load: its type, attach type and load flags, opcodes, and of what the walk
//! reached helpers, kfuncs, other instructions and maps with their flags. Special fields of values
//! are plain bytes to a release that does not know them. Other programs have the verdict of the rules
//! if the release was compared with what the table of behaviours ([`spec::behaviour`]) says of it;
//! otherwise nothing is known, unless the caller takes the rules that are there
//! ([`Options::assume_rules`]). Linear in the instructions.
//!
//! [`Options::assume_rules`]: crate::Options::assume_rules

use std::collections::BTreeSet;
use std::fmt;

use isa::ebpf::{Callee, Imm64, Insn};
use program::{ExternResolution, ExternSymbolKind, MapId, Program};
use spec::helpers::HelperId;
use spec::maps::MapKind;
use spec::programs::{AttachType, LoadFlags, ProgramType, Sleeps};
use spec::since::{Feature, Release, Since, has_loop, kfunc};

use crate::input::Input;
use crate::rejection;
use crate::type_rules::TypeRules;
use crate::verdict::{Refusal, Verdict};

/// Release of Linux whose rules this verifier has.
pub const RULES: Release = Release::LINUX_6_18;

/// What a program needs of the kernel's release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// A helper.
    Helper(HelperId),
    /// A kfunc, by name.
    Kfunc(String),
    /// A kind of maps.
    MapKind(MapKind),
    /// A flag, by name, of a map.
    MapFlag {
        /// Name of the flag.
        flag: &'static str,
        /// Name of the map.
        map: String,
    },
    /// A type of programs.
    ProgramType(ProgramType),
    /// An attach type.
    AttachType(AttachType),
    /// A load flag, by name.
    LoadFlag(&'static str),
    /// Anything else that a release brought.
    Feature(Feature),
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Requirement::Helper(helper) => f.write_str(helper.entry().name),
            Requirement::Kfunc(name) => write!(f, "kfunc {name}"),
            Requirement::MapKind(kind) => write!(f, "map type {}", kind.name()),
            Requirement::MapFlag { flag, map } => write!(f, "{flag} of map {map}"),
            Requirement::ProgramType(kind) => write!(f, "program type {}", kind.name()),
            Requirement::AttachType(attach) => write!(f, "attach type {}", attach.name()),
            Requirement::LoadFlag(name) => write!(f, "load flag {name}"),
            Requirement::Feature(feature) => f.write_str(feature.name()),
        }
    }
}

/// Most instructions of a program before [`Feature::LongPrograms`].
const FEW_INSNS: usize = 4096;

/// The verdict for a kernel of another release, with what the rules of [`RULES`] gave.
/// `is_reached` tells which instructions the walk came to.
pub(crate) fn verdict(
    input: &Input<'_>,
    release: Release,
    is_reached: impl Fn(usize) -> bool,
    given: Verdict,
) -> Verdict {
    let mut absent = Absent {
        release,
        has_rules: input.has_rules,
        newest: None,
    };
    of_program(input, &mut absent);
    of_insns(input, &is_reached, &mut absent);
    if input.has_rules && matches!(given, Verdict::Refused(_)) {
        return given;
    }
    match absent.newest.map(|(_, refusal)| refusal) {
        Some(refusal) => Verdict::Refused(refusal),
        None if input.has_rules || input.options.assume_rules => given,
        None => Verdict::Unsupported(format!("rules of Linux {release}")),
    }
}

/// The newest of the things that the release lacks, and the first of these.
struct Absent {
    release: Release,
    /// The kernel's own registry and rules have said what helpers, kfuncs and kinds of maps there are.
    has_rules: bool,
    newest: Option<(Release, Refusal)>,
}

impl Absent {
    fn require(&mut self, since: Since, insn: Option<usize>, what: Requirement) {
        let known = self.newest.as_ref().map(|(release, _)| *release);
        if since.release <= known.unwrap_or(self.release) {
            return;
        }
        let rejection = rejection::Program::ReleaseLacks {
            what,
            since: since.release,
            kernel: self.release,
        };
        let refusal = Refusal::new(rejection.into(), insn.map(|insn| insn as u32));
        self.newest = Some((since.release, refusal));
    }

    /// Requires what the registry of a kernel has.
    fn offered(&mut self, since: Since, insn: Option<usize>, what: Requirement) {
        if !self.has_rules {
            self.require(since, insn, what);
        }
    }

    fn feature(&mut self, feature: Feature, insn: Option<usize>) {
        if !feature.is_in(self.release) {
            self.require(feature.since(), insn, Requirement::Feature(feature));
        }
    }
}

/// The feature without which a sleepable program is refused. Releases from 5.10 on take tracing
/// programs of some kinds that later ones refuse.
fn sleepable_feature(program: &Program) -> Option<Feature> {
    let kind = program.kind();
    match kind.sleeps() {
        Sleeps::ByHook => Some(Feature::Sleepable),
        Sleeps::Never | Sleeps::Since(_) | Sleeps::Always => {
            Feature::of_sleepable(kind, program.attach_type())
        }
    }
}

fn of_program(input: &Input<'_>, absent: &mut Absent) {
    let program = input.program;
    let kind = program.kind();
    absent.offered(kind.since(), None, Requirement::ProgramType(kind));
    let attach = program.attach_type();
    if let Some(attach) = attach.filter(|_| TypeRules::of(kind).attach_types.is_always_checked()) {
        absent.offered(attach.since(), None, Requirement::AttachType(attach));
    }
    let flags = program.flags();
    if flags.has(LoadFlags::XDP_HAS_FRAGS) {
        absent.feature(Feature::XdpFragments, None);
    }
    if flags.has(LoadFlags::SLEEPABLE)
        && let Some(feature) = sleepable_feature(program)
    {
        absent.feature(feature, None);
    }
    if input.insns.len() > FEW_INSNS {
        absent.feature(Feature::LongPrograms, None);
    }
    if Feature::Loops.since().release > absent.release && has_loop(&input.insns) {
        absent.feature(Feature::Loops, None);
    }
}

fn of_insns(input: &Input<'_>, is_reached: &impl Fn(usize) -> bool, absent: &mut Absent) {
    let mut maps = BTreeSet::new();
    let mut jumps_on = false;
    let mut calls = false;
    for (at, insn) in input.insns.iter().enumerate() {
        let feature = match insn {
            // Stands for the map's descriptor, which the loader puts there.
            Insn::LoadImm64 {
                imm: Imm64::MapIndex { index, .. },
                ..
            } => {
                if is_reached(at) && maps.insert(*index) {
                    of_map(input, MapId(*index as u32), at, absent);
                }
                None
            }
            Insn::LoadImm64 {
                imm: Imm64::MapIndexValue { index, .. },
                ..
            } => {
                if is_reached(at) && maps.insert(*index) {
                    of_map(input, MapId(*index as u32), at, absent);
                }
                Some(Feature::GlobalData)
            }
            insn => Feature::of(*insn),
        };
        let is_reached = is_reached(at);
        let is_checked = |feature: &Feature| is_reached || feature.is_checked_in_dead_code(*insn);
        if let Some(feature) = feature.filter(is_checked) {
            absent.feature(feature, Some(at));
        }
        match insn {
            Insn::Call(callee) if is_reached => match callee {
                Callee::Helper(_) => {
                    if let Some(helper) = HelperId::of_call(*callee) {
                        jumps_on |= helper == HelperId::TailCall;
                        absent.offered(helper.entry().since, Some(at), Requirement::Helper(helper));
                    }
                }
                Callee::Local(_) => calls = true,
                Callee::Kfunc { id, .. } => {
                    if let Some((name, since)) = called_kfunc(input, *id) {
                        absent.offered(since, Some(at), Requirement::Kfunc(name.to_owned()));
                    }
                }
            },
            _ => {}
        }
    }
    if jumps_on && calls {
        absent.feature(Feature::TailCallsWithCalls, None);
    }
}

/// Name and first release of the kfunc with this BTF id.
fn called_kfunc<'a>(input: &'a Input<'_>, id: i32) -> Option<(&'a str, Since)> {
    let is_called = |resolution| matches!(resolution, ExternResolution::Btf { id: found, .. } if found.0 == id as u32);
    let mut externs = input.program.externs().iter();
    let found = externs.find(|symbol| {
        matches!(symbol.kind, ExternSymbolKind::Kfunc(_)) && is_called(symbol.resolution)
    })?;
    Some((&found.name, kfunc(&found.name)?))
}

fn of_map(input: &Input<'_>, id: MapId, at: usize, absent: &mut Absent) {
    let Some(map) = input.program.map(id) else {
        return;
    };
    let params = [
        Some(&map.params),
        map.inner.as_ref().map(|inner| &inner.params),
    ];
    for params in params.into_iter().flatten() {
        if let Some(kind) = params.kind() {
            absent.offered(kind.since(), Some(at), Requirement::MapKind(kind));
        }
        if params.extra != 0 {
            absent.feature(Feature::MapExtra, Some(at));
        }
    }
    // libbpf maps global data into memory where the kernel supports that.
    let is_data = matches!(
        &input.insns[at],
        Insn::LoadImm64 {
            imm: Imm64::MapIndexValue { .. },
            ..
        }
    );
    for (flag, since) in map.params.flags.since().filter(|_| !is_data) {
        let map = map.name.to_string();
        absent.require(since, Some(at), Requirement::MapFlag { flag, map });
    }
}
