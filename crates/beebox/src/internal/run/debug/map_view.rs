//! Maps of a run as trees: entries with keys and values by type.

use btf::TypeId;
use trace::VariableType;
use trace::dwarf::ValueBytes;

use super::super::recording::RunMap;
use super::int_type::IntType;
use super::places::ValuePlace;
use super::value::{DebugValue, MOST_CHILDREN, TreeNode, TreeRow, bytes_text, more};
use super::view::View;

impl<'r> View<'_, 'r, '_> {
    /// The maps, with their entries below them.
    pub fn map_rows(&self) -> Vec<TreeRow<'r>> {
        let rows = (0..).zip(self.maps());
        let rows = rows.filter(|(number, _)| self.scene.first_of(*number) == *number);
        let rows = rows.map(|(number, map)| TreeRow {
            name: map.name.clone(),
            kind: map.map().kind().name().to_owned(),
            node: TreeNode::Map(number),
        });
        rows.collect()
    }

    /// The map of a name.
    pub(super) fn map_named(&self, name: &str) -> Option<u32> {
        let found = self.maps().iter().position(|map| map.name == name);
        found.map(|number| number as u32)
    }

    /// A map in words.
    pub(super) fn map_text(&self, number: u32) -> String {
        let Some(map) = self.maps().get(number as usize) else {
            return String::new();
        };
        let (kind, most) = (map.map().kind(), map.def.params.max_entries);
        let is_bytes = kind.is_memory();
        match is_bytes || map.key_size() == 0 {
            true if is_bytes => format!("{}, {most} bytes", kind.name()),
            true => format!(
                "{} of at most {most} values, which have no keys",
                kind.name()
            ),
            false => match keys(map).take(MOST_CHILDREN + 1).count() {
                entries if entries > MOST_CHILDREN => {
                    format!("more than {MOST_CHILDREN} of {most} entries")
                }
                entries => format!("{entries} of {most} entries"),
            },
        }
    }

    /// The first entries of a map.
    pub(super) fn entries(&self, number: u32) -> Vec<TreeRow<'r>> {
        let Some(map) = self.maps().get(number as usize) else {
            return Vec::new();
        };
        if map.map().kind().has_records() || map.key_size() == 0 {
            return Vec::new();
        }
        let all: Vec<Vec<u8>> = keys(map)
            .take(map.def.params.max_entries as usize + 1)
            .collect();
        let left_out = more(all.len());
        let entries = all.into_iter().take(MOST_CHILDREN).map(|key| TreeRow {
            name: format!("[{}]", self.key_text(number, &key)),
            kind: (self.map_type(map, false)).map_or_else(String::new, |kind| kind.name()),
            node: self.entry(number, &key),
        });
        entries.chain(left_out).collect()
    }

    /// The value of a key of a map.
    pub(super) fn entry(&self, number: u32, key: &[u8]) -> TreeNode<'r> {
        let Some(map) = self.maps().get(number as usize) else {
            return TreeNode::Absent("there is no such map".to_owned());
        };
        let mut all = vec![0; map.map().value_len()];
        let kind = self.map_type(map, false);
        let size = map.def.params.value_size as usize;
        if let Err(errno) = map.map().lookup(key, &mut all, 0) {
            let gone = DebugValue {
                kind,
                bytes: ValueBytes {
                    bytes: vec![0; size],
                    known: vec![false; size],
                },
                place: ValuePlace::MapValue {
                    map: number,
                    key: key.to_vec(),
                    offset: 0,
                },
                ..DebugValue::number(0, IntType::INT)
            };
            return TreeNode::NoEntry(gone, format!("no entry: {errno}"));
        }
        let is_percpu = map.map().kind().is_percpu() && !map.map().kind().is_cgroup_storage();
        let value = |bytes: &[u8], place| DebugValue {
            kind,
            bytes: ValueBytes::known(bytes.to_vec()),
            place,
            ..DebugValue::number(0, IntType::INT)
        };
        if !is_percpu {
            let place = ValuePlace::MapValue {
                map: number,
                key: key.to_vec(),
                offset: 0,
            };
            return TreeNode::Value(value(&all, place));
        }
        let each = size.next_multiple_of(8).max(1);
        let values = all.chunks(each).zip(0..);
        let values = values.map(|(bytes, cpu)| {
            let place = match cpu == self.scene.cpu() {
                true => ValuePlace::MapValue {
                    map: number,
                    key: key.to_vec(),
                    offset: 0,
                },
                false => ValuePlace::None,
            };
            value(&bytes[..size.min(bytes.len())], place)
        });
        TreeNode::PerCpu(values.collect())
    }

    /// A key of a map as text.
    pub(super) fn key_text(&self, number: u32, key: &[u8]) -> String {
        let map = self.maps().get(number as usize);
        let kind = map.and_then(|map| self.map_type(map, true));
        let bytes = ValueBytes::known(key.to_vec());
        match (kind, key.first_chunk::<4>()) {
            (Some(kind), _) => kind.show(&bytes, &|_| None),
            (None, Some(index)) if key.len() == 4 => u32::from_le_bytes(*index).to_string(),
            (None, _) => bytes_text(key),
        }
    }

    /// The bytes of a key that is given as a number.
    ///
    /// # Errors
    /// In words, for keys that are no numbers, and numbers that they do not hold.
    pub(super) fn key_of_number(&self, number: u32, key: i64) -> Result<Vec<u8>, String> {
        let size = self.maps().get(number as usize).map_or(0, RunMap::key_size);
        if !(1..=8).contains(&size) {
            return Err("keys of this map are no numbers; see the tree of maps".to_owned());
        }
        let mut bytes = key.to_le_bytes().to_vec();
        let unused = 64 - 8 * size as u32;
        let is_held =
            key << unused >> unused == key || ((key as u64) << unused >> unused) as i64 == key;
        if !is_held {
            let name = self.scene.map_name(number);
            return Err(format!(
                "{key} does not fit in the {size} bytes of keys of {name}"
            ));
        }
        bytes.truncate(size);
        Ok(bytes)
    }

    fn map_type(&self, map: &RunMap<'r>, is_key: bool) -> Option<VariableType<'r>> {
        let params = &map.def.params;
        let ty = if is_key {
            params.key_type
        } else {
            params.value_type
        };
        let types = self.types().filter(|_| ty != TypeId::VOID)?;
        Some(VariableType::Btf(types, ty))
    }
}

/// The keys of a map, in the order of iteration.
fn keys<'k>(map: &'k RunMap<'_>) -> impl Iterator<Item = Vec<u8>> + 'k {
    let mut last: Option<Vec<u8>> = None;
    std::iter::from_fn(move || {
        let mut key = vec![0; map.key_size()];
        map.map().next_key(last.as_deref(), &mut key).ok()?;
        last = Some(key.clone());
        Some(key)
    })
}
