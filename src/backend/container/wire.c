/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/container/wire.h"

#include <string.h>

#include "files/beneath.h"

/* ---- numbers and texts --------------------------------------------------------------------------- */

static void put_number(char *dst, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		dst[i] = (char)(value >> 8 * i & 0xff);
}

static uint64_t get_number(const char *src, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value |= (uint64_t)(unsigned char)src[i] << 8 * i;
	return value;
}

struct writer {
	char *at, *end;
	bool full;
};

static void add(struct writer *w, const void *data, size_t len)
{
	if (w->full || len > (size_t)(w->end - w->at)) {
		w->full = true;
		return;
	}
	memcpy(w->at, data, len);
	w->at += len;
}

static void add_number(struct writer *w, uint64_t value, unsigned bytes)
{
	char text[8];

	put_number(text, value, bytes);
	add(w, text, bytes);
}

/* Includes the NUL, so that the decoder can use the string in place. */
static void add_text(struct writer *w, const char *s)
{
	size_t len = strlen(s) + 1;

	if (len > UINT32_MAX)
		w->full = true;
	add_number(w, len, 4);
	add(w, s, len);
}

struct reader {
	const char *at, *end;
	bool bad;
};

static const char *take(struct reader *r, size_t len)
{
	const char *at = r->at;

	if (r->bad || len > (size_t)(r->end - r->at)) {
		r->bad = true;
		return NULL;
	}
	r->at += len;
	return at;
}

static uint64_t take_number(struct reader *r, unsigned bytes)
{
	const char *at = take(r, bytes);

	return at ? get_number(at, bytes) : 0;
}

static const char *take_text(struct reader *r)
{
	size_t len = (size_t)take_number(r, 4);
	const char *at = take(r, len);

	if (!at || len == 0 || at[len - 1] != '\0' || memchr(at, '\0', len - 1)) {
		r->bad = true;
		return "";
	}
	return at;
}

/* ---- the job ------------------------------------------------------------------------------------ */

static void add_texts(struct writer *w, const char *const *list, size_t max)
{
	size_t n = 0;

	while (list[n])
		n++;
	if (n > max)
		w->full = true;
	add_number(w, n, 4);
	for (size_t i = 0; i < n; i++)
		add_text(w, list[i]);
}

size_t wire_job_encode(const struct wire_job *job, char *dst, size_t size)
{
	struct writer w = { .at = dst, .end = dst + size };
	size_t meta;

	add(&w, WIRE_MAGIC, strlen(WIRE_MAGIC));
	add_number(&w, 0, 8); /* the size, filled in at the end */
	add(&w, job->key, sizeof(job->key));
	add_number(&w, job->flags, 4);
	add_number(&w, job->family, 4);
	add_number(&w, job->wall_ms, 8);
	add_number(&w, job->cpu_time_ms, 8);
	add_number(&w, job->disk_bytes, 8);
	add_number(&w, job->open_files, 8);
	add_number(&w, job->pids, 8);
	add_number(&w, job->tree_entries, 8);
	add_number(&w, job->tree_bytes, 8);
	add_number(&w, job->room_bytes, 8);
	add_number(&w, job->room_inodes, 8);
	add_number(&w, job->shown_entries, 8);
	add_number(&w, job->shown_bytes, 8);
	add_number(&w, job->output_max, 8);
	add_text(&w, job->shown);
	add_text(&w, job->link);
	add_text(&w, job->link_to);
	add_text(&w, job->output);
	add_texts(&w, job->argv, WIRE_ARGS_MAX);
	add_texts(&w, job->envp, WIRE_ENV_MAX);
	add_texts(&w, job->hidden, WIRE_HIDDEN_MAX);
	add_number(&w, job->n_files, 4);
	for (size_t i = 0; i < job->n_files; i++) {
		add_text(&w, job->files[i].name);
		add_number(&w, job->files[i].place, 4);
		add_number(&w, job->files[i].mode, 4);
		add_number(&w, job->files[i].len, 8);
	}
	meta = (size_t)(w.at - dst) - WIRE_HEAD;
	if (w.full || meta > WIRE_META_MAX)
		return 0;
	put_number(dst + strlen(WIRE_MAGIC), meta, 8);
	return WIRE_HEAD + meta;
}

int64_t wire_head_decode(const char head[WIRE_HEAD])
{
	size_t magic = strlen(WIRE_MAGIC);
	uint64_t len = get_number(head + magic, 8);

	return memcmp(head, WIRE_MAGIC, magic) == 0 && len <= WIRE_META_MAX ? (int64_t)len : -1;
}

static void take_texts(struct reader *r, const char **list, size_t max)
{
	uint64_t n = take_number(r, 4);

	if (n > max)
		r->bad = true;
	for (size_t i = 0; !r->bad && i < n; i++)
		list[i] = take_text(r);
	list[r->bad ? 0 : n] = NULL;
}

static bool is_below(const char *path)
{
	size_t len = strlen(path);

	return len <= WIRE_PATH_MAX && beneath_is_path(path, len);
}

static void take_files(struct reader *r, struct wire_job *job)
{
	uint64_t n = take_number(r, 4);

	if (n > WIRE_FILES_MAX)
		r->bad = true;
	for (size_t i = 0; !r->bad && i < n; i++) {
		struct wire_file *f = &job->files[i];

		f->name = take_text(r);
		f->place = (uint32_t)take_number(r, 4);
		f->mode = (uint32_t)take_number(r, 4);
		f->len = take_number(r, 8);
		f->data = NULL;
		if (!is_below(f->name) || f->place >= WIRE_PLACES || f->mode & ~0777u)
			r->bad = true;
	}
	job->n_files = r->bad ? 0 : (uint32_t)n;
}

static bool is_shown(const char *path)
{
	size_t top = strlen(WIRE_SHOWN_TOP);

	return strncmp(path, WIRE_SHOWN_TOP, top) == 0 && is_below(path + top);
}

/* The directory for a tree, and a link in the workspace that leads into that directory and nowhere else. */
static bool shown_is_sound(const struct wire_job *j)
{
	size_t len = strlen(j->shown);

	if (j->shown[0] && !is_shown(j->shown))
		return false;
	if (!j->link[0])
		return !j->link_to[0];
	return is_below(j->link) && !strchr(j->link, '/') && j->shown[0] && is_shown(j->link_to) &&
	       strncmp(j->link_to, j->shown, len) == 0 && (j->link_to[len] == '/' || j->link_to[len] == '\0');
}

bool wire_job_decode(const char *meta, size_t len, struct wire_job *ret)
{
	struct reader r = { .at = meta, .end = meta + len };
	const char *keys = take(&r, sizeof(ret->key));

	if (!keys)
		return false;
	memcpy(ret->key, keys, sizeof(ret->key));
	ret->flags = (uint32_t)take_number(&r, 4);
	ret->family = (uint32_t)take_number(&r, 4);
	ret->wall_ms = take_number(&r, 8);
	ret->cpu_time_ms = take_number(&r, 8);
	ret->disk_bytes = take_number(&r, 8);
	ret->open_files = take_number(&r, 8);
	ret->pids = take_number(&r, 8);
	ret->tree_entries = take_number(&r, 8);
	ret->tree_bytes = take_number(&r, 8);
	ret->room_bytes = take_number(&r, 8);
	ret->room_inodes = take_number(&r, 8);
	ret->shown_entries = take_number(&r, 8);
	ret->shown_bytes = take_number(&r, 8);
	ret->output_max = take_number(&r, 8);
	ret->shown = take_text(&r);
	ret->link = take_text(&r);
	ret->link_to = take_text(&r);
	ret->output = take_text(&r);
	take_texts(&r, ret->argv, WIRE_ARGS_MAX);
	take_texts(&r, ret->envp, WIRE_ENV_MAX);
	take_texts(&r, ret->hidden, WIRE_HIDDEN_MAX);
	take_files(&r, ret);
	if (r.bad || r.at != r.end || ret->flags & ~(uint32_t)WIRE_FLAGS || !shown_is_sound(ret))
		return false;
	return ret->argv[0] && ret->argv[0][0] == '/' && (!ret->output[0] || is_below(ret->output));
}

/* ---- prefixes, frames --------------------------------------------------------------------------- */

void wire_prefix(char dst[WIRE_PREFIX], unsigned type, uint32_t len)
{
	put_number(dst, type & 0xff, 4);
	put_number(dst + 4, len, 4);
}

bool wire_prefix_decode(const char src[WIRE_PREFIX], unsigned *type, uint32_t *len)
{
	uint64_t word = get_number(src, 4);

	*type = (unsigned)(word & 0xff);
	*len = (uint32_t)get_number(src + 4, 4);
	return word <= 0xff && *len <= WIRE_BODY_MAX;
}

void wire_put_key(struct wire_out *o, const uint8_t key[WIRE_KEY])
{
	if (o->cap - o->len < WIRE_KEY) {
		o->full = true;
		return;
	}
	memcpy(o->data + o->len, key, WIRE_KEY);
	o->len += WIRE_KEY;
}

void wire_put(struct wire_out *o, enum wire_frame type, const void *body, size_t len)
{
	if (len > WIRE_BODY_MAX || o->cap - o->len < WIRE_PREFIX + len) {
		o->full = true;
		return;
	}
	wire_prefix(o->data + o->len, type, (uint32_t)len);
	if (len > 0)
		memcpy(o->data + o->len + WIRE_PREFIX, body, len);
	o->len += WIRE_PREFIX + len;
}

void wire_put_failure(struct wire_out *o, enum wire_step step, int sys)
{
	char body[8];

	put_number(body, step, 4);
	put_number(body + 4, (uint32_t)sys, 4);
	wire_put(o, WIRE_FAILED, body, sizeof(body));
}

bool wire_get_failure(const char *body, size_t len, struct wire_failure *ret)
{
	if (len != 8)
		return false;
	ret->step = (uint32_t)get_number(body, 4);
	ret->sys = (uint32_t)get_number(body + 4, 4);
	return ret->step < WIRE_STEPS && ret->sys < 4096;
}

void wire_put_spaces(struct wire_out *o, const struct wire_spaces *s)
{
	char body[8 * WIRE_SPACE_COUNT];

	for (size_t i = 0; i < WIRE_SPACE_COUNT; i++)
		put_number(body + 8 * i, s->inode[i], 8);
	wire_put(o, WIRE_SPACES, body, sizeof(body));
}

bool wire_get_spaces(const char *body, size_t len, struct wire_spaces *ret)
{
	if (len != 8 * WIRE_SPACE_COUNT)
		return false;
	for (size_t i = 0; i < WIRE_SPACE_COUNT; i++)
		ret->inode[i] = get_number(body + 8 * i, 8);
	return true;
}

#define EXIT_LEN (4 * 4 + 6 * 8)

void wire_put_exit(struct wire_out *o, const struct wire_exit *e)
{
	char body[EXIT_LEN] = "";
	struct writer w = { .at = body, .end = body + sizeof(body) };

	add_number(&w, e->exited, 4);
	add_number(&w, e->value, 4);
	add_number(&w, e->expired, 4);
	add_number(&w, e->disk_full, 4);
	add_number(&w, e->run_ns, 8);
	add_number(&w, e->cpu_ns, 8);
	add_number(&w, e->memory_peak, 8);
	add_number(&w, e->pids_peak, 8);
	add_number(&w, e->oom_kills, 8);
	add_number(&w, e->pids_refused, 8);
	wire_put(o, WIRE_EXIT, body, sizeof(body));
}

bool wire_get_exit(const char *body, size_t len, struct wire_exit *ret)
{
	struct reader r = { .at = body, .end = body + len };

	if (len != EXIT_LEN)
		return false;
	ret->exited = (uint32_t)take_number(&r, 4);
	ret->value = (uint32_t)take_number(&r, 4);
	ret->expired = (uint32_t)take_number(&r, 4);
	ret->disk_full = (uint32_t)take_number(&r, 4);
	ret->run_ns = take_number(&r, 8);
	ret->cpu_ns = take_number(&r, 8);
	ret->memory_peak = take_number(&r, 8);
	ret->pids_peak = take_number(&r, 8);
	ret->oom_kills = take_number(&r, 8);
	ret->pids_refused = take_number(&r, 8);
	return ret->exited <= 1 && ret->expired <= 1 && ret->disk_full <= 1 && ret->value <= (ret->exited ? 255 : 127);
}

void wire_put_number(struct wire_out *o, enum wire_frame type, uint64_t value)
{
	char body[8];

	put_number(body, value, 8);
	wire_put(o, type, body, sizeof(body));
}

bool wire_get_number(const char *body, size_t len, uint64_t *ret)
{
	if (len != 8)
		return false;
	*ret = get_number(body, 8);
	return true;
}

size_t wire_left_encode(uint64_t size, const char *path, char *dst, size_t room)
{
	size_t len = strlen(path) + 1;

	if (len + 8 > room)
		return 0;
	put_number(dst, size, 8);
	memcpy(dst + 8, path, len);
	return len + 8;
}

bool wire_left_next(const char **data, size_t *len, uint64_t *ret_size, const char **ret_path)
{
	const char *path = *data + 8, *end = *len > 8 ? memchr(path, '\0', *len - 8) : NULL;

	if (!end || !beneath_is_path(path, (size_t)(end - path)))
		return false;
	*ret_size = get_number(*data, 8);
	*ret_path = path;
	*len -= (size_t)(end + 1 - *data);
	*data = end + 1;
	return true;
}

void wire_put_fact(struct wire_out *o, const struct wire_fact *f)
{
	char body[1024] = "";
	struct writer w = { .at = body, .end = body + sizeof(body) };

	add_number(&w, f->id, 4);
	add_number(&w, f->is_text, 4);
	add_number(&w, f->num, 8);
	add_text(&w, f->text);
	add_text(&w, f->source);
	if (w.full)
		o->full = true;
	else
		wire_put(o, WIRE_FACT, body, (size_t)(w.at - body));
}

bool wire_get_fact(const char *body, size_t len, struct wire_fact *ret)
{
	struct reader r = { .at = body, .end = body + len };
	uint64_t is_text;

	ret->id = (uint32_t)take_number(&r, 4);
	is_text = take_number(&r, 4);
	ret->is_text = is_text != 0;
	ret->num = take_number(&r, 8);
	ret->text = take_text(&r);
	ret->source = take_text(&r);
	return !r.bad && r.at == r.end && is_text <= 1;
}

/* ---- program output up to a key --------------------------------------------------------------------- */

void wire_mark_init(struct wire_mark *m, const uint8_t key[WIRE_KEY])
{
	unsigned n = 0;

	*m = (struct wire_mark){ .matched = 0 };
	memcpy(m->key, key, WIRE_KEY);
	/* fallback[i]: length of the longest proper prefix of the key that is also a suffix of its first i+1 bytes. */
	for (unsigned i = 1; i < WIRE_KEY; i++) {
		while (n > 0 && key[i] != key[n])
			n = m->fallback[n - 1];
		n += key[i] == key[n];
		m->fallback[i] = (uint8_t)n;
	}
}

/* Returns bytes that turned out not to begin the key.  They equal the beginning of the key, so no copy is needed. */
static void give_back(struct wire_mark *m, const char **ret, size_t *ret_len)
{
	unsigned still = m->fallback[m->matched - 1];

	*ret = (const char *)m->key;
	*ret_len = m->matched - still;
	m->matched = still;
}

bool wire_mark_next(struct wire_mark *m, const char **data, size_t *len, const char **ret, size_t *ret_len)
{
	while (*len > 0 && !wire_mark_found(m)) {
		/* Nothing is held back: passes on everything up to the next byte that could begin the key. */
		if (m->matched == 0 && (uint8_t) * *data != m->key[0]) {
			const char *end = memchr(*data, m->key[0], *len);

			*ret = *data;
			*ret_len = end ? (size_t)(end - *data) : *len;
			*data += *ret_len;
			*len -= *ret_len;
			return true;
		}
		if ((uint8_t) * *data != m->key[m->matched]) {
			give_back(m, ret, ret_len);
			return true;
		}
		m->matched++;
		(*data)++;
		(*len)--;
	}
	return false;
}

size_t wire_mark_rest(struct wire_mark *m, const char **ret)
{
	size_t n = wire_mark_found(m) ? 0 : m->matched;

	*ret = (const char *)m->key;
	m->matched -= (unsigned)n;
	return n;
}

/* ---- reading a container's stderr ---------------------------------------------------------------- */

void wire_reader_init(struct wire_reader *r, const uint8_t key[2][WIRE_KEY])
{
	memset(r, 0, offsetof(struct wire_reader, body));
	memcpy(r->key, key[0], WIRE_KEY);
	wire_mark_init(&r->tail, key[1]);
}

static enum wire_item broken(struct wire_reader *r)
{
	r->state = WIRE_BROKEN;
	return WIRE_ITEM_BROKEN;
}

/* The key of the first section: init writes first. */
static bool match_key1(struct wire_reader *r, const char **data, size_t *len)
{
	while (*len > 0 && r->matched < WIRE_KEY) {
		if ((uint8_t) * *data != r->key[r->matched])
			return false;
		r->matched++;
		(*data)++;
		(*len)--;
	}
	if (r->matched == WIRE_KEY)
		r->state = WIRE_IN_HEAD;
	return true;
}

/* Copies until there are want bytes in total; true when there are. */
static bool gather(char *dst, unsigned *have, uint32_t want, const char **data, size_t *len)
{
	size_t n = (size_t)min_u64(want - *have, *len);

	if (n > 0)
		memcpy(dst + *have, *data, n);
	*have += (unsigned)n;
	*data += n;
	*len -= n;
	return *have == want;
}

static enum wire_item next_frame(struct wire_reader *r, const char **data, size_t *len, unsigned *ret_type,
				 const char **ret, size_t *ret_len)
{
	if (!r->in_body) {
		if (!gather(r->prefix, &r->have, WIRE_PREFIX, data, len))
			return WIRE_NOTHING;
		if (!wire_prefix_decode(r->prefix, &r->type, &r->len) || r->type == 0 || r->type >= WIRE_FRAMES ||
		    (r->type == WIRE_END && r->len > 0))
			return broken(r);
		r->in_body = true;
		r->have = 0;
	}
	if (!gather(r->body, &r->have, r->len, data, len))
		return WIRE_NOTHING;
	r->in_body = false;
	r->have = 0;
	if (r->type == WIRE_END)
		r->state = r->state == WIRE_IN_HEAD ? WIRE_IN_GUEST : WIRE_DONE;
	*ret_type = r->type;
	*ret = r->body;
	*ret_len = r->len;
	return WIRE_ITEM_FRAME;
}

enum wire_item wire_next(struct wire_reader *r, const char **data, size_t *len, unsigned *ret_type, const char **ret,
			 size_t *ret_len)
{
	enum wire_item item = WIRE_NOTHING;

	while (item == WIRE_NOTHING && *len > 0) {
		switch (r->state) {
		case WIRE_AT_KEY1:
			if (!match_key1(r, data, len))
				return broken(r);
			break;
		case WIRE_IN_HEAD:
		case WIRE_IN_TAIL:
			item = next_frame(r, data, len, ret_type, ret, ret_len);
			break;
		case WIRE_IN_GUEST:
			if (wire_mark_next(&r->tail, data, len, ret, ret_len))
				item = WIRE_ITEM_GUEST;
			else if (wire_mark_found(&r->tail))
				r->state = WIRE_IN_TAIL;
			break;
		case WIRE_DONE: /* no process is left that could write more */
		case WIRE_BROKEN:
			return broken(r);
		}
	}
	return item;
}

size_t wire_rest(struct wire_reader *r, const char **ret)
{
	*ret = "";
	return r->state == WIRE_IN_GUEST ? wire_mark_rest(&r->tail, ret) : 0;
}
