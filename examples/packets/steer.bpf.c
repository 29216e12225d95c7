/*
 * Steers connections to the ports 7000 to 7999 to one server, which listens on another port: TCP to
 * the first socket of a map, UDP to the second. Without a server the connection is refused. Other
 * ports are left to their own sockets.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c steer.bpf.c && llvm-strip-19 -g steer.bpf.o
 */
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_SOCKMAP = 15 };
enum { SK_DROP, SK_PASS };
enum { PROTOCOL_TCP = 6 };
enum { FIRST_PORT = 7000, LAST_PORT = 7999 };

struct socket;

static struct socket *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const sk_release)(struct socket *socket) = (void *)86;
static long (*const sk_assign)(void *ctx, struct socket *socket, u64 flags) = (void *)124;

struct sk_lookup {
	u64 socket;
	u32 family, protocol, remote_ip4, remote_ip6[4];
	u16 remote_port, padding;
	u32 local_ip4, local_ip6[4], local_port, ingress_ifindex;
};

struct {
	__uint(type, MAP_TYPE_SOCKMAP);
	__type(key, u32);
	__type(value, u64);
	__uint(max_entries, 2);
} servers SEC(".maps");

SEC("sk_lookup")
int steer(struct sk_lookup *ctx)
{
	u32 key = ctx->protocol == PROTOCOL_TCP ? 0 : 1;
	struct socket *server;
	long error;

	if (ctx->local_port < FIRST_PORT || ctx->local_port > LAST_PORT)
		return SK_PASS;
	server = map_lookup_elem(&servers, &key);
	if (!server)
		return SK_DROP;
	error = sk_assign(ctx, server, 0);
	sk_release(server);
	return error ? SK_DROP : SK_PASS;
}

char LICENSE[] SEC("license") = "GPL";
