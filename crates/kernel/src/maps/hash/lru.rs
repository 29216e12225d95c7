//! Eviction of LRU maps (`kernel/bpf/bpf_lru_list.c`): which element becomes free.
//!
//! Elements are *active*, *inactive* or *free* ([`Generations`]). A use marks an element. When
//! free ones are needed, marked elements become active and unmarked ones inactive, a bounded
//! number of them, and unmarked inactive elements are evicted from the end of their list.
//!
//! By default all CPUs share these lists. Each has a list of free elements, to which it takes a
//! batch at once, and one of *pending* elements, those that it took since. A CPU that gets no
//! element takes free or pending ones of others, in turn. With `BPF_F_NO_COMMON_LRU` each CPU
//! has lists of its own, of an equal part of the elements.
//!
//! Locks: that of a CPU, then that of the shared lists, then that of a bucket.

mod generations;
mod nodes;

use std::sync::Arc;

use vm::OutOfMemory;
#[cfg(test)]
use vm::sync::atomic::Ordering::AcqRel;
use vm::sync::atomic::Ordering::{Relaxed, Release};
use vm::sync::atomic::{AtomicBool, AtomicU32, fence};

use crate::maps::spin_lock::SpinLock;
use generations::Generations;
use nodes::{List, Nodes, Place};

/// Most elements of a batch (`LOCAL_FREE_TARGET`), and most that a visit of shared lists sees.
const MOST_IN_BATCH: u32 = 128;

/// Elements of a batch of a CPU with lists of its own (`PERCPU_FREE_TARGET`), and most that a
/// visit of these sees.
const OWN_BATCH: u32 = 4;

/// Elements by their last use. Elements are numbers; their owner is who took them.
#[derive(Debug)]
pub(super) struct Lru {
    nodes: Nodes,
    lists: Lists,
}

#[derive(Debug)]
enum Lists {
    Common {
        shared: Box<Generations>,
        cpus: Box<[Local]>,
        batch: u32,
    },
    /// For each CPU, of so many elements.
    PerCpu {
        cpus: Box<[Generations]>,
        elements: u32,
    },
}

/// The lists of a CPU beside shared ones (`struct bpf_lru_locallist`).
#[derive(Debug)]
#[repr(align(64))]
struct Local {
    lock: SpinLock,
    free: List,
    pending: List,
    /// The CPU whose elements are taken first when there are no others.
    next_victim: AtomicU32,
}

impl Lru {
    /// The entries of a map with lists for each CPU: the same number for each.
    pub(super) fn entries(entries: u32, cpus: u32) -> u32 {
        let more = entries.checked_next_multiple_of(cpus);
        more.unwrap_or(entries / cpus * cpus)
    }

    /// So many elements, none of which is in use, on so many CPUs.
    pub(super) fn new(elements: u32, cpus: u32, is_common: bool) -> Result<Lru, OutOfMemory> {
        let heads = match is_common {
            true => Generations::LISTS + 2 * cpus,
            false => Generations::LISTS * cpus,
        };
        let nodes = Nodes::new(elements, heads)?;
        let lists = match is_common {
            true => Lists::Common {
                shared: Box::new(Generations::new(&nodes, 0, 0..elements)),
                cpus: (0..cpus).map(|cpu| Local::new(&nodes, cpu)).collect(),
                batch: (elements / cpus / 2).clamp(1, MOST_IN_BATCH),
            },
            false => {
                let share = elements / cpus;
                let of_cpu = |cpu| {
                    let elements = cpu * share..(cpu + 1) * share;
                    Generations::new(&nodes, Generations::LISTS * cpu, elements)
                };
                Lists::PerCpu {
                    cpus: (0..cpus).map(of_cpu).collect(),
                    elements: share,
                }
            }
        };
        Ok(Lru { nodes, lists })
    }

    /// Notes that an element was used.
    #[inline(always)]
    pub(super) fn mark(&self, element: u32) {
        self.nodes.mark(element);
    }

    /// The marks, for who notes a use by itself.
    pub(super) fn marks(&self) -> Arc<[AtomicBool]> {
        Arc::clone(self.nodes.marks())
    }

    /// An element for a new entry; `evict` removes the entry of an element, if it has one, and
    /// locks a bucket for that. `None` if all are being changed by others. Its cells are as
    /// those of [`Pool::take`](crate::maps::pool::Pool::take).
    pub(super) fn take(&self, cpu: u32, evict: impl Fn(u32) -> bool) -> Option<u32> {
        let element = match &self.lists {
            Lists::Common {
                shared,
                cpus,
                batch,
            } => {
                let cpu = cpu % cpus.len() as u32;
                let local = self.take_local((shared, *batch), (cpus, cpu), &evict);
                local.or_else(|| self.take_from_others(cpus, cpu, &evict))
            }
            Lists::PerCpu { cpus, .. } => self.take_own(&cpus[cpu as usize % cpus.len()], &evict),
        };
        fence(Release);
        element
    }

    /// Frees an element whose entry is gone, or that got none.
    pub(super) fn give_back(&self, element: u32) {
        match &self.lists {
            Lists::Common { shared, cpus, .. } => {
                let is_freed = match self.nodes.place(element) {
                    Place::Pending(cpu) => self.give_back_pending(element, &cpus[cpu as usize]),
                    Place::Free | Place::Active | Place::Inactive => false,
                };
                if !is_freed {
                    self.give_back_to(shared, element);
                }
            }
            Lists::PerCpu { cpus, elements } => {
                self.give_back_to(&cpus[(element / elements) as usize], element);
            }
        }
    }

    fn give_back_to(&self, lists: &Generations, element: u32) {
        let lists = lists.lock(&self.nodes, 0);
        lists.take_out(element);
        lists.put(element, Place::Free);
    }

    /// Frees a pending element of a CPU; false if it is pending no longer.
    fn give_back_pending(&self, element: u32, local: &Local) -> bool {
        let _guard = local.lock.lock();
        let is_pending = matches!(self.nodes.place(element), Place::Pending(_));
        if is_pending {
            self.nodes.take_out(element);
            self.nodes.put(element, local.free, Place::Free);
        }
        is_pending
    }

    /// An element of a CPU with lists of its own.
    fn take_own(&self, own: &Generations, evict: &impl Fn(u32) -> bool) -> Option<u32> {
        let own = own.lock(&self.nodes, OWN_BATCH as usize);
        own.rotate();
        let element = own.take_free().or_else(|| {
            own.shrink(OWN_BATCH, evict, |element| own.put(element, Place::Free));
            own.take_free()
        })?;
        own.put(element, Place::Inactive);
        Some(element)
    }

    /// An element of a CPU's free list, to which a batch is taken if it is empty.
    fn take_local(
        &self,
        source: (&Generations, u32),
        (cpus, cpu): (&[Local], u32),
        evict: &impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let local = &cpus[cpu as usize];
        let _guard = local.lock.lock();
        if self.nodes.first(local.free).is_none() {
            self.refill(source, local, evict);
        }
        let element = self.take_first(local.free)?;
        self.nodes.put(element, local.pending, Place::Pending(cpu));
        Some(element)
    }

    /// Moves a CPU's pending elements to the shared lists, and takes a batch of free ones.
    fn refill(
        &self,
        (shared, batch): (&Generations, u32),
        local: &Local,
        evict: &impl Fn(u32) -> bool,
    ) {
        let shared = shared.lock(&self.nodes, MOST_IN_BATCH as usize);
        for element in self.nodes.backwards(local.pending) {
            self.nodes.take_out(element);
            shared.add(element);
        }
        shared.rotate();
        let keep = |element| self.nodes.put(element, local.free, Place::Free);
        let mut missing = batch;
        while let Some(element) = (missing > 0).then(|| shared.take_free()).flatten() {
            keep(element);
            missing -= 1;
        }
        if missing > 0 {
            shared.shrink(missing, evict, keep);
        }
    }

    /// A free or pending element of any CPU, beginning with another one each time.
    fn take_from_others(
        &self,
        cpus: &[Local],
        cpu: u32,
        evict: &impl Fn(u32) -> bool,
    ) -> Option<u32> {
        let count = cpus.len() as u32;
        let own = &cpus[cpu as usize];
        let first = own.next_victim.load(Relaxed);
        let mut victims = (0..count).map(|step| (first + step) % count);
        let mut next = first;
        let element = victims.find_map(|victim| {
            next = (victim + 1) % count;
            let local = &cpus[victim as usize];
            let _guard = local.lock.lock();
            let free = self.take_first(local.free);
            free.or_else(|| self.take_pending(local.pending, evict))
        });
        own.next_victim.store(next, Relaxed);
        let element = element?;
        let _guard = own.lock.lock();
        self.nodes.put(element, own.pending, Place::Pending(cpu));
        Some(element)
    }

    /// Evicts the last pending element that is not marked, or else the last one.
    fn take_pending(&self, pending: List, evict: &impl Fn(u32) -> bool) -> Option<u32> {
        let unmarked = |element: &u32| !self.nodes.is_marked(*element) && evict(*element);
        let element = self.nodes.backwards(pending).find(unmarked);
        let element = element.or_else(|| self.nodes.backwards(pending).find(|&any| evict(any)));
        element.inspect(|element| self.nodes.take_out(*element))
    }

    fn take_first(&self, list: List) -> Option<u32> {
        let first = self.nodes.first(list);
        first.inspect(|element| self.nodes.take_out(*element))
    }
}

impl Local {
    /// The lists of a CPU, behind the shared ones.
    fn new(nodes: &Nodes, cpu: u32) -> Local {
        let list = Generations::LISTS + 2 * cpu;
        Local {
            lock: SpinLock::default(),
            free: nodes.list(list),
            pending: nodes.list(list + 1),
            next_victim: AtomicU32::new(cpu),
        }
    }
}

#[cfg(test)]
impl Lru {
    /// All elements of lists and those that were never used, ascending.
    fn elements(&self) -> Vec<u32> {
        let mut elements: Vec<u32> = match &self.lists {
            Lists::Common { shared, cpus, .. } => {
                let local = cpus.iter().flat_map(|cpu| [cpu.free, cpu.pending]);
                let local = local.flat_map(|list| self.nodes.backwards(list));
                local.chain(shared.elements(&self.nodes)).collect()
            }
            Lists::PerCpu { cpus, .. } => {
                let own = cpus.iter().flat_map(|own| own.elements(&self.nodes));
                own.collect()
            }
        };
        elements.sort_unstable();
        elements
    }
}

/// What a table does with elements, for tests. Who removes an entry knows what was done before it
/// was made, as the lock of a bucket has it.
#[cfg(test)]
struct Owners(Vec<AtomicBool>, Vec<AtomicBool>);

#[cfg(test)]
impl Owners {
    fn new(elements: u32) -> Owners {
        let none = || (0..elements).map(|_| AtomicBool::new(false)).collect();
        Owners(none(), none())
    }

    /// Takes an element and makes it the entry of something. A second owner panics.
    fn use_element(&self, lru: &Lru, cpu: u32) -> Option<u32> {
        let Owners(owned, entries) = self;
        let evict = |element: u32| entries[element as usize].swap(false, AcqRel);
        let element = lru.take(cpu, evict)?;
        assert!(
            !owned[element as usize].swap(true, AcqRel),
            "an element of two owners"
        );
        owned[element as usize].store(false, Release);
        entries[element as usize].store(true, Release);
        Some(element)
    }

    /// Removes the entry of an element, if it has one, and frees the element.
    fn remove(&self, lru: &Lru, element: u32) {
        if self.1[element as usize].swap(false, AcqRel) {
            lru.give_back(element);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn threads_lose_no_element_and_share_none() {
        const CPUS: u32 = 4;
        for (elements, is_common) in [
            (1, true),
            (2, true),
            (5, true),
            (64, true),
            (4, false),
            (8, false),
            (64, false),
        ] {
            let lru = Lru::new(elements, CPUS, is_common).unwrap();
            let owners = Owners::new(elements);
            let run = |cpu: u32| {
                let mut last = 0;
                for round in 0..if cfg!(miri) { 20 } else { 20_000u32 } {
                    match round % 3 {
                        0 => owners.remove(&lru, last),
                        1 => lru.mark(last),
                        _ => last = owners.use_element(&lru, cpu).unwrap_or(last),
                    }
                }
            };
            thread::scope(|scope| {
                let threads: Vec<_> = (0..CPUS).map(|cpu| scope.spawn(move || run(cpu))).collect();
                for thread in threads {
                    thread.join().unwrap();
                }
            });
            let all: Vec<u32> = (0..elements).collect();
            assert_eq!(lru.elements(), all, "{elements} {is_common}");
        }
    }
}

#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// Two threads that take elements, on a CPU each; the first also frees its own.
    fn take_in_two_threads(elements: u32, cpus: [u32; 2], is_common: bool) {
        let mut builder = loom::model::Builder::new();
        builder.max_branches = 20_000;
        builder.preemption_bound = Some(3);
        builder.check(move || {
            let shared = Arc::new((
                Lru::new(elements, 2, is_common).unwrap(),
                Owners::new(elements),
            ));
            let other = Arc::clone(&shared);
            let thread = thread::spawn(move || other.1.use_element(&other.0, cpus[1]));
            let (lru, owners) = &*shared;
            if let Some(element) = owners.use_element(lru, cpus[0]) {
                owners.remove(lru, element);
            }
            thread.join().unwrap();
            let all: Vec<u32> = (0..elements).collect();
            assert_eq!(lru.elements(), all);
        });
    }

    #[test]
    fn an_element_has_one_owner_at_a_time() {
        take_in_two_threads(1, [0, 1], true);
        take_in_two_threads(2, [0, 1], true);
    }

    #[test]
    fn threads_of_one_cpu_take_different_elements() {
        take_in_two_threads(2, [0, 0], true);
        take_in_two_threads(2, [0, 0], false);
    }
}
