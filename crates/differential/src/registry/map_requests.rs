//! The smallest map of every kind.

use spec::maps::MapKind;
use sys::bpf::{BtfObject, Map, MapRequest};

use super::fields::plain_value;

/// `BPF_F_NO_PREALLOC`.
const NO_PREALLOC: u32 = 1;
/// `BPF_F_MMAPABLE`.
const MMAPABLE: u32 = 1 << 10;

/// Creation request of a map of the kind; `None` for kinds that need more than numbers and an
/// inner map.
pub(super) fn request<'a>(kind: MapKind, inner: Option<&'a Map>) -> Option<MapRequest<'a>> {
    use MapKind as K;
    let (key_size, value_size, max_entries, flags) = match kind {
        K::Hash | K::LruHash | K::PercpuHash | K::LruPercpuHash => (4, 8, 4, 0),
        K::Array | K::PercpuArray | K::StackTrace => (4, 8, 4, 0),
        K::ProgArray | K::PerfEventArray | K::CgroupArray => (4, 4, 4, 0),
        K::ArrayOfMaps | K::HashOfMaps => (4, 4, 4, 0),
        K::Devmap | K::DevmapHash | K::Sockmap | K::Sockhash => (4, 4, 4, 0),
        K::Cpumap | K::Xskmap => (4, 4, 4, 0),
        K::LpmTrie => (8, 8, 4, NO_PREALLOC),
        // struct bpf_cgroup_storage_key
        K::CgroupStorage | K::PercpuCgroupStorage => (16, 8, 0, 0),
        K::ReuseportSockarray => (4, 8, 4, 0),
        K::Queue | K::Stack | K::BloomFilter => (0, 8, 4, 0),
        K::SkStorage | K::InodeStorage | K::TaskStorage | K::CgrpStorage => (4, 8, 0, NO_PREALLOC),
        K::Ringbuf | K::UserRingbuf => (0, 0, 4096, 0),
        K::Arena => (0, 0, 1, MMAPABLE),
        K::InsnArray => (4, 16, 4, 0),
        K::Rhash => (4, 8, 4, NO_PREALLOC),
        _ => return None,
    };
    Some(MapRequest {
        map_type: kind.number(),
        key_size,
        value_size,
        max_entries,
        flags,
        inner,
        ..MapRequest::default()
    })
}

/// Asks for each kind of map with what it takes.
pub(super) fn for_each(mut ask: impl FnMut(MapKind, &MapRequest<'_>)) {
    let inner = request(MapKind::Array, None).and_then(|array| Map::create(&array).ok());
    let value = plain_value();
    let types = BtfObject::load(&value.blob).ok();
    for &kind in MapKind::ALL {
        let holds_maps = matches!(kind, MapKind::ArrayOfMaps | MapKind::HashOfMaps);
        let is_storage = matches!(
            kind,
            MapKind::SkStorage
                | MapKind::InodeStorage
                | MapKind::TaskStorage
                | MapKind::CgrpStorage
        );
        let Some(plain) = request(kind, inner.as_ref().filter(|_| holds_maps)) else {
            continue;
        };
        match (is_storage, &types) {
            (false, _) => ask(kind, &plain),
            (true, None) => {}
            (true, Some(types)) => ask(
                kind,
                &MapRequest {
                    btf: Some(types),
                    btf_key: value.key.0,
                    btf_value: value.value.0,
                    ..plain
                },
            ),
        }
    }
}

/// A map of every kind that this kernel creates.
pub(super) fn create_all() -> Vec<(MapKind, Map)> {
    let mut maps = Vec::new();
    for_each(|kind, request| maps.extend(Map::create(request).ok().map(|map| (kind, map))));
    maps
}
