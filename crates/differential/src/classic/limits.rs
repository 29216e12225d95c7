//! The length of the kernel's conversion, to the instruction: with the limit at
//! what the model says that a program is charged it must be refused, with one
//! byte more accepted.

use super::{
    Disagreement, FilterComparison, Unavailable, compare_seeds, in_own_namespace, unavailable,
};
use classic::kernel_limits::{check_conversion, check_socket_memory};
use classic::{Rules, check};
use isa::classic::SockFilter;
use std::ops::Range;
use sys::Errno;
use sys::network::OwnNamespace;
use sys::socket::DatagramPair;
use testkit::generate::{Dialect, Generator};

/// Compares one generated program for each seed, at both sides of its limit.
pub fn compare_memory_limits(seeds: Range<u64>) -> Result<FilterComparison, Unavailable> {
    in_own_namespace(|namespace| {
        let pair = DatagramPair::new(1).map_err(unavailable("AF_UNIX socket pair"))?;
        let mut comparison = FilterComparison::default();
        compare_seeds(seeds, &mut comparison, question, |program, &(), found| {
            compare(namespace, &pair, program, found)
        })
        .map_err(unavailable("net.core.optmem_max"))?;
        Ok(comparison)
    })
}

fn question(seed: u64) -> (Vec<SockFilter>, ()) {
    let mut generator = Generator::new(seed);
    let program = match seed % 16 {
        0 => generator.program_at_the_border(),
        _ => {
            let len = generator.program_len();
            generator.program(Dialect::Socket, len)
        }
    };
    (program, ())
}

fn compare(
    namespace: &OwnNamespace,
    pair: &DatagramPair,
    program: &[SockFilter],
    found: &mut FilterComparison,
) -> Result<Option<Disagreement>, Errno> {
    let Ok(checked) = check(program, Rules::Socket) else {
        return Ok(None);
    };
    let Ok(len) = check_conversion(&checked) else {
        return Ok(None);
    };
    // Alone, and in the place of a filter as long, which counts until it is gone.
    let bytes = len.bytes();
    let asked = [
        (bytes, 0),
        (bytes + 1, 0),
        (2 * bytes, bytes),
        (2 * bytes + 1, bytes),
    ];
    for (limit, charged) in asked {
        namespace.set_optmem_max(limit)?;
        if charged > 0 {
            pair.attach(program)?;
        }
        let model = check_socket_memory(len, limit, charged);
        let kernel = pair.attach(program);
        if charged > 0 || kernel.is_ok() {
            pair.detach()?;
        }
        match &model {
            Ok(()) => found.coverage.accept(),
            Err(refusal) => found.coverage.refuse(refusal),
        }
        if kernel.map_err(|Errno(errno)| errno) != model.map_err(|refusal| refusal.errno) {
            return Ok(Some(Disagreement::Verdict { kernel, model }));
        }
        found.runs += 1;
    }
    Ok(None)
}
