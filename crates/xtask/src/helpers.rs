//! Writes the pages that list helpers, kernel functions and refusals.

use std::fs;
use std::path::Path;

use crate::Outcome;

/// The page that lists helpers.
const PAGE: &str = "docs/helpers.md";

/// Writes docs/helpers.md. The table of runs stays as it is.
pub(crate) fn list() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kernel = kernel_data::linux_6_18();
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let registry = kernel_data::linux_6_18_registry(types);
    let path = root.join(PAGE);
    let old = fs::read_to_string(&path)?;
    let runs = differential::page::part(&old, "runs").unwrap_or_default();
    fs::write(path, differential::helpers::page(&registry, runs))?;
    Ok(())
}

/// Writes docs/kfuncs.md and the header of the bit operations.
pub(crate) fn list_kfuncs() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kernel = kernel_data::linux_6_18();
    let registry = (kernel.registry()).ok_or("the built-in kernel has no registry")?;
    let types = kernel.btf().ok_or("the built-in kernel has no BTF")?;
    let page = report::kfuncs::page(registry, types, beebox::internal::run::kfunc_state);
    fs::write(root.join("docs/kfuncs.md"), page)?;
    let header = root.join("examples/bits").join(spec::bits::HEADER);
    fs::write(header, spec::bits::header())?;
    Ok(())
}

/// Writes docs/refusals.md, the page of the most frequent refusals.
pub(crate) fn list_refusals() -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::write(
        root.join("docs/refusals.md"),
        differential::refusals::page()?,
    )?;
    Ok(())
}
