//! The cost of the designs of a tail call, as chains of hand-written programs: `cargo test -p
//! beebox-jit --release --test it tail_call_cost:: -- --nocapture`. The figures are in
//! docs/performance.md, the choice is in docs/tail-calls.md.

#![cfg(target_arch = "x86_64")]

use std::mem;
use std::time::Instant;

use beebox_jit::memory::{Image, Pool};
use spec::{Random, SplitMix};

/// Programs of a chain: as many as a run may enter.
const PROGRAMS: usize = 34;
/// Bytes of a program, which begin at multiples of that.
const STRIDE: usize = 128;
/// Chains of one timing, and timings, of which the shortest counts.
const CHAINS: u32 = 2_000;
const TIMINGS: u32 = 200;

/// A design of the tail call from one program to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Design {
    /// Patched code: a skip that is removed, the unwinding, a direct jump.
    PatchedParts,
    /// Patched code: one aligned jump, to a stub that unwinds and jumps to the target.
    PatchPoint,
    /// A jump through a slot whose address is in the code.
    DataSlot,
    /// The same through a table and an index, with the checks of the index.
    Table,
    /// A table, and a jump by `ret` that does not use the branch predictor.
    Retpoline,
}

const DESIGNS: [Design; 5] = [
    Design::PatchedParts,
    Design::PatchPoint,
    Design::DataSlot,
    Design::Table,
    Design::Retpoline,
];

/// Writes code at an address.
struct Code<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl Code<'_> {
    fn put(&mut self, bytes: &[u8]) {
        self.out[self.at..self.at + bytes.len()].copy_from_slice(bytes);
        self.at += bytes.len();
    }

    /// `jmp` to an offset in the image.
    fn jump(&mut self, target: usize) {
        let distance = target as i64 - (self.at as i64 + 5);
        self.put(&[0xe9]);
        self.put(&(distance as i32).to_le_bytes());
    }
}

/// What runs read and write: the count, then the table with its number of entries.
#[repr(C)]
struct Memory {
    count: u64,
    entries: u64,
    slots: [u64; PROGRAMS],
}

/// A chain of programs, each of which saves a register, counts and goes on to the next one.
/// `rdi` is the memory.
fn chain(pool: &Pool, design: Design, memory: &mut Memory) -> Image {
    let table = (&raw const memory.entries).expose_provenance() as u64;
    let first_slot = (&raw const memory.slots).expose_provenance() as u64;
    let image = pool.install(PROGRAMS * STRIDE, STRIDE, |out, start| {
        for program in 0..PROGRAMS {
            let begin = program * STRIDE;
            let next = begin + STRIDE;
            let mut code = Code { out, at: begin };
            code.put(&[0x53]); // push rbx
            if program + 1 < PROGRAMS {
                code.put(&[0x83, 0x3f, 33]); // cmp dword [rdi], 33
                let falls_through = next - 16;
                let short = |at: usize| (falls_through - at - 2) as u8;
                let distance = short(code.at);
                code.put(&[0x73, distance]); // jae falls_through
                memory.slots[program] = start + next as u64;
                write_call(&mut code, design, program, next, (table, first_slot));
                code.at = falls_through;
            }
            code.put(&[0x5b]); // pop rbx
            code.put(&[0x8b, 0x07, 0xc3]); // mov eax, [rdi]; ret
        }
    });
    image.expect("executable memory")
}

fn write_call(
    code: &mut Code<'_>,
    design: Design,
    program: usize,
    next: usize,
    (table, first_slot): (u64, u64),
) {
    const COUNT: [u8; 3] = [0x83, 0x07, 1]; // add dword [rdi], 1
    const UNWIND: [u8; 1] = [0x5b]; // pop rbx
    let short = |at: usize| (next - 16 - at - 2) as u8;
    match design {
        Design::PatchedParts => {
            code.put(&COUNT);
            code.put(&[0x66, 0x90]); // the skip, removed
            code.put(&UNWIND);
            code.jump(next);
        }
        Design::PatchPoint => {
            code.put(&COUNT);
            while !code.at.is_multiple_of(8) {
                code.put(&[0x90]);
            }
            let stub = next - 48;
            code.jump(stub);
            code.at = stub;
            code.put(&UNWIND);
            code.jump(next);
        }
        Design::DataSlot => {
            code.put(&[0x49, 0xbb]); // mov r11, slot
            code.put(&(first_slot + 8 * program as u64).to_le_bytes());
            code.put(&[0x4d, 0x8b, 0x1b]); // mov r11, [r11]
            code.put(&[0x4d, 0x85, 0xdb]); // test r11, r11
            let distance = short(code.at);
            code.put(&[0x74, distance]); // je falls_through
            code.put(&COUNT);
            code.put(&UNWIND);
            code.put(&[0x41, 0xff, 0xe3]); // jmp r11
        }
        Design::Table | Design::Retpoline => {
            code.put(&[0x48, 0xbe]); // mov rsi, table
            code.put(&table.to_le_bytes());
            code.put(&[0xba]); // mov edx, index
            code.put(&(program as u32).to_le_bytes());
            code.put(&[0x3b, 0x16]); // cmp edx, [rsi]
            let distance = short(code.at);
            code.put(&[0x73, distance]); // jae falls_through
            code.put(&[0x89, 0xd2]); // mov edx, edx
            code.put(&[0x4c, 0x8b, 0x5c, 0xd6, 0x08]); // mov r11, [rsi + 8 * rdx + 8]
            code.put(&[0x4d, 0x85, 0xdb]); // test r11, r11
            let distance = short(code.at);
            code.put(&[0x74, distance]); // je falls_through
            code.put(&COUNT);
            code.put(&UNWIND);
            match design {
                Design::Retpoline => {
                    code.put(&[0xe8, 7, 0, 0, 0]); // call set
                    code.put(&[0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9]); // pause; lfence; loop
                    code.put(&[0x4c, 0x89, 0x1c, 0x24, 0xc3]); // set: mov [rsp], r11; ret
                }
                _ => code.put(&[0x41, 0xff, 0xe3]), // jmp r11
            }
        }
    }
}

/// A chain with its memory.
struct Chain {
    image: Image,
    memory: Box<Memory>,
}

impl Chain {
    fn new(pool: &Pool, design: Design) -> Chain {
        let mut memory = Box::new(Memory {
            count: 0,
            entries: PROGRAMS as u64,
            slots: [0; PROGRAMS],
        });
        let image = chain(pool, design, &mut memory);
        Chain { image, memory }
    }

    /// Runs it; the number of tail calls that it made.
    fn run(&mut self) -> u32 {
        // SAFETY: the code is a function that accesses the memory it is handed, and the
        // table, which is in it.
        let run: unsafe extern "C" fn(*mut Memory) -> u32 =
            unsafe { mem::transmute(self.image.address()) };
        self.memory.count = 0;
        // SAFETY: as above.
        unsafe { run(&raw mut *self.memory) }
    }
}

/// Nanoseconds for a tail call, with so many chains in an order that changes each time: the
/// more chains, the fewer targets the processor remembers.
fn cost(pool: &Pool, design: Design, chains: usize, timings: u32) -> f64 {
    let mut all: Vec<Chain> = (0..chains).map(|_| Chain::new(pool, design)).collect();
    let mut order: Vec<usize> = (0..chains).collect();
    let mut random = SplitMix::new(9);
    let rounds = CHAINS.div_ceil(chains as u32);
    let mut best = f64::INFINITY;
    for _ in 0..timings {
        for at in (1..chains).rev() {
            order.swap(at, random.next_u32() as usize % (at + 1));
        }
        let began = Instant::now();
        for _ in 0..rounds {
            for at in &order {
                let made = all[*at].run();
                assert_eq!(made as usize, PROGRAMS - 1, "{design:?}");
            }
        }
        best = best.min(began.elapsed().as_nanos() as f64);
    }
    best / (f64::from(rounds) * (chains * (PROGRAMS - 1)) as f64)
}

/// Chains that are timed together.
const TOGETHER: [usize; 3] = [1, 64, 1024];

#[test]
fn designs_of_a_tail_call_reach_the_end_of_the_chain() {
    println!("ns for a tail call, of {TOGETHER:?} chains in turn");
    for design in DESIGNS {
        let costs = TOGETHER.map(|chains| {
            let pool = Pool::new();
            format!("{:.2}", cost(&pool, design, chains, TIMINGS))
        });
        println!("{design:?}: {}", costs.join(", "));
    }
}
