//! Tables in the kernel's read-only data, found by their shape: sets of BTF ids behind
//! the BTF, destructors among the lists of ids there, and the arguments of tracepoints
//! that may be null (`raw_tp_null_args` of kernel/bpf/btf.c).
//!
//! A set of ids is a count, with flags for kfuncs, and ascending ids of functions or of
//! structures; ids of what the kernel was built without stand first, as 0. A list of
//! destructors is pairs of a structure and a function whose name ends in `_dtor`.
//! The table of arguments is an array of a pointer to a name and a mask of four bits an
//! argument, of which only the lower two are used; of all arrays of that shape it is
//! the one that names most tracepoints. Complexity: linear in the bytes.

use std::collections::BTreeMap;

use btf::{Btf, Kind, TypeId};

use super::memory::KernelMemory;

/// Prefix of the types of tracepoints.
pub const TRACEPOINT: &str = "btf_trace_";

/// A set of BTF ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawSet {
    /// Address.
    pub address: u64,
    /// True for a set whose entries have flags.
    pub has_flags: bool,
    /// True for a set of kfuncs.
    pub is_kfuncs: bool,
    /// BTF ids with flags; 0 for sets without.
    pub entries: Vec<(u32, u32)>,
}

impl RawSet {
    /// Names of the entries.
    pub fn names<'b>(&self, btf: &'b Btf<'_>) -> Vec<&'b str> {
        let names = self.entries.iter();
        let names = names.filter_map(|&(id, _)| btf.get(TypeId(id))?.name().to_str());
        names.collect()
    }
}

impl KernelMemory {
    /// All data after the BTF with the shape of a set of types of this kind.
    pub fn sets(&self, btf: &Btf<'_>, kind: Kind) -> Vec<RawSet> {
        let is_one = |id: u32| btf.get(TypeId(id)).is_some_and(|ty| ty.kind() == kind);
        let mut sets: Vec<RawSet> = Vec::new();
        let range = self.behind_btf();
        let mut at = range.start;
        while at + 8 < range.end {
            match self.set_at(at, &is_one) {
                Some((set, bytes)) => {
                    at += bytes;
                    sets.push(set);
                }
                None => at += 4,
            }
        }
        // Before Linux 6.9 no set says that it is one of kfuncs.
        let is_said = sets.iter().any(|set| set.is_kfuncs);
        for set in sets.iter_mut().filter(|set| set.has_flags && !is_said) {
            set.is_kfuncs = true;
        }
        sets
    }

    /// The set at an address and its bytes.
    fn set_at(&self, at: u64, is_one: &dyn Fn(u32) -> bool) -> Option<(RawSet, u64)> {
        let count = u64::from(self.u32_at(at)?);
        if !(1..=1024).contains(&count) {
            return None;
        }
        let ascends = |entries: &[(u32, u32)]| entries.is_sorted_by(|one, other| one.0 < other.0);
        // With flags: count, flags of the set, pairs.
        let pairs = (0..count).map(|index| {
            let id = self.u32_at(at + 8 + 8 * index)?;
            let flags = self.u32_at(at + 12 + 8 * index)?;
            (is_one(id) && flags < 1 << 20).then_some((id, flags))
        });
        if self.u32_at(at + 4)? <= 1
            && let Some(entries) = pairs.collect::<Option<Vec<_>>>()
            && ascends(&entries)
        {
            let is_kfuncs = self.u32_at(at + 4)? == 1;
            let set = RawSet {
                address: at,
                has_flags: true,
                is_kfuncs,
                entries,
            };
            return Some((set, 8 + 8 * count));
        }
        let id_at = |index: u64| self.u32_at(at + 4 + 4 * index);
        let unused = (0..count).take_while(|&index| id_at(index) == Some(0));
        let first = unused.count() as u64;
        let ids = (first..count).map(|index| {
            let id = id_at(index)?;
            is_one(id).then_some((id, 0))
        });
        let entries = ids.collect::<Option<Vec<_>>>()?;
        let is_set = ascends(&entries) && count > 1 && !entries.is_empty();
        let set = RawSet {
            address: at,
            has_flags: false,
            is_kfuncs: false,
            entries,
        };
        is_set.then_some((set, 4 + 4 * count))
    }

    /// Structures and the functions that destroy kptrs to them.
    pub fn destructors(&self, btf: &Btf<'_>) -> BTreeMap<String, String> {
        let name = |id: u32, kind: Kind| {
            let ty = btf.get(TypeId(id)).filter(|ty| ty.kind() == kind)?;
            Some(ty.name().to_str()?.to_owned())
        };
        let range = self.behind_btf();
        let pair = |at: u64| {
            let structure = name(self.u32_at(at)?, Kind::Struct)?;
            let function = name(self.u32_at(at + 4)?, Kind::Func)?;
            function.ends_with("_dtor").then_some((structure, function))
        };
        (range.start..range.end - 8)
            .step_by(4)
            .filter_map(pair)
            .collect()
    }

    /// Arguments of tracepoints that may be null or error pointers.
    pub fn nullable_tracepoint_args(&self, btf: &Btf<'_>) -> BTreeMap<String, u64> {
        const USED_BITS: u64 = 0x3333_3333_3333;
        let entry = |at: u64| {
            let name = self.name_at(self.u64_at(at)?)?;
            let mask = self.u64_at(at + 8)?;
            (mask & !USED_BITS == 0).then_some((name, mask))
        };
        let is_tracepoint = |name: &str| {
            let name = format!("{TRACEPOINT}{name}");
            btf.find(Kind::Typedef, &name).is_some()
        };
        let range = self.range();
        let mut best: (usize, Vec<(&str, u64)>) = (0, Vec::new());
        for start in [range.start, range.start + 8] {
            let mut array: Vec<(&str, u64)> = Vec::new();
            for at in (start..range.end - 16).step_by(16) {
                if let Some(entry) = entry(at) {
                    array.push(entry);
                    continue;
                }
                if array.len() > 1 {
                    let known = array.iter().filter(|entry| is_tracepoint(entry.0)).count();
                    if known > best.0 {
                        best = (known, std::mem::take(&mut array));
                    }
                }
                array.clear();
            }
        }
        let named = best.1.into_iter();
        named.map(|(name, mask)| (name.to_owned(), mask)).collect()
    }
}
