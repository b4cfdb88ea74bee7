/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of /proc/PID/mountinfo and /proc/PID/cgroup: mount points and group names are chosen by others. */
#include <stdint.h>
#include <string.h>

#include "sys/cgroup_internal.h"
#include "sys/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every string lies inside the line and ends there. */
static void must_be_inside(const char *s, const char *line, size_t size)
{
	if (s < line || s + strlen(s) > line + size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO_FREE char *line = malloc(size + 1);
	struct mount_line m;
	struct cgroup_line c;

	if (!line)
		return 0;
	memcpy(line, data, size);
	line[size] = '\0';
	if (proc_parse_mount(line, &m)) {
		const char *const all[] = { m.root, m.point, m.options, m.fstype, m.source, m.super };

		for (size_t i = 0; i < ARRAY_LEN(all); i++)
			must_be_inside(all[i], line, size);
		(void)proc_list_has(m.super, ',', "memory");
		(void)cgroup_path_in_mount("/a/b", m.root);
	}
	memcpy(line, data, size);
	if (proc_parse_cgroup(line, &c)) {
		must_be_inside(c.controllers, line, size);
		must_be_inside(c.path, line, size);
		(void)proc_list_has(c.controllers, ',', "cpu");
		(void)cgroup_path_in_mount(c.path, "/a");
	}
	return 0;
}
