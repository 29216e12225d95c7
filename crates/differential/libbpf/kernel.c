// A kernel that agrees to everything and keeps what it was given; see harness.c.
#define _GNU_SOURCE
#include "kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef __NR_uprobe
#define __NR_uprobe 336
#endif

enum { FIRST_FAKE = 0x7a000000, MAX_FDS = 1 << 16 };

static const off_t MAP_FILE_BYTES = (off_t)1 << 36; // sparse; more than any map of an object

struct call *calls;
static struct call **calls_end = &calls;
static struct call *maps_by_fd[MAX_FDS];
static int next_fake = FIRST_FAKE;
bool probing, passing, attaching;
char log_mark[LOG_BYTES];

static struct call *add_call(enum kind kind, const union bpf_attr *attr)
{
	struct call *call = calloc(1, sizeof(*call));

	call->kind = kind;
	call->attr = *attr;
	*calls_end = call;
	calls_end = &call->next;
	return call;
}

static void keep(struct call *call, int slot, uint64_t address, size_t size)
{
	if (!address || !size)
		return;
	call->bytes[slot] = malloc(size);
	call->sizes[slot] = size;
	memcpy(call->bytes[slot], (void *)(uintptr_t)address, size);
}

struct call *map_of_fd(int fd)
{
	return fd >= 0 && fd < MAX_FDS ? maps_by_fd[fd] : NULL;
}

struct call *prog_of_number(uint64_t number)
{
	for (struct call *call = calls; call; call = call->next)
		if (call->kind == PROG_LOADED && (uint64_t)call->number == number)
			return call;
	return NULL;
}

static long refuse(int error)
{
	errno = error;
	return -1;
}

static int map_file(void)
{
	int fd = memfd_create("map", MFD_CLOEXEC);

	if (fd >= 0 && ftruncate(fd, MAP_FILE_BYTES)) {
		close(fd);
		return -1;
	}
	return fd;
}

static long on_map_create(const union bpf_attr *attr)
{
	int fd = map_file();
	struct call *call;

	if (fd < 0 || fd >= MAX_FDS)
		return refuse(EMFILE);
	if (probing)
		return fd;
	call = add_call(MAP_CREATED, attr);
	call->number = fd;
	call->inner = map_of_fd(attr->inner_map_fd);
	keep(call, 0, attr->excl_prog_hash, attr->excl_prog_hash_size);
	maps_by_fd[fd] = call;
	return fd;
}

static long on_map_update(const union bpf_attr *attr)
{
	struct call *map = map_of_fd(attr->map_fd), *call;
	uint32_t value;

	if (!map)
		return refuse(EBADF);
	call = add_call(MAP_UPDATED, attr);
	call->map = map;
	call->from_prepared = attaching;
	keep(call, 0, attr->key, map->attr.key_size);
	if (map->attr.map_type != BPF_MAP_TYPE_STRUCT_OPS || attr->value)
		keep(call, 1, attr->value, map->attr.value_size);
	switch (map->attr.map_type) {
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
	case BPF_MAP_TYPE_HASH_OF_MAPS:
		memcpy(&value, call->bytes[1], sizeof(value));
		call->value_map = map_of_fd(value);
		break;
	case BPF_MAP_TYPE_PROG_ARRAY:
		memcpy(&value, call->bytes[1], sizeof(value));
		call->value_prog = prog_of_number(value);
		break;
	}
	return 0;
}

static bool names_a_map(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW) &&
	       (insn->src_reg == BPF_PSEUDO_MAP_FD || insn->src_reg == BPF_PSEUDO_MAP_VALUE);
}

static long on_prog_load(const union bpf_attr *attr)
{
	struct bpf_insn *insns;
	struct call *call;

	if (probing && !strcmp(attr->prog_name, "global_reloc")) {
		if (attr->log_buf)
			strcpy((char *)(uintptr_t)attr->log_buf, "direct value offset of 1073741824 is not allowed");
		return refuse(EACCES);
	}
	if (probing || attr->log_buf != (uintptr_t)log_mark)
		return open("/dev/null", O_RDONLY | O_CLOEXEC); // libbpf tries what is possible
	call = add_call(PROG_LOADED, attr);
	call->number = next_fake++;
	keep(call, 0, attr->insns, attr->insn_cnt * sizeof(struct bpf_insn));
	keep(call, 1, attr->func_info, attr->func_info_cnt * attr->func_info_rec_size);
	keep(call, 2, attr->line_info, attr->line_info_cnt * attr->line_info_rec_size);
	if (attr->license)
		keep(call, 3, attr->license, strlen((char *)(uintptr_t)attr->license) + 1);
	call->insn_maps = calloc(attr->insn_cnt, sizeof(*call->insn_maps));
	insns = (struct bpf_insn *)call->bytes[0];
	for (uint32_t i = 0; i < attr->insn_cnt; i++)
		if (names_a_map(&insns[i]) && (call->insn_maps[i] = map_of_fd(insns[i].imm)))
			insns[i].imm = 0;
	return call->number;
}

static long on_btf_load(const union bpf_attr *attr)
{
	const struct btf_header *header = (void *)(uintptr_t)attr->btf;
	struct call *call;

	// Layouts of kinds are newer than 6.18, which wants zeroes where their place is given.
	if (probing)
		return header->layout_len ? refuse(EINVAL) : open("/dev/null", O_RDONLY);
	call = add_call(BTF_LOADED, attr);
	keep(call, 0, attr->btf, attr->btf_size);
	return call->number = next_fake++;
}

static long on_link_create(const union bpf_attr *attr)
{
	if (!probing)
		return next_fake++;
	return refuse((int)attr->link_create.uprobe_multi.pid == -1 &&
		      attr->link_create.attach_type == BPF_TRACE_UPROBE_MULTI ? EINVAL : EBADF);
}

static long on_bpf(long command, const void *given, size_t size)
{
	union bpf_attr attr = {};
	struct call *call;

	memcpy(&attr, given, size < sizeof(attr) ? size : sizeof(attr));
	switch (command) {
	case BPF_MAP_CREATE:
		return on_map_create(&attr);
	case BPF_MAP_UPDATE_ELEM:
		return on_map_update(&attr);
	case BPF_MAP_FREEZE:
		if (!map_of_fd(attr.map_fd))
			return refuse(EBADF);
		call = add_call(MAP_FROZEN, &attr);
		call->map = map_of_fd(attr.map_fd);
		return 0;
	case BPF_PROG_LOAD:
		return on_prog_load(&attr);
	case BPF_BTF_LOAD:
		return on_btf_load(&attr);
	case BPF_PROG_BIND_MAP:
		if (probing)
			return 0;
		call = add_call(PROG_BOUND, &attr);
		call->map = map_of_fd(attr.prog_bind_map.map_fd);
		call->prog = prog_of_number(attr.prog_bind_map.prog_fd);
		return 0;
	case BPF_LINK_CREATE:
		return on_link_create(&attr);
	case BPF_OBJ_GET_INFO_BY_FD:
		return probing ? 0 : refuse(EINVAL);
	case BPF_OBJ_GET:
	case BPF_BTF_GET_NEXT_ID: // no modules
		return refuse(ENOENT);
	case BPF_OBJ_PIN:
		return 0;
	default:
		return refuse(EINVAL);
	}
}

long __real_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	va_list list;
	long a[6], result;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);

	if (!passing) {
		switch (number) {
		case __NR_bpf:
			return on_bpf(a[0], (void *)a[1], a[2]);
		case __NR_uprobe:
			return refuse(ENOSYS);
		case __NR_perf_event_open:
			return refuse(ENOENT);
		}
	}
	result = __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	if (number == __NR_dup3 && result >= 0 && result < MAX_FDS)
		maps_by_fd[result] = map_of_fd(a[0]);
	return result;
}
