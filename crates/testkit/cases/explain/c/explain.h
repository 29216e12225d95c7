/* What the programs here need of the kernel's headers. */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define noinline __attribute__((noinline))

enum { HASH = 1, ARRAY = 2, RINGBUF = 27 };
enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
};

struct ethernet {
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
	u16 check;
	u32 from;
	u32 to;
};

struct tcp {
	u16 from;
	u16 to;
};

struct bpf_spin_lock {
	u32 val;
};

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const skb_load_bytes)(const void *ctx, u32 off, void *to, u32 len) = (void *)26;
static long (*const xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static void *(*const sk_lookup_tcp)(void *ctx, void *tuple, u32 size, u64 netns,
				    u64 flags) = (void *)84;
static long (*const sk_release)(void *sk) = (void *)86;
static long (*const spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const loop)(u32 rounds, void *callback, void *ctx, u64 flags) = (void *)181;
