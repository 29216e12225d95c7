/* References that are not released, or released otherwise than once. */
#include "kernel.h"

struct event {
	u64 time;
	u32 length;
};

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, struct event);
} last SEC(".maps");

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u32);
} programs SEC(".maps");

SEC("tc")
int task_on_error_path(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);
	u32 key = 0;
	struct event *event;

	if (!task)
		return 0;
	event = map_lookup_elem(&last, &key);
	if (!event) {
		edit(bpf_task_release(task);)
		return 1;
	}
	event->length = task->tgid;
	bpf_task_release(task);
	return 0;
} /* refused task_on_error_path: leak | without releasing what `bpf_task_from_pid` returned | call bpf_task_release before each return | `bpf_task_from_pid` acquires the reference */

SEC("tc")
int cgroup_never(struct __sk_buff *ctx)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(1);

	if (!cgroup)
		return 0;
	edit(bpf_cgroup_release(cgroup);)
	return 1; 
} /* refused cgroup_never: leak | `bpf_cgroup_from_id` | bpf_cgroup_release on every path */

SEC("tc")
int two_references(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);
	struct cgroup *cgroup;
	long under = 0;

	if (!task)
		return 0;
	cgroup = bpf_cgroup_from_id(1);
	if (!cgroup) {
		edit(bpf_task_release(task);)
		return 0;
	}
	under = bpf_task_under_cgroup(task, cgroup);
	bpf_cgroup_release(cgroup);
	bpf_task_release(task);
	return under;
} /* refused two_references: leak | `bpf_task_from_pid` | error paths included */

SEC("syscall")
int mask_replaced(void *ctx)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();

	if (!mask)
		return 0;
	if (get_prandom_u32() > 100) {
		edit(bpf_cpumask_release(mask);)
		mask = bpf_cpumask_create();
		if (!mask)
			return 0;
	}
	bpf_cpumask_set_cpu(0, mask);
	bpf_cpumask_release(mask);
	return 1;
} /* refused mask_replaced: leak | `bpf_cpumask_create` | bpf_cpumask_release */

SEC("tc")
int acquired_again(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	struct task_struct *own = bpf_task_acquire(task);

	if (!own)
		return 0;
	edit(bpf_task_release(own);)
	return own == task;
} /* refused acquired_again: leak | `bpf_task_acquire` | bpf_task_release */

SEC("tc")
int task_released_twice(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	bpf_task_release(task);
	if (ctx->len > 100)
		refuse(bpf_task_release(task);) /* refused task_released_twice: released-twice | releases what `bpf_task_release` already released | release on one path only | makes the pointer unusable */
		edit(return 1;)
	return 0;
}

SEC("tc")
int cgroup_released_twice(struct __sk_buff *ctx)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(1);

	if (!cgroup)
		return 0;
	if (ctx->len > 100) {
		bpf_cgroup_release(cgroup);
		edit(return 1;)
	}
	bpf_cgroup_release(cgroup); /* refused cgroup_released_twice: released-twice | `bpf_cgroup_release` already released | return right behind the first release */
	return 0;
}

SEC("tc")
int used_after_release(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);
	int pid;

	if (!task)
		return 0;
	edit(pid = task->pid;)
	bpf_task_release(task);
	refuse(pid = task->pid;) /* refused used_after_release: released | behind `bpf_task_release`, which made it invalid | use the object before */
	return pid;
}

SEC("tc")
int given_after_release(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);
	struct cgroup *cgroup = bpf_cgroup_from_id(1);
	long under = 0;

	if (task && cgroup) {
		edit(under = bpf_task_under_cgroup(task, cgroup);)
		bpf_task_release(task);
		refuse(under = bpf_task_under_cgroup(task, cgroup);) /* refused given_after_release: released | `bpf_task_release`, which made it invalid */
		bpf_cgroup_release(cgroup);
		return under;
	}
	if (task)
		bpf_task_release(task);
	if (cgroup)
		bpf_cgroup_release(cgroup);
	return 0;
}

SEC("tc")
int current_is_not_acquired(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	edit(struct task_struct *own = bpf_task_acquire(task);)

	edit(if (own))
	bpf_task_release(CHOOSE(task, own)); /* refused current_is_not_acquired: not-acquired | argument 1 of `bpf_task_release` was not acquired | the unmodified result of a call that acquires a reference */
	return 0;
}

SEC("tc")
int release_of_null(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	edit(if (task))
	bpf_task_release(task); /* refused release_of_null: maybe-null | the result of `bpf_task_from_pid`, which may be null | check it right behind the call */
	return 0;
}

SEC("tc")
int wrong_branch(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (CHOOSE(task, !task))
		return 0;
	bpf_task_release(task); /* refused wrong_branch: not-a-pointer | argument 1 of `bpf_task_release` is the constant null | pass an object, or leave out the call */
	return 0;
}

SEC("tc")
int before_tail_call(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	edit(bpf_task_release(task);)
	tail_call(ctx, &programs, 0); /* refused before_tail_call: leak | `bpf_tail_call` is called while what `bpf_task_from_pid` returned | call bpf_task_release before `bpf_tail_call` */
	refuse(bpf_task_release(task);)
	return 0;
}

SEC("tc")
int record_on_error_path(struct __sk_buff *ctx)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 0;
	event->length = ctx->len;
	if (ctx->len > 1500) {
		edit(ringbuf_discard(event, 0);)
		return 1;
	}
	ringbuf_submit(event, 0);
	return 0;
} /* refused record_on_error_path: leak | `bpf_ringbuf_reserve` | bpf_ringbuf_submit or bpf_ringbuf_discard before each return */

SEC("tc")
int record_as_key_and_value(struct __sk_buff *ctx)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);
	u32 key = ctx->len;

	if (!event)
		return 0;
	event->time = ktime_get_ns();
	event->length = ctx->len;
	map_update_elem(&last, CHOOSE(key ? &event->length : &key, &key), event, 0); /* refused record_as_key_and_value: two-references | two arguments of `bpf_map_update_elem` belong to acquired references | copy one of them to a variable on the stack */
	ringbuf_submit(event, 0);
	return 0;
}

SEC("tc")
int record_moved(struct __sk_buff *ctx)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 0;
	event->length = ctx->len;
	ringbuf_submit(CHOOSE(&event->length, event), 0); /* refused record_moved: modified-pointer | argument 1 of `bpf_ringbuf_submit` | pass the pointer itself */
	return 0;
}

SEC("tc")
int socket_in_loop(struct __sk_buff *ctx)
{
	u32 tuple[3] = {};
	void *sk = NULL;

	for (int i = 0; i < 2; i++) {
		sk = sk_lookup_udp(ctx, tuple, sizeof(tuple), -1, 0);
		edit(if (sk) sk_release(sk);)
	}
	refuse(if (sk) sk_release(sk);)
	return 0; /* refused socket_in_loop: leak | `bpf_sk_lookup_udp` | bpf_sk_release on every path */
}

static noinline struct task_struct *first_task(void)
{
	return bpf_task_from_pid(1);
}

SEC("tc")
int from_function(struct __sk_buff *ctx)
{
	struct task_struct *task = first_task();

	if (!task)
		return 0;
	edit(bpf_task_release(task);)
	return ctx->len;
} /* refused from_function: leak | `bpf_task_from_pid` acquires the reference | bpf_task_release */

char LICENSE[] SEC("license") = "GPL";
