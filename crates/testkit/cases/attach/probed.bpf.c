/* A probe, the target of probes.bpf.o.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c probed.bpf.c && llvm-strip-19 -g probed.bpf.o
 */
#include "attach.h"

struct pt_regs {
	u64 di;
};

noinline int looked_at(struct pt_regs *registers)
{
	asm volatile("" ::: "memory");
	return registers->di & 1;
}

SEC("kprobe/vfs_read")
int probed(struct pt_regs *registers)
{
	return looked_at(registers);
}

char LICENSE[] SEC("license") = "GPL";
