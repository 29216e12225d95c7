// What was asked of the stand-in for the kernel, in its order.
#ifndef BEEBOX_KERNEL_H
#define BEEBOX_KERNEL_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOG_BYTES = 4096 };

enum kind { BTF_LOADED, MAP_CREATED, MAP_UPDATED, MAP_FROZEN, PROG_LOADED, PROG_BOUND };

struct call {
	struct call *next;
	enum kind kind;
	union bpf_attr attr;
	int number;		 // the descriptor that was handed out
	struct call *map, *prog; // whom the call is about
	struct call *inner;	 // MAP_CREATED: the template of inner maps
	char *name;		 // MAP_CREATED: libbpf's full name, once known
	unsigned char *bytes[4]; // copies of what the attributes point to
	size_t sizes[4];
	struct call **insn_maps; // PROG_LOADED: the map an instruction refers to, or null
	struct call *value_map;	 // MAP_UPDATED: the map or the program that the value is
	struct call *value_prog;
	bool from_prepared;	 // MAP_UPDATED: a struct_ops image asked for after loading
};

extern struct call *calls;

// The address of this log marks loads of the object's own programs.
extern char log_mark[LOG_BYTES];

// libbpf tries what the kernel can; calls go on to the kernel; tables are attached.
extern bool probing, passing, attaching;

struct call *map_of_fd(int fd);
struct call *prog_of_number(uint64_t number);

#endif
