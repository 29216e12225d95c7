//! DPDK's librte_bpf, loaded at run time: its interpreter and its compiler, for
//! benchmarks.
//!
//! librte_bpf works without DPDK's environment abstraction layer (huge pages, cores,
//! devices): a program is mapped memory, a packet a plain structure. Its verifier
//! rejects loops and 32-bit jumps.

use std::ffi::{c_int, c_void};
use std::ptr::{self, NonNull};

use crate::library::SharedObject;
use isa::ebpf::RawInsn;

/// File names of librte_bpf, newest first: the releases since 2022, whose `rte_mbuf`
/// has one layout.
const NAMES: &[&str] = &["librte_bpf.so.25", "librte_bpf.so.24", "librte_bpf.so.23"];

/// `RTE_BPF_ARG_PTR_MBUF`: the argument of programs is a packet.
const PACKET: c_int = 0x11;

/// Maximum size of a packet buffer in bytes.
const MAX_BUFFER: usize = u16::MAX as usize;

type Run = unsafe extern "C" fn(*mut c_void) -> u64;

/// librte_bpf, loaded: the functions that are used, as its header declares them.
pub struct Dpdk {
    load: unsafe extern "C" fn(*const Parameters) -> *mut c_void,
    get_jit: unsafe extern "C" fn(*const c_void, *mut Native) -> c_int,
    exec: unsafe extern "C" fn(*const c_void, *mut c_void) -> u64,
    destroy: unsafe extern "C" fn(*mut c_void),
    /// Keeps the functions loaded.
    _library: SharedObject,
}

/// `struct rte_bpf_prm`.
#[repr(C)]
struct Parameters {
    insns: *const RawInsn,
    len: u32,
    symbols: *const c_void,
    symbol_count: u32,
    argument: Argument,
}

/// `struct rte_bpf_arg`.
#[repr(C)]
struct Argument {
    kind: c_int,
    size: usize,
    buffer_size: usize,
}

/// `struct rte_bpf_jit`.
#[repr(C)]
struct Native {
    run: Option<Run>,
    size: usize,
}

/// The fields of a packet (`struct rte_mbuf`) that librte_bpf reads: address and length
/// of its bytes. The rest is zero: one segment in no pool.
#[repr(C, align(64))]
struct Packet {
    buffer: *const u8,
    /// Physical address, offset of the data (0), reference count.
    _place: [u16; 6],
    segments: u16,
    _port: u16,
    _flags_and_type: [u32; 3],
    whole_len: u32,
    len: u16,
    _rest: [u8; 86],
}

const _: () = assert!(size_of::<Packet>() == 128);

impl Dpdk {
    /// Loads the library; `None` where it is not installed.
    pub fn load() -> Option<Dpdk> {
        // SAFETY: the names are librte_bpf's, whose initialisers only register log
        // types, and the function types are those of its header.
        unsafe {
            let library = SharedObject::load(NAMES).ok()?;
            Some(Dpdk {
                load: library.get(c"rte_bpf_load").ok()?,
                get_jit: library.get(c"rte_bpf_get_jit").ok()?,
                exec: library.get(c"rte_bpf_exec").ok()?,
                destroy: library.get(c"rte_bpf_destroy").ok()?,
                _library: library,
            })
        }
    }

    /// Loads a program that runs on packets; `None` if librte_bpf rejects it, if it
    /// accesses other memory than its stack and the packet (by packet loads), or if it
    /// calls helpers.
    pub fn program(&self, program: &[RawInsn]) -> Option<DpdkProgram<'_>> {
        if !program.iter().all(is_filter_insn) {
            return None;
        }
        let parameters = Parameters {
            insns: program.as_ptr(),
            len: program.len().try_into().ok()?,
            symbols: ptr::null(),
            symbol_count: 0,
            argument: Argument {
                kind: PACKET,
                size: size_of::<Packet>(),
                buffer_size: MAX_BUFFER,
            },
        };
        // SAFETY: `len` instructions with the layout of the kernel's `struct bpf_insn`
        // start at the pointer; the function copies them.
        let loaded = NonNull::new(unsafe { (self.load)(&raw const parameters) })?;
        let mut native = Native { run: None, size: 0 };
        // SAFETY: the program was just loaded, and the function fills in `native`.
        let answer = unsafe { (self.get_jit)(loaded.as_ptr(), &raw mut native) };
        Some(DpdkProgram {
            dpdk: self,
            loaded,
            native: native.run.filter(|_| answer == 0),
            packet: Box::new(Packet::EMPTY),
        })
    }
}

/// True if an instruction accesses only the stack and the packet.
fn is_filter_insn(slot: &RawInsn) -> bool {
    const FRAME_POINTER: u8 = 10;
    const CALL: u8 = 8;
    match slot.code & 7 {
        // LDX loads; then ST and STX stores.
        1 => slot.regs >> 4 == FRAME_POINTER,
        2 | 3 => slot.regs & 15 == FRAME_POINTER,
        5 => slot.code >> 4 != CALL,
        _ => true,
    }
}

/// A program that librte_bpf loaded and verified.
pub struct DpdkProgram<'d> {
    dpdk: &'d Dpdk,
    loaded: NonNull<c_void>,
    native: Option<Run>,
    /// The packet of the next run.
    packet: Box<Packet>,
}

impl DpdkProgram<'_> {
    /// True if the program has native code.
    pub fn is_compiled(&self) -> bool {
        self.native.is_some()
    }

    /// Interprets the program on a packet; `None` if the packet is longer than 65,535
    /// bytes.
    #[inline]
    pub fn interpret(&mut self, data: &[u8]) -> Option<u64> {
        self.packet.set(data)?;
        let packet = (&raw mut *self.packet).cast();
        // SAFETY: the library is loaded (`self` borrows it) and its verifier accepted
        // the program, which accesses the packet only by bounds-checked packet loads
        // (`is_filter_insn`).
        Some(unsafe { (self.dpdk.exec)(self.loaded.as_ptr(), packet) })
    }

    /// Runs the native code on a packet; `None` if there is no native code or the packet
    /// is longer than 65,535 bytes.
    #[inline]
    pub fn run(&mut self, data: &[u8]) -> Option<u64> {
        let run = self.native?;
        self.packet.set(data)?;
        // SAFETY: as in `interpret`; the code lives as long as the program.
        Some(unsafe { run((&raw mut *self.packet).cast()) })
    }
}

impl Drop for DpdkProgram<'_> {
    fn drop(&mut self) {
        // SAFETY: this library loaded the program, and nothing else refers to it.
        unsafe { (self.dpdk.destroy)(self.loaded.as_ptr()) }
    }
}

impl Packet {
    const EMPTY: Packet = Packet {
        buffer: ptr::null(),
        _place: [0; 6],
        segments: 1,
        _port: 0,
        _flags_and_type: [0; 3],
        whole_len: 0,
        len: 0,
        _rest: [0; 86],
    };

    /// Makes the packet refer to these bytes; `None` if they are more than 65,535.
    #[inline]
    fn set(&mut self, data: &[u8]) -> Option<()> {
        self.len = data.len().try_into().ok()?;
        self.whole_len = self.len.into();
        self.buffer = data.as_ptr();
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::{assemble, encode};

    fn slots(text: &str) -> Vec<RawInsn> {
        encode(&assemble(text).expect("a program")).expect("slots")
    }

    #[test]
    fn programs_that_access_other_memory_are_rejected() {
        let all_of = |text| slots(text).iter().all(is_filter_insn);
        assert!(all_of(
            "*(u32 *)(r10 - 4) = r0\nr0 = *(u32 *)(r10 - 4)\nexit\n"
        ));
        assert!(!all_of("r0 = *(u64 *)(r1 + 0)\nexit\n"));
        assert!(!all_of("*(u64 *)(r1 + 0) = r0\nexit\n"));
        assert!(!all_of("call 5\nexit\n"));
    }
}
