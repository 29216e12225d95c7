//! Variables that the kernel has for each CPU (`.data..percpu`), as programs refer to them by
//! their BTF ids.
//!
//! A block of memory for each CPU holds all variables in question. They are zero but for the
//! number of the CPU, in `cpu_number` and in the run queue.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use btf::{Btf, Shape, Type, TypeId};
/// Alignment of variables.
const ALIGNMENT: usize = 64;

/// Variables of the kernel, with their memory on all CPUs.
#[derive(Clone, Debug, Default)]
pub struct Variables {
    /// Offset in a block, by BTF id.
    places: BTreeMap<TypeId, usize>,
    /// Bytes of a block.
    block: usize,
    bytes: Vec<u8>,
    /// Address that stands for the first block.
    start: u64,
}

impl Variables {
    /// The variables of these ids on a machine with so many CPUs, from an address on
    /// ([`Addresses::variables`](vm::Addresses)). An id of something else is left out.
    pub fn new(
        types: &Btf<'_>,
        ids: impl IntoIterator<Item = TypeId>,
        cpus: u32,
        start: u64,
    ) -> Variables {
        let mut places = BTreeMap::new();
        let mut block = 0usize;
        let mut numbers = Vec::new();
        for id in ids {
            let Some((size, number)) = variable(types, id) else {
                continue;
            };
            if let Entry::Vacant(place) = places.entry(id) {
                place.insert(block);
                numbers.extend(number.map(|offset| block + offset));
                block += size.next_multiple_of(ALIGNMENT);
            }
        }
        let mut bytes = vec![0; block * cpus as usize];
        for (cpu, block) in (0u32..).zip(bytes.chunks_exact_mut(block.max(1))) {
            for at in &numbers {
                block[*at..*at + 4].copy_from_slice(&cpu.to_le_bytes());
            }
        }
        Variables {
            places,
            block,
            bytes,
            start,
        }
    }

    /// The address that stands for a variable.
    pub fn address(&self, id: TypeId) -> Option<u64> {
        let place = self.places.get(&id)?;
        Some(self.start + *place as u64)
    }

    /// The blocks of all CPUs.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes of the block of a CPU.
    pub fn block(&self) -> usize {
        self.block
    }
}

/// Size of a variable, and where in it the number of the CPU is, in four bytes.
fn variable(types: &Btf<'_>, id: TypeId) -> Option<(usize, Option<usize>)> {
    let ty = types.get(id)?;
    let Shape::Var(var) = ty.shape() else {
        return None;
    };
    let size = types.size_of(var.ty)? as usize;
    let number = match ty.name().as_bytes() {
        b"cpu_number" => Some(0),
        b"runqueues" => types.get(var.ty).and_then(cpu_member),
        _ => None,
    };
    Some((size, number.filter(|at| at + 4 <= size)))
}

/// Offset of the member `cpu` of a structure.
fn cpu_member(structure: Type<'_>) -> Option<usize> {
    let mut members = structure.as_composite()?.members();
    let types = structure.btf();
    let cpu = members.find(|member| types.string(member.name) == "cpu")?;
    Some((cpu.bit_offset / 8) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use btf::{Builder, Encoding, Int, Kind, Linkage, Member, Var};

    #[test]
    fn each_cpu_has_a_copy_with_its_number() {
        const START: u64 = 0xffff_8884_3bc1_9000;
        let mut builder = Builder::new();
        let mut text = |name: &str| builder.string(name);
        let [int, queue, cpu] = ["int", "rq", "cpu"].map(&mut text);
        let names = ["runqueues", "other"].map(&mut text);
        let (size, bits, offset, encoding) = (4, 32, 0, Encoding::SIGNED);
        let int = builder.int(
            int,
            Int {
                size,
                bits,
                offset,
                encoding,
            },
        );
        let (name, bit_offset) = (cpu, 64);
        let member = Member {
            name,
            ty: int,
            bit_offset,
            bits: 0,
        };
        let queue = builder.composite(Kind::Struct, queue, 16, &[member]);
        let linkage = Linkage::GLOBAL;
        let ids = names.map(|name| builder.var(name, Var { ty: queue, linkage }));
        let types = Btf::parse(builder.finish()).expect("valid types");
        let variables = Variables::new(&types, [ids[1], ids[0], ids[1], int], 2, START);
        assert_eq!(variables.address(ids[1]), Some(START));
        assert_eq!(variables.address(ids[0]), Some(START + 64));
        assert_eq!(variables.address(int), None);
        assert_eq!((variables.block(), variables.bytes().len()), (128, 256));
        assert_eq!(variables.bytes()[128 + 64 + 8], 1);
        assert_eq!(
            variables.bytes().iter().filter(|byte| **byte != 0).count(),
            1
        );
    }
}
