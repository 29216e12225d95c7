/* Congestion control that calls functions of the module tcp_bbr, whose types have a `struct sock` of its
 * own.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c congestion.bpf.c && llvm-strip-19 -g congestion.bpf.o
 */
#include "attach.h"

struct sock {
	u32 sk_mark;
} __attribute__((preserve_access_index));
struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	u32 (*undo_cwnd)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	char name[16];
};

u32 bbr_ssthresh(struct sock *sk) __ksym;
u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;

SEC("struct_ops/asks_module")
u32 asks_module(u64 *ctx)
{
	return bbr_ssthresh((void *)ctx[0]);
}

SEC("struct_ops/asks_kernel")
u32 asks_kernel(u64 *ctx)
{
	return tcp_reno_undo_cwnd((void *)ctx[0]);
}

SEC("struct_ops/avoids_as_kernel")
void avoids_as_kernel(u64 *ctx)
{
	tcp_reno_cong_avoid((void *)ctx[0], ctx[1], ctx[2]);
}

SEC(".struct_ops")
struct tcp_congestion_ops congestion = {
	.ssthresh = (void *)asks_module,
	.undo_cwnd = (void *)asks_kernel,
	.cong_avoid = (void *)avoids_as_kernel,
	.name = "own",
};

char LICENSE[] SEC("license") = "GPL";
