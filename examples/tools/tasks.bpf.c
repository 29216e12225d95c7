/* A table of all tasks, as an iterator. */
#include "tools.h"

u32 tasks;

SEC("iter/task")
int dump(struct bpf_iter__task *ctx)
{
	static const char head[] = "  PID  PPID COMM\n", row[] = "%5d %5d %s\n", end[] = "%d tasks\n";
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	u64 arguments[3] = { tasks };

	if (!task) {
		seq_printf(seq, end, sizeof(end), arguments, 8);
		tasks = 0;
		return 0;
	}
	if (ctx->meta->seq_num == 0)
		seq_printf(seq, head, sizeof(head), 0, 0);
	tasks++;
	arguments[0] = task->pid;
	arguments[1] = task->real_parent->pid;
	arguments[2] = (u64)task->comm;
	seq_printf(seq, row, sizeof(row), arguments, sizeof(arguments));
	return 0;
}
