//! Results of runs and their comparison.

use std::collections::BTreeMap;

/// Result of a run: its return value, or the error number, and the maps behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) result: Result<Returned, i32>,
    pub(super) maps: Vec<MapLeft>,
}

/// Result of a test run.
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

/// Runs of one program that each side made beside those that are compared.
#[derive(Default)]
pub(super) struct Others {
    /// In the kernel: in other threads, on other CPUs.
    pub(super) theirs: Vec<Vec<Left>>,
    /// Here: in other engines, with another stack.
    pub(super) ours: Vec<Vec<Left>>,
}

/// Differences to the kernel in what the runs of each side have in common; the first of each
/// kind. What the kernel's runs leave different depends on time, chance or addresses; what the
/// runs here leave different, on addresses or on memory that the program has not written.
pub(super) fn differences(ours: &[Left], theirs: &[Left], others: &Others) -> Vec<String> {
    let mut found = Vec::new();
    let at_input = |runs: &[Vec<Left>], at: usize| -> Vec<Left> {
        runs.iter()
            .filter_map(|runs| runs.get(at).cloned())
            .collect()
    };
    for (at, (ours, theirs)) in ours.iter().zip(theirs).enumerate() {
        let (own, again) = (at_input(&others.ours, at), at_input(&others.theirs, at));
        let ends_alike = |one: &Left, others: &[Left]| {
            (others.iter()).all(|other| other.result.is_ok() == one.result.is_ok())
        };
        if ends_alike(theirs, &again) && ends_alike(ours, &own) {
            let results = |lefts: &[Left]| -> Vec<Returned> {
                let results = lefts.iter().filter_map(|left| left.result.clone().ok());
                results.collect()
            };
            let sides = (results(&own), results(&again));
            let what = of_results(&ours.result, &theirs.result, &sides);
            found.extend(what.map(|what| format!("input {at}: {what}")));
        }
        for (place, (ours, theirs)) in ours.maps.iter().zip(&theirs.maps).enumerate() {
            let maps = |lefts: &[Left]| -> Vec<MapLeft> {
                let maps = lefts
                    .iter()
                    .filter_map(|left| left.maps.get(place).cloned());
                maps.collect()
            };
            if let Some(what) = of_maps(ours, theirs, &maps(&own), &maps(&again)) {
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
    (own, again): &(Vec<Returned>, Vec<Returned>),
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
    let is_constant = again.iter().all(|again| again.retval == theirs.retval)
        && own.iter().all(|own| own.retval == ours.retval);
    if is_constant && ours.retval != theirs.retval {
        let (ours, theirs) = (ours.retval, theirs.retval);
        return Some(format!("returns {ours:#x}, in the kernel {theirs:#x}"));
    }
    let part = |part: fn(&Returned) -> &Vec<u8>| {
        let parts = |runs: &'_ [Returned]| -> Vec<Vec<u8>> {
            runs.iter().map(|run| part(run).clone()).collect()
        };
        of_bytes(part(ours), part(theirs), &parts(own), &parts(again))
    };
    let data = part(|returned| &returned.data).map(|what| format!("data: {what}"));
    data.or_else(|| part(|returned| &returned.context).map(|what| format!("context: {what}")))
}

fn of_maps(ours: &MapLeft, theirs: &MapLeft, own: &[MapLeft], again: &[MapLeft]) -> Option<String> {
    let Ok(theirs) = &theirs.entries else {
        let is_equal = ours.entries == theirs.entries;
        return (!is_equal).then(|| format!("{:?}, the kernel {:?}", ours.entries, theirs.entries));
    };
    let Ok(ours) = &ours.entries else {
        return Some(format!("{:?}, the kernel has entries", ours.entries));
    };
    let entries = |maps: &'_ [MapLeft]| -> Vec<BTreeMap<Vec<u8>, Vec<u8>>> {
        let entries = maps.iter().filter_map(|map| map.entries.clone().ok());
        entries.collect()
    };
    let (own, again) = (entries(own), entries(again));
    let have_other_keys = again.iter().any(|again| again.keys().ne(theirs.keys()))
        || own.iter().any(|own| own.keys().ne(ours.keys()));
    if have_other_keys {
        return None;
    }
    if ours.keys().ne(theirs.keys()) {
        let count = (ours.len(), theirs.len());
        return Some(format!("other keys: {} here, {} there", count.0, count.1));
    }
    let mut entries = theirs.iter().zip(ours.values());
    entries.find_map(|((key, theirs), ours)| {
        let values = |maps: &[BTreeMap<Vec<u8>, Vec<u8>>]| -> Vec<Vec<u8>> {
            maps.iter().map(|map| map[key].clone()).collect()
        };
        let what = of_bytes(ours, theirs, &values(&own), &values(&again))?;
        Some(format!("key {key:02x?}: {what}"))
    })
}

/// The first word that differs where the runs of each side have the same.
fn of_bytes(ours: &[u8], theirs: &[u8], own: &[Vec<u8>], again: &[Vec<u8>]) -> Option<String> {
    let have_other_len = again.iter().any(|again| again.len() != theirs.len())
        || own.iter().any(|own| own.len() != ours.len());
    if have_other_len {
        return None;
    }
    if ours.len() != theirs.len() {
        return Some(format!("{} bytes, the kernel {}", ours.len(), theirs.len()));
    }
    let words = (0..ours.len())
        .step_by(8)
        .map(|at| at..(at + 8).min(ours.len()));
    let mut words = words.filter(|word| {
        let is_same = |one: &[u8], others: &[Vec<u8>]| {
            (others.iter()).all(|other| other[word.clone()] == one[word.clone()])
        };
        let is_constant = is_same(theirs, again) && is_same(ours, own);
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
    fn what_varies_on_one_side_is_not_compared() {
        let theirs = left(1, &[1; 16]);
        let mut value = [1; 16];
        let none = Others::default();
        assert!(differences(&left(1, &value), &theirs, &none).is_empty());
        value[9] = 2;
        assert_eq!(differences(&left(2, &value), &theirs, &none).len(), 2);
        let mut other = [1; 16];
        other[15] = 4;
        let runs = vec![left(1, &[1; 16]), left(3, &other)];
        let in_kernel = Others {
            theirs: runs.clone(),
            ours: Vec::new(),
        };
        assert!(differences(&left(2, &value), &theirs, &in_kernel).is_empty());
        let here = Others {
            theirs: Vec::new(),
            ours: runs,
        };
        assert!(differences(&left(2, &value), &theirs, &here).is_empty());
        value[0] = 2;
        assert_eq!(differences(&left(2, &value), &theirs, &in_kernel).len(), 1);
    }
}
