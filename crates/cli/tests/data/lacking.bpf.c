/* Programs that depend on what a kernel has: types, members, symbols, functions. */
#define SEC(name) __attribute__((section(name), used))
#define KSYM __attribute__((section(".ksyms")))
#define CORE __attribute__((preserve_access_index))
#define FIELD_EXISTS 2
#define BYTE_OFFSET 0

typedef unsigned int u32;
typedef unsigned long long u64;

static long (*get_current_task)(void) = (void *)35;
static long (*loop)(u32 count, void *callback, void *context, u64 flags) = (void *)181;

/* Linux 6.18 has this structure, which no program is given. */
struct linux_dirent64 {
	unsigned short d_reclen;
} CORE;

/* It has no such structure, no such member, and other types of members. */
struct beebox_no_such_struct {
	int first;
} CORE;
struct task_struct___absent {
	long beebox_no_such_member;
} CORE;
struct task_struct___pointer {
	int *exit_signal;
} CORE;
struct task_struct___nested {
	struct {
		int beebox_no_such_member;
	} *mm;
} CORE;
struct tty_driver___old {
	short type;
} CORE;

#define PROGRAM(name, type, member)                                            \
	SEC("raw_tp/sys_enter") int name(void *ctx)                            \
	{                                                                      \
		type *task = (void *)get_current_task();                       \
                                                                               \
		return __builtin_preserve_field_info(task->member, BYTE_OFFSET); \
	}

PROGRAM(no_type, struct beebox_no_such_struct, first)
PROGRAM(no_member, struct task_struct___absent, beebox_no_such_member)
PROGRAM(other_type, struct task_struct___pointer, exit_signal)
PROGRAM(enumeration, struct tty_driver___old, type)
PROGRAM(rarely_used, struct linux_dirent64, d_reclen)

/* Accesses what the kernel lacks behind a check. */
SEC("raw_tp/sys_enter") int checked(void *ctx)
{
	struct task_struct___absent *task = (void *)get_current_task();

	if (__builtin_preserve_field_info(task->beebox_no_such_member, FIELD_EXISTS))
		return __builtin_preserve_field_info(task->beebox_no_such_member, BYTE_OFFSET);
	return 1;
}

/* A type that exists makes a read without bounds reachable. */
SEC("xdp") int type_exists(u32 *ctx)
{
	if (__builtin_preserve_type_info(*(struct linux_dirent64 *)0, 0))
		return *(volatile int *)(long)*ctx;
	return 2;
}

extern const void beebox_no_such_symbol KSYM;
extern const void schedule KSYM;

SEC("raw_tp/sys_enter") int symbol(void *ctx)
{
	return (unsigned long)&beebox_no_such_symbol & 1;
}

SEC("raw_tp/sys_enter") int known_symbol(void *ctx)
{
	return (unsigned long)&schedule & 1;
}

/* Linux 6.19 has the type and the function. */
struct scx_bpf_dsq_insert_vtime_args {
	u64 dsq_id, slice, vtime, enq_flags;
} CORE;
struct task_struct;

extern _Bool __scx_bpf_dsq_insert_vtime(struct task_struct *task,
					struct scx_bpf_dsq_insert_vtime_args *args)
	KSYM __attribute__((weak));

SEC("syscall") int newer(void *ctx)
{
	struct scx_bpf_dsq_insert_vtime_args args = {};

	if (__builtin_preserve_type_info(*(struct scx_bpf_dsq_insert_vtime_args *)0, 0))
		return __scx_bpf_dsq_insert_vtime(0, &args);
	return 0;
}

static long nothing(u32 index, void *context)
{
	return 0;
}

/* Linux 5.17 has bpf_loop. */
SEC("xdp") int loops(void *ctx)
{
	loop(10, nothing, 0, 0);
	return 2;
}

/* The same behind a check of a type that Linux 6.18 has. */
SEC("xdp") int loops_if(void *ctx)
{
	if (__builtin_preserve_type_info(*(struct linux_dirent64 *)0, 0))
		loop(10, nothing, 0, 0);
	return 2;
}

SEC("xdp") int passes(void *ctx)
{
	return 2;
}

char LICENSE[] SEC("license") = "GPL";
