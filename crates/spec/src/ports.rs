//! Ports: what a run may ask of the outside world. Callers supply them, so a
//! run repeats exactly when they do.

/// A source of random numbers.
pub trait Random {
    /// The next number.
    fn next_u32(&mut self) -> u32;
}

/// A clock that does not go back.
pub trait Clock {
    /// Nanoseconds since a moment that stays the same.
    fn nanoseconds(&mut self) -> u64;
}

impl<F: FnMut() -> u64> Clock for F {
    fn nanoseconds(&mut self) -> u64 {
        self()
    }
}

/// A small deterministic source (the SplitMix64 generator), for callers that
/// want repeatable runs.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A source that starts at `seed`.
    pub const fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Random for SplitMix {
    fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }
}
