//! Correspondence of identities between two states.

use spec::behaviour::{Behaviour, Behaviours};

/// Pairs of identities of an explored and of the current state that must correspond
/// one to one (kernel: `struct bpf_idmap`).
#[derive(Debug, Default)]
pub(crate) struct IdMap {
    fresh: u32,
    pairs: Vec<(u32, u32)>,
}

impl IdMap {
    /// Forgets all pairs (`reset_idmap_scratch`). `last` is the last identity in use.
    #[doc(alias = "reset_idmap_scratch")]
    pub(crate) fn reset(&mut self, last: u32) {
        self.fresh = last;
        self.pairs.clear();
    }

    /// True if the identities correspond: both 0, or a pair that agrees with all others
    /// (`check_ids`).
    pub(crate) fn check_ids(&mut self, old: u32, cur: u32) -> bool {
        if old == 0 || cur == 0 {
            return old == cur;
        }
        for &(known_old, known_cur) in &self.pairs {
            if known_old == old {
                return known_cur == cur;
            }
            if known_cur == cur {
                return false;
            }
        }
        self.pairs.push((old, cur));
        true
    }

    /// As [`IdMap::check_ids`] before [`Behaviour::IdentitiesCorrespond`]: several explored identities may
    /// lead to one, or to none.
    pub(crate) fn leads_to(&mut self, old: u32, cur: u32) -> bool {
        match self.pairs.iter().find(|(known, _)| *known == old) {
            Some((_, known_cur)) => *known_cur == cur,
            None => {
                self.pairs.push((old, cur));
                true
            }
        }
    }

    /// As [`IdMap::check_ids`] for scalars: an explored scalar without identity covers every
    /// one, and one with identity covers a scalar without, which then is its only
    /// counterpart. Scalars that differ by a constant also compare what they differ from
    /// (`check_scalar_ids`).
    #[doc(alias = "check_scalar_ids")]
    pub(crate) fn check_scalar(&mut self, old: u32, cur: u32, rules: Behaviours) -> bool {
        if old == 0 && rules.has(Behaviour::FreeNumbersCover) {
            return true;
        }
        let old = self.or_fresh(old);
        let cur = self.or_fresh(cur);
        let base = !crate::state::ADD_CONST;
        let is_plain = old & !base == 0 || !rules.has(Behaviour::LinkBasesCorrespond);
        self.check_ids(old, cur) && (is_plain || self.check_ids(old & base, cur & base))
    }

    /// The identity; a new one for none.
    fn or_fresh(&mut self, id: u32) -> u32 {
        if id != 0 {
            return id;
        }
        self.fresh += 1;
        self.fresh
    }
}

#[cfg(test)]
mod tests {
    use super::{Behaviours, IdMap};

    const RULES: Behaviours = Behaviours::LINUX_6_18;
    use crate::state::{ADD_CONST32, ADD_CONST64};

    fn map(last: u32) -> IdMap {
        let mut ids = IdMap::default();
        ids.reset(last);
        ids
    }

    #[test]
    fn pairs_form_a_bijection() {
        let mut ids = map(9);
        assert!(ids.check_ids(0, 0));
        assert!(!ids.check_ids(0, 3) && !ids.check_ids(3, 0));
        assert!(ids.check_ids(1, 5) && ids.check_ids(2, 6) && ids.check_ids(1, 5));
        assert!(!ids.check_ids(1, 6), "1 corresponds to 5");
        assert!(!ids.check_ids(3, 5), "5 corresponds to 1");
        ids.reset(9);
        assert!(ids.check_ids(3, 5), "pairs are forgotten");
    }

    #[test]
    fn identities_led_one_way_once() {
        let mut ids = map(9);
        assert!(ids.leads_to(1, 5) && ids.leads_to(2, 5) && ids.leads_to(3, 0));
        assert!(ids.leads_to(1, 5) && !ids.leads_to(1, 6), "1 leads to 5");
    }

    #[test]
    fn scalars_without_identity_are_their_own() {
        let mut ids = map(9);
        assert!(
            ids.check_scalar(0, 7, RULES),
            "an explored scalar without identity covers all"
        );
        assert!(
            ids.check_scalar(1, 0, RULES),
            "one that is linked covers a single one"
        );
        assert!(!ids.check_scalar(1, 0, RULES), "but not two different ones");
        assert!(ids.check_scalar(2, 4, RULES) && ids.check_scalar(2, 4, RULES));
    }

    #[test]
    fn differences_compare_what_they_differ_from() {
        let mut ids = map(9);
        assert!(ids.check_scalar(1, 2, RULES));
        assert!(ids.check_scalar(1 | ADD_CONST64, 2 | ADD_CONST64, RULES));
        assert!(!ids.check_scalar(1 | ADD_CONST32, 3 | ADD_CONST32, RULES));
    }
}
