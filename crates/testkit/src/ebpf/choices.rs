//! Source of a generator's choices: a seed, or the bytes of a fuzzer.
//!
//! Numbers are drawn where borders are: a value is more often 0, a power of two
//! less one, or the least of its kind than any of the others.

use spec::SplitMix;

/// A source of choices that repeats when its seed or its bytes do.
#[derive(Clone, Debug)]
pub struct Choices<'a> {
    random: SplitMix,
    /// Remaining bytes, which are used before the seed; `None` for a seed alone.
    bytes: Option<&'a [u8]>,
}

impl<'a> Choices<'a> {
    /// Choices from a seed.
    pub fn from_seed(seed: u64) -> Choices<'static> {
        Choices {
            random: SplitMix::new(seed),
            bytes: None,
        }
    }

    /// Choices from bytes; when they are used up, from a seed that is always the
    /// same.
    pub fn from_bytes(bytes: &'a [u8]) -> Choices<'a> {
        Choices {
            random: SplitMix::new(0),
            bytes: Some(bytes),
        }
    }

    /// True if the bytes are exhausted, so that generation should end.
    pub fn is_spent(&self) -> bool {
        self.bytes.is_some_and(<[u8]>::is_empty)
    }

    /// 64 bits, each as likely as its opposite.
    pub fn bits(&mut self) -> u64 {
        match self.take(8) {
            Some(chosen) => chosen,
            None => self.random.next_u64(),
        }
    }

    /// A number below `limit` (0 for an empty range).
    pub fn below(&mut self, limit: u32) -> u32 {
        let taken = match limit {
            0 | 1 => return 0,
            2..=256 => self.take(1),
            _ => self.take(4),
        };
        match taken {
            Some(chosen) => (chosen % u64::from(limit)) as u32,
            None => (((self.random.next_u64() >> 32) * u64::from(limit)) >> 32) as u32,
        }
    }

    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: i32, high: i32) -> i32 {
        low + self.below((high - low + 1) as u32) as i32
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, share: u32) -> bool {
        self.below(100) < share
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u32) as usize]
    }

    /// A register value, mostly from a border.
    pub fn value(&mut self) -> u64 {
        let around = |base: u64, by: u32| base.wrapping_add(u64::from(by)).wrapping_sub(2);
        match self.below(12) {
            0..3 => self.bits(),
            3 => self.bits() & 0xffff_ffff,
            4 => self.bits() as i32 as u64,
            5 => {
                let power = 1u64 << self.below(64);
                around(power, self.below(5))
            }
            6 => {
                let border = self.pick(&[0, 1 << 31, 1 << 32, 1 << 63, u64::MAX, !0 << 31]);
                around(border, self.below(5))
            }
            7 => u64::from(self.below(256)),
            8 => u64::from(self.below(65536)),
            9 => self.bits() & 0x0101_0101_0101_0101u64.wrapping_mul(self.bits() & 0xff),
            10 => self.bits() & self.bits() & self.bits(),
            _ => u64::from(self.below(4)),
        }
    }

    /// An immediate, mostly from a border: of bytes (where an encoding becomes
    /// longer), of halves, of powers of two.
    pub fn immediate(&mut self) -> i32 {
        match self.below(12) {
            0..2 => self.bits() as i32,
            2 => self.below(256) as i32 - 128,
            3 => self.pick(&[127, 128, 129, -128, -129, 255, 256]),
            4 => self.pick(&[0x7fff, 0x8000, 0xffff, 0x10000, -0x8000, -0x8001]),
            5 => self.pick(&[i32::MAX, i32::MIN, i32::MIN + 1, -2, -1]),
            6 => 1i32.wrapping_shl(self.below(32)),
            7 => 1i32.wrapping_shl(self.below(32)).wrapping_sub(1),
            8 => 1i32.wrapping_shl(self.below(32)).wrapping_neg(),
            9 => self.below(64) as i32,
            10 => 0,
            _ => 1,
        }
    }

    fn take(&mut self, count: usize) -> Option<u64> {
        let bytes = self.bytes.as_mut()?;
        if bytes.is_empty() {
            return None;
        }
        let (taken, rest) = bytes.split_at(count.min(bytes.len()));
        *bytes = rest;
        Some(
            taken
                .iter()
                .rev()
                .fold(0, |sum, &b| sum << 8 | u64::from(b)),
        )
    }
}
