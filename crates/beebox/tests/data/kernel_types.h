/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What kernel_types.bpf.c uses of the kernel: the fields that it reads (CO-RE finds their
 * offsets), helpers by number, kfuncs by name, and arguments of programs by position. */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define __ksym __attribute__((section(".ksyms")))

/* An argument of a program of a tracepoint with BTF. */
#define ARG(type, index) ((type)ctx[index])

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct task_struct {
	s32 pid;
	s32 tgid;
	struct task_struct *last_wakee;
	struct task_struct *real_parent;
};
struct sock;
struct sock_common {
	u16 skc_family;
};
struct sk_buff {
	u32 len;
	u32 end;
	unsigned char *head;
};
struct skb_shared_info {
	u8 nr_frags;
};
struct seq_file;
struct bpf_map;
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};
struct bpf_iter__bpf_map_elem {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	void *key;
	void *value;
};
struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};
struct cpumask {
	unsigned long bits[1];
};
struct bpf_cpumask {
	struct cpumask cpumask;
};
struct __sk_buff {
	u32 len;
};
#pragma clang attribute pop

struct bpf_sock;
struct bpf_sock_tuple {
	u32 words[9];
};

static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static long (*const bpf_copy_from_user)(void *to, u32 size, const void *from) = (void *)148;
static long (*const bpf_seq_printf)(struct seq_file *to, const char *format, u32 size,
				    const void *values, u32 bytes) = (void *)126;
static struct bpf_sock *(*const bpf_sk_lookup_tcp)(void *ctx, struct bpf_sock_tuple *tuple,
						   u32 size, u64 netns, u64 flags) = (void *)84;
static long (*const bpf_sk_release)(void *sk) = (void *)86;
static long (*const bpf_loop)(u32 count, void *callback, void *ctx, u64 flags) = (void *)181;

/* BTF id of a type of the running kernel. */
#define bpf_core_type_id_kernel(type) __builtin_btf_type_id(*(type *)0, 1)
