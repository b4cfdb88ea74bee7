/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - counters of all runs: brig_metrics(). */
#include "metrics/metrics.h"

#include "api/handle.h"

#define TEXT_MAX (16 * MiB)

static int read_numbers(struct brig *b, struct metrics_snapshot **ret, struct brig_error *err)
{
	struct brig_error why = BRIG_ERROR_INIT;
	AUTO_STATEDIR dir = STATEDIR_INIT;
	int rc = statedir_open(b->recorder.state, false, &dir, &why);

	if (rc == 0 || why.sys == ENOENT) /* nothing has run yet */
		return metrics_read(rc == 0 ? &dir : NULL, ret, err);
	if (err)
		*err = why;
	return rc;
}

static char *as_prometheus(const struct metrics_snapshot *s)
{
	AUTO_BUF text = BUF_INIT(TEXT_MAX);

	metrics_to_prometheus(s, &text);
	return text.full || text.no_memory ? NULL : buf_take(&text);
}

static char *as_json(const struct metrics_snapshot *s)
{
	json_t *doc = metrics_to_json(s);
	char *text = doc ? json_dumps(doc, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;

	json_decref(doc);
	return text;
}

int brig_metrics(struct brig *b, enum brig_metrics_format format, char **ret, struct brig_error *err)
{
	struct metrics_snapshot *s = NULL;
	char *text;
	int rc;

	if (!b || !ret)
		return err_set(err, BRIG_E_USAGE, 0, "brig_metrics needs a handle and a place for the text");
	if (format != BRIG_METRICS_JSON && format != BRIG_METRICS_PROMETHEUS)
		return err_set(err, BRIG_E_USAGE, 0, "there is no format %d of the metrics", (int)format);
	rc = read_numbers(b, &s, err);
	if (rc < 0)
		return rc;
	text = format == BRIG_METRICS_JSON ? as_json(s) : as_prometheus(s);
	metrics_snapshot_free(s);
	if (!text)
		return err_nomem(err);
	*ret = text;
	return 0;
}
