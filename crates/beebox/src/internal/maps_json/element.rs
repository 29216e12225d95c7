//! Elements of maps that expectation files name.

use btf::Btf;
use serde_json::Value;
use spec::Errno;

use super::fill::{cookie_of, none, put_socket, refused};
use super::{Part, Types, compact, find, is_percpu, storage};
use crate::internal::run::{LoadedObject, ObjectMap, StorageOwner};

/// What an element is found by.
enum ElementKey {
    Bytes(Vec<u8>),
    /// Of local storage.
    Owner(StorageOwner),
}

/// An element of a map that is named in a file; of a per-CPU map that of one CPU.
pub(crate) struct Element<'a> {
    loaded: &'a LoadedObject,
    map: &'a ObjectMap,
    types: Types<'a>,
    key: ElementKey,
    /// Members of the key that are left out, which are 0.
    key_left_out: Vec<String>,
    /// Range of its value among those of all CPUs.
    place: std::ops::Range<usize>,
}

/// What keys may name: the CPU whose values of per-CPU maps are meant, and objects of a model of the kernel.
#[derive(Clone, Copy)]
pub(crate) struct KeyNames<'n> {
    pub(crate) cpu: u32,
    /// The owner of local storage that `@NAME` is.
    pub(crate) owner: &'n dyn Fn(&str) -> Result<StorageOwner, String>,
}

impl<'a> Element<'a> {
    pub(crate) fn find(
        loaded: &'a LoadedObject,
        types: Option<&'a Btf<'a>>,
        (name, key): (&str, &Value),
        names: KeyNames<'_>,
    ) -> Result<Element<'a>, String> {
        let cpu = names.cpu;
        let map = find(loaded, name).map_err(|fault| fault.to_string())?;
        if map.def.initial_value().is_some() {
            return Err(format!(
                "map {name} holds global variables: global NAME = VALUE"
            ));
        }
        let types = Types::of(map, types);
        if map.map.kind().is_storage() {
            let named = key.as_str().and_then(|text| text.strip_prefix('@'));
            let owner = named.map(names.owner).transpose()?;
            let owner = owner.or_else(|| storage::owner_of(key)).ok_or_else(|| {
                format!(
                    "map {name} is local storage: its keys are \"task\", \"packet\", the cookie of a socket, or \
                     \"@NAME\" of an object that is given"
                )
            })?;
            return Ok(Element {
                loaded,
                map,
                types,
                key: ElementKey::Owner(owner),
                key_left_out: Vec::new(),
                place: 0..map.def.params.value_size as usize,
            });
        }
        let mut bytes = vec![0; map.def.params.key_size as usize];
        let left_out = types.fill(Part::Key, key, &mut bytes);
        let left_out = left_out.map_err(|error| format!("map {name}: key: {error}"))?;
        let size = map.def.params.value_size as usize;
        let start = match is_percpu(map) {
            true => cpu as usize * size.next_multiple_of(8),
            false => 0,
        };
        if start + size > map.map.value_len() && is_percpu(map) {
            return Err(format!("map {name}: there is no CPU {cpu}"));
        }
        Ok(Element {
            loaded,
            map,
            types,
            key: ElementKey::Bytes(bytes),
            key_left_out: left_out
                .into_iter()
                .map(|member| format!("key {member}"))
                .collect(),
            place: start..start + size,
        })
    }

    /// Checks that a value fits.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.read_into(value, &mut vec![0; self.place.len()])
    }

    /// Writes a value over another one: members that are not named keep theirs.
    pub(crate) fn read_into(&self, value: &Value, bytes: &mut [u8]) -> Result<(), String> {
        if self.map.has_socket_values() {
            let cookie = cookie_of(value)?.to_le_bytes();
            bytes.copy_from_slice(&cookie[..bytes.len()]);
            return Ok(());
        }
        let read = self.types.read(Part::Value, value, bytes);
        let name = &self.map.def.name;
        read.map_err(|error| match is_percpu(self.map) && value.is_array() {
            true => {
                format!("map {name}: value: {error}; it is that of one CPU, which `cpu N` chooses")
            }
            false => format!("map {name}: value: {error}"),
        })
    }

    /// Members of the key that are left out, which are 0.
    pub(crate) fn key_left_out(&self) -> &[String] {
        &self.key_left_out
    }

    /// Members that a value leaves out.
    pub(crate) fn left_out(&self, value: &Value) -> Vec<String> {
        match self.map.has_socket_values() {
            true => Vec::new(),
            false => self.types.left_out(Part::Value, value, self.place.len()),
        }
    }

    /// Stores a value; the members that it leaves out.
    pub(crate) fn store(&self, value: &Value) -> Result<Vec<String>, String> {
        let key = match &self.key {
            ElementKey::Owner(owner) => {
                let mut bytes = vec![0; self.place.len()];
                let left_out = self.types.fill(Part::Value, value, &mut bytes)?;
                let set = self.map.set_owned_value(*owner, &bytes);
                set.map_err(|errno| format!("the map does not take it: {errno}"))?;
                return Ok(left_out);
            }
            ElementKey::Bytes(key) => key,
        };
        if self.map.has_socket_values() {
            return put_socket(self.loaded, self.map, key, value).map(none);
        }
        let mut all = vec![0; self.map.map.value_len()];
        let place = &mut all[self.place.clone()];
        let left_out = self.types.fill(Part::Value, value, place)?;
        let updated = self.map.map.update(key, &all, 0);
        updated.map_err(|errno| refused(self.map, key, errno))?;
        Ok(left_out)
    }

    /// Deletes the element, if there is one.
    pub(crate) fn delete(&self) -> Result<(), String> {
        let deleted = match &self.key {
            ElementKey::Owner(owner) => self.map.remove_owned_value(*owner),
            ElementKey::Bytes(key) => self.map.map.delete(key),
        };
        match deleted {
            Ok(()) | Err(Errno::ENOENT) => Ok(()),
            Err(errno) => Err(format!("map {}: {errno}", self.map.def.name)),
        }
    }

    /// The value; `None` if there is none.
    pub(crate) fn load(&self) -> Result<Option<Vec<u8>>, String> {
        let key = match &self.key {
            ElementKey::Owner(owner) => return Ok(self.map.owned_value(*owner)),
            ElementKey::Bytes(key) => key,
        };
        let mut all = vec![0; self.map.map.value_len()];
        if self.map.has_socket_values() {
            let cookie = self.loaded.socket_at(self.map, key);
            let bytes = cookie.map(|cookie| cookie.to_le_bytes()[..all.len()].to_vec());
            return Ok(bytes);
        }
        match self.map.map.lookup(key, &mut all, 0) {
            Ok(()) => Ok(Some(all[self.place.clone()].to_vec())),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(format!("map {}: {errno}", self.map.def.name)),
        }
    }

    pub(crate) fn show(&self, bytes: &[u8]) -> String {
        if self.map.has_socket_values() {
            let mut cookie = [0; 8];
            cookie[..bytes.len()].copy_from_slice(bytes);
            return u64::from_le_bytes(cookie).to_string();
        }
        compact(&self.types.show(Part::Value, bytes))
    }
}
