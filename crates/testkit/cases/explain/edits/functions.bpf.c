/* Functions that are verified on their own, and calls of them. */
#include "kernel.h"

struct pair {
	u32 one;
	u32 two;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct pair);
} pairs SEC(".maps");

u64 seen;

noinline int sum(struct pair *pair)
{
	edit(if (!pair) return 0;)
	return pair->one + pair->two; /* refused sum_unchecked: maybe-null | which may be null | a global function is verified by its types alone */
}

SEC("tc")
int sum_unchecked(struct __sk_buff *ctx)
{
	struct pair pair = {1, ctx->len};

	return sum(&pair);
}

noinline int sum_of_two(struct pair *pair __arg_nonnull)
{
	return pair->one + pair->two;
}

SEC("tc")
int null_passed(struct __sk_buff *ctx)
{
	u32 key = ctx->len;
	struct pair *pair = map_lookup_elem(&pairs, &key);

	edit(if (!pair) return 0;)
	return sum_of_two(pair); /* refused null_passed: global-arguments | argument 1 of the global function `sum_of_two` | or null | compare it with null before the call */
}

SEC("tc")
int smaller_passed(struct __sk_buff *ctx)
{
	CHOOSE(u32, u64) word = ctx->len;

	return sum_of_two((struct pair *)&word); /* refused smaller_passed: global-arguments | `sum_of_two` | 8 bytes */
}

SEC("tc")
int number_passed(struct __sk_buff *ctx)
{
	struct pair pair = {1, ctx->len};

	return sum_of_two(CHOOSE((struct pair *)(u64)ctx->len, &pair)); /* refused number_passed: global-arguments | argument 1 of the global function `sum_of_two` is a number | a pointer to memory of 8 bytes */
}

noinline int pid_of(struct task_struct *task __arg_trusted)
{
	return task->pid;
}

SEC("tc")
int stack_for_task(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	struct pair local = {};

	return pid_of(CHOOSE((void *)&local, task)); /* refused stack_for_task: global-arguments | argument 1 of the global function `pid_of` is a pointer to the stack | a trusted pointer to `struct task_struct` */
}

SEC("syscall")
int untrusted_for_task(void *ctx)
{
	struct task_struct *task = get_current_task_btf();

	return pid_of(CHOOSE(task->last_wakee, task)); /* refused untrusted_for_task: global-arguments | argument 1 of the global function `pid_of` is an untrusted pointer | pass the object itself, or one that a kernel function acquired */
}

noinline int pid_or_none(struct task_struct *task __arg_trusted __arg_nullable)
{
	edit(if (!task) return 0;)
	return task->pid; /* refused nullable_unchecked: maybe-null | which may be null */
}

SEC("tc")
int nullable_unchecked(struct __sk_buff *ctx)
{
	return pid_or_none(get_current_task_btf());
}

noinline int drops(struct task_struct *task __arg_trusted)
{
	refuse(bpf_task_release(task);) /* refused function_releases: not-acquired | argument 1 of `bpf_task_release` was not acquired */
	return task->pid;
}

SEC("tc")
int function_releases(struct __sk_buff *ctx)
{
	return drops(get_current_task_btf());
}

noinline int reads_dynptr(struct bpf_dynptr *packet)
{
	return bpf_dynptr_size(packet);
}

SEC("tc")
int no_dynptr_passed(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;

	edit(bpf_dynptr_from_skb(ctx, 0, &packet);)
	return reads_dynptr(&packet); /* refused no_dynptr_passed: global-arguments | argument 1 of the global function `reads_dynptr` | make the dynptr before the call */
}

noinline int changes_dynptr(struct bpf_dynptr *packet)
{
	return bpf_dynptr_adjust(packet, 0, 4);
}

SEC("tc")
int global_for_dynptr(struct __sk_buff *ctx)
{
	static struct bpf_dynptr global;
	struct bpf_dynptr packet;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	return reads_dynptr(CHOOSE(&global, &packet)); /* refused global_for_dynptr: global-arguments | argument 1 of the global function `reads_dynptr` is a pointer to a value of map | a dynptr on the stack */
}

noinline int any_number(u64 value)
{
	return value; 
}

SEC("tc")
int pointer_for_number(struct __sk_buff *ctx)
{
	return any_number(CHOOSE((u64)ctx, ctx->len)); /* refused pointer_for_number: global-arguments | argument 1 of the global function `any_number` is a pointer to the context | a number */
}

static noinline int *local_address(void)
{
	int local = 1, *at = CHOOSE(&local, NULL);

	asm volatile("" : "+r"(at));
	return at; /* refused address_of_local: return-pointer | the result is a pointer to the stack | let the caller pass a buffer */
}

SEC("tc")
int address_of_local(struct __sk_buff *ctx)
{
	int *at = local_address();

	return at ? 1 : 0;
}

static noinline int deep(u32 n)
{
	char more[CHOOSE(400, 100)];

	probe_read_kernel(more, sizeof(more), (void *)(u64)n);
	return more[n & 63];
}

SEC("tc")
int stack_of_two(struct __sk_buff *ctx)
{
	char some[200];

	probe_read_kernel(some, sizeof(some), NULL);
	return deep(ctx->len) + some[ctx->len & 63]; /* refused stack_of_two: stack-depth | a chain of calls uses | move large variables to a per-CPU array map */
}

noinline int sleeps(void)
{
	u32 value = 0;

	copy_from_user(&value, sizeof(value), NULL);
	return value;
}

SEC("syscall")
int sleeping_function_under_rcu(void *ctx)
{
	int value;

	bpf_rcu_read_lock();
	edit(bpf_rcu_read_unlock();)
	value = sleeps(); /* refused sleeping_function_under_rcu: sleeps | `sleeps` may sleep, and is called in a section that `bpf_rcu_read_lock` began */
	refuse(bpf_rcu_read_unlock();)
	return value;
}

SEC("tc")
int packet_after_function(struct __sk_buff *ctx)
{
	u8 *data = (void *)(u64)ctx->data, *end = (void *)(u64)ctx->data_end;

	if (data + 14 > end)
		return 0;
	edit(return data[12];)
	skb_pull_data(ctx, 64);
	return data[12]; /* refused packet_after_function: packet-moved | behind `bpf_skb_pull_data`, which may move the packet */
}

char LICENSE[] SEC("license") = "GPL";
