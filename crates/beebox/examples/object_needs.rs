//! Lists what an object needs of the kernel, newest first.

use std::error::Error;

use beebox::internal::object::Object;

/// Each thing that the object needs, with the release of Linux that introduced it.
pub(crate) fn needs(file: &[u8]) -> Result<Vec<String>, Box<dyn Error>> {
    let object = Object::open(file)?;
    let mut lines = Vec::new();
    for need in object.overview().needs() {
        if let Some(since) = need.since {
            let (category, name) = (need.category(), need.name_in(&object));
            lines.push(format!("Linux {}: {category} {name}", since.release));
        }
    }
    Ok(lines)
}

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1);
    let path = path.ok_or("usage: object_needs FILE.bpf.o")?;
    println!("{}", needs(&std::fs::read(path)?)?.join("\n"));
    Ok(())
}
