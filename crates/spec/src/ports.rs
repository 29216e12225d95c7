//! Clock, random numbers and printed text of a run, as traits. Callers supply the
//! implementations, so a run with deterministic ones is reproducible.

/// A source of random numbers.
pub trait Random {
    /// Next 32 random bits.
    fn next_u32(&mut self) -> u32;
}

/// A monotonic clock.
pub trait Clock {
    /// Nanoseconds since a fixed moment.
    fn nanoseconds(&mut self) -> u64;
}

impl<F: FnMut() -> u64> Clock for F {
    fn nanoseconds(&mut self) -> u64 {
        self()
    }
}

/// The receiver of the text that programs print (`bpf_trace_printk`).
pub trait Printk {
    /// Receives the text of one call, without the final zero byte.
    fn print(&mut self, text: &[u8]);
}

impl<F: FnMut(&[u8])> Printk for F {
    fn print(&mut self, text: &[u8]) {
        self(text);
    }
}

/// SplitMix64: a small deterministic generator of random numbers, for reproducible runs.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// Generator with this seed.
    pub const fn new(seed: u64) -> SplitMix {
        SplitMix(seed)
    }

    /// Next 64 random bits.
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
