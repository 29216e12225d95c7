//! Test runs: which data and contexts a program type takes, and what comes out.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use spec::programs::{ProgramType, TestRunKind};
use spec::{Errno, Result};
use vm::network::SocketView;
use vm::{PacketBuffer, Redirect, System};

use super::netfilter::{self, NetfilterHook};
use super::{context_only, flow_dissector, sk_lookup, skb, xdp};
use TestRunKind::{FlowDissector, Model, Netfilter, RawTracepoint, SkLookup, Skb, Syscall, Xdp};

/// Bytes of the link-layer header, that of Ethernet.
pub const LINK_HEADER: usize = 14;

/// Size of a memory page in bytes.
pub(super) const PAGE: usize = 4096;
/// Bytes that the kernel keeps behind a packet (`struct skb_shared_info`).
pub(super) const SHARED_INFO: usize = 320;

/// Results by which programs redirect packets. That of lightweight tunnels (`BPF_REDIRECT`) is
/// tc's.
pub(crate) const XDP_REDIRECT: u32 = 4;
pub(crate) const TC_ACT_REDIRECT: u32 = 7;

/// A program type that can be test-run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestProgram {
    rules: TestRunKind,
    /// Bytes of the context up to the last one that the program accesses.
    context_bytes: u32,
    /// In a model it gets the bytes of a stream, with a `struct __sk_buff`.
    has_stream: bool,
}

/// Packet and context of a run, before it and after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestInput {
    pub(super) rules: TestRunKind,
    /// The packet, for types that get one.
    pub packet: Option<PacketBuffer>,
    /// The context.
    pub context: Vec<u8>,
    /// Pointee of the field at [`TestInput::FLOW_KEYS`] of the context, for flow
    /// dissectors.
    pub flow_keys: Option<Vec<u8>>,
    /// Pointee of the field at [`TestInput::SOCKET`] of the context, for types whose
    /// context is a socket buffer: the socket that the packet belongs to.
    pub packet_socket: Option<SocketView>,
    /// Objects behind the context of a netfilter program.
    pub hook: Option<NetfilterHook>,
    /// The flow keys that every run begins with.
    pub(super) initial_keys: Option<Vec<u8>>,
    /// The context that was given.
    pub(super) given: Vec<u8>,
}

impl TestProgram {
    /// `None` for types that are not test-run.
    pub fn of(kind: ProgramType) -> Option<TestProgram> {
        Some(TestProgram {
            rules: kind.test_run()?,
            context_bytes: 0,
            has_stream: false,
        })
    }

    /// The rules of a type that Linux does not test-run, whose programs run in a model of the kernel.
    pub fn model(kind: ProgramType) -> TestProgram {
        TestProgram {
            rules: Model,
            context_bytes: 0,
            has_stream: kind == ProgramType::SkSkb,
        }
    }

    /// True for those.
    pub fn is_model(self) -> bool {
        self.rules == Model
    }

    /// The rules for a program that accesses so many bytes of its context (`max_ctx_offset`):
    /// types whose context is what the caller gives take no shorter one.
    pub fn with_context_bytes(self, context_bytes: u32) -> TestProgram {
        TestProgram {
            context_bytes,
            ..self
        }
    }

    /// True for types that get packets.
    pub fn has_packet(self) -> bool {
        match self.rules {
            Xdp | Skb(_) | FlowDissector | Netfilter => true,
            SkLookup | Syscall | RawTracepoint | Model => false,
        }
    }

    /// True for types whose context is `struct __sk_buff`.
    pub fn has_sk_buff(self) -> bool {
        matches!(self.rules, Skb(_))
    }

    /// Bytes of the context up to the last one that the program accesses.
    pub fn context_bytes(self) -> u32 {
        self.context_bytes
    }

    /// True if programs see the packet from its link-layer header on, false for those that see
    /// it from its network header on.
    pub fn has_link_header(self) -> bool {
        match self.rules {
            Skb(rules) => rules.has_link_header,
            Netfilter => false,
            Xdp | FlowDissector | SkLookup | Syscall | RawTracepoint | Model => true,
        }
    }

    /// Input of a test run: a frame, and the context that is given, empty for none. Types
    /// without packets take an empty frame.
    ///
    /// # Errors
    /// The kernel's for what it does not take.
    pub fn test_input(self, frame: &[u8], context: &[u8], system: &System) -> Result<TestInput> {
        match self.rules {
            Xdp => xdp::test_input(frame, context, system),
            Skb(rules) => skb::test_input(frame, context, rules, system),
            FlowDissector => flow_dissector::test_input(frame, context),
            Netfilter => netfilter::test_input(frame, context),
            SkLookup => sk_lookup::test_input(frame, context),
            Syscall | RawTracepoint => {
                context_only::test_input(frame, context, self.rules, self.context_bytes)
            }
            Model if self.has_stream => skb::stream(frame, context),
            Model => Err(Errno::ENOTSUPP),
        }
    }

    /// The contexts that a test run takes, in words.
    pub fn context_rule(self) -> &'static str {
        match self.rules {
            Xdp => {
                "none or a struct xdp_md, in which data is the number of bytes of metadata, \
                 data_end that of the linear part, ingress_ifindex an interface that there is, \
                 rx_queue_index one of its queues (0 without an interface), egress_ifindex 0"
            }
            Skb(_) => {
                "none or a struct __sk_buff, in which mark, priority, ifindex, \
                 ingress_ifindex, cb, tstamp, wire_len, gso_segs, gso_size and hwtstamp may \
                 be set"
            }
            FlowDissector => "none or a struct bpf_flow_keys, in which flags may be set",
            Netfilter => {
                "none or a struct nf_hook_state, in which hook and pf may be set, pf the \
                 family of the packet"
            }
            SkLookup => {
                "a struct bpf_sk_lookup with family (2 or 10), protocol, addresses and ports, \
                 and no packet"
            }
            RawTracepoint => {
                "up to 12 arguments of 8 bytes, all that the program reads, and no packet"
            }
            Model if self.has_stream => "none or a struct __sk_buff",
            Model => "arguments and fields by name, of a model of the kernel",
            Syscall => "up to 65535 bytes, all that the program accesses, and no packet",
        }
    }

    /// A frame of any length, in one piece, for types that get packets.
    pub fn captured(self, frame: &[u8]) -> Option<TestInput> {
        match self.rules {
            Xdp => Some(xdp::captured(frame)),
            Skb(rules) => Some(skb::captured(frame, rules)),
            FlowDissector => Some(flow_dissector::input(frame, 0)),
            Netfilter | SkLookup | Syscall | RawTracepoint | Model => None,
        }
    }

    /// Makes an input that [`TestProgram::captured`] returned that of another frame, in the
    /// memory that it has: what a run left in it is gone.
    #[inline]
    pub fn recapture(self, input: &mut TestInput, frame: &[u8]) {
        match self.rules {
            Xdp => xdp::recapture(input, frame),
            Skb(rules) => skb::recapture(input, frame, rules),
            FlowDissector => *input = flow_dissector::input(frame, 0),
            Netfilter | SkLookup | Syscall | RawTracepoint | Model => {}
        }
    }

    /// Makes an input that [`TestProgram::test_input`] returned without a context that of another frame, in
    /// the memory that it has; false if it has to be made anew.
    #[inline]
    pub fn refill(self, input: &mut TestInput, frame: &[u8]) -> bool {
        if !input.given.is_empty() || !self.sizes(frame).contains(&frame.len()) {
            return false;
        }
        match self.rules {
            Xdp if frame.len() <= xdp::MAX_LINEAR => xdp::recapture(input, frame),
            Skb(rules) => skb::refill(input, frame, rules),
            Xdp | FlowDissector | Netfilter | SkLookup | Syscall | RawTracepoint | Model => {
                return false;
            }
        }
        true
    }

    /// The sizes that a test run takes for a frame like this one, in bytes.
    pub fn sizes(self, frame: &[u8]) -> RangeInclusive<usize> {
        match self.rules {
            Xdp => xdp::SIZES,
            Skb(_) => skb::sizes(frame),
            FlowDissector => flow_dissector::SIZES,
            Netfilter => netfilter::sizes(frame),
            Model if self.has_stream => 0..=skb::MOST,
            SkLookup | Syscall | RawTracepoint | Model => 0..=0,
        }
    }
}

impl TestInput {
    /// Offset of the pointer to the flow keys in the context of a flow dissector.
    pub const FLOW_KEYS: usize = 144;

    /// Offset of the pointer to the socket in the context of socket buffers.
    pub const SOCKET: usize = 168;

    /// Sets what each run begins with anew: the flow keys, no socket that is selected. Packet
    /// and context stay as the run before left them.
    #[inline]
    pub fn begin_run(&mut self) {
        if self.initial_keys.is_some() || self.flow_keys.is_some() {
            self.flow_keys.clone_from(&self.initial_keys);
        }
        if self.rules == SkLookup {
            sk_lookup::begin_run(&mut self.context);
        }
    }

    /// Result of a test run in place of that of the program's last run.
    ///
    /// # Errors
    /// The kernel's for a result that it does not return.
    pub fn end_run(&mut self, result: u32, system: &System) -> Result<u32> {
        match self.rules {
            SkLookup => {
                let sockets = &system.network.sockets;
                sk_lookup::end_run(&self.context, &mut self.given, result, sockets)?;
                Ok(sk_lookup::retval(result))
            }
            Xdp | Skb(_) | FlowDissector | Netfilter | Syscall | RawTracepoint | Model => {
                Ok(result)
            }
        }
    }

    /// Sets the index of the interface that the packet comes from.
    pub fn set_ifindex(&mut self, ifindex: u32) {
        match self.rules {
            Xdp => put(&mut self.context, xdp::INGRESS_IFINDEX, ifindex),
            Skb(_) => put(&mut self.context, skb::field::IFINDEX, ifindex),
            FlowDissector | Netfilter | SkLookup | Syscall | RawTracepoint | Model => {}
        }
    }

    /// Redirect target of a run, if its result is a redirect.
    #[inline]
    pub fn redirect(&self, result: u32) -> Option<Redirect> {
        let redirects = match self.rules {
            Xdp => XDP_REDIRECT,
            Skb(_) => TC_ACT_REDIRECT,
            FlowDissector | Netfilter | SkLookup | Syscall | RawTracepoint | Model => return None,
        };
        let packet = self.packet.as_ref().filter(|_| result == redirects)?;
        packet.state.redirect
    }

    /// Output data of a test run: the packet after the run, or the flow keys.
    pub fn data_out(&self) -> Vec<u8> {
        let Some(packet) = &self.packet else {
            return Vec::new();
        };
        match self.rules {
            Xdp => xdp::data_out(packet),
            Skb(rules) => skb::data_out(packet, rules),
            FlowDissector => {
                flow_dissector::data_out(self.flow_keys.as_deref().unwrap_or(&[]), packet)
            }
            Netfilter | SkLookup | Syscall | RawTracepoint | Model => Vec::new(),
        }
    }

    /// The context after the run, as a test run returns it.
    pub fn context_out(&self) -> Vec<u8> {
        match self.rules {
            Xdp => xdp::context_out(self),
            Skb(_) => skb::context_out(self),
            Syscall => self.context.clone(),
            RawTracepoint | Netfilter | Model => Vec::new(),
            FlowDissector | SkLookup => self.given.clone(),
        }
    }

    /// The frame after a run: at most so many bytes of the packet, with the link-layer
    /// header in front.
    pub fn kept_frame(&self, most: usize) -> Cow<'_, [u8]> {
        let Some(packet) = &self.packet else {
            return Cow::Borrowed(&[]);
        };
        let mut kept = packet.contents();
        let len = most.min(kept.len());
        match &mut kept {
            Cow::Borrowed(bytes) => *bytes = &bytes[..len],
            Cow::Owned(bytes) => bytes.truncate(len),
        }
        match self.rules {
            Skb(rules) if !rules.has_link_header => {
                Cow::Owned([skb::link_header(packet), &kept].concat())
            }
            Skb(_) | Xdp | FlowDissector | Netfilter | SkLookup | Syscall | RawTracepoint
            | Model => kept,
        }
    }
}

/// A context that was given, cut or filled with zeros to the size of its structure; E2BIG
/// if it has other bytes than zero behind it, or more than a page.
pub(super) fn sized(context: &[u8], size: usize) -> Result<Vec<u8>> {
    let (known, rest) = context.split_at(size.min(context.len()));
    if context.len() > PAGE || rest.iter().any(|byte| *byte != 0) {
        return Err(Errno::E2BIG);
    }
    let mut known = known.to_vec();
    known.resize(size, 0);
    Ok(known)
}

#[inline]
pub(super) fn put(context: &mut [u8], at: usize, value: u32) {
    copy(context, at, &value.to_le_bytes());
}

#[inline]
pub(super) fn copy(context: &mut [u8], at: usize, bytes: &[u8]) {
    context[at..at + bytes.len()].copy_from_slice(bytes);
}

pub(super) fn get(context: &[u8], at: usize) -> u32 {
    let mut bytes = [0; 4];
    bytes.copy_from_slice(&context[at..at + 4]);
    u32::from_le_bytes(bytes)
}
