//! Objects: opening them, and linking them for the running kernel.

use std::hint::black_box;
use std::sync::Arc;

use beebox::internal::object::Object;
use spec::Kernel;
use spec::kernel::Source;
use sys::libbpf::Libbpf;

use super::{BEEBOX, LIBBPF, Peer, add_speed_up};
use crate::Failure;
use crate::race::{NO_ANSWER, Race};
use crate::report::{Report, Unit};

const HUNDRED: &[u8] = include_bytes!("../../objects/fields-100.bpf.o");
const MANY: &[u8] = include_bytes!("../../objects/fields-10000.bpf.o");

/// Beebox, with the kernel's types parsed once for all objects.
const TYPES_AT_HAND: &str = "beebox, types at hand";

const OPEN: [(&str, &[u8]); 2] = [
    ("open, 100 relocations", HUNDRED),
    ("open, 10,000 relocations", MANY),
];
const LINK: [(&str, &[u8]); 2] = [("link, 100 relocations", HUNDRED), (LINK_MANY, MANY)];
pub(super) const LINK_MANY: &str = "link, 10,000 relocations";

pub(super) fn measure(samples: u32, libbpf: Peer<'_>, report: &mut Report) -> Result<(), Failure> {
    for (workload, file) in OPEN {
        let mut race = Race::new(workload, &[()]);
        race.add(BEEBOX, |()| open(file));
        if let Some(libbpf) = libbpf {
            race.add(LIBBPF, |()| open_with(libbpf, file));
        }
        add_rows(workload, race, samples, report)?;
    }
    add_speed_up(
        report,
        "open_vs_libbpf",
        "speed over libbpf's, opening an object: the lesser of 2",
        &OPEN.map(|(workload, _)| workload),
    );
    let Some(kernel) = kernel() else {
        return Ok(());
    };
    for (workload, file) in LINK {
        let mut race = Race::new(workload, &[()]);
        race.add(BEEBOX, |()| link(file));
        race.add(TYPES_AT_HAND, |()| link_for(file, &kernel));
        if let Some(libbpf) = libbpf.filter(|libbpf| libbpf.has_stand_in()) {
            race.add(LIBBPF, |()| link_with(libbpf, file));
        }
        add_rows(workload, race, samples, report)?;
    }
    add_speed_up(
        report,
        "link_vs_libbpf",
        "speed over libbpf's, from a file to linked programs, the kernel's types parsed on the \
         way: the lesser of 2",
        &LINK.map(|(workload, _)| workload),
    );
    Ok(())
}

fn add_rows(
    workload: &str,
    race: Race<'_, ()>,
    samples: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    for (engine, nanoseconds) in race.run(samples)? {
        report.add_row(workload, engine, Unit::Micros, nanoseconds / 1e3);
    }
    Ok(())
}

/// Opens; the slots of all programs.
fn open(file: &[u8]) -> u32 {
    let Ok(object) = Object::open(black_box(file)) else {
        return NO_ANSWER;
    };
    let slots = object.programs().map(|(_, code)| code.len() as u32);
    slots.sum()
}

fn open_with(libbpf: &Libbpf, file: &[u8]) -> u32 {
    let opened = libbpf.open(file);
    opened.map_or(NO_ANSWER, |object| object.slots() as u32)
}

/// Opens and links, with nothing known of the kernel; the slots of all programs.
fn link(file: &[u8]) -> u32 {
    kernel().map_or(NO_ANSWER, |kernel| link_for(file, &kernel))
}

/// The running kernel, of which nothing but its BTF is known. The BTF is parsed anew.
fn kernel() -> Option<Kernel> {
    let types = sys::kernel::btf().ok()?;
    Some(Kernel::default().with_btf(Arc::new(types), Source::Running))
}

fn link_for(file: &[u8], kernel: &Kernel) -> u32 {
    let Ok(object) = Object::open(black_box(file)) else {
        return NO_ANSWER;
    };
    let Ok(linked) = object.link(kernel) else {
        return NO_ANSWER;
    };
    let slots = linked.programs.iter();
    slots.map(|it| it.program.insns().len() as u32).sum()
}

fn link_with(libbpf: &Libbpf, file: &[u8]) -> u32 {
    let Ok(mut object) = libbpf.open(file) else {
        return NO_ANSWER;
    };
    let slots = object.slots() as u32;
    object.load().map_or(NO_ANSWER, |()| slots)
}

/// Links the large object, in a process that does nothing else; says whether it
/// could.
pub(super) fn link_many() -> bool {
    link(MANY) != NO_ANSWER
}

/// Links an object with libbpf.
pub(super) fn link_many_with(libbpf: &Libbpf) -> bool {
    link_with(libbpf, MANY) != NO_ANSWER
}
