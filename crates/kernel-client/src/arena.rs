//! Arenas of the running kernel, at the addresses that ours have.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use program::MapParams;
use spec::maps::MapKind;
use sys::Errno;
use sys::bpf::{ArenaMapping, Map, MapRequest};

/// Bytes of a page.
const PAGE: u64 = 4096;

/// Arenas are mapped one at a time: many of them have the same address.
static MAPPED: Mutex<()> = Mutex::new(());

/// `map_extra` of a map: of an arena without an address, that of ours.
pub fn extra(params: &MapParams) -> u64 {
    match params.kind() {
        Some(MapKind::Arena) => params.arena_start(),
        _ => params.extra,
    }
}

/// Creates a map, which may be an arena: the kernel returns the memory of freed ones late.
///
/// # Errors
/// The kernel's.
pub fn create(request: &MapRequest<'_>) -> Result<Map, Errno> {
    const ENOMEM: Errno = Errno(12);
    const ATTEMPTS: u32 = 100;
    let is_arena = request.map_type == MapKind::Arena.number();
    let mut made = Map::create(request);
    for _ in 0..ATTEMPTS {
        if !is_arena || !matches!(made, Err(ENOMEM)) {
            break;
        }
        thread::sleep(Duration::from_millis(50));
        made = Map::create(request);
    }
    made
}

/// Writes bytes into an arena as user space does.
///
/// # Errors
/// The kernel's.
pub fn write(map: &Map, params: &MapParams, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
    with_mapping(map, params, |mapping| mapping.write(offset as usize, bytes))
}

/// The pages of an arena that are not zero, by offset: of one of more than `2 * MOST_READ` pages
/// the first and the last. All of them are there afterwards.
///
/// # Errors
/// The kernel's; EFAULT if user space may not use pages that programs have not allocated.
pub fn pages(map: &Map, params: &MapParams) -> Result<Vec<(u64, Vec<u8>)>, Errno> {
    with_mapping(map, params, |mapping| {
        let mut pages = Vec::new();
        for page in read_pages(params) {
            let mut bytes = vec![0; PAGE as usize];
            mapping.read((page * PAGE) as usize, &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                pages.push((page * PAGE, bytes));
            }
        }
        Ok(pages)
    })
}

/// Pages at each end of an arena that [`pages`] reads.
const MOST_READ: u64 = 128;

/// The indices of pages that [`pages`] reads.
pub fn read_pages(params: &MapParams) -> impl Iterator<Item = u64> {
    let count = u64::from(params.max_entries);
    let first = 0..count.min(MOST_READ);
    first
        .clone()
        .chain(first.end.max(count.saturating_sub(MOST_READ))..count)
}

fn with_mapping<R>(
    map: &Map,
    params: &MapParams,
    run: impl FnOnce(&ArenaMapping) -> Result<R, Errno>,
) -> Result<R, Errno> {
    let _alone = MAPPED.lock().unwrap_or_else(PoisonError::into_inner);
    let len = u64::from(params.max_entries) * PAGE;
    let mapping = ArenaMapping::at(map, params.arena_start(), len as usize)?;
    run(&mapping)
}
