//! Packet filters: the two of the historical record, each on one packet that
//! stays in the cache and on many, and one that reads ancillary data.

use beebox::{Engine, Filter, Rules, Semantics, SockFilter};
use classic::text::{self, Form};
use classic::{Checked, check, convert};
use isa::ebpf::{Insn, RawInsn};
use packet::{Device, Metadata, Packet, VlanTag};
use spec::SplitMix;
use spec::context::{LEN, SK_BUFF_SIZE};
use sys::dpdk::Dpdk;
use sys::libpcap::Libpcap;

use super::{CHECKED, COMPILED, DPDK, DPDK_JIT, INTERP, LIBPCAP, RBPF};
use crate::race::{NO_ANSWER, Race};
use crate::report::{Report, Target, Unit};
use crate::traffic::{Frame, MANY, Traffic};
use crate::{Failure, native, peer, step};

/// A filter in the forms that race.
struct Case {
    name: &'static str,
    /// Compiled by tcpdump for Ethernet.
    program: &'static str,
    native: fn(&[u8]) -> u32,
}

const CASES: &[Case] = &[
    Case {
        name: "port 22",
        program: include_str!("../../programs/port-22.asm"),
        native: native::port_22,
    },
    Case {
        name: "tcp port 22 with payload",
        program: include_str!("../../programs/tcp-port-22-with-payload.asm"),
        native: native::tcp_port_22_with_payload,
    },
];

// The sets of packets, as workloads name them.
const ONE_PACKET: &str = "one packet";
const MANY_PACKETS: &str = "16,384 packets";

/// A filter of ancillary loads, of which there is the same by hand.
const LOADS: &str = "ancillary loads";
const LOADS_PROGRAM: &str = include_str!("../../programs/ancillary.asm");

/// A filter of many ancillary loads. A packet of the benchmark passes every test, so all
/// instructions are executed.
const MANY_LOADS: &str = "many ancillary loads";
type Ancillary = fn(&Packet<'_>) -> u32;

pub(super) fn measure(
    samples: u32,
    libpcap: Option<&Libpcap>,
    report: &mut Report,
) -> Result<(), Failure> {
    let sets = sets();
    let peers = Peers::new(libpcap, report);
    for case in CASES {
        let prepared = Prepared::new(case)?;
        for (set, traffic) in &sets {
            let workload = case.workload(set);
            let frames = traffic.frames();
            prepared.race(&workload, &frames, samples, &peers, report)?;
            prepared.cost_of_insns(&workload, &frames, report)?;
        }
    }
    race_ancillary(samples, report)?;
    summarise(&workloads(), report);
    let [port_22, with_payload] = [&CASES[0], &CASES[1]].map(|case| {
        let frames = sets[1].1.frames();
        let matching = frames.iter().filter(|frame| (case.native)(frame.data) != 0);
        100 * matching.count() / frames.len()
    });
    report.notes.push(format!(
        "`tcp port 22 with payload` is `tcp port 22 and (((ip[2:2] - ((ip[0]&0xf)<<2)) - \
         ((tcp[12]&0xf0)>>2)) != 0)`. The one packet is of an SSH session and matches; the \
         16,384 are a mix of what an office uplink carries, 60 to 128 bytes captured of each, in \
         random order: {port_22} % match the first filter and {with_payload} % the second."
    ));
    report.notes.push(
        "rbpf 0.4.1 runs the converted program with a byte swap after each load of more than a \
         byte, as it reads packets in host order."
            .into(),
    );
    Ok(())
}

/// The races alone.
pub(crate) fn race(
    samples: u32,
    libpcap: Option<&Libpcap>,
    report: &mut Report,
) -> Result<(), Failure> {
    let peers = Peers::new(libpcap, report);
    for case in CASES {
        let prepared = Prepared::new(case)?;
        for (set, traffic) in &sets() {
            let frames = traffic.frames();
            prepared.race(&case.workload(set), &frames, samples, &peers, report)?;
        }
    }
    race_ancillary(samples, report)
}

/// The workloads of [`race`], without the ancillary loads.
pub(crate) fn workloads() -> Vec<String> {
    let of = |case: &'static Case| [ONE_PACKET, MANY_PACKETS].map(|set| case.workload(set));
    CASES.iter().flat_map(of).collect()
}

/// The filter of many ancillary loads.
pub(crate) fn ancillary_workloads() -> Vec<String> {
    [ONE_PACKET, MANY_PACKETS]
        .map(|set| format!("{MANY_LOADS}, {set}"))
        .to_vec()
}

fn sets() -> [(&'static str, Traffic); 2] {
    [
        (ONE_PACKET, Traffic::ssh()),
        (MANY_PACKETS, Traffic::mixed(MANY)),
    ]
}

impl Case {
    fn workload(&self, set: &str) -> String {
        format!("{}, {set}", self.name)
    }
}

fn summarise(workloads: &[String], report: &mut Report) {
    let least = |engine, other, of: &str| {
        let chosen = workloads
            .iter()
            .map(String::as_str)
            .filter(|name| name.contains(of));
        report.least_speed_up(chosen, engine, other, Unit::NsPerRun)
    };
    let figures = [
        (
            "checked_vs_libpcap",
            "checked's speed over libpcap's: the least of 2 filters on 2 sets of packets",
            least(CHECKED, LIBPCAP, ""),
            Target::AtLeast(0.9),
        ),
        (
            "interp_vs_libpcap",
            "interp's speed over libpcap's: the least of the same four",
            least(INTERP, LIBPCAP, ""),
            Target::AtLeast(1.5),
        ),
        (
            "interp_vs_libpcap_one_packet",
            "the same on one packet: the lesser of 2 filters",
            least(INTERP, LIBPCAP, ONE_PACKET),
            Target::AtLeast(1.5),
        ),
        (
            "interp_vs_libpcap_many_packets",
            "the same on 16,384 packets: the lesser of 2 filters",
            least(INTERP, LIBPCAP, MANY_PACKETS),
            Target::AtLeast(1.5),
        ),
        (
            "interp_vs_rbpf",
            "interp's speed over rbpf's: the least of the same four",
            least(INTERP, RBPF, ""),
            Target::AtLeast(4.0),
        ),
    ];
    let per_insn = workloads
        .iter()
        .filter(|name| name.contains(ONE_PACKET))
        .filter_map(|workload| report.value(workload, INTERP, Unit::NsPerInsn))
        .reduce(f64::max);
    for (name, meaning, value, target) in figures {
        if let Some(value) = value {
            report.add_figure(name, meaning, value, Some(target));
        }
    }
    if let Some(value) = per_insn {
        report.add_figure(
            "interp_ns_per_insn",
            "ns an executed eBPF instruction, one packet: the greater of 2 filters",
            value,
            Some(Target::AtMost(1.0)),
        );
    }
}

fn assemble(program: &str) -> Vec<SockFilter> {
    text::read(program.as_bytes(), Some(Form::Asm)).expect("the committed program can be read")
}

/// The committed filter `port 22`.
pub(super) fn port_22() -> Vec<SockFilter> {
    assemble(CASES[0].program)
}

/// Libraries of the system that run filters.
struct Peers<'l> {
    libpcap: Option<&'l Libpcap>,
    dpdk: Option<Dpdk>,
}

impl Peers<'_> {
    fn new<'l>(libpcap: Option<&'l Libpcap>, report: &mut Report) -> Peers<'l> {
        let dpdk = Dpdk::load();
        report.notes.push(match &dpdk {
            Some(_) => "DPDK's librte_bpf runs the converted filters with 64-bit comparisons. Its \
                        verifier takes no 32-bit ones and no loops, so it runs nothing else here."
                .into(),
            None => "There is no librte_bpf on this machine (Debian: librte-bpf23 or later), so \
                     nothing is compared with DPDK's."
                .into(),
        });
        Peers { libpcap, dpdk }
    }
}

/// A case, ready to race.
struct Prepared<'c> {
    case: &'c Case,
    program: Vec<SockFilter>,
    checked: Checked,
    converted: Vec<Insn>,
    for_rbpf: Vec<u8>,
    for_dpdk: Vec<RawInsn>,
}

impl<'c> Prepared<'c> {
    fn new(case: &'c Case) -> Result<Prepared<'c>, Failure> {
        let program = assemble(case.program);
        let checked = check(&program, Rules::Capture).expect("the committed program is valid");
        let converted = convert(&checked, Semantics::Capture).into_insns();
        let for_rbpf = peer::bytes(&converted)
            .map_err(|unfit| Failure::UnsupportedConstruct(case.name, unfit))?;
        Ok(Prepared {
            case,
            program,
            checked,
            for_dpdk: peer::with_whole_jumps(&converted),
            converted,
            for_rbpf,
        })
    }

    fn race(
        &self,
        workload: &str,
        frames: &[Frame<'_>],
        samples: u32,
        peers: &Peers<'_>,
        report: &mut Report,
    ) -> Result<(), Failure> {
        let filters: Vec<Filter> = Engine::ALL
            .iter()
            .map(|&engine| {
                Filter::builder()
                    .engine(engine)
                    .build(&self.program)
                    .expect("the program was checked")
            })
            .collect();
        let theirs = peers
            .libpcap
            .and_then(|libpcap| libpcap.interpreter(self.program.clone()));
        let rbpf = peer::machine(&self.for_rbpf)
            .map_err(|unfit| Failure::UnsupportedConstruct(self.case.name, unfit))?;
        let native = self.case.native;

        let mut race = Race::new(workload, frames);
        for filter in &filters {
            let mut runner = filter.runner();
            race.add(filter.engine().name(), move |frame: &Frame<'_>| {
                let packet = Packet::captured(frame.data, frame.wire_len, &Metadata::UNKNOWN);
                runner.run(&packet).unwrap_or(NO_ANSWER)
            });
        }
        if let Some(theirs) = &theirs {
            race.add(LIBPCAP, |frame: &Frame<'_>| {
                theirs.run(frame.data, frame.wire_len)
            });
        }
        race.add(RBPF, |frame: &Frame<'_>| {
            peer::answer(&rbpf, frame.with_slack)
        });
        let dpdk = || peers.dpdk.as_ref()?.program(&self.for_dpdk);
        if let Some(mut program) = dpdk() {
            race.add(DPDK, move |frame: &Frame<'_>| {
                let value = program.interpret(frame.data);
                value.map_or(NO_ANSWER, |value| value as u32)
            });
        }
        if let Some(mut program) = dpdk().filter(sys::dpdk::DpdkProgram::is_compiled) {
            race.add(DPDK_JIT, move |frame: &Frame<'_>| {
                let value = program.run(frame.data);
                value.map_or(NO_ANSWER, |value| value as u32)
            });
        }
        race.add(COMPILED, move |frame: &Frame<'_>| native(frame.data));
        for (engine, nanoseconds) in race.run(samples)? {
            report.add_row(workload, engine, Unit::NsPerRun, nanoseconds);
        }
        Ok(())
    }

    /// Time for each executed instruction.
    fn cost_of_insns(
        &self,
        workload: &str,
        frames: &[Frame<'_>],
        report: &mut Report,
    ) -> Result<(), Failure> {
        let plain = classic::PlainProgram::prepare(&self.checked, Semantics::Capture);
        let (mut classic, mut ebpf, mut swapped) = (0u64, 0u64, 0u64);
        let mut context = [0; SK_BUFF_SIZE];
        for frame in frames {
            let packet = Packet::captured(frame.data, frame.wire_len, &Metadata::UNKNOWN);
            let mut executed = |_| classic += 1;
            let result = plain.trace(&packet, &mut SplitMix::new(1), &mut executed);
            context[LEN.offset as usize..][..4].copy_from_slice(&frame.wire_len.to_le_bytes());
            let count = step::count(&self.converted, frame.data, &context)
                .map_err(|not| Failure::NotCounted(self.case.name, not))?;
            assert_eq!(Ok(count.result), result, "the stepper counts another run");
            ebpf += u64::from(count.insns);
            swapped += u64::from(count.insns + count.wide_packet_loads);
        }
        for (engine, insns) in [
            (CHECKED, classic),
            (INTERP, ebpf),
            (LIBPCAP, classic),
            (RBPF, swapped),
        ] {
            if let Some(per_run) = report.value(workload, engine, Unit::NsPerRun) {
                let per_frame = insns as f64 / frames.len() as f64;
                report.add_row(workload, engine, Unit::NsPerInsn, per_run / per_frame);
            }
        }
        Ok(())
    }
}

/// The source of [`MANY_LOADS`].
fn many_loads() -> String {
    const EIGHT_TIMES: &str = include_str!("../../programs/many-ancillary.asm");
    format!("{}ret #-1\ndrop: ret #0\n", EIGHT_TIMES.repeat(8))
}

/// Kernel semantics, which libpcap does not have; rbpf does not know the calls.
fn race_ancillary(samples: u32, report: &mut Report) -> Result<(), Failure> {
    let loads = assemble(LOADS_PROGRAM);
    race_one_ancillary(LOADS, &loads, Some(native::ancillary), samples, report)?;
    let many = assemble(&many_loads());
    race_one_ancillary(MANY_LOADS, &many, None, samples, report)
}

fn race_one_ancillary(
    name: &str,
    program: &[SockFilter],
    native: Option<Ancillary>,
    samples: u32,
    report: &mut Report,
) -> Result<(), Failure> {
    let filters: Vec<Filter> = Engine::ALL
        .iter()
        .map(|&engine| {
            Filter::builder()
                .semantics(Semantics::Kernel)
                .engine(engine)
                .build(program)
                .expect("the committed program is valid")
        })
        .collect();
    let metadata: Vec<Metadata> = (0..64).map(received).collect();
    for (set, traffic) in &sets() {
        let workload = format!("{name}, {set}");
        let frames = traffic.frames();
        let packets: Vec<Packet<'_>> = frames
            .iter()
            .zip(metadata.iter().cycle())
            .map(|(frame, meta)| Packet::whole(frame.data, meta))
            .collect();
        let mut race = Race::new(&workload, &packets);
        for filter in &filters {
            let mut runner = filter.runner();
            race.add(filter.engine().name(), move |packet: &Packet<'_>| {
                runner.run(packet).unwrap_or(NO_ANSWER)
            });
        }
        if let Some(native) = native {
            race.add(COMPILED, move |packet: &Packet<'_>| native(packet));
        }
        for (engine, nanoseconds) in race.run(samples)? {
            report.add_row(&workload, engine, Unit::NsPerRun, nanoseconds);
        }
    }
    Ok(())
}

/// A packet of flow number `flow` as a network card hands it over.
fn received(flow: u32) -> Metadata {
    Metadata {
        protocol: 0x0800,
        pkt_type: 0,
        device: Some(Device {
            ifindex: 2,
            hatype: 1,
        }),
        mark: 0x1200 | flow,
        queue: flow as u16 % 8,
        hash: flow.wrapping_mul(0x9e37_79b1) | 1,
        cpu: flow % 2,
        vlan: Some(VlanTag {
            protocol: 0x8100,
            tci: 100 | (flow as u16 % 8) << 13,
        }),
        link_header: Some(0),
        network_header: 14,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_packet_takes_the_long_way() {
        let ssh = Traffic::ssh();
        let frame = ssh.frames()[0];
        for case in CASES {
            assert_ne!((case.native)(frame.data), 0, "{}", case.name);
        }
        for flow in 0..64 {
            let meta = received(flow);
            let answer = native::ancillary(&Packet::whole(frame.data, &meta));
            assert_eq!(answer, u32::MAX, "flow {flow}");
        }
    }
}
