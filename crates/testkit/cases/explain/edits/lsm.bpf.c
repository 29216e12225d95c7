/* Programs at LSM hooks. */
#include "kernel.h"

u64 seen;
extern struct file *bpf_get_task_exe_file(struct task_struct *task) __ksym;
extern void bpf_put_file(struct file *file) __ksym;
extern int bpf_path_d_path(struct path *path, char *to, u64 size) __ksym;

SEC("lsm/file_open")
int positive_result(u64 *ctx)
{
	return CHOOSE(1, 0); /* refused positive_result: return-range | this lsm program of `bpf_lsm_file_open` returns 1 | a value from -4095 to 0 | a negative error number denies it */
}

SEC("lsm/file_open")
int beyond_errno(u64 *ctx)
{
	return CHOOSE(-5000, -1); /* refused beyond_errno: return-range | a value from -4095 to 0 */
}

SEC("lsm/file_open")
int helper_decides(u64 *ctx)
{
	u64 now = bpf_get_current_pid_tgid();

	seen = now;
	return CHOOSE(now, now ? -1 : 0); /* refused helper_decides: return-range | r0 still holds the result of `bpf_get_current_pid_tgid` */
}

SEC("lsm/audit_rule_known")
int true_is_two(u64 *ctx)
{
	return CHOOSE(2, 1); /* refused true_is_two: return-range | returns 2 | a value from 0 to 1 | 0 is false and 1 is true */
}

SEC(CHOOSE("lsm/getprocattr", "lsm/file_open"))
int closed_hook(u64 *ctx)
{
	return 0;
} /* refused closed_hook: attach-target | `bpf_lsm_getprocattr` is a hook that Linux closes to programs | attach to another hook */

SEC(CHOOSE("lsm.s/task_kill", "lsm/task_kill"))
int sleeps_there(u64 *ctx)
{
	return 0;
} /* refused sleeps_there: attach-target | the program may sleep, and programs at `bpf_lsm_task_kill` must not | leave `.s` out of the section name */

SEC("lsm/file_open")
int third_argument(u64 *ctx)
{
	seen = ctx[CHOOSE(3, 0)]; /* refused third_argument: context-argument | of `bpf_lsm_file_open`, which has 1 | `struct file *file` */
	return 0;
}

SEC("lsm/file_open")
int file_put(u64 *ctx)
{
	refuse(bpf_put_file(ARG(struct file *, 0));) /* refused file_put: not-acquired | argument 1 of `bpf_put_file` was not acquired */
	return 0;
}

SEC("lsm/file_open")
int exe_leaks(u64 *ctx)
{
	struct file *file = bpf_get_task_exe_file(get_current_task_btf());

	if (!file)
		return 0;
	edit(bpf_put_file(file);)
	return -1;
} /* refused exe_leaks: leak | `bpf_get_task_exe_file` | call bpf_put_file before each return */

SEC("lsm/file_open")
int file_for_path(u64 *ctx)
{
	struct file *file = ARG(struct file *, 0);
	char name[64];

	bpf_path_d_path(CHOOSE((struct path *)file, &file->f_path), name, sizeof(name)); /* refused file_for_path: argument-type | argument 1 of `bpf_path_d_path` is a pointer to `struct file` | a pointer to a `struct path` */
	return 0;
}

SEC(CHOOSE("lsm/file_open", "lsm.s/file_open"))
int sleeps_in_plain_hook(u64 *ctx)
{
	u32 value = 0;

	copy_from_user(&value, sizeof(value), NULL); /* refused sleeps_in_plain_hook: sleeps | `bpf_copy_from_user` may sleep | SEC("lsm.s/…") */
	return 0;
}

SEC("lsm/file_open")
int file_written(u64 *ctx)
{
	struct file *file = ARG(struct file *, 0);

	refuse(file->f_flags = 0;) /* refused file_written: kernel-object | this program may not write to `struct file` */
	seen = file->f_flags;
	return 0;
}

SEC(CHOOSE("lsm/task_free", "lsm/task_alloc"))
int freed_acquired(u64 *ctx)
{
	struct task_struct *task = bpf_task_acquire(ARG(struct task_struct *, 0)); /* refused freed_acquired: argument-untrusted | argument 1 of `bpf_task_acquire` | this hook's arguments are not trusted | another LSM hook */

	if (task)
		bpf_task_release(task);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
