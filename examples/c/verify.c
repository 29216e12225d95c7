/*
 * Verifies the programs of an object as Linux 6.18 does, and says why one is refused.
 *
 * Build: cc verify.c $(pkg-config --cflags --libs libbeebox)
 * Run:   ./a.out port.bpf.o
 */
#include <stdio.h>

#include <beebox.h>

int main(int argc, char **argv)
{
	struct beebox_verification *verification;
	struct beebox_object *obj;
	size_t i, refused = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s FILE.bpf.o\n", argv[0]);
		return 2;
	}
	obj = beebox_object__open(argv[1]);
	verification = obj ? beebox_object__verify(obj, 0) : NULL;
	if (!verification) {
		fprintf(stderr, "%s\n", beebox_last_error());
		beebox_object__close(obj);
		return 2;
	}
	for (i = 0; i < beebox_verification__count(verification); i++) {
		const struct beebox_verdict *verdict = beebox_verification__verdict(verification, i);

		if (verdict->kind == BEEBOX_ACCEPTED) {
			printf("%s: accepted, %u instructions\n", verdict->program, verdict->insns_processed);
			continue;
		}
		refused++;
		printf("%s: %s\n", verdict->program, verdict->message);
		if (verdict->explanation)
			printf("%s\n", verdict->explanation);
	}
	beebox_verification__free(verification);
	beebox_object__close(obj);
	return refused > 0;
}
