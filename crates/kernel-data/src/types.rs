//! BTF of vmlinux in both configurations: one as it is, the other as the difference to it.
//!
//! The difference is an LZMA2 stream whose dictionary begins as the first BTF, so that strings and
//! runs of types that both have cost little.

use std::io::{self, Read as _};
use std::sync::{Arc, LazyLock};

use btf::Btf;
use lzma_rust2::Lzma2Reader;

use crate::Configuration;

/// BTF of Debian's configuration.
pub const TYPES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/linux-6.18.btf"));
/// Index of [`TYPES`].
const INDEX: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/linux-6.18.index"));
/// The minimal configuration's, as the difference to [`TYPES`].
const DIFFERENCE: &[u8] = include_bytes!("../data/linux-6.18-minimal.btf.lzma2");

/// Bytes of the dictionary of the difference, which holds both.
pub const DICTIONARY: u32 = 16 << 20;

/// BTF of the kernel in a configuration.
pub(crate) fn of(configuration: Configuration) -> Arc<Btf<'static>> {
    static MINIMAL: LazyLock<Arc<Btf<'static>>> = LazyLock::new(|| {
        let blob = with_difference(TYPES, DIFFERENCE).expect("bytes as they were written");
        Arc::new(Btf::parse(blob).expect("the kernel's own types"))
    });
    match configuration {
        Configuration::Debian => {
            Arc::new(Btf::with_index(TYPES, INDEX).expect("the index that was built"))
        }
        Configuration::Minimal => MINIMAL.clone(),
    }
}

/// The bytes that differ from others by this.
fn with_difference(base: &[u8], difference: &[u8]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Lzma2Reader::new(difference, DICTIONARY, Some(base)).read_to_end(&mut bytes)?;
    Ok(bytes)
}
