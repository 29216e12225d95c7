// Every question that a program can ask about the types of a kernel, about types of
// our own. What becomes of each depends on the target; see targets/.

#define RELOCATED __attribute__((preserve_access_index))

enum { BYTE_OFFSET, BYTE_SIZE, EXISTS, SIGNED, LEFT_SHIFT, RIGHT_SHIFT };
#define field(what, how) __builtin_preserve_field_info(what, how)
#define type_is_there(type) __builtin_preserve_type_info(*(type *)0, 0)
#define type_size(type) __builtin_preserve_type_info(*(type *)0, 1)
#define type_matches(type) __builtin_preserve_type_info(*(type *)0, 2)
#define local_number(type) __builtin_btf_type_id(*(type *)0, 0)
#define target_number(type) __builtin_btf_type_id(*(type *)0, 1)
#define value_is_there(type, value) __builtin_preserve_enum_value(*(type *)value, 0)
#define value_of(type, value) __builtin_preserve_enum_value(*(type *)value, 1)

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// A record with plain fields of every size.
struct cargo {
	u8 tiny;
	u16 small;
	u32 middle;
	u64 large;
	int debt;
	void *owner;
	float weight;
	u32 boxes[6];
	struct crate {
		u16 lid;
		u16 side[3];
	} crates[2];
	struct {
		u32 hidden;
		union {
			u32 left;
			u64 right;
		};
	};
	u32 gone;
	u8 rest[];
} RELOCATED;

// The same thing as another release had it.
struct cargo___old {
	u32 before;
	u64 large;
} RELOCATED;

struct flags {
	u32 one : 1;
	u32 seven : 7;
	int signed_five : 5;
	u64 wide : 40;
	u32 plain;
} RELOCATED;

enum colour { RED = 1, GREEN = 5, BLUE = -3 };
enum shade { LIGHT = 1, DARK = 0xfffffff0u };
enum huge { SMALLEST = -0x100000000ll, LARGEST = 0x7000000000000000ll };
enum lost { NOWHERE = 7 };

struct rope {
	struct rope *next;
	enum colour colour;
	volatile const u32 length;
	int (*pull)(struct rope *, u32);
	struct sea *sea;
} RELOCATED;

union either {
	u32 number;
	u8 bytes[4];
} RELOCATED;

typedef struct rope rope_t;
typedef u32 depth_t;
typedef int (*pull_t)(struct rope *, u32);
typedef u32 row_t[4];
struct nobody {
	int nothing;
} RELOCATED;
struct declared;

volatile u64 answer;
#define ask(question) (answer = (question))

#define SECTION(name) __attribute__((section(name), used))

SECTION("socket/loads")
u64 loads(struct cargo *cargo)
{
	ask(cargo->tiny);
	ask(cargo->small);
	ask(cargo->middle);
	ask(cargo->large);
	ask(cargo->debt);
	ask((u64)cargo->owner);
	ask(cargo->boxes[2]);
	ask(cargo->crates[1].side[2]);
	ask(cargo->hidden);
	ask(cargo->left);
	ask(cargo->right);
	ask(cargo->gone);
	ask(cargo->rest[3]);
	ask(cargo[2].middle);
	return 0;
}

SECTION("socket/stores")
u64 stores(struct cargo *cargo)
{
	cargo->small = 3;
	cargo->large = answer;
	cargo->debt = -1;
	return 0;
}

SECTION("socket/old")
u64 old(struct cargo___old *cargo)
{
	ask(cargo->large);
	ask(field(cargo->before, EXISTS));
	ask(cargo->before);
	return 0;
}

#define ask_place(what)              \
	ask(field(what, BYTE_OFFSET));   \
	ask(field(what, BYTE_SIZE));     \
	ask(field(what, EXISTS))
#define ask_all(what)                \
	ask_place(what);                 \
	ask(field(what, SIGNED));        \
	ask(field(what, LEFT_SHIFT));    \
	ask(field(what, RIGHT_SHIFT))

SECTION("socket/fields")
u64 fields(struct cargo *cargo)
{
	ask_all(cargo->tiny);
	ask_all(cargo->debt);
	ask_all(cargo->large);
	ask_place(cargo->owner);
	ask_place(cargo->weight);
	ask_place(cargo->boxes);
	ask_place(cargo->crates);
	ask_all(cargo->hidden);
	ask_all(cargo->right);
	ask_all(cargo->gone);
	ask_all(cargo->crates[1].lid);
	return 0;
}

SECTION("socket/elements")
u64 elements(struct cargo *cargo)
{
	ask(field(cargo->boxes[5], BYTE_OFFSET));
	ask(field(cargo->boxes[5], BYTE_SIZE));
	ask(field(cargo->boxes[5], EXISTS));
	ask(field(cargo->crates[1].side[1], BYTE_OFFSET));
	ask(field(cargo->crates[1].side[1], EXISTS));
	ask(field(cargo->rest[100], BYTE_OFFSET));
	return 0;
}

SECTION("socket/bits")
u64 bits(struct flags *flags)
{
	ask_all(flags->one);
	ask_all(flags->seven);
	ask_all(flags->signed_five);
	ask_all(flags->wide);
	ask_all(flags->plain);
	return 0;
}

SECTION("socket/values")
u64 values(void)
{
	ask(value_is_there(enum colour, RED));
	ask(value_of(enum colour, RED));
	ask(value_is_there(enum colour, GREEN));
	ask(value_of(enum colour, GREEN));
	ask(value_of(enum colour, BLUE));
	ask(value_of(enum shade, DARK));
	ask(value_of(enum huge, SMALLEST));
	ask(value_of(enum huge, LARGEST));
	ask(value_is_there(enum lost, NOWHERE));
	ask(value_of(enum lost, NOWHERE));
	return 0;
}

#define ask_type(type)            \
	ask(type_is_there(type));     \
	ask(type_size(type));         \
	ask(type_matches(type));      \
	ask(local_number(type));      \
	ask(target_number(type))

SECTION("socket/types")
u64 types(void)
{
	ask_type(struct cargo);
	ask_type(struct cargo___old);
	ask_type(struct flags);
	ask_type(struct rope);
	ask_type(union either);
	ask_type(enum colour);
	ask_type(enum huge);
	ask_type(rope_t);
	ask_type(depth_t);
	ask_type(pull_t);
	ask_type(row_t);
	ask_type(struct nobody);
	ask_type(enum lost);
	return 0;
}

SECTION("socket/ropes")
u64 ropes(struct rope *rope)
{
	ask((u64)rope->next->next);
	ask(rope->colour);
	ask(rope->length);
	ask((u64)rope->pull);
	ask((u64)rope->sea);
	ask(field(((union either *)rope)->number, BYTE_SIZE));
	ask(((union either *)rope)->bytes[2]);
	return 0;
}

char _license[] __attribute__((section("license"))) = "GPL";
