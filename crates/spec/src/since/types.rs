//! The release of a kernel by its BTF: the newest thing that the tables and the BTF have.

use btf::{Btf, Kind, Shape};

use super::{Release, Since, kfuncs};
use crate::helpers;
use crate::maps::MapKind;
use crate::programs::{AttachType, ProgramType};

/// Newest release of which the BTF of a kernel has a program type, attach type, map kind,
/// helper or kfunc, and the name of that. `None` if the BTF has no enumeration of these, as
/// BTF that is no kernel's. The kernel is of this release, or of a later one that added none.
pub fn newest_in(btf: &Btf<'_>) -> Option<(Release, String)> {
    let most = |name, known: &dyn Fn(u32) -> Option<(Since, String)>| {
        let values = numbers(btf, name);
        values.into_iter().filter_map(known).map(newest).max()
    };
    let enumerated = [
        most("bpf_prog_type", &|number| {
            let kind = ProgramType::from_number(number)?;
            Some((kind.since(), format!("program type {}", kind.name())))
        }),
        most("bpf_attach_type", &|number| {
            let attach = AttachType::from_number(number)?;
            Some((attach.since(), format!("attach type {}", attach.name())))
        }),
        most("bpf_map_type", &|number| {
            let kind = MapKind::from_number(number)?;
            Some((kind.since(), format!("map type {}", kind.name())))
        }),
        most("bpf_func_id", &|number| {
            let helper = helpers::helper(number as i32)?;
            Some((helper.since, format!("helper {}", helper.name)))
        }),
    ];
    let enumerated = enumerated.into_iter().flatten().max()?;
    // Others, of congestion control, were functions before they became kfuncs.
    let made = kfuncs::all().filter(|(name, _)| name.contains("bpf_"));
    let functions = made.filter(|(name, _)| btf.find(Kind::Func, name).is_some());
    let functions = functions.map(|(name, since)| newest((since, format!("kfunc {name}"))));
    functions.chain([enumerated]).max()
}

fn newest((since, name): (Since, String)) -> (Release, String) {
    (since.release, name)
}

/// Values of an enumeration, without those of names that begin with two underscores, which
/// count the others.
fn numbers(btf: &Btf<'_>, name: &str) -> Vec<u32> {
    let Some(Shape::Enum(found)) = btf.find(Kind::Enum, name).map(|ty| ty.shape()) else {
        return Vec::new();
    };
    let values = found.values();
    let named = values.filter(|value| !btf.string(value.name).as_bytes().starts_with(b"__"));
    named.map(|value| value.value as u32).collect()
}
