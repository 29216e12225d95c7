//! Packet loads, alone and fused with comparisons.
//!
//! A load outside the packet's data continues in a slow path by a tail call, so that the
//! fast path saves no registers.

use std::marker::PhantomData;

use isa::ebpf::{Cond, Reg, Size, Width, eval};
use vm::{PacketRules, load_packet, load_packet_outside};

use super::choose_cond;
use super::operand::{Condition, R0, Read, Stored};
use crate::op::{Dispatch, Flow, Op, Operation, Run, Step, step};

/// Value of `Op::off` for loads that may succeed outside the packet's data, by Linux's
/// rules.
const MAY_SUCCEED_OUTSIDE: i16 = 1;

/// Addressing mode of a packet load.
pub(super) trait Address {
    /// The offset: a sum of at most two 32-bit numbers.
    fn offset(run: &Run) -> u64;
}

/// A constant offset.
pub(super) struct Absolute;
/// A register plus a constant.
pub(super) struct Indirect<S>(PhantomData<S>);

impl Address for Absolute {
    #[inline(always)]
    fn offset(run: &Run) -> u64 {
        u64::from(run.op().a)
    }
}

impl<S: Read> Address for Indirect<S> {
    #[inline(always)]
    fn offset(run: &Run) -> u64 {
        u64::from(S::read(run) as u32) + u64::from(run.op().a)
    }
}

/// `r0 = packet[…]` of `N` bytes, followed by `K`.
pub(super) struct Load<P, const N: usize, K>(PhantomData<(P, K)>);
/// The slow path: a load outside the packet's data.
struct LoadOutside<P, const N: usize, K>(PhantomData<(P, K)>);

impl<P: Address, const N: usize, K: Operation> Operation for Load<P, N, K> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let (data, len) = run.data();
        // SAFETY: `data` is readable for `len` bytes, an invariant of `Run`.
        match unsafe { load_packet::<N>(data, len, P::offset(&run)) } {
            Some(value) => {
                run.r0 = u64::from(value);
                K::perform(run)
            }
            None => run.continue_as::<LoadOutside<P, N, K>>(),
        }
    }
}

impl<P: Address, const N: usize, K: Operation> Operation for LoadOutside<P, N, K> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        // Most loads cannot succeed here, and do not use the run context.
        if run.op().off != MAY_SUCCEED_OUTSIDE {
            return run.finish(0);
        }
        let offset = P::offset(&run);
        let value =
            run.with_cx(|cx| load_packet_outside(cx.packet, PacketRules::Kernel, offset, N as u32));
        match value {
            Some(value) => {
                run.r0 = u64::from(value);
                K::perform(run)
            }
            None => run.finish(0),
        }
    }
}

/// No operation after the load.
struct End;
/// `if w0 cond b goto t`, otherwise `K`.
pub(super) struct ThenIf<C, K = Dispatch>(PhantomData<(C, K)>);
/// The length of an IPv4 header, `w0 = (w0 & 15) << 2; dst = w0`, followed by `K`.
pub(super) struct HeaderLength<K = Dispatch>(PhantomData<K>);

impl Operation for End {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        run.next()
    }
}

impl<C: Condition, K: Operation> Operation for ThenIf<C, K> {
    #[inline(always)]
    fn perform(run: Run) -> Flow {
        let Op { b, t, .. } = *run.op();
        if eval::compare(C::COND, Width::W32, run.r0, u64::from(b)) {
            run.jump(t)
        } else {
            K::perform(run.forward())
        }
    }
}

impl<K: Operation> Operation for HeaderLength<K> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        run.r0 = (run.r0 & 15) << 2;
        run.set_register(run.op().dst, run.r0);
        K::perform(run.forward())
    }
}

/// A packet load: size, index register, constant offset and rules.
#[derive(Clone, Copy)]
pub(crate) struct PacketLoad {
    pub size: Size,
    pub index: Option<Reg>,
    pub offset: i32,
    pub rules: PacketRules,
}

macro_rules! choose_size {
    ($size:expr, $place:ty, $then:ty) => {
        match $size {
            Size::B => step::<Load<$place, 1, $then>> as Step,
            Size::H => step::<Load<$place, 2, $then>> as Step,
            Size::W | Size::DW => step::<Load<$place, 4, $then>> as Step,
        }
    };
}

/// The handler of a load fused with `$then`; loads with index `r0` are not fused.
macro_rules! choose_load {
    ($load:expr, $then:ty) => {
        match $load.index {
            None => choose_size!($load.size, Absolute, $then),
            Some(_) => choose_size!($load.size, Indirect<Stored>, $then),
        }
    };
}

impl PacketLoad {
    /// True if the load may succeed outside the packet's bytes: Linux's rules define negative
    /// offsets, and sums that wrap around.
    fn may_succeed_outside(&self) -> bool {
        match self.rules {
            PacketRules::Kernel => self.index.is_some() || self.offset < 0,
            PacketRules::Capture => false,
        }
    }

    fn op(&self, step: Step) -> Op {
        let uses_run = self.may_succeed_outside();
        Op {
            a: self.offset as u32,
            off: match uses_run {
                true => MAY_SUCCEED_OUTSIDE,
                false => 0,
            },
            uses_run,
            src: self.index.map_or(0, Reg::number),
            ..Op::new(step)
        }
    }

    /// `r0 = packet[…]`.
    pub(crate) fn alone(&self) -> Op {
        self.op(match self.index {
            Some(Reg::R0) => choose_size!(self.size, Indirect<R0>, End),
            _ => choose_load!(self, End),
        })
    }

    /// `r0 = packet[…]; if w0 cond imm goto …`.
    pub(crate) fn then_jump(&self, cond: Cond, imm: i32) -> Op {
        let step = choose_cond!(cond, C, choose_load!(self, ThenIf<C>));
        Op {
            b: imm as u32,
            ..self.op(step)
        }
    }

    /// `r0 = packet[…]; w0 &= 15; w0 <<= 2; dst = w0`.
    pub(crate) fn then_header_length(&self, dst: Reg) -> Op {
        self.op(choose_load!(self, HeaderLength)).dst(dst)
    }
}
