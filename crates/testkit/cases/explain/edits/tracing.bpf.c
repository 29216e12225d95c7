/* Programs at functions of the kernel: fentry, fexit, fmod_ret. */
#include "kernel.h"

u64 seen;

struct {
	__uint(type, HASH);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

SEC("fentry/tcp_connect")
int entry_result(u64 *ctx)
{
	return CHOOSE(1, 0); /* refused entry_result: return-range | this tracing program of `tcp_connect` returns 1 | 0 on every path | nothing reads the result of such a program */
}

SEC("fexit/tcp_connect")
int pid_as_result(u64 *ctx)
{
	u64 pid = bpf_get_current_pid_tgid();

	seen = pid;
	return CHOOSE(pid, 0); /* refused pid_as_result: return-range | this tracing program of `tcp_connect` may return any number | r0 still holds the result of `bpf_get_current_pid_tgid` */
}

SEC("fentry/tcp_connect")
int second_argument(u64 *ctx)
{
	seen = ctx[CHOOSE(1, 0)]; /* refused second_argument: context-argument | the program reads argument 2 of `tcp_connect`, which has 1 | `struct sock *sk` */
	return 0;
}

SEC(CHOOSE("fentry/tcp_connect", "fexit/tcp_connect"))
int result_at_entry(u64 *ctx)
{
	seen = ctx[1]; /* refused result_at_entry: context-argument | the program reads argument 2 of `tcp_connect` | the result is there for fexit, fmod_ret and LSM programs only */
	return 0;
}

SEC("fentry/tcp_connect")
int half_of_pointer(u64 *ctx)
{
	seen = *(volatile CHOOSE(u32, u64) *)ctx; /* refused half_of_pointer: context-argument | argument 1 of `tcp_connect` (`struct sock *sk`), a pointer, is read as 4 bytes */
	return 0;
}

SEC("fentry/tcp_connect")
int argument_written(u64 *ctx)
{
	refuse(ctx[0] = 0;) /* refused argument_written: context-argument | argument 1 of `tcp_connect` (`struct sock *sk`) is written | fmod_ret and LSM programs replace the result by what they return */
	return 0;
}

SEC(CHOOSE("fentry/wake_up_new_task", "tp_btf/sched_wakeup_new"))
int traced_argument(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0), *own;

	own = bpf_task_acquire(task); /* refused traced_argument: argument-untrusted | that a traced function got as its argument | attach to a tracepoint (`tp_btf`) or an LSM hook */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("fentry/wake_up_new_task")
int member_of_traced(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0), *own;
	edit(struct task_struct *current = get_current_task_btf();)

	own = bpf_task_acquire(CHOOSE(task->real_parent, current)); /* refused member_of_traced: argument-untrusted | that was read from `struct task_struct` */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("fentry/wake_up_new_task")
int object_written(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0);

	refuse(task->pid = 0;) /* refused object_written: kernel-object | this program may not write to `struct task_struct` */
	seen = task->pid;
	return 0;
}

SEC("fentry/wake_up_new_task")
int beyond_argument(u64 *ctx)
{
	struct task_struct *task = ARG(struct task_struct *, 0);

	seen = *(volatile u32 *)((void *)task + (CHOOSE(1 << 20, 0))); /* refused beyond_argument: kernel-object | access beyond struct task_struct | the type that the pointer is declared with */
	return 0;
}

SEC(CHOOSE("fmod_ret/tcp_connect", "fmod_ret/security_task_kill"))
int not_modifiable(u64 *ctx)
{
	return 0;
} /* refused not_modifiable: attach-target | programs may not replace what `tcp_connect` returns | begins with `security_` | attach by fexit */

SEC(CHOOSE("fentry.s/tcp_connect", "fentry/tcp_connect"))
int sleeps_there(u64 *ctx)
{
	return 0;
} /* refused sleeps_there: attach-target | the program may sleep, and programs at `tcp_connect` must not | leave `.s` out of the section name */

SEC(CHOOSE("fexit/do_exit", "fentry/do_exit"))
int never_returns(u64 *ctx)
{
	return 0;
} /* refused never_returns: attach-target | `do_exit` never returns | attach by fentry */

SEC(CHOOSE("fentry/__rcu_read_lock", "fentry/tcp_connect"))
int denied(u64 *ctx)
{
	return 0;
} /* refused denied: attach-target | `__rcu_read_lock` is not for tracing | attach to a function that calls it */

SEC("fentry/tcp_connect")
int copies_from_user(u64 *ctx)
{
	u32 value = 0;

	CHOOSE(copy_from_user(&value, sizeof(value), (void *)ctx[0]), probe_read_user(&value, sizeof(value), (void *)ctx[0])); /* refused copies_from_user: sleeps | `bpf_copy_from_user` may sleep, and this program must not | a sleepable program */
	return 0;
}

SEC("fentry/tcp_connect")
int leaks_task(u64 *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	seen = task->pid;
	edit(bpf_task_release(task);)
	return 0; 
} /* refused leaks_task: leak | `bpf_task_from_pid` | bpf_task_release */

SEC("fexit/tcp_connect")
int number_as_pointer(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[CHOOSE(1, 0)];

	seen = *(u32 *)task; /* refused number_as_pointer: not-a-pointer | is used as a pointer */
	return 0;
}

SEC("fentry/tcp_connect")
int key_of_kernel(u64 *ctx)
{
	struct sock *sk = ARG(struct sock *, 0);
	u32 key = sk->sk_rcvbuf;
	u64 *count = map_lookup_elem(&counts, CHOOSE((void *)&sk->sk_rcvbuf, (void *)&key)); /* refused key_of_kernel: argument-untrusted | argument 2 of `bpf_map_lookup_elem` is a pointer to `struct sock` that a traced function got as its argument */

	if (count)
		*count += 1;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
