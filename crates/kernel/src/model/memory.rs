//! The objects of the kernel and the memory of the process that a test gives, with what was given of them.
//!
//! Objects are at addresses that look like Linux's, in the order in which they are given, a guard of 64 KiB
//! behind each. Finding one is a search in a tree.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use btf::{Btf, TypeId};
use vm::{GivenAccess, GivenMemory};

use super::names::{begins_with, larger_types, member, name_at, type_name, type_of};

/// First address of the memory of the process.
const USER_START: u64 = 0x7ffc_3a5e_1000;
/// Alignment of objects, and the least number of bytes between two.
const ALIGNMENT: u64 = 64;
const GUARD: u64 = 0x1_0000;
/// Most bytes of all objects.
const MOST_BYTES: usize = 64 << 20;

/// Name of an object in messages: that of its type or of the member that points to it, and whose it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) path: String,
    /// ` of @init`, or nothing.
    pub(super) owner: String,
}

/// An object.
#[derive(Clone, Debug)]
pub(super) struct ModelObject {
    pub(super) types: Arc<Btf<'static>>,
    /// [`TypeId::VOID`] for bytes.
    pub(super) ty: TypeId,
    pub(super) label: Label,
    pub(super) bytes: Vec<u8>,
    /// Which bits of each byte were given.
    pub(super) given: Vec<u8>,
    /// Offsets and sizes of units of bit fields of which some were given.
    pub(super) units: Vec<(usize, usize)>,
    /// Names of words that are arguments, by their offsets.
    pub(super) arguments: Vec<(usize, String)>,
    pub(super) is_user: bool,
}

impl ModelObject {
    /// The first of some bits of bytes that was not given, in words; bits between members are zero.
    fn missing(&self, offset: usize, bits: &[u8]) -> Option<String> {
        let all = (offset..).zip(bits);
        let mut missing = all.filter_map(|(at, wanted)| match wanted & !self.given[at] {
            0 => None,
            missing => Some((at, missing)),
        });
        missing.find_map(|(at, missing)| {
            let Label { path, owner } = &self.label;
            let argument = self
                .arguments
                .iter()
                .find(|(start, _)| at - at % 8 == *start);
            if let Some((_, name)) = argument {
                return Some(format!("argument {name}"));
            }
            if self.ty.is_void() {
                return Some(format!("byte {at} of {path}{owner}"));
            }
            let len = if at == offset { bits.len() } else { 0 };
            let field = name_at(&self.types, self.ty, (at, len), missing)?;
            Some(format!("{path}{field}{owner}"))
        })
    }

    /// The bits of a copy of bytes that have to be given: a copy of a whole unit of bit fields has those
    /// that were given, as what programs make of it is unknown here.
    fn copied(&self, offset: usize, len: usize) -> Vec<u8> {
        let mut wanted = vec![0xff; len];
        for (start, size) in &self.units {
            if *start >= offset && start + size <= offset + len {
                let unit = start - offset..start - offset + size;
                wanted[unit].copy_from_slice(&self.given[*start..start + size]);
            }
        }
        wanted
    }

    /// What a member beyond the end would be of larger types that begin with this one, in words.
    fn beyond(&self, offset: usize, len: usize) -> String {
        let Label { path, owner } = &self.label;
        let size = self.bytes.len();
        let what = format!("byte {offset} of {path}{owner}, which has {size} bytes,");
        if self.ty.is_void() {
            return what;
        }
        let larger = larger_types(&self.types, self.ty, (offset, len));
        match &larger[..] {
            [] => what,
            [first] => format!("{first}{owner}, which is only a {path},"),
            [first, others @ ..] => {
                let others = others.join(" or ");
                format!("{first} (or {others}){owner}, which is only a {path},")
            }
        }
    }
}

/// Kernel memory that a test gives, and memory of the process.
#[derive(Debug)]
pub struct ModelMemory {
    pub(super) types: Arc<Btf<'static>>,
    objects: RwLock<BTreeMap<u64, ModelObject>>,
    /// Addresses of named objects.
    names: BTreeMap<String, u64>,
    /// Next addresses of the kernel and of the process.
    next: [u64; 2],
    bytes: usize,
}

impl Clone for ModelMemory {
    fn clone(&self) -> ModelMemory {
        ModelMemory {
            types: self.types.clone(),
            objects: RwLock::new(self.objects().clone()),
            names: self.names.clone(),
            next: self.next,
            bytes: self.bytes,
        }
    }
}

impl ModelMemory {
    /// Memory without objects, of a kernel with these types, from an address on
    /// ([`Addresses::given`](vm::Addresses)).
    pub fn new(types: Arc<Btf<'static>>, start: u64) -> ModelMemory {
        ModelMemory {
            types,
            objects: RwLock::default(),
            names: BTreeMap::new(),
            next: [start, USER_START],
            bytes: 0,
        }
    }

    pub(super) fn objects(&self) -> RwLockReadGuard<'_, BTreeMap<u64, ModelObject>> {
        self.objects.read().unwrap_or_else(|lock| lock.into_inner())
    }

    pub(super) fn objects_mut(&self) -> RwLockWriteGuard<'_, BTreeMap<u64, ModelObject>> {
        self.objects
            .write()
            .unwrap_or_else(|lock| lock.into_inner())
    }

    /// Makes room for an object of a name and a type of the kernel; nothing of it is given yet.
    ///
    /// # Errors
    /// If the name is taken, or the kernel has no such type.
    pub fn declare(&mut self, name: &str, ty: &str) -> Result<(), String> {
        if self.names.contains_key(name) {
            return Err(format!(
                "@{name} was given before: given @{name} {{…}} gives more of it"
            ));
        }
        let types = self.types.clone();
        let id = type_of(&types, ty)?;
        let size = types.size_of(id).unwrap_or(0) as usize;
        if size == 0 {
            return Err(format!("{ty} has no size"));
        }
        let label = Label {
            path: ty.to_owned(),
            owner: format!(" of @{name}"),
        };
        let start = self.allocate((types, id), size, label, false)?;
        self.names.insert(name.to_owned(), start);
        Ok(())
    }

    /// Makes room for an object.
    pub(super) fn allocate(
        &mut self,
        (types, ty): (Arc<Btf<'static>>, TypeId),
        size: usize,
        label: Label,
        is_user: bool,
    ) -> Result<u64, String> {
        self.bytes += size;
        if self.bytes > MOST_BYTES {
            return Err(format!("objects have more than {MOST_BYTES} bytes"));
        }
        let next = &mut self.next[usize::from(is_user)];
        let start = *next;
        *next = (start + size as u64 + GUARD).next_multiple_of(ALIGNMENT);
        let object = ModelObject {
            types,
            ty,
            label,
            bytes: vec![0; size],
            given: vec![0; size],
            units: Vec::new(),
            arguments: Vec::new(),
            is_user,
        };
        self.objects_mut().insert(start, object);
        Ok(start)
    }

    /// The address of a named object.
    pub fn address(&self, name: &str) -> Result<u64, String> {
        if let Some(start) = self.names.get(name) {
            return Ok(*start);
        }
        let near = super::names::nearest(name, self.names.keys().map(String::as_str));
        Err(format!("@{name} was not given{near}"))
    }

    /// True if an object of the kernel begins at an address.
    pub(super) fn is_object(&self, address: u64) -> bool {
        let objects = self.objects();
        objects.get(&address).is_some_and(|object| !object.is_user)
    }

    /// The name of the object that begins at an address.
    pub fn name_of(&self, address: u64) -> Option<&str> {
        let mut names = self.names.iter();
        let found = names.find(|(_, start)| **start == address);
        found.map(|(name, _)| name.as_str())
    }

    /// The address and type of a member of a named object.
    pub(super) fn member(&self, name: &str, path: &[String]) -> Result<(u64, TypeId), String> {
        let start = self.address(name)?;
        let objects = self.objects();
        let object = &objects[&start];
        let place = member(&object.types, object.ty, path)?;
        match place.bits {
            None => Ok((start + place.offset as u64, place.ty)),
            Some(_) => Err(format!(
                "@{name}.{} is a bit field, which has no address",
                path.join(".")
            )),
        }
    }

    /// Addresses of the kernel's objects of a type.
    pub(super) fn all_of(&self, ty: &str) -> Vec<u64> {
        let objects = self.objects();
        let of_type = objects.iter().filter(|(_, object)| {
            !object.is_user && !object.ty.is_void() && type_name(&object.types, object.ty) == ty
        });
        of_type.map(|(start, _)| *start).collect()
    }

    /// A member of the object at an address, as a number.
    ///
    /// # Errors
    /// If no object is there, it has no such member, or that was not given.
    pub(super) fn number(&self, address: u64, path: &[&str]) -> Result<u64, String> {
        let (offset, size) = {
            let objects = self.objects();
            let object = objects.get(&address);
            let object = object.ok_or_else(|| format!("no given object is at {address:#x}"))?;
            let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
            let place = member(&object.types, object.ty, &path)?;
            let size = object.types.size_of(place.ty).unwrap_or(0);
            (place.offset as u64, (size as usize).min(8))
        };
        let mut bytes = [0; 8];
        match self.read(address + offset, &mut bytes[..size]) {
            GivenAccess::Done => Ok(u64::from_le_bytes(bytes)),
            GivenAccess::NotGiven(what) => Err(format!("{what} was not given")),
            GivenAccess::Absent => Err(format!("no given object is at {address:#x}")),
        }
    }

    /// Whether the object that an address is the start of is one of a type, or begins with one; `None` if no
    /// object begins there.
    pub(super) fn is_of(&self, address: u64, ty: &str) -> Option<bool> {
        let objects = self.objects();
        let object = objects.get(&address)?;
        let wanted = type_of(&self.types, ty);
        Some(
            wanted.is_ok_and(|wanted| begins_with(&object.types, object.ty, (&self.types, wanted))),
        )
    }

    /// A member of an object at an address, which is seen as one of a type, as a number.
    ///
    /// # Errors
    /// If it was not given.
    pub(super) fn member_of(&self, address: u64, ty: &str, path: &[&str]) -> Result<u64, String> {
        let path: Vec<String> = path.iter().map(|name| (*name).to_owned()).collect();
        let place = member(&self.types, type_of(&self.types, ty)?, &path)?;
        let size = self.types.size_of(place.ty).unwrap_or(0).min(8) as usize;
        let mut bytes = [0; 8];
        match self.read(address + place.offset as u64, &mut bytes[..size]) {
            GivenAccess::Done => Ok(u64::from_le_bytes(bytes)),
            GivenAccess::NotGiven(what) => Err(format!("{what} was not given")),
            GivenAccess::Absent => Err(format!("no given object is at {address:#x}")),
        }
    }

    /// Address and type of a member of the object at an address.
    pub(super) fn place_of(&self, address: u64, name: &str) -> Option<(u64, TypeId)> {
        let objects = self.objects();
        let object = objects.get(&address)?;
        let place = member(&object.types, object.ty, &[name.to_owned()]).ok()?;
        Some((address + place.offset as u64, place.ty))
    }

    /// Copies bytes of an object, of which some bits have to be given: all that a copy needs without them.
    fn access(
        &self,
        address: u64,
        into: &mut [u8],
        bits: Option<u64>,
        is_user: bool,
    ) -> GivenAccess {
        let objects = self.objects();
        let Some((start, object)) = near(&objects, address) else {
            return GivenAccess::Absent;
        };
        if object.is_user != is_user {
            return GivenAccess::Absent;
        }
        let Label { path, owner } = &object.label;
        let size = object.bytes.len();
        let Some(offset) = address.checked_sub(start) else {
            let before = start - address;
            return GivenAccess::NotGiven(format!("what is {before} bytes before {path}{owner}"));
        };
        let (offset, len) = (offset as usize, into.len());
        if offset >= size {
            return GivenAccess::NotGiven(object.beyond(offset, len));
        }
        let inside = len.min(size - offset);
        let wanted = match bits {
            Some(bits) => bits.to_le_bytes()[..inside].to_vec(),
            None => object.copied(offset, inside),
        };
        match object.missing(offset, &wanted) {
            Some(missing) => GivenAccess::NotGiven(missing),
            None if inside < len => {
                GivenAccess::NotGiven(format!("the memory behind {path}{owner}"))
            }
            None => {
                into.copy_from_slice(&object.bytes[offset..offset + len]);
                GivenAccess::Done
            }
        }
    }
}

/// The object that an address is in, or in whose guard, which is as long behind it as in front of it.
fn near(objects: &BTreeMap<u64, ModelObject>, address: u64) -> Option<(u64, &ModelObject)> {
    let before = objects.range(..=address).next_back();
    let behind = objects.range(address..).next();
    let distance_before = before.map_or(u64::MAX, |(start, object)| {
        (address - start).saturating_sub(object.bytes.len() as u64)
    });
    let distance_behind = behind.map_or(u64::MAX, |(start, _)| start - address);
    let (found, distance) = match distance_before <= distance_behind {
        true => (before, distance_before),
        false => (behind, distance_behind),
    };
    found
        .filter(|_| distance < GUARD)
        .map(|(start, object)| (*start, object))
}

impl GivenMemory for ModelMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> GivenAccess {
        self.access(address, into, None, false)
    }

    fn load(&self, address: u64, into: &mut [u8], bits: u64) -> GivenAccess {
        self.access(address, into, Some(bits), false)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> GivenAccess {
        let mut objects = self.objects_mut();
        let Some((start, object)) = near(&objects, address) else {
            return GivenAccess::Absent;
        };
        let offset = address.wrapping_sub(start) as usize;
        let is_inside = offset.saturating_add(bytes.len()) <= object.bytes.len();
        if object.is_user {
            return GivenAccess::Absent;
        }
        if !is_inside {
            let Label { path, owner } = &object.label;
            return GivenAccess::NotGiven(format!("the memory beside {path}{owner}"));
        }
        if let Some(object) = objects.get_mut(&start) {
            object.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
            object.given[offset..offset + bytes.len()].fill(0xff);
        }
        GivenAccess::Done
    }

    fn read_user(&self, address: u64, into: &mut [u8]) -> GivenAccess {
        self.access(address, into, None, true)
    }

    fn place(&self, address: u64) -> Option<(String, u64)> {
        let objects = self.objects();
        let (start, object) = objects.range(..=address).next_back()?;
        let offset = address - start;
        let Label { path, owner } = &object.label;
        (offset < object.bytes.len() as u64).then(|| (format!("{path}{owner}"), offset))
    }

    fn member_name(&self, address: u64, len: usize) -> Option<String> {
        let objects = self.objects();
        let (start, object) = objects.range(..=address).next_back()?;
        let offset = (address - start) as usize;
        let Label { path, owner } = &object.label;
        if let Some((_, argument)) = object.arguments.iter().find(|(at, _)| *at == offset) {
            return Some(argument.clone());
        }
        if object.ty.is_void() || offset >= object.bytes.len() {
            return None;
        }
        let field = name_at(&object.types, object.ty, (offset, len), 0xff)?;
        // An object with a name is called by it.
        Some(match owner.strip_prefix(" of ") {
            Some(owner) if !path.contains('.') => format!("{owner}{field}"),
            _ => format!("{path}{field}{owner}"),
        })
    }
}
