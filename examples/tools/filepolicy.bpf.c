/* Who may open what: users other than root may not open files below a directory. */
#include "tools.h"

char directory[16] = "/etc/secrets/";
u64 refused;

SEC("lsm/file_open")
int file_policy(u64 *ctx)
{
	struct file *file = (void *)ctx[0];
	int ret = (int)ctx[1], i;
	char name[64] = {};

	/* Another program refused it already. */
	if (ret)
		return ret;
	if ((u32)get_current_uid_gid() == 0)
		return 0;
	if (d_path(&file->f_path, name, sizeof(name)) < 0)
		return 0;
	for (i = 0; i < sizeof(directory) && directory[i]; i++)
		if (name[i] != directory[i])
			return 0;
	refused++;
	return -EPERM;
}
