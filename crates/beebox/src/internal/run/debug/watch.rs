//! Writes to an object: who wrote a variable, a slot of the stack, a value of a map, bytes of the
//! packet, a register.

use btf::TypeId;
use interp::checked::{MemoryPlace, Moment};
use isa::ebpf::{Insn, Reg, Size, eval};
use trace::dwarf::ValueBytes;
use trace::{CallStack, VariableType, bit_field};

use super::scene::Scene;
use super::value::{DebugValue, bytes_text, content_text, register_text};

/// An object whose writes are looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// What it is, for people.
    pub name: String,
    /// Where it is.
    pub(super) place: WatchPlace,
    /// How its bytes are shown.
    pub(super) text: WatchText,
    /// Of a bit field its first bit in the bytes, and its bits.
    pub(super) bits: Option<(u64, u32)>,
}

/// How the bytes of a watched object are shown. Types outlast runs by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchText {
    /// As a value of a type of debug information.
    Debug(Option<usize>),
    /// As a value of a type of BTF.
    Btf(TypeId),
    /// As a register.
    Register,
    /// As a number in the order of bytes of the network.
    Network,
    /// As a number, or bytes.
    Plain,
}

impl WatchText {
    pub(super) fn of(value: &DebugValue<'_>) -> WatchText {
        match value.kind {
            Some(VariableType::Debug(_, kind)) => WatchText::Debug(kind),
            Some(VariableType::Btf(_, ty)) => WatchText::Btf(ty),
            None if value.bytes.bytes.len() == 8 => WatchText::Register,
            None => WatchText::Plain,
        }
    }
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
        /// The bytes of it that count.
        len: usize,
    },
    /// Places of pieces by their first bytes, and the bytes of all.
    Pieces(Vec<(usize, WatchPlace)>, usize),
}

/// What an instruction does to a watched object, in the order of what it means for more of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Touch {
    /// Nothing.
    None,
    /// It may change it, as the bytes behind it say.
    MayChange,
    /// It writes it.
    Writes,
}

impl Watch {
    /// True if writes may be in packets other than one.
    pub(super) fn spans_packets(&self) -> bool {
        matches!(self.place, WatchPlace::MapValue { .. })
    }

    /// True if it is there in the run on a packet.
    pub(super) fn is_there(&self, packet: u64, scene: &Scene<'_>) -> bool {
        self.place.is_there(packet, &scene.stack)
    }

    /// The frame that it is in, by its depth.
    pub(super) fn depth(&self) -> Option<usize> {
        match &self.place {
            WatchPlace::Memory { frame, .. } => frame.map(|(depth, _)| depth),
            WatchPlace::Register { depth, .. } => Some(*depth),
            WatchPlace::Packet { .. } | WatchPlace::MapValue { .. } | WatchPlace::Pieces(..) => {
                None
            }
        }
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
            WatchPlace::Register { .. } | WatchPlace::Pieces(..) => {
                format!(
                    "{name} was not written since the function was entered: the caller passed it"
                )
            }
        }
    }

    /// The bytes that it has.
    pub(super) fn bytes(&self, moment: &Moment<'_, '_>, scene: &Scene<'_>) -> Option<Vec<u8>> {
        self.place.bytes(moment, scene)
    }

    /// Bytes of it as text.
    pub(super) fn show(
        &self,
        bytes: Option<&[u8]>,
        (moment, scene): (&Moment<'_, '_>, &Scene<'_>),
    ) -> String {
        let Some(bytes) = bytes else {
            return "nothing".to_owned();
        };
        let kind = match self.text {
            WatchText::Debug(kind) => scene.debug.map(|debug| VariableType::Debug(debug, kind)),
            WatchText::Btf(ty) => scene.types().map(|types| VariableType::Btf(types, ty)),
            WatchText::Register | WatchText::Network | WatchText::Plain => None,
        };
        let value = ValueBytes::known(bytes.to_vec());
        match (kind, self.text, bytes) {
            (Some(kind), ..) => {
                let value = match self.bits {
                    Some(bits) => bit_field(&value, bits, kind),
                    None => value,
                };
                let position = super::Position { packet: 0, insn: 0 };
                let view = scene.view(moment, position);
                kind.show(&value, &|address| view.describe(address))
            }
            (None, WatchText::Network, [_] | [_, _] | [_, _, _, _]) => {
                let number = bytes.iter().fold(0, |it, byte| it << 8 | u64::from(*byte));
                number.to_string()
            }
            (None, WatchText::Network, _) => bytes_text(bytes),
            (None, WatchText::Register, _) => match bytes.first_chunk() {
                Some(bytes) => register_text(u64::from_le_bytes(*bytes)),
                None => content_text(bytes),
            },
            (None, ..) => content_text(bytes),
        }
    }

    /// The bytes of it that decide whether it changed: of a bit field its own.
    pub(super) fn has_changed(&self, before: Option<&[u8]>, after: Option<&[u8]>) -> bool {
        let own = |bytes: Option<&[u8]>| {
            let mut bytes = bytes.map(<[u8]>::to_vec);
            if let (Some(bytes), Some((shift, bits))) = (&mut bytes, self.bits) {
                for (at, byte) in bytes.iter_mut().enumerate() {
                    for bit in 0..8 {
                        let number = 8 * at as u64 + bit;
                        let is_own = (shift..shift + u64::from(bits)).contains(&number);
                        *byte &= if is_own { u8::MAX } else { !(1 << bit) };
                    }
                }
            }
            bytes
        };
        own(before) != own(after)
    }

    /// What an instruction is about to do to it.
    pub(super) fn touch(&self, moment: &Moment<'_, '_>, packet: u64, scene: &Scene<'_>) -> Touch {
        match (self.place.touch(moment, packet, scene), self.bits) {
            // A store of the byte is none of its other fields.
            (Touch::Writes, Some(_)) => Touch::MayChange,
            (touch, _) => touch,
        }
    }
}

impl WatchPlace {
    /// The bytes that it has.
    fn bytes(&self, moment: &Moment<'_, '_>, scene: &Scene<'_>) -> Option<Vec<u8>> {
        match self {
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
            WatchPlace::Register { register, len, .. } => {
                let value = moment.registers.get(usize::from(*register))?;
                Some(value.to_le_bytes()[..*len].to_vec())
            }
            WatchPlace::Pieces(pieces, len) => {
                let mut bytes = vec![0; *len];
                for (start, piece) in pieces {
                    let piece = piece.bytes(moment, scene)?;
                    bytes
                        .get_mut(*start..start + piece.len())?
                        .copy_from_slice(&piece);
                }
                Some(bytes)
            }
        }
    }

    /// What an instruction is about to do to it.
    fn touch(&self, moment: &Moment<'_, '_>, packet: u64, scene: &Scene<'_>) -> Touch {
        if let WatchPlace::Pieces(pieces, _) = self {
            let touches = pieces
                .iter()
                .map(|(_, piece)| piece.touch(moment, packet, scene));
            return touches.max().unwrap_or(Touch::None);
        }
        if !self.is_there(packet, &scene.stack) {
            return Touch::None;
        }
        let insn = moment.insn();
        if let WatchPlace::Register {
            depth, register, ..
        } = self
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
        match self {
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
                }) if scene.first_of(written) == *map => {
                    match scene.key_of(written, start, moment.memory) {
                        Some(known) if known != *key => Touch::None,
                        Some(_) => overlap((at, size), (*offset as u64, *len as u64)),
                        None => Touch::MayChange,
                    }
                }
                _ => Touch::None,
            },
            WatchPlace::Register { .. } | WatchPlace::Pieces(..) => Touch::None,
        }
    }

    /// True if the object is there in the run on a packet.
    fn is_there(&self, of_packet: u64, stack: &CallStack) -> bool {
        let is_frame = |depth: usize, entered: u64| {
            let frame = stack.frames().get(depth);
            frame.is_some_and(|frame| frame.entered == entered)
        };
        match self {
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
            WatchPlace::Pieces(pieces, _) => pieces
                .iter()
                .any(|(_, piece)| piece.is_there(of_packet, stack)),
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
