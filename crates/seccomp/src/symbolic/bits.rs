//! Bit-level circuits of classic arithmetic (bit blasting).
//!
//! Generic over [`Gates`].

use isa::classic::{AluOp, Cond};

use super::diagram::{Diagram, OverBudget, Ref};

/// Constructors of Boolean functions.
pub(crate) trait Gates {
    /// A function.
    type Bit: Copy + PartialEq;

    /// A constant.
    fn constant(&self, value: bool) -> Self::Bit;

    /// `if f then g else h`.
    fn choose(&mut self, f: Self::Bit, g: Self::Bit, h: Self::Bit)
    -> Result<Self::Bit, OverBudget>;

    fn not(&mut self, f: Self::Bit) -> Result<Self::Bit, OverBudget> {
        self.choose(f, self.constant(false), self.constant(true))
    }

    fn and(&mut self, f: Self::Bit, g: Self::Bit) -> Result<Self::Bit, OverBudget> {
        self.choose(f, g, self.constant(false))
    }

    fn or(&mut self, f: Self::Bit, g: Self::Bit) -> Result<Self::Bit, OverBudget> {
        self.choose(f, self.constant(true), g)
    }

    fn xor(&mut self, f: Self::Bit, g: Self::Bit) -> Result<Self::Bit, OverBudget> {
        let not = self.not(g)?;
        self.choose(f, not, g)
    }
}

impl Gates for Diagram {
    type Bit = Ref;

    fn constant(&self, value: bool) -> Ref {
        Ref::of(value)
    }

    fn choose(&mut self, f: Ref, g: Ref, h: Ref) -> Result<Ref, OverBudget> {
        Diagram::choose(self, f, g, h)
    }
}

/// A word of 32 bits, the least significant first.
pub(crate) type Bits<B> = [B; 32];

type Made<G> = Result<Bits<<G as Gates>::Bit>, OverBudget>;
type MadeTwo<G> = Result<(Bits<<G as Gates>::Bit>, Bits<<G as Gates>::Bit>), OverBudget>;
type BitResult<G> = Result<<G as Gates>::Bit, OverBudget>;

pub(crate) fn constant<G: Gates>(gates: &G, value: u32) -> Bits<G::Bit> {
    std::array::from_fn(|at| gates.constant(value >> at & 1 != 0))
}

/// `a op b` as in Linux: modulo 2^32, shift counts modulo 32. The divisor is not zero (a
/// filter returns there).
pub(crate) fn alu<G: Gates>(
    gates: &mut G,
    op: AluOp,
    a: &Bits<G::Bit>,
    b: &Bits<G::Bit>,
) -> Made<G> {
    match op {
        AluOp::Add => add(gates, a, b, false),
        AluOp::Sub => sub(gates, a, b),
        AluOp::Mul => multiply(gates, a, b),
        AluOp::Div => Ok(divide(gates, a, b)?.0),
        AluOp::Mod => Ok(divide(gates, a, b)?.1),
        AluOp::Or => zip(a, b, |a, b| gates.or(a, b)),
        AluOp::And => zip(a, b, |a, b| gates.and(a, b)),
        AluOp::Xor => zip(a, b, |a, b| gates.xor(a, b)),
        AluOp::Lsh => shift(gates, a, b, |bits, at, by| {
            at.checked_sub(by).map(|at| bits[at])
        }),
        AluOp::Rsh => shift(gates, a, b, |bits, at, by| bits.get(at + by).copied()),
    }
}

/// `-a`.
pub(crate) fn negate<G: Gates>(gates: &mut G, a: &Bits<G::Bit>) -> Made<G> {
    let zero = constant(gates, 0);
    sub(gates, &zero, a)
}

/// `a cond b`, unsigned.
pub(crate) fn compare<G: Gates>(
    gates: &mut G,
    cond: Cond,
    a: &Bits<G::Bit>,
    b: &Bits<G::Bit>,
) -> BitResult<G> {
    let mut truth = gates.constant(matches!(cond, Cond::Eq | Cond::Ge));
    for (&a, &b) in a.iter().zip(b) {
        truth = match cond {
            Cond::Eq => {
                let differ = gates.xor(a, b)?;
                gates.choose(differ, gates.constant(false), truth)?
            }
            Cond::Gt | Cond::Ge => {
                let when_set = gates.choose(b, truth, gates.constant(true))?;
                let when_clear = gates.choose(b, gates.constant(false), truth)?;
                gates.choose(a, when_set, when_clear)?
            }
            Cond::Set => {
                let both = gates.and(a, b)?;
                gates.or(both, truth)?
            }
        };
    }
    Ok(truth)
}

/// `if f then a else b`.
pub(crate) fn choose<G: Gates>(
    gates: &mut G,
    f: G::Bit,
    a: &Bits<G::Bit>,
    b: &Bits<G::Bit>,
) -> Made<G> {
    zip(a, b, |a, b| gates.choose(f, a, b))
}

fn zip<B: Copy>(
    a: &Bits<B>,
    b: &Bits<B>,
    mut op: impl FnMut(B, B) -> Result<B, OverBudget>,
) -> Result<Bits<B>, OverBudget> {
    let mut result = *a;
    for (result, &b) in result.iter_mut().zip(b) {
        *result = op(*result, b)?;
    }
    Ok(result)
}

fn add<G: Gates>(gates: &mut G, a: &Bits<G::Bit>, b: &Bits<G::Bit>, carry: bool) -> Made<G> {
    let mut carry = gates.constant(carry);
    zip(a, b, |a, b| {
        let differ = gates.xor(a, b)?;
        let sum = gates.xor(differ, carry)?;
        carry = gates.choose(differ, carry, a)?;
        Ok(sum)
    })
}

fn sub<G: Gates>(gates: &mut G, a: &Bits<G::Bit>, b: &Bits<G::Bit>) -> Made<G> {
    let inverted = zip(b, b, |b, _| gates.not(b))?;
    add(gates, a, &inverted, true)
}

fn multiply<G: Gates>(gates: &mut G, a: &Bits<G::Bit>, b: &Bits<G::Bit>) -> Made<G> {
    let zero = gates.constant(false);
    let mut product = constant(gates, 0);
    for by in 0..32 {
        if b[by] == zero {
            continue;
        }
        let mut term = [zero; 32];
        for at in by..32 {
            term[at] = gates.and(a[at - by], b[by])?;
        }
        product = add(gates, &product, &term, false)?;
    }
    Ok(product)
}

/// Quotient and remainder, by long division.
fn divide<G: Gates>(gates: &mut G, a: &Bits<G::Bit>, b: &Bits<G::Bit>) -> MadeTwo<G> {
    let mut quotient = constant(gates, 0);
    let mut rest = constant(gates, 0);
    for at in (0..32).rev() {
        // The remainder is below the divisor, so twice the remainder fits 33 bits.
        let carried = rest[31];
        rest.rotate_right(1);
        rest[0] = a[at];
        let reaches = compare(gates, Cond::Ge, &rest, b)?;
        quotient[at] = gates.or(carried, reaches)?;
        let reduced = sub(gates, &rest, b)?;
        rest = choose(gates, quotient[at], &reduced, &rest)?;
    }
    Ok((quotient, rest))
}

fn shift<G: Gates>(
    gates: &mut G,
    a: &Bits<G::Bit>,
    count: &Bits<G::Bit>,
    from: impl Fn(&Bits<G::Bit>, usize, usize) -> Option<G::Bit>,
) -> Made<G> {
    let zero = gates.constant(false);
    let mut result = *a;
    for (stage, &selected) in count.iter().take(5).enumerate() {
        let moved = std::array::from_fn(|at| from(&result, at, 1 << stage).unwrap_or(zero));
        result = choose(gates, selected, &moved, &result)?;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    fn number(bits: &Bits<Ref>) -> u32 {
        (0..32).fold(0, |sum, at| sum | u32::from(bits[at] == Ref::TRUE) << at)
    }

    fn interesting() -> impl Strategy<Value = u32> {
        prop_oneof![any::<u32>(), 0u32..40, Just(u32::MAX), Just(1 << 31)]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(oracle::property_seed()),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn circuits_match_arithmetic(a in interesting(), b in interesting()) {
            let mut gates = Diagram::new(1_000_000);
            let (wide_a, wide_b) = (constant(&gates, a), constant(&gates, b));
            for (op, expected) in [
                (AluOp::Add, Some(a.wrapping_add(b))),
                (AluOp::Sub, Some(a.wrapping_sub(b))),
                (AluOp::Mul, Some(a.wrapping_mul(b))),
                (AluOp::Div, a.checked_div(b)),
                (AluOp::Mod, a.checked_rem(b)),
                (AluOp::Or, Some(a | b)),
                (AluOp::And, Some(a & b)),
                (AluOp::Xor, Some(a ^ b)),
                (AluOp::Lsh, Some(a << (b & 31))),
                (AluOp::Rsh, Some(a >> (b & 31))),
            ] {
                if let Some(expected) = expected {
                    let bits = alu(&mut gates, op, &wide_a, &wide_b).unwrap();
                    prop_assert_eq!(number(&bits), expected, "{:?}", op);
                }
            }
            let negated = negate(&mut gates, &wide_a).unwrap();
            prop_assert_eq!(number(&negated), a.wrapping_neg());
            for (cond, expected) in [
                (Cond::Eq, a == b),
                (Cond::Gt, a > b),
                (Cond::Ge, a >= b),
                (Cond::Set, a & b != 0),
            ] {
                let truth = compare(&mut gates, cond, &wide_a, &wide_b).unwrap();
                prop_assert_eq!(truth, Ref::of(expected), "{:?}", cond);
            }
        }
    }
}
