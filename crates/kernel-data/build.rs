//! Unpacks the BTF of the built-in kernel and computes its index, so that neither takes
//! time when a program starts: both are mapped with the program.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::PathBuf;

use btf::Btf;
use lzma_rust2::XzReader;

const PACKED: &str = "data/linux-6.18.btf.xz";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={PACKED}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let mut blob = Vec::new();
    XzReader::new(File::open(PACKED)?, false).read_to_end(&mut blob)?;
    fs::write(out.join("linux-6.18.index"), Btf::parse(&*blob)?.to_index())?;
    fs::write(out.join("linux-6.18.btf"), blob)?;
    Ok(())
}
