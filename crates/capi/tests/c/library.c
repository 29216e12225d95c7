/*
 * Every function of the library, with arguments that it takes and those that it refuses. It runs in the
 * directory examples of the repository, under AddressSanitizer and valgrind too.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <beebox.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

static int failures;

/* Says what does not hold; the condition itself. */
static int check(int holds, const char *condition, int line)
{
	if (!holds) {
		fprintf(stderr, "line %d: %s does not hold: %s\n", line, condition, beebox_last_error());
		failures++;
	}
	return holds;
}

#define CHECK(condition) check(!!(condition), #condition, __LINE__)

/* What must work for the rest to make sense. */
#define NEED(condition) (CHECK(condition) ? (void)0 : exit(1))

/* The error number of the last call, by errno, and a message that has a part. */
static int failed_with(int number, const char *part)
{
	if (errno == number && strstr(beebox_last_error(), part))
		return 1;
	fprintf(stderr, "errno %d, not %d, or no \"%s\" in: %s\n", errno, number, part, beebox_last_error());
	return 0;
}

static void *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	void *bytes;

	NEED(file);
	fseek(file, 0, SEEK_END);
	*size = ftell(file);
	rewind(file);
	bytes = malloc(*size);
	NEED(fread(bytes, 1, *size, file) == *size);
	fclose(file);
	return bytes;
}

/* An IPv4 packet of TCP that opens a connection. */
static void make_packet(unsigned char *packet, unsigned char port)
{
	memset(packet, 0, 64);
	packet[12] = 8;
	packet[14] = 0x45;
	packet[17] = 50;
	packet[23] = 6;
	packet[26] = 10;
	packet[37] = port;
	packet[46] = 0x50;
	packet[47] = 2;
}

static struct beebox_object *load(const char *path)
{
	struct beebox_object *obj = beebox_object__open(path);

	NEED(obj);
	NEED(beebox_object__load(obj) == 0);
	return obj;
}

static void test_opening(void)
{
	size_t size;
	void *bytes = read_file("packets/firewall.bpf.o", &size);
	struct beebox_object *obj;

	CHECK(!beebox_object__open(NULL) && failed_with(EINVAL, "path is NULL"));
	CHECK(!beebox_object__open("absent.bpf.o") && failed_with(ENOENT, "absent.bpf.o"));
	CHECK(!beebox_object__open("\xff") && failed_with(EINVAL, "UTF-8"));
	CHECK(!beebox_object__open("sample.pcap") && failed_with(ENOEXEC, "sample.pcap"));
	CHECK(!beebox_object__open_file("packets/firewall.bpf.o", bytes) && failed_with(EINVAL, "opts"));
	CHECK(!beebox_object__open_mem(NULL, 8, NULL) && failed_with(EINVAL, "buffer"));
	CHECK(!beebox_object__open_mem(bytes, 0, NULL));
	CHECK(!beebox_object__open_mem(bytes, 100, NULL) && failed_with(ENOEXEC, ""));
	CHECK(!beebox_object__open_mem(bytes, (size_t)-1, NULL) && failed_with(EINVAL, "size"));
	obj = beebox_object__open_mem(bytes, size, NULL);
	CHECK(obj);
	free(bytes);

	CHECK(beebox_object__load(NULL) == -EINVAL);
	CHECK(beebox_program__fd(beebox_object__find_program_by_name(obj, "firewall")) == -ENOENT);
	CHECK(beebox_object__find_map_fd_by_name(obj, "senders") == -ENOENT);
	CHECK(beebox_object__num_possible_cpus(obj) == -ENOENT);
	CHECK(beebox_object__load(obj) == 0);
	CHECK(beebox_object__load(obj) == -EINVAL && failed_with(EINVAL, "loaded before"));
	CHECK(beebox_object__set_cpus(obj, 2) == -EBUSY);
	CHECK(beebox_object__num_possible_cpus(obj) > 0);
	beebox_object__close(obj);
	beebox_object__close(NULL);
	CHECK(strlen(beebox_version()) >= 5);
}

static void test_settings(void)
{
	struct beebox_object *obj = beebox_object__open("packets/dispatch.bpf.o");
	struct beebox_program *prog;

	NEED(obj);
	CHECK(beebox_object__set_kernel(obj, "/absent") < 0);
	CHECK(beebox_object__set_kernel(obj, "6.18-minimal") == 0);
	CHECK(beebox_object__set_engine(obj, "turbo") == -EINVAL && failed_with(EINVAL, "turbo"));
	CHECK(beebox_object__set_engine(obj, "checked") == 0);
	CHECK(beebox_object__set_cpus(obj, 4) == 0);
	CHECK(beebox_object__set_seed(obj, 7) == 0);
	CHECK(beebox_object__set_map_memory(obj, 1 << 20) == 0);
	CHECK(beebox_object__set_time_limit(obj, 1000000000) == 0);
	CHECK(beebox_object__set_variable(obj, "others") == -EINVAL);
	CHECK(beebox_object__set_variable(obj, "others = 16") == 0);
	prog = beebox_object__next_program(obj, NULL);
	NEED(prog);
	CHECK(!beebox_program__engine(prog) && failed_with(ENOENT, "not loaded"));
	CHECK(beebox_program__set_type(prog, 9999) == -EINVAL);
	CHECK(beebox_object__load(obj) == 0);
	CHECK(!strcmp(beebox_program__engine(prog), "checked"));
	CHECK(beebox_object__num_possible_cpus(obj) == 4);
	CHECK(beebox_program__set_autoload(prog, false) == -EBUSY);
	beebox_object__close(obj);
}

static void test_names(struct beebox_object *obj)
{
	struct beebox_program *prog;
	struct beebox_map *map;
	int programs = 0, maps = 0;

	beebox_object__for_each_program(prog, obj) {
		programs++;
		CHECK(!strcmp(beebox_program__name(prog), "firewall"));
		CHECK(beebox_program__type(prog) == 6);
	}
	beebox_object__for_each_map(map, obj) {
		maps++;
		CHECK(strlen(beebox_map__name(map)) > 0);
	}
	CHECK(programs == 1);
	CHECK(maps >= 5);
	CHECK(!beebox_object__next_program(obj, (void *)obj));
	CHECK(!beebox_object__find_program_by_name(obj, "router") && failed_with(ENOENT, "firewall"));
	CHECK(!beebox_object__find_program_by_name(obj, NULL));
	CHECK(!beebox_object__find_map_by_name(obj, "routes") && failed_with(ENOENT, "senders"));
	CHECK(beebox_object__find_map_fd_by_name(NULL, "senders") == -EINVAL);
	CHECK(!beebox_program__name(NULL) && !beebox_map__name(NULL));
	CHECK(beebox_program__fd(NULL) == -EINVAL && beebox_map__fd(NULL) == -EINVAL);
	CHECK(beebox_program__type(NULL) == -EINVAL && beebox_map__type(NULL) == -EINVAL);

	map = beebox_object__find_map_by_name(obj, "open_ports");
	CHECK(beebox_map__type(map) == 1 && beebox_map__max_entries(map) == 64);
	CHECK(beebox_map__key_size(map) == 2 && beebox_map__value_size(map) == 8);
	CHECK(beebox_map__key_size(NULL) == 0);
	CHECK(beebox_map__set_max_entries(map, 5) == -EBUSY);
}

static void test_runs(struct beebox_object *obj)
{
	struct beebox_program *prog = beebox_object__find_program_by_name(obj, "firewall");
	int fd = beebox_program__fd(prog);
	unsigned char packet[64], out[64], context[24] = { 0 };
	/* As compiled with a header that has less, and one that has more. */
	struct {
		struct bpf_test_run_opts known;
		uint64_t unknown;
	} newer = { .known.sz = sizeof(newer) };
	struct bpf_test_run_opts older = { .sz = offsetof(struct bpf_test_run_opts, ctx_in), .retval = 99 };

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .data_out = out, .data_size_out = sizeof(out));

	make_packet(packet, 22);
	CHECK(fd > 0);
	CHECK(beebox_prog_test_run_opts(fd, &opts) == 0);
	CHECK(opts.retval == 1 && opts.data_size_out == 64 && !memcmp(packet, out, 64));
	opts.repeat = 100;
	CHECK(beebox_program__test_run(prog, &opts) == 0);

	/* Less room than bytes: what fits, and the number of bytes that there are. */
	opts.data_size_out = 10;
	memset(out, 0xaa, sizeof(out));
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -ENOSPC);
	CHECK(opts.data_size_out == 64 && !memcmp(packet, out, 10) && out[10] == 0xaa);
	opts.data_size_out = sizeof(out);

	/* Sizes of the structure. */
	older.data_in = packet;
	older.data_size_in = sizeof(packet);
	CHECK(beebox_prog_test_run_opts(fd, &older) == 0);
	CHECK(older.retval == 99 && older.data_size_out == 64);
	older.sz = sizeof(size_t) - 1;
	CHECK(beebox_prog_test_run_opts(fd, &older) == -EINVAL && failed_with(EINVAL, "sz"));
	older.sz = 1 << 20;
	CHECK(beebox_prog_test_run_opts(fd, &older) == -EINVAL);
	newer.known.data_in = packet;
	newer.known.data_size_in = sizeof(packet);
	CHECK(beebox_prog_test_run_opts(fd, &newer.known) == 0 && newer.known.retval == 1);
	newer.unknown = 1;
	CHECK(beebox_prog_test_run_opts(fd, &newer.known) == -EINVAL && failed_with(EINVAL, "behind"));

	/* What Linux refuses. */
	CHECK(beebox_prog_test_run_opts(fd, NULL) == -EINVAL);
	opts.data_size_in = 13;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL);
	opts.data_size_in = sizeof(packet);
	opts.flags = 1 << 30;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL && failed_with(EINVAL, "flags"));
	opts.flags = 0;
	opts.batch_size = 8;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL);
	opts.batch_size = 0;
	opts.repeat = -1;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL);
	opts.repeat = 0;
	opts.ctx_in = context;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL && failed_with(EINVAL, "ctx_in"));
	opts.ctx_in = NULL;
	opts.ctx_size_out = 4;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL);
	opts.ctx_size_out = 0;
	opts.data_in = NULL;
	CHECK(beebox_prog_test_run_opts(fd, &opts) == -EINVAL);
	opts.data_in = packet;
	opts.cpu = 500;
	CHECK(beebox_prog_test_run_opts(fd, &opts) < 0);
	opts.cpu = 0;
	CHECK(beebox_prog_test_run_opts(-1, &opts) == -EBADF);
	CHECK(beebox_prog_test_run_opts(0, &opts) == -EBADF);
	CHECK(beebox_prog_test_run_opts(beebox_object__find_map_fd_by_name(obj, "senders"), &opts) == -EINVAL);
	CHECK(beebox_program__test_run(NULL, &opts) == -EINVAL);
}

static void test_runner(struct beebox_object *obj)
{
	struct beebox_program *prog = beebox_object__find_program_by_name(obj, "firewall");
	struct beebox_runner *runner = beebox_runner__new(prog, 0);
	unsigned char packet[64], out[64];
	const void *data = NULL;
	uint32_t retval = 99;
	size_t size = 0;

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .data_out = out, .data_size_out = sizeof(out));

	NEED(runner);
	make_packet(packet, 22);
	CHECK(beebox_runner__run(runner, packet, sizeof(packet), &retval) == 0 && retval == 1);
	CHECK(beebox_runner__packet(runner, &data, &size) == 0);
	CHECK(size == 64 && !memcmp(data, packet, 64));
	CHECK(beebox_runner__run(runner, NULL, 0, &retval) == 0);
	CHECK(beebox_runner__run(runner, NULL, 9, &retval) == -EINVAL);
	CHECK(beebox_runner__run(runner, packet, 64, NULL) == -EINVAL);
	CHECK(beebox_runner__run(NULL, packet, 64, &retval) == -EINVAL);
	CHECK(beebox_runner__packet(runner, NULL, &size) == -EINVAL);
	CHECK(beebox_runner__test_run(runner, &opts) == 0 && opts.retval == 1 && opts.data_size_out == 64);
	opts.repeat = 2;
	CHECK(beebox_runner__test_run(runner, &opts) == -EINVAL && failed_with(EINVAL, "repeat"));
	CHECK(!beebox_runner__new(prog, 500) && failed_with(EINVAL, "500"));
	CHECK(!beebox_runner__new(NULL, 0));
	beebox_runner__free(runner);
	beebox_runner__free(NULL);
}

static void test_elements(struct beebox_object *obj)
{
	struct beebox_map *map = beebox_object__find_map_by_name(obj, "open_ports");
	struct beebox_map *array = beebox_object__find_map_by_name(obj, "actions");
	int fd = beebox_map__fd(map), keys = 0;
	unsigned short port = 22, next;
	uint64_t value = 5, read = 0, *values;
	uint32_t index = 1;

	CHECK(beebox_map_update_elem(fd, &port, &value, 0) == 0);
	CHECK(beebox_map_update_elem(fd, &port, &value, 1) == -EEXIST && failed_with(EEXIST, "open_ports"));
	CHECK(beebox_map_update_elem(fd, &port, &value, 77) == -EINVAL);
	CHECK(beebox_map_lookup_elem(fd, &port, &read) == 0 && read == 5);
	CHECK(beebox_map_lookup_elem_flags(fd, &port, &read, 1 << 20) == -EINVAL);
	port = 80;
	CHECK(beebox_map_lookup_elem(fd, &port, &read) == -ENOENT);
	CHECK(beebox_map_update_elem(fd, &port, &value, 2) == -ENOENT);
	CHECK(beebox_map__update_elem(map, &port, sizeof(port), &value, sizeof(value), 0) == 0);
	CHECK(beebox_map__lookup_elem(map, &port, sizeof(port), &read, sizeof(read), 0) == 0);

	/* The idiom of libbpf's users: key and next key are one. */
	CHECK(beebox_map_get_next_key(fd, NULL, &next) == 0);
	do
		keys++;
	while (beebox_map_get_next_key(fd, &next, &next) == 0);
	CHECK(keys == 2 && errno == ENOENT);
	CHECK(beebox_map__get_next_key(map, NULL, &next, sizeof(next)) == 0);

	/* Wrong sizes, null pointers, wrong handles. */
	CHECK(beebox_map__lookup_elem(map, &port, 4, &read, 8, 0) == -EINVAL && failed_with(EINVAL, "key_sz"));
	CHECK(beebox_map__lookup_elem(map, &port, 2, &read, 4, 0) == -EINVAL && failed_with(EINVAL, "value_sz"));
	CHECK(beebox_map__update_elem(map, &port, 2, &value, 9, 0) == -EINVAL);
	CHECK(beebox_map__delete_elem(map, &port, 1, 0) == -EINVAL);
	CHECK(beebox_map__delete_elem(map, &port, 2, 1) == -EINVAL);
	CHECK(beebox_map__get_next_key(map, NULL, &next, 1) == -EINVAL);
	CHECK(beebox_map__lookup_elem(NULL, &port, 2, &read, 8, 0) == -EINVAL);
	CHECK(beebox_map_lookup_elem(fd, NULL, &read) == -EINVAL);
	CHECK(beebox_map_lookup_elem(fd, &port, NULL) == -EINVAL);
	CHECK(beebox_map_update_elem(fd, &port, NULL, 0) == -EINVAL);
	CHECK(beebox_map_delete_elem(fd, NULL) == -EINVAL);
	CHECK(beebox_map_get_next_key(fd, &port, NULL) == -EINVAL);
	CHECK(beebox_map_lookup_elem(-EINVAL, &port, &read) == -EBADF && failed_with(EBADF, "error number"));
	CHECK(beebox_map_lookup_elem(3, &port, &read) == -EBADF && failed_with(EBADF, "no handle"));
	CHECK(beebox_map_lookup_elem(fd + 100000, &port, &read) == -EBADF);
	fd = beebox_program__fd(beebox_object__find_program_by_name(obj, "firewall"));
	CHECK(beebox_map_lookup_elem(fd, &port, &read) == -EINVAL && failed_with(EINVAL, "not a map"));
	fd = beebox_map__fd(map);

	CHECK(beebox_map_lookup_and_delete_elem(fd, &port, NULL) == -EINVAL);
	CHECK(beebox_map_lookup_and_delete_elem(fd, &port, &read) == 0 && read == 5);
	CHECK(beebox_map__lookup_and_delete_elem(map, &port, 2, &read, 8, 0) == -ENOENT);
	port = 22;
	CHECK(beebox_map_delete_elem(fd, &port) == 0 && beebox_map_delete_elem(fd, &port) == -ENOENT);

	/* A per-CPU array, whose keys stay. */
	values = calloc(beebox_object__num_possible_cpus(obj), sizeof(*values));
	CHECK(beebox_map_lookup_elem(beebox_map__fd(array), &index, values) == 0 && values[0] > 0);
	CHECK(beebox_map_delete_elem(beebox_map__fd(array), &index) == -EINVAL);
	index = 3;
	CHECK(beebox_map_update_elem(beebox_map__fd(array), &index, values, 0) == -E2BIG);
	free(values);
}

static void test_batches(struct beebox_object *obj)
{
	int fd = beebox_object__find_map_fd_by_name(obj, "open_ports");
	unsigned short keys[40], key;
	uint64_t values[40];
	uint32_t count = 40, place = 0, i;

	BEEBOX_OPTS(bpf_map_batch_opts, opts, .elem_flags = 0);

	for (i = 0; i < 40; i++) {
		keys[i] = i + 1;
		values[i] = i * 10;
	}
	CHECK(beebox_map_update_batch(fd, keys, values, &count, &opts) == 0 && count == 40);
	memset(keys, 0, sizeof(keys));
	CHECK(beebox_map_lookup_batch(fd, NULL, &place, keys, values, &count, NULL) == -ENOENT);
	CHECK(count == 40);
	for (i = 0; i < 40; i++)
		CHECK(keys[i] > 0 && values[i] == (keys[i] - 1) * 10u);
	count = 2;
	CHECK(beebox_map_delete_batch(fd, keys, &count, &opts) == 0 && count == 2);
	count = 2;
	CHECK(beebox_map_delete_batch(fd, keys, &count, &opts) == -ENOENT && count == 0);
	count = 40;
	CHECK(beebox_map_lookup_and_delete_batch(fd, NULL, &place, keys, values, &count, NULL) == -ENOENT);
	CHECK(count == 38 && beebox_map_get_next_key(fd, NULL, &key) == -ENOENT);

	/* More elements than the map takes, as many as a number holds, null pointers, wrong structures. */
	count = 0xffffffff;
	CHECK(beebox_map_lookup_batch(fd, NULL, &place, keys, values, &count, NULL) == -ENOENT && count == 0);
	count = 40;
	CHECK(beebox_map_lookup_batch(fd, NULL, NULL, keys, values, &count, NULL) == -EINVAL);
	count = 40;
	CHECK(beebox_map_update_batch(fd, NULL, values, &count, NULL) == -EINVAL && count == 0);
	CHECK(beebox_map_update_batch(fd, keys, values, NULL, NULL) == -EINVAL);
	count = 1;
	CHECK(beebox_map_delete_batch(-1, keys, &count, NULL) == -EBADF);
	opts.flags = 1;
	CHECK(beebox_map_update_batch(fd, keys, values, &count, &opts) == -EINVAL && failed_with(EINVAL, "flags"));
	opts.sz = 8;
	CHECK(beebox_map_update_batch(fd, keys, values, &count, &opts) == -EINVAL && failed_with(EINVAL, "sz"));
	CHECK(beebox_map_delete_batch(beebox_object__find_map_fd_by_name(obj, "actions"), keys, &count, NULL) < 0);
}

/* Handles end with their object, and are never given again. */
static void test_closed_handles(void)
{
	struct beebox_object *obj = load("packets/firewall.bpf.o"), *other;
	int fd = beebox_object__find_map_fd_by_name(obj, "open_ports");
	int prog = beebox_program__fd(beebox_object__find_program_by_name(obj, "firewall"));
	struct beebox_runner *runner =
		beebox_runner__new(beebox_object__find_program_by_name(obj, "firewall"), 0);
	unsigned char packet[64];
	unsigned short port = 22;
	uint64_t value = 7;
	uint32_t retval;

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	make_packet(packet, 22);
	CHECK(beebox_map_update_elem(fd, &port, &value, 0) == 0);

	/* Another object goes on with the map. */
	other = beebox_object__open("packets/firewall.bpf.o");
	CHECK(beebox_map__reuse_fd(beebox_object__find_map_by_name(other, "senders"), fd) == 0);
	CHECK(beebox_object__load(other) == -EINVAL && failed_with(EINVAL, "senders"));
	beebox_object__close(other);
	other = beebox_object__open("packets/firewall.bpf.o");
	CHECK(beebox_map__reuse_fd(beebox_object__find_map_by_name(other, "open_ports"), fd) == 0);
	CHECK(beebox_object__load(other) == 0);

	beebox_object__close(obj);
	CHECK(beebox_map_lookup_elem(fd, &port, &value) == -EBADF && failed_with(EBADF, "closed"));
	CHECK(beebox_prog_test_run_opts(prog, &opts) == -EBADF);
	CHECK(beebox_close(fd) == -EBADF);
	CHECK(beebox_map__reuse_fd(beebox_object__find_map_by_name(other, "senders"), fd) == -EBADF);
	fd = beebox_object__find_map_fd_by_name(other, "open_ports");
	CHECK(beebox_map_lookup_elem(fd, &port, &value) == 0 && value == 7);
	beebox_object__close(other);

	/* A runner keeps its program. */
	CHECK(beebox_runner__run(runner, packet, sizeof(packet), &retval) == 0);
	beebox_runner__free(runner);
}

static int note_record(void *ctx, void *data, size_t size)
{
	size_t *bytes = ctx;

	CHECK(data && size);
	*bytes += size;
	return 0;
}

static int refuse_record(void *ctx, void *data, size_t size)
{
	(void)ctx;
	(void)data;
	(void)size;
	return -7;
}

static void test_records(void)
{
	struct beebox_object *obj = load("packets/flows.bpf.o");
	int prog = beebox_program__fd(beebox_object__next_program(obj, NULL));
	int events = beebox_object__find_map_fd_by_name(obj, "events");
	int flows = beebox_object__find_map_fd_by_name(obj, "flows");
	struct beebox_ring_buffer *rb;
	unsigned char packet[64];
	size_t bytes = 0;

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	make_packet(packet, 22);
	CHECK(beebox_prog_test_run_opts(prog, &opts) == 0);
	CHECK(!beebox_ring_buffer__new(flows, note_record, &bytes, NULL) && failed_with(EINVAL, "flows"));
	CHECK(!beebox_ring_buffer__new(-1, note_record, &bytes, NULL) && failed_with(EBADF, "-1"));
	CHECK(!beebox_ring_buffer__new(events, NULL, &bytes, NULL));
	rb = beebox_ring_buffer__new(events, note_record, &bytes, NULL);
	NEED(rb);
	CHECK(beebox_ring_buffer__poll(rb, 0) == 1 && bytes > 0);
	CHECK(beebox_ring_buffer__consume(rb) == 0);
	CHECK(beebox_ring_buffer__consume(NULL) == -EINVAL);
	beebox_ring_buffer__free(rb);
	rb = beebox_ring_buffer__new(events, refuse_record, NULL, NULL);
	CHECK(beebox_ring_buffer__add(rb, events, NULL, NULL) == -EINVAL);
	make_packet(packet, 23);
	CHECK(beebox_prog_test_run_opts(prog, &opts) == 0);
	CHECK(beebox_ring_buffer__consume(rb) == -7);
	beebox_ring_buffer__free(rb);
	beebox_ring_buffer__free(NULL);
	beebox_object__close(obj);
}

static void note_event(void *ctx, int cpu, void *data, uint32_t size)
{
	uint32_t event[2];

	CHECK(cpu == 0 && size == sizeof(event));
	memcpy(event, data, sizeof(event));
	*(uint32_t *)ctx += event[0];
}

static void note_lost(void *ctx, int cpu, uint64_t cnt)
{
	CHECK(cpu == 0);
	*(uint32_t *)ctx += 1000 * cnt;
}

static void test_perf_buffers(void)
{
	const char *path = "../crates/cli/tests/data/kinds.bpf.o";
	struct beebox_object *obj = beebox_object__open(path), *without = beebox_object__open(path);
	struct beebox_program *prog;
	struct beebox_perf_buffer *pb;
	unsigned char packet[64];
	int events, i;
	uint32_t sum = 0;

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	NEED(obj && without);
	make_packet(packet, 22);
	/* Room for two records of 8 bytes. */
	CHECK(beebox_object__set_perf_buffers(NULL, 16) == -EINVAL);
	CHECK(beebox_object__set_perf_buffers(obj, 16) == 0);
	NEED(beebox_object__load(obj) == 0 && beebox_object__load(without) == 0);
	events = beebox_object__find_map_fd_by_name(without, "events");
	CHECK(!beebox_perf_buffer__new(events, 8, note_event, NULL, &sum, NULL) && failed_with(EINVAL, "set_perf_buffers"));
	events = beebox_object__find_map_fd_by_name(obj, "next");
	CHECK(!beebox_perf_buffer__new(events, 8, note_event, NULL, &sum, NULL) && failed_with(EINVAL, "next"));
	events = beebox_object__find_map_fd_by_name(obj, "events");
	CHECK(!beebox_perf_buffer__new(events, 3, note_event, NULL, &sum, NULL) && failed_with(EINVAL, "page_cnt"));
	CHECK(!beebox_perf_buffer__new(events, 8, NULL, NULL, &sum, NULL) && failed_with(EINVAL, "sample_cb"));
	CHECK(!beebox_perf_buffer__new(-1, 8, note_event, NULL, &sum, NULL) && failed_with(EBADF, "-1"));
	pb = beebox_perf_buffer__new(events, 8, note_event, note_lost, &sum, NULL);
	NEED(pb);
	prog = beebox_object__find_program_by_name(obj, "write_event");
	CHECK(beebox_program__test_run(prog, &opts) == 0);
	CHECK(beebox_perf_buffer__poll(pb, 0) == 1 && sum == 64);
	CHECK(beebox_perf_buffer__consume(pb) == 0);
	for (i = 0; i < 5; i++)
		CHECK(beebox_program__test_run(prog, &opts) == 0);
	CHECK(beebox_perf_buffer__consume(pb) == 2 && sum == 64 + 128 + 3000);
	CHECK(beebox_perf_buffer__consume(pb) == 0 && sum == 64 + 128 + 3000);
	CHECK(beebox_perf_buffer__consume(NULL) == -EINVAL);
	beebox_perf_buffer__free(pb);
	beebox_perf_buffer__free(NULL);
	beebox_object__close(obj);
	beebox_object__close(without);
}

static void test_printk(void)
{
	struct beebox_object *obj = load("why/edge.bpf.o");
	struct beebox_program *edge = beebox_object__find_program_by_name(obj, "edge");
	struct beebox_runner *runner = beebox_runner__new(edge, 0);
	const char *text = "segment size 9000 refused\n";
	unsigned char packet[64];
	uint32_t retval;

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	/* An option of TCP: the largest segment. */
	make_packet(packet, 22);
	memcpy(packet + 54, "\x02\x04\x23\x28", 4);
	NEED(runner);
	CHECK(!strcmp(beebox_runner__printk(runner), ""));
	CHECK(beebox_runner__run(runner, packet, sizeof(packet), &retval) == 0 && retval == 1);
	CHECK(!strcmp(beebox_runner__printk(runner), text));
	CHECK(!beebox_runner__printk(NULL));
	CHECK(!strcmp(beebox_last_printk(), ""));
	opts.repeat = 2;
	CHECK(beebox_program__test_run(edge, &opts) == 0);
	CHECK(!strncmp(beebox_last_printk(), text, strlen(text)) && strlen(beebox_last_printk()) == 2 * strlen(text));
	make_packet(packet, 22);
	CHECK(beebox_program__test_run(edge, &opts) == 0);
	CHECK(!strcmp(beebox_last_printk(), ""));
	beebox_runner__free(runner);
	beebox_object__close(obj);
}

static void test_tail_calls(void)
{
	struct beebox_object *obj = load("packets/dispatch.bpf.o");
	struct beebox_program *prog = beebox_object__find_program_by_name(obj, "tcp");
	int programs = beebox_object__find_map_fd_by_name(obj, "protocols"), fd = beebox_program__fd(prog);
	uint32_t index = 2;

	CHECK(beebox_map_update_elem(programs, &index, &fd, 0) == 0);
	CHECK(beebox_map_delete_elem(programs, &index) == 0);
	CHECK(beebox_map_delete_elem(programs, &index) == -ENOENT);
	CHECK(beebox_map_update_elem(programs, &index, &programs, 0) == -EINVAL);
	fd = 1;
	CHECK(beebox_map_update_elem(programs, &index, &fd, 0) == -EBADF);
	CHECK(beebox_map_create_inner(programs) == -EINVAL);
	beebox_object__close(obj);
}

static void test_verification(void)
{
	struct beebox_object *obj = beebox_object__open("verify/port.bpf.o");
	struct beebox_verification *verification;
	const struct beebox_verdict *verdict;

	NEED(obj);
	CHECK(!beebox_object__verify(NULL, 0) && !beebox_object__verify(obj, 64));
	verification = beebox_object__verify(obj, 1);
	NEED(verification);
	CHECK(beebox_verification__count(verification) == 1);
	CHECK(!beebox_verification__verdict(verification, 1) && failed_with(EINVAL, "1 programs"));
	verdict = beebox_verification__verdict(verification, 0);
	NEED(verdict);
	CHECK(verdict->kind == BEEBOX_REFUSED && verdict->error == EACCES && verdict->insn > 0);
	CHECK(strlen(verdict->message) > 0 && strstr(verdict->log, verdict->message));
	CHECK(verdict->explanation && strlen(verdict->explanation) > strlen(verdict->message));
	CHECK(!strcmp(verdict->section, "xdp") && verdict->prog_type == 6);
	CHECK(verdict->insns_processed > 0);
	beebox_verification__free(verification);
	beebox_verification__free(NULL);
	CHECK(beebox_verification__count(NULL) == 0 && !beebox_verification__verdict(NULL, 0));

	/* Loading says the same. */
	CHECK(beebox_object__load(obj) == -EACCES);
	CHECK(beebox_last_explanation() && strlen(beebox_last_explanation()) > 0);
	beebox_object__close(obj);
	CHECK(!beebox_object__open("absent") && !beebox_last_explanation());
}

static void test_filters(void)
{
	struct sock_filter ipv4[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x0800, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, 96),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct beebox_filter *filter = beebox_filter__new(ipv4, 4);
	unsigned char packet[64];
	uint32_t kept = 1;
	size_t size;
	void *text;

	make_packet(packet, 22);
	NEED(filter);
	CHECK(beebox_filter__run(filter, packet, 64, 64, &kept) == 0 && kept == 96);
	packet[13] = 6;
	CHECK(beebox_filter__run(filter, packet, 64, 1500, &kept) == 0 && kept == 0);
	CHECK(beebox_filter__run(filter, NULL, 0, 0, &kept) == 0 && kept == 0);
	CHECK(beebox_filter__run(filter, packet, 64, 63, &kept) == -EINVAL);
	CHECK(beebox_filter__run(filter, NULL, 64, 64, &kept) == -EINVAL);
	CHECK(beebox_filter__run(filter, packet, 64, 64, NULL) == -EINVAL);
	CHECK(beebox_filter__run(NULL, packet, 64, 64, &kept) == -EINVAL);
	beebox_filter__free(filter);
	beebox_filter__free(NULL);
	CHECK(!beebox_filter__new(ipv4, 2) && failed_with(EINVAL, "rule"));
	CHECK(!beebox_filter__new(ipv4, 0) && !beebox_filter__new(NULL, 4));

	text = read_file("port-22.ddd", &size);
	filter = beebox_filter__parse(text, size);
	CHECK(filter);
	beebox_filter__free(filter);
	CHECK(!beebox_filter__parse(text, 9) && !beebox_filter__parse(NULL, 9));
	free(text);

	filter = beebox_filter__compile("tcp port 22", 1);
	if (!filter && errno == EOPNOTSUPP) {
		printf("skipped: expressions: %s\n", beebox_last_error());
		return;
	}
	make_packet(packet, 22);
	CHECK(beebox_filter__run(filter, packet, 64, 64, &kept) == 0 && kept > 0);
	make_packet(packet, 23);
	CHECK(beebox_filter__run(filter, packet, 64, 64, &kept) == 0 && kept == 0);
	beebox_filter__free(filter);
	CHECK(!beebox_filter__compile("tcp prot 22", 1) && failed_with(EINVAL, "tcp prot 22"));
	CHECK(!beebox_filter__compile("tcp", 4000000) && !beebox_filter__compile(NULL, 1));
}

static void test_seccomp(void)
{
	struct seccomp_data data = { .nr = 257, .arch = 0xc000003e };
	struct sock_filter deny[] = { BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 5) };
	uint64_t args[6] = { 0 };
	struct beebox_seccomp *filter;
	uint32_t ret = 0;
	size_t size;
	void *text;

	filter = beebox_seccomp__new(deny, 1);
	NEED(filter);
	CHECK(beebox_seccomp__run(filter, &data, &ret) == 0 && ret == (SECCOMP_RET_ERRNO | 5));
	CHECK(beebox_seccomp__run(filter, NULL, &ret) == -EINVAL);
	CHECK(beebox_seccomp__run(filter, &data, NULL) == -EINVAL);
	CHECK(beebox_seccomp__run(NULL, &data, &ret) == -EINVAL);
	beebox_seccomp__free(filter);
	beebox_seccomp__free(NULL);
	CHECK(!beebox_seccomp__new(NULL, 1) && !beebox_seccomp__new(deny, 0));

	text = read_file("sandbox.asm", &size);
	filter = beebox_seccomp__parse(text, size);
	NEED(filter);
	CHECK(beebox_seccomp__run(filter, &data, &ret) == 0 && ret == (SECCOMP_RET_ERRNO | 1));
	CHECK(beebox_seccomp__action(filter, "x86_64", "openat", NULL, &ret) == 0 && ret == (SECCOMP_RET_ERRNO | 1));
	CHECK(beebox_seccomp__action(filter, "x86_64", "read", args, &ret) == 0 && ret == SECCOMP_RET_ALLOW);
	CHECK(beebox_seccomp__action(filter, "x86_64", "opnat", NULL, &ret) == -ENOENT);
	CHECK(beebox_seccomp__action(filter, "z80", "read", NULL, &ret) == -EINVAL && failed_with(EINVAL, "z80"));
	CHECK(beebox_seccomp__action(filter, NULL, "read", NULL, &ret) == -EINVAL);
	beebox_seccomp__free(filter);
	CHECK(!beebox_seccomp__parse(NULL, 3) && !beebox_seccomp__parse(text, 3));
	free(text);

	text = read_file("seccomp/web-server.json", &size);
	filter = beebox_seccomp__from_profile(text, size, "x86_64");
	NEED(filter);
	CHECK(beebox_seccomp__action(filter, "x86_64", "read", NULL, &ret) == 0 && ret == SECCOMP_RET_ALLOW);
	CHECK(beebox_seccomp__action(filter, "x86_64", "ptrace", NULL, &ret) == 0 && ret != SECCOMP_RET_ALLOW);
	beebox_seccomp__free(filter);
	CHECK(!beebox_seccomp__from_profile(text, 20, "x86_64") && failed_with(EINVAL, "profile"));
	CHECK(!beebox_seccomp__from_profile(text, size, "z80"));
	free(text);
}

/* Threads run one program and use one map; messages are those of a thread. */
static void *run_in_thread(void *of_object)
{
	struct beebox_object *obj = of_object;
	struct beebox_program *prog = beebox_object__find_program_by_name(obj, "firewall");
	int fd = beebox_object__find_map_fd_by_name(obj, "open_ports");
	unsigned char packet[64];
	unsigned short port;
	uint64_t value = 0;

	BEEBOX_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet));

	CHECK(!strcmp(beebox_last_error(), ""));
	make_packet(packet, 22);
	for (port = 1; port < 50; port++) {
		CHECK(beebox_program__test_run(prog, &opts) == 0);
		CHECK(beebox_map_update_elem(fd, &port, &value, 0) == 0);
		value = 1;
	}
	CHECK(beebox_map_lookup_elem(fd, &port, &value) == -ENOENT && failed_with(ENOENT, "open_ports"));
	return NULL;
}

static void test_threads(void)
{
	struct beebox_object *obj = load("packets/firewall.bpf.o");
	pthread_t threads[4];
	int i;

	for (i = 0; i < 4; i++)
		NEED(pthread_create(&threads[i], NULL, run_in_thread, obj) == 0);
	for (i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	beebox_object__close(obj);
}

int main(void)
{
	struct beebox_object *obj;

	test_opening();
	test_settings();
	obj = load("packets/firewall.bpf.o");
	test_names(obj);
	test_runs(obj);
	test_runner(obj);
	test_elements(obj);
	test_batches(obj);
	beebox_object__close(obj);
	test_closed_handles();
	test_records();
	test_perf_buffers();
	test_printk();
	test_tail_calls();
	test_verification();
	test_filters();
	test_seccomp();
	test_threads();
	printf("%d failures\n", failures);
	return failures > 0;
}
