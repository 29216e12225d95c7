//! Where values are: their addresses, and watches of their places.

use interp::checked::MemoryPlace;
use trace::dwarf::ValueBytes;

use super::int_type::IntType;
use super::value::{DebugValue, TreeNode};
use super::view::View;
use super::watch::{Watch, WatchPlace, WatchText};

/// Where a value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePlace {
    /// Nowhere: it is computed.
    None,
    /// At an address of the run.
    Memory(u64),
    /// In a register of a frame.
    Register {
        /// Number of the frame.
        frame: usize,
        /// The register.
        register: u8,
    },
    /// In the value of a key of a map.
    MapValue {
        /// Number of the map.
        map: u32,
        /// The key.
        key: Vec<u8>,
        /// Offset of the first byte.
        offset: usize,
    },
    /// In several places: the first byte of each piece, its length and its place.
    Pieces(Vec<(usize, usize, ValuePlace)>),
}

impl ValuePlace {
    /// The place of a part.
    pub(super) fn part(&self, (start, len): (usize, usize)) -> ValuePlace {
        match self {
            ValuePlace::None => ValuePlace::None,
            ValuePlace::Memory(address) => ValuePlace::Memory(address.wrapping_add(start as u64)),
            ValuePlace::Register { .. } => self.clone(),
            ValuePlace::MapValue { map, key, offset } => ValuePlace::MapValue {
                map: *map,
                key: key.clone(),
                offset: offset + start,
            },
            ValuePlace::Pieces(pieces) => {
                let pieces = pieces.iter().filter_map(|(at, size, place)| {
                    let (from, to) = ((*at).max(start), (at + size).min(start + len));
                    let part = || (from - start, to - from, place.part((from - at, to - from)));
                    (from < to).then(part)
                });
                let pieces: Vec<_> = pieces.collect();
                match &pieces[..] {
                    [] => ValuePlace::None,
                    [(0, size, place)] if *size == len => place.clone(),
                    _ => ValuePlace::Pieces(pieces),
                }
            }
        }
    }
}

impl<'r> View<'_, 'r, '_> {
    /// The bytes at an address, as a value without a type.
    pub(super) fn at(&self, address: u64, len: usize) -> Result<DebugValue<'r>, String> {
        let bytes = self.memory(address, len);
        let bytes = bytes.ok_or_else(|| format!("no memory is at {address:#x}"))?;
        Ok(DebugValue {
            bytes: ValueBytes::known(bytes),
            place: ValuePlace::Memory(address),
            ..DebugValue::number(0, IntType::UNSIGNED_LONG)
        })
    }

    /// The address of a place.
    ///
    /// # Errors
    /// In words, for places without one.
    pub(super) fn address_of(&self, place: &ValuePlace) -> Result<u64, String> {
        match place {
            ValuePlace::Memory(address) => Ok(*address),
            ValuePlace::MapValue { map, key, offset } => {
                let start = self.scene.address_of(*map, key, self.moment.memory);
                let start = start.ok_or(
                    "its address is not known: the run looked up no such entry until here",
                )?;
                Ok(start + *offset as u64)
            }
            ValuePlace::Register { register, .. } => Err(format!(
                "it is in register r{register}, which has no address"
            )),
            ValuePlace::Pieces(_) => Err("it is in pieces, which have no one address".to_owned()),
            ValuePlace::None => Err("it is computed or a constant: it has no address".to_owned()),
        }
    }

    /// A watch of what an expression is of; of an entry that is not there, too.
    ///
    /// # Errors
    /// In words, for what is not there or has no place.
    pub fn watch_of(&self, frame: usize, expression: &str) -> Result<Watch, String> {
        self.watch_node(expression, self.evaluate_node(frame, expression)?)
    }

    /// A watch of what a row is of.
    ///
    /// # Errors
    /// As [`View::watch_of`].
    pub(super) fn watch_node(&self, name: &str, node: TreeNode<'r>) -> Result<Watch, String> {
        match node {
            TreeNode::Text(_, Some((address, len))) => {
                let watch = self.watch(name, &self.at(address, len)?)?;
                let text = WatchText::Network;
                Ok(Watch { text, ..watch })
            }
            TreeNode::Value(value) | TreeNode::NoEntry(value, _) => self.watch(name, &value),
            TreeNode::Absent(why) => Err(why),
            TreeNode::Text(_, None) | TreeNode::Map(_) | TreeNode::Packet | TreeNode::PerCpu(_) => {
                Err(format!("{name} is more than a value; name a part of it"))
            }
        }
    }

    /// A watch of a value.
    fn watch(&self, name: &str, value: &DebugValue<'_>) -> Result<Watch, String> {
        let len = match value.bits {
            Some((shift, bits)) => (shift as usize + bits as usize).div_ceil(8),
            None => value.bytes.bytes.len().max(1),
        };
        Ok(Watch {
            name: name.to_owned(),
            place: self.watched(name, &value.place, len)?,
            text: WatchText::of(value),
            bits: value.bits,
        })
    }

    fn watched(&self, name: &str, place: &ValuePlace, len: usize) -> Result<WatchPlace, String> {
        let packet = self.position.packet;
        Ok(match place {
            ValuePlace::None => {
                return Err(format!(
                    "{name} is computed or a constant: nothing writes it"
                ));
            }
            ValuePlace::Pieces(pieces) => {
                let pieces = pieces
                    .iter()
                    .map(|(start, len, place)| Ok((*start, self.watched(name, place, *len)?)));
                WatchPlace::Pieces(pieces.collect::<Result<_, String>>()?, len)
            }
            ValuePlace::Register { frame, register } => {
                let (of, _) = self.frame(*frame).ok_or("the frame is gone")?;
                WatchPlace::Register {
                    packet,
                    depth: self.scene.stack.frames().len() - 1 - frame,
                    entered: of.entered,
                    register: *register,
                    len: len.min(8),
                }
            }
            ValuePlace::MapValue { map, key, offset } => WatchPlace::MapValue {
                map: *map,
                key: key.clone(),
                offset: *offset,
                len,
            },
            ValuePlace::Memory(address) => match self.moment.memory.place(*address) {
                None => return Err(format!("no memory is at {address:#x}")),
                Some(MemoryPlace::Packet(offset)) => WatchPlace::Packet {
                    packet,
                    offset,
                    len,
                },
                Some(MemoryPlace::Value {
                    map,
                    start,
                    offset,
                    is_key: false,
                    ..
                }) if self.scene.key_of(map, start, self.moment.memory).is_some() => {
                    let key = self.scene.key_of(map, start, self.moment.memory);
                    WatchPlace::MapValue {
                        map: self.scene.first_of(map),
                        key: key.unwrap_or_default(),
                        offset: offset as usize,
                        len,
                    }
                }
                Some(MemoryPlace::Stack { frame, .. }) => {
                    let of = self.scene.stack.frames().get(frame);
                    WatchPlace::Memory {
                        packet,
                        address: *address,
                        len,
                        frame: of.map(|of| (frame, of.entered)),
                    }
                }
                Some(
                    MemoryPlace::Context(_)
                    | MemoryPlace::Value { .. }
                    | MemoryPlace::Map(_)
                    | MemoryPlace::Function(_)
                    | MemoryPlace::Region { .. },
                ) => WatchPlace::Memory {
                    packet,
                    address: *address,
                    len,
                    frame: None,
                },
            },
        })
    }
}
