/* Replacements of a function of the program of probed.bpf.o, which may sleep.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c probes.bpf.c && llvm-strip-19 -g probes.bpf.o
 */
#include "attach.h"

struct pt_regs {
	u64 di;
};

SEC("freplace/looked_at")
int looks(struct pt_regs *registers)
{
	return 1;
}

/* Linux does not know the helpers of a replacement yet when it compares whether both sleep. */
SEC("freplace/looked_at")
int sleeps_by_helper(struct pt_regs *registers)
{
	u64 value = 0;

	bpf_copy_from_user(&value, sizeof(value), (void *)registers->di);
	return value & 1;
}

char LICENSE[] SEC("license") = "GPL";
