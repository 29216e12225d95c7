// Programs of types that a model of the kernel runs, with contexts and functions of each kind.
#include "../../../../examples/tools/tools.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id;
};

struct cgroup {
	int level;
	struct kernfs_node *kn;
};

#pragma clang attribute pop

struct bpf_sock_addr {
	u32 user_family;
	u32 user_ip4;
	u32 user_ip6[4];
	u32 user_port;
};

struct bpf_sock_ops {
	u32 op;
	u32 reply;
	u32 replies[3];
	u32 family;
	u32 remote_ip4;
	u32 local_ip4;
	u32 remote_ip6[4];
	u32 local_ip6[4];
	u32 remote_port;
};

struct bpf_perf_event_data {
	u64 regs[21];
	u64 sample_period;
	u64 addr;
};

struct bpf_sockopt {
	void *sk __attribute__((aligned(8)));
	u8 *optval;
	u8 *optval_end;
	s32 level;
	s32 optname;
	s32 optlen;
	s32 retval;
};

struct bpf_cgroup_dev_ctx {
	u32 access_type;
	u32 major;
	u32 minor;
};

static struct task_struct *(*const get_current_task_btf)(void) = (void *)158;
static u64 (*const get_current_cgroup_id)(void) = (void *)80;
static long (*const get_stackid)(void *ctx, void *map, u64 flags) = (void *)27;
static u32 (*const get_prandom_u32)(void) = (void *)7;

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;
struct cgroup *bpf_cgroup_from_id(u64 id) __ksym;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgroup, int level) __ksym;
void bpf_cgroup_release(struct cgroup *cgroup) __ksym;

struct {
	__uint(type, 7 /* BPF_MAP_TYPE_STACK_TRACE */);
	__uint(key_size, 4);
	__uint(value_size, 1016);
	__uint(max_entries, 8);
} stacks SEC(".maps");

u64 seen, other;
char name[16];

SEC("cgroup/connect4")
int on_connect4(struct bpf_sock_addr *ctx)
{
	if (ctx->user_ip4 != __builtin_bswap32(0xc0000207))
		return 0;
	ctx->user_port = __builtin_bswap16(8080);
	return 1;
}

SEC("sockops")
int on_sockops(struct bpf_sock_ops *ctx)
{
	seen = ctx->op;
	other = __builtin_bswap32(ctx->remote_port);
	return 1;
}

SEC("perf_event")
int on_sample(struct bpf_perf_event_data *ctx)
{
	seen = ctx->regs[16];
	other = ctx->sample_period;
	return get_stackid(ctx, &stacks, 0);
}

SEC("cgroup/getsockopt")
int on_getsockopt(struct bpf_sockopt *ctx)
{
	if (ctx->optval + 1 > ctx->optval_end)
		return 0;
	seen = ctx->optval[0];
	ctx->retval = 0;
	return 1;
}

SEC("cgroup/dev")
int on_device(struct bpf_cgroup_dev_ctx *ctx)
{
	return ctx->major == 1;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *ctx)
{
	struct task_struct *current = get_current_task_btf();
	struct task_struct *parent = bpf_task_from_pid(current->real_parent->pid);

	if (!parent)
		return 0;
	probe_read_kernel_str(name, sizeof(name), parent->comm);
	bpf_task_release(parent);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *ctx)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(get_current_cgroup_id()), *ancestor;

	if (!cgroup)
		return 0;
	ancestor = bpf_cgroup_ancestor(cgroup, 1);
	if (ancestor) {
		seen = ancestor->kn->id;
		bpf_cgroup_release(ancestor);
	}
	bpf_cgroup_release(cgroup);
	return 0;
}

SEC("fexit/do_unlinkat")
int on_unlinked(u64 *ctx)
{
	seen = ctx[2];
	other = get_prandom_u32();
	return 0;
}

SEC("raw_tp/sched_switch")
int on_raw_switch(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	s32 pid;

	READ(pid, next->pid);
	seen = pid;
	other = ctx[0];
	return 0;
}

SEC("fmod_ret/security_file_permission")
int on_permission(u64 *ctx)
{
	return ctx[1] == 4 ? -EPERM : 0;
}
