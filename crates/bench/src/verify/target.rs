//! The running kernel, as programs are linked and verified for it.

use btf::Btf;
use program::Program;
use spec::Kernel;
use spec::registry::Registry;
use verifier::{Options, Verification};

use crate::Failure;

/// The running kernel with the registry of Linux 6.18.
pub(super) struct Target {
    pub(super) kernel: Kernel,
    registry: Registry,
}

impl Target {
    /// Reads the running kernel's types.
    pub(super) fn running() -> Result<Target, Failure> {
        const PURPOSE: &str = "reading the running kernel's types";
        let kernel = sys::kernel::running().map_err(|error| Failure::System(PURPOSE, error))?;
        let Some(btf) = kernel.btf() else {
            return Err(Failure::Process {
                purpose: PURPOSE,
                said: "it has no BTF".to_owned(),
            });
        };
        let registry = kernel_data::linux_6_18_minimal_registry(btf);
        Ok(Target { kernel, registry })
    }

    /// The kernel's types.
    pub(super) fn types(&self) -> &Btf<'static> {
        self.kernel.btf().expect("types that `running` found")
    }

    /// Verifies a program for this kernel.
    pub(super) fn verify(&self, program: &Program, options: &Options) -> Verification {
        verifier::verify(program, &self.kernel, &self.registry, options)
    }
}
