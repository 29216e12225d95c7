/* Programs that replace or trace functions of replaced.bpf.c.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c replacements.bpf.c && llvm-strip-19 -g replacements.bpf.o
 */
#include "attach.h"

struct __sk_buff {
	u32 len;
};

struct {
	__uint(type, 24); /* BPF_MAP_TYPE_SK_STORAGE */
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC */
	__type(key, int);
	__type(value, int);
} sockets SEC(".maps");

SEC("freplace/one")
int reads_packet(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	if (data + 14 > end)
		return 1;
	return *(char *)data;
}

SEC("freplace/one")
int changes_packet(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, 4);
}

SEC("freplace/two")
int second(struct xdp_md *ctx, int number)
{
	return number > 3 ? ctx->rx_queue_index : 0;
}

SEC("freplace/two")
int too_few(struct xdp_md *ctx)
{
	return 0;
}

SEC("freplace/two")
int wider(struct xdp_md *ctx, long number)
{
	return 0;
}

SEC("freplace/two")
int other_context(struct __sk_buff *ctx, int number)
{
	return 0;
}

SEC("freplace/queue")
int of_static(struct xdp_md *ctx, int *more)
{
	return 0;
}

SEC("freplace/shortened")
int changes_too(struct xdp_md *ctx)
{
	return bpf_xdp_adjust_head(ctx, 8);
}

SEC("freplace/numbers")
int product(int one, long other)
{
	return one * other;
}

SEC("freplace/numbers")
void nothing(int one, long other)
{
}

SEC("freplace/main_program")
int any_value(struct xdp_md *ctx)
{
	return 77;
}

SEC("freplace/numbers")
int other_helper(int one, long other)
{
	return bpf_get_prandom_u32() + bpf_skb_load_bytes((void *)other, 0, 0, 0);
}

SEC("fexit/one")
int returns_number(u64 *ctx)
{
	return ctx[1];
}

SEC("fentry/main_program")
int enters(u64 *ctx)
{
	return 0;
}

SEC("fexit/queue")
int behind_static(u64 *ctx)
{
	return ctx[5] ? 0 : 0;
}

SEC("fexit/queue")
int beyond_static(u64 *ctx)
{
	return ctx[6] ? 0 : 0;
}

SEC("fentry/numbers")
int first_number(u64 *ctx)
{
	return ctx[0] * 0;
}

SEC("fmod_ret/numbers")
int modifies(u64 *ctx)
{
	return 0;
}

SEC("freplace/removed")
int instead_of_removed(struct xdp_md *ctx)
{
	return 0;
}

SEC("freplace/next_to_last")
int instead_of_next_to_last(struct xdp_md *ctx)
{
	return 0;
}

SEC("freplace/last")
int instead_of_last(struct xdp_md *ctx)
{
	return 0;
}

SEC("fentry/removed_static")
int enters_removed(u64 *ctx)
{
	return 0;
}

SEC("fentry/numbers")
int stores(u64 *ctx)
{
	return bpf_sk_storage_delete(&sockets, bpf_get_current_task_btf()) * 0;
}

char LICENSE[] SEC("license") = "GPL";
