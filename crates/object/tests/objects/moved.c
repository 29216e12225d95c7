/* Types that stand for a later kernel's: moved, resized, renumbered, gone. */
#include "program.h"

enum colour { BLUE = 30, RED = 10 };

struct inner {
	int y;
	long added;
	int x;
};

struct thing {
	u64 added;
	void *pointer;
	struct {
		struct inner at[5];
		u32 big;
	};
	unsigned int before : 7;
	unsigned int high : 9;
	unsigned int low : 3;
	u16 id;
};

struct thing thing;
enum colour colour;
