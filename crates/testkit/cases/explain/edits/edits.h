/*
 * What the programs here need of the kernel's headers, and how they are read: the comment
 * `refused PROGRAM: CAUSE | WORDS | WORDS` stands on the line that is refused, with the cause's
 * name and words of the explanation. With -DEDIT each program has the edit that the explanation
 * proposes, and verifies.
 */
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
#define always_inline inline __attribute__((always_inline))
#define core __attribute__((preserve_access_index))

/* One text for the refused program, another for the edited one */
#ifdef EDIT
#define CHOOSE(refused, edited) edited
#else
#define CHOOSE(refused, edited) refused
#endif

enum { HASH = 1, ARRAY = 2 };
enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

struct sk_socket {
	u32 bound_dev_if;
	u32 family;
};

struct __sk_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 queue_mapping;
	u32 protocol;
	u32 vlan_present;
	u32 vlan_tci;
	u32 vlan_proto;
	u32 priority;
	u32 ingress_ifindex;
	u32 ifindex;
	u32 tc_index;
	u32 cb[5];
	u32 hash;
	u32 tc_classid;
	u32 data;
	u32 data_end;
	u32 napi_id;
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
	u32 local_port;
	u32 data_meta;
	u64 flow_keys;
	u64 tstamp;
	u32 wire_len;
	u32 gso_segs;
	struct sk_socket *sk;
};

struct raw_tracepoint {
	u64 args[2];
};

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static long (*const trace_printk)(const char *text, u32 size, ...) = (void *)6;
static u32 (*const get_prandom_u32)(void) = (void *)7;
static long (*const skb_load_bytes)(const void *ctx, u32 off, void *to, u32 len) = (void *)26;
static void *(*const get_current_task)(void) = (void *)35;
static long (*const probe_read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*const jiffies64)(void) = (void *)118;
static long (*const loop)(u32 rounds, void *callback, void *ctx, u64 flags) = (void *)181;
