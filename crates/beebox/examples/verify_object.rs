//! Verifies the programs of an object as Linux 6.18 does when they are loaded.

use beebox::kernel::Kernels as _;
use beebox::verify::{Options, Verdict};
use beebox::{Error, Kernel, Object};

/// Each program with its verdict, and the explanation if it is refused.
pub(crate) fn verdicts(object: &Object) -> Result<Vec<String>, Error> {
    let kernel = Kernel::preset("6.18")?;
    let mut lines = Vec::new();
    for program in object.verify(&kernel, &Options::default())? {
        let verdict = match program.verification.as_ref().map(|done| &done.verdict) {
            Ok(Verdict::Accepted) => "accepted".to_owned(),
            Ok(Verdict::Refused(refusal)) => format!("refused: {}", refusal.message()),
            Ok(Verdict::Unsupported(what) | Verdict::Bug(what)) => format!("not decided: {what}"),
            Err(error) => format!("cannot be linked: {error}"),
        };
        lines.push(format!("{}: {verdict}", program.name));
        lines.extend(program.explanation_text());
    }
    Ok(lines)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: verify_object FILE.bpf.o")?;
    println!("{}", verdicts(&Object::open(path)?)?.join("\n"));
    Ok(())
}
