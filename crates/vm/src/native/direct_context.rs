//! The context that verified programs get in native code.
//!
//! A program gets the address of the structure that it was written for, as Linux declares
//! it; the bounds of the packet, as pointers, lie before that address. Accesses to fields
//! keep their offsets so, helpers can take the structure as memory, and the structure may
//! have any size.

use std::mem::{offset_of, size_of};
use std::ptr;
use std::slice;

use crate::network::SocketView;
use crate::{CellSlice, MapHandle, PacketBuffer};

/// Bytes of `struct bpf_flow_keys`, rounded up to whole words.
const FLOW_KEYS: usize = 56;
/// Offset of the pointer to them in the context of flow dissectors.
const FLOW_KEYS_FIELD: usize = 144;
/// Offset of the pointer to the socket of the packet in `struct __sk_buff`.
const SOCKET_FIELD: usize = 168;

/// Offset of the pointer to the socket that a program selected in `struct bpf_sk_lookup`.
const SELECTED_FIELD: usize = 0;

/// Context of a kind of programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextKind {
    /// `struct xdp_md`.
    Xdp,
    /// `struct __sk_buff`.
    SkBuff,
    /// `struct __sk_buff` with a pointer to flow keys.
    FlowDissector,
    /// `struct bpf_nf_ctx`.
    Netfilter,
    /// `struct bpf_sk_lookup`.
    SkLookup,
    /// The arguments of a raw tracepoint, numbers of eight bytes.
    Arguments,
    /// Memory of the caller's.
    Syscall,
}

impl ContextKind {
    /// True if native code reaches a packet through the context.
    pub const fn has_packet(self) -> bool {
        match self {
            ContextKind::Xdp | ContextKind::SkBuff | ContextKind::FlowDissector => true,
            ContextKind::Netfilter
            | ContextKind::SkLookup
            | ContextKind::Arguments
            | ContextKind::Syscall => false,
        }
    }

    /// Most bytes that the verifier lets a program access, in whole words.
    pub const fn size(self) -> usize {
        match self {
            ContextKind::Xdp => 24,
            ContextKind::SkBuff | ContextKind::FlowDissector => 192,
            ContextKind::Netfilter => 16,
            ContextKind::SkLookup => 72,
            ContextKind::Arguments => 96,
            ContextKind::Syscall => 1 << 16,
        }
    }

    /// Bytes of the structure, if the kernel passes it to programs as it stands; 0 if accesses
    /// to it are rewritten to those of other structures.
    const fn plain(self) -> usize {
        match self {
            ContextKind::Arguments | ContextKind::Syscall => self.size(),
            ContextKind::Xdp
            | ContextKind::SkBuff
            | ContextKind::FlowDissector
            | ContextKind::Netfilter
            | ContextKind::SkLookup => 0,
        }
    }

    /// Bytes behind the structure that a field of it points to.
    const fn appended(self) -> usize {
        match self {
            ContextKind::FlowDissector => FLOW_KEYS,
            ContextKind::SkBuff => SocketView::SIZE,
            ContextKind::Xdp
            | ContextKind::Netfilter
            | ContextKind::SkLookup
            | ContextKind::Arguments
            | ContextKind::Syscall => 0,
        }
    }

    /// Offset of the field of eight bytes that holds a pointer: to the bytes behind the
    /// structure, or to the socket that a program for lookups of sockets selected.
    pub const fn pointer_field(self) -> Option<usize> {
        match self {
            ContextKind::FlowDissector => Some(FLOW_KEYS_FIELD),
            ContextKind::SkBuff => Some(SOCKET_FIELD),
            ContextKind::SkLookup => Some(SELECTED_FIELD),
            ContextKind::Xdp
            | ContextKind::Netfilter
            | ContextKind::Arguments
            | ContextKind::Syscall => None,
        }
    }
}

/// Header in front of the structure.
#[repr(C)]
struct Header {
    data: u64,
    data_end: u64,
    data_meta: u64,
    /// Address of the packet; 0 without one.
    packet: u64,
    /// Bytes of the structure that are memory in the kernel as well.
    plain: u64,
}

/// Bytes and words before the structure.
const HEADER: usize = size_of::<Header>();
const HEADER_WORDS: usize = HEADER / 8;

/// The context of a run in native code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectContext {
    kind: ContextKind,
    /// A [`Header`], the structure, and what it points to.
    words: Vec<u64>,
}

impl DirectContext {
    /// Offset of the pointer to the packet's first byte from the structure.
    pub const DATA: i16 = offset_of!(Header, data) as i16 - HEADER as i16;
    /// Offset of the pointer behind the packet's last byte.
    pub const DATA_END: i16 = offset_of!(Header, data_end) as i16 - HEADER as i16;
    /// Offset of the pointer to the packet's metadata.
    pub const DATA_META: i16 = offset_of!(Header, data_meta) as i16 - HEADER as i16;

    /// A context whose structure begins with these bytes; the rest are zero.
    ///
    /// # Panics
    /// If there are more bytes than the kind has.
    pub fn new(kind: ContextKind, structure: &[u8]) -> DirectContext {
        let bytes = kind.size() + kind.appended();
        let mut context = DirectContext {
            kind,
            words: vec![0; HEADER_WORDS + bytes / 8],
        };
        context.words[offset_of!(Header, plain) / 8] = kind.plain() as u64;
        context.bytes_mut()[..structure.len()].copy_from_slice(structure);
        context
    }

    /// The context in which functions of verified programs get a map and one of its entries, key
    /// and value.
    pub fn of_entry(map: &MapHandle, entry: [CellSlice<'_>; 2]) -> DirectContext {
        let [key, value] = entry.map(|cells| cells.address().expose_provenance() as u64);
        let words = [map.address(), key, value].map(u64::to_ne_bytes);
        DirectContext::new(ContextKind::Arguments, words.as_flattened())
    }

    /// The kind of programs that it is for.
    pub fn kind(&self) -> ContextKind {
        self.kind
    }

    /// The structure, as the program left it.
    pub fn structure(&self) -> &[u8] {
        &self.bytes()[..self.kind.size()]
    }

    /// Sets the structure to these bytes; the rest are zero.
    ///
    /// # Panics
    /// If there are more bytes than the kind has.
    pub fn set_structure(&mut self, bytes: &[u8]) {
        let size = self.kind.size();
        let (given, rest) = self.bytes_mut()[..size].split_at_mut(bytes.len());
        given.copy_from_slice(bytes);
        rest.fill(0);
    }

    /// The flow keys, for flow dissectors.
    pub fn flow_keys(&self) -> &[u8] {
        &self.bytes()[self.kind.size()..]
    }

    /// Sets the socket that the packet belongs to, for contexts of socket buffers.
    ///
    /// # Panics
    /// For contexts of other kinds.
    pub fn set_socket(&mut self, view: &SocketView) {
        assert!(self.kind == ContextKind::SkBuff, "another kind of context");
        let size = self.kind.size();
        self.bytes_mut()[size..].copy_from_slice(&view.0);
    }

    /// The flow keys, to be set before a run.
    pub fn flow_keys_mut(&mut self) -> &mut [u8] {
        let size = self.kind.size();
        &mut self.bytes_mut()[size..]
    }

    /// Puts the addresses of a packet and of flow keys or socket into the context, and returns the
    /// address of the structure. Programs then change the packet through the context: the
    /// caller keeps both borrowed for the run.
    ///
    /// # Panics
    /// If the packet has the context of another kind.
    pub fn bind(&mut self, packet: Option<&mut PacketBuffer>) -> u64 {
        let size = self.kind.size();
        let start = self.words.as_mut_ptr().expose_provenance() + HEADER;
        if let Some(field) = self.kind.pointer_field() {
            let pointee = match self.kind.appended() {
                0 => 0,
                _ => (start + size) as u64,
            };
            self.bytes_mut()[field..field + 8].copy_from_slice(&pointee.to_ne_bytes());
        }
        match packet {
            Some(packet) => {
                let is_own = packet.context().size <= size;
                assert!(is_own, "the packet has another kind of context");
                let address = ptr::from_mut(packet).expose_provenance() as u64;
                self.words[offset_of!(Header, packet) / 8] = address;
                // SAFETY: the address is that of the structure, which is not borrowed.
                unsafe { set_bounds(start as u64, packet) };
            }
            None => self.words[..offset_of!(Header, plain) / 8].fill(0),
        }
        start as u64
    }

    /// The structure and what it points to.
    fn bytes(&self) -> &[u8] {
        let words = &self.words[HEADER_WORDS..];
        // SAFETY: words are initialised bytes.
        unsafe { slice::from_raw_parts(words.as_ptr().cast(), words.len() * 8) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let words = &mut self.words[HEADER_WORDS..];
        // SAFETY: as in `bytes`, and any bytes are words.
        unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), words.len() * 8) }
    }
}

/// The address of the packet of a context; 0 without one.
///
/// # Safety
/// `context` is what [`DirectContext::bind`] returned, for a context that still exists.
pub(crate) unsafe fn packet_of(context: u64) -> u64 {
    // SAFETY: a header lies before the structure, as the caller asserts.
    unsafe { (*header(context)).packet }
}

/// The bounds of the packet of a context, its metadata included; zero without one.
///
/// # Safety
/// As for [`packet_of`].
pub(crate) unsafe fn bounds_of(context: u64) -> [u64; 2] {
    // SAFETY: as in `packet_of`.
    unsafe { [(*header(context)).data_meta, (*header(context)).data_end] }
}

/// Bytes of the structure of a context that are memory in the kernel as well.
///
/// # Safety
/// As for [`packet_of`].
pub(crate) unsafe fn plain_bytes_of(context: u64) -> u64 {
    // SAFETY: as in `packet_of`.
    unsafe { (*header(context)).plain }
}

/// Sets bounds and length in a context to those of a packet that was moved.
///
/// # Safety
/// As for [`packet_of`]; nothing borrows the context, and the packet is its packet.
pub(crate) unsafe fn set_bounds(context: u64, packet: &mut PacketBuffer) {
    let buffer = packet.address();
    let bounds = packet.bounds(buffer);
    let (layout, len) = (packet.context(), packet.len() as u32);
    let structure = ptr::with_exposed_provenance_mut(context as usize);
    // SAFETY: header and structure exist, as the caller asserts; `bind` has compared the
    // size of the structure with that of the packet's context.
    unsafe {
        let header = &mut *header(context);
        [header.data_meta, header.data, header.data_end] = bounds;
        layout.set_len(slice::from_raw_parts_mut(structure, layout.size), len);
    }
}

fn header(context: u64) -> *mut Header {
    ptr::with_exposed_provenance_mut(context as usize - HEADER)
}
