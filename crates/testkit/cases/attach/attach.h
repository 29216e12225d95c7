/* What the programs here need of the kernel's headers. */
typedef unsigned char u8;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
#define noinline __attribute__((noinline))
#define __ksym __attribute__((section(".ksyms")))

enum { XDP_DROP = 1, XDP_PASS = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
	u32 data_meta;
	u32 ingress_ifindex;
	u32 rx_queue_index;
	u32 egress_ifindex;
};

static int (*bpf_xdp_adjust_head)(struct xdp_md *, int) = (void *)44;
static int (*bpf_skb_load_bytes)(const void *, u32, void *, u32) = (void *)26;
static u32 (*bpf_get_prandom_u32)(void) = (void *)7;
static long (*bpf_d_path)(void *, char *, u32) = (void *)147;
static long (*bpf_copy_from_user)(void *, u32, const void *) = (void *)148;
static long (*bpf_set_retval)(int) = (void *)187;
static long (*bpf_get_func_ret)(void *, u64 *) = (void *)184;
static void *(*bpf_inode_storage_get)(void *, void *, void *, u64) = (void *)145;
static long (*bpf_setsockopt)(void *, int, int, char *, int) = (void *)49;
static long (*bpf_map_update_elem)(void *, const void *, const void *, u64) = (void *)2;
static long (*bpf_sk_storage_delete)(void *, void *) = (void *)108;
static void *(*bpf_get_current_task_btf)(void) = (void *)158;
