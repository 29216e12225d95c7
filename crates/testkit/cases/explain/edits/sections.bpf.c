/* Sections: RCU, preemption, saved IRQ flags, and calls that sleep. */
#include "kernel.h"

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u32);
} programs SEC(".maps");

SEC("tc")
int rcu_open(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf(), *parent;
	int pid = 0;

	bpf_rcu_read_lock();
	parent = task->real_parent;
	pid = parent->pid;
	if (pid == 1) {
		edit(bpf_rcu_read_unlock();)
		return 1;
	}
	bpf_rcu_read_unlock();
	return 0;
} /* refused rcu_open: section-open | inside a section that `bpf_rcu_read_lock` began | call `bpf_rcu_read_unlock` before each return | `bpf_rcu_read_lock` begins the section */

SEC("tc")
int preempt_open(struct __sk_buff *ctx)
{
	bpf_preempt_disable();
	if (ctx->len > 100) {
		edit(bpf_preempt_enable();)
		return 1;
	}
	bpf_preempt_enable();
	return 0;
} /* refused preempt_open: section-open | inside a section that `bpf_preempt_disable` began | `bpf_preempt_enable` before each return | begins the section */

SEC("tc")
int preempt_twice(struct __sk_buff *ctx)
{
	bpf_preempt_disable();
	bpf_preempt_disable();
	bpf_preempt_enable();
	edit(bpf_preempt_enable();)
	return 0; /* refused preempt_twice: section-open | `bpf_preempt_enable` on every path */
}

SEC("tc")
int irq_open(struct __sk_buff *ctx)
{
	unsigned long flags;

	bpf_local_irq_save(&flags);
	if (ctx->len > 100) {
		edit(bpf_local_irq_restore(&flags);)
		return 1;
	}
	bpf_local_irq_restore(&flags);
	return 0;
} /* refused irq_open: section-open | inside a section that `bpf_local_irq_save` began | `bpf_local_irq_restore` before each return | `bpf_local_irq_save` begins the section */

SEC("tc")
int rcu_nested(struct __sk_buff *ctx)
{
	bpf_rcu_read_lock();
	refuse(bpf_rcu_read_lock();) /* refused rcu_nested: section-nested | `bpf_rcu_read_lock` is called in a section that `bpf_rcu_read_lock` began | remove the inner `bpf_rcu_read_lock` | begins the section */
	refuse(bpf_rcu_read_unlock();)
	bpf_rcu_read_unlock();
	return 0;
}

SEC("tc")
int rcu_unlock_twice(struct __sk_buff *ctx)
{
	bpf_rcu_read_lock();
	bpf_rcu_read_unlock();
	refuse(bpf_rcu_read_unlock();) /* refused rcu_unlock_twice: section-not-open | `bpf_rcu_read_unlock` is called outside of a section that `bpf_rcu_read_lock` begins | once for each of them */
	return 0;
}

SEC("tc")
int enable_alone(struct __sk_buff *ctx)
{
	edit(bpf_preempt_disable();)
	bpf_preempt_enable(); /* refused enable_alone: section-not-open | outside of a section that `bpf_preempt_disable` begins | call `bpf_preempt_disable` first */
	return 0;
}

SEC("syscall")
int sleeps_under_rcu(void *ctx)
{
	u32 value = 0;

	bpf_rcu_read_lock();
	edit(bpf_rcu_read_unlock();)
	copy_from_user(&value, sizeof(value), NULL); /* refused sleeps_under_rcu: sleeps | `bpf_copy_from_user` may sleep, and is called in a section that `bpf_rcu_read_lock` began | call `bpf_rcu_read_unlock` before it | begins the section */
	refuse(bpf_rcu_read_unlock();)
	return 0;
}

SEC("syscall")
int sleeps_non_preemptible(void *ctx)
{
	u32 value = 0;

	bpf_preempt_disable();
	edit(bpf_preempt_enable();)
	copy_from_user(&value, sizeof(value), NULL); /* refused sleeps_non_preemptible: sleeps | in a section that `bpf_preempt_disable` began | call `bpf_preempt_enable` before it */
	refuse(bpf_preempt_enable();)
	return 0;
}

SEC("syscall")
int sleeps_irq_off(void *ctx)
{
	unsigned long flags;
	u32 value = 0;

	bpf_local_irq_save(&flags);
	edit(bpf_local_irq_restore(&flags);)
	copy_from_user(&value, sizeof(value), NULL); /* refused sleeps_irq_off: sleeps | in a section that `bpf_local_irq_save` began | call `bpf_local_irq_restore` before it */
	refuse(bpf_local_irq_restore(&flags);)
	return 0;
}

SEC("syscall")
int kfunc_sleeps_under_rcu(void *ctx)
{
	char text[8] = {};

	bpf_rcu_read_lock();
	edit(bpf_rcu_read_unlock();)
	bpf_copy_from_user_str(text, sizeof(text), NULL, 0); /* refused kfunc_sleeps_under_rcu: sleeps | `bpf_copy_from_user_str` may sleep | call `bpf_rcu_read_unlock` before it */
	refuse(bpf_rcu_read_unlock();)
	return text[0];
}

SEC(CHOOSE("tc", "syscall"))
int sleeps_in_tc(void *ctx)
{
	char text[8] = {};

	bpf_copy_from_user_str(text, sizeof(text), NULL, 0); /* refused sleeps_in_tc: sleeps | `bpf_copy_from_user_str` may sleep, and this program must not | a sleepable program | SEC("syscall") */
	return text[0];
}

SEC(CHOOSE("uprobe", "uprobe.s"))
int sleeps_in_uprobe(void *ctx)
{
	u32 value = 0;

	copy_from_user(&value, sizeof(value), ctx); /* refused sleeps_in_uprobe: sleeps | `bpf_copy_from_user` may sleep, and this program must not | SEC("uprobe.s") */
	return value;
}

SEC("tc")
int irq_out_of_order(struct __sk_buff *ctx)
{
	unsigned long outer, inner;

	bpf_local_irq_save(&outer);
	bpf_local_irq_save(&inner);
	bpf_local_irq_restore(CHOOSE(&outer, &inner)); /* refused irq_out_of_order: stack-object | restores IRQ flags while those that were saved behind them | restore in the reverse order of saving | `bpf_local_irq_save` begins the section */
	bpf_local_irq_restore(CHOOSE(&inner, &outer));
	return 0;
}

SEC("tc")
int irq_restored_twice(struct __sk_buff *ctx)
{
	unsigned long flags;

	bpf_local_irq_save(&flags);
	bpf_local_irq_restore(&flags);
	refuse(bpf_local_irq_restore(&flags);) /* refused irq_restored_twice: stack-object | IRQ flags that `bpf_local_irq_restore` ended | end it once | `bpf_local_irq_save` makes it | `bpf_local_irq_restore` ends it */
	return 0;
}

SEC("tc")
int irq_saved_twice(struct __sk_buff *ctx)
{
	unsigned long flags, more;

	bpf_local_irq_save(&flags);
	bpf_local_irq_save(CHOOSE(&flags, &more)); /* refused irq_saved_twice: stack-object | is no place for IRQ flags | use another variable | `bpf_local_irq_save` makes it */
	bpf_local_irq_restore(CHOOSE(&flags, &more));
	bpf_local_irq_restore(&flags);
	return 0;
}

unsigned long saved;

SEC("tc")
int irq_flags_global(struct __sk_buff *ctx)
{
	unsigned long flags;

	bpf_local_irq_save(CHOOSE(&saved, &flags)); /* refused irq_flags_global: stack-object | does not point to IRQ flags on the stack | make it a local variable */
	bpf_local_irq_restore(CHOOSE(&saved, &flags));
	return 0;
}

SEC("tc")
int irq_flags_never_saved(struct __sk_buff *ctx)
{
	unsigned long flags;

	edit(bpf_local_irq_save(&flags);)
	bpf_local_irq_restore(&flags); /* refused irq_flags_never_saved: stack-object | is not IRQ flags: this path made none there | save them (bpf_local_irq_save */
	return 0;
}

SEC("tc")
int tail_call_under_rcu(struct __sk_buff *ctx)
{
	bpf_rcu_read_lock();
	edit(bpf_rcu_read_unlock();)
	tail_call(ctx, &programs, 0); /* refused tail_call_under_rcu: section-open | reaches `bpf_tail_call` inside a section that `bpf_rcu_read_lock` began | call `bpf_rcu_read_unlock` before `bpf_tail_call` */
	refuse(bpf_rcu_read_unlock();)
	return 0;
}

SEC("tc")
int throw_under_rcu(struct __sk_buff *ctx)
{
	bpf_rcu_read_lock();
	edit(bpf_rcu_read_unlock();)
	if (ctx->len > 100)
		bpf_throw(0); /* refused throw_under_rcu: section-open | reaches `bpf_throw` inside a section that `bpf_rcu_read_lock` began */
	refuse(bpf_rcu_read_unlock();)
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
