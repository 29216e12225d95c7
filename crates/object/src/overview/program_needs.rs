//! Needs of a program by its properties: program type, attach type, load flags.

use spec::programs::{AttachType, LoadFlags};
use spec::since::Feature;

use super::{RequiredFeature, Requirement};
use crate::programs::ProgramDef;

pub(super) fn needs(code: &ProgramDef<'_>) -> Vec<Requirement> {
    let mut needs = Vec::new();
    let Some(kind) = code.kind else {
        return needs;
    };
    needs.push(Requirement::of(
        RequiredFeature::ProgramType(kind),
        Some(kind.since()),
    ));
    if let Some(attach) = code.attach.filter(|_| names_attach(code)) {
        needs.push(Requirement::of(
            RequiredFeature::AttachType(attach),
            Some(attach.since()),
        ));
    }
    let flags = code.flags.with(code.section_flags());
    if flags.has(LoadFlags::XDP_HAS_FRAGS) {
        needs.push(Requirement::feature(Feature::XdpFragments));
    }
    if flags.has(LoadFlags::SLEEPABLE) {
        needs.extend(Feature::of_sleepable(kind, code.attach).map(Requirement::feature));
    }
    needs
}

/// True if the kernel must know the attach type: libbpf omits optional ones, and some
/// section names only imply the usual one.
fn names_attach(code: &ProgramDef<'_>) -> bool {
    let old_name = code.section_name.as_bytes().starts_with(b"tc/");
    !old_name && code.attach != Some(AttachType::Xdp)
}
