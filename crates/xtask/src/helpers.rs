//! Writes the page that lists helpers.

use std::fs;
use std::path::Path;

use crate::Outcome;

/// Writes docs/helpers.md.
pub(crate) fn list() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
    fs::write(
        root.join("docs/helpers.md"),
        testkit::helpers::page(&registry),
    )?;
    Ok(())
}
