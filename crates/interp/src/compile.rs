//! From a lowered program to operations, and running them.

use isa::ebpf::{Callee, Imm64, Insn, Operand, Reg};
use lower::chains::{Chain, Chains, Link, Test};
use lower::jumps::{Arrivals, jump_target};
use lower::{Evidence, Lowered, PacketRules};
use packet::{Metadata, Packet};
use spec::context::{LEN, SECCOMP_DATA_SIZE};
use spec::{Random, SplitMix};
use vm::{Machine, Outcome, Surroundings, find_call};

use crate::fuse;
use crate::op::{self, Op};
use crate::ops::branch::Table;
use crate::ops::linked::{self, Kind};
use crate::ops::packet::Load;
use crate::ops::{alu, branch, control, memory};

/// A program in the interpreter's form.
pub struct Code {
    ops: Box<[Op]>,
    /// Owned here because operations hold their addresses.
    tables: Box<[Table]>,
    evidence: Evidence,
    rules: PacketRules,
    /// Whether it reads any field of the context but the length.
    reads_metadata: bool,
}

/// An instruction that the interpreter does not perform yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// Where it stands.
    pub slot: usize,
    /// What it is.
    pub insn: Insn,
}

impl Code {
    /// Compiles a program: one pass, linear in its length.
    pub fn compile(program: &Lowered) -> Result<Code, Unsupported> {
        Code::build(program.insns(), program.packet_rules(), program.evidence())
    }

    /// Compiles a program of a test that vouches for it.
    #[cfg(test)]
    pub(crate) fn compile_trusted(insns: &[Insn]) -> Result<Code, Unsupported> {
        Code::build(
            insns,
            PacketRules::Kernel,
            Evidence::Classic(classic::Rules::Socket),
        )
    }

    fn build(insns: &[Insn], rules: PacketRules, evidence: Evidence) -> Result<Code, Unsupported> {
        let mut builder = Builder::new(insns, rules);
        builder.build()?;
        let (ops, tables) = builder.finish();
        Ok(Code {
            reads_metadata: reads_metadata(insns),
            evidence,
            rules,
            ops,
            tables,
        })
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.ops.len()
    }

    /// Never: a program has at least one instruction.
    pub fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// How many comparison chains became table look-ups.
    pub fn tables(&self) -> usize {
        self.tables.len()
    }

    /// Runs a packet filter. `budget` bounds how many backward jumps it takes.
    ///
    /// # Panics
    /// If the program is a seccomp filter.
    #[inline(always)]
    pub fn run_packet(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        assert!(!self.is_seccomp(), "a seccomp filter runs on system calls");
        if self.reads_metadata {
            self.run_described(machine, packet, random, budget)
        } else {
            self.run_plain(machine, packet, random, budget)
        }
    }

    /// Apart, so that the many programs that read no metadata do not save
    /// registers for a call that they do not make.
    #[inline(never)]
    fn run_described(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        machine.skb.describe_metadata(packet);
        self.run_plain(machine, packet, random, budget)
    }

    #[inline(always)]
    fn run_plain(
        &self,
        machine: &mut Machine,
        packet: &Packet<'_>,
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        let data = packet.data();
        let len = match self.rules {
            PacketRules::Capture => packet.wire_len(),
            // Linux knows one length.
            PacketRules::Kernel => data.len() as u32,
        };
        machine.skb.set(LEN, len);
        let mut world = Surroundings { packet, random };
        let m = machine.enter();
        // SAFETY: `m` is unique for this run; the program is a packet filter, so
        // its evidence allows exactly the context that `r1` points to.
        unsafe {
            let context = (&raw mut (*m).skb).expose_provenance() as u64;
            self.run(m, context, data, &mut world, budget)
        }
    }

    /// Runs a seccomp filter on `struct seccomp_data` in host order.
    ///
    /// # Panics
    /// If the program is a packet filter.
    #[inline]
    pub fn run_seccomp(&self, machine: &mut Machine, data: &[u8; SECCOMP_DATA_SIZE]) -> Outcome {
        assert!(self.is_seccomp(), "a packet filter runs on packets");
        let packet = Packet::whole(&[], &Metadata::UNKNOWN);
        let mut world = Surroundings {
            packet: &packet,
            random: &mut SplitMix::new(0),
        };
        let m = machine.enter();
        let context = data.as_ptr().expose_provenance() as u64;
        // SAFETY: `m` is unique for this run; the program is a seccomp filter,
        // whose checker bounds every load to the 64 bytes at `r1`.
        unsafe { self.run(m, context, &[], &mut world, 0) }
    }

    /// Runs a trusted program on memory: `r1` is its address, `r2` its length.
    /// Such a program ends by itself. It sees an empty packet.
    ///
    /// # Panics
    /// If the program is a classic filter.
    #[inline]
    pub fn run_memory(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
    ) -> Outcome {
        self.run_memory_within(machine, memory, random, u64::MAX)
    }

    /// As [`Code::run_memory`], for at most `budget` backward jumps.
    #[inline]
    pub fn run_memory_within(
        &self,
        machine: &mut Machine,
        memory: &mut [u8],
        random: &mut dyn Random,
        budget: u64,
    ) -> Outcome {
        let trusted = matches!(self.evidence, Evidence::Trusted);
        assert!(trusted, "a classic filter runs on packets or system calls");
        let packet = Packet::whole(&[], &Metadata::UNKNOWN);
        let mut world = Surroundings {
            packet: &packet,
            random,
        };
        let m = machine.enter();
        let address = memory.as_mut_ptr().expose_provenance() as u64;
        // SAFETY: `m` is unique for this run, as is the memory, and the host
        // vouched that the program accesses nothing else.
        unsafe {
            (*m).regs[Reg::R2.index()] = memory.len() as u64;
            self.run(m, address, &[], &mut world, budget)
        }
    }

    fn is_seccomp(&self) -> bool {
        matches!(self.evidence, Evidence::Classic(classic::Rules::Seccomp))
    }

    /// # Safety
    /// `m` comes from `Machine::enter`; `context` points to what the program's
    /// evidence says `r1` points to.
    #[inline(always)]
    pub(crate) unsafe fn run(
        &self,
        m: *mut Machine,
        context: u64,
        data: &[u8],
        world: &mut Surroundings<'_>,
        budget: u64,
    ) -> Outcome {
        let world: *mut Surroundings<'_> = world;
        // SAFETY: the operations were made from a lowered program, whose
        // evidence upholds what they do; the rest is passed on to the caller.
        // The lifetime of the surroundings is only lengthened in name: no
        // operation keeps the pointer.
        unsafe {
            (*m).budget = i64::try_from(budget).unwrap_or(i64::MAX);
            (*m).regs[Reg::R1.index()] = context;
            (*m).regs[Reg::R6.index()] = context;
            let r0 = op::start(
                self.ops.as_ptr(),
                m,
                data.as_ptr(),
                data.len(),
                world.cast(),
            );
            if (*m).budget < 0 {
                Outcome::BudgetExhausted
            } else {
                Outcome::Returned(r0)
            }
        }
    }
}

/// Whether the program reads its context beyond the length. Any load through
/// another register than the frame pointer counts.
fn reads_metadata(insns: &[Insn]) -> bool {
    insns.iter().any(|insn| match *insn {
        Insn::Load { base, off, .. } => base != Reg::R10 && !(base == Reg::R6 && off == LEN.offset),
        _ => false,
    })
}

/// Where a target must be written once every slot has its operation.
enum Field {
    First,
    Second,
    /// Not a slot: the address of the table.
    Table,
    Case {
        table: usize,
        position: usize,
    },
    Default {
        table: usize,
    },
}

struct Patch {
    op: usize,
    field: Field,
    /// The slot that is meant; for `Field::Table` the table.
    target: usize,
}

struct Builder<'a> {
    insns: &'a [Insn],
    arrivals: Arrivals,
    chains: Chains,
    rules: PacketRules,
    ops: Vec<Op>,
    /// What each operation is.
    kinds: Vec<Kind>,
    tables: Vec<Table>,
    patches: Vec<Patch>,
    /// For each slot the operation that performs it.
    op_of: Vec<u32>,
}

impl<'a> Builder<'a> {
    fn new(insns: &'a [Insn], rules: PacketRules) -> Builder<'a> {
        let arrivals = Arrivals::of(insns);
        Builder {
            insns,
            chains: Chains::find(insns, &arrivals),
            arrivals,
            rules,
            ops: Vec::with_capacity(insns.len()),
            kinds: Vec::with_capacity(insns.len()),
            tables: Vec::new(),
            patches: Vec::new(),
            op_of: vec![0; insns.len()],
        }
    }

    fn build(&mut self) -> Result<(), Unsupported> {
        let mut slot = self.prologue();
        while slot < self.insns.len() {
            self.op_of[slot] = self.ops.len() as u32;
            slot += if self.chains.absorb(slot) {
                1
            } else {
                self.operation(slot)?
            };
        }
        Ok(())
    }

    /// Skips `r6 = r1`, which every run sets up by itself.
    fn prologue(&self) -> usize {
        const KEEP_CONTEXT: Insn = Insn::Alu {
            op: isa::ebpf::AluOp::Mov,
            width: isa::ebpf::Width::W64,
            dst: Reg::R6,
            src: Operand::Reg(Reg::R1),
        };
        usize::from(self.insns[0] == KEEP_CONTEXT && !self.arrivals.any(0))
    }

    /// Makes the operation for `slot`; says how many slots it performs.
    fn operation(&mut self, slot: usize) -> Result<usize, Unsupported> {
        if let Some(imm) = fuse::constant_return(self.insns, &self.arrivals, slot) {
            self.push(control::exit_with(imm), Kind::Other);
            return Ok(2);
        }
        Ok(match self.insns[slot] {
            Insn::PacketAbs { size, imm } => self.load(slot, size, None, imm),
            Insn::PacketInd { size, src, imm } => self.load(slot, size, Some(src), imm),
            Insn::Jump { .. } => self.jump(slot),
            insn => {
                let op = self.single(insn, slot).ok_or(Unsupported { slot, insn })?;
                self.push(op, Kind::Other);
                if let Insn::LoadImm64 { .. } = insn {
                    2
                } else {
                    1
                }
            }
        })
    }

    fn load(&mut self, slot: usize, size: isa::ebpf::Size, index: Option<Reg>, imm: i32) -> usize {
        let load = Load {
            size,
            index,
            offset: imm,
            rules: self.rules,
        };
        if index == Some(Reg::R0) {
            self.push(load.alone(), Kind::Other);
            return 1;
        }
        if fuse::is_byte_load(self.insns[slot])
            && let Some(dst) = fuse::header_length(self.insns, &self.arrivals, slot)
        {
            let kind = match index {
                None => Kind::HeaderLength,
                Some(_) => Kind::Other,
            };
            self.push(load.then_header_length(dst), kind);
            return 4;
        }
        if let Some(test) = fuse::test_after(self.insns, &self.arrivals, slot, Reg::R0)
            && !self.chains.starts(slot + 1)
        {
            self.patch_later(Field::First, test.target);
            let kind = match index {
                None => Kind::LoadTest(size, test.cond),
                Some(_) => Kind::IndirectLoadTest(size, test.cond),
            };
            let kind = kind.with_conditions(&[test.cond]);
            self.push(load.then_jump(test.cond, test.imm), kind);
            return 2;
        }
        self.push(load.alone(), Kind::Other);
        1
    }

    fn jump(&mut self, slot: usize) -> usize {
        if self.chains.starts(slot) {
            self.switch(slot);
            return 1;
        }
        let Some(test) = Test::at(self.insns, slot) else {
            self.plain_jump(slot);
            return 1;
        };
        self.patch_later(Field::First, test.target);
        let of_w0 = |kind: Kind| {
            if test.dst == Reg::R0 {
                kind
            } else {
                Kind::Other
            }
        };
        match fuse::test_after(self.insns, &self.arrivals, slot, test.dst) {
            Some(second) => {
                self.patch_later(Field::Second, second.target);
                let kind = Kind::TestPair(test.cond, second.cond)
                    .with_conditions(&[test.cond, second.cond]);
                let first = (test.cond, test.imm);
                let op = branch::pair(first, (second.cond, second.imm), test.dst);
                self.push(op, of_w0(kind));
                2
            }
            None => {
                let kind = Kind::Test(test.cond).with_conditions(&[test.cond]);
                let (width, imm) = (isa::ebpf::Width::W32, Operand::Imm(test.imm));
                let op = branch::conditional(test.cond, width, test.dst, imm);
                self.push(op, of_w0(kind));
                1
            }
        }
    }

    fn push(&mut self, op: Op, kind: Kind) {
        self.ops.push(op);
        self.kinds.push(kind);
    }

    fn plain_jump(&mut self, slot: usize) {
        let Insn::Jump {
            cond,
            width,
            dst,
            src,
            ..
        } = self.insns[slot]
        else {
            return;
        };
        let target = self.target(slot);
        self.patch_later(Field::First, target);
        self.push(branch::conditional(cond, width, dst, src), Kind::Other);
    }

    /// A table for the chain that begins at `slot`.
    fn switch(&mut self, slot: usize) {
        let Some(chain) = self.chains.starting_at(slot) else {
            return;
        };
        let Chain { dst, default, .. } = chain;
        // The first of equal keys wins, so sort stably and drop the others.
        let mut cases = chain.links.to_vec();
        cases.sort_by_key(|link| link.key);
        cases.dedup_by_key(|link| link.key);
        let first = cases[0].key;
        let range = (cases[cases.len() - 1].key - first) as usize + 1;
        let table = self.tables.len();
        let dense = range <= 8 * cases.len() + 64;
        let len = if dense { range } else { cases.len() };
        for position in 0..if dense { range } else { 0 } {
            self.patch_later(Field::Case { table, position }, default);
        }
        for (index, &Link { key, target, .. }) in cases.iter().enumerate() {
            let position = if dense { (key - first) as usize } else { index };
            self.patch_later(Field::Case { table, position }, target as usize);
        }
        self.patch_later(Field::Default { table }, default);
        self.patch_later(Field::Table, table);
        self.tables.push(Table {
            first,
            keys: if dense {
                Box::default()
            } else {
                cases.iter().map(|case| case.key).collect()
            },
            targets: vec![0; len].into_boxed_slice(),
            default: 0,
        });
        self.push(branch::switch(dst, dense), Kind::Other);
    }

    /// One instruction, one operation; `None` when it is not performed yet.
    fn single(&mut self, insn: Insn, slot: usize) -> Option<Op> {
        Some(match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => alu::binary(op, width, dst, src),
            Insn::Neg { width, dst } => alu::negate(width, dst),
            Insn::MovSx {
                width,
                from,
                dst,
                src,
            } => alu::sign_extend(width, from, dst, src),
            Insn::Endian { order, size, dst } => alu::byte_order(order, size, dst),
            Insn::LoadImm64 {
                dst,
                imm: Imm64::Value(value),
            } => alu::load_imm64(dst, value.get()),
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => memory::load(size, signed, dst, base, off),
            Insn::Store {
                size,
                base,
                off,
                src,
            } => memory::store(size, base, off, src),
            Insn::Goto { .. } | Insn::GotoLong { .. } => {
                let target = self.target(slot);
                self.patch_later(Field::First, target);
                branch::always()
            }
            Insn::Call(Callee::Helper(number)) => control::call(find_call(number)?),
            Insn::Exit => control::exit(),
            _ => return None,
        })
    }

    /// The target of the jump at `slot`; a backward one is paid for first.
    fn target(&mut self, slot: usize) -> usize {
        let target = jump_target(self.insns[slot], slot).unwrap_or(usize::MAX);
        if target <= slot {
            self.push(branch::spend_budget(), Kind::Other);
        }
        target
    }

    /// The next operation to be pushed has a target.
    fn patch_later(&mut self, field: Field, target: usize) {
        self.patches.push(Patch {
            op: self.ops.len(),
            field,
            target,
        });
    }

    /// Fills in what was not known while operations were made, and links each to
    /// the next where that is worth it.
    fn finish(mut self) -> (Box<[Op]>, Box<[Table]>) {
        for (index, op) in self.ops.iter_mut().enumerate() {
            if let Some(step) = linked::link(&self.kinds[index..]) {
                op.run = step;
            }
        }
        let mut tables = self.tables.into_boxed_slice();
        for patch in &self.patches {
            let op = &mut self.ops[patch.op];
            if let Field::Table = patch.field {
                *op = branch::with_table(*op, &tables[patch.target]);
                continue;
            }
            let distance = self.op_of[patch.target] as i32 - patch.op as i32;
            match patch.field {
                Field::First => op.t = distance,
                Field::Second => op.u = distance,
                Field::Case { table, position } => tables[table].targets[position] = distance,
                Field::Default { table } => tables[table].default = distance,
                Field::Table => {}
            }
        }
        (self.ops.into_boxed_slice(), tables)
    }
}
