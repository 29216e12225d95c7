/* Pointers to objects of the kernel in maps. */
#include "kernel.h"

struct plain {
	u64 key;
	u64 value;
};

struct value {
	u64 count;
	struct task_struct __kptr *task;
	struct task_struct __kptr_untrusted *seen;
	struct plain __kptr *plain;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct value);
} values SEC(".maps");

static inline struct value *value(void)
{
	u32 zero = 0;

	return map_lookup_elem(&values, &zero);
}

SEC("tc")
int stored_plainly(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	if (!v)
		goto out;
	refuse(v->task = task;) /* refused stored_plainly: special-field | exchanged by bpf_kptr_xchg */
	edit(task = kptr_xchg(&v->task, task);)
out:
	if (task)
		bpf_task_release(task);
	return 0;
}

SEC("tc")
int exchanged_leaks(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *old;

	if (!v)
		return 0;
	old = kptr_xchg(&v->task, NULL);
	edit(if (old) bpf_task_release(old);)
	return !old;
} /* refused exchanged_leaks: leak | `bpf_kptr_xchg` | bpf_task_release or bpf_kptr_xchg */

SEC("tc")
int used_after_exchange(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *task, *old;
	int pid = 0;

	if (!v)
		return 0;
	task = bpf_task_from_pid(1);
	if (!task)
		return 0;
	edit(pid = task->pid;)
	old = kptr_xchg(&v->task, task);
	if (old)
		bpf_task_release(old);
	refuse(bpf_task_release(task);) /* refused used_after_exchange: released-twice | `bpf_task_release` releases what `bpf_kptr_xchg` already released */
	return pid;
}

SEC("tc")
int other_structure(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *task, *old;

	if (!v)
		return 0;
	task = bpf_task_from_pid(1);
	if (!task)
		return 0;
	old = kptr_xchg(CHOOSE((void *)&v->plain, (void *)&v->task), task); /* refused other_structure: field-type | `struct task_struct` | of the structure that the member is declared with */
	if (old)
		bpf_task_release(old);
	return 0;
}

SEC("tc")
int not_a_kptr(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *old;

	if (!v)
		return 0;
	old = kptr_xchg(CHOOSE((void *)&v->count, (void *)&v->task), NULL); /* refused not_a_kptr: object | no kptr is where argument 1 of `bpf_kptr_xchg` points to | pass the address of the member itself */
	if (old)
		bpf_task_release(old);
	return 0;
}

SEC("tc")
int unreferenced_exchanged(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *old;

	if (!v)
		return 0;
	old = kptr_xchg(CHOOSE((void *)&v->seen, (void *)&v->task), NULL); /* refused unreferenced_exchanged: object | a kptr that holds no reference (`__kptr_untrusted`) | declare the member with `__kptr` */
	if (old)
		bpf_task_release(old);
	return 0;
}

SEC("syscall")
int read_outside_rcu_sleepable(void *ctx)
{
	struct value *v = value();
	struct task_struct *task, *own;

	if (!v)
		return 0;
	edit(bpf_rcu_read_lock();)
	task = v->task;
	if (task) {
		own = bpf_task_acquire(task); /* refused read_outside_rcu_sleepable: argument-untrusted | that was read from a map outside of an RCU section | call bpf_rcu_read_lock before the pointer is read | bpf_kptr_xchg */
		if (own)
			bpf_task_release(own);
	}
	edit(bpf_rcu_read_unlock();)
	return 0;
}

SEC("syscall")
int kept_after_unlock(void *ctx)
{
	struct value *v = value();
	struct task_struct *task, *own = NULL;

	if (!v)
		return 0;
	bpf_rcu_read_lock();
	task = v->task;
	if (!task) {
		bpf_rcu_read_unlock();
		return 0;
	}
	edit(own = bpf_task_acquire(task);)
	bpf_rcu_read_unlock();
	refuse(own = bpf_task_acquire(task);) /* refused kept_after_unlock: argument-untrusted | that is valid only until `bpf_rcu_read_unlock` | call `bpf_task_acquire` before `bpf_rcu_read_unlock` | ends the section in which the pointer was valid */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("tc")
int read_unchecked(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *task;
	int pid = 0;

	if (!v)
		return 0;
	bpf_rcu_read_lock();
	task = v->task;
	edit(if (task))
		pid = task->pid; /* refused read_unchecked: maybe-null | which may be null | check it before its use */
	bpf_rcu_read_unlock();
	return pid;
}

SEC("tc")
int released_from_map(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *task;

	if (!v)
		return 0;
	bpf_rcu_read_lock();
	task = CHOOSE(v->task, kptr_xchg(&v->task, NULL));
	if (task)
		bpf_task_release(task); /* refused released_from_map: argument-untrusted | `bpf_task_release` | take it out of the map by bpf_kptr_xchg */
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tc")
int seen_is_untrusted(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct task_struct *task, *own;

	if (!v)
		return 0;
	bpf_rcu_read_lock();
	task = CHOOSE(v->seen, v->task);
	if (task) {
		own = bpf_task_acquire(task); /* refused seen_is_untrusted: argument-untrusted | `bpf_task_acquire` | bpf_kptr_xchg */
		if (own)
			bpf_task_release(own);
	}
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tc")
int copied_whole(struct __sk_buff *ctx)
{
	struct value *v = value();
	u8 copy[sizeof(struct value)];

	if (!v)
		return 0;
	probe_read_kernel(copy, CHOOSE(sizeof(copy), 8), v);
	return skb_load_bytes(ctx, 0, v, CHOOSE(16, 8)); /* refused copied_whole: special-field | a helper accesses the map value where its `kptr` is | copy the members one by one */
}

SEC("tc")
int part_read(struct __sk_buff *ctx)
{
	struct value *v = value();

	if (!v)
		return 0;
	return CHOOSE(*(u32 *)&v->task, (u32)v->count); /* refused part_read: special-field | where its `kptr` is | read as 8 bytes at their offset */
}

SEC("tc")
int number_stored(struct __sk_buff *ctx)
{
	struct value *v = value();

	if (!v)
		return 0;
	*(u64 *)CHOOSE((void *)&v->seen, (void *)&v->count) = ctx->len; /* refused number_stored: field-type | is stored into a `kptr` of a map value | or null */
	return 0;
}

SEC("tc")
int variable_offset(struct __sk_buff *ctx)
{
	struct value *v = value();
	u32 which = CHOOSE(ctx->mark & 1, 0);
	struct task_struct *old;

	if (!v)
		return 0;
	old = kptr_xchg((void *)&v->task + which * 16, NULL); /* refused variable_offset: object | the address of a kptr, has an offset that is not constant | choose by constants */
	if (old)
		bpf_task_release(old);
	return 0;
}

SEC("tc")
int own_object_leaks(struct __sk_buff *ctx)
{
	struct value *v = value();
	struct plain *plain = bpf_obj_new_impl(type_id(struct plain), NULL);

	if (!plain)
		return 0;
	if (!v || ctx->len > 100) {
		edit(bpf_obj_drop_impl(plain, NULL);)
		return 1;
	}
	plain = kptr_xchg(&v->plain, plain);
	if (plain)
		bpf_obj_drop_impl(plain, NULL);
	return 0;
} /* refused own_object_leaks: leak | `bpf_obj_new_impl` | bpf_obj_drop */

char LICENSE[] SEC("license") = "GPL";
