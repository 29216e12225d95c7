// harness - say what libbpf hands to the kernel for a BPF object, with no kernel behind it.
//
// usage: harness [--each] [--weak] [--btf FILE] [--kconfig FILE] [--prog NAME] OBJECT...
//        harness --features
//
// The program is linked against a static libbpf with the linker's --wrap=syscall, so each
// bpf(2) call of libbpf lands in __wrap_syscall() in kernel.c. That answers as a willing Linux 6.18
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
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "print.h"

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
