/*
 * Programs of the types whose contexts are no packets of a device: flow dissectors, lookups of
 * sockets, netfilter, syscall, raw tracepoints. Each records what its context holds.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c types.bpf.c && llvm-strip-19 -g types.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __noinline __attribute__((noinline))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { HASH = 1, PROG_ARRAY = 3 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static long (*const tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*const skb_load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;

/* What the contexts held, and what the test adds to a verdict. */
u64 trace;
u32 added;

static __attribute__((always_inline)) void note(u64 what)
{
	trace = trace * 31 + what;
}

struct pair {
	u64 first, second;
};

struct {
	__uint(type, HASH);
	__uint(max_entries, 64);
	__type(key, u64);
	__type(value, struct pair);
} table SEC(".maps");

struct __sk_buff;
int ipv4(struct __sk_buff *skb);

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__uint(value_size, 4);
	int (*values[])();
} parsers SEC(".maps") = { .values = { [0] = &ipv4 } };

struct bpf_flow_keys {
	u16 nhoff, thoff, addr_proto;
	u8 is_frag, is_first_frag, is_encap, ip_proto;
	u16 n_proto, sport, dport;
	u32 addresses[8];
	u32 flags, flow_label;
};

struct __sk_buff {
	u32 before[19];
	u32 data, data_end;
	u32 between[15];
	struct bpf_flow_keys *flow_keys;
};

_Static_assert(__builtin_offsetof(struct __sk_buff, flow_keys) == 144, "as in linux/bpf.h");

static __noinline int ports(struct __sk_buff *skb)
{
	u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct bpf_flow_keys *keys = skb->flow_keys;
	u32 off = keys->thoff & 0xff;

	if (data + off + 4 > end)
		return 0;
	keys->sport = *(u16 *)(data + off);
	keys->dport = *(u16 *)(data + off + 2);
	return 1;
}

SEC("flow_dissector")
int ipv4(struct __sk_buff *skb)
{
	u8 *data = (void *)(long)skb->data, *end = (void *)(long)skb->data_end;
	struct bpf_flow_keys *keys = skb->flow_keys;

	if (data + 34 > end)
		return 2;
	keys->ip_proto = data[23];
	keys->addr_proto = 0x0800;
	keys->addresses[0] = *(u32 *)(data + 26);
	keys->addresses[1] = *(u32 *)(data + 30);
	keys->is_frag = (data[20] & 0x3f) != 0;
	keys->thoff += (data[14] & 15) * 4;
	note(ports(skb));
	return 0;
}

SEC("flow_dissector")
int dissect(struct __sk_buff *skb)
{
	struct bpf_flow_keys *keys = skb->flow_keys;
	u8 bytes[4] = {};

	note(keys->nhoff);
	note(keys->n_proto);
	note(keys->flags);
	note(skb->data_end - skb->data);
	note(skb_load_bytes(skb, 2, bytes, sizeof(bytes)));
	note(bytes[0]);
	note(keys->thoff);
	keys->flow_label = skb->data_end - skb->data;
	if (keys->n_proto == 8)
		tail_call(skb, &parsers, 0);
	keys->nhoff = 0xffff;
	keys->thoff = 0;
	return (skb->data_end - skb->data) & 3;
}

struct bpf_sk_lookup {
	u64 sk;
	u32 family, protocol, remote_ip4, remote_ip6[4];
	u32 remote_port, local_ip4, local_ip6[4], local_port, ingress_ifindex;
};

SEC("sk_lookup")
int lookup(volatile struct bpf_sk_lookup *ctx)
{
	note(ctx->family);
	note(ctx->protocol);
	note(ctx->remote_ip4);
	note(ctx->local_ip4);
	note(ctx->remote_ip6[0]);
	note(ctx->remote_ip6[3]);
	note(ctx->local_ip6[1]);
	note(ctx->local_ip6[2]);
	note(ctx->local_port);
	note(*(volatile u16 *)&ctx->remote_port);
	note(ctx->ingress_ifindex);
	note(*(volatile u8 *)&ctx->remote_ip4);
	note(*((volatile u16 *)&ctx->local_port));
	return (ctx->local_port + added) & 1;
}

SEC("netfilter")
int filter(void *ctx)
{
	u64 key = 7, first[2] = { 1, 2 };
	u64 *found = map_lookup_elem(&table, &key);

	if (!found)
		map_update_elem(&table, &key, first, 0);
	else
		found[0]++;
	return found && found[0] & 1;
}

struct request {
	u64 key, values[2];
	u32 add;
	u16 short_number;
	u8 byte, choice;
};

static __noinline u64 sum(struct request *ctx)
{
	return ctx->values[0] + ctx->values[1] + ctx->add;
}

/* Takes memory, which may be the context of a program of this type. */
__noinline int swap(u64 *two)
{
	if (!two)
		return 0;
	*two = __builtin_bswap64(*two);
	return *two & 3;
}

SEC("syscall")
int request(struct request *ctx)
{
	u64 key = ctx->key, values[2] = { ctx->values[0], ctx->values[1] };
	u64 *found = map_lookup_elem(&table, &key);

	note(sum(ctx));
	note(ctx->short_number);
	note(ctx->byte);
	if (found)
		ctx->values[0] += found[0];
	note(map_update_elem(&table, &key, values, 0));
	note(swap(&ctx->key));
	ctx->add++;
	ctx->byte ^= 0x55;
	return ctx->choice == 1 ? 1000 : ctx->add & 255;
}

SEC("syscall")
int long_context(u32 *ctx)
{
	ctx[2000] = ctx[1000] + 1;
	return ctx[4000];
}

SEC("raw_tp/sched_switch")
int arguments(u64 *ctx)
{
	note(ctx[0]);
	note(ctx[1] * 3);
	note(*(u32 *)&ctx[2]);
	return ctx[0] + ctx[2];
}

SEC("raw_tp/sched_switch")
int all_arguments(u64 *ctx)
{
	return ctx[11];
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
