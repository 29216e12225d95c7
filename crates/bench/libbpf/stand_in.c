// What stands between libbpf and the kernel while libbpf is measured: every bpf(2)
// call is answered at once and nothing is done, so what takes time is libbpf's own
// work, and neither root nor a kernel with BPF is needed.
//
// It is compiled together with libbpf's sources into one shared object, with the
// linker's --wrap=syscall; see docs/performance.md.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// Says that this libbpf may be asked to load.
__attribute__((visibility("default"))) const char beebox_stand_in[] = "answers bpf(2)";

long __real_syscall(long number, ...);

static long refuse(int error)
{
	errno = error;
	return -1;
}

static long on_bpf(long command)
{
	switch (command) {
	case BPF_MAP_CREATE: // libbpf may map and duplicate it
	case BPF_PROG_LOAD:
	case BPF_BTF_LOAD:
		return memfd_create("stand-in", MFD_CLOEXEC);
	case BPF_MAP_UPDATE_ELEM:
	case BPF_MAP_FREEZE:
	case BPF_PROG_BIND_MAP:
	case BPF_OBJ_GET_INFO_BY_FD:
		return 0;
	case BPF_BTF_GET_NEXT_ID:
		return refuse(ENOENT);
	default:
		return refuse(EINVAL);
	}
}

long __wrap_syscall(long number, ...)
{
	va_list list;
	long a[6];

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == __NR_bpf)
		return on_bpf(a[0]);
	if (number == __NR_perf_event_open)
		return refuse(ENOENT);
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
