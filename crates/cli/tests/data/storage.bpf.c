/*
 * Local storage of objects that a test gives: of sockets in options of a control group, of inodes and tasks in
 * a hook.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c storage.bpf.c && llvm-strip-19 -g storage.bpf.o
 */
#include "../../../../examples/tools/tools.h"

enum { MAP_TYPE_SK_STORAGE = 24, MAP_TYPE_INODE_STORAGE = 28, MAP_TYPE_TASK_STORAGE = 29 };
enum { NO_PREALLOC = 1, CREATE = 1, OWN_LEVEL = 0x1234 };

struct bpf_sockopt {
	void *sk __attribute__((aligned(8)));
	u8 *optval;
	u8 *optval_end;
	s32 level;
	s32 optname;
	s32 optlen;
	s32 retval;
};

static void *(*const sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*const sk_storage_delete)(void *map, void *sk) = (void *)108;
static void *(*const inode_storage_get)(void *map, void *inode, void *value,
					u64 flags) = (void *)145;
static void *(*const task_storage_get)(void *map, void *task, void *value,
				       u64 flags) = (void *)156;
static struct task_struct *(*const get_current_task_btf)(void) = (void *)158;

struct {
	__uint(type, MAP_TYPE_SK_STORAGE);
	__uint(map_flags, NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} of_sockets SEC(".maps");

struct {
	__uint(type, MAP_TYPE_INODE_STORAGE);
	__uint(map_flags, NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} of_inodes SEC(".maps");

struct {
	__uint(type, MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} of_tasks SEC(".maps");

/* Keeps a number for the socket; a negative one forgets it. */
SEC("cgroup/setsockopt")
int on_setsockopt(struct bpf_sockopt *ctx)
{
	s32 *optval = (void *)ctx->optval;
	u32 *kept;

	if (ctx->level != OWN_LEVEL || !ctx->sk || (void *)(optval + 1) > (void *)ctx->optval_end)
		return 1;
	if (*optval < 0)
		return sk_storage_delete(&of_sockets, ctx->sk) == 0;
	kept = sk_storage_get(&of_sockets, ctx->sk, 0, CREATE);
	if (!kept)
		return 0;
	*kept = *optval;
	return 1;
}

/* The fourth opening of a file by a task is refused. */
SEC("lsm/inode_permission")
int on_permission(u64 *ctx)
{
	void *inode = (void *)ctx[0];
	struct task_struct *task = get_current_task_btf();
	u32 *seen = inode_storage_get(&of_inodes, inode, 0, CREATE);
	u32 *opened = task_storage_get(&of_tasks, task, 0, CREATE);

	if (!seen || !opened)
		return -12;
	*seen += 1;
	*opened += 1;
	return *opened > 3 ? -111 : 0;
}
