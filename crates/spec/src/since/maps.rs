//! First release of each map kind and of each flag of `BPF_MAP_CREATE`.

use super::Since;
use crate::maps::{MapFlags, MapKind};

impl MapKind {
    /// Release that introduced the map kind.
    #[rustfmt::skip]
    #[doc(hidden)]
    pub const fn since(self) -> Since {
        match self {
            MapKind::Hash => Since::commit(3, 19, "0f8e4bd8a1fc"),
            MapKind::Array => Since::commit(3, 19, "28fbcfa08d8e"),
            MapKind::ProgArray => Since::commit(4, 2, "04fd61ab36ec"),
            MapKind::PerfEventArray => Since::commit(4, 3, "ea317b267e9d"),
            MapKind::PercpuHash => Since::commit(4, 6, "824bd0ce6c7c"),
            MapKind::PercpuArray => Since::commit(4, 6, "a10423b87a7e"),
            MapKind::StackTrace => Since::commit(4, 6, "d5a3b1f69186"),
            MapKind::CgroupArray => Since::commit(4, 8, "4ed8ec521ed5"),
            MapKind::LruHash => Since::commit(4, 10, "29ba732acbee"),
            MapKind::LruPercpuHash => Since::commit(4, 10, "8f8449384ec3"),
            MapKind::LpmTrie => Since::commit(4, 11, "b95a5c4db09b"),
            MapKind::ArrayOfMaps => Since::commit(4, 12, "56f668dfe00d"),
            MapKind::HashOfMaps => Since::commit(4, 12, "bcc6b1b7ebf8"),
            MapKind::Devmap => Since::commit(4, 14, "546ac1ffb70d"),
            MapKind::Sockmap => Since::commit(4, 14, "174a79ff9515"),
            MapKind::Cpumap => Since::commit(4, 15, "6710e1126934"),
            MapKind::Xskmap => Since::commit(4, 18, "fbfc504a24f5"),
            MapKind::Sockhash => Since::commit(4, 18, "81110384441a"),
            MapKind::CgroupStorage => Since::commit(4, 19, "de9cbbaadba5"),
            MapKind::ReuseportSockarray => Since::commit(4, 19, "5dc4c4b7d4e8"),
            MapKind::PercpuCgroupStorage => Since::commit(4, 20, "b741f1630346"),
            MapKind::Queue => Since::commit(4, 20, "f1a2e44a3aec"),
            MapKind::Stack => Since::commit(4, 20, "f1a2e44a3aec"),
            MapKind::SkStorage => Since::commit(5, 2, "6ac99e8f23d4"),
            MapKind::DevmapHash => Since::commit(5, 4, "6f9d451ab1a3"),
            MapKind::StructOps => Since::commit(5, 6, "85d33df357b6"),
            MapKind::Ringbuf => Since::commit(5, 8, "457f44363a88"),
            MapKind::InodeStorage => Since::commit(5, 10, "8ea636848aca"),
            MapKind::TaskStorage => Since::commit(5, 11, "4cf1bc1f1045"),
            MapKind::BloomFilter => Since::commit(5, 16, "9330986c0300"),
            MapKind::UserRingbuf => Since::commit(6, 1, "583c1f420173"),
            MapKind::CgrpStorage => Since::commit(6, 2, "c4bcfb38a95e"),
            MapKind::Arena => Since::commit(6, 9, "317460317a02"),
            MapKind::InsnArray => Since::commit(6, 19, "b4ce5923e780"),
            MapKind::Rhash => Since::commit(7, 2, "16b4d3e2fb24"),
        }
    }
}

impl MapFlags {
    /// Names of the known flags that are set, with the release that introduced each.
    #[doc(hidden)]
    pub fn since(self) -> impl Iterator<Item = (&'static str, Since)> {
        let rows = FLAGS.iter().filter(move |(flag, _)| self.has(*flag));
        rows.map(|&(flag, since)| (flag.names().next().unwrap_or_default(), since))
    }
}

#[rustfmt::skip]
const FLAGS: &[(MapFlags, Since)] = &[
    (MapFlags::NO_PREALLOC, Since::commit(4, 6, "6c9059817432")),
    (MapFlags::NO_COMMON_LRU, Since::commit(4, 10, "29ba732acbee")),
    (MapFlags::NUMA_NODE, Since::commit(4, 14, "96eabe7a40aa")),
    (MapFlags::RDONLY, Since::commit(4, 15, "6e71b04a8224")),
    (MapFlags::WRONLY, Since::commit(4, 15, "6e71b04a8224")),
    (MapFlags::STACK_BUILD_ID, Since::commit(4, 17, "615755a77b24")),
    (MapFlags::ZERO_SEED, Since::commit(5, 0, "96b3b6c9091d")),
    (MapFlags::RDONLY_PROG, Since::commit(5, 2, "591fe9888d78")),
    (MapFlags::WRONLY_PROG, Since::commit(5, 2, "591fe9888d78")),
    (MapFlags::CLONE, Since::commit(5, 4, "8f51dfc73bf1")),
    (MapFlags::MMAPABLE, Since::commit(5, 5, "fc9702273e2e")),
    (MapFlags::PRESERVE_ELEMS, Since::commit(5, 10, "792caccc4526")),
    (MapFlags::INNER_MAP, Since::commit(5, 10, "4a8f87e60f6d")),
    (MapFlags::LINK, Since::commit(6, 4, "68b04864ca42")),
    (MapFlags::PATH_FD, Since::commit(6, 5, "cb8edce28073")),
    (MapFlags::VTYPE_BTF_OBJ_FD, Since::commit(6, 9, "fcc2c1fb0651")),
    (MapFlags::TOKEN_FD, Since::commit(6, 9, "a177fc2bf6fd")),
    (MapFlags::SEGV_ON_FAULT, Since::commit(6, 9, "317460317a02")),
    (MapFlags::NO_USER_CONV, Since::commit(6, 9, "317460317a02")),
    (MapFlags::RB_OVERWRITE, Since::header(6, 19)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_kind_never_has_an_earlier_release() {
        let releases = MapKind::ALL.iter().map(|kind| kind.since().release);
        assert!(releases.is_sorted());
    }

    #[test]
    fn every_flag_has_a_row_and_later_bits_came_later() {
        let flags: Vec<_> = FLAGS.iter().map(|(flag, _)| *flag).collect();
        let all: Vec<_> = MapFlags::ALL.iter().map(|(flag, _)| *flag).collect();
        assert_eq!(flags, all);
        assert!(FLAGS.iter().map(|(_, since)| since.release).is_sorted());
        let two = MapFlags::MMAPABLE.with(MapFlags::NO_PREALLOC);
        let names: Vec<_> = two.since().map(|(name, _)| name).collect();
        assert_eq!(names, ["BPF_F_NO_PREALLOC", "BPF_F_MMAPABLE"]);
    }
}
