/* What aya takes: section names whose parts name a type, functions in sections that begin with
 * `.text`, static programs, definitions of seven numbers, unknown attributes and values of
 * `pinning`; no licence is GPL. */
#define NO_LICENSE
#include "../objects/program.h"

struct bpf_map_def {
	u32 type, key_size, value_size, max_entries, flags, id, pinning;
};

struct bpf_map_def SEC("maps") flows = { 1, 4, 8, 1024, 0, 0, 1 };
struct bpf_map_def SEC("maps") drops = { 2, 4, 8, 1, 0, 0, 0 };

struct {
	NUMBER(type, 27);
	NUMBER(max_entries, 4096);
	NUMBER(pinning, 3);
	NUMBER(comment, 1);
} events SEC(".maps");

u32 seen;

__attribute__((section(".text.unlikely."), noinline, used)) static int cold(u64 x)
{
	seen += x & 1;
	return x & 3;
}

static NOINLINE int hot(void *map, u32 key)
{
	return map_lookup(map, &key) ? 1 : cold(key);
}

SEC("classifier/aya_tc")
int classify(void *ctx)
{
	return hot(&flows, 1);
}

SEC("xdp")
static NOINLINE int parse(void *ctx)
{
	return ktime_get_ns() & 1;
}

SEC("xdp")
int frames(void *ctx)
{
	return parse(ctx) + hot(&drops, 0);
}

SEC("xdp/devmap")
int forward(void *ctx)
{
	return 2;
}

SEC("cgroup_skb/egress/limits")
int egress(void *ctx)
{
	return 1;
}

SEC("sk_skb/stream_parser/len")
int parser(void *ctx)
{
	return 1;
}

SEC("uprobe.s/readline")
int on_read(void *ctx)
{
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(void *ctx)
{
	return 0;
}
