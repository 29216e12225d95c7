// Programs of models that cast, read bit fields, ask for arguments, and have contexts of their own types.
#include "../../../../examples/tools/tools.h"

#define CORE_OF(member, what) __builtin_preserve_field_info(member, what)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___bits {
	unsigned int in_execve : 1;
	unsigned int no_cgroup_migration : 1;
};

struct trace_event_raw_sched_switch___own {
	int next_pid;
	int prev_pid;
};

struct tcp_sock {
	u32 snd_cwnd;
};

#pragma clang attribute pop

struct bpf_raw_tracepoint_args {
	u64 args[0];
};

struct stream_buff {
	u32 len;
	u32 pkt_type;
	u32 mark;
	u32 skipped[16];
	u32 data;
	u32 data_end;
};

static struct tcp_sock *(*const skc_to_tcp_sock)(void *sk) = (void *)137;
static long (*const get_func_arg)(void *ctx, u32 number, u64 *value) = (void *)183;
static long (*const get_func_ret)(void *ctx, u64 *value) = (void *)184;
static long (*const get_func_arg_cnt)(void *ctx) = (void *)185;
static long (*const send_signal)(u32 signal) = (void *)109;

u64 seen, other;
s64 error;

// What is asked of a field: 0 its offset, 1 the bytes of its unit, 4 and 5 the shifts to the left and to the right.
#define BIT_FIELD(of, member)                                                                      \
	({                                                                                         \
		u64 word = 0;                                                                      \
		const char *at = (const char *)of + CORE_OF(of->member, 0);                        \
		switch (CORE_OF(of->member, 1)) {                                                  \
		case 1:                                                                            \
			word = *(const u8 *)at;                                                    \
			break;                                                                     \
		case 2:                                                                            \
			word = *(const u16 *)at;                                                   \
			break;                                                                     \
		case 4:                                                                            \
			word = *(const u32 *)at;                                                   \
			break;                                                                     \
		case 8:                                                                            \
			word = *(const u64 *)at;                                                   \
		}                                                                                  \
		word <<= CORE_OF(of->member, 4);                                                   \
		word >>= CORE_OF(of->member, 5);                                                   \
		word;                                                                              \
	})

SEC("tp_btf/sched_wakeup")
int on_bits(u64 *ctx)
{
	struct task_struct___bits *task = (void *)ctx[0];

	seen = BIT_FIELD(task, in_execve);
	return 0;
}

SEC("tp/sched/sched_switch")
int on_own_context(struct trace_event_raw_sched_switch___own *ctx)
{
	seen = ctx->next_pid;
	other = ctx->prev_pid;
	return 0;
}

SEC("tp/sched/sched_wakeup")
int on_class(void *ctx)
{
	seen = *(s32 *)(ctx + 24);
	return 0;
}

SEC("fentry/tcp_sendmsg")
int on_cast(u64 *ctx)
{
	struct tcp_sock *tcp = (void *)ctx[0];
	u32 window = 0;

	READ(window, tcp->snd_cwnd);
	seen = window;
	return 0;
}

SEC("fentry/tcp_sendmsg")
int on_tcp(u64 *ctx)
{
	struct tcp_sock *tcp = skc_to_tcp_sock((void *)ctx[0]);

	seen = tcp ? tcp->snd_cwnd : 77;
	return 0;
}

SEC("fexit/tcp_v4_connect")
int on_arguments(u64 *ctx)
{
	u64 length = 0, result = 0;

	get_func_arg(ctx, 2, &length);
	get_func_ret(ctx, &result);
	seen = length + (get_func_arg_cnt(ctx) << 8);
	other = result;
	error = get_func_arg(ctx, 3, &length);
	return 0;
}

SEC("raw_tp")
int on_any(struct bpf_raw_tracepoint_args *ctx)
{
	return ctx->args[1] == 5;
}

SEC("ksyscall/openat")
int on_openat(struct pt_regs *ctx)
{
	struct pt_regs *regs = (void *)ctx->di;
	unsigned long flags;

	READ(flags, regs->dx);
	seen = flags;
	return 0;
}

SEC("tp_btf/sched_process_exit")
int on_signal(u64 *ctx)
{
	return send_signal(9);
}

SEC("iter/task")
int on_task(struct bpf_iter__task *ctx)
{
	static const char element[] = "%d %d\n", end[] = "end %d\n";
	struct task_struct *task = ctx->task;
	u64 values[2] = {ctx->meta->seq_num};

	if (!task) {
		seq_printf(ctx->meta->seq, end, sizeof(end), values, 8);
		return 0;
	}
	values[1] = task->pid;
	seq_printf(ctx->meta->seq, element, sizeof(element), values, 16);
	return task->pid == 13;
}

SEC("sk_skb/stream_verdict")
int on_stream(struct stream_buff *ctx)
{
	u8 *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;

	seen = ctx->len;
	return data + 2 <= end && data[1] == 7;
}
