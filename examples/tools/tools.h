/*
 * What the tools of this directory need of the kernel: helpers, maps, and of its structures the
 * members that they read. The offsets of these come from the kernel's types when an object is
 * linked (CO-RE).
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;
typedef _Bool bool;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __ksym __attribute__((section(".ksyms")))

enum { MAP_TYPE_HASH = 1, MAP_TYPE_ARRAY = 2, MAP_TYPE_RINGBUF = 27 };
enum { EPERM = 1, AF_INET = 2, TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;
static long (*const map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const ktime_get_ns)(void) = (void *)5;
static u64 (*const get_current_pid_tgid)(void) = (void *)14;
static u64 (*const get_current_uid_gid)(void) = (void *)15;
static long (*const get_current_comm)(void *to, u32 size) = (void *)16;
static u64 (*const skb_cgroup_id)(void *skb) = (void *)79;
static long (*const probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;
static long (*const probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static long (*const probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*const seq_printf)(void *seq, const char *format, u32 size, const void *data,
				u32 data_len) = (void *)126;
static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const d_path)(void *path, char *to, u32 size) = (void *)147;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
	unsigned long di, si, dx, cx, r8, r9, ax;
};

struct task_struct {
	s32 pid;
	s32 tgid;
	char comm[16];
	struct task_struct *real_parent;
	unsigned int flags;
};

struct linux_binprm {
	const char *filename;
};

struct oom_control {
	unsigned long totalpages;
	struct task_struct *chosen;
	long chosen_points;
};

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	u16 skc_family;
	volatile unsigned char skc_state;
};

struct sock {
	struct sock_common __sk_common;
};

struct path {
	void *dentry;
};

struct file {
	struct path f_path;
	unsigned int f_flags;
};

struct trace_event_raw_sys_enter {
	long id;
	unsigned long args[6];
};

struct trace_event_raw_inet_sock_set_state {
	const void *skaddr;
	int oldstate;
	int newstate;
	u16 sport;
	u16 dport;
	u16 family;
	u16 protocol;
	u8 saddr[4];
	u8 daddr[4];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	u64 session_id;
	u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct scx_exit_info {
	int kind;
};

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
	void (*enqueue)(struct task_struct *p, u64 enq_flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	char name[128];
};

#pragma clang attribute pop

struct __sk_buff {
	u32 len;
};

/* Reads a member behind a pointer that the verifier knows nothing of. */
#define READ(to, from) probe_read_kernel(&(to), sizeof(to), &(from))

char LICENSE[] SEC("license") = "GPL";
