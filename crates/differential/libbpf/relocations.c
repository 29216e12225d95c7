// relocations - say what libbpf answers to each CO-RE relocation of an object.
//
// usage: relocations TARGET OBJECT...
//
// TARGET is a file with BTF (an object, or bare types such as a kernel's). It calls the part
// of libbpf that answers relocations directly, so that the answers can be seen themselves and
// not only what became of instructions; the internal headers of the same release are needed.
// What is printed, for each object:
//   = OBJECT
//   SECTION+OFFSET: ANSWER | the relocation, as libbpf has it in messages
// where ANSWER is
//   error NUMBER                     libbpf refuses the object
//   poison                           the instruction is poisoned
//   EXPECTED -> VALUE ACCESS         the number it must find (or "any") and the new one;
//                                    "as is", "FROM -> TO" bytes, or "refuse" for loads and stores
// Candidates are kept from one relocation of a type to the next, as libbpf keeps them.
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libbpf.h"
#include "btf.h"
#include "libbpf_internal.h"
#include "relo_core.h"

typedef struct bpf_core_cand_list candidates;

static int silent(enum libbpf_print_level level, const char *format, va_list args)
{
	(void)level, (void)format, (void)args;
	return 0;
}

static candidates *find(const struct btf *object, const struct btf *target, __u32 id)
{
	const struct btf_type *type = btf__type_by_id(object, id);
	const char *name = type ? btf__name_by_offset(object, type->name_off) : NULL;
	if (!name || !*name)
		return NULL;
	candidates *found = calloc(1, sizeof *found);
	struct bpf_core_cand local = { .btf = object, .id = id };
	if (!found || bpf_core_add_cands(&local, bpf_core_essential_name_len(name), target,
					 "target", 1, found))
		abort();
	return found;
}

static void print_answer(int error, const struct bpf_core_relo_res *answer)
{
	if (error) {
		printf("error %d", -error);
		return;
	}
	if (answer->poison) {
		printf("poison");
		return;
	}
	if (answer->validate)
		printf("%llu", (unsigned long long)answer->orig_val);
	else
		printf("any");
	printf(" -> %llu ", (unsigned long long)answer->new_val);
	if (answer->orig_sz == answer->new_sz)
		printf("as is");
	else if (answer->fail_memsz_adjust)
		printf("refuse");
	else
		printf("%u -> %u", answer->orig_sz, answer->new_sz);
}

static void ask(const struct btf *object, const struct btf *target, candidates **known,
		const struct bpf_core_relo *relocation, int number)
{
	struct bpf_core_spec specs[3] = {};
	struct bpf_core_relo_res answer = {};
	int error = 0;

	if (relocation->kind != BPF_CORE_TYPE_ID_LOCAL && !known[relocation->type_id]) {
		known[relocation->type_id] = find(object, target, relocation->type_id);
		if (!known[relocation->type_id])
			error = -EINVAL;
	}
	if (!error)
		error = bpf_core_calc_relo_insn("", relocation, number, object,
						known[relocation->type_id], specs, &answer);
	print_answer(error, &answer);

	char text[8192] = "";
	if (!bpf_core_parse_spec("", object, relocation, &specs[0]))
		bpf_core_format_spec(text, sizeof text, &specs[0]);
	printf(" | %s\n", text);
}

static void ask_all(const char *path, const struct btf *target)
{
	printf("= %s\n", path);
	struct btf_ext *ext = NULL;
	struct btf *object = btf__parse(path, &ext);
	if (!object || !ext)
		return;
	btf__set_pointer_size(object, 8);
	candidates **known = calloc(btf__type_cnt(object), sizeof *known);
	const struct btf_ext_info *table = &ext->core_relo_info;
	const struct btf_ext_info_sec *section;
	if (table->len)
		for_each_btf_ext_sec(table, section) {
			const char *name = btf__name_by_offset(object, section->sec_name_off);
			const struct bpf_core_relo *relocation;
			unsigned number;
			for_each_btf_ext_rec(table, section, number, relocation) {
				printf("%s+%u: ", name, relocation->insn_off);
				ask(object, target, known, relocation, number);
			}
		}
	for (__u32 id = 0; id < btf__type_cnt(object); id++)
		bpf_core_free_cands(known[id]);
	free(known);
	btf_ext__free(ext);
	btf__free(object);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	libbpf_set_print(silent);
	struct btf *target = btf__parse(argv[1], NULL);
	if (!target) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(errno));
		return 1;
	}
	for (int at = 2; at < argc; at++)
		ask_all(argv[at], target);
	btf__free(target);
	return 0;
}
