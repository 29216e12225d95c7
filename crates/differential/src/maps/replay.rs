//! Operations on a map of the kernel and on ours.

use ::kernel::maps::{Host, Map, ValueLayout};
use spec::Errno;
use spec::maps::MapKind;
use sys::bpf::{Map as KernelMap, MapRequest};
use sys::network::pin_to_cpu;

use super::generate::{Dice, Operation, Shape, any_shape, operation, usual_shape};
use super::objects::Objects;
use super::{MapComparison, MapDifference, errno, name};

/// A template for inner maps, in the kernel and ours.
type Template<'a> = Option<(&'a KernelMap, &'a Map)>;

fn create_kernel(
    shape: &Shape,
    objects: &Objects,
    inner: Template<'_>,
) -> Result<KernelMap, Errno> {
    let request = MapRequest {
        inner: inner.map(|(kernel, _)| kernel),
        ..objects.request(shape)
    };
    KernelMap::create(&request).map_err(errno)
}

fn create_ours(shape: &Shape, cpus: u32, inner: Template<'_>) -> Result<Map, Errno> {
    let value = ValueLayout::plain(shape.0.value_size as usize);
    let host = Host::new(cpus, 7);
    Map::create_with(&shape.0, value, &host, inner.map(|(_, ours)| ours))
}

/// Creates maps of random parameters, one for each seed, and compares the error numbers.
/// The error is the kernel's, if it creates no maps for us at all.
pub fn compare_creation(seeds: std::ops::Range<u64>) -> Result<MapComparison, Errno> {
    let cpus = possible_cpus()?;
    let objects = Objects::open(cpus)?;
    let mut comparison = MapComparison::default();
    for seed in seeds {
        let mut dice = Dice::new(seed);
        let shape = any_shape(&mut dice);
        // Without a template the kernel looks at descriptor 0, whatever that is.
        let template = objects.template(&mut dice);
        if is_map_of_maps(&shape) && template.is_none() {
            continue;
        }
        let kernel = create_kernel(&shape, &objects, template).map(drop);
        let ours = create_ours(&shape, cpus, template).map(drop);
        comparison.operations += 1;
        comparison.successes += u64::from(kernel.is_ok());
        if kernel != ours {
            comparison.differences.push(MapDifference {
                seed,
                shape,
                operation: "create".into(),
                kernel: format!("{kernel:?}"),
                ours: format!("{ours:?}"),
            });
        }
    }
    Ok(comparison)
}

/// CPUs that the kernel's per-CPU maps have values for.
fn possible_cpus() -> Result<u32, Errno> {
    let request = MapRequest {
        map_type: MapKind::PercpuArray.number(),
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        ..MapRequest::default()
    };
    let map = KernelMap::create(&request).map_err(errno)?;
    Ok(map.value_len() as u32 / 8)
}

/// Replays `operations` random operations on a map of this kind. The error is the kernel's,
/// if it creates none.
pub fn compare_operations(
    kind: MapKind,
    seed: u64,
    operations: u64,
) -> Result<MapComparison, Errno> {
    // LRU maps have free elements by CPU.
    super::on_own_thread(|| {
        pin_to_cpu(0).map_err(errno)?;
        compare_on_one_cpu(kind, seed, operations)
    })
}

fn compare_on_one_cpu(kind: MapKind, seed: u64, operations: u64) -> Result<MapComparison, Errno> {
    let cpus = possible_cpus()?;
    let objects = Objects::open(cpus)?;
    let mut dice = Dice::new(seed.wrapping_mul(0x9e37_79b9) ^ kind as u64);
    let mut comparison = MapComparison::default();
    while comparison.operations < operations && comparison.differences.len() < 20 {
        let shape = usual_shape(kind, &mut dice);
        let template = is_map_of_maps(&shape).then(|| objects.usual_template());
        let mut pair = Pair {
            kernel: create_kernel(&shape, &objects, template)?,
            ours: create_ours(&shape, cpus, template)?,
            objects: &objects,
            shape,
            seed,
        };
        for number in 0..2000.min(operations) {
            let operation = operation(&shape, pair.ours.value_len(), &objects, &mut dice);
            pair.compare(number, &operation, &mut comparison);
        }
        pair.compare_contents(&mut comparison);
    }
    Ok(comparison)
}

fn is_map_of_maps(shape: &Shape) -> bool {
    shape.0.kind().is_some_and(MapKind::is_map_of_maps)
}

/// A map of the kernel and ours.
struct Pair<'a> {
    kernel: KernelMap,
    ours: Map,
    objects: &'a Objects,
    shape: Shape,
    seed: u64,
}

/// Result of an operation: what it read.
type Answer = Result<Vec<u8>, Errno>;

impl Pair<'_> {
    fn compare(&mut self, number: u64, operation: &Operation, comparison: &mut MapComparison) {
        let (kernel, ours) = (self.ask_kernel(operation), self.ask_ours(operation));
        comparison.operations += 1;
        comparison.successes += u64::from(kernel.is_ok());
        let is_same = match (operation, &kernel, &ours) {
            // The order of a hash depends on its seed.
            (Operation::NextKey(_), Ok(_), Ok(_)) => !self.is_ordered() || kernel == ours,
            (Operation::NextKey(Some(_)), Err(Errno::ENOENT), Ok(_))
            | (Operation::NextKey(Some(_)), Ok(_), Err(Errno::ENOENT)) => !self.is_ordered(),
            // A Bloom filter may find what it does not hold.
            (Operation::Lookup(..), Ok(_), Err(Errno::ENOENT))
            | (Operation::Lookup(..), Err(Errno::ENOENT), Ok(_)) => self.is_bloom_filter(),
            _ => kernel == ours,
        };
        if !is_same {
            self.report(
                format!("{number}: {operation:x?}"),
                &kernel,
                &ours,
                comparison,
            );
        }
    }

    fn report(&self, operation: String, kernel: &Answer, ours: &Answer, to: &mut MapComparison) {
        to.differences.push(MapDifference {
            seed: self.seed,
            shape: self.shape,
            operation,
            kernel: format!("{kernel:x?}"),
            ours: format!("{ours:x?}"),
        });
    }

    fn is_ordered(&self) -> bool {
        use MapKind::{DevmapHash, Hash, HashOfMaps, LruHash, LruPercpuHash, PercpuHash, Sockhash};
        !matches!(
            self.ours.kind(),
            Hash | PercpuHash | LruHash | LruPercpuHash | HashOfMaps | DevmapHash | Sockhash
        )
    }

    fn is_bloom_filter(&self) -> bool {
        self.ours.kind() == MapKind::BloomFilter
    }

    /// Compares all entries, as sets.
    fn compare_contents(&mut self, comparison: &mut MapComparison) {
        let mut kernel = self.contents(|key| self.kernel_next(key), |op| self.ask_kernel(op));
        let mut ours = self.contents(|key| self.our_next(key), |op| self.ask_ours(op));
        if !self.is_ordered() {
            kernel.sort();
            ours.sort();
        }
        comparison.operations += kernel.len() as u64;
        if kernel != ours {
            let text = format!("contents of {}", name(self.ours.kind()));
            let size = |entries: &[(Vec<u8>, Answer)]| Ok(format!("{entries:x?}").into_bytes());
            let text_of =
                |answer: Answer| answer.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            comparison.differences.push(MapDifference {
                seed: self.seed,
                shape: self.shape,
                operation: text,
                kernel: format!("{:?}", text_of(size(&kernel))),
                ours: format!("{:?}", text_of(size(&ours))),
            });
        }
    }

    fn contents(
        &self,
        next: impl Fn(Option<&[u8]>) -> Answer,
        ask: impl Fn(&Operation) -> Answer,
    ) -> Vec<(Vec<u8>, Answer)> {
        let mut entries: Vec<(Vec<u8>, Answer)> = Vec::new();
        while entries.len() < 10_000 {
            let last = entries.last().map(|(key, _)| key.as_slice());
            let Ok(key) = next(last) else { break };
            let value = ask(&Operation::Lookup(key.clone(), 0));
            entries.push((key, value));
        }
        entries
    }

    fn kernel_next(&self, key: Option<&[u8]>) -> Answer {
        match self.kernel.next_key(key) {
            Ok(Some(key)) => Ok(key),
            Ok(None) => Err(Errno::ENOENT),
            Err(error) => Err(errno(error)),
        }
    }

    fn our_next(&self, key: Option<&[u8]>) -> Answer {
        let mut next = vec![0; self.shape.0.key_size as usize];
        self.ours.next_key(key, &mut next)?;
        Ok(next)
    }

    fn ask_kernel(&self, operation: &Operation) -> Answer {
        let mut out = vec![0; self.kernel.value_len()];
        let done = |(count, end): (u32, Option<sys::Errno>)| match end {
            None => Ok(count.to_ne_bytes().to_vec()),
            // What was handled before the error counts too.
            Some(error) => Ok([count.to_ne_bytes(), error.0.to_ne_bytes()].concat()),
        };
        match operation {
            Operation::Lookup(key, flags) => {
                if self.is_bloom_filter() {
                    out.fill(key.len() as u8);
                }
                self.kernel.lookup_with(key, &mut out, *flags).map(|()| out)
            }
            Operation::Update(key, value, flags) => self
                .kernel
                .update_with(key, value, *flags)
                .map(|()| Vec::new()),
            Operation::Delete(key) => self.kernel.delete(key).map(|()| Vec::new()),
            Operation::Take(key, flags) => {
                let taken = self.kernel.lookup_and_delete_with(key, &mut out, *flags);
                taken.map(|()| out)
            }
            Operation::NextKey(key) => return self.kernel_next(key.as_deref()),
            Operation::UpdateBatch(keys, values) => {
                self.kernel.update_batch(keys, values, 0).and_then(done)
            }
            Operation::DeleteBatch(keys) => self.kernel.delete_batch(keys, 0).and_then(done),
            Operation::LookupBatch {
                from,
                count,
                delete,
            } => {
                let (from, mut keys, mut values) = self.batch(from.as_deref(), *count);
                let batch =
                    (self.kernel).lookup_batch(from.as_deref(), &mut keys, &mut values, 0, *delete);
                batch.map(|batch| {
                    let end = batch.end.map(errno);
                    self.batch_answer(batch.count as usize, end, Some(batch.next), &keys, &values)
                })
            }
        }
        .map_err(errno)
    }

    /// Cursor and room for a batch: of maps whose order differs, for all elements.
    fn batch(&self, from: Option<&[u8]>, count: u32) -> (Option<Vec<u8>>, Vec<u8>, Vec<u8>) {
        let params = self.shape.0;
        let (from, count) = match self.is_ordered() {
            true => (from.map(<[u8]>::to_vec), count),
            false => (None, params.max_entries),
        };
        let keys = vec![0; count as usize * params.key_size as usize];
        let values = vec![0; count as usize * self.ours.value_len()];
        (from, keys, values)
    }

    /// Elements that a batch read, in an order that both sides have.
    fn batch_answer(
        &self,
        count: usize,
        end: Option<Errno>,
        next: Option<Vec<u8>>,
        keys: &[u8],
        values: &[u8],
    ) -> Vec<u8> {
        let keys = keys.chunks(self.shape.0.key_size as usize);
        let values = values.chunks(self.ours.value_len());
        let mut entries: Vec<Vec<u8>> = keys
            .zip(values)
            .take(count)
            .map(|(key, value)| [key, value].concat())
            .collect();
        entries.sort();
        let mut answer = end.map_or(0, |errno| errno.0).to_ne_bytes().to_vec();
        answer.extend(entries.concat());
        if count > 0 && self.is_ordered() {
            answer.extend(next.unwrap_or_default());
        }
        answer
    }

    fn ask_ours(&self, operation: &Operation) -> Answer {
        let mut out = vec![0; self.ours.value_len()];
        let done = |batch: ::kernel::maps::Batch| match batch.end {
            None => Ok((batch.count as u32).to_ne_bytes().to_vec()),
            // The kernel's side does not tell how many elements came before this error.
            Some(errno @ (Errno::EINVAL | Errno::EBADF)) => Err(errno),
            Some(error) => Ok([(batch.count as u32).to_ne_bytes(), error.0.to_ne_bytes()].concat()),
        };
        match operation {
            Operation::Lookup(key, flags) => {
                if self.is_bloom_filter() {
                    out.fill(key.len() as u8);
                }
                (self.ours.lookup_with(key, &mut out, *flags, self.objects)).map(|()| out)
            }
            Operation::Update(key, value, flags) => {
                let done = self.ours.update_with(key, value, *flags, self.objects);
                done.map(|()| Vec::new())
            }
            Operation::Delete(key) => {
                let done = self.ours.delete_with(key, self.objects);
                done.map(|()| Vec::new())
            }
            Operation::Take(key, flags) => self
                .ours
                .lookup_and_delete(key, &mut out, *flags)
                .map(|()| out),
            Operation::NextKey(key) => self.our_next(key.as_deref()),
            Operation::UpdateBatch(keys, values) => {
                let batch = self.ours.update_batch(keys, values, 0, self.objects);
                batch.and_then(done)
            }
            Operation::DeleteBatch(keys) => self.ours.delete_batch(keys).and_then(done),
            Operation::LookupBatch {
                from,
                count,
                delete,
            } => {
                let (from, mut keys, mut values) = self.batch(from.as_deref(), *count);
                let batch = (self.ours).lookup_batch(
                    from.as_deref(),
                    &mut keys,
                    &mut values,
                    0,
                    *delete,
                )?;
                Ok(self.batch_answer(batch.count, batch.end, batch.next, &keys, &values))
            }
        }
    }
}
