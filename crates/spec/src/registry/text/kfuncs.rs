//! Lines of kfuncs: `kfunc NAME FLAGS TYPE,… except=TYPE:ATTACH,…`.

use std::fmt::{self, Write as _};

use super::words::{Words, hex};
use crate::programs::{AttachType, ProgramType};
use crate::registry::{Kfunc, KfuncFlags, ProgramTypes, SpecialKfunc};

/// Reads a kfunc.
pub(super) fn read_kfunc(mut words: Words<'_>) -> Option<Kfunc> {
    let name = words.next()?;
    let flags = u32::try_from(hex(words.next()?)?).ok()?;
    let types = words.next()?.split(',').filter(|name| *name != "-");
    let types = types.map(ProgramType::from_name);
    let types = types.collect::<Option<Vec<_>>>()?.into_iter();
    let exceptions = match words.next() {
        None => Vec::new(),
        Some(word) => {
            let pairs = word.strip_prefix("except=")?.split(',');
            let pairs = pairs.map(|pair| {
                let (kind, attach) = pair.split_once(':')?;
                let attach = AttachType::from_number(attach.parse().ok()?)?;
                Some((ProgramType::from_name(kind)?, attach))
            });
            pairs.collect::<Option<_>>()?
        }
    };
    Some(Kfunc {
        name: name.into(),
        special: SpecialKfunc::named(name),
        btf_id: 0,
        flags: KfuncFlags(flags),
        program_types: types.fold(ProgramTypes::default(), |types, kind| types.with(kind)),
        exceptions,
    })
}

/// Writes a kfunc.
pub(super) fn write_kfunc(kfunc: &Kfunc, out: &mut String) -> fmt::Result {
    let types = ProgramType::ALL.iter();
    let types = types.filter(|kind| kfunc.program_types.has(**kind));
    let types: Vec<&str> = types.map(|kind| kind.name()).collect();
    let types = if types.is_empty() {
        "-".to_owned()
    } else {
        types.join(",")
    };
    write!(out, "kfunc {} {:#x} {types}", kfunc.name, kfunc.flags.0)?;
    for ((kind, attach), index) in kfunc.exceptions.iter().zip(0..) {
        let before = if index == 0 { " except=" } else { "," };
        write!(out, "{before}{kind}:{}", attach.number())?;
    }
    out.push('\n');
    Ok(())
}
