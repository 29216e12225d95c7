/* Memory that is compared, and read again for its use. */
#include "edits.h"

char cells[64];

/* An expression read once into a variable, or for each use */
#ifdef EDIT
#define ONCE(type, name, expression)                                                               \
	type name##_once = (expression);                                                           \
	asm volatile("" : "+r"(name##_once));
#else
#define ONCE(type, name, expression)
#endif
#define READ(name, expression) CHOOSE(expression, name##_once)

SEC("tc")
int number(struct __sk_buff *skb)
{
	volatile u8 bytes[8];

	if (skb_load_bytes(skb, 14, (void *)bytes, 8))
		return 1;
	ONCE(u64, third, bytes[3])
	if (READ(third, bytes[3]) >= 64)
		return 1;
	return cells[READ(third, bytes[3])]; /* refused number: offset-too-large | an earlier read of the same memory */
}

/* Initialised, then written by the helper */
SEC("raw_tp/sys_enter")
int record(struct raw_tracepoint *ctx)
{
	struct {
		u64 length, base;
	} record = {};
	volatile u64 *length = &record.length;

	probe_read_user(&record, sizeof(record), (void *)ctx->args[1]);
	ONCE(u64, length, *length)
	if (READ(length, *length) >= 64)
		return 1;
	return cells[READ(length, *length)]; /* refused record: offset-unbounded | an earlier read of the same memory */
}

/* A size argument */
SEC("raw_tp/sys_enter")
int size(struct raw_tracepoint *ctx)
{
	u64 word = 0;
	volatile u32 *length = (void *)&word;
	char text[64];

	probe_read_user(&word, sizeof(word), (void *)ctx->args[1]);
	ONCE(u32, length, *length)
	if (READ(length, *length) > 64)
		return 1;
	probe_read_user(text, READ(length, *length), (void *)ctx->args[0]); /* refused size: size-unbounded | an earlier read of the same memory */
	return 0;
}

/* A global variable, of which the compiler loads the address twice */
volatile u64 global;

SEC("tc")
int variable(struct __sk_buff *skb)
{
	ONCE(u64, global, global)
	if (READ(global, global) >= 64)
		return 1;
	ktime_get_ns();
	return cells[READ(global, global)]; /* refused variable: offset-unbounded | an earlier read of the same memory */
}

SEC("xdp")
int packet(struct xdp_md *ctx)
{
	volatile u32 *data = (void *)(long)ctx->data;

	if ((void *)(data + 4) > (void *)(long)ctx->data_end)
		return XDP_PASS;
	ONCE(u32, third, data[3])
	if (READ(third, data[3]) >= 64)
		return XDP_PASS;
	return cells[READ(third, data[3])]; /* refused packet: offset-unbounded | an earlier read of the same memory */
}

/* The pointer of a context */
SEC("tc")
int null_context(struct __sk_buff *skb)
{
	volatile struct __sk_buff *again = skb;
#ifdef EDIT
	struct sk_socket *sk = again->sk;

	return sk ? sk->family : 0;
#else
	if (!again->sk)
		return 0;
	return again->sk->family; /* refused null_context: maybe-null | an earlier read of the same memory | read the pointer once into a variable */
#endif
}

struct sock_common {
	u16 skc_num;
} core;
struct sock {
	struct sock_common __sk_common;
} core;
struct sk_buff {
	struct sock *sk;
} core;

/* A member of a structure of the kernel */
SEC("tp_btf/kfree_skb")
int null_member(u64 *ctx)
{
	struct sk_buff *skb = (void *)ctx[0];
#ifdef EDIT
	struct sock *sk = skb->sk;

	return sk ? sk->__sk_common.skc_num : 0;
#else
	if (!skb->sk)
		return 0;
	ktime_get_ns();
	return skb->sk->__sk_common.skc_num; /* refused null_member: maybe-null | an earlier read of the same memory */
#endif
}

/* The structure is read again as well */
SEC("tp_btf/kfree_skb")
int null_chain(volatile u64 *ctx)
{
#ifdef EDIT
	struct sock *sk = ((struct sk_buff *)ctx[0])->sk;

	return sk ? sk->__sk_common.skc_num : 0;
#else
	if (!((struct sk_buff *)ctx[0])->sk)
		return 0;
	return ((struct sk_buff *)ctx[0])->sk->__sk_common.skc_num; /* refused null_chain: maybe-null | an earlier read of the same memory */
#endif
}

struct task_struct {
	int pid;
} core;
struct value {
	struct task_struct __attribute__((btf_type_tag("kptr_untrusted"))) *task;
};
struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value);
} tasks SEC(".maps");

/* A pointer that is kept in a map */
SEC("tc")
int null_kptr(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct value *value = map_lookup_elem(&tasks, &zero);
	struct task_struct *volatile *slot;

	if (!value)
		return 0;
	slot = (void *)&value->task;
#ifdef EDIT
	struct task_struct *task = *slot;

	return task ? task->pid : 0;
#else
	if (!*slot)
		return 0;
	return (*slot)->pid; /* refused null_kptr: maybe-null | an earlier read of the same memory */
#endif
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
