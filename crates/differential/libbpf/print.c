// Calls as lines of JSON; see harness.c.
#define _GNU_SOURCE
#include "print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void put_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == '"' || c == '\\')
			printf("\\%c", c);
		else if (c == '\n')
			fputs("\\n", stdout);
		else if (c < 0x20 || c >= 0x7f)
			printf("\\u%04x", c);
		else
			putchar(c);
	}
	putchar('"');
}

void put_start(const char *kind)
{
	printf("{\"t\":\"%s\"", kind);
}

void put_end(void)
{
	puts("}");
}

void put_string(const char *key, const char *value)
{
	printf(",\"%s\":", key);
	put_text(value ? value : "");
}

void put_number(const char *key, unsigned long long value)
{
	printf(",\"%s\":%llu", key, value);
}

void put_bool(const char *key, bool value)
{
	printf(",\"%s\":%s", key, value ? "true" : "false");
}

void put_bytes(const char *key, const unsigned char *bytes, size_t size)
{
	static const char digits[] = "0123456789abcdef";

	printf(",\"%s\":\"", key);
	for (size_t i = 0; i < size; i++) {
		putchar_unlocked(digits[bytes[i] >> 4]);
		putchar_unlocked(digits[bytes[i] & 15]);
	}
	putchar('"');
}

static const char *map_name(const struct call *map)
{
	return !map ? "?" : map->name ? map->name : map->attr.map_name;
}

static void put_map_create(const struct call *call)
{
	const union bpf_attr *a = &call->attr;

	put_start("map_create");
	put_string("map", map_name(call));
	put_string("name", a->map_name);
	put_number("type", a->map_type);
	put_number("key_size", a->key_size);
	put_number("value_size", a->value_size);
	put_number("max_entries", a->max_entries);
	put_number("flags", a->map_flags);
	put_number("extra", a->map_extra);
	put_number("numa_node", a->numa_node);
	put_number("ifindex", a->map_ifindex);
	put_bool("btf", a->btf_fd != 0);
	put_number("btf_key", a->btf_key_type_id);
	put_number("btf_value", a->btf_value_type_id);
	put_number("btf_vmlinux_value", a->btf_vmlinux_value_type_id);
	if (call->inner)
		put_string("inner", map_name(call->inner));
	if (call->bytes[0])
		put_bytes("excl_prog_hash", call->bytes[0], call->sizes[0]);
	put_end();
}

static void put_map_update(const struct call *call)
{
	size_t words = call->sizes[1] / 8;
	bool first = true;

	put_start("map_update");
	put_string("map", map_name(call->map));
	put_bytes("key", call->bytes[0], call->sizes[0]);
	put_number("flags", call->attr.flags);
	if (call->value_map)
		put_string("value_map", map_name(call->value_map));
	else if (call->value_prog)
		put_string("value_prog", call->value_prog->name);
	else if (!call->from_prepared)
		put_bytes("value", call->bytes[1], call->sizes[1]);
	if (call->from_prepared) { // programs stand as descriptors in the members that are theirs
		printf(",\"progs\":[");
		for (size_t i = 0; i < words; i++) {
			uint64_t word;
			struct call *prog;

			memcpy(&word, call->bytes[1] + 8 * i, 8);
			if (!word || !(prog = prog_of_number(word)))
				continue;
			printf("%s[%zu,", first ? "" : ",", 8 * i);
			put_text(prog->name);
			putchar(']');
			first = false;
			memset(call->bytes[1] + 8 * i, 0, 8);
		}
		putchar(']');
		put_bytes("value", call->bytes[1], call->sizes[1]);
	}
	put_end();
}

static void put_prog_load(const struct call *call)
{
	const union bpf_attr *a = &call->attr;
	bool first = true;

	put_start("prog_load");
	put_string("prog", call->name);
	put_string("name", a->prog_name);
	put_number("type", a->prog_type);
	put_number("attach", a->expected_attach_type);
	put_number("flags", a->prog_flags);
	put_string("license", (char *)call->bytes[3]);
	put_number("kern_version", a->kern_version);
	put_number("ifindex", a->prog_ifindex);
	put_number("attach_btf_id", a->attach_btf_id);
	put_number("attach_prog_fd", a->attach_prog_fd);
	put_bool("btf", a->prog_btf_fd != 0);
	put_bool("fd_array", a->fd_array != 0);
	put_number("insn_cnt", a->insn_cnt);
	put_bytes("insns", call->bytes[0], call->sizes[0]);
	printf(",\"maps\":[");
	for (uint32_t i = 0; i < a->insn_cnt; i++) {
		if (!call->insn_maps[i])
			continue;
		printf("%s[%u,", first ? "" : ",", i);
		put_text(map_name(call->insn_maps[i]));
		putchar(']');
		first = false;
	}
	putchar(']');
	put_number("func_info_size", a->func_info_rec_size);
	put_bytes("func_info", call->bytes[1], call->sizes[1]);
	put_number("line_info_size", a->line_info_rec_size);
	put_bytes("line_info", call->bytes[2], call->sizes[2]);
	put_end();
}

// FNV-1a of 64 bits: tells BTF apart where its bytes would be printed again and again.
static uint64_t hash(const unsigned char *bytes, size_t size)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < size; i++)
		sum = (sum ^ bytes[i]) * 0x100000001b3;
	return sum;
}

void put_call(const struct call *call, bool whole_btf)
{
	switch (call->kind) {
	case BTF_LOADED:
		put_start("btf");
		put_number("size", call->sizes[0]);
		put_number("hash", hash(call->bytes[0], call->sizes[0]));
		if (whole_btf)
			put_bytes("bytes", call->bytes[0], call->sizes[0]);
		put_end();
		break;
	case MAP_CREATED:
		put_map_create(call);
		break;
	case MAP_UPDATED:
		put_map_update(call);
		break;
	case MAP_FROZEN:
		put_start("map_freeze");
		put_string("map", map_name(call->map));
		put_end();
		break;
	case PROG_LOADED:
		put_prog_load(call);
		break;
	case PROG_BOUND:
		put_start("prog_bind");
		put_string("prog", call->prog ? call->prog->name : "?");
		put_string("map", map_name(call->map));
		put_end();
		break;
	}
}

void put_contents(const struct call *map)
{
	off_t from = lseek(map->number, 0, SEEK_DATA), to;
	unsigned char *bytes;

	if (map->attr.map_type != BPF_MAP_TYPE_ARENA || from < 0)
		return;
	to = lseek(map->number, from, SEEK_HOLE);
	bytes = malloc(to - from);
	if (pread(map->number, bytes, to - from, from) == to - from) {
		put_start("map_contents");
		put_string("map", map_name(map));
		put_number("offset", from);
		put_bytes("bytes", bytes, to - from);
		put_end();
	}
	free(bytes);
}
