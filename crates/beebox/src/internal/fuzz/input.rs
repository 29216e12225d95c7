//! What a program is run on: elements of maps, then packets one after the other, each at its time.

use spec::programs::ProgramType;

use super::find::{CaptureForm, capture_as};

/// An input. The maps are as they were set up in front of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuzzInput {
    /// Elements that are written first.
    #[doc(hidden)]
    pub elements: Vec<InputElement>,
    /// The runs.
    #[doc(hidden)]
    pub steps: Vec<InputStep>,
    /// Seed of the random numbers of helpers.
    pub seed: u64,
}

/// An element of a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputElement {
    /// Name of the map.
    pub map: String,
    /// Its key.
    pub key: Vec<u8>,
    /// Its value, of a per-CPU map that of every CPU.
    pub value: Vec<u8>,
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputStep {
    /// The packet; empty for programs without one.
    pub packet: Vec<u8>,
    /// The context, if one is given.
    pub context: Option<Vec<u8>>,
    /// The clock, in nanoseconds.
    pub time: u64,
}

impl InputStep {
    /// The context of a run of a program of a type: of netfilter, which has no other, the hook of received
    /// packets of the family that the frame is of, behind which the program sees it from its network header.
    pub(super) fn context_of(&self, kind: ProgramType) -> Option<&[u8]> {
        // Hook and family of `struct nf_hook_state`, the first of all hooks.
        const IPV4: &[u8] = &[0, 2];
        const IPV6: &[u8] = &[0, 10];
        let given = self.context.as_deref();
        given.or_else(|| match (kind, self.packet.get(12..14)) {
            (ProgramType::Netfilter, Some([0x86, 0xdd])) => Some(IPV6),
            (ProgramType::Netfilter, _) => Some(IPV4),
            _ => None,
        })
    }
}

impl FuzzInput {
    /// A run on a packet.
    pub fn from_packet(packet: Vec<u8>) -> FuzzInput {
        FuzzInput::default().then_run(packet, None, 0)
    }

    /// Adds an element of a map, which is written in front of the runs: the bytes of its key and its
    /// value, of a per-CPU map those of every CPU.
    #[must_use]
    pub fn with_element(mut self, map: &str, key: Vec<u8>, value: Vec<u8>) -> FuzzInput {
        let map = map.to_owned();
        self.elements.push(InputElement { map, key, value });
        self
    }

    /// Adds a run on a packet, which is empty for programs without one, and on a context, if one is
    /// given, at a time in nanoseconds.
    #[must_use]
    pub fn then_run(mut self, packet: Vec<u8>, context: Option<Vec<u8>>, time: u64) -> FuzzInput {
        self.steps.push(InputStep {
            packet,
            context,
            time,
        });
        self
    }

    /// The packets of its runs.
    pub fn packets(&self) -> impl Iterator<Item = &[u8]> {
        self.steps.iter().map(|step| &step.packet[..])
    }

    /// A capture (pcap, nanoseconds) of the packets, as Ethernet frames at their times.
    pub fn capture(&self) -> Vec<u8> {
        capture_as(self, CaptureForm::Link)
    }

    /// Makes it a copy of another one, in the memory that it has.
    pub(super) fn copy(&mut self, other: &FuzzInput) {
        self.seed = other.seed;
        self.elements.clone_from(&other.elements);
        self.steps.truncate(other.steps.len());
        let known = self.steps.len();
        for (step, of) in self.steps.iter_mut().zip(&other.steps) {
            step.packet.clear();
            step.packet.extend_from_slice(&of.packet);
            step.context.clone_from(&of.context);
            step.time = of.time;
        }
        self.steps.extend_from_slice(&other.steps[known..]);
    }
}
