/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Bit operations of Beebox as kernel functions; `beebox kfuncs --header` writes this file.
 *
 * They are weak: where a kernel lacks them, bpf_ksym_exists(bpf_ffs64) is 0, and the
 * verifier removes the calls behind it as dead code.
 */
#ifndef BPF_BITS_H
#define BPF_BITS_H

#ifndef __ksym
#define __ksym __attribute__((section(".ksyms")))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif
#ifndef bpf_ksym_exists
#define bpf_ksym_exists(symbol) (!!symbol)
#endif

/* index of the lowest set bit, counted from 0; 64 if none is set */
extern unsigned int bpf_ffs64(unsigned long long value) __weak __ksym;

/* number of zero bits below the lowest set bit; 64 if none is set */
extern unsigned int bpf_ctz64(unsigned long long value) __weak __ksym;

/* number of zero bits above the highest set bit; 64 if none is set */
extern unsigned int bpf_clz64(unsigned long long value) __weak __ksym;

/* index of the highest set bit, counted from 1; 0 if none is set */
extern unsigned int bpf_fls64(unsigned long long value) __weak __ksym;

/* number of set bits */
extern unsigned int bpf_popcnt64(unsigned long long value) __weak __ksym;

/* the bits in reverse order */
extern unsigned long long bpf_bitrev64(unsigned long long value) __weak __ksym;

/* the value rotated left by the low six bits of the count */
extern unsigned long long bpf_rol64(unsigned long long value, unsigned int count) __weak __ksym;

/* the value rotated right by the low six bits of the count */
extern unsigned long long bpf_ror64(unsigned long long value, unsigned int count) __weak __ksym;

#endif
