/* Who executes what: a record for each program that a process begins, with what it asked for. */
#include "tools.h"

struct event {
	s32 pid;
	s32 ppid;
	char comm[16];
	char filename[64];
};

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);
} events SEC(".maps");

struct event *unused_event;

/* What the call asked for, in the memory of the process. */
SEC("tp/syscalls/sys_enter_execve")
int on_execve(struct trace_event_raw_sys_enter *ctx)
{
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 0;
	event->pid = get_current_pid_tgid() >> 32;
	event->ppid = 0;
	get_current_comm(event->comm, sizeof(event->comm));
	if (probe_read_user_str(event->filename, sizeof(event->filename), (void *)ctx->args[0]) < 0)
		event->filename[0] = '?';
	ringbuf_submit(event, 0);
	return 0;
}

/* What runs then. */
SEC("tp_btf/sched_process_exec")
int on_exec(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	struct linux_binprm *bprm = (void *)ctx[2];
	struct event *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 0;
	event->pid = task->tgid;
	event->ppid = task->real_parent->tgid;
	probe_read_kernel_str(event->comm, sizeof(event->comm), task->comm);
	probe_read_kernel_str(event->filename, sizeof(event->filename), bprm->filename);
	ringbuf_submit(event, 0);
	return 0;
}
