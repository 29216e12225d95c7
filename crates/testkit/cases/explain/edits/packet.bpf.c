/* Accesses to packets, in loops and outside of them. */
#include "edits.h"

char copy[64];

#define PACKET                                                                                     \
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
/* The comparison of the edit, in the loop with the pointer of the iteration */
#ifdef EDIT
#define WITHIN(ptr, bytes)                                                                         \
	if ((void *)(ptr) + (bytes) > end)                                                         \
		break;
#define OUTSIDE(condition) 0
#else
#define WITHIN(ptr, bytes)
#define OUTSIDE(condition) (condition)
#endif

/* The header is copied whose length is in it */
SEC("xdp")
int header(struct xdp_md *ctx)
{
	PACKET
	u8 *tcp = data + 34;
	int bytes;

	if ((void *)tcp + 20 > end)
		return XDP_PASS;
	bytes = (tcp[12] >> 4) * 4;
	if (bytes < 20 || OUTSIDE((void *)tcp + bytes > end))
		return XDP_PASS;
	for (int i = 0; i < bytes; i++) {
		WITHIN(&tcp[i], 1)
		copy[i] = tcp[i]; /* refused header: packet-loop-check | `if ((void *)ptr + 1 > data_end) break;` */
	}
	return XDP_DROP;
}

SEC("xdp")
int prefix(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;
	u32 n;

	if (data + 1 > end)
		return XDP_DROP;
	n = p[0] & 63;
	if (OUTSIDE(data + n > end))
		return XDP_DROP;
	for (u32 i = 0; i < n; i++) {
		WITHIN(&p[i], 1)
		copy[i] = p[i]; /* refused prefix: packet-loop-check | `if ((void *)ptr + 1 > data_end) break;` */
	}
	return XDP_PASS;
}

SEC("tc")
int words(struct __sk_buff *ctx)
{
	PACKET
	u32 *p = data, sum = 0, length = ctx->len;

	if (length > 256 || OUTSIDE(data + length > end))
		return 0;
	for (u32 i = 0; i < length / 4; i++) {
		WITHIN(&p[i], 4)
		sum += p[i]; /* refused words: packet-loop-check | `if ((void *)ptr + 4 > data_end) break;` */
	}
	return sum & 1;
}

struct entry {
	u16 kind, length;
	u32 value;
};

/* Two members in each iteration */
SEC("xdp")
int entries(struct xdp_md *ctx)
{
	PACKET
	struct entry *p = data + 14;
	u32 sum = 0;

#pragma nounroll
	for (int i = 0; i < 8; i++, p++) {
		WITHIN(p, 8)
		if (p->kind == 7) /* refused entries: packet-loop-unchecked | `if ((void *)ptr + 8 > data_end) break;` */
			sum += p->value;
	}
	return sum & 1 ? XDP_DROP : XDP_PASS;
}

/* The compiler unrolls the loop */
SEC("xdp")
int unrolled(struct xdp_md *ctx)
{
	PACKET
	struct entry *p = data + 14;
	u32 sum = 0;

	if (CHOOSE(0, data + 46 > end))
		return XDP_PASS;
#pragma unroll
	for (int i = 0; i < 4; i++, p++)
		if (p->kind == 7) /* refused unrolled: packet-unchecked | `if (data + 46 > data_end) return …;` */
			sum += p->value;
	return sum & 1 ? XDP_DROP : XDP_PASS;
}

/* Stores to the packet */
SEC("xdp")
int cleared(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data + 14;

	if (data + 20 > end)
		return XDP_PASS;
#pragma nounroll
	for (int i = 0; i < 16; i++) {
		WITHIN(&p[i], 1)
		p[i] = 0; /* refused cleared: packet-loop-check | `if ((void *)ptr + 1 > data_end) break;` */
		asm volatile("");
	}
	return XDP_DROP;
}

/* A loop without a bound below the largest offset */
SEC("xdp")
int all_bytes(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;
	int sum = 0;

	for (int i = 0; i < CHOOSE(1000000, 1500) && (void *)(p + 1) <= end; i++) {
		sum += *p; /* refused all_bytes: packet-loop-unbounded | bound the iterations | `for (i = 0; i < 1500 && …; i++)` */
		p++;
	}
	return sum & 1 ? XDP_DROP : XDP_PASS;
}

/* The same over options of 64 bytes */
SEC("xdp")
int all_blocks(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;
	int sum = 0;

	for (int i = 0; i < CHOOSE(1000000, 1023) && (void *)(p + 64) <= end; i++) {
		sum += p[63]; /* refused all_blocks: packet-loop-unbounded | `for (i = 0; i < 1023 && …; i++)` */
		p += 64;
	}
	return sum & 1 ? XDP_DROP : XDP_PASS;
}

/* Options whose length is in them */
SEC("xdp")
int options(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;
	int sum = 0;

	for (int i = 0; i < CHOOSE(1000, 257) && (void *)(p + 2) <= end; i++) {
		sum += p[0]; /* refused options: packet-loop-unbounded | bound the iterations | `for (i = 0; i < 257 && …; i++)` */
		p += p[1];
	}
	return sum & 1 ? XDP_DROP : XDP_PASS;
}

/* The callback of bpf_loop */
struct walk {
	struct xdp_md *ctx;
	u32 sum;
};

static int one(u32 i, struct walk *walk)
{
	void *data = (void *)(long)walk->ctx->data, *end = (void *)(long)walk->ctx->data_end;
	u8 *p = data + (i & 255);

#ifdef EDIT
	if ((void *)p + 1 > end)
		return 1;
#else
	if (data + 256 > end)
		return 1;
#endif
	walk->sum += *p; /* refused in_callback: packet-loop-check | `if ((void *)ptr + 1 > data_end) return 1;` */
	return 0;
}

SEC("xdp")
int in_callback(struct xdp_md *ctx)
{
	struct walk walk = { ctx, 0 };

	loop(64, one, &walk, 0);
	return walk.sum & 1 ? XDP_DROP : XDP_PASS;
}

/* Several accesses, the first of which is refused */
SEC("xdp")
int in_a_row(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;

	if (data + CHOOSE(14, 34) > end)
		return XDP_PASS;
	copy[0] = p[20]; /* refused in_a_row: packet-check-short | `if (data + 34 > data_end) return …;` */
	copy[1] = p[33];
	copy[2] = p[23];
	return XDP_DROP;
}

/* More behind a branch */
SEC("xdp")
int behind_branches(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;

	if (data + CHOOSE(14, 54) > end)
		return XDP_PASS;
	if (p[23] == 6) /* refused behind_branches: packet-check-short | `if (data + 24 > data_end) return …;` | `if (data + 54 > data_end) return …;` */
		return p[53] ? XDP_DROP : XDP_PASS;
	return p[30] ? XDP_DROP : XDP_PASS;
}

/* The pointer with the variable offset is another than the one compared */
SEC("xdp")
int variable_header(struct xdp_md *ctx)
{
	PACKET
	u8 *ip = data + 14;

	if (data + 34 > end)
		return XDP_PASS;
	u8 *tcp = ip + (ip[0] & 15) * 4;
#ifdef EDIT
	if ((void *)tcp + 4 > end)
		return XDP_PASS;
#endif
	return *(u16 *)(tcp + 2) == 80 ? XDP_DROP : XDP_PASS; /* refused variable_header: packet-check-other | `if ((void *)ptr + 4 > data_end) return …;` */
}

SEC("xdp")
int unchecked(struct xdp_md *ctx)
{
	PACKET
	u8 *p = data;

	if (CHOOSE(0, data + 13 > end))
		return XDP_PASS;
	return p[12] ? XDP_DROP : XDP_PASS; /* refused unchecked: packet-unchecked | `if (data + 13 > data_end) return …;` */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
