/* SPDX-License-Identifier: Apache-2.0 */
#include "base/library.h"

#include <dlfcn.h>
#include <string.h>

int library_load(const struct library *what, void *pointers, void **ret_handle, const char **ret_why)
{
	void *handle = NULL;

	for (size_t i = 0; what->names[i] && !handle; i++)
		handle = dlopen(what->names[i], RTLD_LAZY | RTLD_LOCAL);
	if (!handle) {
		const char *why = dlerror();

		*ret_why = why ? why : what->names[0];
		return -ENOENT;
	}
	for (size_t i = 0; i < what->n_functions; i++) {
		void *function = dlsym(handle, what->functions[i].name);

		if (!function) {
			(void)dlclose(handle);
			*ret_why = what->functions[i].name;
			return -ENOSYS;
		}
		memcpy((char *)pointers + what->functions[i].offset, &function, sizeof(function));
	}
	*ret_handle = handle;
	return 0;
}
