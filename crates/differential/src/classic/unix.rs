//! Sockets: verdict, errno and returned value, through an AF_UNIX pair.
//!
//! A datagram arrives cut to the filter's return value, or not at all for 0, so
//! each program is compared twice: as it is, on packets of many lengths, and as a
//! [`state_dump`] of the whole values that the model returned for them.

use super::cases::{Case, accept, run};
use super::{
    Disagreement, FilterComparison, Unavailable, compare_seeds, in_own_namespace, unavailable,
};
use classic::{PlainProgram, Rules, Semantics};
use isa::classic::{AD_OFFSET, AluOp, Extension, Insn, Operand, Size, SockFilter};
use packet::{Metadata, Packet};
use spec::SplitMix;
use std::ops::Range;
use sys::Errno;
use sys::network::OwnNamespace;
use sys::socket::DatagramPair;
use testkit::generate::{Dialect, Generator};
use testkit::state_dump::{Ladder, state_dump};

/// Bytes up to which a datagram is one piece of memory in the kernel; netlink
/// attributes are not looked for in longer ones.
const LINEAR: usize = 15_000;
const LARGEST: usize = 70_000;

/// Compares one generated program for each seed.
pub fn compare_with_kernel(seeds: Range<u64>) -> Result<FilterComparison, Unavailable> {
    in_own_namespace(|namespace| {
        let mut oracle = Oracle::open(namespace)?;
        let mut comparison = FilterComparison::default();
        compare_seeds(
            seeds,
            &mut comparison,
            question,
            |program, packets, found| oracle.compare(program, packets, found),
        )
        .map_err(unavailable("AF_UNIX socket pair"))?;
        Ok(comparison)
    })
}

/// Compares every 16-bit opcode, then every offset in the ancillary area with
/// every size, one program each.
pub fn compare_every_opcode() -> Result<FilterComparison, Unavailable> {
    const OPCODES: u64 = 1 << 16;
    let area = (AD_OFFSET - 8)..=u32::MAX;
    let loads: Vec<SockFilter> = area
        .flat_map(|k| [Size::B, Size::H, Size::W].map(|size| Insn::LoadAbs { size, k }.encode()))
        .collect();
    in_own_namespace(|namespace| {
        let mut oracle = Oracle::open(namespace)?;
        let mut comparison = FilterComparison::default();
        let packets: Vec<Vec<u8>> = vec![vec![], vec![0x45; 9], (1..80).collect()];
        let question = |number: u64| {
            let insn = match number.checked_sub(OPCODES) {
                Some(load) => loads[load as usize],
                None => SockFilter::new(number as u16, 0, 0, 1),
            };
            let returned = Insn::RetA.encode();
            (vec![insn, returned, returned], packets.clone())
        };
        let all = 0..OPCODES + loads.len() as u64;
        compare_seeds(all, &mut comparison, question, |program, packets, found| {
            oracle.compare(program, packets, found)
        })
        .map_err(unavailable("AF_UNIX socket pair"))?;
        Ok(comparison)
    })
}

/// Case lines (see [`cases`](super::cases)) for programs from these seeds, short
/// ones on short packets, each answer confirmed by the kernel.
pub fn record_cases(seeds: Range<u64>) -> Result<Vec<Case>, Unavailable> {
    in_own_namespace(|namespace| {
        let mut oracle = Oracle::open(namespace)?;
        let mut cases = Vec::new();
        for seed in seeds {
            let (program, mut packets) = question(seed);
            packets.retain(|packet| packet.len() <= 48);
            // Any one, and the longest, on which fewest loads fail.
            let any = Generator::new(seed).below(packets.len() as u32) as usize;
            let last = packets.len() - 1;
            packets = vec![packets[any].clone(), packets[last].clone()];
            packets.dedup();
            let mut found = FilterComparison::default();
            let same = oracle.compare(&program, &packets, &mut found);
            let confirmed = matches!(same, Ok(None)) && !depends_on_chance(&program);
            if program.len() <= 20 && confirmed {
                cases.push(Case::answered_by_model(program, packets));
            }
        }
        Ok(cases)
    })
}

/// Beyond what the largest converted program is charged.
pub(super) const OPTMEM_MAX: u32 = 1 << 24;

/// A program and its packets from a seed.
fn question(seed: u64) -> (Vec<SockFilter>, Vec<Vec<u8>>) {
    let mut generator = Generator::new(seed);
    let program = match seed % 400 {
        0 => generator.program_at_the_border(),
        n if n % 50 == 5 => generator.program_of_jumps(),
        n if n % 3 == 1 => generator.mutant(Dialect::SocketWithoutChance),
        _ => {
            let len = generator.program_len();
            generator.program(Dialect::SocketWithoutChance, len)
        }
    };
    let mut lengths = vec![0, 1, 2, 3, 4];
    lengths.extend((0..6).map(|_| 5 + generator.below(60) as usize));
    lengths.extend((0..2).map(|_| 65 + generator.below(300) as usize));
    if seed.is_multiple_of(8) {
        lengths.push(300 + generator.below(2000) as usize);
    }
    if seed.is_multiple_of(64) {
        lengths.push(LINEAR + generator.below((LARGEST - LINEAR) as u32) as usize);
    }
    lengths.sort_unstable();
    lengths.dedup();
    let attributes = looks_for_attributes(&program);
    let packet = |len| {
        if attributes && generator.one_in(2) {
            generator.netlink_attributes(len)
        } else {
            generator.packet_bytes(len)
        }
    };
    let packets = lengths.into_iter().map(packet).collect();
    (program, packets)
}

struct Oracle {
    pair: DatagramPair,
    received: Vec<u8>,
}

impl Oracle {
    fn open(namespace: &OwnNamespace) -> Result<Oracle, Unavailable> {
        // Out of the way, for all but the comparison of limits.
        namespace
            .set_optmem_max(OPTMEM_MAX)
            .map_err(unavailable("net.core.optmem_max"))?;
        let pair = DatagramPair::new(LARGEST).map_err(unavailable("AF_UNIX socket pair"))?;
        Ok(Oracle {
            pair,
            received: vec![0; LARGEST],
        })
    }

    fn compare(
        &mut self,
        program: &[SockFilter],
        packets: &[Vec<u8>],
        found: &mut FilterComparison,
    ) -> Result<Option<Disagreement>, Errno> {
        let model = accept(program);
        let kernel = self.pair.attach(program);
        let checked = match (&model, kernel) {
            (Ok(checked), Ok(())) => checked,
            (Err(refusal), Err(Errno(errno))) if refusal.errno == errno => {
                found.coverage.refuse(refusal);
                return Ok(None);
            }
            _ => {
                let model = model.map(|_| ());
                return Ok(Some(Disagreement::Verdict { kernel, model }));
            }
        };
        found.coverage.accept();
        if depends_on_chance(program) {
            return Ok(None);
        }
        let packets: Vec<&[u8]> = packets
            .iter()
            .map(|packet| &packet[..])
            .filter(|packet| packet.len() <= LINEAR || !looks_for_attributes(program))
            .collect();
        let prepared = PlainProgram::prepare(checked, Semantics::Kernel);
        let mut values = Vec::with_capacity(packets.len());
        for (number, &packet) in packets.iter().enumerate() {
            let value = run(&prepared, packet);
            values.push((packet.len() as u32, value));
            if number == packets.len() / 2 {
                count(program, &prepared, packet, found);
            }
            found.runs += 1;
            if let Some(difference) = self.pass(packet, value)? {
                return Ok(Some(difference));
            }
        }
        match state_dump(program, Ladder::BY_LENGTH, &values) {
            Some(state_dump) => self.compare_state_dump(&state_dump, &packets),
            None => Ok(None),
        }
    }

    fn compare_state_dump(
        &mut self,
        state_dump: &[SockFilter],
        packets: &[&[u8]],
    ) -> Result<Option<Disagreement>, Errno> {
        let (checked, kernel) = match (accept(state_dump), self.pair.attach(state_dump)) {
            (Ok(checked), Ok(())) => (checked, ()),
            // A state dump may be too long where its program is not.
            (Err(refusal), Err(Errno(errno))) if refusal.errno == errno => return Ok(None),
            (model, kernel) => {
                let model = model.map(|_| ());
                return Ok(Some(Disagreement::Verdict { kernel, model }));
            }
        };
        let () = kernel;
        let prepared = PlainProgram::prepare(&checked, Semantics::Kernel);
        for packet in packets {
            if let Some(difference) = self.pass(packet, run(&prepared, packet))? {
                return Ok(Some(difference));
            }
        }
        Ok(None)
    }

    /// Sends a packet through the attached filter, of which the model says that
    /// it returns `value`.
    fn pass(&mut self, packet: &[u8], value: u32) -> Result<Option<Disagreement>, Errno> {
        let kernel = self.pair.pass(packet, &mut self.received)?;
        let model = (value != 0).then(|| packet.len().min(value as usize));
        let same_bytes = kernel.is_none_or(|len| self.received.get(..len) == packet.get(..len));
        if kernel == model && same_bytes {
            return Ok(None);
        }
        Ok(Some(Disagreement::Result {
            input: format!("packet of {} bytes {}", packet.len(), hex(packet)),
            kernel: format!("{kernel:?}"),
            model: format!("{model:?} (value {value:#x})"),
        }))
    }
}

fn count(
    program: &[SockFilter],
    prepared: &PlainProgram,
    packet: &[u8],
    found: &mut FilterComparison,
) {
    let packet = Packet::whole(packet, &Metadata::UNKNOWN);
    let mut steps = Vec::new();
    let ended = prepared.trace(&packet, &mut SplitMix::new(0), &mut |step| steps.push(step));
    debug_assert!(ended.is_ok());
    found.coverage.run(program, Rules::Socket, &steps);
}

fn looks_for_attributes(program: &[SockFilter]) -> bool {
    program.iter().any(|&raw| match Insn::decode(raw) {
        Insn::LoadAbs { k, .. } => matches!(
            Extension::from_offset(k),
            Some(Extension::Nlattr | Extension::NlattrNest)
        ),
        _ => false,
    })
}

/// True if a random number reaches the result. The generator overwrites each, but a
/// mutation may have removed that.
pub(super) fn depends_on_chance(program: &[SockFilter]) -> bool {
    let forgets = |raw: SockFilter| {
        matches!(
            Insn::decode(raw),
            Insn::Alu {
                op: AluOp::And | AluOp::Mul,
                src: Operand::K(0),
            }
        )
    };
    program.windows(2).any(|pair| match Insn::decode(pair[0]) {
        Insn::LoadAbs { k, .. } => k == Extension::Random.offset() && !forgets(pair[1]),
        _ => false,
    })
}

/// The beginning of a packet, in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(64);
    let mut text: String = shown.map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > 64 {
        text.push('…');
    }
    text
}
