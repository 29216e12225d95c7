//! The firewall of the examples, on one packet over and over.

use beebox::internal::object::Object;
use program::Program;

use super::kernel::KernelProgram;
use super::native::Ours;
use super::subject::{Verifier, failed};
use super::workload::Entries;
use super::{BEEBOX, INTERP, INTERP_TO_BEEBOX, KERNEL, TO_KERNEL, add_ratio};
use crate::Failure;
use crate::race::Race;
use crate::report::{Report, Target, Unit};

pub(super) const KEY: &str = "firewall";
const TITLE: &str = "firewall, one packet";
pub(super) const OBJECT: &[u8] = include_bytes!("../../../../examples/packets/firewall.bpf.o");

pub(super) fn measure(
    verifier: &Verifier,
    asks_kernel: bool,
    samples: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    let program = program(verifier)?;
    let ours = Ours::new(TITLE, &program, verifier)?;
    let threaded = Ours::new(TITLE, &program, verifier)?;
    for ours in [&ours, &threaded] {
        ours.fill(blocked_map(&program)?, &blocked())?;
    }
    let theirs = match asks_kernel {
        true => Some(KernelProgram::load(TITLE, &program)?),
        false => None,
    };
    if let Some(theirs) = &theirs {
        theirs.fill(blocked_map(&program)?, &blocked())?;
    }
    let mut race = Race::new(TITLE, &[()]);
    race.add_contender(BEEBOX, ours.contender(&packet()));
    race.add_contender(INTERP, threaded.contender(&packet()).in_interpreter());
    if let Some(theirs) = &theirs {
        race.add_contender(KERNEL, theirs.contender(packet()));
    }
    for (engine, nanoseconds) in race.run(samples)? {
        report.add_row(TITLE, engine, Unit::NsPerRun, nanoseconds);
    }
    add_ratio(report, TITLE, TO_KERNEL, (BEEBOX, KERNEL), Unit::NsPerRun);
    add_ratio(
        report,
        TITLE,
        INTERP_TO_BEEBOX,
        (INTERP, BEEBOX),
        Unit::NsPerRun,
    );
    if let Some(ratio) = report.value(TITLE, TO_KERNEL, Unit::Ratio) {
        report.add_figure(
            "firewall_vs_kernel",
            "time of the firewall on one packet over that of the kernel's test run",
            ratio,
            Some(Target::AtMost(1.0)),
        );
    }
    Ok(())
}

/// The firewall.
pub(super) fn program(verifier: &Verifier) -> Result<Program, Failure> {
    let object = Object::open(OBJECT).map_err(|error| failed(error.to_string()))?;
    let linked = object.link(&verifier.kernel);
    let mut linked = linked.map_err(|error| failed(error.to_string()))?;
    Ok(linked.programs.swap_remove(0).program)
}

/// Index of the map of networks that it blocks.
pub(super) fn blocked_map(program: &Program) -> Result<usize, Failure> {
    let mut maps = program.maps().iter();
    let found = maps.position(|def| def.name == "blocked");
    found.ok_or_else(|| failed("the firewall has no map `blocked`".into()))
}

/// Networks that it blocks: 64, none of which packets come from.
pub(super) fn blocked() -> Entries {
    (0..64)
        .map(|number| (vec![24, 0, 0, 0, 203, 0, number, 0], vec![0; 24]))
        .collect()
}

/// A TCP segment of an established connection.
fn packet() -> Vec<u8> {
    let mut packet = vec![0; 64];
    packet[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    packet[23] = 6;
    packet[26..34].copy_from_slice(&[192, 0, 2, 7, 192, 0, 2, 8]);
    packet[47] = 0x10;
    packet
}
