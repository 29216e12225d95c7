// SPDX-License-Identifier: MIT OR Apache-2.0
// Programs that reach objects of the kernel: arguments of tracepoints and iterators, fields
// of structures, kfuncs. What Linux 6.18 answered stands in kernel_types.linux-6.18.txt.
//
// UPDATE_EXPECT=1 cargo test -p beebox-differential --test it committed:: compiles it again.
#include "kernel_types.h"

char _license[] SEC("license") = "GPL";

extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;
extern struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern void *bpf_rdonly_cast(const void *obj, u32 type) __ksym;
extern void *bpf_cast_to_kern_ctx(void *obj) __ksym;
extern void bpf_throw(u64 cookie) __ksym;
extern int bpf_strlen(const char *s) __ksym;
extern int bpf_strcmp(const char *one, const char *other) __ksym;
extern struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
extern void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym;
extern bool bpf_cpumask_empty(const struct cpumask *mask) __ksym;
extern void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym;
extern int bpf_sock_destroy(struct sock_common *sk) __ksym;

u64 seen;
const char format[] = "%d\n";

SEC("tp_btf/sched_switch")
int tp_reads_field(u64 *ctx)
{
	struct task_struct *prev = ARG(struct task_struct *, 1);
	struct task_struct *next = ARG(struct task_struct *, 2);
	seen = prev->pid + next->tgid;
	return 0;
}

SEC("tp_btf/sched_pi_setprio")
int tp_null_unchecked(u64 *ctx)
{
	struct task_struct *pi = ARG(struct task_struct *, 1);
	seen = pi->pid;
	return 0;
}

SEC("tp_btf/sched_pi_setprio")
int tp_null_checked(u64 *ctx)
{
	struct task_struct *pi = ARG(struct task_struct *, 1);
	if (pi)
		seen = pi->pid;
	return 0;
}

SEC("tp_btf/tcp_send_reset")
int tp_suffix_unchecked(u64 *ctx)
{
	const struct sk_buff *skb = ARG(const struct sk_buff *, 1);
	seen = skb->len;
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_beyond_arguments(u64 *ctx)
{
	seen = ctx[5];
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_odd_offset(u64 *ctx)
{
	seen = *(u32 *)((char *)ctx + 12);
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_writes_task(u64 *ctx)
{
	struct task_struct *prev = ARG(struct task_struct *, 1);
	prev->pid = 0;
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_beyond_struct(u64 *ctx)
{
	struct task_struct *prev = ARG(struct task_struct *, 1);
	seen = *((u64 *)prev + 100000);
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_trusted_to_kfunc(u64 *ctx)
{
	struct task_struct *prev = ARG(struct task_struct *, 1);
	struct task_struct *held = bpf_task_acquire(prev);

	if (held)
		bpf_task_release(held);
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_walked_to_kfunc(u64 *ctx)
{
	struct task_struct *prev = ARG(struct task_struct *, 1);
	struct task_struct *held = bpf_task_acquire(prev->last_wakee);

	if (held)
		bpf_task_release(held);
	return 0;
}

SEC("tp_btf/sched_switch")
int tp_unreleased(u64 *ctx)
{
	struct task_struct *prev = ARG(struct task_struct *, 1);
	struct task_struct *held = bpf_task_acquire(prev);

	return held ? 1 : 0;
}

SEC("iter/task")
int iter_null_unchecked(struct bpf_iter__task *ctx)
{
	seen = ctx->task->pid;
	return 0;
}

SEC("iter/task")
int iter_null_checked(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (task)
		{
		u64 pid = task->pid;

		bpf_seq_printf(ctx->meta->seq, format, sizeof(format), &pid, sizeof(pid));
	}
	return 0;
}

SEC("iter/bpf_map_elem")
int iter_element(struct bpf_iter__bpf_map_elem *ctx)
{
	u32 *key = ctx->key;
	u64 *value = ctx->value;

	if (!key || !value)
		return 0;
	seen = *key + value[1];
	value[0] = 1;
	return 0;
}

SEC("iter/bpf_map_elem")
int iter_writes_key(struct bpf_iter__bpf_map_elem *ctx)
{
	u32 *key = ctx->key;

	if (key)
		*key = 1;
	return 0;
}

SEC("iter/tcp")
int iter_destroys_socket(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;

	if (sk)
		bpf_sock_destroy(sk);
	return 0;
}

SEC("syscall")
int rcu_after_unlock(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf(), *parent, *held;

	bpf_rcu_read_lock();
	parent = task->real_parent;
	bpf_rcu_read_unlock();
	held = bpf_task_acquire(parent);
	if (held)
		bpf_task_release(held);
	return 0;
}

SEC("syscall")
int rcu_inside(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf(), *held;

	bpf_rcu_read_lock();
	held = bpf_task_acquire(task->real_parent);
	bpf_rcu_read_unlock();
	if (held)
		bpf_task_release(held);
	return 0;
}

SEC("syscall")
int rcu_nested(void *ctx)
{
	bpf_rcu_read_lock();
	bpf_rcu_read_lock();
	bpf_rcu_read_unlock();
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall")
int rcu_unmatched(void *ctx)
{
	bpf_rcu_read_unlock();
	return 0;
}

SEC("syscall")
int rcu_left_open(void *ctx)
{
	bpf_rcu_read_lock();
	return 0;
}

SEC("syscall")
int preempt_unmatched(void *ctx)
{
	bpf_preempt_disable();
	bpf_preempt_enable();
	bpf_preempt_enable();
	return 0;
}

SEC("syscall")
int preempt_sleeps(void *ctx)
{
	char bytes[8];

	bpf_preempt_disable();
	bpf_copy_from_user(bytes, sizeof(bytes), ctx);
	bpf_preempt_enable();
	return 0;
}

SEC("syscall")
int strings(void *ctx)
{
	return bpf_strlen("text") + bpf_strcmp("a", "b");
}

SEC("syscall")
int release_twice(void *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	bpf_task_release(task);
	bpf_task_release(task);
	return 0;
}

SEC("syscall")
int release_null(void *ctx)
{
	bpf_task_release(bpf_task_from_pid(1));
	return 0;
}

SEC("syscall")
int wrong_object(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_cpumask_empty((void *)task);
}

SEC("syscall")
int scalar_for_object(void *ctx)
{
	return bpf_cpumask_empty((void *)1);
}

SEC("syscall")
int cpumask(void *ctx)
{
	struct bpf_cpumask *mask = bpf_cpumask_create();
	int empty;

	if (!mask)
		return 0;
	bpf_cpumask_set_cpu(0, mask);
	empty = bpf_cpumask_empty((struct cpumask *)mask);
	bpf_cpumask_release(mask);
	return empty;
}

SEC("tc")
int cast_to_kernel_context(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);

	return kernel->len;
}

SEC("tc")
int cast_of_number(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx((void *)1);

	return kernel->len;
}

SEC("tc")
int cast_to_structure(struct __sk_buff *skb)
{
	struct sk_buff *kernel = bpf_cast_to_kern_ctx(skb);
	struct skb_shared_info *info =
		bpf_rdonly_cast(kernel->head + kernel->end, bpf_core_type_id_kernel(struct skb_shared_info));

	return info->nr_frags;
}

SEC("tc")
int throws_number(struct __sk_buff *skb)
{
	if (skb->len > 100)
		bpf_throw(2);
	return 0;
}

SEC("tc")
int throws_with_reference(struct __sk_buff *skb)
{
	struct bpf_sock *sk = bpf_sk_lookup_tcp(skb, &(struct bpf_sock_tuple){}, 12, 0, 0);

	if (!sk)
		return 0;
	bpf_throw(0);
	bpf_sk_release(sk);
	return 0;
}

static int in_callback(u32 index, void *ctx)
{
	bpf_throw(0);
	return 0;
}

SEC("tc")
int throws_in_callback(struct __sk_buff *skb)
{
	bpf_loop(4, in_callback, 0, 0);
	return 0;
}
