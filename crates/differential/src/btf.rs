//! The kernel's check of BTF against ours: generated blobs, sound and damaged,
//! are given to both, and verdict, error number and log must be equal.

pub mod page;

use btf::Btf;
use btf::validate::{Reason, kernel_log, validate};
use kernel_client::{Unavailable, kernel_release};
use spec::SplitMix;
use std::collections::BTreeMap;
use std::ops::Range;
use sys::Errno;
use sys::bpf::{BtfAnswer, LogLevel, btf_load};
use testkit::btf::{damage, generate};

/// Bytes of log that the kernel may write about one blob.
const LOG_ROOM: usize = 1 << 20;
/// Differences after which a comparison stops.
const ENOUGH: usize = 5;

/// Result of a comparison.
#[derive(Debug, Default)]
pub struct BtfComparison {
    /// Number of compared blobs.
    pub blobs: u64,
    /// Of these, taken by the kernel.
    pub taken: u64,
    /// Number of rejected blobs by reason (without its numbers).
    pub reasons: BTreeMap<String, u64>,
    /// Differences; the comparison stops after some.
    pub differences: Vec<BtfDifference>,
}

/// A blob about which the answers differ.
#[derive(Debug)]
pub struct BtfDifference {
    /// Seed of the blob.
    pub seed: u64,
    /// The blob.
    pub blob: Vec<u8>,
    /// The kernel's answer.
    pub kernel: BtfAnswer,
    /// Ours.
    pub ours: BtfAnswer,
}

impl BtfDifference {
    /// The difference, as text.
    pub fn describe(&self) -> String {
        let text = |answer: &BtfAnswer| {
            let log = String::from_utf8_lossy(&answer.log);
            let lines: Vec<&str> = log.lines().collect();
            let last = lines[lines.len().saturating_sub(6)..].join("\n  ");
            format!("{:?}\n  {last}", answer.result)
        };
        let (kernel, ours) = (text(&self.kernel), text(&self.ours));
        let bytes: String = self.blob.iter().map(|byte| format!("{byte:02x}")).collect();
        let seed = self.seed;
        format!("seed {seed}\nkernel: {kernel}\nours: {ours}\nblob: {bytes}")
    }
}

/// Access to the running kernel.
pub struct Oracle {
    types: Btf<'static>,
}

impl Oracle {
    /// Checks that the kernel can be used.
    pub fn open() -> Result<Oracle, Unavailable> {
        kernel_release()?;
        let refused = |errno| Unavailable::Refused {
            call: "BPF_BTF_LOAD",
            errno,
        };
        let types = std::fs::read("/sys/kernel/btf/vmlinux")
            .map_err(|error| refused(Errno::from(error)))?;
        let types = Btf::parse(types).map_err(|_| refused(Errno(22)))?;
        btf_load(&generate::smallest(), LogLevel::NONE, 0)
            .result
            .map_err(refused)?;
        Ok(Oracle { types })
    }

    /// Compares blobs from these seeds: for each the valid one, and mutations.
    pub fn compare(&self, seeds: Range<u64>) -> BtfComparison {
        let mut comparison = BtfComparison::default();
        for seed in seeds {
            let sound = generate::blob(seed);
            self.ask(seed, sound.clone(), &mut comparison);
            let mut random = SplitMix::new(seed ^ 0xb7f);
            for _ in 0..7 {
                let mut blob = sound.clone();
                damage::damage(&mut blob, &mut random);
                self.ask(seed, blob, &mut comparison);
            }
            if comparison.differences.len() >= ENOUGH {
                break;
            }
        }
        comparison
    }

    /// Compares one blob.
    pub fn ask(&self, seed: u64, blob: Vec<u8>, comparison: &mut BtfComparison) {
        let refusal = validate(&blob, Some(&self.types)).err();
        let ours = BtfAnswer {
            result: refusal.map_or(Ok(()), |refusal| Err(Errno(refusal.errno()))),
            log: kernel_log(&blob, refusal.as_ref()),
        };
        let kernel = btf_load(&blob, LogLevel::LEVEL1, LOG_ROOM);
        comparison.blobs += 1;
        match refusal {
            None => comparison.taken += 1,
            Some(refusal) => *comparison.reasons.entry(name(refusal.reason)).or_default() += 1,
        }
        if ours != kernel {
            comparison.differences.push(BtfDifference {
                seed,
                blob,
                kernel,
                ours,
            });
        }
    }
}

/// The reason without its numbers.
fn name(reason: Reason) -> String {
    let debug = format!("{reason:?}");
    let end = debug.find(" {").unwrap_or(debug.len());
    debug[..end].to_owned()
}
