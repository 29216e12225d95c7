//! Objects as files with their bytes.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ::object::OpenOptions;
use spec::loader::LoaderKind;

use crate::failure::{Cause, Error};

/// A BPF object (`.bpf.o`), in one piece with its bytes. Clones share them.
#[derive(Clone)]
pub struct Object {
    file: Arc<[u8]>,
    /// The path that it was read from.
    path: Option<String>,
    loader: LoaderKind,
    name: String,
    programs: Vec<String>,
    maps: Vec<String>,
}

impl Object {
    /// Reads an object from a file, by the conventions of libbpf.
    ///
    /// # Errors
    /// If the file cannot be read, or is no object of clang that libbpf takes.
    pub fn open(path: impl AsRef<Path>) -> Result<Object, Error> {
        Object::open_for(path, LoaderKind::Libbpf)
    }

    /// Reads an object that is written for a loader: its conventions say what names of sections,
    /// definitions of maps and undefined symbols mean.
    ///
    /// # Errors
    /// If the file cannot be read, or the loader refuses it.
    pub fn open_for(path: impl AsRef<Path>, loader: LoaderKind) -> Result<Object, Error> {
        let path = path.as_ref();
        let file = std::fs::read(path).map_err(|error| Cause::File(path.to_owned(), error))?;
        Object::parse(file.into(), Some(path.display().to_string()), loader)
    }

    /// An object from its bytes, by the conventions of libbpf.
    ///
    /// # Errors
    /// If they are no object of clang that libbpf takes.
    pub fn from_bytes(bytes: impl AsRef<[u8]>) -> Result<Object, Error> {
        Object::from_bytes_for(bytes, LoaderKind::Libbpf)
    }

    /// An object from its bytes that is written for a loader.
    ///
    /// # Errors
    /// If the loader refuses them.
    pub fn from_bytes_for(bytes: impl AsRef<[u8]>, loader: LoaderKind) -> Result<Object, Error> {
        Object::parse(bytes.as_ref().into(), None, loader)
    }

    fn parse(file: Arc<[u8]>, path: Option<String>, loader: LoaderKind) -> Result<Object, Error> {
        let parsed = open(&file, path.as_deref(), loader, &[])?;
        let programs = parsed.programs();
        let programs = programs.map(|(_, program)| program.name.to_string());
        let maps = parsed.maps().iter().map(|(_, map)| map.name().to_owned());
        Ok(Object {
            name: parsed.name().to_owned(),
            programs: programs.collect(),
            maps: maps.collect(),
            file: file.clone(),
            loader,
            path,
        })
    }

    /// The object, opened again.
    #[doc(hidden)]
    #[cfg(feature = "run")]
    pub fn opened(&self) -> Result<::object::Object<'_>, Error> {
        self.opened_with(&[])
    }

    /// The object, opened again with values of undefined symbols.
    #[cfg(feature = "run")]
    pub(super) fn opened_with(
        &self,
        defines: &[(String, u64)],
    ) -> Result<::object::Object<'_>, Error> {
        open(&self.file, self.path.as_deref(), self.loader, defines)
    }

    /// The path that it was read from, or its name.
    pub(crate) fn place(&self) -> &str {
        self.path.as_deref().unwrap_or(&self.name)
    }

    /// Its name, with which the names of the maps of its variables begin: that of the file up to
    /// the first dot, `object` for one from bytes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The loader whose conventions count.
    pub fn loader(&self) -> LoaderKind {
        self.loader
    }

    /// The file.
    pub fn bytes(&self) -> &[u8] {
        &self.file
    }

    /// Names of its programs, in the order of the file.
    pub fn program_names(&self) -> &[String] {
        &self.programs
    }

    /// Names of its maps, those of global variables among them.
    pub fn map_names(&self) -> &[String] {
        &self.maps
    }
}

/// Opens a file by the conventions of a loader. libbpf names the object by its path.
fn open<'f>(
    file: &'f [u8],
    path: Option<&str>,
    loader: LoaderKind,
    defines: &[(String, u64)],
) -> Result<::object::Object<'f>, Error> {
    let options = OpenOptions {
        name: path,
        loader,
        defines,
        ..OpenOptions::default()
    };
    let opened = ::object::Object::open_with(file, &options);
    let opened = opened.and_then(|object| object.check_defines(defines).map(|()| object));
    opened.map_err(|error| Cause::Object(Box::new(error)).into())
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Object")
            .field("name", &self.name)
            .field("programs", &self.programs)
            .field("maps", &self.maps)
            .finish_non_exhaustive()
    }
}
