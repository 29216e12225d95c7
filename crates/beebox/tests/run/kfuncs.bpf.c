/*
 * Programs that call kernel functions of Linux 6.18: some as native code, one that only the
 * checked engine runs, and one that is not run.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c kfuncs.bpf.c && llvm-strip-19 -g kfuncs.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))

struct xdp_md {
	u32 data, data_end, data_meta;
	u32 ingress_ifindex, rx_queue_index, egress_ifindex;
};

struct bpf_sock_tuple {
	u32 saddr, daddr;
	u16 sport, dport;
};

struct bpf_ct_opts {
	int netns_id, error;
	u8 l4proto, dir;
	u16 ct_zone_id;
	u8 ct_zone_dir, reserved[3];
};

struct nf_conn {
	u32 use;
};
struct bpf_map {
	u32 type;
};
struct bpf_crypto_ctx {
	u32 use;
};
struct bpf_dynptr {
	u64 __opaque[2];
};

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern long long bpf_map_sum_elem_count(const struct bpf_map *map) __ksym;
extern struct nf_conn *bpf_xdp_ct_lookup(struct xdp_md *ctx, struct bpf_sock_tuple *tuple,
					 u32 tuple__sz, struct bpf_ct_opts *opts,
					 u32 opts__sz) __ksym;
extern void bpf_ct_release(struct nf_conn *entry) __ksym;
extern int bpf_strlen(const char *s__ign) __ksym;
extern void bpf_throw(u64 cookie) __ksym;
extern int bpf_crypto_encrypt(struct bpf_crypto_ctx *ctx, const struct bpf_dynptr *src,
			      const struct bpf_dynptr *dst,
			      const struct bpf_dynptr *siv__nullable) __ksym;

static long (*bpf_map_update_elem)(void *map, const void *key, const void *value,
				   u64 flags) = (void *)2;

struct {
	int (*type)[1];
	u32 *key;
	u64 *value;
	int (*max_entries)[16];
} sources SEC(".maps");

/* Counts the sources of packets, and looks up the connection of each. */
SEC("xdp")
int native(struct xdp_md *ctx)
{
	u32 *data = (void *)(long)ctx->data;
	void *end = (void *)(long)ctx->data_end;
	struct bpf_sock_tuple tuple = { .dport = 80 };
	struct bpf_ct_opts opts = { .netns_id = -1, .l4proto = 6 };
	struct nf_conn *entry;
	u64 one = 1;

	if ((void *)(data + 4) > end)
		return 0;
	tuple.saddr = data[0];
	bpf_map_update_elem(&sources, &tuple.saddr, &one, 0);
	bpf_rcu_read_lock();
	entry = bpf_xdp_ct_lookup(ctx, &tuple, sizeof(tuple), &opts, sizeof(opts));
	bpf_rcu_read_unlock();
	if (entry) {
		bpf_ct_release(entry);
		return 0;
	}
	data[1] = opts.error;
	data[2] = opts.ct_zone_dir;
	return 10 + bpf_map_sum_elem_count((void *)&sources);
}

SEC("xdp")
int text(struct xdp_md *ctx)
{
	char own[8] = "own";

	return bpf_strlen(own);
}

SEC("xdp")
int thrown(struct xdp_md *ctx)
{
	bpf_throw(7);
	return 0;
}

SEC("xdp")
int encrypted(struct xdp_md *ctx)
{
	return bpf_crypto_encrypt(0, 0, 0, 0);
}

char _license[] SEC("license") = "GPL";
