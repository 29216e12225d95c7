//! Programs for the kernel that this benchmark verifies against.

use std::sync::Arc;

use program::{MapDef, Program};
use spec::Kernel;
use spec::programs::ProgramType;
use spec::registry::Registry;
use verifier::Proof;

use crate::Failure;

/// Linux 6.18, for the verifier.
pub(super) struct Verifier {
    pub(super) kernel: Kernel,
    registry: Registry,
}

impl Verifier {
    pub(super) fn new() -> Result<Verifier, Failure> {
        let kernel = kernel_data::linux_6_18();
        let types = kernel.btf().ok_or_else(|| failed("no types".into()))?;
        let registry = kernel_data::linux_6_18_registry(types);
        Ok(Verifier { kernel, registry })
    }

    /// Verifies a program.
    pub(super) fn prove(&self, program: &Program) -> Result<Proof, Failure> {
        Proof::of(program, &self.kernel, &self.registry)
            .map_err(|refused| failed(format!("{:?}\n{}", refused.verdict, refused.log)))
    }
}

/// An XDP program with these maps.
pub(super) fn xdp(text: &str, maps: Vec<MapDef>) -> Result<Program, Failure> {
    let maps = maps.into_iter().map(Arc::new).collect();
    differential::execution::build(ProgramType::Xdp, text, maps).map_err(failed)
}

pub(super) fn failed(said: String) -> Failure {
    Failure::Process {
        purpose: "preparing a program with maps",
        said,
    }
}
