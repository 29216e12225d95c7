//! Layout of a table: the numbers of `enum header` in
//! `bpf/gateway.bpf.c`, as indices of numbers of 4 bytes.

/// Number of rules.
pub(crate) const RULES: usize = 1;
/// Words of a summary.
pub(crate) const SUMMARY_WORDS: usize = 2;
/// Entries of a directory of blocks.
pub(crate) const BLOCKS: usize = 3;
/// First entries of the tries of IPv4 addresses: source, destination.
pub(crate) const TRIES: usize = 4;
/// Lower bounds of IPv6 addresses, in units of 8 bytes.
pub(crate) const BOUNDS: usize = 6;
/// Their number.
pub(crate) const BOUND_COUNTS: usize = 8;
/// Their classes.
pub(crate) const BOUND_CLASSES: usize = 10;
/// Classes of protocols.
pub(crate) const PROTOCOLS: usize = 12;
/// Classes of ports, in units of 4 bytes: source, destination.
pub(crate) const PORTS: usize = 13;
/// By field: summaries in units of 8 bytes.
pub(crate) const SUMMARIES: usize = 15;
/// By field: directories.
pub(crate) const DIRECTORIES: usize = 20;
/// Blocks, in units of 8 bytes.
pub(crate) const BITMAPS: usize = 25;
/// Actions.
pub(crate) const ACTIONS: usize = 26;
/// Index of the first counter.
pub(crate) const COUNTERS: usize = 27;
/// Cache, in units of 8 bytes.
pub(crate) const CACHE: usize = 28;
/// Bits that choose a set of the cache; 0: no cache.
pub(crate) const CACHE_SET_BITS: usize = 29;
/// Bits of the key of the cache.
pub(crate) const KEY_BITS: usize = 30;
/// Bit offsets of the classes of all fields but the first in the key.
pub(crate) const KEY_SHIFTS: usize = 31;
/// Numbers of 8 bytes of the header.
pub(crate) const HEADER_WORDS: usize = 32;

/// Words of a block, of 64 rules each.
pub(crate) const BLOCK_WORDS: usize = 8;
/// A leaf of a trie.
pub(crate) const IS_LEAF: u32 = 1 << 31;
/// Values of the field of protocols: 256 protocols for each state of their header.
pub(crate) const PROTOCOL_VALUES: u32 = 4 << 8;
/// The port of packets without ports.
pub(crate) const NO_PORT: u32 = 1 << 16;
/// Ports of a page.
pub(crate) const PAGE: u32 = 64;
/// Entries of the index of pages, rounded up to whole numbers of 8 bytes.
pub(crate) const PAGE_INDEX: usize = (NO_PORT / PAGE) as usize + 4;
/// Bits of a rule in an entry of the cache.
pub(crate) const RULE_BITS: u32 = 17;
/// Odd numbers by which keys of the cache are multiplied.
pub(crate) const SPREAD: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9];
