//! Seccomp filters: a list of allowed system calls, compared one by one as
//! libseccomp writes it by default.

use beebox::seccomp::{SeccompData, SeccompFilter};
use beebox::{Engine, SockFilter};
use classic::{Rules, Semantics, check, convert};
use sys::libpcap::Libpcap;

use super::{COMPILED, INTERP, LIBPCAP, RBPF};
use crate::race::Race;
use crate::report::{Report, Target, Unit};
use crate::{Failure, native, peer};

/// `AUDIT_ARCH_X86_64`.
pub(crate) const ARCH: u32 = 0xc000_003e;
/// `SECCOMP_RET_KILL_PROCESS`.
pub(crate) const KILL: u32 = 0x8000_0000;
/// `SECCOMP_RET_ERRNO` with EPERM.
pub(crate) const ERRNO: u32 = 0x0005_0001;
/// `SECCOMP_RET_ALLOW`.
pub(crate) const ALLOW: u32 = 0x7fff_0000;

const UNIT: Unit = Unit::MillionRunsPerSecond;

/// One system call in the forms that the engines take.
struct Call {
    data: SeccompData,
    bytes: [u8; 64],
    /// Every word swapped: libpcap reads words in network order.
    swapped: [u8; 64],
}

impl Call {
    fn new(number: u32) -> Call {
        let data = SeccompData {
            nr: number as i32,
            arch: ARCH,
            instruction_pointer: 0x7f00_1234_5678,
            args: [3, 0x7fff_0000_1000, 4096, 0, 0, 0],
        };
        let bytes = data.to_bytes();
        let mut swapped = bytes;
        swapped.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        Call {
            data,
            bytes,
            swapped,
        }
    }
}

pub(super) fn measure(
    samples: u32,
    libpcap: Option<&Libpcap>,
    report: &mut Report,
) -> Result<(), Failure> {
    for (rules, target) in [(2, 1.0), (200, 5.0)] {
        race(rules, samples, libpcap, report)?;
        if let Some(value) = least_speed_up(rules, INTERP, LIBPCAP, report) {
            report.add_figure(
                format!("seccomp{rules}_vs_libpcap"),
                format!(
                    "interp's speed over libpcap's, {rules} rules: the lesser of a call that \
                     matches the last and one that matches none"
                ),
                value,
                Some(Target::AtLeast(target)),
            );
        }
    }
    Ok(())
}

/// The races of filters with so many rules.
pub(crate) fn race(
    rules: usize,
    samples: u32,
    libpcap: Option<&Libpcap>,
    report: &mut Report,
) -> Result<(), Failure> {
    let allowed = allowed(rules);
    let last = *allowed.last().expect("there are rules");
    for (workload, number) in workloads(rules).iter().zip([last, 439]) {
        race_on_call(workload, &allowed, number, samples, libpcap, report)?;
    }
    Ok(())
}

/// The least speed-up of the races of filters with so many rules.
pub(crate) fn least_speed_up(
    rules: usize,
    engine: &str,
    other: &str,
    report: &Report,
) -> Option<f64> {
    let workloads = workloads(rules);
    report.least_speed_up(workloads.iter().map(String::as_str), engine, other, UNIT)
}

fn workloads(rules: usize) -> [String; 2] {
    ["the last matches", "none matches"].map(|which| format!("seccomp, {rules} rules, {which}"))
}

fn race_on_call(
    workload: &str,
    allowed: &[u32],
    number: u32,
    samples: u32,
    libpcap: Option<&Libpcap>,
    report: &mut Report,
) -> Result<(), Failure> {
    let program = compare_one_by_one(allowed);
    let theirs = libpcap.and_then(|libpcap| libpcap.interpreter(program.clone()));
    let checked = check(&program, Rules::Seccomp).expect("the program is valid");
    let converted = convert(&checked, Semantics::Kernel).into_insns();
    let unfit = |unfit| Failure::UnsupportedConstruct("seccomp", unfit);
    let for_rbpf = peer::bytes(&converted).map_err(unfit)?;
    let rbpf = peer::machine(&for_rbpf).map_err(unfit)?;

    let calls = [Call::new(number)];
    let filters: Vec<(Engine, SeccompFilter)> = Engine::ALL
        .iter()
        .map(|&engine| {
            let filter = SeccompFilter::builder().engine(engine).build(&program);
            (engine, filter.expect("the program is valid"))
        })
        .collect();
    let mut race = Race::new(workload, &calls);
    for (engine, filter) in &filters {
        let mut runner = filter.runner();
        race.add(engine.name(), move |call: &Call| runner.run(&call.data));
    }
    if let Some(theirs) = &theirs {
        race.add(LIBPCAP, |call: &Call| theirs.run(&call.swapped, 64));
    }
    race.add(RBPF, |call: &Call| peer::answer(&rbpf, &call.bytes));
    race.add(COMPILED, |call: &Call| {
        native::allow_list(&call.data, allowed)
    });
    for (engine, nanoseconds) in race.run(samples)? {
        report.add_row(workload, engine, UNIT, 1000.0 / nanoseconds);
    }
    Ok(())
}

/// Numbers with gaps, as real lists have them.
fn allowed(rules: usize) -> Vec<u32> {
    (0..).filter(|number| number % 5 < 3).take(rules).collect()
}

/// The filter: architecture, then the number against each rule.
fn compare_one_by_one(allowed: &[u32]) -> Vec<SockFilter> {
    const LOAD: u16 = 0x20;
    const EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const NUMBER_AT: u32 = 0;
    const ARCH_AT: u32 = 4;
    let mut program = vec![
        SockFilter::new(LOAD, 0, 0, ARCH_AT),
        SockFilter::new(EQUAL, 1, 0, ARCH),
        SockFilter::new(RETURN, 0, 0, KILL),
        SockFilter::new(LOAD, 0, 0, NUMBER_AT),
    ];
    for (at, &number) in allowed.iter().enumerate() {
        let to_allow = (allowed.len() - at) as u8;
        program.push(SockFilter::new(EQUAL, to_allow, 0, number));
    }
    program.push(SockFilter::new(RETURN, 0, 0, ERRNO));
    program.push(SockFilter::new(RETURN, 0, 0, ALLOW));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_allows_the_list_and_nothing_else() {
        let allowed = allowed(200);
        let settings = SeccompFilter::builder().engine(Engine::Checked);
        let filter = settings.build(&compare_one_by_one(&allowed));
        let filter = filter.expect("the program is valid");
        let mut filter = filter.runner();
        for number in 0..500 {
            let expected = if allowed.contains(&number) {
                ALLOW
            } else {
                ERRNO
            };
            assert_eq!(filter.run(&Call::new(number).data), expected, "{number}");
        }
        let foreign = SeccompData {
            arch: 3,
            ..Call::new(0).data
        };
        assert_eq!(filter.run(&foreign), KILL);
    }
}
