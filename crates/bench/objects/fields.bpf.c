// Programs that do nothing but read fields of the kernel's structures wherever the
// running kernel has them: a hundred CO-RE relocations each. One program, or a
// hundred of them where MANY is defined.
//
//   C="clang -O2 -g -target bpf -mcpu=v3 -ffile-prefix-map=$PWD=."
//   $C -c fields.bpf.c -o fields-100.bpf.o
//   $C -DMANY -c fields.bpf.c -o fields-10000.bpf.o
//   llvm-strip -g fields-100.bpf.o fields-10000.bpf.o
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_entity {
	u64 exec_start, sum_exec_runtime, vruntime;
};

struct mm_struct {
	u64 total_vm, task_size, start_code, end_code, start_brk, brk, start_stack;
};

struct task_struct {
	u32 flags;
	int prio, static_prio, normal_prio, exit_code;
	int pid, tgid;
	u64 utime, stime, nvcsw, nivcsw, start_time;
	struct task_struct *real_parent;
	struct mm_struct *mm;
	struct sched_entity se;
};

struct net_device___small {
	int ifindex;
	u32 mtu, flags;
};

struct sk_buff {
	u32 len, data_len;
	u16 mac_len, protocol, transport_header, network_header;
	u32 mark, hash, skb_iif;
	struct net_device___small *dev;
	u8 *head, *data;
};

struct inode {
	u16 i_mode;
	u64 i_ino;
	long i_size;
};

struct file {
	u32 f_flags;
	long f_pos;
	struct inode *f_inode;
};

#pragma clang attribute pop

#define READ(from, field) sum += (u64)*(volatile typeof(from->field) *)&from->field;
#define HAS(from, field) sum += __builtin_preserve_field_info(from->field, 2);
#define SIZE(type) sum += __builtin_preserve_type_info(*(typeof(type) *)0, 1);

#define TWENTY_FOUR                                                                   \
	READ(task, flags) READ(task, prio) READ(task, pid) READ(task, tgid)           \
	READ(task, utime) READ(task, nvcsw) READ(task, start_time) READ(task, mm)     \
	READ(task, se.vruntime) READ(task, exit_code) READ(skb, len) READ(skb, mark)  \
	READ(skb, protocol) READ(skb, dev) READ(skb, data) READ(skb, transport_header)\
	READ(dev, ifindex) READ(dev, mtu) READ(file, f_flags) READ(file, f_pos)       \
	READ(inode, i_ino) READ(inode, i_size) READ(mm, total_vm) READ(mm, brk)
#define HUNDRED                                                                       \
	TWENTY_FOUR TWENTY_FOUR TWENTY_FOUR TWENTY_FOUR HAS(task, real_parent)        \
	HAS(skb, hash) SIZE(struct file) SIZE(struct task_struct)

#define PROGRAM(number)                                                               \
	__attribute__((section("raw_tracepoint/sys_enter"), used))                    \
	int fields_##number(void **context)                                           \
	{                                                                             \
		struct task_struct *task = context[0];                                \
		struct sk_buff *skb = context[1];                                     \
		struct net_device___small *dev = context[2];                          \
		struct file *file = context[3];                                       \
		struct inode *inode = context[4];                                     \
		struct mm_struct *mm = context[5];                                    \
		u64 sum = 0;                                                          \
		HUNDRED return sum;                                                   \
	}
#define TEN(n)                                                                        \
	PROGRAM(n##0) PROGRAM(n##1) PROGRAM(n##2) PROGRAM(n##3) PROGRAM(n##4)         \
	PROGRAM(n##5) PROGRAM(n##6) PROGRAM(n##7) PROGRAM(n##8) PROGRAM(n##9)

#ifdef MANY
TEN(0) TEN(1) TEN(2) TEN(3) TEN(4) TEN(5) TEN(6) TEN(7) TEN(8) TEN(9)
#else
PROGRAM(0)
#endif

char _license[] __attribute__((section("license"), used)) = "GPL";
