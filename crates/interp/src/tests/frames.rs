//! Frames of verified programs, on operations alone: they need no proof, so that Miri runs them.

use isa::ebpf::{AluOp, Operand, Reg, Size, Width};
use packet::{Metadata, Packet};
use spec::SplitMix;
use vm::{FrameLayout, MAY_GOTO_LOOPS, Machine, Meter, RunContext};

use crate::op::{Distance, Op, complete_in_frame};
use crate::ops::{alu, control, memory};

fn binary(op: AluOp, dst: Reg, src: Reg) -> Op {
    alu::binary(op, Width::W64, dst, Operand::Reg(src))
}

fn call(layout: &FrameLayout, from: usize, to: usize) -> Op {
    Op {
        t: Distance::between(from, to),
        ..control::call_framed(layout)
    }
}

#[test]
fn frames_of_callees_are_zero_and_below_those_of_callers() {
    const CALLEE: usize = 7;
    for is_linked in [false, true] {
        let layouts = [16, 8].map(|bytes| FrameLayout::new(bytes, 0, is_linked));
        let store = |off, src| memory::store(Size::DW, Reg::R10, off, Operand::Reg(src));
        let load = |dst, off| memory::load(Size::DW, false, dst, Reg::R10, off);
        let ops = [
            // The entry: r7 is what the first call returned, r0 what the second did.
            binary(AluOp::Mov, Reg::R6, Reg::R10),
            store(-16, Reg::R6),
            call(&layouts[1], 2, CALLEE),
            store(-8, Reg::R0),
            call(&layouts[1], 4, CALLEE),
            load(Reg::R7, -8),
            control::exit(),
            // How far the frame of the callee is below, and what was in it before.
            binary(AluOp::Mov, Reg::R0, Reg::R6),
            binary(AluOp::Sub, Reg::R0, Reg::R10),
            load(Reg::R7, -8),
            binary(AluOp::Add, Reg::R0, Reg::R7),
            store(-8, Reg::R6),
            binary(AluOp::Mov, Reg::R7, Reg::R10),
            control::exit(),
        ];
        let (data, meta) = ([], Metadata::UNKNOWN);
        let packet = Packet::whole(&data, &meta);
        let (mut machine, mut random) = (Machine::new(), SplitMix::new(1));
        let mut cx = RunContext::new(&packet, &mut random, None);
        let cx: *mut RunContext<'_> = &raw mut cx;
        let m = machine.enter();
        // SAFETY: the operations access the frames of their layouts only.
        let (first, second) = unsafe {
            (*m).meter = Meter::new(u64::MAX, None);
            (*m).may_goto = MAY_GOTO_LOOPS;
            let second = complete_in_frame(ops.as_ptr(), m, cx.cast(), &layouts[0]);
            ((*m).regs[Reg::R7.index()], second)
        };
        for distance in [first, second] {
            // Under Miri variables are anywhere; it checks the accesses.
            assert!(
                cfg!(miri) || (16..1 << 16).contains(&distance),
                "{first:#x}, {second:#x}"
            );
        }
    }
}
