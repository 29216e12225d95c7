/* section license: it says something else than in a file before; all must agree */
#include "../shared.h"

char terms[] SEC("license") = "Dual BSD/GPL";
