// harness - say what libbpf hands to the kernel for a BPF object, with no kernel behind it.
//
// usage: harness [--each] [--weak] [--btf FILE] [--kconfig FILE] [--prog NAME] OBJECT...
//        harness --features
//
// The program is linked against a static libbpf with the linker's --wrap=syscall, so each
// bpf(2) call of libbpf lands in __wrap_syscall() below. That answers as a willing Linux 6.18
// would (nothing is ever refused) and keeps what it was given. What is printed is therefore
// libbpf's own work: relocation, CO-RE, externs, maps, BTF, and the errors it finds by itself.
//
// Output is one JSON object a line. A segment begins with {"t":"object"} and ends with
// {"t":"end"}; "how" says whether the whole object was loaded or one program alone:
//   object      path, how ("whole" or "alone"), prog, weak
//   program     what bpf_object__open made of a program
//   map         what bpf_object__open made of a map ("initial" is its image before loading)
//   load        stage ("open" or "load"), errno (0: success), messages
//   btf, map_create, map_update, map_freeze, map_contents, prog_load, prog_bind
//               the calls in their order, descriptors replaced by names
//
// --each      after the whole object, every program alone (BTF is then printed as a hash only)
// --prog      that program alone
// --weak      undefined global symbols are made weak before the object is opened
// --features  what the feature probes of this libbpf come to here, and on the running kernel
//
// A segment is loaded in a child process, so a crash of libbpf costs one segment ("died").
// Maps are descriptors of memory files, because libbpf maps and duplicates them; programs and
// BTF are numbers too large for a descriptor, which libbpf only passes on.
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __NR_uprobe
#define __NR_uprobe 336
#endif

enum { FIRST_FAKE = 0x7a000000, MAX_FDS = 1 << 16, LOG_BYTES = 4096 };

static const off_t MAP_FILE_BYTES = (off_t)1 << 36; // sparse; more than any map of an object

// ---------------------------------------------------------------- what was asked of the kernel

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

static struct call *calls, **calls_end = &calls;
static struct call *maps_by_fd[MAX_FDS];
static int next_fake = FIRST_FAKE;
static bool probing, passing, attaching;
static char log_mark[LOG_BYTES]; // its address marks loads of the object's own programs

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

static struct call *map_of_fd(int fd)
{
	return fd >= 0 && fd < MAX_FDS ? maps_by_fd[fd] : NULL;
}

static struct call *prog_of_number(uint64_t number)
{
	for (struct call *call = calls; call; call = call->next)
		if (call->kind == PROG_LOADED && (uint64_t)call->number == number)
			return call;
	return NULL;
}

// ---------------------------------------------------------------- a kernel that agrees

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

// ---------------------------------------------------------------- JSON

static void put_text(const char *text)
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

static void put_start(const char *kind)
{
	printf("{\"t\":\"%s\"", kind);
}

static void put_end(void)
{
	puts("}");
}

static void put_string(const char *key, const char *value)
{
	printf(",\"%s\":", key);
	put_text(value ? value : "");
}

static void put_number(const char *key, unsigned long long value)
{
	printf(",\"%s\":%llu", key, value);
}

static void put_bool(const char *key, bool value)
{
	printf(",\"%s\":%s", key, value ? "true" : "false");
}

static void put_bytes(const char *key, const unsigned char *bytes, size_t size)
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

// ---------------------------------------------------------------- what libbpf says

static char *messages;
static size_t messages_size;
static FILE *messages_file;

static int on_print(enum libbpf_print_level level, const char *format, va_list args)
{
	char line[8192], *text = line;

	if (level == LIBBPF_DEBUG || !messages_file)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	if (!strncmp(text, "libbpf: ", 8))
		text += 8;
	text[strcspn(text, "\n")] = 0;
	fprintf(messages_file, "%c%s\n", level == LIBBPF_WARN ? 'W' : 'I', text);
	return 0;
}

static void put_messages(const char *key, char level)
{
	bool first = true;
	char *copy, *line, *rest;

	fflush(messages_file);
	copy = rest = strdup(messages);
	printf(",\"%s\":[", key);
	while ((line = strsep(&rest, "\n"))) {
		if (line[0] != level)
			continue;
		if (!first)
			putchar(',');
		first = false;
		put_text(line + 1);
	}
	putchar(']');
	free(copy);
}

static void put_load(const char *stage, int error)
{
	put_start("load");
	put_string("stage", stage);
	put_number("errno", error);
	put_messages("messages", 'W');
	put_messages("infos", 'I');
	put_end();
}

// ---------------------------------------------------------------- one segment

struct options {
	const char *btf, *prog;
	char *kconfig;
	bool each, weak;
};

static void put_opened(struct bpf_object *object)
{
	struct bpf_program *prog;
	struct bpf_map *map;

	bpf_object__for_each_program(prog, object) {
		put_start("program");
		put_string("name", bpf_program__name(prog));
		put_string("section", bpf_program__section_name(prog));
		put_number("type", bpf_program__type(prog));
		put_number("attach", bpf_program__expected_attach_type(prog));
		put_number("flags", bpf_program__flags(prog));
		put_bool("autoload", bpf_program__autoload(prog));
		put_bool("autoattach", bpf_program__autoattach(prog));
		put_number("insns", bpf_program__insn_cnt(prog));
		put_end();
	}
	bpf_object__for_each_map(map, object) {
		size_t size = 0;
		void *initial = bpf_map__initial_value(map, &size);

		put_start("map");
		put_string("name", bpf_map__name(map));
		put_number("type", bpf_map__type(map));
		put_number("key_size", bpf_map__key_size(map));
		put_number("value_size", bpf_map__value_size(map));
		put_number("max_entries", bpf_map__max_entries(map));
		put_number("flags", bpf_map__map_flags(map));
		put_number("extra", bpf_map__map_extra(map));
		put_number("numa_node", bpf_map__numa_node(map));
		put_number("btf_key", bpf_map__btf_key_type_id(map));
		put_number("btf_value", bpf_map__btf_value_type_id(map));
		put_bool("internal", bpf_map__is_internal(map));
		put_bool("autocreate", bpf_map__autocreate(map));
		put_string("pin", bpf_map__pin_path(map));
		if (initial && bpf_map__type(map) != BPF_MAP_TYPE_STRUCT_OPS)
			put_bytes("initial", initial, size);
		put_end();
	}
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

static void put_call(const struct call *call, bool whole_btf)
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

// What a program finds in an arena before it runs: libbpf copies it into the mapping.
static void put_contents(const struct call *map)
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

// Full names replace what 16 bytes hold of them.
static void name_calls(struct bpf_object *object)
{
	struct bpf_program *prog;
	struct bpf_map *map;
	struct call *call;

	bpf_object__for_each_map(map, object) {
		call = map_of_fd(bpf_map__fd(map));
		if (!call)
			continue;
		call->name = strdup(bpf_map__name(map));
		call->number = bpf_map__fd(map);
		if (call->inner && !call->inner->name &&
		    asprintf(&call->inner->name, "%s.inner", call->name) < 0)
			exit(2);
	}
	bpf_object__for_each_program(prog, object) {
		call = prog_of_number(bpf_program__fd(prog));
		if (call)
			call->name = strdup(bpf_program__name(prog));
	}
	for (call = calls; call; call = call->next)
		if (call->kind == PROG_LOADED && !call->name)
			call->name = strdup(call->attr.prog_name);
}

static void weaken(unsigned char *bytes, size_t size)
{
	Elf64_Ehdr *head = (void *)bytes;
	Elf64_Shdr *sections;

	if (size < sizeof(*head) || memcmp(head->e_ident, ELFMAG, SELFMAG) ||
	    head->e_ident[EI_DATA] != ELFDATA2LSB || head->e_shoff > size ||
	    (size - head->e_shoff) / sizeof(*sections) < head->e_shnum)
		return;
	sections = (void *)(bytes + head->e_shoff);
	for (int i = 0; i < head->e_shnum; i++) {
		Elf64_Sym *symbols = (void *)(bytes + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_SYMTAB || sections[i].sh_offset > size ||
		    sections[i].sh_size > size - sections[i].sh_offset)
			continue;
		for (size_t k = 1; k < sections[i].sh_size / sizeof(*symbols); k++)
			if (symbols[k].st_shndx == SHN_UNDEF &&
			    ELF64_ST_BIND(symbols[k].st_info) == STB_GLOBAL)
				symbols[k].st_info = ELF64_ST_INFO(
					STB_WEAK, ELF64_ST_TYPE(symbols[k].st_info));
	}
}

static char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb"), *copy;
	char chunk[65536], *bytes = NULL;
	size_t n;

	if (!file) {
		perror(path);
		exit(2);
	}
	copy = open_memstream(&bytes, size);
	while ((n = fread(chunk, 1, sizeof(chunk), file)) > 0)
		fwrite(chunk, 1, n, copy);
	fclose(copy);
	fclose(file);
	return bytes;
}

static struct bpf_object *open_object(const char *path, const struct options *options)
{
	LIBBPF_OPTS(bpf_object_open_opts, opts, .btf_custom_path = options->btf,
		    .kconfig = options->kconfig, .kernel_log_buf = log_mark,
		    .kernel_log_size = sizeof(log_mark), .kernel_log_level = 1,
		    .bpf_token_path = "");
	char *bytes, *name, *dot;
	size_t size;

	if (!options->weak)
		return bpf_object__open_file(path, &opts);
	bytes = read_file(path, &size);
	weaken((unsigned char *)bytes, size);
	name = strdup(strrchr(path, '/') ? strrchr(path, '/') + 1 : path);
	if ((dot = strchr(name, '.')))
		*dot = 0;
	opts.object_name = name; // as it is for the file
	return bpf_object__open_mem(bytes, size, &opts);
}

static void load(const char *path, const struct options *options, const char *only)
{
	struct bpf_object *object;
	struct bpf_program *prog;
	struct bpf_map *map;
	int error;

	messages_file = open_memstream(&messages, &messages_size);
	fflush(messages_file);
	object = open_object(path, options);
	if (!object) {
		put_load("open", errno);
		return;
	}
	if (!only)
		put_opened(object);
	if (only)
		bpf_object__for_each_program(prog, object)
			bpf_program__set_autoload(prog, !strcmp(bpf_program__name(prog), only));
	bpf_object__for_each_map(map, object)
		bpf_map__set_pin_path(map, NULL);
	error = bpf_object__load(object);
	if (!error) {
		name_calls(object);
		attaching = true;
		bpf_object__for_each_map(map, object)
			if (bpf_map__type(map) == BPF_MAP_TYPE_STRUCT_OPS && bpf_map__autocreate(map))
				bpf_map__attach_struct_ops(map);
	} else {
		for (struct call *call = calls; call; call = call->next)
			if (call->kind == PROG_LOADED)
				call->name = strdup(call->attr.prog_name);
	}
	put_load("load", error < 0 ? -error : error);
	for (struct call *call = calls; call; call = call->next)
		put_call(call, !only || options->prog);
	if (!error)
		for (struct call *call = calls; call; call = call->next)
			if (call->kind == MAP_CREATED)
				put_contents(call);
}

static void segment(const char *path, const struct options *options, const char *only)
{
	int status;
	pid_t child;

	put_start("object");
	put_string("path", path);
	put_string("how", only ? "alone" : "whole");
	put_string("prog", only);
	put_bool("weak", options->weak);
	put_end();
	fflush(stdout);
	child = fork();
	if (child == 0) {
		load(path, options, only);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) < 0) {
		perror("fork");
		exit(2);
	}
	if (status) {
		put_start("died");
		put_number("signal", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
		put_end();
	}
	put_start("end");
	put_end();
}

static void each(const char *path, const struct options *options)
{
	struct bpf_object *object = open_object(path, options);
	struct bpf_program *prog;

	if (!object)
		return;
	bpf_object__for_each_program(prog, object)
		if (!options->prog || !strcmp(options->prog, bpf_program__name(prog)))
			segment(path, options, bpf_program__name(prog));
	bpf_object__close(object);
}

// ---------------------------------------------------------------- the probes of libbpf

// Internal to libbpf, but a plain symbol of the archive. The count is given when this is built.
bool feat_supported(void *cache, unsigned feature);

static void probe(bool *answers, bool kernel)
{
	probing = !kernel;
	passing = kernel;
	for (unsigned i = 0; i < LIBBPF_FEATURES; i++)
		answers[i] = feat_supported(NULL, i);
	probing = passing = false;
}

static void put_features(void)
{
	bool here[LIBBPF_FEATURES], kernel[LIBBPF_FEATURES];
	int pipe_ends[2];

	if (pipe(pipe_ends))
		exit(2);
	if (fork() == 0) { // the answers are remembered by a process
		probe(kernel, true);
		_exit(write(pipe_ends[1], kernel, sizeof(kernel)) != sizeof(kernel));
	}
	if (read(pipe_ends[0], kernel, sizeof(kernel)) != sizeof(kernel))
		exit(2);
	probe(here, false);
	for (unsigned i = 0; i < LIBBPF_FEATURES; i++) {
		put_start("feature");
		put_number("number", i);
		put_bool("here", here[i]);
		put_bool("kernel", kernel[i]);
		put_end();
	}
}

int main(int argc, char **argv)
{
	struct options options = {};
	bool answers[LIBBPF_FEATURES];
	size_t size;
	int i;

	libbpf_set_print(on_print);
	for (i = 1; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "--each"))
			options.each = true;
		else if (!strcmp(argv[i], "--weak"))
			options.weak = true;
		else if (!strcmp(argv[i], "--btf") && i + 1 < argc)
			options.btf = argv[++i];
		else if (!strcmp(argv[i], "--prog") && i + 1 < argc)
			options.prog = argv[++i];
		else if (!strcmp(argv[i], "--kconfig") && i + 1 < argc)
			options.kconfig = read_file(argv[++i], &size);
		else if (!strcmp(argv[i], "--features"))
			return put_features(), 0;
		else
			goto usage;
	}
	if (i >= argc)
		goto usage;
	probe(answers, false);
	for (; i < argc; i++) {
		if (!options.prog)
			segment(argv[i], &options, NULL);
		if (options.each || options.prog)
			each(argv[i], &options);
	}
	return 0;
usage:
	fprintf(stderr, "usage: %s [--each] [--weak] [--btf FILE] [--kconfig FILE] [--prog NAME] OBJECT...\n",
		argv[0]);
	return 2;
}
