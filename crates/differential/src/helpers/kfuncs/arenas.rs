//! Programs that allocate, reserve and free pages of an arena and access them: by pointers
//! inside and outside it, with and without pages, in every size, atomically, through the stack
//! and from another function.
//!
//! What would damage the running kernel is not made: pages are freed only at addresses whose
//! lower half is in the arena (Linux 6.18 enters others into its list of free pages), on no node
//! but the first, and atomic accesses are aligned, as the processor may report split ones.

use program::MapParams;
use spec::maps::{MapFlags, MapKind};
use spec::programs::ProgramType;

use super::call;
use crate::helpers::Family;
use crate::helpers::case::{Case, MAP, Setup, VALUE};
use testkit::ebpf::Choices;

pub(super) const FAMILIES: &[Family] = &[Family::new("pages of arenas", arenas)];

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Addresses of arenas in user space: an ordinary one, one whose first page has the 32-bit
/// address 0, one that ends where 32 bits end.
const STARTS: [u64; 3] = [0x7f00_0001_0000, 1 << 44, 0x7ffe_ffff_0000];

/// Operations on two registers.
const OPERATIONS: [&str; 7] = ["+", "-", "*", "|", "&", "^", "<<"];

/// Places on the stack: four addresses in user space, and a pointer.
const ADDRESSES: u32 = 4;
const SPILLED: u32 = 40;

/// Writes statements. `r6` gathers results, `r7` and `r9` are numbers, `r8` is a pointer into
/// the arena.
struct Writer<'c, 'b> {
    choices: &'c mut Choices<'b>,
    start: u64,
    pages: u64,
    text: String,
    labels: u32,
}

fn arenas(choices: &mut Choices<'_>) -> Case {
    let start = choices.pick(&STARTS);
    let most = (1 << 32) - (start & 0xffff_ffff);
    let pages = u64::from(choices.below(16) + 1).min(most / PAGE);
    let conversion = choices.pick(&[0, 0, MapFlags::NO_USER_CONV.0]);
    let faults = choices.pick(&[0, MapFlags::SEGV_ON_FAULT.0]);
    let params = MapParams {
        map_type: MapKind::Arena.number(),
        max_entries: pages as u32,
        flags: MapFlags(MapFlags::MMAPABLE.0 | conversion | faults),
        extra: start,
        ..MapParams::default()
    };
    let mut writer = Writer {
        choices,
        start,
        pages,
        text: String::new(),
        labels: 0,
    };
    writer.program();
    let text = writer.text;
    Case::new(ProgramType::Syscall, text).with_map(Setup(params, None))
}

impl Writer<'_, '_> {
    fn program(&mut self) {
        // The offset is that of the first byte; the address is known.
        self.line(&format!("r8 = {VALUE:#x} ll"));
        self.line("r6 = r8\nr7 = 0\nr8 = addr_space_cast(r8, 0, 1)");
        let number = self.choices.value();
        self.line(&format!("r9 = {number:#x} ll"));
        for place in 1..=ADDRESSES {
            self.line(&format!("*(u64 *)(r10 - {}) = r6", 8 * place));
        }
        self.line(&format!("*(u64 *)(r10 - {SPILLED}) = r8"));
        self.allocate();
        for _ in 0..self.choices.between(4, 40) {
            self.statement();
        }
        // What the pages hold in the end.
        for page in 0..self.pages {
            let offset = self.choices.below(512) * 8;
            let address = self.start + page * PAGE + u64::from(offset);
            self.line(&format!(
                "r8 = {address:#x} ll\nr8 = addr_space_cast(r8, 0, 1)\nr7 = *(u64 *)(r8 + 0)"
            ));
            self.gather("r7");
        }
        self.line("r0 = r6\nr1 = r0\nr1 >>= 32\nr0 ^= r1\nexit");
        if self.text.contains("call change") {
            self.line(
                "change: r0 = *(u32 *)(r1 + 4)\nr1 += 8\n*(u64 *)(r1 + 0) = r2\n\
                 r3 = *(u16 *)(r1 + 3)\nr0 += r3\nexit",
            );
        }
        if self.text.contains("call follow") {
            self.line("follow: r0 = r1\nr0 += r2\nexit");
        }
    }

    fn statement(&mut self) {
        match self.choices.below(20) {
            0 | 1 => self.allocate(),
            2 => self.free(),
            3 => self.reserve(),
            4..=6 => self.point(),
            7 => self.compute(),
            8..=10 => self.load(),
            11..=13 => self.store(),
            14 | 15 => self.atomic(),
            16 => self.convert(),
            17 => self.compare(),
            18 => self.spill(),
            _ => self.call_function(),
        }
    }

    fn line(&mut self, line: &str) {
        self.text += line;
        self.text.push('\n');
    }

    /// Adds a register to the result.
    fn gather(&mut self, register: &str) {
        self.line(&format!("r6 *= 31\nr6 += {register}"));
    }

    fn place(&mut self) -> u32 {
        8 * (self.choices.below(ADDRESSES) + 1)
    }

    /// A number of pages, mostly of which the arena has enough.
    fn count(&mut self) -> u64 {
        let most = self.pages as u32 + 2;
        match self.choices.below(8) {
            0..=3 => 1,
            4..=6 => self.choices.below(most).into(),
            _ => most.into(),
        }
    }

    /// An address in the arena.
    fn inside(&mut self) -> u64 {
        let page = u64::from(self.choices.below(self.pages as u32));
        let offset = match self.choices.below(4) {
            0 => self.choices.below(PAGE as u32).into(),
            1 => PAGE - 1 - u64::from(self.choices.below(8)),
            _ => u64::from(self.choices.below(PAGE as u32 / 8)) * 8,
        };
        self.start + page * PAGE + offset
    }

    /// The address of a page in the arena, or near it if that is asked for.
    fn page(&mut self, is_inside: bool) -> u64 {
        let page = u64::from(self.choices.below(self.pages as u32));
        let address = self.start + page * PAGE;
        match self.choices.below(12) {
            0 => address + 1 + u64::from(self.choices.below(4095)),
            1 if !is_inside => self.start.wrapping_sub(PAGE),
            2 if !is_inside => self.start + self.pages * PAGE,
            3 => address & 0xffff_ffff,
            4 => address ^ (self.choices.bits() << 32),
            _ => address,
        }
    }

    fn allocate(&mut self) {
        let address = match self.choices.below(3) {
            0 => self.page(false),
            _ => 0,
        };
        let count = match self.choices.below(12) {
            0 => 0xffff_ffff,
            _ => self.count(),
        };
        let node = self.choices.pick(&["-1", "-1", "0"]);
        let flags = u32::from(self.choices.one_in(12));
        let place = self.place();
        self.line(&format!(
            "r1 = {MAP:#x} ll\nr2 = {address:#x} ll\nw3 = {}\nr4 = {node}\nr5 = {flags}\n{}\
             *(u64 *)(r10 - {place}) = r0",
            count as i32,
            call("bpf_arena_alloc_pages")
        ));
        self.gather("r0");
    }

    fn free(&mut self) {
        let count = self.count();
        match self.choices.below(2) {
            0 => {
                let place = self.place();
                self.line(&format!("r2 = *(u64 *)(r10 - {place})"));
            }
            _ => {
                let address = self.page(true);
                self.line(&format!("r2 = {address:#x} ll"));
            }
        }
        self.line(&format!(
            "r1 = {MAP:#x} ll\nr3 = {count}\n{}",
            call("bpf_arena_free_pages")
        ));
    }

    fn reserve(&mut self) {
        let (address, count) = (self.page(false), self.count());
        self.line(&format!(
            "r1 = {MAP:#x} ll\nr2 = {address:#x} ll\nr3 = {count}\n{}",
            call("bpf_arena_reserve_pages")
        ));
        self.gather("r0");
    }

    /// Makes a pointer of an address in user space.
    fn point(&mut self) {
        match self.choices.below(4) {
            0 => {
                let place = self.place();
                self.line(&format!("r8 = *(u64 *)(r10 - {place})"));
            }
            1 => {
                let address = match self.choices.below(4) {
                    0 => self.choices.value(),
                    1 => self.start.wrapping_sub(self.choices.below(16).into()),
                    2 => {
                        (self.start + self.pages * PAGE).wrapping_sub(self.choices.below(16).into())
                    }
                    _ => 0,
                };
                self.line(&format!("r8 = {address:#x} ll"));
            }
            _ => {
                let address = self.inside();
                self.line(&format!("r8 = {address:#x} ll"));
            }
        }
        self.line("r8 = addr_space_cast(r8, 0, 1)");
    }

    fn compute(&mut self) {
        let number = self.choices.immediate();
        let line = match self.choices.below(14) {
            0 => "r8 += r9".to_owned(),
            1 => "r8 -= r9".to_owned(),
            2 => format!("r8 -= {number}"),
            3 => format!("w8 += {number}"),
            4 => format!("r8 &= {number}"),
            5 => format!("r8 ^= {number}"),
            6 => format!("r8 |= {}", self.choices.below(1 << 13)),
            7 => format!("r8 >>= {}", self.choices.below(4)),
            8 => format!("r8 *= {number}"),
            9 => {
                let (number, op) = (self.choices.value(), self.choices.pick(&OPERATIONS));
                format!("r7 = {number:#x} ll\nr7 {op}= r8\nr8 = r7\nr7 = 0")
            }
            10 => {
                let op = self.choices.pick(&OPERATIONS);
                format!("r7 = r8\nr7 {op}= r8\nr8 = r7\nr7 = 0")
            }
            _ => format!("r8 += {}", self.choices.between(-64, 4200)),
        };
        self.line(&line);
    }

    /// An offset of an access.
    fn offset(&mut self) -> String {
        let offset = match self.choices.below(6) {
            0 => self.choices.pick(&[i16::MIN, i16::MAX, -4096, 4096, -1]),
            1 => self.choices.bits() as i16,
            _ => self.choices.between(0, 16) as i16,
        };
        match offset {
            0.. => format!("+ {offset}"),
            _ => format!("- {}", offset.unsigned_abs()),
        }
    }

    fn load(&mut self) {
        let kind = self
            .choices
            .pick(&["u8", "u16", "u32", "u64", "u64", "s8", "s16", "s32"]);
        let offset = self.offset();
        self.line(&format!("r7 = {}\nr7 = *({kind} *)(r8 {offset})", 77));
        self.gather("r7");
    }

    fn store(&mut self) {
        let size = self.choices.pick(&["u8", "u16", "u32", "u64"]);
        let offset = self.offset();
        let what = match self.choices.below(3) {
            0 => self.choices.immediate().to_string(),
            1 => "r6".to_owned(),
            _ => "r9".to_owned(),
        };
        self.line(&format!("*({size} *)(r8 {offset}) = {what}"));
    }

    fn atomic(&mut self) {
        let address = self.inside() & !7;
        let address = match self.choices.below(6) {
            0 => 0,
            _ => address,
        };
        self.line(&format!(
            "r8 = {address:#x} ll\nr8 = addr_space_cast(r8, 0, 1)"
        ));
        let (size, wide) = self.choices.pick(&[("u32", false), ("u64", true)]);
        if self.choices.one_in(3) {
            // An exchange may succeed, also of half of the number that it expects.
            self.line("*(u64 *)(r8 + 0) = r6");
        }
        let register = |number: u32| match wide {
            true => format!("r{number}"),
            false => format!("w{number}"),
        };
        let (r0, r9) = (register(0), register(9));
        let suffix = if wide { "64" } else { "32_32" };
        let line = match self.choices.below(10) {
            0 => format!("lock *({size} *)(r8 + 0) += {r9}"),
            1 => format!("lock *({size} *)(r8 + 0) |= {r9}"),
            2 => format!("lock *({size} *)(r8 + 0) &= {r9}"),
            3 => format!("lock *({size} *)(r8 + 0) ^= {r9}"),
            4 => format!("{r9} = atomic_fetch_add(({size} *)(r8 + 0), {r9})"),
            5 if wide => format!("{r9} = xchg_{suffix}(r8 + 0, {r9})"),
            5 => format!("{r9} = xchg{suffix}(r8 + 0, {r9})"),
            6 | 7 => {
                let expected = self.choices.pick(&["0", "r9", "r6"]);
                let exchange = match wide {
                    true => "cmpxchg_64",
                    false => "cmpxchg32_32",
                };
                format!("r0 = {expected}\n{r0} = {exchange}(r8 + 0, {r0}, {r9})\nr9 += r0")
            }
            8 => format!("{r9} = load_acquire(({size} *)(r8 + 0))"),
            _ => format!("store_release(({size} *)(r8 + 0), {r9})"),
        };
        self.line(&line);
        self.gather("r9");
    }

    /// Makes an address in user space of the pointer.
    fn convert(&mut self) {
        let place = self.place();
        self.line("r7 = r8\nr7 = addr_space_cast(r7, 1, 0)");
        self.gather("r7");
        // Only addresses in the arena may be freed.
        let label = self.labels;
        self.labels += 1;
        let (first, last) = (self.start as u32, self.pages * PAGE - 1);
        self.line(&format!(
            "r1 = r7\nw1 -= {}\nr2 = {last:#x} ll\nif r1 > r2 goto other{label}\n\
             *(u64 *)(r10 - {place}) = r7\nother{label}: r7 = 0",
            first as i32
        ));
    }

    fn compare(&mut self) {
        let label = self.labels;
        self.labels += 1;
        let condition = match self.choices.below(4) {
            0 => "r8 == 0".to_owned(),
            1 => "r8 > r9".to_owned(),
            2 => format!("r8 s< {}", self.choices.immediate()),
            _ => format!("w8 >= {}", self.choices.immediate()),
        };
        self.line(&format!(
            "if {condition} goto same{label}\nr6 += 1\nsame{label}: r7 = 0"
        ));
    }

    fn spill(&mut self) {
        match self.choices.below(2) {
            0 => self.line(&format!("*(u64 *)(r10 - {SPILLED}) = r8")),
            _ => self.line(&format!("r8 = *(u64 *)(r10 - {SPILLED})")),
        }
    }

    fn call_function(&mut self) {
        match self.choices.below(2) {
            0 => {
                self.line("r1 = r8\nr2 = r9\ncall change");
                self.gather("r0");
            }
            _ => {
                let number = self.choices.immediate();
                self.line(&format!("r1 = r8\nr2 = {number}\ncall follow\nr8 = r0"));
            }
        }
    }
}
