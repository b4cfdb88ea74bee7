/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading the file of counters.  It is read, not mapped: nothing that happens to it meanwhile can hurt, and what is
 * read does not change.  Numbers may be anything; names are checked, because they go into texts with a syntax.
 */
#include "metrics/snapshot.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"

#define PLACES_MAX ARRAY_LEN(((struct metrics_snapshot *)0)->name[0])
#define NAME_SIZE  (METRIC_NAME_MAX + 1)
#define UNKNOWN    "unknown-"

uint64_t metric_add(uint64_t a, uint64_t b)
{
	return a + b < a ? UINT64_MAX : a + b;
}

/* ---- names ------------------------------------------------------------------------------------ */

static bool is_name(const char text[METRIC_NAME_MAX + 1])
{
	size_t len = strnlen(text, NAME_SIZE);

	if (len == 0 || len == NAME_SIZE || !str_is_utf8(text, len))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	/* These are given by read_names(). */
	return !str_eq(text, "other") && strncmp(text, UNKNOWN, strlen(UNKNOWN)) != 0;
}

static bool is_taken(const struct metrics_snapshot *s, enum label_set set, size_t n, const char *text)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(s->name[set][i], text))
			return true;
	return false;
}

/* The names of an OPEN set.  One that cannot be shown, or is there twice, is shown by its place. */
static void read_names(struct metrics_snapshot *s, enum label_set set, char **at)
{
	size_t last = label_info[set].size - 1;

	for (size_t i = 0; i <= last; i++, *at += NAME_SIZE) {
		struct metrics_name place;
		char *text = *at;

		memcpy(&place, s->bytes + s->layout.names[set] + i * sizeof(place), sizeof(place));
		if (i == last)
			(void)str_copy(text, NAME_SIZE, "other");
		else if (place.hash && place.ready && is_name(place.text) && !is_taken(s, set, i, place.text))
			memcpy(text, place.text, sizeof(place.text));
		else
			(void)snprintf(text, NAME_SIZE, UNKNOWN "%zu", i);
		s->name[set][i] = text;
	}
}

static int make_names(struct metrics_snapshot *s, struct brig_error *err)
{
	size_t n = 0;
	char *at;

	for (enum label_set set = 0; set < LABELS_COUNT; set++) {
		assert(label_info[set].size <= PLACES_MAX);
		n += label_info[set].open ? label_info[set].size : 0;
	}
	s->names = at = calloc(n, NAME_SIZE);
	if (!s->names)
		return err_nomem(err);
	for (enum label_set set = 0; set < LABELS_COUNT; set++) {
		if (label_info[set].open)
			read_names(s, set, &at);
		for (size_t i = 0; !label_info[set].open && i < label_info[set].size; i++)
			s->name[set][i] = label_info[set].fixed ? label_info[set].fixed(i) : "";
	}
	return 0;
}

/* ---- the file --------------------------------------------------------------------------------- */

void metrics_snapshot_free(struct metrics_snapshot *s)
{
	if (!s)
		return;
	free(s->names);
	free(s->bytes);
	free(s);
}

/* Takes the bytes, layout.size of them. */
static int make_snapshot(struct metrics_snapshot *s, unsigned char *bytes, struct metrics_snapshot **ret,
			 struct brig_error *err)
{
	struct metrics_header h;
	int rc;

	memcpy(&h, bytes, sizeof(h));
	s->bytes = bytes;
	s->created_ns = h.created_ns;
	rc = make_names(s, err);
	if (rc < 0)
		metrics_snapshot_free(s);
	else
		*ret = s;
	return rc;
}

static int refuse(const char *why, struct brig_error *err)
{
	return err_set(err, BRIG_E_SYSTEM, 0, "the file of counters is %s; the next run sets it aside and begins anew",
		       why);
}

int metrics_read_bytes(const void *bytes, size_t len, struct metrics_snapshot **ret, struct brig_error *err)
{
	struct metrics_snapshot *s = calloc(1, sizeof(*s));
	unsigned char *copy;
	struct metrics_header h;
	const char *why;

	if (!s)
		return err_nomem(err);
	metrics_layout_make(&s->layout);
	if (len >= sizeof(h))
		memcpy(&h, bytes, sizeof(h));
	why = len < sizeof(h) ? "cut" : metrics_header_check(&s->layout, &h, len);
	copy = why ? NULL : malloc(len);
	if (!copy) {
		metrics_snapshot_free(s);
		return why ? refuse(why, err) : err_nomem(err);
	}
	memcpy(copy, bytes, len);
	return make_snapshot(s, copy, ret, err);
}

/* Nothing was ever counted. */
static int read_nothing(struct metrics_snapshot **ret, struct brig_error *err)
{
	struct metrics_snapshot *s = calloc(1, sizeof(*s));
	unsigned char *bytes;

	if (!s)
		return err_nomem(err);
	metrics_layout_make(&s->layout);
	bytes = calloc(1, s->layout.size);
	if (!bytes) {
		metrics_snapshot_free(s);
		return err_nomem(err);
	}
	return make_snapshot(s, bytes, ret, err);
}

int metrics_read(const struct statedir *dir, struct metrics_snapshot **ret, struct brig_error *err)
{
	struct brig_error reason = { .sys = ENOENT };
	AUTO_FD fd = dir ? statedir_open_file(dir, METRICS_FILE, O_RDONLY, &reason) : FD_NONE;
	AUTO_FREE unsigned char *bytes = NULL;
	struct metrics_layout l;
	ssize_t n;

	if (fd < 0 && reason.sys == ENOENT)
		return read_nothing(ret, err);
	if (fd < 0) {
		if (err)
			*err = reason;
		return -reason.code;
	}
	metrics_layout_make(&l);
	bytes = malloc(l.size + 1); /* one more shows that there is more */
	if (!bytes)
		return err_nomem(err);
	n = fd_read_all(fd, bytes, l.size + 1);
	if (n < 0)
		return statedir_trouble(err, (int)-n, "cannot read", dir->path, METRICS_FILE);
	return metrics_read_bytes(bytes, (size_t)n, ret, err);
}

/* ---- samples ---------------------------------------------------------------------------------- */

static void fill_sample(const struct metrics_snapshot *s, enum metric m, size_t row, struct metric_sample *ret)
{
	const struct metric_info *info = &metric_info[m];
	size_t width = metric_width(m), rest = row;

	*ret = (struct metric_sample){ .number = (const uint64_t *)(const void *)(s->bytes + s->layout.numbers[m]) +
						 row * width };
	for (size_t i = METRIC_LABELS_MAX; i-- > 0;) {
		size_t size = label_info[info->label[i]].size;

		ret->index[i] = rest % size;
		ret->label[i] = s->name[info->label[i]][ret->index[i]];
		rest /= size;
	}
	if (info->type == TYPE_COUNTER) {
		ret->value = ret->number[0];
		return;
	}
	for (size_t i = 0; i + 1 < width; i++)
		ret->value = metric_add(ret->value, ret->number[i]);
	ret->sum = ret->number[width - 1];
}

bool metric_sample_next(const struct metrics_snapshot *s, enum metric m, size_t *row, struct metric_sample *ret)
{
	for (size_t n = metric_rows(m); *row < n;) {
		fill_sample(s, m, (*row)++, ret);
		if (ret->value || n == 1)
			return true;
	}
	return false;
}
