//! What runs leave, and how it is compared.

use std::collections::BTreeMap;

/// What a run leaves: its result, or the error number, and the maps behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) result: Result<Returned, i32>,
    pub(super) maps: Vec<MapLeft>,
}

/// What a test run returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Returned {
    pub(super) retval: u32,
    pub(super) data: Vec<u8>,
    pub(super) context: Vec<u8>,
}

/// Entries of a map, or the error number of iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MapLeft {
    pub(super) name: String,
    pub(super) entries: Result<BTreeMap<Vec<u8>, Vec<u8>>, i32>,
}

/// Differences to the kernel in what its own runs, `theirs` and others, have in common; the
/// first of each kind.
pub(super) fn differences(ours: &[Left], theirs: &[Left], others: &[Vec<Left>]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let again: Vec<&Left> = others.iter().filter_map(|runs| runs.get(at)).collect();
        if again
            .iter()
            .all(|again| again.result.is_ok() == theirs.result.is_ok())
        {
            let what = of_results(&ours.result, &theirs.result, &again);
            found.extend(what.map(|what| format!("input {at}: {what}")));
        }
        for (place, (ours, theirs)) in ours.maps.iter().zip(&theirs.maps).enumerate() {
            let again: Vec<&MapLeft> = again
                .iter()
                .filter_map(|left| left.maps.get(place))
                .collect();
            if let Some(what) = of_maps(ours, theirs, &again) {
                found.push(format!("input {at}: map {}: {what}", ours.name));
            }
        }
        // What follows from a difference is not a second one.
        if !found.is_empty() {
            break;
        }
    }
    found
}

fn of_results(
    ours: &Result<Returned, i32>,
    theirs: &Result<Returned, i32>,
    again: &[&Left],
) -> Option<String> {
    let (ours, theirs) = match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => (ours, theirs),
        (Err(ours), Err(theirs)) if ours == theirs => return None,
        _ => {
            let short = |result: &Result<Returned, i32>| match result {
                Ok(returned) => format!("{:#x}", returned.retval),
                Err(errno) => format!("errno {errno}"),
            };
            return Some(format!("{}, the kernel {}", short(ours), short(theirs)));
        }
    };
    let again = again.iter().filter_map(|left| left.result.as_ref().ok());
    let again: Vec<&Returned> = again.collect();
    let is_constant = again.iter().all(|again| again.retval == theirs.retval);
    if is_constant && ours.retval != theirs.retval {
        let (ours, theirs) = (ours.retval, theirs.retval);
        return Some(format!("returns {ours:#x}, in the kernel {theirs:#x}"));
    }
    let part = |part: fn(&Returned) -> &Vec<u8>| {
        let again: Vec<&[u8]> = again.iter().map(|again| &part(again)[..]).collect();
        of_bytes(part(ours), part(theirs), &again)
    };
    let data = part(|returned| &returned.data).map(|what| format!("data: {what}"));
    data.or_else(|| part(|returned| &returned.context).map(|what| format!("context: {what}")))
}

fn of_maps(ours: &MapLeft, theirs: &MapLeft, again: &[&MapLeft]) -> Option<String> {
    let Ok(theirs) = &theirs.entries else {
        let is_equal = ours.entries == theirs.entries;
        return (!is_equal).then(|| format!("{:?}, the kernel {:?}", ours.entries, theirs.entries));
    };
    let Ok(ours) = &ours.entries else {
        return Some(format!("{:?}, the kernel has entries", ours.entries));
    };
    let again = again.iter().filter_map(|map| map.entries.as_ref().ok());
    let again: Vec<_> = again.collect();
    if again.iter().any(|again| again.keys().ne(theirs.keys())) {
        return None;
    }
    if ours.keys().ne(theirs.keys()) {
        let count = (ours.len(), theirs.len());
        return Some(format!("other keys: {} here, {} there", count.0, count.1));
    }
    let mut entries = theirs.iter().zip(ours.values());
    entries.find_map(|((key, theirs), ours)| {
        let again: Vec<&[u8]> = again.iter().map(|again| &again[key][..]).collect();
        let what = of_bytes(ours, theirs, &again)?;
        Some(format!("key {key:02x?}: {what}"))
    })
}

/// The first word that differs where the kernel's own runs have the same.
fn of_bytes(ours: &[u8], theirs: &[u8], again: &[&[u8]]) -> Option<String> {
    if again.iter().any(|again| again.len() != theirs.len()) {
        return None;
    }
    if ours.len() != theirs.len() {
        return Some(format!("{} bytes, the kernel {}", ours.len(), theirs.len()));
    }
    let words = (0..ours.len())
        .step_by(8)
        .map(|at| at..(at + 8).min(ours.len()));
    let mut words = words.filter(|word| {
        let is_constant = again
            .iter()
            .all(|again| again[word.clone()] == theirs[word.clone()]);
        is_constant && ours[word.clone()] != theirs[word.clone()]
    });
    let word = words.next()?;
    let (at, ours, theirs) = (word.start, &ours[word.clone()], &theirs[word]);
    Some(format!("byte {at}: {ours:02x?}, the kernel {theirs:02x?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left(retval: u32, value: &[u8]) -> Vec<Left> {
        vec![Left {
            result: Ok(Returned {
                retval,
                data: Vec::new(),
                context: Vec::new(),
            }),
            maps: vec![MapLeft {
                name: "m".to_owned(),
                entries: Ok(BTreeMap::from([(vec![1], value.to_vec())])),
            }],
        }]
    }

    #[test]
    fn what_varies_in_the_kernel_is_not_compared() {
        let theirs = left(1, &[1; 16]);
        let mut value = [1; 16];
        assert!(differences(&left(1, &value), &theirs, &[]).is_empty());
        value[9] = 2;
        assert_eq!(differences(&left(2, &value), &theirs, &[]).len(), 2);
        let mut other = [1; 16];
        other[15] = 4;
        let again = [left(1, &[1; 16]), left(3, &other)];
        assert!(differences(&left(2, &value), &theirs, &again).is_empty());
        value[0] = 2;
        assert_eq!(differences(&left(2, &value), &theirs, &again).len(), 1);
    }
}
