//! Packet loads, alone and with what commonly follows them.
//!
//! The rare load that does not lie inside the packet's data goes on in a
//! function of its own, by a tail call: were it an ordinary call, every load
//! would have to save registers for it.

use std::marker::PhantomData;

use isa::ebpf::{Cond, Reg, Size, Width, eval};
use vm::{Machine, PacketRules, Surroundings, load_packet, load_packet_beyond};

use super::choose_cond;
use super::operand::{Condition, R0, Read, Stored, register};
use crate::op::{Dispatch, Flow, Next, Op, Step, finish, go};

/// Value of `Op::off` for Linux's rules.
const KERNEL: i16 = 1;

/// Where a packet load loads.
pub(super) trait Place {
    /// The sum of at most two 32-bit numbers.
    unsafe fn offset(op: &Op, m: *mut Machine, r0: u64) -> u64;
}

/// At a constant.
pub(super) struct Absolute;
/// At a register plus a constant.
pub(super) struct Indirect<S>(PhantomData<S>);

impl Place for Absolute {
    #[inline(always)]
    unsafe fn offset(op: &Op, _: *mut Machine, _: u64) -> u64 {
        u64::from(op.a)
    }
}

impl<S: Read> Place for Indirect<S> {
    #[inline(always)]
    unsafe fn offset(op: &Op, m: *mut Machine, r0: u64) -> u64 {
        // SAFETY: passed on to the caller.
        u64::from(unsafe { S::read(op, m, r0) } as u32) + u64::from(op.a)
    }
}

/// What follows the load.
pub(super) trait Then {
    /// Goes on with the value loaded.
    unsafe fn then(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        value: u32,
        world: *mut Surroundings<'static>,
    ) -> Flow;
}

/// Nothing: the value is in `r0`.
struct Nothing;
/// `if w0 cond b goto t`.
pub(super) struct Jump<C, K = Dispatch>(PhantomData<(C, K)>);
/// The length of an IPv4 header: `w0 = (w0 & 15) << 2; dst = w0`.
pub(super) struct HeaderLength<K = Dispatch>(PhantomData<K>);
/// The next operation, known to be a packet load.
pub(super) struct ThenLoad<P, const N: usize, T>(PhantomData<(P, T)>);

impl<P: Place, const N: usize, T: Then> Next for ThenLoad<P, N, T> {
    #[inline(always)]
    unsafe fn go_on(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        r0: u64,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        // SAFETY: passed on to the caller.
        unsafe { packet::<P, N, T>(op, m, data, len, r0, world) }
    }
}

impl Then for Nothing {
    #[inline(always)]
    unsafe fn then(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        value: u32,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        // SAFETY: the contract of `Step`.
        unsafe { go!(op.add(1), m, data, len, u64::from(value), world) }
    }
}

impl<C: Condition, K: Next> Then for Jump<C, K> {
    #[inline(always)]
    unsafe fn then(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        value: u32,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        let value = u64::from(value);
        // SAFETY: the contract of `Step`.
        unsafe {
            if eval::compare(C::COND, Width::W32, value, u64::from((*op).b)) {
                go!(op.offset((*op).t as isize), m, data, len, value, world)
            }
            K::go_on(op.add(1), m, data, len, value, world)
        }
    }
}

impl<K: Next> Then for HeaderLength<K> {
    #[inline(always)]
    unsafe fn then(
        op: *const Op,
        m: *mut Machine,
        data: *const u8,
        len: usize,
        value: u32,
        world: *mut Surroundings<'static>,
    ) -> Flow {
        let value = u64::from((value & 15) << 2);
        // SAFETY: the contract of `Step`.
        unsafe {
            *register(m, (*op).dst) = value;
            K::go_on(op.add(1), m, data, len, value, world)
        }
    }
}

pub(super) unsafe fn packet<P: Place, const N: usize, T: Then>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`: `data` is readable for `len` bytes.
    unsafe {
        match load_packet::<N>(data, len, P::offset(&*op, m, r0)) {
            Some(value) => T::then(op, m, data, len, value, world),
            None => packet_beyond::<P, N, T>(op, m, data, len, r0, world),
        }
    }
}

#[cold]
#[inline(never)]
unsafe fn packet_beyond<P: Place, const N: usize, T: Then>(
    op: *const Op,
    m: *mut Machine,
    data: *const u8,
    len: usize,
    r0: u64,
    world: *mut Surroundings<'static>,
) -> Flow {
    // SAFETY: the contract of `Step`.
    unsafe {
        let rules = if (*op).off == KERNEL {
            PacketRules::Kernel
        } else {
            PacketRules::Capture
        };
        let offset = P::offset(&*op, m, r0);
        match load_packet_beyond((*world).packet, rules, offset, N as u32) {
            Some(value) => T::then(op, m, data, len, value, world),
            None => finish!(m, 0),
        }
    }
}

/// A packet load: its size, index register and constant, and the rules it obeys.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub size: Size,
    pub index: Option<Reg>,
    pub offset: i32,
    pub rules: PacketRules,
}

macro_rules! choose_size {
    ($size:expr, $place:ty, $then:ty) => {
        match $size {
            Size::B => packet::<$place, 1, $then> as Step,
            Size::H => packet::<$place, 2, $then> as Step,
            Size::W | Size::DW => packet::<$place, 4, $then> as Step,
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

impl Load {
    fn op(&self, step: Step) -> Op {
        Op {
            a: self.offset as u32,
            off: if self.rules == PacketRules::Kernel {
                KERNEL
            } else {
                0
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
        let step = choose_cond!(cond, C, choose_load!(self, Jump<C, Dispatch>));
        Op {
            b: imm as u32,
            ..self.op(step)
        }
    }

    /// `r0 = packet[…]; w0 &= 15; w0 <<= 2; dst = w0`.
    pub(crate) fn then_header_length(&self, dst: Reg) -> Op {
        self.op(choose_load!(self, HeaderLength<Dispatch>)).dst(dst)
    }
}
