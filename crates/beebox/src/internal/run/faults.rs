//! Helpers that fail on purpose: a test says what a call of a helper returns in place of what it would do.
//! Runs are in the checked engine then, which makes every call by its number.

use interp::checked::Memory;

use super::ObjectMap;

/// What a call returns in place of what it would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForcedResult {
    /// Number of the helper.
    pub number: i32,
    /// Name of the map that its first argument points to; any without it.
    pub map: Option<String>,
    /// Which of these calls, from 1; all without it.
    pub at: Option<u64>,
    /// What it returns.
    pub result: u64,
}

/// The faults of runs, with the calls that were seen.
#[derive(Debug, Default)]
pub(crate) struct Faults(Vec<(ForcedResult, u64)>);

impl Faults {
    /// Adds a fault; one of the same calls is replaced.
    pub(crate) fn add(&mut self, fault: ForcedResult) {
        let calls = |it: &ForcedResult| (it.number, it.map.clone(), it.at);
        self.0.retain(|(known, _)| calls(known) != calls(&fault));
        self.0.push((fault, 0));
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a call returns, if it fails on purpose.
    pub(super) fn result(
        &mut self,
        (number, first): (i32, u64),
        memory: &Memory<'_>,
        maps: &[Option<ObjectMap>],
    ) -> Option<u64> {
        let mut result = None;
        for (fault, seen) in &mut self.0 {
            let is_map = fault.map.as_ref().is_none_or(|name| {
                let place = memory.map_at(first).map(|place| place as usize);
                let map = place.and_then(|place| maps.iter().flatten().nth(place));
                map.is_some_and(|map| map.def.name == *name)
            });
            if fault.number != number || !is_map {
                continue;
            }
            *seen += 1;
            if fault.at.is_none_or(|at| at == *seen) {
                result = result.or(Some(fault.result));
            }
        }
        result
    }
}
