//! The first process of a kernel that is asked about programs: it executes a plan of calls of bpf(2),
//! and writes what the kernel answers to a port that QEMU writes to a file.
//!
//! The plan is the file `/plan`, made by `beebox::internal::ask::plan`: operations of 8-byte-aligned
//! size, each with its kind and length. Attributes of calls are in it as the kernel reads them, with
//! the places that are addresses in the plan, and those that are descriptors which earlier calls
//! returned. It has no allocator, no library and no state but slots of descriptors, so that it starts
//! in no time under an emulator and runs on every x86-64 Linux.
//!
//! Safety: the plan is made by the program that embeds this one. It is mapped privately and lives to
//! the end; offsets in it are checked against its length before they are used.
#![no_std]
#![no_main]

use core::arch::{asm, global_asm};

/// Port of QEMU's isa-debugcon, which writes bytes to a file.
const OUTPUT: u16 = 0xe9;
/// Port of QEMU's isa-debug-exit, which ends the machine.
const EXIT: u16 = 0xf4;
/// Descriptors that calls may keep.
const SLOTS: usize = 4096;
/// A slot that no call has filled.
const UNSET: i64 = -9999;
/// Where the log of a load is written, in `bpf_attr`: level, size, address.
const LOG_LEVEL: usize = 24;
const LOG_SIZE: usize = 28;
const LOG_ADDRESS: usize = 32;
/// The descriptor of the BTF and what refers to it, up to the attach target.
const BTF: core::ops::Range<usize> = 72..108;
/// Bytes of the largest attributes.
const MOST_ATTRIBUTES: usize = 256;
/// Times that a load is repeated that the kernel broke off (EAGAIN).
const ATTEMPTS: u32 = 5;

global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "and rsp, -16",
    "call {begin}",
    "ud2",
    begin = sym begin,
);

/// A system call.
///
/// # Safety
/// The arguments are what the kernel expects of this call.
unsafe fn call(number: usize, arguments: [usize; 6]) -> i64 {
    let [a, b, c, d, e, f] = arguments;
    let result: i64;
    // SAFETY: the registers of the system call convention; rcx and r11 are clobbered by it.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as i64 => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            out("rcx") _, out("r11") _,
        );
    }
    result
}

/// Writes bytes to the output.
fn write(bytes: &[u8]) {
    // SAFETY: `begin` asked for the port; the bytes are read only.
    unsafe {
        asm!(
            "cld", "rep outsb",
            inout("rcx") bytes.len() => _, inout("rsi") bytes.as_ptr() => _, in("dx") OUTPUT,
        );
    }
}

/// Ends the machine.
fn end() -> ! {
    // SAFETY: `begin` asked for the port. Without the device, the machine is powered off.
    unsafe {
        asm!("out dx, eax", in("dx") EXIT, in("eax") 0);
        call(169, [0xfee1_dead, 0x2812_1969, 0x4321_fedc, 0, 0, 0]);
    }
    loop {
        core::hint::spin_loop();
    }
}

/// The plan: bytes that are read and, where descriptors go, written.
struct Plan {
    bytes: &'static mut [u8],
}

impl Plan {
    fn word(&self, at: usize) -> usize {
        match self.bytes.get(at..at + 4) {
            Some(bytes) => u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]) as usize,
            None => end(),
        }
    }

    fn wide(&self, at: usize) -> usize {
        self.word(at) | self.word(at + 4) << 32
    }

    /// The address of a place.
    fn address(&self, at: usize) -> usize {
        match at <= self.bytes.len() {
            true => self.bytes.as_ptr() as usize + at,
            false => end(),
        }
    }

    fn put(&mut self, at: usize, word: u32) {
        match self.bytes.get_mut(at..at + 4) {
            Some(place) => place.copy_from_slice(&word.to_le_bytes()),
            None => end(),
        }
    }
}

/// Attributes of a call, with addresses and descriptors in place.
struct Attributes {
    bytes: [u8; MOST_ATTRIBUTES],
    len: usize,
}

impl Attributes {
    /// Reads `[length, places, (offset, kind, value)…, attributes]`.
    fn read(plan: &Plan, slots: &[i64; SLOTS], at: usize) -> Attributes {
        let (len, places) = (plan.word(at), plan.word(at + 4));
        let first = at + 8 + 12 * places;
        let mut bytes = [0; MOST_ATTRIBUTES];
        let (Some(to), Some(from)) = (bytes.get_mut(..len), plan.bytes.get(first..first + len))
        else {
            end()
        };
        to.copy_from_slice(from);
        let mut attributes = Attributes { bytes, len };
        for place in 0..places {
            let record = at + 8 + 12 * place;
            let (offset, kind) = (plan.word(record), plan.word(record + 4));
            let value = plan.word(record + 8);
            match kind {
                1 => attributes.put(offset, &plan.address(value).to_le_bytes()),
                _ => attributes.put(offset, &(descriptor(slots, value) as u32).to_le_bytes()),
            }
        }
        attributes
    }

    fn put(&mut self, at: usize, value: &[u8]) {
        match self.bytes.get_mut(at..at + value.len()) {
            Some(place) => place.copy_from_slice(value),
            None => end(),
        }
    }

    fn bpf(&mut self, command: usize) -> i64 {
        let address = self.bytes.as_mut_ptr() as usize;
        // SAFETY: the attributes are those of the command, and the addresses in them are in the plan or
        // the log, with the sizes beside them.
        unsafe { call(321, [command, address, self.len, 0, 0, 0]) }
    }
}

fn descriptor(slots: &[i64; SLOTS], slot: usize) -> i64 {
    slots.get(slot).copied().unwrap_or(UNSET)
}

/// Loads a program; its log is written behind the answer. Without its BTF, which the kernel refused,
/// it is loaded without, as by libbpf: `[id, level, level of a refusal, bytes of the log, BTF, needs,
/// needed slots…, attributes]`.
fn load(plan: &Plan, slots: &[i64; SLOTS], at: usize, log: &mut [u8]) {
    let id = plan.word(at) as u32;
    let levels = [plan.word(at + 4), plan.word(at + 8)];
    let (most, btf, count) = (plan.word(at + 12), plan.word(at + 16), plan.word(at + 20));
    let btf = if btf < SLOTS { slots[btf].min(0) as i32 } else { 0 };
    let mut refused = None;
    for need in 0..count {
        let slot = plan.word(at + 24 + 4 * need);
        if descriptor(slots, slot) < 0 && refused.is_none() {
            refused = Some((descriptor(slots, slot), need as u32 + 1));
        }
    }
    if let Some((error, need)) = refused {
        return answer(id, error as i32, [need, btf as u32], &[], 0);
    }
    let mut attributes = Attributes::read(plan, slots, at + 24 + 4 * count);
    if btf < 0 {
        attributes.bytes[BTF].fill(0);
    }
    let mut result = 0;
    for level in levels {
        log[0] = 0;
        attributes.put(LOG_LEVEL, &(level as u32).to_le_bytes());
        attributes.put(LOG_SIZE, &(log.len() as u32).to_le_bytes());
        attributes.put(LOG_ADDRESS, &(log.as_ptr() as usize).to_le_bytes());
        for _ in 0..ATTEMPTS {
            result = attributes.bpf(5);
            if result != -11 {
                break;
            }
        }
        if result >= 0 || levels[0] == levels[1] {
            break;
        }
    }
    let len = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let kept = &log[len.saturating_sub(most)..len];
    answer(id, result.min(0) as i32, [0, btf as u32], kept, len as u32);
    if result >= 0 {
        // SAFETY: the descriptor was just made.
        unsafe { call(3, [result as usize, 0, 0, 0, 0, 0]) };
    }
}

/// Writes an answer: number, error, the need that is missing, the error of the BTF, bytes of the log,
/// those that follow.
fn answer(id: u32, error: i32, [need, btf]: [u32; 2], log: &[u8], len: u32) {
    write(b"BXAN");
    for word in [id, error as u32, need, btf, len, log.len() as u32] {
        write(&word.to_le_bytes());
    }
    write(log);
}

/// Writes bytes into an arena, which is mapped for that.
fn write_arena(plan: &Plan, slots: &[i64; SLOTS], at: usize) {
    let map = descriptor(slots, plan.word(at));
    let (from, len) = (plan.word(at + 4), plan.word(at + 8));
    let (size, start, offset) = (plan.wide(at + 16), plan.wide(at + 24), plan.wide(at + 32));
    if map < 0 || offset + len > size || from + len > plan.bytes.len() {
        return;
    }
    // SAFETY: the mapping is new, at an address where nothing of this program lies
    // (MAP_FIXED_NOREPLACE), and is as long as what is written.
    unsafe {
        let mapped = call(9, [start, size, 3, 0x10_0001, map as usize, 0]);
        if mapped > 0 {
            let to = (mapped as usize + offset) as *mut u8;
            core::ptr::copy_nonoverlapping(plan.bytes.as_ptr().add(from), to, len);
            call(11, [mapped as usize, size, 0, 0, 0, 0]);
        }
    }
}

fn begin() -> ! {
    const LIMIT: [u64; 2] = [u64::MAX; 2];
    let mut slots = [UNSET; SLOTS];
    // SAFETY: ports of the machine's devices; limits that are read only; a file that is opened, measured
    // and mapped privately; anonymous memory for the log.
    let (mut plan, log) = unsafe {
        call(173, [OUTPUT as usize, 1, 1, 0, 0, 0]);
        call(173, [EXIT as usize, 4, 1, 0, 0, 0]);
        call(302, [0, 8, LIMIT.as_ptr() as usize, 0, 0, 0]);
        let file = call(2, [c"/plan".as_ptr() as usize, 0, 0, 0, 0, 0]);
        let size = call(8, [file as usize, 0, 2, 0, 0, 0]);
        let mapped = call(9, [0, size as usize, 3, 2, file as usize, 0]);
        if file < 0 || size < 16 || mapped < 0 {
            end();
        }
        let bytes = core::slice::from_raw_parts_mut(mapped as usize as *mut u8, size as usize);
        let plan = Plan { bytes };
        let log_size = plan.word(8);
        let log = call(9, [0, log_size, 3, 0x22, usize::MAX, 0]);
        if log < 0 || log_size == 0 {
            end();
        }
        let log = core::slice::from_raw_parts_mut(log as usize as *mut u8, log_size);
        (plan, log)
    };
    write(b"BXUP");
    let mut at = 16;
    loop {
        let (kind, len) = (plan.word(at), plan.word(at + 4));
        let body = at + 8;
        match kind {
            // bpf(2), if the slot has no descriptor yet: `[command, slot, attributes]`.
            1 => {
                let (command, slot) = (plan.word(body), plan.word(body + 4));
                if descriptor(&slots, slot) < 0 {
                    let mut attributes = Attributes::read(&plan, &slots, body + 8);
                    let result = attributes.bpf(command);
                    if let Some(place) = slots.get_mut(slot) {
                        *place = result;
                    }
                }
            }
            // A descriptor into the plan: `[offset, slot]`.
            2 => {
                let word = descriptor(&slots, plan.word(body + 4)) as u32;
                plan.put(plan.word(body), word);
            }
            3 => load(&plan, &slots, body, log),
            // Closes a descriptor and frees its slot: `[slot]`.
            4 => {
                if let Some(place) = slots.get_mut(plan.word(body)) {
                    if *place >= 0 {
                        // SAFETY: the descriptor is one that a call of the plan made.
                        unsafe { call(3, [*place as usize, 0, 0, 0, 0, 0]) };
                    }
                    *place = UNSET;
                }
            }
            5 => write_arena(&plan, &slots, body),
            _ => break,
        }
        if len < 8 {
            break;
        }
        at += len;
    }
    write(b"BXOK");
    end()
}

/// What the compiler calls for copies.
///
/// # Safety
/// As of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, len: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _);
    }
    to
}

/// What the compiler calls to fill memory.
///
/// # Safety
/// As of C.
#[unsafe(no_mangle)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, len: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") to => _, in("al") byte as u8);
    }
    to
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    end()
}
