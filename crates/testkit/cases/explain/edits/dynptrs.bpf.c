/* Dynptrs and their slices. */
#include "kernel.h"

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[8]);
} values SEC(".maps");

struct event {
	u64 time;
	u32 length;
};

struct ethernet {
	u8 to[6];
	u8 from[6];
	u16 type;
};

SEC("tc")
int never_made(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u32 value = 0;

	edit(bpf_dynptr_from_skb(ctx, 0, &packet);)
	dynptr_read(&value, sizeof(value), &packet, 0, 0); /* refused never_made: stack-object | argument 3 of `bpf_dynptr_read` is not a dynptr: this path made none there | make it (bpf_dynptr_from_…, bpf_ringbuf_reserve_dynptr) on every path */
	return value;
}

SEC("tc")
int never_submitted(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;
	u32 length = ctx->len;

	ringbuf_reserve_dynptr(&events, sizeof(struct event), 0, &record);
	dynptr_write(&record, 0, &length, sizeof(length), 0);
	edit(ringbuf_submit_dynptr(&record, 0);)
	return 0; /* refused never_submitted: leak | `bpf_ringbuf_reserve_dynptr` | bpf_ringbuf_submit_dynptr or bpf_ringbuf_discard_dynptr on every path | also where the reservation failed */
}

SEC("tc")
int failed_reservation(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;
	struct event *event;

	if (ringbuf_reserve_dynptr(&events, sizeof(*event), 0, &record)) {
		edit(ringbuf_discard_dynptr(&record, 0);)
		return 1;
	}
	event = dynptr_data(&record, 0, sizeof(*event));
	if (event)
		event->length = ctx->len;
	ringbuf_submit_dynptr(&record, 0);
	return 0;
} /* refused failed_reservation: leak | `bpf_ringbuf_reserve_dynptr` | also where the reservation failed */

SEC("tc")
int submitted_twice(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;

	ringbuf_reserve_dynptr(&events, sizeof(struct event), 0, &record);
	ringbuf_submit_dynptr(&record, 0);
	refuse(ringbuf_discard_dynptr(&record, 0);) /* refused submitted_twice: stack-object | a dynptr whose record `bpf_ringbuf_submit_dynptr` already released | release each record once | `bpf_ringbuf_submit_dynptr` ends it */
	return 0;
}

SEC("tc")
int read_after_submit(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;
	u32 value = 0;

	ringbuf_reserve_dynptr(&events, sizeof(struct event), 0, &record);
	edit(dynptr_read(&value, sizeof(value), &record, 0, 0);)
	ringbuf_submit_dynptr(&record, 0);
	refuse(dynptr_read(&value, sizeof(value), &record, 0, 0);) /* refused read_after_submit: stack-object | is a dynptr that `bpf_ringbuf_submit_dynptr` ended | use it before `bpf_ringbuf_submit_dynptr` | `bpf_ringbuf_reserve_dynptr` makes it */
	return value;
}

SEC("tc")
int data_after_submit(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;
	struct event *event;

	ringbuf_reserve_dynptr(&events, sizeof(*event), 0, &record);
	event = dynptr_data(&record, 0, sizeof(*event));
	if (!event) {
		ringbuf_discard_dynptr(&record, 0);
		return 0;
	}
	edit(event->length = ctx->len;)
	ringbuf_submit_dynptr(&record, 0);
	refuse(event->length = ctx->len;) /* refused data_after_submit: released | behind `bpf_ringbuf_submit_dynptr`, which made it invalid */
	return 0;
}

SEC("tc")
int data_unchecked(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;
	struct event *event;

	ringbuf_reserve_dynptr(&events, sizeof(*event), 0, &record);
	event = dynptr_data(&record, 0, sizeof(*event));
	edit(if (event))
	event->length = 1; /* refused data_unchecked: maybe-null | the result of `bpf_dynptr_data`, which may be null | check it right behind the call */
	ringbuf_submit_dynptr(&record, 0);
	return 0;
}

SEC("tc")
int slice_unchecked(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	struct ethernet buffer, *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = bpf_dynptr_slice(&packet, 0, &buffer, sizeof(buffer));
	edit(if (!header) return 0;)
	return header->type; /* refused slice_unchecked: maybe-null | the result of `bpf_dynptr_slice`, which may be null */
}

SEC("tc")
int slice_after_pull(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	struct ethernet buffer, *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	edit(skb_pull_data(ctx, 64);)
	header = bpf_dynptr_slice(&packet, 0, &buffer, sizeof(buffer));
	if (!header)
		return 0;
	refuse(skb_pull_data(ctx, 64);)
	return header->type; /* refused slice_after_pull: released | behind `bpf_skb_pull_data`, which made it invalid | take the slice (bpf_dynptr_data, bpf_dynptr_slice) again behind `bpf_skb_pull_data` | makes the pointer unusable */
}

SEC("xdp")
int slice_after_adjust(struct xdp_md *ctx)
{
	struct bpf_dynptr packet;
	struct ethernet buffer, *header;

	bpf_dynptr_from_xdp(ctx, 0, &packet);
	edit(if (xdp_adjust_head(ctx, 4)) return XDP_DROP;)
	header = bpf_dynptr_slice(&packet, 0, &buffer, sizeof(buffer));
	if (!header)
		return XDP_DROP;
	refuse(if (xdp_adjust_head(ctx, 4)) return XDP_DROP;)
	return header->type == 8 ? XDP_PASS : XDP_DROP; /* refused slice_after_adjust: released | behind `bpf_xdp_adjust_head` | take the slice */
}

SEC("tc")
int slice_after_write(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	struct ethernet buffer, *header;
	u16 type = 0;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = bpf_dynptr_slice(&packet, 0, &buffer, sizeof(buffer));
	if (!header)
		return 0;
	edit(type = header->type;)
	dynptr_write(&packet, 12, &type, sizeof(type), 0);
	refuse(type = header->type;) /* refused slice_after_write: released | behind `bpf_dynptr_write` | take the slice */
	return type;
}

SEC("tc")
int slice_too_far(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u8 buffer[20], *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = bpf_dynptr_slice(&packet, 14, buffer, sizeof(buffer));
	if (!header)
		return 0;
	return header[CHOOSE(20, 19)]; /* refused slice_too_far: out-of-bounds | memory of 20 bytes */
}

SEC("tc")
int slice_of_variable_size(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u32 size = ctx->mark & 15;
	u8 buffer[16] = {}, *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = bpf_dynptr_slice(&packet, 14, buffer, CHOOSE(size, sizeof(buffer))); /* refused slice_of_variable_size: argument-constant | argument 4 of `bpf_dynptr_slice` is not a constant */
	return header ? 1 : 0;
}

SEC("tc")
int buffer_too_small(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u8 buffer[CHOOSE(8, 20)] = {}, *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = bpf_dynptr_slice(&packet, 14, buffer, 20); /* refused buffer_too_small: stack-unwritten | `bpf_dynptr_slice` reads 20 bytes of stack | pass the size of the variable */
	return header ? 1 : 0;
}

SEC("tc")
int made_on_stack_memory(struct __sk_buff *ctx)
{
	struct bpf_dynptr memory;
	u64 local[8] = {}, *value = local;
	u32 zero = 0;

	edit(value = map_lookup_elem(&values, &zero); if (!value) return 0;)
	dynptr_from_mem(value, sizeof(local), 0, &memory); /* refused made_on_stack_memory: stack-object | a dynptr can only be made of the value of a map | use a map value or a global variable */
	return 0;
}

SEC("tc")
int made_twice(struct __sk_buff *ctx)
{
	struct bpf_dynptr record, other;

	ringbuf_reserve_dynptr(&events, 16, 0, &record);
	ringbuf_reserve_dynptr(&events, 16, 0, CHOOSE(&record, &other)); /* refused made_twice: stack-object | holds a record | release the record before the variable is used again */
	ringbuf_submit_dynptr(&record, 0);
	edit(ringbuf_submit_dynptr(&other, 0);)
	return 0;
}

SEC("tc")
int overwritten_by_store(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u32 value = 0;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	refuse(*(volatile u8 *)&packet = 0;)
	dynptr_read(&value, sizeof(value), &packet, 0, 0); /* refused overwritten_by_store: stack-object | a dynptr whose bytes a store changed | leave the variable alone | a store changes some of its bytes */
	return value;
}

SEC("tc")
int record_overwritten(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;

	ringbuf_reserve_dynptr(&events, 16, 0, &record);
	refuse(*(volatile u64 *)&record = 0;) /* refused record_overwritten: stack-object | overwrites a dynptr that holds a record | release the record before */
	ringbuf_submit_dynptr(&record, 0);
	return 0;
}

SEC("tc")
int overwritten_by_call(struct __sk_buff *ctx)
{
	struct {
		u8 text[8];
		struct bpf_dynptr packet;
	} at;

	bpf_dynptr_from_skb(ctx, 0, &at.packet);
	bpf_get_current_comm(at.text, CHOOSE(24, 8)); /* refused overwritten_by_call: stack-object | `bpf_get_current_comm` would write over a dynptr on the stack | pass another buffer, or the right size */
	return bpf_dynptr_size(&at.packet);
}

SEC("tc")
int middle_of_dynptr(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u32 value = 0;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	dynptr_read(&value, sizeof(value), CHOOSE((void *)&packet + 8, &packet), 0, 0); /* refused middle_of_dynptr: stack-object | points into the middle of a dynptr | without an offset */
	return value;
}

SEC("tc")
int other_kind(struct __sk_buff *ctx)
{
	struct bpf_dynptr record;

	CHOOSE(bpf_dynptr_from_skb(ctx, 0, &record), ringbuf_reserve_dynptr(&events, 16, 0, &record));
	ringbuf_submit_dynptr(&record, 0); /* refused other_kind: stack-object | is not a dynptr that holds a record, so it cannot be released | the variable that bpf_ringbuf_reserve_dynptr was given */
	return 0;
}

SEC("tc")
int clone_after_submit(struct __sk_buff *ctx)
{
	struct bpf_dynptr record, clone;
	u32 size = 0;

	ringbuf_reserve_dynptr(&events, 16, 0, &record);
	bpf_dynptr_clone(&record, &clone);
	edit(size = bpf_dynptr_size(&clone);)
	ringbuf_submit_dynptr(&record, 0);
	refuse(size = bpf_dynptr_size(&clone);) /* refused clone_after_submit: stack-object | is a dynptr that `bpf_ringbuf_submit_dynptr` ended | `bpf_dynptr_clone` makes it */
	return size;
}

SEC("cgroup_skb/egress")
int written_slice(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u8 buffer[20], *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = CHOOSE(bpf_dynptr_slice_rdwr, bpf_dynptr_slice)(&packet, 0, buffer, sizeof(buffer)); /* refused written_slice: read-only | the packet may only be read here | read by bpf_dynptr_slice */
	return header ? 1 : 0;
}

SEC("tc")
int read_only_slice(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	struct ethernet buffer, *header;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	header = CHOOSE(bpf_dynptr_slice, bpf_dynptr_slice_rdwr)(&packet, 0, &buffer, sizeof(buffer));
	if (!header)
		return 0;
	header->type = 8; /* refused read_only_slice: read-only | may only be read here | bpf_dynptr_slice_rdwr */
	return 0;
}

static long each_record(struct bpf_dynptr *record, void *unused)
{
	struct event event;

	dynptr_read(&event, sizeof(event), record, 0, 0);
	refuse(ringbuf_discard_dynptr(record, 0);) /* refused callback_releases: stack-object | releases a dynptr that belongs to the caller of the function | leave the call out */
	return 0;
}

struct {
	__uint(type, USER_RINGBUF);
	__uint(max_entries, 4096);
} commands SEC(".maps");

SEC("tc")
int callback_releases(struct __sk_buff *ctx)
{
	user_ringbuf_drain(&commands, each_record, NULL, 0);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
