/* What the programs with planted bugs share. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define inline inline __attribute__((always_inline))
#define swap16(value) ((u16)__builtin_bswap16(value))

enum { MAP_TYPE_HASH = 1, MAP_TYPE_ARRAY = 2 };
enum { IPV4 = 0x0800, IPV6 = 0x86dd, VLAN = 0x8100, QINQ = 0x88a8 };
enum { TCP = 6, UDP = 17, GRE = 47, HOP = 0, ROUTING = 43, FRAGMENT = 44, OPTIONS = 60 };
enum action { ABORTED, DROP, PASS };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const xdp_adjust_head)(void *ctx, int delta) = (void *)44;

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct ether {
	u8 to[6];
	u8 from[6];
	u16 type;
};

struct ip {
	u8 ihl : 4, version : 4;
	u8 tos;
	u16 length;
	u16 id;
	u16 fragment;
	u8 ttl;
	u8 protocol;
	u16 checksum;
	u32 from;
	u32 to;
};

struct ip6 {
	u32 flow;
	u16 length;
	u8 next;
	u8 hops;
	u8 from[16];
	u8 to[16];
};

struct ports {
	u16 from;
	u16 to;
};

#define FITS(pointer, end) ((void *)((pointer) + 1) <= (end))

char LICENSE[] SEC("license") = "Dual MIT/GPL";
