/*
 * A test of examples/packets/firewall.bpf.c, as tests of the kernel's selftests are written: open, load,
 * fill a map, BPF_PROG_TEST_RUN, look into the maps. It was ported from libbpf by renaming: bpf_ to
 * beebox_, LIBBPF_OPTS to BEEBOX_OPTS and the header. Renamed back it runs in the kernel, as root, with the
 * same output.
 *
 * Build: cc firewall_test.c $(pkg-config --cflags --libs libbeebox)
 * Run:   ./a.out firewall.bpf.o
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <linux/bpf.h>

#include <beebox.h>

enum { SYN = 2 };

struct sender {
	unsigned long long packets;
	unsigned long long bytes;
	unsigned int last;
};

/* A TCP segment from 10.0.0.1 to a port. */
static void make_segment(unsigned char packet[54], unsigned short port, unsigned char flags)
{
	static const unsigned char headers[] = {
		2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00,
		0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
	};

	memset(packet, 0, 54);
	memcpy(packet, headers, sizeof(headers));
	packet[36] = port >> 8;
	packet[37] = port & 0xff;
	packet[46] = 0x50;
	packet[47] = flags;
}

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err < 0 ? -err : errno));
	return 1;
}

static int run(const char *path, struct beebox_object **object)
{
	const unsigned short ports[] = { 22, 23, 80 };
	unsigned char packet[54], out[64];
	unsigned long long count = 0;
	struct beebox_program *program;
	struct beebox_object *obj;
	unsigned char address[4];
	struct sender sender;
	int ports_fd, senders_fd, fd, err;
	size_t i;

	BEEBOX_OPTS(bpf_test_run_opts, topts,
		.data_in = packet,
		.data_size_in = sizeof(packet),
		.data_out = out,
		.data_size_out = sizeof(out),
		.repeat = 1,
	);

	obj = beebox_object__open_file(path, NULL);
	if (!obj)
		return fail("open", 0);
	*object = obj;
	err = beebox_object__load(obj);
	if (err)
		return fail("load", err);
	program = beebox_object__find_program_by_name(obj, "firewall");
	if (!program)
		return fail("program", 0);
	fd = beebox_program__fd(program);
	ports_fd = beebox_object__find_map_fd_by_name(obj, "open_ports");
	senders_fd = beebox_map__fd(beebox_object__find_map_by_name(obj, "senders"));
	if (fd < 0 || ports_fd < 0 || senders_fd < 0)
		return fail("descriptors", 0);

	/* Only ssh and HTTP are open. */
	for (i = 0; i < 3; i += 2) {
		err = beebox_map_update_elem(ports_fd, &ports[i], &count, 0);
		if (err)
			return fail("update", err);
	}
	for (i = 0; i < 3; i++) {
		make_segment(packet, ports[i], SYN);
		topts.data_size_out = sizeof(out);
		err = beebox_prog_test_run_opts(fd, &topts);
		if (err)
			return fail("test run", err);
		printf("port %d: %s, %u bytes\n", ports[i],
		       topts.retval == XDP_PASS ? "pass" : "drop", topts.data_size_out);
		if (topts.retval != (ports[i] == 23 ? XDP_DROP : XDP_PASS))
			return 1;
	}

	/* Who sent them, and how many connections a port saw. */
	err = beebox_map_get_next_key(senders_fd, NULL, address);
	if (err)
		return fail("next key", err);
	err = beebox_map_lookup_elem(senders_fd, address, &sender);
	if (err)
		return fail("sender", err);
	printf("%d.%d.%d.%d sent %llu packets, %llu bytes\n", address[0], address[1], address[2],
	       address[3], sender.packets, sender.bytes);
	err = beebox_map_lookup_elem(ports_fd, &ports[0], &count);
	printf("port 22: %llu connections\n", count);
	err = beebox_map_delete_elem(ports_fd, &ports[0]);
	if (err)
		return fail("delete", err);
	err = beebox_map_lookup_elem(ports_fd, &ports[0], &count);
	printf("port 22 after its removal: %s\n", err == -ENOENT ? "none" : "there");
	return sender.packets != 3 || err != -ENOENT;
}

int main(int argc, char **argv)
{
	struct beebox_object *obj = NULL;
	int status;

	if (argc != 2) {
		fprintf(stderr, "usage: %s firewall.bpf.o\n", argv[0]);
		return 2;
	}
	status = run(argv[1], &obj);
	beebox_object__close(obj);
	return status;
}
