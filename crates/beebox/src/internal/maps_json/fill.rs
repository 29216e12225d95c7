//! Maps filled from JSON.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use object::Object;
use serde_json::Value;
use spec::Errno;
use spec::maps::MapKind;

use super::{
    FORM, LeftOut, MapsJsonError, MapsJsonFault, Part, Types, arena, find, is_percpu, storage,
};
use crate::failure::{Cause, Error, RunCause};
use crate::internal::run::{LoadedObject, ObjectMap};

/// Contents of maps as JSON, in the form of bpftool's dumps: an object of lists of entries, by name of the
/// map.
///
/// In `{"blocked": [{"key": {"prefixlen": 24, "saddr": 131072}, "value": 7}]}` keys and values have the
/// members of their types; they are bytes in hexadecimal where the object has no types. Values of program
/// arrays are names of programs, those of maps of sockets cookies of the network. Members that are left
/// out are 0, and are listed ([`LeftOut`]).
///
/// ```
/// use beebox::{Loader, MapsJson, Object, TestRun, XdpAction};
///
/// fn main() -> Result<(), beebox::Error> {
/// #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
///     let object = Object::open("examples/packets/firewall.bpf.o")?;
///     let instance = Loader::default().load(&object)?;
///     instance.fill_maps(&object, &MapsJson::open("examples/packets/rules.json")?)?;
///
///     let result = instance.program("firewall")?.test_run(&TestRun::packet(&[0; 64]))?;
///     assert_eq!(result.verdict, XdpAction::Pass);
///     let maps = instance.maps_json(&object)?;
///     assert!(maps.contains("\"blocked\""));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct MapsJson {
    contents: serde_json::Map<String, Value>,
}

impl MapsJson {
    /// Bytes of the largest file of map contents.
    pub const MOST_BYTES: u64 = 64 << 20;

    /// Reads a file, or standard input if the path is `-`.
    ///
    /// # Errors
    /// If it cannot be read, has more than 64 MiB, or is no JSON of this form.
    pub fn open(path: impl AsRef<Path>) -> Result<MapsJson, Error> {
        let path = path.as_ref();
        let read = sys::input::read(path, MapsJson::MOST_BYTES);
        let bytes = read.map_err(|error| Cause::File(path.to_owned(), error))?;
        MapsJson::try_parse(&bytes)
            .map_err(|error| RunCause::MapsFile(path.to_owned(), error).into())
    }

    /// Reads JSON text: maps by name, or an object with these as its member `maps`, as
    /// `beebox run --dump-maps --format json` prints.
    ///
    /// # Errors
    /// If it is no JSON of this form.
    pub fn parse(text: &[u8]) -> Result<MapsJson, Error> {
        Ok(MapsJson::try_parse(text)?)
    }

    /// As [`MapsJson::parse`], with the error as data.
    #[doc(hidden)]
    pub fn try_parse(text: &[u8]) -> Result<MapsJson, MapsJsonError> {
        let contents =
            seccomp::json::read(text).map_err(|error| MapsJsonFault::Json(error.to_string()))?;
        let contents = contents.get("maps").unwrap_or(&contents);
        let contents = contents.as_object().cloned();
        let contents = contents.ok_or(MapsJsonFault::NoObject)?;
        Ok(MapsJson { contents })
    }

    /// Names of the programs that it puts into program arrays of an object.
    #[doc(hidden)]
    pub fn programs(&self, object: &Object<'_>) -> Vec<String> {
        let is_array = |name: &str| {
            let mut maps = object.maps().iter().map(|(_, map)| map);
            maps.any(|map| map.name() == name && map.params().kind() == Some(MapKind::ProgArray))
        };
        let arrays = self.contents.iter().filter(|(name, _)| is_array(name));
        let entries = arrays
            .filter_map(|(_, entries)| entries.as_array())
            .flatten();
        let programs = entries.filter_map(|entry| entry.get("value")?.as_str());
        programs.map(str::to_owned).collect()
    }

    /// Puts the entries into the maps of a loaded object, in the order of the file. Returns the
    /// members that they leave out, which are 0.
    ///
    /// # Errors
    /// For the first map that no program uses, and the first entry that does not fit or that its
    /// map does not take; what is in front of it has been put.
    #[doc(hidden)]
    pub fn fill(
        &self,
        loaded: &LoadedObject,
        object: &Object<'_>,
    ) -> Result<Vec<LeftOut>, MapsJsonError> {
        let mut left_out = Vec::new();
        for (name, entries) in &self.contents {
            match fill_map(loaded, object, name, entries) {
                Ok(members) if members.is_empty() => {}
                Ok(members) => left_out.push(LeftOut {
                    line: None,
                    map: name.clone(),
                    members: members.into_iter().collect(),
                }),
                Err(fault) => return Err(MapsJsonError { fault, left_out }),
            }
        }
        Ok(left_out)
    }
}

/// What an entry of a map consists of in JSON.
#[derive(Clone, Copy)]
enum EntryKind {
    /// The variables of a section.
    Variables,
    /// An object of the kernel and its value.
    OfObjects,
    /// An index and the name of a program.
    Program,
    /// An address and bytes.
    Pages,
    /// A key and a socket.
    Socket,
    /// A value alone.
    Keyless,
    /// A key and a value.
    KeyAndValue,
}

impl EntryKind {
    fn of(map: &ObjectMap) -> EntryKind {
        let kind = map.map.kind();
        if map.def.initial_value().is_some() {
            EntryKind::Variables
        } else if kind.is_storage() {
            EntryKind::OfObjects
        } else if kind == MapKind::ProgArray {
            EntryKind::Program
        } else if kind == MapKind::Arena {
            EntryKind::Pages
        } else if kind.has_socket_values() {
            EntryKind::Socket
        } else if map.def.params.key_size == 0 {
            EntryKind::Keyless
        } else {
            EntryKind::KeyAndValue
        }
    }

    /// The form of an entry, for messages.
    fn form(self) -> &'static str {
        match self {
            EntryKind::Variables => VARIABLES_FORM,
            EntryKind::OfObjects => storage::FORM,
            EntryKind::Pages => arena::FORM,
            EntryKind::Keyless => KEYLESS_FORM,
            EntryKind::Program | EntryKind::Socket | EntryKind::KeyAndValue => FORM,
        }
    }
}

/// Puts entries into a map; the members that they leave out.
fn fill_map(
    loaded: &LoadedObject,
    object: &Object<'_>,
    name: &str,
    entries: &Value,
) -> Result<BTreeSet<String>, MapsJsonFault> {
    let types = object.btf();
    let map = find(loaded, name)?;
    let no_list = || MapsJsonFault::NoList {
        map: name.to_owned(),
    };
    let entries = entries.as_array().ok_or_else(no_list)?;
    let kind = EntryKind::of(map);
    let mut left_out = BTreeSet::new();
    let mut keys = HashSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let is_new = match entry.get("key") {
            Some(key) if keys.insert(key.to_string()) => Ok(()),
            Some(_) => Err("key: an entry before has the same".to_owned()),
            None => Ok(()),
        };
        let checked = is_new.and_then(|()| check_members(entry));
        let types = &Types::of(map, types);
        let put = checked.and_then(|()| match kind {
            EntryKind::Variables => put_variables(map, types, entry).map(none),
            EntryKind::OfObjects => storage::put(map, types, entry),
            EntryKind::Program => put_program(loaded, map, entry).map(none),
            EntryKind::Pages => arena::put(loaded.arena(name), entry).map(none),
            EntryKind::Socket => put_socket_of(loaded, map, types, entry).map(none),
            EntryKind::Keyless => put(map, &Types::declared(map, object), entry),
            EntryKind::KeyAndValue => put(map, types, entry),
        });
        left_out.extend(put.map_err(|what| MapsJsonFault::Entry {
            map: name.to_owned(),
            entry: at,
            what,
            form: kind.form(),
        })?);
    }
    Ok(left_out)
}

/// Refuses members of an entry that are none of dumps of maps.
fn check_members(entry: &Value) -> Result<(), String> {
    // bpftool shows keys and values by their types in `formatted` too.
    const KNOWN: [&str; 6] = ["key", "value", "values", "owner", "address", "formatted"];
    let members = entry.as_object().ok_or("it is no object")?;
    match members.keys().find(|name| !KNOWN.contains(&&***name)) {
        Some(name) => Err(format!("entries have no member {name:?}")),
        None => Ok(()),
    }
}

/// No members that are left out.
pub(super) fn none((): ()) -> Vec<String> {
    Vec::new()
}

/// Form of the entries of maps without keys.
const KEYLESS_FORM: &str = r#"{"MAP": [{"value": VALUE}]}"#;

/// Forms of setting variables.
const VARIABLES_FORM: &str =
    "an assignment NAME=VALUE, or the entry of the map as in dumps of maps";

/// Sets the variables of an entry of a map that holds global variables. Those that the program
/// only reads have been set before it was verified, and keep their values.
fn put_variables(map: &ObjectMap, of: &Types<'_>, entry: &Value) -> Result<(), String> {
    let key = 0u32.to_le_bytes();
    let mut old = vec![0; map.map.value_len()];
    let read = map.map.lookup(&key, &mut old, 0);
    read.map_err(|errno| format!("the map is not read: {errno}"))?;
    let mut new = old.clone();
    let value = entry.get("value").ok_or("it has no value")?;
    of.read(Part::Value, value, &mut new)
        .map_err(|error| format!("value: {error}"))?;
    if new == old {
        return Ok(());
    }
    let updated = map.map.update(&key, &new, 0);
    updated.map_err(|errno| match errno {
        Errno::EPERM => "its variables are constants of the program, of which the entry has other \
                         values"
            .to_owned(),
        errno => refused(map, &key, errno),
    })
}

/// Reason why a map does not take an element.
pub(super) fn refused(map: &ObjectMap, key: &[u8], errno: Errno) -> String {
    let params = &map.def.params;
    let most = params.max_entries;
    // The index of an array, the length of a prefix.
    let index = key.first_chunk().map_or(0, |key| u32::from_le_bytes(*key));
    match (errno, map.map.kind()) {
        (Errno::EINVAL, MapKind::LpmTrie) => {
            let bits = params.key_size.saturating_sub(4) * 8;
            format!("key: a prefix of {index} bits is longer than the {bits} bits behind it")
        }
        (Errno::E2BIG, kind) if kind.is_dense() && index >= most => {
            format!("key: the array has {most} elements")
        }
        (Errno::E2BIG | Errno::ENOSPC, _) => {
            format!("the map does not take it: it has room for {most} elements: {errno}")
        }
        (errno, _) => format!("the map does not take it: {errno}"),
    }
}

/// Puts a program into a program array: the value is its name.
fn put_program(loaded: &LoadedObject, map: &ObjectMap, entry: &Value) -> Result<(), String> {
    let index = entry.get("key").and_then(Value::as_u64);
    let index = index.and_then(|index| u32::try_from(index).ok());
    let index = index.ok_or("key: no index of a program array")?;
    let program = entry.get("value").and_then(Value::as_str);
    let program = program.ok_or("value: no name of a program")?;
    let put = loaded.set_tail_call(&map.def.name, index, Some(program));
    put.map_err(|errno| match errno {
        Errno::ENOENT => format!("value: the object has no program {program:?}"),
        Errno::E2BIG => format!("key: the array has {} elements", map.def.params.max_entries),
        Errno::EINVAL => format!(
            "the map does not take program {program}, whose type, attach type or flags are \
             not those of the programs that use it: EINVAL"
        ),
        errno => format!("the map does not take program {program}: {errno}"),
    })
}

/// Puts the socket of an entry into a map of sockets.
fn put_socket_of(
    loaded: &LoadedObject,
    map: &ObjectMap,
    of: &Types<'_>,
    entry: &Value,
) -> Result<(), String> {
    let mut key = vec![0; map.def.params.key_size as usize];
    let given = entry.get("key").ok_or("it has no key")?;
    of.read(Part::Key, given, &mut key)
        .map_err(|error| format!("key: {error}"))?;
    let value = entry.get("value").ok_or("it has no value")?;
    put_socket(loaded, map, &key, value)
}

/// The cookie of a socket that is the value of an entry.
pub(super) fn cookie_of(value: &Value) -> Result<u64, String> {
    let cookie = value.as_u64();
    cookie.ok_or_else(|| "value: no cookie of a socket, which is a number".to_owned())
}

/// Puts a socket of the network into a map of sockets: the value is its cookie.
pub(super) fn put_socket(
    loaded: &LoadedObject,
    map: &ObjectMap,
    key: &[u8],
    value: &Value,
) -> Result<(), String> {
    let cookie = cookie_of(value)?;
    let put = loaded.set_socket(&map.def.name, key, cookie);
    put.map_err(|errno| match errno {
        Errno::EBADF => {
            format!("value: cookie {cookie}: the description of the network has no such socket")
        }
        Errno::E2BIG => format!("key: the map has {} elements", map.def.params.max_entries),
        errno => format!("the map does not take the socket of cookie {cookie}: {errno}"),
    })
}

/// Puts an entry into a map; the members that it leaves out.
fn put(map: &ObjectMap, of: &Types<'_>, entry: &Value) -> Result<Vec<String>, String> {
    let member = |name: &str| entry.get(name).ok_or_else(|| format!("it has no {name}"));
    let mut left_out = Vec::new();
    let mut key = vec![0; map.def.params.key_size as usize];
    if !key.is_empty() {
        let names = of.fill(Part::Key, member("key")?, &mut key);
        let names = names.map_err(|error| format!("key: {error}"))?;
        left_out.extend(names.into_iter().map(|name| format!("key {name}")));
    }
    let mut value = vec![0; map.map.value_len()];
    let size = map.def.params.value_size as usize;
    if is_percpu(map) {
        let values = member("values")?.as_array().ok_or("values: no list")?;
        let cpus = value.len() / size.next_multiple_of(8).max(1);
        let mut is_given = vec![false; cpus];
        for (at, given) in values.iter().enumerate() {
            let cpu = match given.get("cpu") {
                None => at,
                Some(cpu) => {
                    let cpu = cpu.as_u64().and_then(|cpu| usize::try_from(cpu).ok());
                    cpu.ok_or("values: cpu is no number")?
                }
            };
            let seen = is_given.get_mut(cpu);
            let seen = seen.ok_or_else(|| format!("values: there is no CPU {cpu}, of {cpus}"))?;
            if std::mem::replace(seen, true) {
                return Err(format!("values: CPU {cpu} is given twice"));
            }
            let start = cpu * size.next_multiple_of(8);
            let given = given.get("value").ok_or("values: one has no value")?;
            let names = of.fill(Part::Value, given, &mut value[start..start + size]);
            left_out.extend(names.map_err(|error| format!("values: {error}"))?);
        }
        let absent = (0..cpus).filter(|cpu| !is_given[*cpu]);
        left_out.extend(absent.map(|cpu| format!("value of CPU {cpu}")));
    } else {
        let names = of.fill(Part::Value, member("value")?, &mut value[..size]);
        left_out.extend(names.map_err(|error| format!("value: {error}"))?);
    }
    let updated = map.map.update(&key, &value, 0);
    updated.map_err(|errno| refused(map, &key, errno))?;
    Ok(left_out)
}
