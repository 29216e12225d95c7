//! The task that runs, as programs read it: a `struct task_struct` of the kernel in which a few
//! members are set, the others are zero.

use btf::{Btf, Kind, Shape, Type};
use vm::System;

/// Most structures in structures on the way to a member.
const MOST_DEPTH: u32 = 8;

/// Offsets of the members that are set.
#[derive(Clone, Copy, Debug)]
pub(super) struct TaskLayout {
    size: usize,
    pid: Option<usize>,
    tgid: Option<usize>,
    comm: Option<usize>,
    /// Pointers to the task itself: leader of its group, and its parents, as it is the first.
    to_itself: [Option<usize>; 3],
}

impl TaskLayout {
    /// That of a kernel's types, if they have tasks.
    pub(super) fn of(types: &Btf<'_>) -> Option<TaskLayout> {
        let task = types.find(Kind::Struct, "task_struct")?;
        let place = |name| offset_of(types, task, name, MOST_DEPTH);
        Some(TaskLayout {
            size: types.size_of(task.id())? as usize,
            pid: place("pid"),
            tgid: place("tgid"),
            comm: place("comm"),
            to_itself: ["group_leader", "real_parent", "parent"].map(place),
        })
    }

    /// The task of a process, at an address.
    pub(super) fn task(&self, system: &System, address: u64) -> Vec<u8> {
        let mut task = vec![0; self.size];
        let mut put = |place: Option<usize>, bytes: &[u8]| {
            let range = place.and_then(|at| task.get_mut(at..at + bytes.len()));
            if let Some(range) = range {
                range.copy_from_slice(bytes);
            }
        };
        put(self.pid, &system.pid.to_le_bytes());
        put(self.tgid, &system.tgid.to_le_bytes());
        put(self.comm, &system.comm);
        for place in self.to_itself {
            put(place, &address.to_le_bytes());
        }
        task
    }
}

/// Offset in bytes of a member of a structure, or of an unnamed one in it.
fn offset_of(types: &Btf<'_>, structure: Type<'_>, name: &str, depth: u32) -> Option<usize> {
    member_of(types, structure, name, depth).map(|(offset, _)| offset)
}

/// Offset in bytes and size of a member of a structure, or of an unnamed one in it.
pub(super) fn member_of(
    types: &Btf<'_>,
    structure: Type<'_>,
    name: &str,
    depth: u32,
) -> Option<(usize, usize)> {
    let (Shape::Struct(composite) | Shape::Union(composite)) = structure.shape() else {
        return None;
    };
    composite.members().find_map(|member| {
        let offset = (member.bit_offset / 8) as usize;
        match &*types.string(member.name).to_string_lossy() {
            "" if depth > 0 => {
                let inner = types.at(member.ty);
                let (inner, size) = member_of(types, inner, name, depth - 1)?;
                Some((offset + inner, size))
            }
            found if found == name => Some((offset, types.size_of(member.ty)? as usize)),
            _ => None,
        }
    })
}
