//! Programs whose code exceeds the initial size of the buffer.

#![cfg(target_arch = "x86_64")]

use beebox_jit::memory::Pool;
use beebox_jit::{Native, Options};
use isa::ebpf::assemble;
use lower::Lowered;
use spec::SplitMix;
use vm::{Machine, Outcome, Unchecked};

#[test]
fn a_program_of_long_instructions_runs() {
    let fetches: String = (0..3000)
        .map(|bits| format!("r1 = {bits}\nr1 = atomic_fetch_or((u64 *)(r10 - 8), r1)\n"))
        .collect();
    let source = format!("*(u64 *)(r10 - 8) = 0\n{fetches}r0 = *(u64 *)(r10 - 8)\nexit");
    // SAFETY: it accesses its own stack, calls nothing, and ends.
    let program = unsafe { Unchecked::assume_safe(assemble(&source).unwrap()) };
    let program = Lowered::from_unchecked(program).unwrap();
    let native = Native::compile(&program, &Options::default(), &Pool::new()).unwrap();
    assert!(native.image().len() > 10 * program.insns().len());
    match native.run(&mut Machine::new(), &mut [], &mut SplitMix::new(0)) {
        Outcome::Returned(value) => assert_eq!(value, 4095),
        other => panic!("{other:?}"),
    }
}
