//! Where values are: their addresses, and watches of their places.

use interp::checked::MemoryPlace;
use trace::dwarf::ValueBytes;

use super::value::{DebugValue, IntType, TreeNode, ValuePlace};
use super::view::View;
use super::watch::{Watch, WatchPlace, WatchText};

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
