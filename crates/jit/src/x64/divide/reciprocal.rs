//! Multiplications that divide (Granlund and Montgomery, "Division by invariant
//! integers using multiplication"; Warren, "Hacker's Delight", chapter 10).
//!
//! Let f be 2^k / d, rounded up. If f d - 2^k is at most 2^(k-n), then `(x * f) >> k` is
//! the quotient of every x of n bits. The least such k gives the smallest f, of up to
//! n + 1 bits. Where it has that many, there is an f of n bits that is rounded down:
//! `((x + 1) * f) >> k`, with 2^k - f d at most 2^(k-n).

/// A multiplication and a shift that divide: `(x * factor) >> exponent`, where `x` is
/// the dividend after `before`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reciprocal {
    pub(super) factor: u64,
    pub(super) exponent: u8,
    pub(super) before: Before,
}

/// What is done to a dividend before it is multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// 1 is added. The greatest of all numbers may stay as it is: a divisor of 2^n - 1
    /// has a factor that is rounded up.
    Increment,
    ShiftRight(u8),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

impl Reciprocal {
    /// Of a divisor that is no power of two, for dividends of so many bits, which are no
    /// fewer than its own: by a product of 64 bits if they are at most 32, by the upper
    /// half of one of 128 otherwise.
    pub(super) fn of(divisor: u32, bits: u8) -> Reciprocal {
        let wide = bits > 32;
        let up = exact(divisor, bits, wide, Rounding::Up);
        let even = divisor.trailing_zeros() as u8;
        let (before, (factor, exponent)) = if up.0 < 1 << if wide { 64 } else { 32 } {
            (Before::Nothing, up)
        } else if wide && even > 0 {
            let odd = exact(divisor >> even, bits - even, wide, Rounding::Up);
            (Before::ShiftRight(even), odd)
        } else {
            let down = exact(divisor, bits, wide, Rounding::Down);
            (Before::Increment, down)
        };
        Reciprocal {
            factor: factor as u64,
            exponent,
            before,
        }
    }

    /// Of a divisor that is no power of two, for dividends of so many bits beside the
    /// sign, 31 or 63: with the sign in the shift, 1 less than the quotient if they are
    /// negative.
    pub(super) fn signed(divisor: u32, bits: u8) -> Reciprocal {
        let (factor, exponent) = exact(divisor, bits, bits > 32, Rounding::Up);
        Reciprocal {
            factor: factor as u64,
            exponent,
            before: Before::Nothing,
        }
    }
}

/// The smallest factor with that rounding, and its exponent, which for wide products is
/// at least 64.
fn exact(divisor: u32, bits: u8, wide: bool, rounding: Rounding) -> (u128, u8) {
    let divisor = u128::from(divisor);
    let least = if wide { 64 } else { bits };
    let mut exponent = bits.max(least) + divisor.ilog2() as u8 + 1;
    let power = 1u128 << exponent;
    let (mut factor, mut rest) = (power / divisor, power % divisor);
    while exponent > least {
        // Of half the power.
        let half = (rest + divisor * (factor & 1)) >> 1;
        let error = match rounding {
            Rounding::Up => divisor - half,
            Rounding::Down => half,
        };
        if error > 1 << (exponent - 1 - bits) {
            break;
        }
        (factor, rest) = (factor >> 1, half);
        exponent -= 1;
    }
    (factor + u128::from(rounding == Rounding::Up), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::{Random, SplitMix};

    const NARROW: u8 = 32;

    fn quotient(of: Reciprocal, wide: bool, dividend: u64) -> u64 {
        let most = if wide { u128::MAX } else { u64::MAX.into() };
        let dividend = match of.before {
            Before::Nothing => dividend,
            // The greatest of 64 bits stays, that of 32 bits does not.
            Before::Increment => dividend.saturating_add(1),
            Before::ShiftRight(count) => dividend >> count,
        };
        let product = u128::from(dividend) * u128::from(of.factor);
        assert!(product <= most, "{of:?}: {dividend:#x}");
        (product >> of.exponent) as u64
    }

    /// Around the ends and around multiples of the divisor.
    fn dividends(divisor: u64, bits: u8, random: &mut SplitMix) -> Vec<u64> {
        let most = u64::MAX >> (64 - bits);
        let mut wide = || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        let mut some = vec![0, 1, divisor, most];
        some.extend([0; 4].map(|_| (wide() & most) / divisor * divisor));
        some.push(most / divisor * divisor);
        some.push((most >> 1) / divisor * divisor);
        let near = |at: u64| [at.wrapping_sub(1), at, at.wrapping_add(1)];
        some.into_iter()
            .flat_map(near)
            .filter(|&dividend| dividend <= most)
            .collect()
    }

    #[test]
    fn quotients_are_exact() {
        let random = &mut SplitMix::new(1);
        let mut divisors: Vec<u32> = (3..1000).collect();
        divisors.extend((10..32).flat_map(|log| [(1 << log) - 1, (1 << log) + 1]));
        divisors.extend((0..1000).map(|at| random.next_u32() >> (at % 30)));
        divisors.extend([641, 6_700_417, 1_000_000_007, u32::MAX]);
        divisors.retain(|divisor| *divisor > 2 && !divisor.is_power_of_two());
        for divisor in divisors {
            for bits in divisor.ilog2() as u8 + 1..=64 {
                let reciprocal = Reciprocal::of(divisor, bits);
                let wide = bits > NARROW;
                assert!(reciprocal.exponent >= if wide { 64 } else { bits });
                assert!(wide || reciprocal.factor <= u32::MAX.into());
                for dividend in dividends(divisor.into(), bits, random) {
                    let found = quotient(reciprocal, wide, dividend);
                    assert_eq!(
                        found,
                        dividend / u64::from(divisor),
                        "{dividend}, {bits} bits"
                    );
                }
            }
        }
    }

    #[test]
    fn quotients_with_a_sign_are_exact() {
        let random = &mut SplitMix::new(2);
        for divisor in (3..1000).chain([641, 1_000_000_007, i32::MAX as u32]) {
            if divisor.is_power_of_two() {
                continue;
            }
            for bits in [31, 63] {
                let Reciprocal {
                    factor, exponent, ..
                } = Reciprocal::signed(divisor, bits);
                for dividend in dividends(divisor.into(), bits, random) {
                    for dividend in [dividend as i64, -(dividend as i64), -1 << bits] {
                        let product = i128::from(dividend) * i128::from(factor);
                        let found = (product >> exponent) as i64 + i64::from(dividend < 0);
                        assert_eq!(found, dividend / i64::from(divisor));
                    }
                }
            }
        }
    }
}
