//! Functions of this file in the place of generated code, which Miri cannot run: what entries hand to
//! code at which addresses, what code may do there, and what they make of its end.

use std::ptr;
use std::sync::Arc;
use std::time::Instant;

use lower::{
    ContextKind, EntryFunction, EntrySizes, MemoryProgram, PacketFilter, PacketProgram,
    SyscallFilter,
};
use packet::Metadata;
use spec::context::{LEN, MARK, SECCOMP_DATA_SIZE};
use spec::maps::{MapFlags, MapKind};
use spec::{Errno, Random, SplitMix};
use vm::{
    CellSlice, Cells, DirectContext, Machine, MapAttributes, MapHandle, MapOperations, MemoryPort,
    Outcome, PacketBuffer, RunContext, RunGuard, SKB, direct_call,
};

use super::entry::{FilterEntry, FunctionEntry, VerifiedEntry};
use super::*;

/// A program whose code is a function of this file.
fn native<K: EntryAbi>(entry: K::Entry) -> Native<K> {
    let pool = Pool::new();
    let code = NativeCode {
        image: pool.install(1, 1, |_, _| ()).expect("there is memory"),
        tail_entry: 0,
        checks_deadline: true,
        rules: PacketRules::Kernel,
        references: References::new(&[], &[], &[], &[].into()),
        is_tail_target: false,
        code_map: Vec::new(),
        entry_slots: Vec::new(),
    };
    Native { code, entry }
}

/// A field of the native context, as code addresses it.
///
/// # Safety
/// There is a field of this type at the offset.
unsafe fn field<T>(context: *mut NativeContext, offset: usize) -> *mut T {
    // SAFETY: passed on to the caller.
    unsafe { context.byte_add(offset).cast() }
}

/// A value at an address that code was given, aligned or not.
///
/// # Safety
/// There is a value of this type at the address.
unsafe fn load<T>(address: u64) -> T {
    // SAFETY: passed on to the caller.
    unsafe { ptr::with_exposed_provenance::<T>(address as usize).read_unaligned() }
}

/// Stores a value at an address that code was given, aligned or not.
///
/// # Safety
/// There is a value of this type at the address, which code may change.
unsafe fn store<T>(address: u64, value: T) {
    // SAFETY: passed on to the caller.
    unsafe { ptr::with_exposed_provenance_mut::<T>(address as usize).write_unaligned(value) }
}

/// The run context, as a helper gets it.
///
/// # Safety
/// The context is that of a run, and no other reference to its run context exists.
unsafe fn run_context<'a>(context: *mut NativeContext) -> &'a mut RunContext<'a> {
    // SAFETY: passed on to the caller.
    unsafe { &mut *(*field::<*mut ()>(context, NativeContext::RUN_CONTEXT)).cast() }
}

unsafe extern "C" fn first_byte(_: u64, _: u64, data: *const u8, len: usize) -> u64 {
    match len {
        0 => 0,
        // SAFETY: the packet has a byte.
        _ => unsafe { *data }.into(),
    }
}

#[test]
fn a_filter_reads_the_packet() {
    let filter = native::<PacketFilter>(FilterEntry::Bytes(first_byte));
    let filter = filter.on_packets().expect("it reads bytes only");
    assert_eq!([filter.run(&[7, 8]), filter.run(&[])], [7, 0]);
}

/// Reads two fields of the context, and then jumps backward for as long as it may.
unsafe extern "C" fn fields(
    r1: u64,
    _: u64,
    data: *const u8,
    len: usize,
    context: *mut NativeContext,
) -> u64 {
    // SAFETY: `r1` is the address of a context with these fields, and the native context that of
    // the run.
    unsafe {
        assert_eq!(*field::<*const u8>(context, NativeContext::DATA), data);
        assert_eq!(*field::<usize>(context, NativeContext::LEN), len);
        let at = |offset: i16| load::<u32>(r1.wrapping_add_signed(offset.into()));
        let sum = at(LEN.offset) + at(MARK.offset);
        let budget = field::<i64>(context, NativeContext::BUDGET);
        if sum > 9 {
            while *budget >= 0 {
                *budget -= 1;
            }
        }
        sum.into()
    }
}

#[test]
fn a_filter_reads_its_context_and_ends_with_its_budget() {
    let filter = native::<PacketFilter>(FilterEntry::WithFields(Entry::WithContext(fields)));
    let machine = &mut Machine::new();
    let random = &mut SplitMix::new(1);
    for (mark, outcome) in [(5, Outcome::Returned(8)), (7, Outcome::BudgetExhausted)] {
        let meta = Metadata {
            mark,
            ..Metadata::UNKNOWN
        };
        let packet = Packet::whole(&[1, 2, 3], &meta);
        assert_eq!(filter.run(machine, &packet, random, 10), outcome);
    }
}

unsafe extern "C" fn sum_of_words(r1: u64, _: u64, _: *const u8, len: usize) -> u64 {
    assert_eq!(len, 0);
    let words = (0..SECCOMP_DATA_SIZE as u64).step_by(4);
    // SAFETY: `r1` is the address of so many bytes.
    words
        .map(|at| u64::from(unsafe { load::<u32>(r1 + at) }))
        .sum()
}

#[test]
fn a_filter_reads_a_system_call() {
    let filter = native::<SyscallFilter>(Entry::Alone(sum_of_words));
    let call = [1; SECCOMP_DATA_SIZE];
    let sum = 16 * u64::from(u32::from_ne_bytes([1; 4]));
    assert_eq!(
        filter.run(&mut Machine::new(), &call),
        Outcome::Returned(sum)
    );
}

unsafe extern "C" fn count_up(r1: u64, r2: u64, _: *const u8, _: usize) -> u64 {
    for at in r1..r1 + r2 {
        // SAFETY: `r1` and `r2` are address and length of memory of the program's.
        unsafe { store(at, load::<u8>(at) + 1) };
    }
    r2
}

#[test]
fn a_program_changes_its_memory() {
    let program = native::<MemoryProgram>(Entry::Alone(count_up));
    let mut memory = [1, 2, 3];
    for _ in 0..2 {
        let outcome = program.run(&mut Machine::new(), &mut memory, &mut SplitMix::new(1));
        assert_eq!(outcome, Outcome::Returned(3));
    }
    assert_eq!(memory, [3, 4, 5]);
}

/// Uses its fuel up until the deadline has passed, and calls a helper each time.
unsafe extern "C" fn random_until_the_deadline(
    r1: u64,
    _: u64,
    _: *const u8,
    _: usize,
    context: *mut NativeContext,
) -> u64 {
    // SAFETY: the native context is that of the run, and `r1` the address of a number.
    unsafe {
        let fuel = field::<i64>(context, NativeContext::FUEL);
        while *fuel >= 0 {
            store(r1, run_context(context).random.next_u32());
            *fuel = -1;
            check_deadline(&mut *context);
        }
        1
    }
}

#[test]
fn a_deadline_ends_a_program_that_calls_helpers() {
    let program = native::<MemoryProgram>(Entry::WithContext(random_until_the_deadline));
    let mut memory = [0; 4];
    let (machine, random) = (&mut Machine::new(), &mut SplitMix::new(1));
    let deadline = Deadline::at(Instant::now()).checking_every(3);
    let outcome = program.run_until(machine, &mut memory, random, deadline);
    assert_eq!(outcome, Outcome::DeadlinePassed);
    assert_eq!(u32::from_ne_bytes(memory), SplitMix::new(1).next_u32());
}

/// Puts bytes in front of the packet by a helper, and writes the first one.
unsafe extern "C" fn push_header(
    r1: u64,
    _: u64,
    _: *const u8,
    _: usize,
    context: *mut NativeContext,
) -> u64 {
    let bound = |offset: i16| {
        // SAFETY: the bounds of the packet stand before the context at `r1`.
        unsafe { load::<u64>(r1.wrapping_add_signed(offset.into())) }
    };
    let push = direct_call(
        |[context, ..], memory: &mut vm::Direct, _: &mut RunContext<'_>| {
            let pushed = memory.change_packet(context, |packet| packet.insert(0, 100));
            Ok(u64::from(pushed.is_ok()))
        },
    );
    // SAFETY: the packet has a byte, before and after the call of the helper with the context.
    unsafe {
        store(bound(DirectContext::DATA), b'P');
        let pushed = push(r1, 0, 0, 0, 0, run_context(context));
        store(bound(DirectContext::DATA), b'!');
        let len = bound(DirectContext::DATA_END) - bound(DirectContext::DATA);
        pushed * len
    }
}

#[test]
fn a_verified_program_changes_its_packet_itself_and_by_helpers() {
    let context = ContextKind::SkBuff;
    let entry = Entry::WithContext(push_header);
    let program = native::<PacketProgram>(VerifiedEntry { entry, context });
    let mut packet = PacketBuffer::new(SKB, b"packet", 4, 0);
    let mut context = DirectContext::new(context, &[0; 4]);
    let guard = RunGuard::new();
    for len in [106, 206] {
        let random = &mut SplitMix::new(1);
        let cx = RunContext::new(&NO_PACKET, random, None);
        assert_eq!(program.run(&mut packet, &mut context, &guard, cx), Ok(len));
    }
    let bytes = packet.to_vec();
    assert_eq!(
        (bytes[0], bytes[100], &bytes[200..]),
        (b'!', b'P', &b"Packet"[..])
    );
}

/// One entry.
#[derive(Debug)]
struct One(Cells);

impl MapOperations for One {
    fn lookup<'g>(&'g self, _: &'g RunGuard, _: u32, _: &[u8]) -> Option<CellSlice<'g>> {
        Some(self.0.slice(1, 8))
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }
}

/// Adds the key to the value.
unsafe extern "C" fn add_key(r1: u64, _: u64, _: *const u8, _: usize) -> u64 {
    // SAFETY: `r1` is the address of three words: the map, and addresses of the key and the value.
    unsafe {
        let [_, key, value] = load::<[u64; 3]>(r1);
        let sum = load::<u64>(value) + load::<u64>(key);
        store(value, sum);
        sum
    }
}

#[test]
fn a_function_changes_the_value_of_an_entry() {
    let sizes = EntrySizes { key: 8, value: 8 };
    let entry = Entry::Alone(add_key);
    let function = native::<EntryFunction>(FunctionEntry { entry, sizes });
    let attributes = MapAttributes {
        kind: MapKind::Hash,
        max_entries: 1,
        key_size: 8,
        value_size: 8,
        flags: MapFlags::default(),
        copies: 1,
        timers: None,
        objects: None,
        charge: None,
    };
    let cells = Cells::zeroed(2).expect("there is memory");
    cells.slice(0, 8).write(0, &7u64.to_ne_bytes());
    let map = Arc::new(One(cells));
    let handle = MapHandle::new(attributes, map.clone());
    let guard = RunGuard::new();
    for sum in [7, 14] {
        let random = &mut SplitMix::new(1);
        let cx = RunContext::new(&NO_PACKET, random, None);
        let entry = [map.0.slice(0, 8), map.0.slice(1, 8)];
        let outcome = function.run_until(&handle, entry, &guard, cx, None);
        assert_eq!(outcome, Ok(Outcome::Returned(sum)));
    }
}
