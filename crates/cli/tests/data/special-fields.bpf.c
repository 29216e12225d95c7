/*
 * A map for each special field that values may have, each with a program that looks a value up and
 * calls nothing newer than that.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c special-fields.bpf.c && llvm-strip-19 -g special-fields.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value *name[]
#define TYPE_TAG(tag) __attribute__((btf_type_tag(tag)))
#define CONTAINS(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))
#define OPAQUE(name, size)                                                     \
	struct name {                                                          \
		u64 opaque[size];                                              \
	} __attribute__((aligned(8)))

enum { HASH = 1, ARRAY = 2, ARRAY_OF_MAPS = 12, TASK_STORAGE = 29 };

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;

struct bpf_spin_lock {
	u32 val;
};
struct bpf_res_spin_lock {
	u32 val;
};
struct bpf_refcount {
	u32 opaque[1];
};
OPAQUE(bpf_timer, 2);
OPAQUE(bpf_wq, 2);
OPAQUE(bpf_task_work, 1);
OPAQUE(bpf_list_head, 2);
OPAQUE(bpf_list_node, 3);
OPAQUE(bpf_rb_root, 2);
OPAQUE(bpf_rb_node, 4);

struct task_struct;
struct listed {
	struct bpf_list_node node;
	u64 data;
};
struct sorted {
	struct bpf_rb_node node;
	u64 data;
};
struct user_data {
	u64 data;
};

struct spin_lock {
	struct bpf_spin_lock lock;
	u32 count;
};
struct res_lock {
	struct bpf_res_spin_lock lock;
	u32 count;
};
struct timer {
	struct {
		struct bpf_timer timer;
	} nested;
};
struct workqueue {
	struct bpf_wq work;
};
struct task_work {
	struct bpf_task_work work;
};
struct kptr {
	struct task_struct TYPE_TAG("kptr") * task[2];
};
struct kptr_untrusted {
	struct task_struct TYPE_TAG("kptr_untrusted") * task;
};
struct percpu_kptr {
	struct user_data TYPE_TAG("percpu_kptr") * data;
};
struct uptr {
	struct user_data TYPE_TAG("uptr") * data;
};
struct list {
	struct bpf_spin_lock lock;
	struct bpf_list_head head CONTAINS(listed, node);
};
struct tree {
	struct bpf_spin_lock lock;
	struct bpf_rb_root root CONTAINS(sorted, node);
};
struct refcount {
	struct bpf_refcount count;
	u32 data;
};
/* Linux does not look into unions. */
struct in_union {
	union {
		struct bpf_timer timer;
		u64 data[2];
	};
};

struct listed listed;
struct sorted sorted;

#define MAP(name, kind)                                                        \
	struct {                                                               \
		__uint(type, kind);                                            \
		__uint(max_entries, 1);                                        \
		__type(key, u32);                                              \
		__type(value, struct name);                                    \
	} map_##name SEC(".maps");                                             \
                                                                               \
	SEC("tc") int use_##name(void *ctx)                                    \
	{                                                                      \
		u32 key = 0;                                                   \
                                                                               \
		return !bpf_map_lookup_elem(&map_##name, &key);                \
	}

MAP(spin_lock, HASH)
MAP(res_lock, HASH)
MAP(timer, ARRAY)
MAP(workqueue, ARRAY)
MAP(task_work, ARRAY)
MAP(kptr, HASH)
MAP(kptr_untrusted, HASH)
MAP(percpu_kptr, HASH)
MAP(list, ARRAY)
MAP(tree, ARRAY)
MAP(refcount, HASH)
MAP(in_union, ARRAY)

struct timers {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct timer);
} inner SEC(".maps");

struct {
	__uint(type, ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct timers);
} outer SEC(".maps") = { .values = { &inner } };

SEC("tc") int use_inner(void *ctx)
{
	u32 key = 0;

	return !bpf_map_lookup_elem(&outer, &key);
}

struct {
	__uint(type, TASK_STORAGE);
	__uint(map_flags, 1);
	__type(key, int);
	__type(value, struct uptr);
} map_uptr SEC(".maps");

static void *(*const bpf_task_storage_get)(void *map, void *task, void *value, u64 flags) =
	(void *)156;
static void *(*const bpf_get_current_task_btf)(void) = (void *)158;

/* bpf_task_storage_get is of Linux 5.11, uptr of 6.13. */
SEC("raw_tp/sys_enter") int use_uptr(void *ctx)
{
	return !bpf_task_storage_get(&map_uptr, bpf_get_current_task_btf(), 0, 0);
}

char _license[] SEC("license") = "GPL";
