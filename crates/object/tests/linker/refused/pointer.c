/* section .rel.data: data refers to a static variable or function, which is not linkable: let it refer to one that is not static */
#include "../shared.h"

static u32 hidden_here = 1;
u32 *shown = &hidden_here;
