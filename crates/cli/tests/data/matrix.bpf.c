/* Programs that kernels of some releases take: arguments, load flags, guarded helpers and fields. */
#define SEC(name) __attribute__((section(name), used))
#define CORE __attribute__((preserve_access_index))
#define FIELD_EXISTS 2
#define VALUE_EXISTS 0

typedef unsigned int u32;
typedef unsigned long long u64;

static long (*get_buff_len)(void *ctx) = (void *)188;
static int (*trace_printk)(const char *format, u32 size, u64 value) = (void *)6;

struct __sk_buff {
	u32 len;
	u64 hwtstamp;
} CORE;

enum bpf_func_id___named {
	BPF_FUNC_xdp_get_buff_len___named = 1,
};

char _license[] SEC("license") = "GPL";

/* An argument that points to a character. */
SEC("fentry/kern_path") int text_argument(u64 *ctx)
{
	char format[] = "%lx";

	return trace_printk(format, sizeof(format), ctx[0]) & 0;
}

/* The state of the previous task came with Linux 5.18. */
SEC("tp_btf/sched_switch") int later_argument(u64 *ctx)
{
	char format[] = "%lx";

	return trace_printk(format, sizeof(format), ctx[3]) & 0;
}

/* A flag of Linux 5.18. */
SEC("xdp.frags") int fragments(void *ctx)
{
	return 2;
}

/* A helper of Linux 5.18, guarded. */
SEC("xdp") int guarded_helper(void *ctx)
{
	if (__builtin_preserve_enum_value(*(enum bpf_func_id___named *)BPF_FUNC_xdp_get_buff_len___named,
					  VALUE_EXISTS))
		return get_buff_len(ctx) > 100 ? 1 : 2;
	return 2;
}

/* A field of Linux 5.16. */
SEC("tc") int later_field(struct __sk_buff *skb)
{
	return skb->hwtstamp ? 0 : 2;
}

SEC("tc") int guarded_field(struct __sk_buff *skb)
{
	if (__builtin_preserve_field_info(skb->hwtstamp, FIELD_EXISTS))
		return skb->hwtstamp ? 0 : 2;
	return 2;
}
