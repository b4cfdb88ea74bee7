/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_values.h"

#include <stdlib.h>

#include "base/str.h"
#include "cli/ui.h"

#define JOBS_MAX 1024
#define WARM_MAX 64
#define DAY_MS   86400000

int serve_read_count(const char *option, const char *text, uint64_t max, uint32_t *ret, struct brig_error *err)
{
	uint64_t n;

	if (!text)
		return 0;
	if (!str_to_u64(text, &n) || n == 0 || n > max)
		return err_set(err, BRIG_E_USAGE, 0, "--%s '%.40s' is no number from 1 to %llu", option, text,
			       (unsigned long long)max);
	*ret = (uint32_t)n;
	return 0;
}

int serve_read_time(const char *option, const char *text, uint64_t *ret, struct brig_error *err)
{
	if (text && (!str_to_millis(text, 1000, ret) || *ret == 0 || *ret > DAY_MS))
		return err_set(err, BRIG_E_USAGE, 0,
			       "--%s '%.40s' is no time of at most a day: give one such as 5s or 500ms", option, text);
	return 0;
}

int serve_read_common(const struct serve_common *v, struct serve_options *o, struct brig_error *err)
{
	o->preset = v->preset;
	o->settings = v->settings.item;
	o->n_settings = v->settings.n;
	o->ends_with_input = v->end_with_stdin;
	if (serve_read_count("jobs", v->jobs, JOBS_MAX, &o->jobs, err) < 0 ||
	    serve_read_count("warm", v->warm, WARM_MAX, &o->warm, err) < 0)
		return -err->code;
	return serve_read_time("drain", v->drain, &o->drain_ms, err);
}

int serve_until_stopped(const struct command *self, const struct serve_options *o)
{
	struct brig_error err = BRIG_ERROR_INIT;

	return serve(o, &err) == 0 ? EXIT_SUCCESS : ui_fail_or_usage(self->name, &err);
}
