//! Tests beside the cases of all engines: messages of traps, limits, addresses, helpers,
//! observers, absence of panics.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use isa::ebpf::{RawInsn, assemble, decode};
use packet::Metadata;
use spec::SplitMix;

use super::*;

fn program(source: &str) -> CheckedProgram {
    CheckedProgram::new(assemble(source).expect("a program"))
}

/// Runs a program with 16 bytes in `r1`, 4 bytes for reading in `r3`.
fn run_with(source: &str, limits: &Limits, observer: &mut impl Observer) -> Finish {
    let mut bytes: Vec<u8> = (0..16).collect();
    let mut memory = Memory::new();
    let bytes = memory.add("bytes", &mut bytes).expect("room");
    let key = memory.add_read_only("key", &[1, 2, 3, 4]).expect("room");
    let arguments = [memory.address(bytes), 16, memory.address(key), 4, 0];
    let mut time = 0;
    let clock = move || {
        time += 1_000;
        time
    };
    // Each helper has a clock of its own, so each begins at its beginning.
    let mut calls = Calls::basic(SplitMix::new(1), clock);
    calls.define(1000, |[address, len, ..], memory| {
        let sum = memory
            .read(address, len)?
            .iter()
            .map(|byte| u64::from(*byte));
        Ok(sum.sum())
    });
    calls.define(1001, |[address, len, ..], memory| {
        memory.write(address, len)?.fill(0xff);
        Ok(0)
    });
    calls.define(1002, |_, _| Err(CallFault::Refused("out of tea".into())));
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    program(source).run_observed(cx, Entry { arguments }, limits, observer)
}

fn run(source: &str) -> Finish {
    run_with(source, &Limits::default(), &mut ())
}

/// Message of a program's trap.
fn trap(source: &str) -> String {
    match run(source).outcome {
        Ok(value) => panic!("{source} returned {value:#x}"),
        Err(trap) => trap.to_string(),
    }
}

#[test]
fn traps_name_instruction_access_and_region() {
    for (source, expected) in [
        (
            "r0 = *(u64 *)(r1 + 16)",
            "instruction 0 (r0 = *(u64 *)(r1 + 16)): it reads 8 bytes at 0xffff88811035d950, \
             where `bytes` (0xffff88811035d940 to 0xffff88811035d950) ends",
        ),
        (
            "r0 = *(u8 *)(r1 + 20)",
            "instruction 0 (r0 = *(u8 *)(r1 + 20)): it reads 1 byte at 0xffff88811035d954, \
             4 bytes beyond the end of `bytes` (0xffff88811035d940 to 0xffff88811035d950)",
        ),
        (
            "*(u16 *)(r1 - 2) = 0",
            "instruction 0 (*(u16 *)(r1 - 2) = 0): it writes 2 bytes at 0xffff88811035d93e, \
             2 bytes before the start of `bytes` (0xffff88811035d940 to 0xffff88811035d950)",
        ),
        (
            "r0 = *(u32 *)(r1 + 13)",
            "instruction 0 (r0 = *(u32 *)(r1 + 13)): it reads 4 bytes at 0xffff88811035d94d, of which \
             only 3 are in `bytes` (0xffff88811035d940 to 0xffff88811035d950)",
        ),
        (
            "*(u8 *)(r3 + 0) = 1",
            "instruction 0 (*(u8 *)(r3 + 0) = 1): it writes 1 byte at 0xffff88811045d940 in \
             `key` (0xffff88811045d940 to 0xffff88811045d944), which is read-only",
        ),
        (
            "lock *(u32 *)(r3 + 0) += r2",
            "instruction 0 (lock *(u32 *)(r3 + 0) += r2): it updates 4 bytes at 0xffff88811045d940 in \
             `key` (0xffff88811045d940 to 0xffff88811045d944), which is read-only",
        ),
        (
            "lock *(u32 *)(r1 + 2) += r2",
            "instruction 0 (lock *(u32 *)(r1 + 2) += r2): it updates 4 bytes at 0xffff88811035d942 in \
             `bytes` (0xffff88811035d940 to 0xffff88811035d950), which is not aligned to its size",
        ),
        (
            "r0 = *(u64 *)(r10 - 520)",
            "instruction 0 (r0 = *(u64 *)(r10 - 520)): it reads 8 bytes at 0xffffc90013847a00, \
             8 bytes before the start of `stack frame 0` (0xffffc90013847a08 to 0xffffc90013847c08)",
        ),
        (
            "r0 = 0; r0 = *(u64 *)(r0 + 8)",
            "instruction 1 (r0 = *(u64 *)(r0 + 8)): it reads 8 bytes at 0x8, \
             a null pointer with an offset",
        ),
        (
            "r2 = -4; r0 = *(u64 *)(r2 + 0)",
            "instruction 1 (r0 = *(u64 *)(r2 + 0)): it reads 8 bytes at 0xfffffffffffffffc, \
             which wraps around the address space",
        ),
        (
            "r2 = 0x123456789ab ll; r0 = *(u64 *)(r2 + 0)",
            "instruction 2 (r0 = *(u64 *)(r2 + 0)): it reads 8 bytes at 0x123456789ab, which is \
             in no region; the nearest is `bytes` (0xffff88811035d940 to 0xffff88811035d950)",
        ),
        (
            "goto +5",
            "instruction 0 (goto +5): control leaves the program to instruction 6",
        ),
        ("call 77", "instruction 0 (call 77): there is no helper 77"),
        (
            "r2 = 17; call 1000",
            "instruction 1 (call 1000): helper 1000 reads 17 bytes at 0xffff88811035d940, of which \
             only 16 are in `bytes` (0xffff88811035d940 to 0xffff88811035d950)",
        ),
        (
            "r1 = r3; r2 = 1; call 1001",
            "instruction 2 (call 1001): helper 1001 writes 1 byte at 0xffff88811045d940 in \
             `key` (0xffff88811045d940 to 0xffff88811045d944), which is read-only",
        ),
        (
            "call 1002",
            "instruction 0 (call 1002): helper 1002 refuses: out of tea",
        ),
        (
            "r1 = 268435456; callx r1",
            "instruction 1 (callx r1): there is no helper 268435456",
        ),
        (
            "r1 = map_fd(3) ll",
            "instruction 0 (r1 = map_fd(3) ll): it needs a map, which raw instructions do not have",
        ),
        (
            "r0 = *(u8 *)skb[0]",
            "instruction 0 (r0 = *(u8 *)skb[0]): it loads from a packet, but the run has none",
        ),
        (
            "r1 = addr_space_cast(r1, 0, 7)",
            "instruction 0 (r1 = addr_space_cast(r1, 0, 7)): \
             the cast from address space 7 to 0 is not supported",
        ),
        (
            ".8byte 0xff",
            "instruction 0 (.8byte 0x00000000000000ff): no instruction has this opcode",
        ),
    ] {
        assert_eq!(trap(source), expected);
    }
    let empty = CheckedProgram::new(Vec::new()).run(
        CheckedContext {
            memory: &mut Memory::new(),
            calls: &mut Calls::none(),
            packet: None,
        },
        Entry::default(),
        &Limits::default(),
    );
    let trap = empty.outcome.unwrap_err();
    assert_eq!((trap.at, trap.insn), (0, None));
    assert_eq!(
        trap.to_string(),
        "control leaves the program to instruction 0"
    );
}

#[test]
fn the_budget_is_exact() {
    let source = "r0 = 0; r0 += 1; if r0 != 10 goto -2; exit";
    let all = run(source);
    assert_eq!((all.outcome, all.executed), (Ok(10), 22));
    for instructions in 0..30 {
        let limits = Limits {
            instructions,
            ..Limits::default()
        };
        let finish = run_with(source, &limits, &mut ());
        assert_eq!(finish.executed, instructions.min(22));
        match finish.outcome {
            Ok(value) => assert!(value == 10 && instructions >= 22),
            Err(trap) => assert_eq!(trap.reason, Reason::InstructionLimit(instructions)),
        }
    }
}

#[test]
fn a_deadline_ends_an_endless_loop() {
    let deadline = Instant::now() + Duration::from_millis(500);
    let limits = Limits {
        instructions: u64::MAX,
        deadline: Some(deadline),
        ..Limits::default()
    };
    let finish = run_with("goto -1", &limits, &mut ());
    assert_eq!(
        finish.outcome.unwrap_err().reason,
        Reason::Deadline(deadline)
    );
    assert!(Instant::now() >= deadline);
    assert_eq!(finish.executed % DEADLINE_INTERVAL, 0);
    assert_ne!(finish.executed, 0);
}

#[test]
fn frames_are_zeroed_and_unmapped_on_return() {
    // Fills its frame, then calls a function whose frame must not show that.
    let source = "
        call f
        call g
        exit
    f:
        *(u64 *)(r10 - 8) = 5
        r0 = 0
        exit
    g:
        r0 = *(u64 *)(r10 - 8)
        exit
    ";
    let source = source
        .replace("call f", "call pc+2")
        .replace("call g", "call pc+4");
    assert_eq!(run(&source).outcome, Ok(0));
    for (frames, expected) in [(1, Err(())), (2, Ok(7)), (0, Err(())), (usize::MAX, Ok(7))] {
        let limits = Limits {
            frames,
            ..Limits::default()
        };
        let finish = run_with("call pc+1; exit; r0 = 7; exit", &limits, &mut ());
        assert_eq!(finish.outcome.map_err(|_| ()), expected, "{frames} frames");
    }
}

#[test]
fn helpers_reach_memory_and_the_ports() {
    assert_eq!(run("call 1000; exit").outcome, Ok((0..16).sum()));
    assert_eq!(
        run("r6 = r1; r2 = 3; call 1001; r0 = *(u32 *)(r6 + 0); exit").outcome,
        Ok(0x3ff_ffff)
    );
    assert_eq!(run("call 5; call 5; exit").outcome, Ok(2_000));
    assert_eq!(run("call 125; exit").outcome, Ok(1_000));
    assert_eq!(run("call 7; exit"), run("call 7; exit"));
    assert_ne!(
        run("call 7; exit").outcome,
        run("call 7; call 7; exit").outcome
    );
}

#[test]
fn an_observer_sees_every_instruction_and_can_stop() {
    let mut seen = Vec::new();
    let mut observer = |moment: &Moment<'_, '_>| {
        seen.push((moment.at, moment.depth, moment.registers[0]));
        match moment.at {
            5 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let source = "r0 = 1; call pc+2; r0 += 1; exit; r0 = 2; r0 = 3; exit";
    let finish = run_with(source, &Limits::default(), &mut observer);
    assert_eq!(seen, [(0, 0, 0), (1, 0, 1), (4, 1, 1), (5, 1, 2)]);
    let trap = finish.outcome.unwrap_err();
    assert_eq!(
        (trap.at, trap.reason, finish.executed),
        (5, Reason::Stopped, 3)
    );
}

#[test]
fn an_observer_reads_memory() {
    let mut at_end = None;
    let mut observer = |moment: &Moment<'_, '_>| {
        if moment.insn() == Insn::Exit {
            let end = moment.registers[10];
            at_end = moment.memory.read(end - 8, 8).ok().map(<[u8]>::to_vec);
        }
        ControlFlow::Continue(())
    };
    run_with(
        "*(u64 *)(r10 - 8) = 258; exit",
        &Limits::default(),
        &mut observer,
    );
    assert_eq!(at_end, Some(vec![2, 1, 0, 0, 0, 0, 0, 0]));
}

#[test]
fn addresses_depend_on_the_order_of_regions() {
    let (mut large, mut small) = (vec![0; 0x10_0000], [0; 3]);
    let mut memory = Memory::new();
    let ids = [
        memory.add("large", &mut large).unwrap(),
        memory.add("small", &mut small).unwrap(),
        memory.add_read_only("none", &[]).unwrap(),
    ];
    let addresses = ids.map(|id| memory.address(id));
    assert_eq!(
        addresses,
        [0, 0x20_0000, 0x30_0000].map(|at| 0xffff_8881_1035_d940 + at)
    );
    assert!(memory.read(addresses[2], 0).is_ok());
    assert!(memory.read(addresses[2], 1).is_err());
    assert!(memory.write(addresses[1], 3).is_ok());
    assert!(memory.write(addresses[1], u64::MAX).is_err());
    let names: Vec<String> = memory.regions().map(|region| region.name).collect();
    assert_eq!(names, ["large", "small", "none"]);
}

#[test]
fn the_address_space_can_be_full() {
    let page = vec![0; 0x1000_0000];
    let mut memory = Memory::new();
    let mut added = 0;
    let full = loop {
        match memory.add_read_only("page", &page) {
            Ok(id) => {
                added += 1;
                let start = memory.address(id);
                let end = start + page.len() as u64;
                assert_eq!(start >> 32, end >> 32, "contexts hold the lower half");
            }
            Err(full) => break full,
        }
    };
    assert_eq!((added, full), (13, NoRoom { len: page.len() }));
}

#[test]
fn memory_is_kept_between_runs() {
    let mut bytes = [0; 8];
    let mut memory = Memory::new();
    let region = memory.add("bytes", &mut bytes).unwrap();
    let entry = Entry {
        arguments: [memory.address(region), 8, 0, 0, 0],
    };
    let counter = program("r0 = *(u64 *)(r1 + 0); r0 += 1; *(u64 *)(r1 + 0) = r0; exit");
    for expected in 1..=3 {
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut Calls::none(),
            packet: None,
        };
        let finish = counter.run(cx, entry, &Limits::default());
        assert_eq!(finish.outcome, Ok(expected));
    }
    drop(memory);
    assert_eq!(bytes, [3, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn no_program_panics() {
    const EXIT: RawInsn = RawInsn::from_le_bytes([0x95, 0, 0, 0, 0, 0, 0, 0]);
    let mut random = SplitMix::new(9669);
    let data: Vec<u8> = (0..64).collect();
    let codes: Vec<u8> = isa::ebpf::table::ROWS.iter().map(|row| row.code).collect();
    let mut returned = 0;
    for _ in 0..30_000 {
        let slots: Vec<RawInsn> = (0..12)
            .map(|_| {
                let bits = random.next_u64();
                let mut raw = RawInsn::from_le_bytes(bits.to_le_bytes());
                // Mostly instructions, mostly small numbers.
                raw.code = codes[raw.code as usize % codes.len()];
                raw.regs = (raw.regs & 0x77) + if bits >> 63 == 0 { 0 } else { 3 };
                if bits >> 60 & 1 == 0 {
                    raw.off %= 8;
                    raw.imm %= 16;
                }
                if bits >> 58 & 3 == 0 {
                    raw.off = 0;
                    raw.regs &= 0x0f;
                }
                if bits >> 56 & 3 == 0 {
                    raw = EXIT;
                }
                raw
            })
            .collect();
        let mut bytes = [0; 64];
        let mut memory = Memory::new();
        let region = memory.add("bytes", &mut bytes).unwrap();
        let arguments = [memory.address(region), 64, 1 << 32, u64::MAX, 7];
        let mut calls = Calls::basic(SplitMix::new(0), || 0);
        let packet = Packet::whole(&data, &Metadata::UNKNOWN);
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: Some(&packet),
        };
        let limits = Limits {
            instructions: 1_000,
            indirect_jumps: true,
            ..Limits::default()
        };
        let finish = CheckedProgram::new(decode(&slots)).run(cx, Entry { arguments }, &limits);
        assert!(finish.executed <= 1_000);
        match finish.outcome {
            Ok(_) => returned += 1,
            Err(trap) => assert!(!trap.to_string().is_empty()),
        }
    }
    assert!(returned > 100, "{returned}");
}

/// A map whose keys, of a byte, are the numbers of its values.
#[derive(Debug)]
struct Values {
    cells: vm::Cells,
    /// First cell and bytes of each value.
    places: Vec<(usize, usize)>,
    has_direct_value: bool,
}

impl vm::MapOperations for Values {
    fn lookup<'g>(&'g self, _: &'g vm::RunGuard, _: u32, key: &[u8]) -> Option<vm::CellSlice<'g>> {
        let (first, len) = *self.places.get(usize::from(key[0]))?;
        Some(self.cells.slice(first, len))
    }

    fn direct_value(&self) -> Option<vm::CellSlice<'_>> {
        let (first, len) = self.places[0];
        self.has_direct_value.then(|| self.cells.slice(first, len))
    }

    fn delete(&self, _: u32, _: &[u8]) -> Result<(), spec::Errno> {
        Err(spec::Errno::EINVAL)
    }
}

#[test]
fn values_of_maps_are_regions_of_their_own() {
    let (cells, guard) = (vm::Cells::zeroed(4).unwrap(), vm::RunGuard::new());
    let map = |places: &[(usize, usize)], has_direct_value| {
        let attributes = vm::MapAttributes {
            kind: spec::maps::MapKind::Hash,
            max_entries: 2,
            key_size: 1,
            value_size: places[0].1,
            flags: spec::maps::MapFlags::default(),
            copies: 1,
            timers: None,
            objects: None,
            charge: None,
        };
        let operations = Values {
            cells: cells.clone(),
            places: places.to_vec(),
            has_direct_value,
        };
        vm::MapHandle::new(attributes, Arc::new(operations))
    };
    let counts = map(&[(0, 12), (2, 12)], true);
    let fixed = map(&[(2, 8)], false);
    let mut memory = Memory::new();
    for (name, map, permission) in [
        ("counts", &counts, Permission::ReadWrite),
        ("fixed", &fixed, Permission::ReadOnly),
    ] {
        memory.add_map(name, map, &guard, permission).unwrap();
    }
    assert_eq!(memory.numbered_map_value(1, 0), None);
    let first = memory.numbered_map_value(0, 0).unwrap();
    let second = memory.map_value(0, cells.slice(2, 12)).unwrap();
    let fixed = memory.map_value(1, cells.slice(2, 8)).unwrap();
    assert_eq!(memory.map_value(0, cells.slice(0, 12)), Ok(first));
    let counts = memory.map_pointer(0).unwrap();
    for (key, value) in [(0, Ok(first)), (1, Ok(second)), (2, Ok(0))] {
        assert_eq!(
            vm::MemoryPort::lookup(&mut memory, counts, 0, &[key]),
            value
        );
    }
    assert!(vm::MemoryPort::lookup(&mut memory, first, 0, &[0]).is_err());
    assert_eq!(memory.numbered_map_value(0, 1), Some(second));
    assert_eq!(memory.numbered_map_value(0, 2), None);
    let pointer = memory.map_pointer(1).unwrap();
    assert_eq!(
        (memory.map_at(pointer), memory.map_at(first)),
        (Some(1), None)
    );
    let mut run = |body: &str, arguments: [u64; 5]| {
        // The value of map 0 at offset 4.
        let source = format!(".8byte 0x6218; .8byte 0x400000000; {body}; exit");
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut Calls::none(),
            packet: None,
        };
        let entry = Entry { arguments };
        let finish = program(&source).run(cx, entry, &Limits::default());
        finish.outcome.map_err(|trap| trap.reason.to_string())
    };
    let at = [second, fixed, pointer, 0, 0];
    assert_eq!(
        run("*(u64 *)(r2 + 0) = 258; r0 = *(u8 *)(r2 + 1)", at),
        Ok(1)
    );
    assert_eq!(
        run(
            "r3 = 5; lock *(u64 *)(r2 - 4) += r3; r0 = *(u32 *)(r2 - 4)",
            at
        ),
        Ok(5)
    );
    assert_eq!(run("r0 = *(u32 *)(r1 + 8)", at), Ok(0));
    let traps = [
        (
            "r0 = *(u64 *)(r1 + 8)",
            "it reads 8 bytes at 0xffff88a0125929c0, of which only 4 are in \
             `value 1 of map counts` (0xffff88a0125929b8 to 0xffff88a0125929c4)",
        ),
        (
            "r3 = 5; lock *(u64 *)(r2 + 0) += r3",
            "it updates 8 bytes at 0xffff88a0125729bc in `value 0 of map counts` \
             (0xffff88a0125729b8 to 0xffff88a0125729c4), which is not aligned to its size",
        ),
    ];
    for (body, text) in traps {
        assert_eq!(run(body, at), Err(text.to_owned()));
    }
    let at_fixed = [fixed; 5];
    assert!(
        run("*(u8 *)(r1 + 0) = 1", at_fixed)
            .unwrap_err()
            .contains("read-only")
    );
    assert!(run("r0 = *(u8 *)(r1 + 0)", [pointer; 5]).is_err());
    assert_eq!(cells.slice(0, 8).to_vec(), [5, 0, 0, 0, 2, 1, 0, 0]);
}

/// Calls of a function with the numbers from 0 on, until it returns another one.
struct Counting {
    function: u64,
    next: u64,
}

impl vm::Iteration<Memory<'_>> for Counting {
    fn next(
        &mut self,
        _: &mut Memory<'_>,
        returned: Option<u64>,
    ) -> Result<vm::IterationStep, CallFault> {
        if returned.is_some_and(|returned| returned != 0) {
            return Ok(vm::IterationStep::Return(self.next));
        }
        self.next += 1;
        Ok(vm::IterationStep::Call {
            function: self.function,
            arguments: [self.next - 1, 8, 0, 0, 0],
        })
    }
}

/// Runs a program with helper 1, which counts.
fn run_counting(source: &str, limits: &Limits) -> Result<u64, String> {
    let mut memory = Memory::new();
    let mut calls = Calls::none();
    calls.define(1, |[function, next, ..], memory| {
        let counting = Counting { function, next };
        vm::MemoryPort::begin(memory, Box::new(counting));
        Ok(0)
    });
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    let finish = program(source).run(cx, Entry::default(), limits);
    finish.outcome.map_err(|trap| trap.to_string())
}

#[test]
fn helpers_call_functions_of_the_program() {
    let limits = Limits {
        instructions: 1000,
        ..Limits::default()
    };
    let run = |source: &str| run_counting(source, &limits);
    let counts = "r6 = 5; r1 = func(f) ll; r2 = 3; call 1; r0 += r6; exit;
                  f: r6 = 70; r0 = 0; if r1 != 7 goto out; r0 = r2; out: exit";
    assert_eq!(run(counts), Ok(13));
    let nested = "r1 = func(f) ll; r2 = 0; call 1; exit;
                  f: r6 = r1; r1 = func(g) ll; r2 = r6; call 1; r0 -= 4; if r6 != 9 goto again;
                  exit; again: r0 = 0; exit;
                  g: r0 = r1; exit";
    assert_eq!(run(nested), Ok(10));
    for (source, message) in [
        (
            "r1 = 7; call 1; exit",
            "0x7 is not the address of a function",
        ),
        (
            "r1 = func(f) ll; call 1; exit; f: r0 = 0; exit",
            "1000 instructions",
        ),
        (
            "r1 = func(f) ll; call 1; exit; f: r1 = func(f) ll; call 1; exit",
            "8 stack frames",
        ),
        (
            "r1 = func(f) ll; call 1; exit; f: r0 = *(u8 *)(r1 + 0); exit",
            "null pointer",
        ),
    ] {
        let trap = run(source).unwrap_err();
        assert!(trap.contains(message), "{source}: {trap}");
    }
}

#[test]
fn probing_loads_get_0_where_no_memory_is() {
    let outcome = |address: &str, probing: &[usize]| {
        let source =
            format!("r1 = {address} ll\nr0 = 7\nr0 = *(u64 *)(r1 + 8)\nr0 = *(s8 *)(r1 + 8)\nexit");
        let program = program(&source).with_probing_loads(probing.to_vec());
        let mut memory = Memory::new();
        let mut calls = Calls::basic(SplitMix::new(1), || 0);
        let cx = CheckedContext {
            memory: &mut memory,
            calls: &mut calls,
            packet: None,
        };
        let arguments = [0; 5];
        let finish = program.run(cx, Entry { arguments }, &Limits::default());
        finish.outcome.map_err(|trap| trap.at)
    };
    for address in [
        "0",
        "0x2000",
        "0x7f0020000000",
        "0xffff888110000000",
        "0x8000000000000000",
        "-8",
    ] {
        assert_eq!(outcome(address, &[3, 4]), Ok(0), "{address}");
        assert_eq!(outcome(address, &[3]), Err(4), "{address}");
        assert_eq!(outcome(address, &[]), Err(3), "{address}");
    }
}
