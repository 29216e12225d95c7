//! Packet loads, alone and with what commonly follows them.
//!
//! The rare load that does not lie inside the packet's data goes on in a
//! function of its own, by a tail call: were it an ordinary call, every load
//! would have to save registers for it.

use std::marker::PhantomData;

use isa::ebpf::{Cond, Reg, Size, Width, eval};
use lower::may_lie_elsewhere;
use vm::{PacketRules, load_packet, load_packet_beyond};

use super::choose_cond;
use super::operand::{Condition, R0, Read, Stored};
use crate::op::{Dispatch, Flow, Op, Operation, Run, Step, step};

/// Value of `Op::off` for loads that may find something beyond the packet's bytes,
/// by Linux's rules.
const ELSEWHERE: i16 = 1;

/// Where a packet load loads.
pub(super) trait Place {
    /// The sum of at most two 32-bit numbers.
    fn offset(run: &Run) -> u64;
}

/// At a constant.
pub(super) struct Absolute;
/// At a register plus a constant.
pub(super) struct Indirect<S>(PhantomData<S>);

impl Place for Absolute {
    #[inline(always)]
    fn offset(run: &Run) -> u64 {
        u64::from(run.op().a)
    }
}

impl<S: Read> Place for Indirect<S> {
    #[inline(always)]
    fn offset(run: &Run) -> u64 {
        u64::from(S::read(run) as u32) + u64::from(run.op().a)
    }
}

/// `r0 = packet[…]` of `N` bytes, and then `K`.
pub(super) struct Load<P, const N: usize, K>(PhantomData<(P, K)>);
/// The same beyond the packet.
struct Beyond<P, const N: usize, K>(PhantomData<(P, K)>);

impl<P: Place, const N: usize, K: Operation> Operation for Load<P, N, K> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        let (data, len) = run.data();
        // SAFETY: `data` is readable for `len` bytes, as `Run` says.
        match unsafe { load_packet::<N>(data, len, P::offset(&run)) } {
            Some(value) => {
                run.r0 = u64::from(value);
                K::perform(run)
            }
            None => run.turn_to::<Beyond<P, N, K>>(),
        }
    }
}

impl<P: Place, const N: usize, K: Operation> Operation for Beyond<P, N, K> {
    #[inline(always)]
    fn perform(mut run: Run) -> Flow {
        // Most find nothing there, and then there may be no world to ask.
        if run.op().off != ELSEWHERE {
            return run.finish(0);
        }
        let offset = P::offset(&run);
        let packet = run.cx().packet;
        match load_packet_beyond(packet, PacketRules::Kernel, offset, N as u32) {
            Some(value) => {
                run.r0 = u64::from(value);
                K::perform(run)
            }
            None => run.finish(0),
        }
    }
}

/// The load is all.
struct Nothing;
/// `if w0 cond b goto t`, else `K` is next.
pub(super) struct ThenIf<C, K = Dispatch>(PhantomData<(C, K)>);
/// The length of an IPv4 header, `w0 = (w0 & 15) << 2; dst = w0`, and `K` is next.
pub(super) struct HeaderLength<K = Dispatch>(PhantomData<K>);

impl Operation for Nothing {
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

/// A packet load: its size, index register and constant, and the rules it obeys.
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

/// The function for a load and what follows it; an index in `r0` is rare and
/// only served where nothing follows.
macro_rules! choose_load {
    ($load:expr, $then:ty) => {
        match $load.index {
            None => choose_size!($load.size, Absolute, $then),
            Some(_) => choose_size!($load.size, Indirect<Stored>, $then),
        }
    };
}

impl PacketLoad {
    fn op(&self, step: Step) -> Op {
        Op {
            a: self.offset as u32,
            off: match may_lie_elsewhere(self.rules, self.index, self.offset) {
                true => ELSEWHERE,
                false => 0,
            },
            src: self.index.map_or(0, Reg::number),
            ..Op::new(step)
        }
    }

    /// `r0 = packet[…]`.
    pub(crate) fn alone(&self) -> Op {
        self.op(match self.index {
            Some(Reg::R0) => choose_size!(self.size, Indirect<R0>, Nothing),
            _ => choose_load!(self, Nothing),
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
