/* section license: section has other flags than in an earlier file */
#include "../shared.h"

const char terms[] SEC("license") = "GPL";
