/* Programs that need something of their own when each is loaded alone. Made by
 * clang-19 -target bpf -mcpu=v3 -O2 -g -c alone.c */
#define SEC(name) __attribute__((section(name), used))
#define TAG(text) __attribute__((btf_decl_tag(text)))
#define OF_KERNEL __attribute__((preserve_access_index))

typedef unsigned int u32;

char license_of_file[] SEC("license") = "GPL";

struct __sk_buff {
	u32 len;
};

struct xdp_md {
	u32 data;
	u32 data_end;
};

/* An array without a stated size. */
struct {
	int (*type)[2];
	u32 *key;
	u32 *value;
} unsized SEC(".maps");

static void *(*const map_lookup)(void *map, const void *key) = (void *)1;

SEC("freplace/absent")
int replaced(struct __sk_buff *skb)
{
	return skb->len;
}

SEC("xdp")
int reads_map(struct xdp_md *ctx)
{
	u32 key = 0;
	return map_lookup(&unsized, &key) ? 2 : 1;
}

struct thing {
	int moved;
} OF_KERNEL;

SEC("kprobe")
TAG("comment:1:test_prog_flags=BPF_F_STRICT_ALIGNMENT")
TAG("comment:2:test_btf_path=moved.o")
int tagged(void *ctx)
{
	return __builtin_preserve_field_info(((struct thing *)0)->moved, 0);
}

struct sock;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	char name[16];
} OF_KERNEL;

SEC("struct_ops")
u32 ssthresh(void *ctx)
{
	return 2;
}

SEC("struct_ops")
u32 undo_cwnd(void *ctx)
{
	return 3;
}

SEC(".struct_ops")
struct tcp_congestion_ops own = {
	.ssthresh = (void *)ssthresh,
	.undo_cwnd = (void *)undo_cwnd,
	.name = "own",
};
