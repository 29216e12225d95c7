//! The kernel's BTF: parsing, indexing and lookup.

use std::path::Path;

use btf::Btf;
use sys::mapping::KernelFile;

use super::{BEEBOX, KERNEL_TYPES, LIBBPF, Peer, add_speed_up};
use crate::Failure;
use crate::race::{NO_ANSWER, Race};
use crate::report::{Report, Target, Unit};

pub(super) const WORKLOAD: &str = "the kernel's types";

/// Parses, from the file; the number of types, `void` among them.
pub(super) fn parse() -> u32 {
    let Ok(bytes) = KernelFile::open(KERNEL_TYPES) else {
        return NO_ANSWER;
    };
    Btf::parse(&*bytes).map_or(NO_ANSWER, |types| types.len() as u32)
}

pub(super) fn measure(samples: u32, libbpf: Peer<'_>, report: &mut Report) -> Result<(), Failure> {
    let file = Path::new(KERNEL_TYPES);
    if !file.exists() {
        let note = format!("skipped: this kernel has no {KERNEL_TYPES}, so no types were parsed");
        report.notes.push(note);
        return Ok(());
    }
    let mut race = Race::new(WORKLOAD, &[()]);
    race.add(BEEBOX, |()| parse());
    if let Some(libbpf) = libbpf {
        race.add(LIBBPF, |()| {
            libbpf.parse_btf_file(file).unwrap_or(NO_ANSWER)
        });
    }
    for (engine, nanoseconds) in race.run(samples)? {
        report.add_row(WORKLOAD, engine, Unit::Micros, nanoseconds / 1e3);
        if engine == BEEBOX {
            report.add_figure(
                "btf_parse_ms",
                "ms to read and parse the kernel's types",
                nanoseconds / 1e6,
                Some(Target::AtMost(15.0)),
            );
        }
    }
    add_speed_up(
        report,
        "btf_vs_libbpf",
        "speed over libbpf's, reading and parsing the kernel's types",
        &[WORKLOAD],
    );
    Ok(())
}
