/* The argument of a probed function is an address in the kernel, and is used as a pointer. */
#include "explain.h"

struct pt_regs {
	u64 other[14];
	u64 di;
};

struct file {
	u32 flags;
};

SEC("kprobe/do_filp_open")
int kprobe_argument(struct pt_regs *ctx)
{
	struct file *file = (void *)ctx->di;

	return file->flags == 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
