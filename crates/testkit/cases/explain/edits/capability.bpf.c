/*
 * What capabilities allow: the comment names those that the caller has, and the explanation
 * those that it lacks. All programs are accepted with all capabilities.
 */
#include "edits.h"

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[8]);
} table SEC(".maps");

SEC("xdp")
int printk(struct xdp_md *ctx)
{
	char text[] = "x";

	trace_printk(text, sizeof(text)); /* refused printk with bpf,net_admin: capability | `bpf_trace_printk` needs CAP_PERFMON | the program is accepted then */
	return XDP_PASS;
}

SEC("xdp")
int current_task(struct xdp_md *ctx)
{
	return get_current_task() ? XDP_DROP : XDP_PASS; /* refused current_task with bpf,net_admin: capability | `bpf_get_current_task` needs CAP_PERFMON */
}

SEC("tc")
int probe_kernel(struct __sk_buff *skb)
{
	u32 word;

	return probe_read_kernel(&word, sizeof(word), (void *)8) ? 1 : 0; /* refused probe_kernel with bpf,net_admin: capability | `bpf_probe_read_kernel` needs CAP_PERFMON */
}

SEC("socket")
int jiffies(struct __sk_buff *skb)
{
	return jiffies64() & 1; /* refused jiffies with none: capability | `bpf_jiffies64` needs CAP_BPF */
}

/* Two capabilities for two helpers */
SEC("socket")
int two_helpers(struct __sk_buff *skb)
{
	u64 now = jiffies64(); /* refused two_helpers with none: capability | `bpf_jiffies64` needs CAP_BPF | with CAP_BPF and CAP_PERFMON the program is accepted */

	return get_current_task() ? now : 0;
}

/* A program type */
SEC("xdp")
int device(struct xdp_md *ctx) /* refused device with bpf,perfmon: capability | type xdp needs CAP_NET_ADMIN */
{
	return XDP_PASS;
}

SEC("raw_tp/sys_enter")
int tracepoint(void *ctx) /* refused tracepoint with bpf: capability | type raw_tracepoint needs CAP_PERFMON */
{
	return 0;
}

/* A pointer is stored where user space reads it */
SEC("socket")
int stored(struct __sk_buff *skb)
{
	u32 zero = 0;
	u64 *value = map_lookup_elem(&table, &zero);

	if (value)
		value[1] = (u64)value; /* refused stored with bpf: capability | needs CAP_PERFMON */
	return 0;
}

SEC("socket")
int added(struct __sk_buff *skb)
{
	u32 zero = 0;
	u64 *value = map_lookup_elem(&table, &zero);

	if (value)
		__sync_fetch_and_add(value, (u64)skb); /* refused added with bpf: capability | needs CAP_PERFMON */
	return 0;
}

/* A pointer is compared with a number */
SEC("socket")
int compared(struct __sk_buff *skb)
{
	u64 bits = (u64)skb;

	asm volatile("" : "+r"(bits));
	return bits == 7; /* refused compared with bpf: capability | needs CAP_PERFMON */
}

/* The distance of two pointers */
SEC("socket")
int subtracted(struct __sk_buff *skb)
{
	u64 bits = (u64)skb, other = (u64)skb;

	asm volatile("" : "+r"(bits), "+r"(other));
	return (bits - other) & 1; /* refused subtracted with bpf: pointer-arithmetic | it is allowed with CAP_PERFMON */
}

/* Stack that was not written */
SEC("socket")
int unwritten(struct __sk_buff *skb)
{
	volatile u64 word;

	return word & 1; /* refused unwritten with bpf: stack-unwritten | it is allowed with CAP_PERFMON | initialise the variable */
}

/* A variable offset into the stack */
SEC("socket")
int variable_stack(struct __sk_buff *skb)
{
	char bytes[64] = {};

	asm volatile("" ::: "memory");
	return bytes[skb->len & 63]; /* refused variable_stack with bpf: pointer-arithmetic | a number that is not constant is the offset of a pointer to the stack | it is allowed with CAP_PERFMON */
}

/* The result */
SEC("socket")
int returned(struct __sk_buff *skb)
{
	return (long)skb; /* refused returned with bpf: return-pointer | it is allowed with CAP_PERFMON */
}

/* A member of the context */
SEC("cgroup_skb/egress")
int member(struct __sk_buff *skb)
{
	skb->tstamp = 5; /* refused member with perfmon: context | it is allowed with CAP_BPF */
	return 1;
}

/* Functions and loops */
static noinline int next(int n)
{
	asm volatile("" : "+r"(n));
	return n + 1;
}

SEC("socket")
int function(struct __sk_buff *skb)
{
	return next(skb->len) & 1; /* refused function with none: capability | needs CAP_BPF */
}

SEC("socket")
int repeated(struct __sk_buff *skb)
{
	u32 sum = 0;

#pragma nounroll
	for (int i = 0; i < 4; i++) /* refused repeated with none: capability | a loop | needs CAP_BPF */
		asm volatile("%0 += 1" : "+r"(sum));
	return sum & 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
