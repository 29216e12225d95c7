//! What an input did, as features with classes of how much: counters of code, and words that its runs left in
//! maps and variables. Inputs with a feature or class that none before had are kept.

/// Features of words in maps: a table in which they share places.
pub(super) const STATE_FEATURES: usize = 1 << 14;

/// The class of a count, a bit: 1, 2, 3, 4 to 7, 8 to 15, 16 to 31, 32 to 127, more.
#[inline]
pub(super) fn class_of(count: u64) -> u8 {
    match count {
        0..=3 => 1 << count >> 1,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        _ => 128,
    }
}

/// The feature of a word in a map and its class. Small numbers, which are states and counts, are told apart;
/// others by their length and the bit below the highest one.
#[inline]
pub(super) fn state_feature(map: usize, place: usize, word: u64) -> (usize, u8) {
    const EXACT: u64 = 32;
    let of_number = match word {
        0..EXACT => word,
        _ => {
            let length = u64::from(word.ilog2());
            EXACT + length * 2 + (word >> (length - 1) & 1)
        }
    };
    let mixed = ((map as u64) << 40) ^ ((place as u64) << 8) ^ (of_number / 8);
    let mixed = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let at = (mixed >> (64 - STATE_FEATURES.ilog2())) as usize;
    (at, 1 << (of_number % 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_told_apart_and_features_are_few() {
        let mut small: Vec<_> = (0..32).map(|word| state_feature(3, 8, word)).collect();
        small.sort_unstable();
        small.dedup();
        assert_eq!(small.len(), 32);
        let mut all: Vec<_> = (0..64)
            .flat_map(|shift| (0..100).map(move |low| state_feature(3, 8, (1 << shift) + low)))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert!(all.len() < 200, "{}", all.len());
        assert!(all.iter().all(|(at, _)| *at < STATE_FEATURES));
    }

    #[test]
    fn classes_of_counts_are_bits() {
        let classes = [1, 2, 3, 4, 8, 16, 32, 128].map(class_of);
        assert_eq!(classes, [1, 2, 4, 8, 16, 32, 64, 128]);
    }
}
