/*
 * A program that counts packets in a global variable. SECOND is a later version in a file of another
 * name: it has a variable more, in front, and counts otherwise from packet 100 on; THIRD drops all.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c against_old.bpf.c
 *   clang-19 ... -DSECOND -c against_old.bpf.c -o against_new.bpf.o
 *   clang-19 ... -DTHIRD -c against_old.bpf.c -o against_all.bpf.o
 *   llvm-strip-19 -g against_*.bpf.o
 */
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

enum action { ABORTED, DROP, PASS };

struct xdp_md;

#ifdef SECOND
u64 doubled;
#endif
u64 packets;
u64 seen;

SEC("xdp")
int count(struct xdp_md *ctx)
{
	seen++;
	packets++;
#ifdef SECOND
	if (seen >= 100) {
		doubled++;
		packets++;
	}
#endif
#ifdef THIRD
	return DROP;
#endif
	return PASS;
}

char LICENSE[] SEC("license") = "GPL";
