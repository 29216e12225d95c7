//! Counts the instructions that a run executes, by running it step by step.
//!
//! The stepper is as plain as can be and checks everything; it performs what
//! conversion makes of classic programs (`isa`'s `eval` says what each operation
//! means) and is for counting only.

use isa::ebpf::{Insn, Operand, Reg, Size, eval};

/// Bytes of stack below the frame pointer.
const STACK: usize = 512;

/// Addresses of the context and of the end of the stack.
const CONTEXT: u64 = 0x1000;
const FRAME: u64 = 0x10_0000;

/// Counts of a run of a converted program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    /// Instructions.
    pub(crate) insns: u32,
    /// Packet loads of more than a byte.
    pub(crate) wide_packet_loads: u32,
    /// Return value.
    pub(crate) result: u32,
}

/// Something that conversion does not make of the benchmark's programs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCounted {
    /// Slot.
    pub slot: usize,
    /// The instruction, if the program did not just run out.
    pub insn: Option<Insn>,
}

/// Runs a converted program on a packet and a context, whose words are in host
/// order.
pub(crate) fn count(program: &[Insn], packet: &[u8], context: &[u8]) -> Result<Count, NotCounted> {
    let mut run = Run {
        regs: [0; Reg::COUNT],
        stack: [0; STACK],
        packet,
        context,
    };
    run.regs[1] = CONTEXT;
    run.regs[10] = FRAME;
    let mut counted = Count {
        insns: 0,
        wide_packet_loads: 0,
        result: 0,
    };
    let mut slot = 0;
    loop {
        let insn = program.get(slot).copied();
        let fault = NotCounted { slot, insn };
        let insn = insn.ok_or(fault.clone())?;
        counted.insns += 1;
        let next = match insn {
            Insn::PacketAbs { size, .. } | Insn::PacketInd { size, .. } => {
                counted.wide_packet_loads += u32::from(size != Size::B);
                if !run.load_packet(insn) {
                    return Ok(counted);
                }
                0
            }
            Insn::Exit => {
                counted.result = run.regs[0] as u32;
                return Ok(counted);
            }
            _ => run.step(insn).ok_or(fault.clone())?,
        };
        slot = usize::try_from(slot as i64 + 1 + next).map_err(|_| fault)?;
    }
}

struct Run<'a> {
    regs: [u64; Reg::COUNT],
    stack: [u8; STACK],
    packet: &'a [u8],
    context: &'a [u8],
}

impl Run<'_> {
    /// Performs an instruction; how far it jumps, or `None` if it can't be
    /// performed here.
    fn step(&mut self, insn: Insn) -> Option<i64> {
        match insn {
            Insn::Alu {
                op,
                width,
                dst,
                src,
            } => {
                let value = eval::alu(op, width, self.reg(dst), self.operand(src));
                self.set(dst, value);
            }
            Insn::Neg { width, dst } => self.set(dst, eval::neg(width, self.reg(dst))),
            Insn::Endian { order, size, dst } => {
                self.set(dst, eval::endian(order, size, self.reg(dst)));
            }
            Insn::Load {
                size,
                signed,
                dst,
                base,
                off,
            } => {
                let address = eval::address(self.reg(base), off);
                let value = little_endian(self.bytes(address, size)?);
                self.set(dst, eval::loaded(size, signed, value));
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => {
                let address = eval::address(self.reg(base), off);
                let value = self.operand(src).to_le_bytes();
                let start = stack_offset(address)?;
                let len = size.bytes() as usize;
                self.stack
                    .get_mut(start..start + len)?
                    .copy_from_slice(&value[..len]);
            }
            Insn::Jump {
                cond,
                width,
                dst,
                src,
                off,
            } => {
                let holds = eval::compare(cond, width, self.reg(dst), self.operand(src));
                return Some(if holds { off.into() } else { 0 });
            }
            Insn::Goto { off } => return Some(off.into()),
            Insn::GotoLong { off } => return Some(off.into()),
            _ => return None,
        }
        Some(0)
    }

    /// Executes a packet load; true if it is within the packet.
    fn load_packet(&mut self, insn: Insn) -> bool {
        let (size, index, imm) = match insn {
            Insn::PacketAbs { size, imm } => (size, 0, imm),
            Insn::PacketInd { size, src, imm } => (size, self.reg(src) as u32, imm),
            _ => return false,
        };
        let start = u64::from(index) + u64::from(imm as u32);
        let start = start as usize;
        match self.packet.get(start..start + size.bytes() as usize) {
            Some(bytes) => {
                let value = bytes
                    .iter()
                    .fold(0, |value, &byte| value << 8 | u64::from(byte));
                self.set(Reg::R0, value);
                true
            }
            None => false,
        }
    }

    fn bytes(&self, address: u64, size: Size) -> Option<&[u8]> {
        let len = size.bytes() as usize;
        if let Some(start) = stack_offset(address) {
            return self.stack.get(start..start + len);
        }
        let start = usize::try_from(address.checked_sub(CONTEXT)?).ok()?;
        self.context.get(start..start.checked_add(len)?)
    }

    fn reg(&self, reg: Reg) -> u64 {
        self.regs[reg.index()]
    }

    fn set(&mut self, reg: Reg, value: u64) {
        self.regs[reg.index()] = value;
    }

    fn operand(&self, operand: Operand) -> u64 {
        eval::operand(operand, &self.regs)
    }
}

fn stack_offset(address: u64) -> Option<usize> {
    let below = FRAME.checked_sub(address)?;
    (STACK as u64)
        .checked_sub(below)
        .map(|offset| offset as usize)
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use classic::{Rules, Semantics, check, convert};
    use isa::classic::SockFilter;

    #[test]
    fn counts_the_path_that_is_taken() {
        // ldh [0]; st M[0]; ldb [2]; tax; ld M[0]; jeq x, 0, 1; ret #7; ret #0
        let program: Vec<_> = [
            (0x28, 0, 0, 0),
            (0x02, 0, 0, 0),
            (0x30, 0, 0, 2),
            (0x07, 0, 0, 0),
            (0x60, 0, 0, 0),
            (0x1d, 0, 1, 0),
            (0x06, 0, 0, 7),
            (0x06, 0, 0, 0),
        ]
        .iter()
        .map(|&(code, jt, jf, k)| SockFilter::new(code, jt, jf, k))
        .collect();
        let checked = check(&program, Rules::Capture).expect("the program is valid");
        let converted = convert(&checked, Semantics::Capture);
        let context = [0; spec::context::SK_BUFF_SIZE];
        // The prologue, six instructions, the return's value and the return.
        let equal = count(converted.insns(), &[0, 5, 5], &context);
        assert_eq!(
            equal,
            Ok(Count {
                insns: 9,
                wide_packet_loads: 1,
                result: 7
            })
        );
        let unequal = count(converted.insns(), &[1, 5, 5], &context);
        assert_eq!(unequal.map(|count| count.result), Ok(0));
        let short = count(converted.insns(), &[1, 5], &context);
        assert_eq!(
            short,
            Ok(Count {
                insns: 4,
                wide_packet_loads: 1,
                result: 0
            })
        );
    }
}
