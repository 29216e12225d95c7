/* LSM and tracing programs that read their arguments.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c hooks.bpf.c && llvm-strip-19 -g hooks.bpf.o
 */
#include "attach.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct path {
	void *mnt;
};
struct inode {
	unsigned long i_ino;
};
struct file {
	u32 f_mode;
	struct inode *f_inode;
	struct path f_path;
};
struct dentry {
	struct inode *d_inode;
};
struct nsproxy {
	u32 count;
};
struct task_struct {
	s32 pid;
	struct task_struct *real_parent;
	struct nsproxy *nsproxy;
};
struct sock {
	u32 sk_mark;
};
struct socket {
	struct sock *sk;
};
#pragma clang attribute pop

struct task_struct *bpf_task_acquire(struct task_struct *p) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

struct {
	__uint(type, 28);
	__uint(map_flags, 1);
	__type(key, int);
	__type(value, u64);
} inodes SEC(".maps");

u64 seen;
char text[64];

SEC("lsm/file_open")
int reads_members(u64 *ctx)
{
	struct file *file = (void *)ctx[0];

	seen += file->f_mode;
	return file->f_inode->i_ino == 5 ? -1 : 0;
}

SEC("lsm/file_open")
int returns_what_is(u64 *ctx)
{
	return (int)ctx[1];
}

SEC("lsm/file_open")
int returns_one(u64 *ctx)
{
	return 1;
}

SEC("lsm/file_open")
int reads_beyond(u64 *ctx)
{
	return ctx[2];
}

SEC("lsm/file_open")
int writes_member(u64 *ctx)
{
	struct file *file = (void *)ctx[0];

	file->f_mode = 1;
	return 0;
}

SEC("lsm/task_free")
int returns_from_void(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	seen += task->real_parent->pid;
	return 5;
}

SEC("lsm/task_alloc")
int protected_by_rcu(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];

	return task->nsproxy ? 0 : -1;
}

SEC("lsm/inode_unlink")
int keeps_storage(u64 *ctx)
{
	struct dentry *entry = (void *)ctx[1];
	u64 *value = bpf_inode_storage_get(&inodes, entry->d_inode, 0, 1);

	if (value)
		*value += 1;
	return 0;
}

SEC("lsm/mmap_file")
int file_may_be_null(u64 *ctx)
{
	struct file *file = (void *)ctx[0];

	return file->f_mode ? 0 : -1;
}

SEC("lsm/getprocattr")
int disabled(u64 *ctx)
{
	return 0;
}

SEC("lsm.s/file_open")
int sleeps(u64 *ctx)
{
	struct file *file = (void *)ctx[0];

	bpf_d_path(&file->f_path, text, sizeof(text));
	bpf_copy_from_user(text, 8, (void *)seen);
	return 0;
}

SEC("lsm_cgroup/socket_bind")
int binds(u64 *ctx)
{
	bpf_set_retval(-1);
	return 1;
}

SEC("lsm_cgroup/socket_bind")
int binds_by_two(u64 *ctx)
{
	return 2;
}

SEC("lsm_cgroup/sk_clone_security")
int refuses_void(u64 *ctx)
{
	return 0;
}

SEC("lsm_cgroup/socket_post_create")
int sets_option(u64 *ctx)
{
	struct socket *socket = (void *)ctx[0];
	struct sock *sk = socket->sk;
	int one = 1;

	if (sk)
		bpf_setsockopt(sk, 1, 12, (void *)&one, sizeof(one));
	return 1;
}

SEC("fentry/vfs_read")
int reads_file(u64 *ctx)
{
	struct file *file = (void *)ctx[0];

	seen += file->f_inode->i_ino + ctx[2];
	return 0;
}

SEC("fexit/vfs_read")
int reads_result(u64 *ctx)
{
	u64 result = ctx[4];

	bpf_get_func_ret(ctx, &result);
	seen += result;
	return 0;
}

SEC("fentry/vfs_read")
int reads_result_before(u64 *ctx)
{
	return ctx[4] ? 0 : 0;
}

SEC("fentry/vfs_read")
int reads_half(u32 *ctx)
{
	seen += ctx[0];
	return 0;
}

SEC("fentry/vfs_read")
int returns_five(u64 *ctx)
{
	return 5;
}

SEC("fentry/wake_up_new_task")
int acquires(u64 *ctx)
{
	struct task_struct *task = bpf_task_acquire((void *)ctx[0]);

	if (task)
		bpf_task_release(task);
	return 0;
}

SEC("fmod_ret/security_file_open")
int keeps_result(u64 *ctx)
{
	return ctx[1];
}

SEC("fmod_ret/vfs_read")
int not_modifiable(u64 *ctx)
{
	return 0;
}

SEC("fentry.s/vfs_read")
int not_sleepable(u64 *ctx)
{
	return 0;
}

SEC("fexit/do_exit")
int never_returns(u64 *ctx)
{
	return 0;
}

SEC("iter/num_new")
int iterates_function(void *ctx)
{
	return 0;
}

SEC("lsm/file_open")
int stores_argument(u64 *ctx)
{
	ctx[0] = 7;
	return 0;
}

SEC("lsm/file_open")
int stores_half(u64 *ctx)
{
	*(volatile u32 *)ctx = 7;
	return 0;
}

SEC("fentry/vfs_read")
int stores_at_entry(u64 *ctx)
{
	ctx[0] = 7;
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
