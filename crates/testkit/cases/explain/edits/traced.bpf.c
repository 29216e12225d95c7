/* Programs whose context holds arguments of the kernel: tracepoints with BTF, iterators. */
#include "kernel.h"

u64 seen;

SEC("tp_btf/task_newtask")
int third_argument(u64 *ctx)
{
	seen = ARG(u64, CHOOSE(2, 1)); /* refused third_argument: context-argument | the program reads argument 3 of `task_newtask`, which has 2 | `struct task_struct *` and | give the program the parameters of the function */
	return 0;
}

SEC("tp_btf/task_newtask")
int middle_of_argument(u64 *ctx)
{
	u32 high = *(volatile u32 *)((void *)ctx + CHOOSE(12, 8)); /* refused middle_of_argument: context-argument | the read begins in the middle of argument 2 of `task_newtask` | each argument takes 8 bytes */

	seen = high;
	return 0;
}

SEC("tp_btf/task_newtask")
int half_pointer(u64 *ctx)
{
	seen = *(volatile u32 *)((void *)ctx + CHOOSE(0, 8)); /* refused half_pointer: context-argument | argument 1 of `task_newtask` (`struct task_struct *`), a pointer, is read as 4 bytes | read the context as `u64` */
	return 0;
}

SEC("tp_btf/task_newtask")
int context_written(u64 *ctx)
{
	refuse(ctx[1] = 0;) /* refused context_written: context-argument | argument 2 of `task_newtask` | is written, and programs only read the arguments | work on a copy */
	return 0;
}

SEC("tp_btf/task_newtask")
int beyond_structure(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0);

	seen = *(volatile int *)((void *)task + (CHOOSE(1 << 20, 0))); /* refused beyond_structure: kernel-object | `struct task_struct` | access beyond struct task_struct */
	return 0;
}

SEC("tp_btf/task_newtask")
int negative_offset(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0);

	seen = *(volatile int *)((void *)task - (CHOOSE(8, 0))); /* refused negative_offset: out-of-bounds | `struct task_struct` */
	return 0;
}

SEC("tp_btf/task_newtask")
int index_into_structure(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0);
	u64 index = ARG(u64, 1) & 7;

	seen = task->comm[CHOOSE(index, 7)]; /* refused index_into_structure: offset-variable | an access of 1 byte to `struct task_struct` with a variable offset | a constant offset */
	return 0;
}

SEC("tp_btf/task_newtask")
int number_followed(u64 *ctx)
{
	struct task_struct *task = (void *)ARG(u64, 1);

	edit(task = ARG(struct task_struct *, 0);)
	seen = task->pid; /* refused number_followed: not-a-pointer | is used as a pointer */
	return 0;
}

SEC("tp_btf/task_newtask")
int member_acquired(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0), *own;

	own = bpf_task_acquire(CHOOSE(task->last_wakee, task)); /* refused member_acquired: argument-untrusted | that was read from `struct task_struct` | or pass the object itself */
	if (own)
		bpf_task_release(own);
	return 0;
}

struct bpf_iter_meta;
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
} core;

SEC("iter/task")
int last_is_null(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	edit(if (!task) return 0;)
	seen = task->pid; /* refused last_is_null: maybe-null | which may be null | check it before its use */
	return 0;
}

SEC("iter/task")
int iterator_result(struct bpf_iter__task *ctx)
{
	return CHOOSE(2, 0); /* refused iterator_result: return-range | returns 2 | a value from 0 to 1 */
}

SEC("raw_tp/task_newtask")
int raw_argument_followed(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0);
	int pid = 0;

	CHOOSE(pid = task->pid, probe_read_kernel(&pid, sizeof(pid), &task->pid)); /* refused raw_argument_followed: not-a-pointer | of the context is a number and is used as a pointer | BPF_CORE_READ */
	return pid;
}

char LICENSE[] SEC("license") = "GPL";
