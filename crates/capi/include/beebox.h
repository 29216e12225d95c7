/*
 * libbeebox: verifies and runs BPF programs in user space, with the answers of Linux 6.18 and without
 * its privileges.
 *
 * Functions have libbpf's names with beebox_ in place of bpf_, and its arguments. They return 0 or a
 * negative error number, or NULL; errno has the number then, and beebox_last_error() the reason.
 *
 * What the caller promises, for all functions:
 * - A pointer is NULL, or points to what its type and the size beside it say. NULL is refused (EINVAL)
 *   where nothing says otherwise.
 * - A text ends with a zero byte.
 * - A handle is one that a function of this library returned and that was not freed: freed pointers are
 *   the caller's error, which nothing detects. Numbers (fd) are checked: one that is closed, or that is
 *   none of this library, is refused (EBADF).
 * - Programs and maps belong to their object and end with it; verdicts belong to their verification.
 * - Threads may use an object, its programs and maps at the same time once it is loaded. A runner and a
 *   ring buffer belong to one thread at a time. Messages are those of the calling thread.
 */

#ifndef BEEBOX_H
#define BEEBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* As <linux/filter.h> and <linux/seccomp.h> define them. */
struct sock_filter;
struct seccomp_data;

/*
 * The structures of libbpf, unless <bpf/bpf.h> stands in front of this header. Include that first, or
 * define BEEBOX_NO_LIBBPF_OPTS where it comes later.
 */
#if !defined(bpf_test_run_opts__last_field) && !defined(BEEBOX_NO_LIBBPF_OPTS)
struct bpf_test_run_opts {
  size_t sz;            /* size of this struct */
  const void *data_in;  /* optional */
  void *data_out;       /* optional */
  uint32_t data_size_in;
  uint32_t data_size_out; /* in: room of data_out; out: bytes of the packet */
  const void *ctx_in;   /* optional */
  void *ctx_out;        /* optional */
  uint32_t ctx_size_in;
  uint32_t ctx_size_out; /* in: room of ctx_out; out: bytes of the context */
  uint32_t retval;      /* out: return value of the program */
  int repeat;
  uint32_t duration;    /* out: mean time of a run in ns */
  uint32_t flags;
  uint32_t cpu;
  uint32_t batch_size;
};
#define bpf_test_run_opts__last_field batch_size
#endif
#if !defined(bpf_map_batch_opts__last_field) && !defined(BEEBOX_NO_LIBBPF_OPTS)
struct bpf_map_batch_opts {
  size_t sz;           /* size of this struct */
  uint64_t elem_flags; /* BPF_F_LOCK */
  uint64_t flags;      /* 0 */
};
#define bpf_map_batch_opts__last_field flags
#endif

/* A structure with options, as libbpf's LIBBPF_OPTS: BEEBOX_OPTS(bpf_test_run_opts, opts, .repeat = 1); */
#ifdef __cplusplus
#define BEEBOX_OPTS(TYPE, NAME, ...) struct TYPE NAME = {.sz = sizeof(struct TYPE), __VA_ARGS__}
#else
#define BEEBOX_OPTS(TYPE, NAME, ...) struct TYPE NAME = {.sz = sizeof(struct TYPE), ##__VA_ARGS__}
#endif

/* The programs and maps of an object, as libbpf's loops. */
#define beebox_object__for_each_program(pos, obj)              \
  for ((pos) = beebox_object__next_program((obj), NULL); (pos); \
       (pos) = beebox_object__next_program((obj), (pos)))
#define beebox_object__for_each_map(pos, obj)              \
  for ((pos) = beebox_object__next_map((obj), NULL); (pos); \
       (pos) = beebox_object__next_map((obj), (pos)))


// What became of a program.
enum beebox_verdict_kind {
  // The kernel loads it.
  BEEBOX_ACCEPTED = 0,
  // The kernel refuses it: `error` is its error number, `message` its reason.
  BEEBOX_REFUSED = 1,
  // It uses what Beebox does not support, which `message` names: no verdict.
  BEEBOX_UNSUPPORTED = 2,
  // It cannot be linked for the kernel.
  BEEBOX_NOT_LINKED = 3,
};

// A packet filter. Threads may share it.
struct beebox_filter;

// A map of an object, to which it belongs.
struct beebox_map;

// An object (`.bpf.o`) with its programs and maps.
struct beebox_object;

// The perf buffers of a map with functions for their records.
struct beebox_perf_buffer;

// A program of an object, to which it belongs.
struct beebox_program;

// Ring buffers with functions for their records.
struct beebox_ring_buffer;

// A runner: one thread uses it at a time. It may outlive its object.
struct beebox_runner;

// A seccomp filter. Threads may share it.
struct beebox_seccomp;

// Verifications of the programs of an object.
struct beebox_verification;

// A function of the caller for each record, as libbpf's `perf_buffer_sample_fn`.
typedef void (*beebox_perf_buffer_sample_fn)(void *ctx, int cpu, void *data, uint32_t size);

// A function of the caller for records that had no room, as libbpf's `perf_buffer_lost_fn`.
typedef void (*beebox_perf_buffer_lost_fn)(void *ctx, int cpu, uint64_t cnt);

// A function of the caller for each record, as libbpf's `ring_buffer_sample_fn`: a negative number
// ends the loop.
typedef int (*beebox_ring_buffer_sample_fn)(void *ctx, void *data, size_t size);

// The verification of a program. Texts belong to the verification; later versions add fields at the
// end.
struct beebox_verdict {
  // Name of the program.
  const char *program;
  // Its section.
  const char *section;
  // What became of it.
  enum beebox_verdict_kind kind;
  // Error number of the refusal, positive; 0 if it is none.
  int error;
  // The instruction at which it is refused; -1 if there is none.
  int64_t insn;
  // The reason in one line; empty if it is accepted.
  const char *message;
  // The kernel's log at the requested level; empty at level 0.
  const char *log;
  // Cause, source line, the way there, the usual edit; NULL if it is not refused.
  const char *explanation;
  // Type of the program (`enum bpf_prog_type`); 0 if its section says none.
  uint32_t prog_type;
  // Instructions that were walked over.
  uint32_t insns_processed;
  // States that were made.
  uint32_t total_states;
  // Most states that were kept at one time.
  uint32_t peak_states;
  // Most states that were kept at one instruction.
  uint32_t max_states_per_insn;
  // Time of the verification in microseconds.
  uint64_t duration_us;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Version of the library, as `0.1.0`.
const char *beebox_version(void);

// Reads several elements, from where the operation before ended: `in_batch` is NULL for the first one,
// then what `out_batch` got. `count` has the number of elements that there is room for, then of those
// that were read.
//
// Returns 0 or the negative error number: -ENOENT behind the last element, which may be with some that
// were read.
//
// `keys` and `values` have room for `count` of the map's; `out_batch` for a key, and for 4 bytes at
// least.
int beebox_map_lookup_batch(int fd,
                            void *in_batch,
                            void *out_batch,
                            void *keys,
                            void *values,
                            uint32_t *count,
                            const struct bpf_map_batch_opts *opts);

// As `beebox_map_lookup_batch`, and removes the elements.
int beebox_map_lookup_and_delete_batch(int fd,
                                       void *in_batch,
                                       void *out_batch,
                                       void *keys,
                                       void *values,
                                       uint32_t *count,
                                       const struct bpf_map_batch_opts *opts);

// Adds or changes several elements until one fails; `count` has the number of those that were.
//
// `keys` and `values` point to `count` of the map's.
int beebox_map_update_batch(int fd,
                            const void *keys,
                            const void *values,
                            uint32_t *count,
                            const struct bpf_map_batch_opts *opts);

// Removes several elements until one fails; `count` has the number of those that were.
//
// `keys` points to `count` of the map's.
int beebox_map_delete_batch(int fd,
                            const void *keys,
                            uint32_t *count,
                            const struct bpf_map_batch_opts *opts);

// Text about the last call of this thread that failed: what, where, why. Empty if none did. It
// stays until another call fails in this thread.
const char *beebox_last_error(void);

// Explanation of the verifier's refusal, if that is why the last call of this thread failed: cause,
// source line, the way there, the usual edit. NULL otherwise. It stays until another call fails in
// this thread.
const char *beebox_last_explanation(void);

// Reads the value of a key, of a per-CPU map the values of all CPUs, each rounded up to 8 bytes.
//
// Returns 0 or the negative error number: -ENOENT for no such key, -EBADF for a handle that is closed.
//
// `key` and `value` point to as many bytes as the map's keys and values have.
int beebox_map_lookup_elem(int fd,
                           const void *key,
                           void *value);

// As `beebox_map_lookup_elem`, with flags (`BPF_F_LOCK`).
int beebox_map_lookup_elem_flags(int fd, const void *key, void *value, uint64_t flags);

// Adds or changes an element, as the flags allow (`BPF_ANY`, `BPF_NOEXIST`, `BPF_EXIST`,
// `BPF_F_LOCK`). The value of a program array is the handle of a program, that of a map of maps the
// handle of a map.
//
// `key` and `value` point to as many bytes as the map's keys and values have.
int beebox_map_update_elem(int fd, const void *key, const void *value, uint64_t flags);

// Removes an element.
//
// `key` points to as many bytes as the map's keys have.
int beebox_map_delete_elem(int fd, const void *key);

// Reads the value of a key and removes the element; of queues and stacks, whose key is NULL, the next
// one.
//
// `key` and `value` point to as many bytes as the map's keys and values have.
int beebox_map_lookup_and_delete_elem(int fd,
                                      const void *key,
                                      void *value);

// Reads the key after `key` in the order of iteration, the first one after NULL; -ENOENT after the
// last.
//
// `key` and `next_key` point to as many bytes as the map's keys have; they may be one.
int beebox_map_get_next_key(int fd, const void *key, void *next_key);

// As `beebox_map_lookup_elem_flags`, with the sizes of key and value, which are checked.
//
// `key` and `value` point to as many bytes as their sizes say.
int beebox_map__lookup_elem(const struct beebox_map *map,
                            const void *key,
                            size_t key_sz,
                            void *value,
                            size_t value_sz,
                            uint64_t flags);

// As `beebox_map_update_elem`, with the sizes of key and value, which are checked.
int beebox_map__update_elem(const struct beebox_map *map,
                            const void *key,
                            size_t key_sz,
                            const void *value,
                            size_t value_sz,
                            uint64_t flags);

// As `beebox_map_delete_elem`, with the size of the key, which is checked; `flags` is 0.
int beebox_map__delete_elem(const struct beebox_map *map,
                            const void *key,
                            size_t key_sz,
                            uint64_t flags);

// As `beebox_map_lookup_and_delete_elem`, with flags and the sizes of key and value, which are checked.
int beebox_map__lookup_and_delete_elem(const struct beebox_map *map,
                                       const void *key,
                                       size_t key_sz,
                                       void *value,
                                       size_t value_sz,
                                       uint64_t flags);

// As `beebox_map_get_next_key`, with the size of the keys, which is checked.
int beebox_map__get_next_key(const struct beebox_map *map,
                             const void *cur_key,
                             void *next_key,
                             size_t key_sz);

// Compiles an expression of tcpdump for packets of a link type (`DLT_EN10MB` is 1, `DLT_RAW` 101) by the
// system's libpcap.
//
// Returns the filter, which `beebox_filter__free` frees, or NULL: EOPNOTSUPP without libpcap.
struct beebox_filter *beebox_filter__compile(const char *expression,
                                             uint32_t link_type);

// Checks a classic program as libpcap does for a capture, and prepares it. NULL if a rule is broken.
//
// `insns` points to `count` instructions.
struct beebox_filter *beebox_filter__new(const struct sock_filter *insns,
                                         size_t count);

// Reads a classic program in any form that tools write (`tcpdump -ddd`, bpf_asm, bytes), which is
// detected.
//
// `program` points to `size` bytes.
struct beebox_filter *beebox_filter__parse(const void *program, size_t size);

// Runs the filter on a packet of which `caplen` bytes were captured and that had `len` on the wire.
// `kept` is 0 if it drops the packet, else how many bytes of it to keep.
//
// `data` points to `caplen` bytes.
int beebox_filter__run(const struct beebox_filter *filter,
                       const void *data,
                       uint32_t caplen,
                       uint32_t len,
                       uint32_t *kept);

// Frees a filter. NULL does nothing.
//
// It is not used again.
void beebox_filter__free(struct beebox_filter *filter);

// Closes the handle of a map that `beebox_map_create_inner` returned. Handles of an object's own maps
// and programs end with their object.
//
// Returns 0, or -EBADF for what is no open handle.
int beebox_close(int fd);

// Name of the map; NULL for NULL.
const char *beebox_map__name(const struct beebox_map *map);

// Handle of the loaded map, or the negative error number: -ENOENT before the object is loaded, and of
// maps that no loaded program uses. It ends with the object.
int beebox_map__fd(const struct beebox_map *map);

// Kind of the loaded map (`enum bpf_map_type`), or the negative error number.
int beebox_map__type(const struct beebox_map *map);

// Bytes of a key of the loaded map; 0 before.
uint32_t beebox_map__key_size(const struct beebox_map *map);

// Bytes of a value of the loaded map, of one CPU in per-CPU maps; 0 before.
uint32_t beebox_map__value_size(const struct beebox_map *map);

// Most entries of the loaded map; 0 before.
uint32_t beebox_map__max_entries(const struct beebox_map *map);

// Sets the most entries before the object is loaded; -EBUSY after.
int beebox_map__set_max_entries(struct beebox_map *map, uint32_t max_entries);

// Has the object use the map of a handle in place of its own, so that its entries outlive a reload.
// Loading refuses a map of another kind or size.
int beebox_map__reuse_fd(struct beebox_map *map, int fd);

// Creates a map that fits a map of maps: its handle, which `beebox_close` closes, or the negative
// error number. `beebox_map_update_elem` of the map of maps puts it in.
int beebox_map_create_inner(int outer_fd);

// Opens an object file of clang. As `bpf_object__open`.
//
// Returns the object, which `beebox_object__close` frees, or NULL: the file cannot be read, or is none
// that libbpf takes.
struct beebox_object *beebox_object__open(const char *path);

// As `beebox_object__open`; `opts` is NULL: settings have functions of their own
// (`beebox_object__set_…`).
struct beebox_object *beebox_object__open_file(const char *path, const void *opts);

// Opens an object from its bytes, which are copied. As `bpf_object__open_mem`; `opts` is NULL.
//
// `buffer` points to `size` bytes.
struct beebox_object *beebox_object__open_mem(const void *buffer, size_t size, const void *opts);

// Links the object for its kernel, verifies its programs, creates its maps and compiles. As
// `bpf_object__load`.
//
// Returns 0 or the negative error number, of a program that the verifier refuses that of Linux;
// `beebox_last_error` and `beebox_last_explanation` say why. An object is loaded once.
int beebox_object__load(struct beebox_object *obj);

// Closes the object: its programs, maps and their handles with it. NULL does nothing. As
// `bpf_object__close`.
//
// It is not used again.
void beebox_object__close(struct beebox_object *obj);

// The program of this name, or NULL (ENOENT). It belongs to the object.
struct beebox_program *beebox_object__find_program_by_name(const struct beebox_object *obj,
                                                           const char *name);

// The map of this name, or NULL (ENOENT). It belongs to the object.
struct beebox_map *beebox_object__find_map_by_name(const struct beebox_object *obj,
                                                   const char *name);

// The handle of the map of this name, as `beebox_map__fd`; -ENOENT if there is none.
int beebox_object__find_map_fd_by_name(const struct beebox_object *obj, const char *name);

// The program after `prev` in the order of the file, the first one after NULL; NULL after the last.
struct beebox_program *beebox_object__next_program(const struct beebox_object *obj,
                                                   struct beebox_program *prev);

// The map after `prev` in the order of the file, the first one after NULL; NULL after the last. Maps
// of global variables are among them.
struct beebox_map *beebox_object__next_map(const struct beebox_object *obj,
                                           const struct beebox_map *prev);

// Sets the kernel that the object is linked and verified for: `6.18` (the default), `6.18-minimal`,
// another built-in one by series, version or distribution (`6.12`, `6.12.117`, `debian-12`),
// `running`, or the path of BTF or of a directory with files of a kernel.
int beebox_object__set_kernel(struct beebox_object *obj, const char *name);

// Sets the engine that runs programs: `native` (the default where there is one), `interp` or
// `checked`.
int beebox_object__set_engine(struct beebox_object *obj, const char *name);

// Has programs run without verification, in the checked engine: what the verifier would refuse ends a
// run with an error.
int beebox_object__set_unverified(struct beebox_object *obj);

// Sets the least number of possible CPUs: per-CPU maps hold a value for each. It is 1 by default.
int beebox_object__set_cpus(struct beebox_object *obj, uint32_t cpus);

// Sets the seed of random numbers: with the same seed the same runs have the same results. It is 0 by
// default.
int beebox_object__set_seed(struct beebox_object *obj,
                            uint64_t seed);

// Sets the most bytes that all maps take. It is 1 GiB by default.
int beebox_object__set_map_memory(struct beebox_object *obj, uint64_t bytes);

// Opens a perf buffer of so many bytes for each CPU in every `perf_event_array`. Without,
// `bpf_perf_event_output` returns -ENOENT to programs, as in Linux.
int beebox_object__set_perf_buffers(struct beebox_object *obj, size_t bytes);

// Sets the most time of a run in nanoseconds, 0 for none. It is 10 s by default.
int beebox_object__set_time_limit(struct beebox_object *obj, uint64_t nanoseconds);

// Sets a global variable, a constant too, or a part of it before loading: `limit = 10`,
// `ports[2].low = FAST`.
int beebox_object__set_variable(struct beebox_object *obj, const char *assignment);

// Number of CPUs whose values a per-CPU map of the loaded object holds, in place of
// `libbpf_num_possible_cpus`; -ENOENT before.
int beebox_object__num_possible_cpus(const struct beebox_object *obj);

// Makes a reader of the perf buffers of a `perf_event_array`, one of each CPU, or NULL: `sample_cb` is
// called for each record, `lost_cb`, which may be NULL, for those that had no room; `opts` is NULL.
//
// The buffers are there if `beebox_object__set_perf_buffers` was called before the object was loaded;
// `page_cnt` is a power of two, as in Linux, and their size is that of the call.
//
// `sample_cb` and `lost_cb` may be called with `ctx` by `beebox_perf_buffer__consume`, and return.
struct beebox_perf_buffer *beebox_perf_buffer__new(int map_fd,
                                                   size_t page_cnt,
                                                   beebox_perf_buffer_sample_fn sample_cb,
                                                   beebox_perf_buffer_lost_fn lost_cb,
                                                   void *ctx,
                                                   const void *opts);

// Takes the records that wait, CPU by CPU, and calls the functions for them. Returns their number.
int beebox_perf_buffer__consume(struct beebox_perf_buffer *pb);

// As `beebox_perf_buffer__consume`: nothing is waited for, since programs run in calls alone.
int beebox_perf_buffer__poll(struct beebox_perf_buffer *pb, int timeout_ms);

// Frees a reader. NULL does nothing.
//
// It is not used again.
void beebox_perf_buffer__free(struct beebox_perf_buffer *pb);

// Text that the program printed (`bpf_printk`) in the last test run of this thread, each text with a
// newline behind it; empty if it printed none. It stays until the next test run of this thread.
const char *beebox_last_printk(void);

// Name of the program; NULL for NULL.
const char *beebox_program__name(const struct beebox_program *prog);

// Handle of the loaded program, for `beebox_prog_test_run_opts` and program arrays, or the negative
// error number. It ends with the object.
int beebox_program__fd(const struct beebox_program *prog);

// Type of the loaded program (`enum bpf_prog_type`), or the negative error number.
int beebox_program__type(const struct beebox_program *prog);

// Name of the engine that runs the loaded program: `native`, `interp` or `checked`; NULL before.
const char *beebox_program__engine(const struct beebox_program *prog);

// Sets whether the program is loaded with the object.
int beebox_program__set_autoload(struct beebox_program *prog, bool autoload);

// Sets the type of the program (`enum bpf_prog_type`), in place of what its section name implies.
int beebox_program__set_type(struct beebox_program *prog, uint32_t kind);

// Makes a reader of a ring buffer, or NULL: `sample_cb` is called for each record; `opts` is NULL.
//
// `sample_cb` may be called with `ctx` by `beebox_ring_buffer__consume`, and returns.
struct beebox_ring_buffer *beebox_ring_buffer__new(int map_fd,
                                                   beebox_ring_buffer_sample_fn sample_cb,
                                                   void *ctx,
                                                   const void *opts);

// Adds another ring buffer to a reader.
//
// `sample_cb` as `beebox_ring_buffer__new`.
int beebox_ring_buffer__add(struct beebox_ring_buffer *rb,
                            int map_fd,
                            beebox_ring_buffer_sample_fn sample_cb,
                            void *ctx);

// Takes the records that wait, and calls the function for each. Returns their number, or what the
// function returned if that is negative: the records behind that one are lost.
int beebox_ring_buffer__consume(struct beebox_ring_buffer *rb);

// As `beebox_ring_buffer__consume`: nothing is waited for, since programs run in calls alone.
int beebox_ring_buffer__poll(struct beebox_ring_buffer *rb, int timeout_ms);

// Frees a reader. NULL does nothing.
//
// It is not used again.
void beebox_ring_buffer__free(struct beebox_ring_buffer *rb);

// Makes a runner of a loaded program on a CPU, which `beebox_runner__free` frees; NULL if the object
// has not so many CPUs (`beebox_object__set_cpus`).
struct beebox_runner *beebox_runner__new(const struct beebox_program *prog,
                                         uint32_t cpu);

// Runs the program on a packet of any length, and writes its return value to `retval`. This is the
// call for hot loops: it allocates nothing.
//
// `data` points to `size` bytes.
int beebox_runner__run(struct beebox_runner *runner,
                       const void *data,
                       size_t size,
                       uint32_t *retval);

// The packet as the last run left it, until the next one.
//
// `data` and `size` point to room for them.
int beebox_runner__packet(struct beebox_runner *runner, const void **data, size_t *size);

// Text that the program printed (`bpf_printk`) in the last run, each text with a newline behind it,
// until the next run; NULL for NULL.
const char *beebox_runner__printk(struct beebox_runner *runner);

// As `beebox_prog_test_run_opts`, in the memory of the runner: without a context, flags and
// repetitions (-EINVAL), on packets of any length.
//
// `opts` and what it points to as it says.
int beebox_runner__test_run(struct beebox_runner *runner, struct bpf_test_run_opts *opts);

// Frees a runner. NULL does nothing.
//
// It is not used again.
void beebox_runner__free(struct beebox_runner *runner);

// Checks a classic program as seccomp(2) does, and prepares it. Returns the filter, which
// `beebox_seccomp__free` frees, or NULL if a rule is broken.
//
// `insns` points to `count` instructions.
struct beebox_seccomp *beebox_seccomp__new(const struct sock_filter *insns, size_t count);

// Reads a filter in any form that tools write (bpf_asm, bytes), which is detected.
//
// `program` points to `size` bytes.
struct beebox_seccomp *beebox_seccomp__parse(const void *program, size_t size);

// Compiles a container profile (OCI or Docker JSON, or YAML) as runc does for a machine, by the name of
// its architecture, and a container without capabilities.
//
// `profile` points to `size` bytes;
struct beebox_seccomp *beebox_seccomp__from_profile(const void *profile,
                                                    size_t size,
                                                    const char *arch);

// Runs the filter on a system call, and writes the return value of the filter to `ret`: the kernel's
// action (`SECCOMP_RET_…`) with its data.
//
// `data` points to the structure.
int beebox_seccomp__run(const struct beebox_seccomp *filter,
                        const struct seccomp_data *data,
                        uint32_t *ret);

// As `beebox_seccomp__run`, of a system call by the names of architecture and call (`x86_64`,
// `openat`); `args` are six arguments, or NULL for zeros.
//
// `args` is NULL or points to six numbers.
int beebox_seccomp__action(const struct beebox_seccomp *filter,
                           const char *arch,
                           const char *syscall,
                           const uint64_t *args,
                           uint32_t *ret);

// Frees a filter. NULL does nothing.
//
// It is not used again.
void beebox_seccomp__free(struct beebox_seccomp *filter);

// Runs a program by its handle, as `bpf_prog_test_run_opts` has Linux run it: with the structure of
// libbpf, whose `sz` is its size.
//
// Returns 0 or the negative error number: -ENOSPC if data_out or ctx_out is too small for all that
// there is, with the part that fits written; -ETIMEDOUT for a run that ends at a limit. Records stay
// in their buffers; `beebox_last_printk` has what was printed; a random number, a time (0) and a CPU are those of the object's settings.
int beebox_prog_test_run_opts(int prog_fd,
                              struct bpf_test_run_opts *opts);

// As `beebox_prog_test_run_opts`, of the program itself.
int beebox_program__test_run(const struct beebox_program *prog, struct bpf_test_run_opts *opts);

// Verifies the programs of an object for its kernel, each loaded alone, loaded or not. `log_level`
// has the bits of the kernel's: 1 the path that leads to the refusal, 2 every instruction, 4
// statistics.
//
// Returns the verifications, which `beebox_verification__free` frees, or NULL. A refused program is no
// error.
struct beebox_verification *beebox_object__verify(const struct beebox_object *obj,
                                                  uint32_t log_level);

// Number of programs.
size_t beebox_verification__count(const struct beebox_verification *verification);

// The verification of the program at an index, in the order of the file; NULL behind the last. It
// belongs to the verification.
const struct beebox_verdict *beebox_verification__verdict(const struct beebox_verification *verification,
                                                          size_t index);

// Frees a verification. NULL does nothing.
//
// It is not used again.
void beebox_verification__free(struct beebox_verification *verification);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BEEBOX_H */
