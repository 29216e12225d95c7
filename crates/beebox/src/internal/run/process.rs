//! The process of the programs of an object: it verifies what they load for the object's kernel.

use std::sync::Arc;

use ::kernel::maps::Host;
use ::kernel::process::{Process, ProgramVerifier};
use program::Program;
use spec::{Errno, Kernel};
use verifier::{Proof, Verdict};

/// The verifier of a kernel.
#[derive(Debug)]
struct KernelVerifier(Kernel);

impl ProgramVerifier for KernelVerifier {
    fn verify(&self, program: &Program) -> Result<(), Errno> {
        let registry = self.0.registry().ok_or(Errno::EPERM)?;
        let verification = match Proof::of(program, &self.0, registry) {
            Ok(_) => return Ok(()),
            Err(verification) => verification,
        };
        Err(match verification.verdict {
            Verdict::Refused(refusal) => refusal.errno,
            // Programs that the verifier does not support cannot be loaded.
            Verdict::Unsupported(_) | Verdict::Bug(_) | Verdict::Accepted => Errno::ENOTSUPP,
        })
    }
}

/// A process on a kernel.
pub(super) fn new(kernel: &Kernel, host: &Host) -> Process {
    let verifier: Arc<dyn ProgramVerifier> = Arc::new(KernelVerifier(kernel.clone()));
    Process::new(host.clone(), kernel.clone(), Some(verifier))
}
