//! Writes to an object: who wrote a variable, a slot of the stack, a value of a map, bytes of the
//! packet, a register.

use interp::checked::{MemoryPlace, Moment};
use isa::ebpf::{Insn, Reg, Size, eval};
use trace::CallStack;

use super::view::Scene;

/// An object whose writes are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// What it is, for people.
    pub name: String,
    /// Where it is.
    pub(super) place: WatchPlace,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WatchPlace {
    /// Bytes at an address in the run on a packet; of a stack frame that was entered by an
    /// instruction of a number, at a depth.
    Memory {
        packet: u64,
        address: u64,
        len: usize,
        frame: Option<(usize, u64)>,
    },
    /// Bytes of a packet.
    Packet {
        packet: u64,
        offset: i64,
        len: usize,
    },
    /// Bytes of the value of a key of a map.
    MapValue {
        map: u32,
        key: Vec<u8>,
        offset: usize,
        len: usize,
    },
    /// A register of a frame.
    Register {
        packet: u64,
        depth: usize,
        entered: u64,
        register: u8,
    },
}

/// What an instruction does to a watched object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// Nothing.
    None,
    /// It writes it.
    Writes,
    /// It may change it, as the bytes behind it say.
    MayChange,
}

impl Watch {
    /// True if writes may be in packets other than one.
    pub(super) fn spans_packets(&self) -> bool {
        matches!(self.place, WatchPlace::MapValue { .. })
    }

    /// What is said if nothing wrote it.
    pub(super) fn not_written(&self) -> String {
        let name = &self.name;
        match &self.place {
            WatchPlace::MapValue { .. } => format!(
                "{name} was not written in this session: it is as the maps began, or is not there"
            ),
            WatchPlace::Packet { .. } => {
                format!("{name} was not written: the packet came with it")
            }
            WatchPlace::Memory { frame: Some(_), .. } => {
                format!("{name} was not written since its function was entered")
            }
            WatchPlace::Memory { .. } => format!("{name} was not written in this run"),
            WatchPlace::Register { .. } => {
                format!(
                    "{name} was not written since the function was entered: the caller passed it"
                )
            }
        }
    }

    /// The bytes that it has.
    pub(super) fn bytes(&self, moment: &Moment<'_, '_>, scene: &Scene<'_>) -> Option<Vec<u8>> {
        match &self.place {
            WatchPlace::Memory { address, len, .. } => {
                let mut bytes = vec![0; *len];
                moment.memory.peek(*address, &mut bytes).then_some(bytes)
            }
            WatchPlace::Packet { offset, len, .. } => {
                let [_, data, _] = moment.memory.packet_bounds()?;
                let mut bytes = vec![0; *len];
                let address = data.wrapping_add_signed(*offset);
                moment.memory.peek(address, &mut bytes).then_some(bytes)
            }
            WatchPlace::MapValue {
                map,
                key,
                offset,
                len,
            } => {
                let value = scene.lookup(*map, key)?;
                Some(value.get(*offset..*offset + *len)?.to_vec())
            }
            WatchPlace::Register { register, .. } => {
                let value = moment.registers.get(usize::from(*register))?;
                Some(value.to_le_bytes().to_vec())
            }
        }
    }

    /// What an instruction is about to do to it.
    pub(super) fn touch(&self, moment: &Moment<'_, '_>, packet: u64, scene: &Scene<'_>) -> Touch {
        if !self.is_there(packet, &scene.stack) {
            return Touch::None;
        }
        let insn = moment.insn();
        if let WatchPlace::Register {
            depth, register, ..
        } = &self.place
        {
            let register = Reg::new(*register);
            let writes = moment.depth == *depth
                && register.is_some_and(|register| insn.writes().contains(register));
            return if writes { Touch::Writes } else { Touch::None };
        }
        if matches!(insn, Insn::Call(_) | Insn::CallReg { .. }) {
            return Touch::MayChange;
        }
        let Some((address, size)) = store(&insn, moment) else {
            return Touch::None;
        };
        match &self.place {
            WatchPlace::Memory {
                address: start,
                len,
                ..
            } => overlap((address, size), (*start, *len as u64)),
            WatchPlace::Packet { offset, len, .. } => match moment.memory.packet_bounds() {
                Some([_, data, _]) => {
                    let start = data.wrapping_add_signed(*offset);
                    overlap((address, size), (start, *len as u64))
                }
                None => Touch::None,
            },
            WatchPlace::MapValue {
                map,
                key,
                offset,
                len,
            } => match moment.memory.place(address) {
                Some(MemoryPlace::Value {
                    map: written,
                    start,
                    offset: at,
                    ..
                }) if written == *map => match scene.key_of(*map, start, moment.memory) {
                    Some(known) if known != *key => Touch::None,
                    Some(_) => overlap((at, size), (*offset as u64, *len as u64)),
                    None => Touch::MayChange,
                },
                _ => Touch::None,
            },
            WatchPlace::Register { .. } => Touch::None,
        }
    }

    /// True if the object is there in the run on a packet.
    fn is_there(&self, of_packet: u64, stack: &CallStack) -> bool {
        let is_frame = |depth: usize, entered: u64| {
            let frame = stack.frames().get(depth);
            frame.is_some_and(|frame| frame.entered == entered)
        };
        match &self.place {
            WatchPlace::Memory { packet, frame, .. } => {
                *packet == of_packet
                    && frame.is_none_or(|(depth, entered)| is_frame(depth, entered))
            }
            WatchPlace::Packet { packet, .. } => *packet == of_packet,
            WatchPlace::MapValue { .. } => true,
            WatchPlace::Register {
                packet,
                depth,
                entered,
                ..
            } => *packet == of_packet && is_frame(*depth, *entered),
        }
    }
}

/// The bytes that an instruction writes: address and number.
pub(super) fn store(insn: &Insn, moment: &Moment<'_, '_>) -> Option<(u64, u64)> {
    let at = |size: Size, base: Reg, off: i16| {
        let address = eval::address(moment.registers[base.index()], off);
        Some((address, u64::from(size.bytes())))
    };
    match *insn {
        Insn::Store {
            size, base, off, ..
        }
        | Insn::StoreRelease {
            size, base, off, ..
        }
        | Insn::Atomic {
            size, base, off, ..
        } => at(size, base, off),
        _ => None,
    }
}

fn overlap((start, len): (u64, u64), (other, other_len): (u64, u64)) -> Touch {
    let overlaps = start < other.saturating_add(other_len) && other < start.saturating_add(len);
    if overlaps { Touch::Writes } else { Touch::None }
}
