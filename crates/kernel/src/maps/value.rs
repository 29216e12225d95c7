//! Values: how they are copied in and out.

use std::ops::Range;

use btf::fields::{FieldKind, FieldRecord};
use spec::{Errno, Result};
use vm::sync::atomic::AtomicU64;
use vm::{CellSlice, LockedValue, OwningField};

use crate::object_layout::owning_fields;

/// Layout of a map's values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueLayout {
    /// Bytes of a value.
    pub size: usize,
    /// Byte ranges of special fields (locks, timers, kptrs and the like), ascending. Copies
    /// leave them out; what the system call reads has zeros there.
    pub special: Vec<Range<usize>>,
    /// Offset of the spin lock, which is one of the special fields.
    pub lock: Option<usize>,
    /// Offset of the resilient lock, which is one of the special fields.
    pub resilient_lock: Option<usize>,
    /// Offset of the timer, which is one of the special fields.
    pub timer: Option<usize>,
    /// Offset of the work queue, which is one of the special fields.
    pub workqueue: Option<usize>,
    /// The special fields that own objects.
    pub owning: Vec<OwningField>,
}

impl ValueLayout {
    /// Values of so many bytes without special fields.
    pub fn plain(size: usize) -> ValueLayout {
        ValueLayout {
            size,
            ..ValueLayout::default()
        }
    }

    /// Values of so many bytes with these special fields.
    pub fn with_fields(size: usize, fields: &FieldRecord) -> ValueLayout {
        let offset_of = |kind| fields.offset_of(kind).map(|offset| offset as usize);
        ValueLayout {
            size,
            special: fields.ranges().collect(),
            lock: offset_of(FieldKind::SpinLock),
            resilient_lock: offset_of(FieldKind::ResSpinLock),
            timer: offset_of(FieldKind::Timer),
            workqueue: offset_of(FieldKind::Workqueue),
            owning: owning_fields(fields),
        }
    }

    /// Offsets of fields that the timers of the host know.
    pub(super) fn timers(&self) -> impl Iterator<Item = usize> {
        self.timer.into_iter().chain(self.workqueue)
    }

    /// Takes the spin lock of a value, if there is one. EBUSY if it stays held: Linux waits
    /// for ever.
    pub(super) fn lock<'a>(&self, cells: &'a [AtomicU64]) -> Result<Option<LockedValue<'a>>> {
        let value = CellSlice::new(cells, cells.len() * 8);
        match self.lock {
            Some(offset) => LockedValue::lock(value, offset)
                .map(Some)
                .ok_or(Errno::EBUSY),
            None => Ok(None),
        }
    }

    /// Cells that a value takes.
    pub(super) fn cells(&self) -> usize {
        self.size.div_ceil(8)
    }

    /// Bytes of a value rounded up to whole cells, as per-CPU values are exchanged.
    pub(super) fn rounded(&self) -> usize {
        self.size.next_multiple_of(8)
    }

    /// Byte ranges of the first `len` bytes that are copied.
    fn copied(&self, len: usize) -> impl Iterator<Item = Range<usize>> + '_ {
        let starts = std::iter::once(0).chain(self.special.iter().map(|field| field.end));
        let ends = self.special.iter().map(|field| field.start).chain([len]);
        starts.zip(ends).map(|(start, end)| start..end)
    }

    /// Writes a value into its cells. Special fields keep what they hold.
    #[inline]
    pub(super) fn write(&self, cells: &[AtomicU64], value: &[u8]) {
        let slice = CellSlice::new(cells, cells.len() * 8);
        if self.special.is_empty() {
            return slice.write(0, value);
        }
        for range in self.copied(value.len()) {
            slice.write(range.start, &value[range]);
        }
    }

    /// Sets a value to zero but for its special fields.
    pub(super) fn clear(&self, cells: &[AtomicU64]) {
        self.write(cells, &vec![0; cells.len() * 8]);
    }

    /// Reads a value out of its cells; special fields become zero.
    pub(super) fn read(&self, cells: &[AtomicU64], out: &mut [u8]) {
        let slice = CellSlice::new(cells, cells.len() * 8);
        slice.read(0, out);
        for field in &self.special {
            out[field.clone()].fill(0);
        }
    }
}
