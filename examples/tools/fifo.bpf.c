/* A scheduler of sched_ext: tasks run in the order in which they come, from one queue. */
#include "tools.h"

#define QUEUE 1
#define LOCAL 0x8000000000000002ULL
#define SLICE 20000000

s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags,
			   bool *is_idle) __ksym;
void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym;
bool scx_bpf_dsq_move_to_local(u64 dsq_id) __ksym;

u64 local, queued;

SEC("struct_ops/fifo_select_cpu")
s32 fifo_select_cpu(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	bool is_idle = 0;
	s32 cpu = scx_bpf_select_cpu_dfl(p, ctx[1], ctx[2], &is_idle);

	/* An idle processor takes the task at once. */
	if (is_idle) {
		local++;
		scx_bpf_dsq_insert(p, LOCAL, SLICE, 0);
	}
	return cpu;
}

SEC("struct_ops/fifo_enqueue")
void fifo_enqueue(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];

	queued++;
	scx_bpf_dsq_insert(p, QUEUE, SLICE, ctx[1]);
}

SEC("struct_ops/fifo_dispatch")
void fifo_dispatch(u64 *ctx)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

SEC("struct_ops.s/fifo_init")
s32 fifo_init(u64 *ctx)
{
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops fifo = {
	.select_cpu = (void *)fifo_select_cpu,
	.enqueue = (void *)fifo_enqueue,
	.dispatch = (void *)fifo_dispatch,
	.init = (void *)fifo_init,
	.name = "fifo",
};
