//! The address space of checked runs: where memory lies that programs see.
//!
//! The addresses look like those of Linux on x86-64: they are in the upper half of the 64 bits,
//! neither half of 32 bits is zero, and memory is aligned as much as Linux aligns it and no
//! further, so that programs that cut, shift or compare addresses go the way that they go in
//! Linux.
//!
//! | from | memory | as in Linux |
//! |---|---|---|
//! | [`Addresses::regions`] | context, packet and other regions, one after the other, with one upper half | direct map |
//! | [`Addresses::task`] | the task | direct map |
//! | [`Addresses::sockets`] | sockets of the network | direct map |
//! | [`Addresses::variables`] | per-CPU variables of the kernel | direct map |
//! | [`Addresses::fragments`] | fragments of a packet, whole pages | direct map |
//! | [`Addresses::maps`] | structures of maps | direct map |
//! | [`Addresses::given`] | kernel memory that a test gives | direct map |
//! | [`Addresses::values`] | keys and values of maps | direct map |
//! | [`Addresses::objects`] | objects that programs allocate | direct map |
//! | [`Addresses::frames`] | stack frames, callers above what they call | vmalloc |
//! | [`Addresses::functions`] | functions of programs | modules |
//!
//! Each kind of memory begins at a place that a seed chooses, as Linux chooses it when it boots
//! (KASLR) and allocates; equal seeds choose equal places. Offsets in pages are those of Linux's
//! allocators whatever the seed is.

use spec::SplitMix;

/// Offset in its page of a region that is no packet, as of memory of `kmalloc`.
pub const IN_PAGE: u64 = 0x940;

/// Bytes from the address of the task that runs to its registers in user space.
pub const USER_REGISTERS: u64 = 0x10_0000;

/// Offset of a key or value from an address with 16 zero bits: it has the alignment of 8 bytes
/// that values have.
pub const IN_VALUES: u64 = 0x29b8;

/// Bytes of a page.
const PAGE: u64 = 0x1000;
/// Most pages by which a seed moves a kind of memory.
const PAGES: u64 = 0x1_0000;
/// Most steps of 4 GiB by which a seed moves the direct map.
const DIRECT_MAP_STEPS: u64 = 0x400;
/// The same of stack frames.
const FRAME_STEPS: u64 = 0x1000;

/// The places of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// First address of the regions; all have its upper 32 bits.
    pub regions: u64,
    /// End of the regions.
    pub regions_end: u64,
    /// Address that stands for the current task: one of the kernel, where nothing is. Verified
    /// programs that read a task do not run as native code.
    pub task: u64,
    /// Address of the memory of the sockets of the network.
    pub sockets: u64,
    /// Address that stands for the per-CPU variables of the kernel: that of the first CPU's
    /// block. Verified programs that read them do not run as native code.
    pub variables: u64,
    /// Address of the first fragment of the packet.
    pub fragments: u64,
    /// Address of the structure of the first map.
    pub maps: u64,
    /// Address of the first object of kernel memory that a test gives.
    pub given: u64,
    /// First address of keys and values of maps.
    pub values: u64,
    /// End of keys and values of maps.
    pub values_end: u64,
    /// Address of the first object that a program allocates.
    pub objects: u64,
    /// End of the first stack frame. Those of called functions are below it.
    pub frames: u64,
    /// Address of the first instruction of a program.
    pub functions: u64,
}

impl Addresses {
    /// Those of seed 0.
    pub const DEFAULT: Addresses = Addresses {
        regions: 0xffff_8881_1035_d000,
        regions_end: 0xffff_8881_f000_0000,
        task: 0xffff_8882_1038_10c0,
        sockets: 0xffff_8883_4254_5000,
        variables: 0xffff_8884_3bc1_9000,
        fragments: 0xffff_8885_2b31_d000,
        maps: 0xffff_8886_1433_2e00,
        given: 0xffff_8897_1a6c_4940,
        values: 0xffff_88a0_1257_0000,
        values_end: 0xffff_a000_0000_0000,
        objects: 0xffff_a000_10cd_b048,
        frames: 0xffff_c900_1384_7c08,
        functions: 0xffff_ffff_a002_c3a8,
    };

    /// Those that a seed chooses: those of [`Addresses::DEFAULT`], moved by less than 256 MiB
    /// each, and all kinds of memory that Linux has in one area by the same multiple of 4 GiB.
    pub fn from_seed(seed: u64) -> Addresses {
        let mut places = Addresses::DEFAULT;
        if seed == 0 {
            return places;
        }
        // Other numbers than those that programs get from the seed.
        let mut random = SplitMix::new(!seed);
        let mut below = |count: u64| (random.next_u64() >> 32) % count;
        let (direct_map, frames) = (below(DIRECT_MAP_STEPS) << 32, below(FRAME_STEPS) << 32);
        for place in [
            &mut places.regions,
            &mut places.task,
            &mut places.sockets,
            &mut places.variables,
            &mut places.fragments,
            &mut places.maps,
            &mut places.given,
            &mut places.objects,
        ] {
            *place += direct_map + below(PAGES) * PAGE;
        }
        // Places of values have 16 zero bits.
        places.values += direct_map + ((below(PAGES) * PAGE) & !0xffff);
        places.regions_end += direct_map;
        places.values_end += direct_map;
        places.frames += frames + below(PAGES) * PAGE;
        places.functions += below(PAGES) * PAGE;
        places
    }
}

impl Default for Addresses {
    fn default() -> Addresses {
        Addresses::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    fn places(addresses: &Addresses) -> [u64; 13] {
        let Addresses {
            regions,
            regions_end,
            task,
            sockets,
            variables,
            fragments,
            maps,
            given,
            values,
            values_end,
            objects,
            frames,
            functions,
        } = *addresses;
        [
            regions,
            regions_end,
            task,
            sockets,
            variables,
            fragments,
            maps,
            given,
            values,
            values_end,
            objects,
            frames,
            functions,
        ]
    }

    #[test]
    fn seeds_choose_places_that_look_like_those_of_linux() {
        let default = places(&Addresses::DEFAULT);
        assert_eq!(places(&Addresses::from_seed(0)), default);
        let mut known = vec![default];
        for seed in (1..1000).chain([u64::MAX, u64::MAX - 1]) {
            let addresses = Addresses::from_seed(seed);
            let places = places(&addresses);
            assert_eq!(addresses, Addresses::from_seed(seed));
            assert!(!known.contains(&places), "seed {seed}");
            known.push(places);
            assert!(places.is_sorted(), "{addresses:x?}");
            assert_eq!(addresses.regions >> 32, addresses.regions_end >> 32);
            assert_eq!(addresses.values % 0x1_0000, 0);
            for (place, default) in places.into_iter().zip(default) {
                assert_eq!(place % 0x1000, default % 0x1000);
                assert!(place as u32 >= 0x1000_0000 || place as u32 == 0);
                assert!(place >= 0xffff_8880_0000_0000);
            }
        }
    }
}
