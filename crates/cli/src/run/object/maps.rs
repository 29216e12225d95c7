//! Maps of a run as JSON, in the form of bpftool's dumps.

mod arena;
mod storage;

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::Path;

use beebox::btf::{Btf, TypeId};
use beebox::object::Object;
use beebox::program::MapKind;
use beebox::run::{Errno, LoadedObject, ObjectMap};
use report::value::{
    MOST_LEFT_OUT, Ordered, bytes_from_json, bytes_to_json, fill_from_json, from_json, to_json,
};
use serde::ser::{Error as _, Serialize, SerializeSeq, Serializer};
use serde_json::Value;

use super::output::write_pretty;
use crate::answer::Failure;
use crate::program_input::{name, read_at_most};

/// Bytes of the largest file of map contents.
const LARGEST: u64 = 64 << 20;

/// The types of keys and values.
struct Types<'a> {
    types: Option<&'a Btf<'a>>,
    key: TypeId,
    value: TypeId,
}

impl<'a> Types<'a> {
    fn of(map: &ObjectMap, types: Option<&'a Btf<'a>>) -> Types<'a> {
        let params = &map.def.params;
        Types {
            types: types.filter(|_| map.def.has_btf),
            key: params.key_type,
            value: params.value_type,
        }
    }

    /// The types that an object declares for a map: of maps without keys the kernel keeps none.
    fn declared(map: &ObjectMap, object: &'a Object<'_>) -> Types<'a> {
        let mut maps = object.maps().iter().map(|(_, map)| map);
        let declared = maps.find(|declared| declared.name() == map.def.name);
        Types {
            types: object.btf(),
            key: TypeId::VOID,
            value: declared.map_or(TypeId::VOID, |map| map.params().value_type),
        }
    }

    /// True if values of a type are shown by it.
    fn is_known(&self, ty: TypeId) -> bool {
        self.types.is_some() && ty != TypeId::VOID
    }

    fn show(&self, ty: TypeId, bytes: &[u8]) -> Ordered {
        match self.types.filter(|_| ty != TypeId::VOID) {
            Some(types) => to_json(types, ty, bytes),
            None => bytes_to_json(bytes),
        }
    }

    /// Reads a whole value into zeros; the members that it leaves out.
    fn fill(&self, ty: TypeId, value: &Value, into: &mut [u8]) -> Result<Vec<String>, String> {
        match self.types.filter(|_| ty != TypeId::VOID) {
            Some(types) => fill_from_json(types, ty, value, into),
            None => bytes_from_json(value, into).map(|()| Vec::new()),
        }
    }

    /// Reads a value over another one.
    fn read(&self, ty: TypeId, value: &Value, into: &mut [u8]) -> Result<(), String> {
        match self.types.filter(|_| ty != TypeId::VOID) {
            Some(types) => from_json(types, ty, value, into),
            None => bytes_from_json(value, into),
        }
    }
}

fn is_percpu(map: &ObjectMap) -> bool {
    matches!(
        map.map.kind(),
        MapKind::PercpuArray | MapKind::PercpuHash | MapKind::LruPercpuHash
    )
}

/// True if the elements of a map have keys, by which they can be read.
fn has_keys(map: &ObjectMap) -> bool {
    !matches!(
        map.map.kind(),
        MapKind::Ringbuf
            | MapKind::UserRingbuf
            | MapKind::Queue
            | MapKind::Stack
            | MapKind::BloomFilter
            | MapKind::PerfEventArray
    )
}

/// The entries of all maps that have keys and the pages of arenas, by name, as they are when this
/// is written: one after the other, so that large maps take no memory.
pub(super) struct MapsDump<'a> {
    loaded: &'a LoadedObject,
    types: Option<&'a Btf<'a>>,
}

impl<'a> MapsDump<'a> {
    /// The maps of an object.
    ///
    /// # Errors
    /// If the entries of a map cannot be read.
    pub(super) fn new(
        loaded: &'a LoadedObject,
        types: Option<&'a Btf<'a>>,
    ) -> Result<MapsDump<'a>, Failure> {
        let dump = MapsDump { loaded, types };
        for map in dump.maps() {
            if loaded.arena(&map.def.name).is_none()
                && !storage::is_storage(map)
                && let Some(Err(errno)) = map.iter_entries().next()
            {
                return Err(Failure::new(errno).within(format_args!("map {}", map.def.name)));
            }
        }
        Ok(dump)
    }

    fn maps(&self) -> impl Iterator<Item = &'a ObjectMap> {
        self.loaded.maps().filter(|map| has_keys(map))
    }

    fn entries(&self, map: &'a ObjectMap) -> Entries<'a> {
        Entries {
            loaded: self.loaded,
            map,
            types: Types::of(map, self.types),
        }
    }

    /// Writes them as text.
    pub(super) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for map in self.maps() {
            write!(out, "map {}: ", map.def.name)?;
            write_pretty(out, &self.entries(map))?;
        }
        Ok(())
    }
}

impl Serialize for MapsDump<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let maps = self.maps().map(|map| (&map.def.name, self.entries(map)));
        serializer.collect_map(maps)
    }
}

/// The entries of a map, or the pages of an arena.
struct Entries<'a> {
    loaded: &'a LoadedObject,
    map: &'a ObjectMap,
    types: Types<'a>,
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(arena) = self.loaded.arena(&self.map.def.name) {
            return serializer.collect_seq(arena::pages(arena));
        }
        if storage::is_storage(self.map) {
            return serializer.collect_seq(storage::values(self.map, &self.types));
        }
        let mut list = serializer.serialize_seq(None)?;
        for entry in self.map.iter_entries() {
            let (key, value) = entry.map_err(S::Error::custom)?;
            list.serialize_element(&self.entry(&key, &value))?;
        }
        list.end()
    }
}

impl Entries<'_> {
    fn entry(&self, key: &[u8], value: &[u8]) -> Ordered {
        let (map, of) = (self.map, &self.types);
        let size = map.def.params.value_size as usize;
        let is_data = map.def.initial_value().is_some();
        let mut members = Vec::new();
        let index = <[u8; 4]>::try_from(key).map(u32::from_le_bytes);
        match index {
            _ if is_data && of.is_known(of.value) => {}
            Ok(index) if map.map.kind() == MapKind::ProgArray => {
                members.push(("key".to_owned(), Ordered::Scalar(index.into())));
            }
            _ => members.push(("key".to_owned(), of.show(of.key, key))),
        }
        if is_percpu(map) {
            let values = value.chunks(size.next_multiple_of(8)).enumerate();
            let values = values.map(|(cpu, value)| {
                Ordered::Object(vec![
                    ("cpu".to_owned(), Ordered::Scalar(cpu.into())),
                    ("value".to_owned(), of.show(of.value, &value[..size])),
                ])
            });
            members.push(("values".to_owned(), Ordered::List(values.collect())));
        } else if let Some(program) = program_at(self.loaded, map, key) {
            members.push(("value".to_owned(), Ordered::Scalar(program.into())));
        } else if let Some(cookie) = self.loaded.socket_at(map, key) {
            members.push(("value".to_owned(), Ordered::Scalar(cookie.into())));
        } else {
            members.push(("value".to_owned(), of.show(of.value, value)));
        }
        Ordered::Object(members)
    }
}

/// Name of the program that a program array has for a key.
fn program_at<'l>(loaded: &'l LoadedObject, map: &ObjectMap, key: &[u8]) -> Option<&'l str> {
    let index = u32::from_le_bytes(key.try_into().ok()?);
    loaded.program_at(&map.map, index)
}

/// Contents of maps in a file: an object of lists of entries, by map.
pub(super) struct MapsFile {
    name: String,
    contents: serde_json::Map<String, Value>,
}

impl MapsFile {
    pub(super) fn read(path: &Path) -> Result<MapsFile, Failure> {
        let file = read_at_most(path, LARGEST)?;
        let name = name(path);
        let parsed: Result<Value, _> = serde_json::from_slice(&file);
        let contents = parsed.map_err(|error| wrong(&name, format!("invalid JSON: {error}")))?;
        // A whole answer of --dump-maps --format json is good too.
        let contents = contents.get("maps").unwrap_or(&contents);
        let contents = contents.as_object().cloned();
        let contents =
            contents.ok_or_else(|| wrong(&name, "no object with maps by name".to_owned()))?;
        Ok(MapsFile { name, contents })
    }

    /// Names of the programs that it puts into program arrays of an object.
    pub(super) fn programs(&self, object: &Object<'_>) -> Vec<String> {
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

    /// Fills the maps.
    pub(super) fn fill(&self, loaded: &LoadedObject, object: &Object<'_>) -> Result<(), Failure> {
        let types = object.btf();
        for (map_name, entries) in &self.contents {
            let wrong = |what: String| wrong(&self.name, what);
            let map = find(loaded, map_name).map_err(wrong)?;
            let entries = entries.as_array();
            let entries =
                entries.ok_or_else(|| wrong(format!("map {map_name}: no list of entries")))?;
            let mut left_out = BTreeSet::new();
            for (at, entry) in entries.iter().enumerate() {
                let put = check_members(entry).and_then(|()| match map.map.kind() {
                    _ if map.def.initial_value().is_some() => {
                        put_variables(map, &Types::of(map, types), entry).map(none)
                    }
                    _ if storage::is_storage(map) => {
                        storage::put(map, &Types::of(map, types), entry)
                    }
                    MapKind::ProgArray => put_program(loaded, map, entry).map(none),
                    MapKind::Arena => arena::put(loaded.arena(map_name), entry).map(none),
                    _ if map.holds_sockets() => {
                        put_socket_of(loaded, map, &Types::of(map, types), entry).map(none)
                    }
                    _ if map.def.params.key_size == 0 => {
                        put(map, &Types::declared(map, object), entry)
                    }
                    _ => put(map, &Types::of(map, types), entry),
                });
                let form = match map.map.kind() {
                    MapKind::Arena => arena::FORM,
                    _ if map.def.initial_value().is_some() => VARIABLES_FORM,
                    _ if storage::is_storage(map) => storage::FORM,
                    _ if map.def.params.key_size == 0 => KEYLESS_FORM,
                    _ => FORM,
                };
                left_out.extend(put.map_err(|error| {
                    let file = &self.name;
                    Failure::new(format_args!("{file}: map {map_name}: entry {at}: {error}"))
                        .hint(form)
                })?);
            }
            note_left_out(&format!("{}: map {map_name}", self.name), left_out);
        }
        Ok(())
    }
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
fn none((): ()) -> Vec<String> {
    Vec::new()
}

/// Says which members entries leave out.
pub(super) fn note_left_out(place: &str, names: impl IntoIterator<Item = String>) {
    let mut names: Vec<String> = names.into_iter().collect();
    if names.is_empty() {
        return;
    }
    if names.len() >= MOST_LEFT_OUT {
        names.truncate(MOST_LEFT_OUT);
        names.push("…".to_owned());
    }
    diagnostic!("{place}: note: left out, so 0: {}", names.join(", "));
}

/// Form of the entries of maps.
const FORM: &str = r#"{"MAP": [{"key": KEY, "value": VALUE}]}, as --dump-maps prints it"#;

/// Form of the entries of maps without keys.
const KEYLESS_FORM: &str = r#"{"MAP": [{"value": VALUE}]}"#;

/// Forms of setting variables.
const VARIABLES_FORM: &str = "--set NAME=VALUE, or the entry of the map as --dump-maps prints it";

/// Sets the variables of an entry of a map that holds global variables. Those that the program
/// only reads have been set before it was verified, and keep their values.
fn put_variables(map: &ObjectMap, of: &Types<'_>, entry: &Value) -> Result<(), String> {
    let key = 0u32.to_le_bytes();
    let mut old = vec![0; map.map.value_len()];
    let read = map.map.lookup(&key, &mut old, 0);
    read.map_err(|errno| format!("the map is not read: {errno}"))?;
    let mut new = old.clone();
    let value = entry.get("value").ok_or("it has no value")?;
    of.read(of.value, value, &mut new)
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
fn refused(map: &ObjectMap, key: &[u8], errno: Errno) -> String {
    let params = &map.def.params;
    let most = params.max_entries;
    // The index of an array, the length of a prefix.
    let index = key.first_chunk().map_or(0, |key| u32::from_le_bytes(*key));
    match (errno, map.map.kind()) {
        (Errno::EINVAL, MapKind::LpmTrie) => {
            let bits = params.key_size.saturating_sub(4) * 8;
            format!("key: a prefix of {index} bits is longer than the {bits} bits behind it")
        }
        (Errno::E2BIG, MapKind::Array | MapKind::PercpuArray) if index >= most => {
            format!("key: the array has {most} elements")
        }
        (Errno::E2BIG | Errno::ENOSPC, _) => {
            format!("the map does not take it: it has room for {most} elements: {errno}")
        }
        (errno, _) => format!("the map does not take it: {errno}"),
    }
}

fn wrong(file: &str, what: String) -> Failure {
    Failure::new(format_args!("{file}: {what}")).hint(FORM)
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
    of.read(of.key, given, &mut key)
        .map_err(|error| format!("key: {error}"))?;
    let value = entry.get("value").ok_or("it has no value")?;
    put_socket(loaded, map, &key, value)
}

/// The cookie of a socket that is the value of an entry.
fn cookie_of(value: &Value) -> Result<u64, String> {
    let cookie = value.as_u64();
    cookie.ok_or_else(|| "value: no cookie of a socket, which is a number".to_owned())
}

/// Puts a socket of the network into a map of sockets: the value is its cookie.
fn put_socket(
    loaded: &LoadedObject,
    map: &ObjectMap,
    key: &[u8],
    value: &Value,
) -> Result<(), String> {
    let cookie = cookie_of(value)?;
    let put = loaded.set_socket(&map.def.name, key, cookie);
    put.map_err(|errno| match errno {
        Errno::EBADF => format!(
            "value: cookie {cookie}: the network has no such socket; --network FILE describes sockets"
        ),
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
        let names = of.fill(of.key, member("key")?, &mut key);
        let names = names.map_err(|error| format!("key: {error}"))?;
        left_out.extend(names.into_iter().map(|name| format!("key {name}")));
    }
    let mut value = vec![0; map.map.value_len()];
    let size = map.def.params.value_size as usize;
    if is_percpu(map) {
        let values = member("values")?.as_array().ok_or("values: no list")?;
        let cpus = value.len() / size.next_multiple_of(8).max(1);
        for (cpu, given) in values.iter().enumerate() {
            let start = cpu * size.next_multiple_of(8);
            let place = value.get_mut(start..start + size);
            let place = place.ok_or("values: more than there are CPUs")?;
            let given = given.get("value").ok_or("values: one has no value")?;
            let names = of.fill(of.value, given, place);
            left_out.extend(names.map_err(|error| format!("values: {error}"))?);
        }
        left_out.extend((values.len()..cpus).map(|cpu| format!("value of CPU {cpu}")));
    } else {
        let names = of.fill(of.value, member("value")?, &mut value[..size]);
        left_out.extend(names.map_err(|error| format!("value: {error}"))?);
    }
    let updated = map.map.update(&key, &value, 0);
    updated.map_err(|errno| refused(map, &key, errno))?;
    Ok(left_out)
}

/// The map of a name.
pub(super) fn find<'l>(loaded: &'l LoadedObject, name: &str) -> Result<&'l ObjectMap, String> {
    let found = loaded.maps().find(|map| map.def.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = loaded.maps().map(|map| map.def.name.as_str()).collect();
        format!(
            "no program uses a map {name:?}; there are {}",
            names.join(", ")
        )
    })
}

/// Reads a value of a type of the object.
pub(super) fn read(
    types: Option<&Btf<'_>>,
    ty: TypeId,
    value: &Value,
    into: &mut [u8],
) -> Result<(), String> {
    match types {
        Some(types) => from_json(types, ty, value, into),
        None => bytes_from_json(value, into),
    }
}

/// Members that a value of so many bytes leaves out; none if it does not fit its type.
pub(super) fn left_out(
    types: Option<&Btf<'_>>,
    ty: TypeId,
    value: &Value,
    size: usize,
) -> Vec<String> {
    let types = types.filter(|_| ty != TypeId::VOID);
    let filled = types.map(|types| fill_from_json(types, ty, value, &mut vec![0; size]));
    filled.and_then(Result::ok).unwrap_or_default()
}

/// A value of a type of the object, in one line.
pub(super) fn show(types: Option<&Btf<'_>>, ty: TypeId, bytes: &[u8]) -> String {
    let value = match types {
        Some(types) => to_json(types, ty, bytes),
        None => bytes_to_json(bytes),
    };
    compact(&value)
}

fn compact(value: &Ordered) -> String {
    serde_json::to_string(value).expect("keys are strings")
}

/// An element of a map that is named in a file; of a per-CPU map that of one CPU.
pub(super) struct Element<'a> {
    loaded: &'a LoadedObject,
    map: &'a ObjectMap,
    types: Types<'a>,
    key: Vec<u8>,
    /// Members of the key that are left out, which are 0.
    key_left_out: Vec<String>,
    /// Range of its value among those of all CPUs.
    place: std::ops::Range<usize>,
}

impl<'a> Element<'a> {
    pub(super) fn find(
        loaded: &'a LoadedObject,
        types: Option<&'a Btf<'a>>,
        name: &str,
        key: &Value,
        cpu: u32,
    ) -> Result<Element<'a>, String> {
        let map = find(loaded, name)?;
        if map.def.initial_value().is_some() {
            return Err(format!(
                "map {name} holds global variables: global NAME = VALUE"
            ));
        }
        let types = Types::of(map, types);
        let mut bytes = vec![0; map.def.params.key_size as usize];
        let left_out = types.fill(types.key, key, &mut bytes);
        let left_out = left_out.map_err(|error| format!("map {name}: key: {error}"))?;
        let size = map.def.params.value_size as usize;
        let start = match is_percpu(map) {
            true => cpu as usize * size.next_multiple_of(8),
            false => 0,
        };
        Ok(Element {
            loaded,
            map,
            types,
            key: bytes,
            key_left_out: left_out
                .into_iter()
                .map(|member| format!("key {member}"))
                .collect(),
            place: start..start + size,
        })
    }

    /// Checks that a value fits.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        self.read_into(value, &mut vec![0; self.place.len()])
    }

    /// Writes a value over another one: members that are not named keep theirs.
    pub(super) fn read_into(&self, value: &Value, bytes: &mut [u8]) -> Result<(), String> {
        if self.map.holds_sockets() {
            let cookie = cookie_of(value)?.to_le_bytes();
            bytes.copy_from_slice(&cookie[..bytes.len()]);
            return Ok(());
        }
        let read = self.types.read(self.types.value, value, bytes);
        read.map_err(|error| format!("map {}: value: {error}", self.map.def.name))
    }

    /// Members of the key that are left out, which are 0.
    pub(super) fn key_left_out(&self) -> &[String] {
        &self.key_left_out
    }

    /// Members that a value leaves out.
    pub(super) fn left_out(&self, value: &Value) -> Vec<String> {
        match self.map.holds_sockets() {
            true => Vec::new(),
            false => left_out(self.types.types, self.types.value, value, self.place.len()),
        }
    }

    /// Stores a value; the members that it leaves out.
    pub(super) fn store(&self, value: &Value) -> Result<Vec<String>, String> {
        if self.map.holds_sockets() {
            return put_socket(self.loaded, self.map, &self.key, value).map(none);
        }
        let mut all = vec![0; self.map.map.value_len()];
        let place = &mut all[self.place.clone()];
        let left_out = self.types.fill(self.types.value, value, place)?;
        let updated = self.map.map.update(&self.key, &all, 0);
        updated.map_err(|errno| refused(self.map, &self.key, errno))?;
        Ok(left_out)
    }

    /// The value; `None` if there is none.
    pub(super) fn load(&self) -> Result<Option<Vec<u8>>, String> {
        let mut all = vec![0; self.map.map.value_len()];
        if self.map.holds_sockets() {
            let cookie = self.loaded.socket_at(self.map, &self.key);
            let bytes = cookie.map(|cookie| cookie.to_le_bytes()[..all.len()].to_vec());
            return Ok(bytes);
        }
        match self.map.map.lookup(&self.key, &mut all, 0) {
            Ok(()) => Ok(Some(all[self.place.clone()].to_vec())),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(format!("map {}: {errno}", self.map.def.name)),
        }
    }

    pub(super) fn show(&self, bytes: &[u8]) -> String {
        if self.map.holds_sockets() {
            let mut cookie = [0; 8];
            cookie[..bytes.len()].copy_from_slice(bytes);
            return u64::from_le_bytes(cookie).to_string();
        }
        compact(&self.types.show(self.types.value, bytes))
    }
}
