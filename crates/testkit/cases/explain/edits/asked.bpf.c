/* Mistakes that people ask about: parameters, keys, copies and addresses that are taken for others. */
#include "kernel.h"

enum { BLOOM_FILTER = 30, QUEUE = 22, TASK_STORAGE = 29 };

static long (*const map_peek_elem)(void *map, void *value) = (void *)89;
static long (*const compare_strings)(const char *one, u32 size, const char *other) = (void *)182;

struct guarded {
	struct bpf_spin_lock lock;
	u32 count;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct guarded);
} guarded SEC(".maps");

struct {
	__uint(type, HASH);
	__uint(max_entries, 8);
	__type(key, u64);
	__type(value, u32);
} groups SEC(".maps");

struct {
	__uint(type, BLOOM_FILTER);
	__uint(max_entries, 8);
	__type(value, u32);
} seen SEC(".maps");

struct {
	__uint(type, QUEUE);
	__uint(max_entries, 8);
	__type(value, u32);
} queue SEC(".maps");

struct buffer {
	u32 len;
	char bytes[CHOOSE(4096, 8192)];
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct buffer);
} buffers SEC(".maps");

struct pt_regs {
	u64 saved[10];
	u64 ax, cx, dx, si, di;
};

u64 *shared;
char text[16];
static const char word[] = "sh";

SEC("kprobe/vfs_read")
int second_parameter(struct pt_regs *ctx, void *from) /* refused second_parameter: uninitialized | only one argument, in r1 | BPF_KPROBE */
{
	u64 word = 0;

	probe_read_user(&word, sizeof(word), CHOOSE(from, (void *)ctx->si));
	return word & 1;
}

SEC("xdp")
int atomic_on_number(struct xdp_md *ctx)
{
	static u64 counter;
	u64 *where = CHOOSE(shared, &counter);

	if (where)
		__sync_fetch_and_add(where, 1); /* refused atomic_on_number: not-a-pointer | a pointer stored in a map is a number */
	return XDP_PASS;
}

SEC("xdp")
int null_plus_offset(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;
	u8 *header = 0;

	if (data + 34 > end)
		return XDP_DROP;
	if (((u16 *)data)[6] == 8)
		header = data + 14;
	asm volatile("" : "+r"(header));
	if (CHOOSE(0, !header))
		return XDP_PASS;
	header += 9;
	asm volatile("" : "+r"(header));
	return *header; /* refused null_plus_offset: not-a-pointer | null plus 9 | compare it with null before anything is added */
}

SEC("tc")
int lock_of_copy(struct __sk_buff *skb)
{
	struct guarded copy = {}, *value;
	u32 key = 0;

	value = map_lookup_elem(&guarded, &key);
	if (!value)
		return 0;
	spin_lock(CHOOSE(&copy.lock, &value->lock)); /* refused lock_of_copy: argument-type | must lie in the value of a map | not a copy */
	CHOOSE(copy.count, value->count)++;
	spin_unlock(CHOOSE(&copy.lock, &value->lock));
	return 0;
}

#ifdef EDIT
static always_inline char first_of(const char *from)
{
	char first = 0;

	probe_read_kernel(&first, 1, from);
	return first;
}
#endif

SEC("kprobe/do_unlinkat")
int address_read_by_call(struct pt_regs *ctx)
{
	char *name = 0;

	probe_read_kernel(&name, sizeof(name), (void *)ctx->si);
	if (!name)
		return 0;
	return CHOOSE(*(volatile char *)name, first_of(name)) == 't'; /* refused address_read_by_call: not-a-pointer | a number that `bpf_probe_read_kernel` wrote | BPF_CORE_READ */
}

SEC("xdp")
int key_too_short(struct xdp_md *ctx)
{
	CHOOSE(u32, u64) id = ctx->ingress_ifindex;

	return map_lookup_elem(&groups, &id) ? XDP_PASS : XDP_DROP; /* refused key_too_short: out-of-bounds | the 8 bytes of a key of map `groups` | declared with */
}

SEC("xdp")
int bloom_filter_key(struct xdp_md *ctx)
{
	u32 id = ctx->ingress_ifindex;

	return CHOOSE(map_lookup_elem, map_peek_elem)(&seen, &id) ? XDP_DROP : XDP_PASS; /* refused bloom_filter_key: map-without-keys | bloom_filter | bpf_map_peek_elem */
}

SEC("xdp")
int queue_key(struct xdp_md *ctx)
{
	u32 id = ctx->ingress_ifindex;

	return CHOOSE(map_lookup_elem, map_peek_elem)(&queue, &id) ? XDP_DROP : XDP_PASS; /* refused queue_key: map-without-keys | queue | bpf_map_pop_elem */
}

SEC("xdp")
int compared_difference(struct xdp_md *ctx)
{
	void *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;

	if (CHOOSE(end - data < 14, data + 14 > end))
		return XDP_DROP;
	return *(volatile u8 *)(data + 12); /* refused compared_difference: packet-check-difference | if (data + 13 > data_end) return */
}

SEC("kprobe/ksys_read")
int offset_and_size(struct pt_regs *ctx)
{
	u32 key = 0, at, size;
	struct buffer *buffer = map_lookup_elem(&buffers, &key);

	if (!buffer)
		return 0;
	at = buffer->len;
	size = ctx->dx;
	asm volatile("" : "+r"(at), "+r"(size));
	at &= 4095;
	size &= 4095;
	probe_read_user(buffer->bytes + at, size, (void *)ctx->si); /* refused offset_and_size: offset-too-large | as large as the sum */
	return 0;
}

SEC("raw_tp/sys_enter")
int strings_exchanged(struct raw_tracepoint *ctx)
{
	return compare_strings(CHOOSE(word, text), CHOOSE(3, 16), CHOOSE(text, word)); /* refused strings_exchanged: argument-string | comes first */
}

struct {
	__uint(type, TASK_STORAGE);
	__uint(map_flags, 1);
	__type(key, u32);
	__type(value, u64);
} of_tasks SEC(".maps");

SEC("raw_tp/sys_enter")
int task_as_number(struct raw_tracepoint *ctx)
{
	return task_storage_get(&of_tasks, CHOOSE(get_current_task, get_current_task_btf)(), 0, 0) != 0; /* refused task_as_number: argument-type | bpf_get_current_task_btf */
}

char LICENSE[] SEC("license") = "GPL";
