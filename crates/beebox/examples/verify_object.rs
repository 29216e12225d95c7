//! Verifies the programs of an object as Linux 6.18 does when they are loaded.

use std::error::Error;

use beebox::verify::{Loader, Options, Verdict, verify};

/// Each program with its verdict.
pub(crate) fn verdicts(file: &[u8], name: &str) -> Result<Vec<String>, Box<dyn Error>> {
    let kernel = beebox::kernel::linux_6_18();
    let registry = kernel.registry().ok_or("the description has no registry")?;
    let mut lines = Vec::new();
    Loader::new(&kernel).load_each(file, name, &mut |loaded| {
        let verdict = match &loaded.program {
            Ok(program) => match verify(program, &kernel, registry, &Options::default()).verdict {
                Verdict::Accepted => "accepted".to_owned(),
                Verdict::Refused(refusal) => format!("refused: {}", refusal.message),
                Verdict::Unsupported(what) | Verdict::Bug(what) => {
                    format!("not decided: {what}")
                }
            },
            Err(error) => format!("cannot be linked: {error}"),
        };
        lines.push(format!("{}: {verdict}", loaded.name));
    })?;
    Ok(lines)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: verify_object FILE.bpf.o")?;
    println!("{}", verdicts(&std::fs::read(&path)?, &path)?.join("\n"));
    Ok(())
}
