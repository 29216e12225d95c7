/* Operations of the kernel that programs implement: TCP congestion control. */
#include "kernel.h"

struct inet_connection_sock {
	struct sock icsk_inet;
	u64 icsk_ca_priv[13];
} core;
struct tcp_sock {
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 mss_cache;
	u32 copied_seq;
} core;
struct rate_sample;
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
	u64 (*get_info)(struct sock *sk, u32 ext, int *attr, void *info);
	u32 (*min_tso_segs)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	char name[16];
};

u64 seen;

SEC("struct_ops")
int buffer(u64 *ctx)
{
	struct sock *sk = ARG(struct sock *, 0);

	refuse(sk->sk_rcvbuf = 0;) /* refused buffer: kernel-object | this program may not write to `struct tcp_sock` | a member that the program type may write */
	return sk->sk_rcvbuf;
}

SEC("struct_ops")
u32 undo(u64 *ctx)
{
	struct tcp_sock *tp = ARG(struct tcp_sock *, 0);

	seen = ctx[CHOOSE(1, 0)]; /* refused undo: context-argument | the program reads argument 2 of `ssthresh`, which has 1 | `struct sock *` */
	return 2;
}

SEC("struct_ops")
int begin(u64 *ctx)
{
	refuse(ctx[0] = 0;) /* refused begin: context-argument | argument 1 of `init` (`struct sock *`) is written, and programs only read the arguments */
	return 0;
}

SEC("struct_ops")
int ends(u64 *ctx)
{
	u32 value = 0;

	refuse(copy_from_user(&value, sizeof(value), NULL);) /* refused ends: sleeps | `bpf_copy_from_user` may sleep, and this program must not */
	return value;
}

SEC("struct_ops")
int avoids(u64 *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	edit(bpf_task_release(task);)
	return 0;
} /* refused avoids: leak | `bpf_task_from_pid` | bpf_task_release */

SEC("struct_ops")
u64 informs(u64 *ctx)
{
	return 0;
} /* refused informs: attach-target | the kernel calls no program for member `get_info` of `struct tcp_congestion_ops` | leave `get_info` out of the structure */

SEC("struct_ops")
u32 segments(u64 *ctx)
{
	struct sock *sk = ARG(struct sock *, 0);
	u32 zero = 0;

	seen = *(volatile u32 *)((void *)sk + (CHOOSE(1 << 20, 0))); /* refused segments: kernel-object | access beyond struct tcp_sock */
	return 2;
}

SEC(".struct_ops")
struct tcp_congestion_ops explained = {
	.ssthresh = (void *)undo,
	.cong_avoid = (void *)avoids,
	.init = (void *)begin,
	CHOOSE(.get_info, .undo_cwnd) = (void *)informs,
	.min_tso_segs = (void *)segments,
	.release = (void *)ends,
	.in_ack_event = (void *)buffer,
	.name = "explained",
};

char LICENSE[] SEC("license") = "GPL";
