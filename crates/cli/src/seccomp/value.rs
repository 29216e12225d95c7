//! Remedies for numbers, architectures and system calls of the command line.

use beebox::internal::seccomp::ParseCallError;
use beebox::seccomp::Arch;

use crate::answer::Failure;

/// The failure for a word that names nothing.
pub(super) fn failure(error: ParseCallError) -> Failure {
    let failure = Failure::new(&error);
    match error {
        ParseCallError::Number(_) => failure,
        ParseCallError::Arch(_) => {
            let names: Vec<_> = Arch::ALL.iter().map(|arch| arch.name()).collect();
            failure.hint(format_args!("one of {}", names.join(", ")))
        }
        ParseCallError::UnnamedCalls(_) => failure.hint("--syscall with a number"),
        ParseCallError::Call { closest, .. } => {
            let failure = Failure::new(format_args!("--syscall {}", failure.what()));
            match closest {
                Some(name) => failure.hint(format_args!("--syscall {name}")),
                None => failure.hint("--syscall with a number"),
            }
        }
        ParseCallError::Constant { closest, .. } => {
            failure.within("--arg").hint(closest.unwrap_or("a number"))
        }
    }
}
