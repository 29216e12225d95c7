//! Reduces a program while a predicate still holds (delta debugging).
//!
//! Instructions are taken out one at a time, from the end, with the jumps across
//! them shortened; then constants are tried at 0, at 1 and halved. Rounds go on
//! until nothing helps. Each attempt costs one call of `still`, of which there
//! are O(n²) for n instructions.

use isa::classic::{Insn, SockFilter};

/// The smallest program found that is `still` interesting; `program` itself when
/// nothing smaller is.
pub fn shrink(
    program: &[SockFilter],
    mut still: impl FnMut(&[SockFilter]) -> bool,
) -> Vec<SockFilter> {
    let mut best = program.to_vec();
    loop {
        let mut helped = false;
        let mut chunk = (best.len() / 2).max(1);
        while chunk >= 1 {
            let mut at = best.len();
            while at >= chunk {
                at -= chunk;
                let mut smaller = best.clone();
                for _ in 0..chunk {
                    smaller = without(&smaller, at);
                }
                if still(&smaller) {
                    best = smaller;
                    helped = true;
                    at = at.min(best.len());
                }
            }
            chunk /= 2;
        }
        for at in 0..best.len() {
            for simpler in simpler(best[at]) {
                let mut candidate = best.clone();
                candidate[at] = simpler;
                if simpler != best[at] && still(&candidate) {
                    best = candidate;
                    helped = true;
                    break;
                }
            }
        }
        if !helped {
            return best;
        }
    }
}

/// The program without one instruction; jumps to it lead to what follows it.
fn without(program: &[SockFilter], removed: usize) -> Vec<SockFilter> {
    let shorten = |at: usize, skipped: u32| {
        let crosses = at < removed && (at as u64 + u64::from(skipped)) >= removed as u64;
        skipped - u32::from(crosses && skipped > 0)
    };
    let mut result = Vec::with_capacity(program.len());
    for (at, &insn) in program.iter().enumerate().filter(|&(at, _)| at != removed) {
        let mut insn = insn;
        match Insn::decode(insn) {
            Insn::Goto(k) => insn.k = shorten(at, k),
            Insn::Jump { jt, jf, .. } => {
                insn.jt = shorten(at, jt.into()) as u8;
                insn.jf = shorten(at, jf.into()) as u8;
            }
            _ => {}
        }
        result.push(insn);
    }
    result
}

/// Each has a smaller field and none a larger one, so rounds come to an end.
fn simpler(insn: SockFilter) -> [SockFilter; 5] {
    let k = insn.k;
    [
        SockFilter { k: 0, ..insn },
        SockFilter {
            k: k.min(1),
            ..insn
        },
        SockFilter { k: k / 2, ..insn },
        SockFilter { jt: 0, ..insn },
        SockFilter { jf: 0, ..insn },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Dialect, Generator};

    #[test]
    fn shrinking_keeps_the_failing_part() {
        let program = Generator::new(1).program(Dialect::Socket, 200);
        let shows = |p: &[SockFilter]| p.iter().any(|insn| insn.code == 0x16);
        assert!(shows(&program));
        assert_eq!(shrink(&program, shows), [SockFilter::new(0x16, 0, 0, 0)]);
    }

    #[test]
    fn jumps_follow_their_targets() {
        let jump = SockFilter::new(0x15, 2, 0, 5);
        let (load, ret) = (SockFilter::new(0, 0, 0, 5), SockFilter::new(0x16, 0, 0, 0));
        let program = [load, jump, ret, load, ret];
        let expected = [load, SockFilter { jt: 1, ..jump }, ret, ret];
        assert_eq!(without(&program, 3), expected);
    }
}
