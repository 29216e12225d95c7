//! Verification of all programs of an object, with its results as data.

use spec::Kernel;
use spec::programs::ProgramType;
use verifier::reason::Explanation;
use verifier::{Options, Verdict, Verification, explain, verify};

use super::{MapNote, ProgramLoader, Registry, StandaloneProgram};
use crate::Object;
use crate::failure::{Cause, Error};

/// The verification of a program of an object.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProgramVerification {
    /// Its name.
    pub name: String,
    /// Its section.
    pub section: String,
    /// Its type, if its section says one.
    pub kind: Option<ProgramType>,
    /// Verdict, counts and log, or why the program cannot be linked.
    pub verification: Result<Verification, Error>,
    /// The explanation, if the program is refused.
    pub explanation: Option<Explanation>,
    /// The kernel's refusal of the object's BTF, if it refuses it: the last line of its
    /// log. The program is verified without.
    pub btf_refusal: Option<String>,
    /// Assumptions about its maps.
    #[doc(hidden)]
    pub notes: Vec<MapNote>,
}

impl ProgramVerification {
    /// The explanation as text of several lines, if the program is refused.
    pub fn explanation_text(&self) -> Option<String> {
        self.explanation.as_ref().map(super::explanation_text)
    }
}

impl Object {
    /// Verifies its programs for a kernel, in the order of the file, each loaded alone. A program that is
    /// refused is verified a second time for its explanation.
    ///
    /// # Errors
    /// If the object cannot be opened, or the kernel has no registry. A program that cannot be
    /// linked is among the results.
    pub fn verify(
        &self,
        kernel: &Kernel,
        options: &Options,
    ) -> Result<Vec<ProgramVerification>, Error> {
        let registry = kernel.registry().ok_or(Cause::NoRegistry)?;
        let mut results = Vec::new();
        let loaded =
            ProgramLoader::new(kernel).load_each(self.bytes(), self.place(), &mut |loaded| {
                results.push(verify_loaded(loaded, kernel, registry, options));
            });
        loaded.map_err(link_error)?;
        Ok(results)
    }
}

fn verify_loaded(
    loaded: StandaloneProgram,
    kernel: &Kernel,
    registry: &Registry,
    options: &Options,
) -> ProgramVerification {
    let mut explanation = None;
    let verification = match &loaded.program {
        Ok(program) => {
            let done = verify(program, kernel, registry, options);
            let done = loaded.check_release(done, kernel);
            if let Verdict::Refused(_) = done.verdict {
                explanation = explain(program, kernel, registry, options);
            }
            Ok(done)
        }
        Err(error) => Err(link_error(error.clone())),
    };
    ProgramVerification {
        name: loaded.name,
        section: loaded.section,
        kind: loaded.kind,
        verification,
        explanation,
        btf_refusal: loaded.btf_refusal,
        notes: loaded.notes,
    }
}

fn link_error(error: ::object::Error) -> Error {
    Cause::Object(Box::new(error)).into()
}
