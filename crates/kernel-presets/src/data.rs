//! The data of a kernel in one file: types, configuration, registry and symbols as differences to those of
//! the built-in Linux 6.18.
//!
//! A file is four parts, each an LZMA2 stream behind its length. Texts are compressed with the text of
//! Linux 6.18 as dictionary, so that what both have costs little. Types are a difference
//! ([`crate::types`]).

use std::io::Read as _;
use std::sync::{Arc, LazyLock};

use btf::{Btf, Kind};
use kernel_data::Configuration;
use lzma_rust2::Lzma2Reader;
use spec::kernel::KernelConfig;
use spec::registry::{Registry, text};

use crate::types::{self, Base};

/// Bytes of the dictionary of a text, which holds that of Linux 6.18 and the kernel's own.
const DICTIONARY: u32 = 8 << 20;

/// What is known of a kernel, as text and bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// BTF of vmlinux.
    pub types: Vec<u8>,
    /// Lines of the configuration that set an option.
    pub config: String,
    /// Registry of helpers, contexts and kfuncs, with names in place of BTF ids.
    pub registry: String,
    /// Symbols beside the functions of BTF (`kernel_data::symbols`).
    pub symbols: String,
}

/// A part of a file.
#[derive(Clone, Copy)]
enum Part {
    Types,
    Config,
    Registry,
    Symbols,
}

impl Facts {
    /// The bytes of these facts; `None` if the types are not of the form that kernels write.
    /// `compress` makes an LZMA2 stream of bytes, which continue a dictionary; with it go the bytes of
    /// the dictionary of the stream.
    ///
    /// # Errors
    /// Those of `compress`.
    pub fn pack<E>(
        &self,
        compress: impl Fn(&[u8], Option<Vec<u8>>, u32) -> Result<Vec<u8>, E>,
    ) -> Result<Option<Vec<u8>>, E> {
        let Some(types) = types::difference(kernel_data::TYPES, &self.types) else {
            return Ok(None);
        };
        let mut file = Vec::new();
        for (part, bytes) in [
            (Part::Types, &types[..]),
            (Part::Config, self.config.as_bytes()),
            (Part::Registry, self.registry.as_bytes()),
            (Part::Symbols, self.symbols.as_bytes()),
        ] {
            let packed = compress(bytes, part.dictionary(), DICTIONARY)?;
            file.extend((packed.len() as u32).to_le_bytes());
            file.extend(packed);
        }
        Ok(Some(file))
    }
}

impl Part {
    /// The text that the compressed one continues.
    fn dictionary(self) -> Option<Vec<u8>> {
        let debian = Configuration::Debian;
        match self {
            Part::Types => None,
            Part::Config => Some(debian.config().text().as_bytes().to_vec()),
            Part::Registry => Some(kernel_data::registry_text()),
            Part::Symbols => Some(debian.symbol_text().into_bytes()),
        }
    }
}

/// The data of a kernel, packed.
#[derive(Clone, Copy)]
pub struct Packed(pub &'static [u8]);

impl Packed {
    fn part(self, part: Part) -> Vec<u8> {
        let mut rest = self.0;
        let mut packed = &[][..];
        for _ in 0..=part as usize {
            let (len, behind) = rest.split_at(4);
            let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
            (packed, rest) = behind.split_at(len);
        }
        let dictionary = part.dictionary();
        let mut bytes = Vec::new();
        Lzma2Reader::new(packed, DICTIONARY, dictionary.as_deref())
            .read_to_end(&mut bytes)
            .expect("bytes as they were written");
        bytes
    }

    /// Bytes of the parts: types, configuration, registry, symbols.
    pub fn lengths(self) -> [usize; 4] {
        let mut rest = self.0;
        [(); 4].map(|()| {
            let (len, behind) = rest.split_at(4);
            let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
            rest = &behind[len..];
            len
        })
    }

    fn text(self, part: Part) -> String {
        String::from_utf8(self.part(part)).expect("text as it was written")
    }

    /// BTF of vmlinux, byte for byte.
    pub fn types(self) -> Arc<Btf<'static>> {
        static BASE: LazyLock<Base> =
            LazyLock::new(|| Base::new(kernel_data::TYPES).expect("the kernel's own types"));
        let blob = BASE.apply(&self.part(Part::Types));
        let blob = blob.expect("a difference as it was written");
        Arc::new(Btf::parse(blob).expect("the kernel's own types"))
    }

    /// Configuration.
    pub fn config(self) -> KernelConfig {
        KernelConfig::new(self.text(Part::Config))
    }

    /// Text of the registry.
    pub fn registry_text(self) -> String {
        self.text(Part::Registry)
    }

    /// Symbols beside the functions of BTF.
    pub fn symbol_text(self) -> String {
        self.text(Part::Symbols)
    }

    /// All facts.
    pub fn unpack(self) -> Facts {
        Facts {
            types: self.types().as_bytes().to_vec(),
            config: self.text(Part::Config),
            registry: self.registry_text(),
            symbols: self.symbol_text(),
        }
    }
}

/// The registry of a text, resolved to the ids of these types.
pub(crate) fn registry(lines: &str, types: &Btf<'_>) -> Registry {
    let mut registry = text::parse(lines).expect("lines as they were written");
    let id = |kind, name: &str| types.find(kind, name).map(|ty| ty.id().0);
    registry.resolve(|name| id(Kind::Struct, name), |name| id(Kind::Func, name));
    registry
}
