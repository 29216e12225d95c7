/* Which process the kernel kills when memory is short, and in whose allocation. */
#include "tools.h"

struct event {
	s32 pid;
	s32 victim;
	char comm[16];
	u64 pages;
};

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} events SEC(".maps");

struct event *unused_event;

SEC("kprobe/oom_kill_process")
int on_kill(struct pt_regs *ctx)
{
	struct oom_control *control = (void *)ctx->di;
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);
	struct task_struct *victim;

	if (!event)
		return 0;
	event->pid = get_current_pid_tgid() >> 32;
	READ(victim, control->chosen);
	READ(event->victim, victim->tgid);
	READ(event->pages, control->totalpages);
	probe_read_kernel_str(event->comm, sizeof(event->comm), victim->comm);
	ringbuf_submit(event, 0);
	return 0;
}
