/* What the objects of these tests need of Linux, in our own words. */

#define SEC(name) __attribute__((section(name), used))
#define NOINLINE __attribute__((noinline))
#define HIDDEN __attribute__((visibility("hidden")))
#define WEAK __attribute__((weak))
#define TAG(text) __attribute__((btf_decl_tag(text)))

/* Attributes of a map: a number is the length of an array. */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const for_each_map_elem)(void *map, void *callback, void *ctx, u64 flags) = (void *)164;
static long (*const loop)(u32 times, void *callback, void *ctx, u64 flags) = (void *)181;

#ifndef NO_LICENSE
char license_of_file[] SEC("license") = "Dual MIT/GPL";
#endif
