//! Division by multiplication with a reciprocal (Granlund and Montgomery, "Division by
//! invariant integers using multiplication"; Warren, "Hacker's Delight", chapter 10).
//!
//! Let f be 2^k / d, rounded up. If f d - 2^k is at most 2^(k-n), then `(x * f) >> k` is
//! the quotient of every x of n bits. The least such k gives the smallest f, of up to
//! n + 1 bits. Where it has 33, there is an f of 32 bits that is rounded down:
//! `((x + 1) * f) >> k`, with 2^k - f d at most 2^(k-n).

/// A multiplication and a shift that divide: `(x * factor) >> exponent`, where `x` is
/// the dividend after `before`. The product has at most 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reciprocal {
    pub(super) factor: u64,
    pub(super) exponent: u8,
    pub(super) before: Before,
}

/// Adjustment of the dividend before the multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    /// Add 1.
    Increment,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rounding {
    Up,
    Down,
}

impl Reciprocal {
    /// The reciprocal of a divisor that is not a power of two, for dividends of `bits`
    /// bits: at most 32, and at least as many as the divisor has.
    pub(super) fn of(divisor: u32, bits: u8) -> Reciprocal {
        let up = exact(divisor, bits, Rounding::Up);
        let (before, (factor, exponent)) = match u32::try_from(up.0) {
            Ok(_) => (Before::Nothing, up),
            Err(_) => (Before::Increment, exact(divisor, bits, Rounding::Down)),
        };
        Reciprocal {
            factor,
            exponent,
            before,
        }
    }
}

/// The smallest exact factor with this rounding, and its exponent.
fn exact(divisor: u32, bits: u8, rounding: Rounding) -> (u64, u8) {
    let divisor = u128::from(divisor);
    let mut exponent = bits + divisor.ilog2() as u8 + 1;
    let power = 1u128 << exponent;
    let (mut factor, mut rest) = (power / divisor, power % divisor);
    while exponent > bits {
        // The remainder for half the power.
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
    let factor = factor + u128::from(rounding == Rounding::Up);
    (factor as u64, exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spec::{Random, SplitMix};

    fn quotient(of: Reciprocal, dividend: u64) -> u64 {
        let dividend = match of.before {
            Before::Nothing => dividend,
            Before::Increment => dividend + 1,
        };
        let product = dividend.checked_mul(of.factor);
        product.expect("the product has 64 bits") >> of.exponent
    }

    /// Dividends around the ends of the range and around multiples of the divisor.
    fn dividends(divisor: u64, bits: u8, random: &mut SplitMix) -> Vec<u64> {
        let most = u64::MAX >> (64 - bits);
        let mut some = vec![0, 1, divisor, most];
        let multiples = [0; 4].map(|_| (random.next_u64() & most) / divisor * divisor);
        some.extend(multiples);
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
            for bits in divisor.ilog2() as u8 + 1..=32 {
                let reciprocal = Reciprocal::of(divisor, bits);
                assert!(reciprocal.exponent >= bits);
                assert!(reciprocal.factor <= u32::MAX.into());
                for dividend in dividends(divisor.into(), bits, random) {
                    let found = quotient(reciprocal, dividend);
                    assert_eq!(
                        found,
                        dividend / u64::from(divisor),
                        "{dividend}, {bits} bits"
                    );
                }
            }
        }
    }
}
