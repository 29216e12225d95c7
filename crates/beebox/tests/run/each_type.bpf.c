/*
 * The smallest program of each type that has test runs.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c each_type.bpf.c && llvm-strip-19 -g each_type.bpf.o
 */
#define PROGRAM(where, name)                                                            \
	__attribute__((section(where), used)) int name(void *ctx)                       \
	{                                                                                  \
		return 0;                                                                      \
	}

PROGRAM("xdp", xdp_program)
PROGRAM("tc", classifier_program)
PROGRAM("action", action_program)
PROGRAM("socket", socket_filter_program)
PROGRAM("cgroup_skb/ingress", cgroup_ingress_program)
PROGRAM("lwt_in", lwt_in_program)
PROGRAM("lwt_out", lwt_out_program)
PROGRAM("lwt_xmit", lwt_xmit_program)
PROGRAM("raw_tp/sys_enter", raw_tracepoint_program)
PROGRAM("syscall", syscall_program)
PROGRAM("flow_dissector", flow_dissector_program)
PROGRAM("sk_lookup", sk_lookup_program)
PROGRAM("netfilter", netfilter_program)

char _license[] __attribute__((section("license"), used)) = "GPL";
