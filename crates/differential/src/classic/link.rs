//! Packet sockets: link-layer ancillary data, headers before the data, and the
//! payload offset, on a pair of virtual Ethernet devices of our own.
//!
//! A frame goes out of the first device and comes in by the second. One socket
//! listens there for whole frames and one for what they carry, and one on the
//! first device for what goes out; they see the same frame with different
//! metadata. The flow hash is a secret of the kernel, so it is asked for; that the
//! queue is the one that this hash chooses is then an answer of its own.

use super::unix::{depends_on_chance, hex};
use super::{
    Disagreement, FilterComparison, FilterDifference, Unavailable, compare_seeds, in_own_namespace,
    unavailable,
};
use classic::{Checked, PlainProgram, Rules, Semantics, check};
use isa::classic::{AluOp, Extension, Insn, Operand, Size, SockFilter};
use packet::{Device, Metadata, Packet, VlanTag, payload_offset};
use spec::SplitMix;
use std::ops::Range;
use std::thread::sleep;
use std::time::Duration;
use sys::Errno;
use sys::network::{NetworkInterface, OwnNamespace, TX_QUEUES};
use sys::socket::{PacketLayer, PacketSocket};
use testkit::frames;
use testkit::generate::{Dialect, Generator};
use testkit::state_dump::{Ladder, state_dump};

const LARGEST: usize = 1514;
const ETHERNET: usize = 14;
const ARPHRD_ETHER: u16 = 1;
const ENETDOWN: i32 = 100;

/// Compares one generated program for each seed, on frames of many lengths.
pub fn compare_with_kernel(seeds: Range<u64>) -> Result<FilterComparison, Unavailable> {
    in_own_namespace(|namespace| {
        let mut oracle = Oracle::open(namespace).map_err(unavailable("packet sockets"))?;
        let hashes = oracle.hashes().map_err(unavailable("packet sockets"))?;
        let mut comparison = FilterComparison::default();
        compare_seeds(seeds, &mut comparison, question, |program, asked, found| {
            oracle.compare(program, asked, &hashes, found)
        })
        .map_err(unavailable("packet sockets"))?;
        Ok(comparison)
    })
}

/// Compares the payload offset of two generated frames for each seed, one of them
/// around the seed as a protocol number, wherever packets are listened for. Its 16 bits
/// show as the lengths that four sockets receive, four bits on each.
pub fn compare_payload_offsets(seeds: Range<u64>) -> Result<FilterComparison, Unavailable> {
    in_own_namespace(|namespace| {
        let mut oracle = Oracle::open(namespace).map_err(unavailable("packet sockets"))?;
        let comparison = oracle.compare_payload_offsets(seeds);
        comparison.map_err(unavailable("packet sockets"))
    })
}

/// Listener of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Whole frames that come in.
    Frame,
    /// Payload of incoming frames.
    Payload,
    /// Whole frames that go out.
    Outgoing,
}

struct Question {
    place: Place,
    mark: u32,
    frames: Vec<Vec<u8>>,
}

fn question(seed: u64) -> (Vec<SockFilter>, Question) {
    let mut generator = Generator::new(seed);
    let len = generator.program_len().min(400);
    let mut program = generator.program(Dialect::SocketWithoutChance, len);
    // More of what only these sockets have.
    for insn in &mut program {
        if matches!(Insn::decode(*insn), Insn::LoadAbs { k, .. } if k < 1 << 20)
            && generator.one_in(2)
        {
            let extension = generator.pick(Extension::ALL);
            if extension != Extension::Random {
                let k = extension.offset();
                *insn = Insn::LoadAbs { size: Size::W, k }.encode();
            }
        }
    }
    let mut frames: Vec<_> = (0..10)
        .map(|_| frames::frame(&mut generator, LARGEST))
        .collect();
    for frame in &mut frames {
        // Long enough to show the digits of the hash, even without a tag.
        frame.resize(frame.len().max(20), 0);
    }
    // A state dump tells them apart by their length.
    frames.sort_by_key(Vec::len);
    frames.dedup_by_key(|frame| frame.len());
    let question = Question {
        place: generator.pick(&[Place::Frame, Place::Payload, Place::Outgoing]),
        mark: generator.bits(),
        frames,
    };
    (program, question)
}

struct Oracle {
    devices: [NetworkInterface; 2],
    sender: PacketSocket,
    listeners: [PacketSocket; 3],
    received: Vec<u8>,
}

/// A packet as a listener sees it.
struct Arrival {
    /// The frame, without a tag that the device stripped.
    frame: Vec<u8>,
    /// Offset of the data.
    start: usize,
    meta: Metadata,
}

impl Arrival {
    fn packet(&self) -> Packet<'_> {
        Packet::with_head(&self.frame, self.start, &self.meta)
    }
}

impl Oracle {
    fn open(namespace: &OwnNamespace) -> Result<Oracle, Errno> {
        let devices = namespace.create_ethernet_pair()?;
        let [first, second] = devices.map(|device| device.ifindex);
        let oracle = Oracle {
            devices,
            sender: PacketSocket::open(first, PacketLayer::Link)?,
            listeners: [
                PacketSocket::open(second, PacketLayer::Link)?,
                PacketSocket::open(second, PacketLayer::Network)?,
                PacketSocket::open(first, PacketLayer::Link)?,
            ],
            received: vec![0; 2 * LARGEST],
        };
        let nothing = [Insn::RetK(0).encode()];
        oracle.sender.attach(&nothing)?;
        oracle.wait_for_devices()?;
        for listener in &oracle.listeners {
            listener.attach(&nothing)?;
        }
        Ok(oracle)
    }

    /// A device that was just brought up loses frames for a moment.
    fn wait_for_devices(&self) -> Result<(), Errno> {
        let mut received = [0; 64];
        for _ in 0..1000 {
            self.sender.send(&[0; 60])?;
            sleep(Duration::from_millis(1));
            let mut arrived = true;
            for listener in &self.listeners {
                arrived &= listener.receive(&mut received)?.is_some();
            }
            if arrived {
                for listener in &self.listeners {
                    while listener.receive(&mut received)?.is_some() {}
                }
                return Ok(());
            }
        }
        Err(Errno(ENETDOWN))
    }

    /// A listener that reports the flow hash of incoming frames.
    fn hashes(&self) -> Result<Digits, Errno> {
        let ifindex = self.devices[1].ifindex;
        Digits::open(ifindex, PacketLayer::Link, Extension::Rxhash, 8)
    }

    /// The frame with addresses that make sense on this pair of devices.
    fn addressed(&self, frame: &[u8]) -> Vec<u8> {
        let [from, to] = self.devices.map(|device| device.address);
        let mut frame = frame.to_vec();
        // The generator left a hint for whom it is.
        let destination = match frame[0] & 3 {
            0 => to,
            1 => [0xff; 6],
            2 => [0x33, 0x33, 0, 0, 0, 1],
            _ => [2, 0, 0, 0, 0, 9],
        };
        frame[..6].copy_from_slice(&destination);
        frame[6..12].copy_from_slice(&from);
        frame
    }

    /// A listener's view of a frame; `None` if it is not delivered.
    fn arrival(&self, frame: &[u8], place: Place, mark: u32, hash: u32) -> Option<Arrival> {
        let ethertype = |at: usize| {
            let bytes = frame.get(at..at + 2)?;
            Some(u16::from_be_bytes([bytes[0], bytes[1]]))
        };
        let is_tag = |protocol| matches!(protocol, 0x8100 | 0x88a8);
        let outer = ethertype(12)?;
        let mut arrival = Arrival {
            frame: frame.to_vec(),
            start: 0,
            meta: Metadata {
                protocol: outer,
                pkt_type: match place {
                    Place::Outgoing => 4,
                    _ if frame[..6] == self.devices[1].address => 0,
                    _ if frame[..6] == [0xff; 6] => 1,
                    _ if frame[0] & 1 == 1 => 2,
                    _ => 3,
                },
                device: Some(Device {
                    ifindex: match place {
                        Place::Outgoing => self.devices[0].ifindex,
                        Place::Frame | Place::Payload => self.devices[1].ifindex,
                    },
                    hatype: ARPHRD_ETHER,
                }),
                mark,
                queue: ((u64::from(hash) * u64::from(TX_QUEUES)) >> 32) as u16,
                hash,
                cpu: 0,
                vlan: None,
                link_header: Some(0),
                network_header: ETHERNET as i32,
            },
        };
        if place == Place::Outgoing {
            // The tags are still in the frame; the network header follows them, if there
            // are at most seven complete ones.
            let mut at = 12;
            while is_tag(ethertype(at)?) && at < 12 + 4 * 8 {
                at += 4;
            }
            if let (Some(inner), true) = (ethertype(at), at < 12 + 4 * 8) {
                arrival.meta.network_header = at as i32 + 2;
                debug_assert!(!is_tag(inner));
            }
            return Some(arrival);
        }
        if is_tag(outer) {
            // Linux reads the inner protocol, and drops frames without one.
            let tci = ethertype(14)?;
            let inner = ethertype(16)?;
            ethertype(18)?;
            arrival.frame.drain(12..16);
            arrival.meta.vlan = Some(VlanTag {
                protocol: outer,
                tci,
            });
            arrival.meta.protocol = inner;
        }
        arrival.meta.protocol = linux_protocol(arrival.meta.protocol, &arrival.frame);
        if place == Place::Payload {
            arrival.start = ETHERNET;
            arrival.meta.link_header = Some(-(ETHERNET as i32));
            arrival.meta.network_header = 0;
        }
        Some(arrival)
    }

    fn compare(
        &mut self,
        program: &[SockFilter],
        question: &Question,
        hashes: &Digits,
        found: &mut FilterComparison,
    ) -> Result<Option<Disagreement>, Errno> {
        let Ok(checked) = check(program, Rules::Socket) else {
            return Ok(None);
        };
        if depends_on_chance(program) {
            return Ok(None);
        }
        self.sender.set_mark(question.mark)?;
        found.coverage.accept();
        let frames: Vec<_> = question.frames.iter().map(|f| self.addressed(f)).collect();
        let mut arrivals = Vec::new();
        for frame in frames {
            let mut hash = || {
                self.sender.send(&frame)?;
                hashes.read(&mut self.received)
            };
            // Linux draws the hash of some frames by lot (keep-alives of TIPC).
            let (Some(hash), true) = (hash()?, hash()? == hash()?) else {
                continue;
            };
            let arrival = self.arrival(&frame, question.place, question.mark, hash);
            arrivals.extend(arrival.map(|arrival| (frame, arrival)));
        }
        let prepared = PlainProgram::prepare(&checked, Semantics::Kernel);
        let mut values: Vec<(u32, u32)> = Vec::new();
        for (_, arrival) in &arrivals {
            let packet = arrival.packet();
            let value = run(&prepared, &packet);
            let len = packet.data().len() as u32;
            if values.iter().all(|&(other, _)| other != len) {
                values.push((len, value));
            }
        }
        if let Some((_, arrival)) = arrivals.get(arrivals.len() / 2) {
            let mut steps = Vec::new();
            let packet = arrival.packet();
            let ended =
                prepared.trace(&packet, &mut SplitMix::new(0), &mut |step| steps.push(step));
            debug_assert!(ended.is_ok());
            found.coverage.run(program, Rules::Socket, &steps);
        }
        let state_dump = state_dump(program, Ladder::BY_LENGTH, &values)
            .and_then(|state_dump| Some((check(&state_dump, Rules::Socket).ok()?, state_dump)));
        let both = [Some((checked, program.to_vec())), state_dump];
        for (checked, program) in both.into_iter().flatten() {
            if let Some(difference) =
                self.pass_all(&checked, &program, question.place, hashes, &arrivals)?
            {
                return Ok(Some(difference));
            }
        }
        found.runs += arrivals.len() as u64;
        Ok(None)
    }

    fn pass_all(
        &mut self,
        checked: &Checked,
        program: &[SockFilter],
        place: Place,
        hashes: &Digits,
        arrivals: &[(Vec<u8>, Arrival)],
    ) -> Result<Option<Disagreement>, Errno> {
        let listener = place as usize;
        self.listeners[listener].attach(program)?;
        let prepared = PlainProgram::prepare(checked, Semantics::Kernel);
        let mut difference = None;
        for (frame, arrival) in arrivals {
            let packet = arrival.packet();
            let value = run(&prepared, &packet);
            let data = packet.data();
            let model = (value != 0).then(|| data.len().min(value as usize));
            self.sender.send(frame)?;
            let kernel = self.receive(listener, model.is_some())?;
            let received = kernel.map(|len| self.received[..len.min(LARGEST)].to_vec());
            hashes.read(&mut self.received)?;
            let same_bytes = received.is_none_or(|bytes| data.starts_with(&bytes));
            if kernel != model || !same_bytes {
                difference = Some(Disagreement::Result {
                    input: format!("{place:?} of frame {}", hex(frame)),
                    kernel: format!("{kernel:?}"),
                    model: format!("{model:?} (value {value:#x}, {:?})", arrival.meta),
                });
                break;
            }
        }
        self.listeners[listener].attach(&[Insn::RetK(0).encode()])?;
        Ok(difference)
    }

    /// Fetches what a listener has; gives a packet that should come some time.
    fn receive(&mut self, listener: usize, expected: bool) -> Result<Option<usize>, Errno> {
        for _ in 0..5000 {
            let received = self.listeners[listener].receive(&mut self.received)?;
            if received.is_some() || !expected {
                return Ok(received);
            }
            sleep(Duration::from_millis(1));
        }
        Ok(None)
    }

    fn compare_payload_offsets(&mut self, seeds: Range<u64>) -> Result<FilterComparison, Errno> {
        let mut comparison = FilterComparison::default();
        let [first, second] = self.devices.map(|device| device.ifindex);
        self.sender.set_mark(0)?;
        for place in [Place::Frame, Place::Payload, Place::Outgoing] {
            let (ifindex, layer) = match place {
                Place::Frame => (second, PacketLayer::Link),
                Place::Payload => (second, PacketLayer::Network),
                Place::Outgoing => (first, PacketLayer::Link),
            };
            let digits = Digits::open(ifindex, layer, Extension::PayOffset, 4)?;
            for seed in seeds.clone() {
                if comparison.is_over() {
                    break;
                }
                let mut generator = Generator::new(seed);
                let frames = [
                    frames::frame(&mut generator, LARGEST),
                    frames::frame_around(&mut generator, seed as u16),
                ];
                for frame in frames {
                    comparison.programs += 1;
                    let how = self.compare_payload_offset(&frame, place, &digits)?;
                    comparison
                        .differences
                        .extend(how.map(|how| FilterDifference {
                            seed,
                            program: digit(Extension::PayOffset, 0).to_vec(),
                            how,
                        }));
                }
            }
        }
        comparison.runs = comparison.programs;
        Ok(comparison)
    }

    fn compare_payload_offset(
        &mut self,
        frame: &[u8],
        place: Place,
        digits: &Digits,
    ) -> Result<Option<Disagreement>, Errno> {
        let frame = self.addressed(frame);
        let Some(arrival) = self.arrival(&frame, place, 0, 0) else {
            return Ok(None);
        };
        let packet = arrival.packet();
        if packet.data().len() < 16 {
            return Ok(None); // too short to show a digit
        }
        self.sender.send(&frame)?;
        let model = payload_offset(&packet);
        let kernel = digits.read(&mut self.received)?;
        Ok((kernel != Some(model)).then(|| Disagreement::Result {
            input: format!("payload offset, {place:?} of frame {}", hex(&frame)),
            kernel: format!("{kernel:?}"),
            model: format!("{model} ({:?})", arrival.meta),
        }))
    }
}

/// Sockets that show the value of an extension as the lengths that they receive,
/// four bits on each.
struct Digits {
    sockets: Vec<PacketSocket>,
}

impl Digits {
    fn open(
        ifindex: u32,
        layer: PacketLayer,
        extension: Extension,
        digits: u32,
    ) -> Result<Digits, Errno> {
        let open = |number| {
            let socket = PacketSocket::open(ifindex, layer)?;
            socket.attach(&digit(extension, number))?;
            Ok(socket)
        };
        let sockets = (0..digits).map(open).collect::<Result<_, Errno>>()?;
        Ok(Digits { sockets })
    }

    /// The value for the packet that was just sent.
    fn read(&self, buffer: &mut [u8]) -> Result<Option<u32>, Errno> {
        let mut value = 0;
        for (number, socket) in self.sockets.iter().enumerate() {
            let mut received = socket.receive(buffer)?;
            for _ in 0..200 {
                if received.is_some() {
                    break;
                }
                sleep(Duration::from_millis(1));
                received = socket.receive(buffer)?;
            }
            let Some(len) = received else {
                return Ok(None);
            };
            value |= (len as u32).saturating_sub(1) << (4 * number);
        }
        Ok(Some(value))
    }
}

/// Returns one more than four bits of an extension's value.
fn digit(extension: Extension, number: u32) -> [SockFilter; 5] {
    let alu = |op, k| Insn::Alu {
        op,
        src: Operand::K(k),
    };
    [
        Insn::LoadAbs {
            size: Size::W,
            k: extension.offset(),
        },
        alu(AluOp::Rsh, 4 * number),
        alu(AluOp::And, 15),
        alu(AluOp::Add, 1),
        Insn::RetA,
    ]
    .map(Insn::encode)
}

/// The protocol that Linux gives a frame: its type, or what it takes a length to
/// mean (IPX without a header, or 802.2).
fn linux_protocol(ethertype: u16, frame: &[u8]) -> u16 {
    const ETH_P_802_3: u16 = 1;
    const ETH_P_802_2: u16 = 4;
    match frame.get(ETHERNET..ETHERNET + 2) {
        _ if ethertype >= 0x600 => ethertype,
        Some([0xff, 0xff]) => ETH_P_802_3,
        _ => ETH_P_802_2,
    }
}

fn run(program: &PlainProgram, packet: &Packet<'_>) -> u32 {
    program
        .run(packet, &mut SplitMix::new(0))
        .expect("programs for sockets only jump forward")
}
