//! The objects of the kernel and the memory of the process that a test gives, with what was given of them.
//!
//! Objects are at addresses that look like Linux's, in the order in which they are given, a guard of 64 KiB
//! behind each. Finding one is a search in a tree.

use std::collections::BTreeMap;
use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard};

use btf::{Btf, TypeId};
use vm::{GivenAccess, GivenMemory};

use super::names::{member, name_at, type_name, type_of};

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
    /// Which bytes were given.
    pub(super) given: Vec<bool>,
    /// Names of words that are arguments, by their offsets.
    pub(super) arguments: Vec<(usize, String)>,
    pub(super) is_user: bool,
}

impl ModelObject {
    /// The first of some bytes that was not given, in words; bytes between members are zero.
    fn missing(&self, offset: usize, len: usize) -> Option<String> {
        let all = offset..offset + len;
        let mut missing = all.filter(|at| !self.given[*at]);
        missing.find_map(|at| {
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
            let len = if at == offset { len } else { 0 };
            let field = name_at(&self.types, self.ty, at, len)?;
            Some(format!("{path}{field}{owner}"))
        })
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
            given: vec![false; size],
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
        match self.access(address + offset, size, false, |object, at| {
            bytes[..size].copy_from_slice(&object.bytes[at..at + size]);
        }) {
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

    /// The pointer in a member of a structure that may lie within an object.
    pub(super) fn pointer_at(&self, address: u64, ty: &str, name: &str) -> Result<u64, String> {
        let place = member(&self.types, type_of(&self.types, ty)?, &[name.to_owned()])?;
        let mut bytes = [0; 8];
        match self.read(address + place.offset as u64, &mut bytes) {
            GivenAccess::Done => Ok(u64::from_le_bytes(bytes)),
            GivenAccess::NotGiven(what) => Err(format!("{what} was not given")),
            GivenAccess::Absent => Err(format!("no given {ty} is at {address:#x}")),
        }
    }

    /// Hands over the object that holds bytes which were given, and their offset.
    fn access(
        &self,
        address: u64,
        len: usize,
        is_user: bool,
        copy: impl FnOnce(&ModelObject, usize),
    ) -> GivenAccess {
        let objects = self.objects();
        let Some((start, object)) = objects.range(..=address).next_back() else {
            return GivenAccess::Absent;
        };
        let offset = (address - start) as usize;
        if object.is_user != is_user || offset >= object.bytes.len() {
            return GivenAccess::Absent;
        }
        let inside = len.min(object.bytes.len() - offset);
        let Label { path, owner } = &object.label;
        match object.missing(offset, inside) {
            Some(missing) => GivenAccess::NotGiven(missing),
            None if inside < len => {
                GivenAccess::NotGiven(format!("the memory behind {path}{owner}"))
            }
            None => {
                copy(object, offset);
                GivenAccess::Done
            }
        }
    }
}

impl GivenMemory for ModelMemory {
    fn read(&self, address: u64, into: &mut [u8]) -> GivenAccess {
        self.access(address, into.len(), false, |object, at| {
            into.copy_from_slice(&object.bytes[at..at + into.len()]);
        })
    }

    fn write(&self, address: u64, bytes: &[u8]) -> GivenAccess {
        let mut objects = self.objects_mut();
        let Some((start, object)) = objects.range_mut(..=address).next_back() else {
            return GivenAccess::Absent;
        };
        let offset = (address - start) as usize;
        let end = offset.saturating_add(bytes.len());
        if object.is_user || end > object.bytes.len() {
            return GivenAccess::Absent;
        }
        object.bytes[offset..end].copy_from_slice(bytes);
        object.given[offset..end].fill(true);
        GivenAccess::Done
    }

    fn read_user(&self, address: u64, into: &mut [u8]) -> GivenAccess {
        self.access(address, into.len(), true, |object, at| {
            into.copy_from_slice(&object.bytes[at..at + into.len()]);
        })
    }

    fn place(&self, address: u64) -> Option<(String, u64)> {
        let objects = self.objects();
        let (start, object) = objects.range(..=address).next_back()?;
        let offset = address - start;
        let Label { path, owner } = &object.label;
        (offset < object.bytes.len() as u64).then(|| (format!("{path}{owner}"), offset))
    }
}
