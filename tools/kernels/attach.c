/*
 * attach OBJECT EVENT: attaches every program of an object, causes one event, and prints the facts of
 * it and the records that the programs wrote to the ring buffer `events`:
 *
 *   fact NAME NUMBER
 *   record HEX
 *
 * EVENT is one of: exec (a child executes this program), open (a child opens a file that is not
 * there), secret (a child of user 1000 opens a file below /etc/secrets), connect (a child
 * connects to a port of the loopback device). `cargo differential compare models` runs it.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static int show(void *unused, void *data, size_t size)
{
	unsigned char *bytes = data;

	printf("record ");
	for (size_t at = 0; at < size; at++)
		printf("%02x", bytes[at]);
	printf("\n");
	return 0;
}

static void fail(const char *what)
{
	printf("failed %s: %s\n", what, strerror(errno));
	exit(1);
}

/* The listener of `connect`: its port. */
static int listen_here(int *port)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	struct ifreq loopback = { .ifr_name = "lo" };
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	ioctl(listener, SIOCGIFFLAGS, &loopback);
	loopback.ifr_flags |= IFF_UP;
	ioctl(listener, SIOCSIFFLAGS, &loopback);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (void *)&address, sizeof(address)) || listen(listener, 1))
		fail("listen");
	getsockname(listener, (void *)&address, &size);
	*port = ntohs(address.sin_port);
	return listener;
}

/* What the child does; its result is an error number. */
static int cause(const char *event, int port)
{
	if (!strcmp(event, "exec")) {
		char *arguments[] = { "attach", "nothing", NULL };

		execve("/proc/self/exe", arguments, NULL);
		return errno;
	}
	if (!strcmp(event, "open"))
		return open("/missing-file", O_RDONLY) < 0 ? errno : 0;
	if (!strcmp(event, "secret")) {
		if (setgid(1000) || setuid(1000))
			return 255;
		return open("/etc/secrets/key", O_RDONLY) < 0 ? errno : 0;
	}
	if (!strcmp(event, "connect")) {
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };

		to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&to, sizeof(to)) ? errno : 0;
	}
	return 255;
}

int main(int count, char **words)
{
	struct bpf_object *object;
	struct bpf_program *program;
	struct bpf_map *map;
	struct ring_buffer *ring = NULL;
	int port = 0, status, child;

	if (count == 2)
		return 0;
	if (count != 3)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	mkdir("/etc", 0755);
	mkdir("/etc/secrets", 0755);
	close(open("/etc/secrets/key", O_CREAT | O_WRONLY, 0644));
	listen_here(&port);
	object = bpf_object__open_file(words[1], NULL);
	if (!object || bpf_object__load(object))
		fail("load");
	bpf_object__for_each_program(program, object)
		if (!bpf_program__attach(program))
			fail(bpf_program__name(program));
	map = bpf_object__find_map_by_name(object, "events");
	if (map)
		ring = ring_buffer__new(bpf_map__fd(map), show, NULL, NULL);
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(cause(words[2], port));
	waitpid(child, &status, 0);
	printf("fact parent %d\nfact child %d\nfact port %d\n", getpid(), child, port);
	printf("fact errno %d\n", WEXITSTATUS(status));
	if (ring)
		ring_buffer__consume(ring);
	return 0;
}
