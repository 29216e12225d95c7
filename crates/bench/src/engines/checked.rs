//! The checked interpreter. Its addresses have 64 bits as the kernel's have, so it runs the
//! widened programs, and it counts executed instructions.

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Finish, Limits, Memory};
use isa::ebpf::{self, RawInsn};

use super::region::CONTEXT;

/// A workload on that engine.
pub(super) struct Checked<'m> {
    program: CheckedProgram,
    memory: Memory<'m>,
    calls: Calls<'static>,
    entry: Entry,
}

impl<'m> Checked<'m> {
    /// Gets a (widened) program ready to run on these data; `context` is room for
    /// what says where they are.
    pub(super) fn new(
        program: &[RawInsn],
        data: &'m mut [u8],
        context: &'m mut [u8; CONTEXT],
    ) -> Checked<'m> {
        const ROOM: &str = "a few kilobytes fit into the addresses of regions";
        let len = data.len() as u64;
        let mut memory = Memory::new();
        let data = memory.add("data", data).expect(ROOM);
        let start = memory.address(data);
        context[..8].copy_from_slice(&start.to_le_bytes());
        context[8..].copy_from_slice(&(start + len).to_le_bytes());
        let context = memory.add("context", context).expect(ROOM);
        let entry = Entry {
            arguments: [memory.address(context), 0, 0, 0, 0],
        };
        Checked {
            program: CheckedProgram::new(ebpf::decode(program)),
            memory,
            calls: Calls::none(),
            entry,
        }
    }

    /// Runs it.
    #[inline(always)]
    pub(super) fn run(&mut self) -> Finish {
        let cx = CheckedContext {
            memory: &mut self.memory,
            calls: &mut self.calls,
            packet: None,
        };
        self.program.run(cx, self.entry, &Limits::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::object::widened;
    use crate::engines::workload::WORKLOADS;

    fn answer(key: &str, data: &[u8]) -> u32 {
        let workload = WORKLOADS.iter().find(|workload| workload.key == key);
        let program = workload
            .expect("the workload")
            .program()
            .expect("a program");
        let (mut data, mut context) = (data.to_vec(), [0; CONTEXT]);
        let mut checked = Checked::new(&widened(&program), &mut data, &mut context);
        checked.run().outcome.expect("a workload ends well") as u32
    }

    #[test]
    fn every_workload_stays_inside_its_data_and_does_something() {
        for workload in WORKLOADS {
            let found = answer(workload.key, &workload.input());
            assert_eq!(found == 0, workload.is_empty(), "{}", workload.key);
            // Too short for any of them, which all must notice.
            assert_eq!(answer(workload.key, &[0; 8]), 0, "{}", workload.key);
        }
    }

    #[test]
    fn the_hash_is_sha_256() {
        // 200 times `a`, padded as FIPS 180-4 says, and what sha256sum finds.
        let mut message = vec![b'a'; 200];
        message.push(0x80);
        message.resize(256 - 8, 0);
        message.extend_from_slice(&(200u64 * 8).to_be_bytes());
        assert_eq!(answer("W6b", &message), 0xc2a9_08d9);
    }

    #[test]
    fn the_checksum_is_that_of_the_internet() {
        let mut words = vec![0; 1460];
        words[..6].copy_from_slice(&[0x01, 0x00, 0xf2, 0x03, 0xf4, 0xf5]);
        let expected = !(0x0001u32 + 0x03f2 + 0xf5f4) as u16;
        assert_eq!(answer("W4c", &words), u32::from(expected));
    }

    #[test]
    fn the_lowest_set_bit_is_found() {
        let bits = (0..64u32).cycle().take(384);
        let numbers: Vec<u8> = bits
            .clone()
            .flat_map(|bit| (3u64 << bit).to_le_bytes())
            .collect();
        assert_eq!(answer("W8", &numbers), bits.sum::<u32>());
    }
}
