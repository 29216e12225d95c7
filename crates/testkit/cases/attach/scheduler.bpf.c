/* Members of struct_ops: a scheduler of sched_ext, and members of others that are refused.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c scheduler.bpf.c && llvm-strip-19 -g scheduler.bpf.o
 */
#include "attach.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct cpumask {
	unsigned long bits[1];
};
struct sched_ext_entity {
	u64 slice;
	u64 dsq_vtime;
};
struct task_struct {
	s32 pid;
	int prio;
	struct task_struct *group_leader;
	struct task_struct *real_parent;
	struct sched_ext_entity scx;
};
enum scx_exit_kind { SCX_EXIT_NONE };
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
};
struct scx_init_task_args {
	_Bool fork;
};
struct sock {
	u32 sk_mark;
};
struct tcp_sock {
	u32 snd_cwnd;
	u32 snd_ssthresh;
};
#pragma clang attribute pop

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, _Bool runnable);
	void (*quiescent)(struct task_struct *p, u64 deq_flags);
	_Bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*update_idle)(s32 cpu, _Bool idle);
	s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*disable)(struct task_struct *p);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	char name[128];
};
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*init)(struct sock *sk);
	char name[16];
};

void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
_Bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, _Bool *is_idle) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
const struct cpumask *scx_bpf_get_idle_cpumask(void) __ksym;
void scx_bpf_put_idle_cpumask(const struct cpumask *mask) __ksym;
_Bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;

static void *(*bpf_map_lookup_elem)(void *, const void *) = (void *)1;
static void *(*bpf_task_storage_get)(void *, void *, void *, u64) = (void *)156;
static long (*bpf_get_stack)(void *, void *, u32, u64) = (void *)67;

struct {
	__uint(type, 29); /* BPF_MAP_TYPE_TASK_STORAGE */
	__uint(map_flags, 1); /* BPF_F_NO_PREALLOC */
	__type(key, int);
	__type(value, u64);
} tasks SEC(".maps");

struct {
	__uint(type, 2); /* BPF_MAP_TYPE_ARRAY */
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

u64 now;

SEC("struct_ops/selects")
s32 selects(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	_Bool is_idle = 0;
	s32 cpu = scx_bpf_select_cpu_dfl(p, ctx[1], ctx[2], &is_idle);

	if (is_idle)
		scx_bpf_dsq_insert(p, 0, 20000000, 0);
	return cpu;
}

SEC("struct_ops/enqueues")
void enqueues(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	u64 *count = bpf_task_storage_get(&tasks, p, 0, 1);
	u64 time = p->scx.dsq_vtime;

	if (count)
		*count += 1;
	if ((s64)(time - now) < 0)
		time = now;
	p->scx.slice = 1000000;
	p->scx.dsq_vtime = time;
	scx_bpf_dsq_insert(p, 1, p->scx.slice, ctx[1]);
}

SEC("struct_ops/dispatches")
void dispatches(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];

	if (prev && prev->pid > 3) {
		u32 key = prev->pid & 3;
		u64 *count = bpf_map_lookup_elem(&counts, &key);

		if (count)
			__sync_fetch_and_add(count, 1);
	}
	scx_bpf_dsq_move_to_local(1);
}

SEC("struct_ops/runs")
void runs(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	now = p->scx.dsq_vtime;
	if (p->group_leader->pid == 3)
		now++;
}

SEC("struct_ops/yields")
_Bool yields(u64 *ctx)
{
	struct task_struct *from = (void *)ctx[0], *to = (void *)ctx[1];

	return to && to->pid == from->pid;
}

SEC("struct_ops/is_idle")
void is_idle(u64 *ctx)
{
	const struct cpumask *mask = scx_bpf_get_idle_cpumask();

	if (bpf_cpumask_test_cpu(ctx[0], mask))
		scx_bpf_kick_cpu(ctx[0], 0);
	scx_bpf_put_idle_cpumask(mask);
}

SEC("struct_ops.s/begins")
s32 begins(u64 *ctx)
{
	struct scx_init_task_args *args = (void *)ctx[1];

	if (!bpf_task_storage_get(&tasks, (void *)ctx[0], 0, 1))
		return -12;
	return args->fork ? 0 : 1;
}

SEC("struct_ops.s/sets_up")
s32 sets_up(u64 *ctx)
{
	return scx_bpf_create_dsq(1, -1);
}

SEC("struct_ops/ends")
void ends(u64 *ctx)
{
	struct scx_exit_info *info = (void *)ctx[0];

	now = info->kind + info->exit_code;
}

SEC("struct_ops/writes_priority")
void writes_priority(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	p->prio = 3;
}

SEC("struct_ops/previous_may_be_null")
void previous_may_be_null(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1];

	now = prev->pid;
}

SEC("struct_ops/inserts_parent")
void inserts_parent(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	scx_bpf_dsq_insert(p->real_parent->real_parent, 0, 0, 0);
}

SEC("struct_ops/keeps_mask")
s32 keeps_mask(u64 *ctx)
{
	return scx_bpf_get_idle_cpumask() ? 1 : 0;
}

SEC("struct_ops.s/may_not_sleep")
void may_not_sleep(u64 *ctx)
{
	now = 1;
}

SEC("struct_ops/creates")
void creates(u64 *ctx)
{
	scx_bpf_create_dsq(1, -1);
}

SEC("struct_ops/writes_beyond")
void writes_beyond(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	*(u32 *)((char *)&p->scx.slice + 6) = 1;
}

SEC("struct_ops/gets_stack")
void gets_stack(u64 *ctx)
{
	bpf_get_stack((void *)ctx[0], 0, 0, 0);
}

SEC("struct_ops/threshold")
u32 threshold(u64 *ctx)
{
	struct tcp_sock *sk = (void *)ctx[0];

	return sk->snd_cwnd > 2 ? sk->snd_cwnd >> 1 : 2;
}

SEC("struct_ops/avoids")
void avoids(u64 *ctx)
{
	struct tcp_sock *sk = (void *)ctx[0];

	if (sk->snd_cwnd < sk->snd_ssthresh)
		sk->snd_cwnd += ctx[2];
}

SEC("struct_ops/writes_mark")
void writes_mark(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	sk->sk_mark = 1;
}

SEC("struct_ops/reads_beyond_arguments")
u32 reads_beyond_arguments(u64 *ctx)
{
	return ctx[1];
}

SEC(".struct_ops.link")
struct sched_ext_ops scheduler = {
	.select_cpu = (void *)selects,
	.enqueue = (void *)enqueues,
	.dispatch = (void *)dispatches,
	.running = (void *)runs,
	.yield = (void *)yields,
	.update_idle = (void *)is_idle,
	.init_task = (void *)begins,
	.init = (void *)sets_up,
	.exit = (void *)ends,
	.name = "own",
};

SEC(".struct_ops.link")
struct sched_ext_ops refused = {
	.enqueue = (void *)writes_priority,
	.dispatch = (void *)previous_may_be_null,
	.tick = (void *)inserts_parent,
	.select_cpu = (void *)keeps_mask,
	.stopping = (void *)may_not_sleep,
	.quiescent = (void *)creates,
	.running = (void *)writes_beyond,
	.disable = (void *)gets_stack,
	.name = "refused",
};

SEC(".struct_ops")
struct tcp_congestion_ops congestion = {
	.ssthresh = (void *)threshold,
	.undo_cwnd = (void *)reads_beyond_arguments,
	.cong_avoid = (void *)avoids,
	.init = (void *)writes_mark,
	.name = "own",
};

char LICENSE[] SEC("license") = "GPL";
