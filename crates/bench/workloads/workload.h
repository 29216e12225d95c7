/* What every workload shares.
 *
 * A workload is an XDP program: it finds its data between two pointers in its
 * context and returns a number. The same source is compiled for BPF and, when
 * the benchmark runs, for the processor, so both compilers see the same logic
 * with the same tests of the packet's end. Where the work of one run would be
 * too short to time, the program itself repeats it. */
#ifndef WORKLOAD_H
#define WORKLOAD_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#ifdef __bpf__
/* As Linux declares it (struct xdp_md). Linux widens the two loads to pointers
 * when it loads the program; other engines are given the widened program. */
struct context {
	u32 data;
	u32 data_end;
};
#else
struct context {
	u8 *data;
	u8 *data_end;
};
#endif

#define data_of(context) ((u8 *)(unsigned long)(context)->data)
#define end_of(context) ((u8 *)(unsigned long)(context)->data_end)

#define inlined static inline __attribute__((always_inline))
#define called static __attribute__((noinline))

/* The compiler must not know where a value comes from. */
#define opaque(value) __asm__ volatile("" : "+r"(value))

inlined u16 half(const u8 *at)
{
	return __builtin_bswap16(*(const u16 *)at);
}

inlined u32 word(const u8 *at)
{
	return __builtin_bswap32(*(const u32 *)at);
}

inlined u32 fold(u64 value)
{
	return (u32)(value ^ value >> 32);
}

/* Frames lie in slots of this many bytes. */
#define SLOT 128

#endif
