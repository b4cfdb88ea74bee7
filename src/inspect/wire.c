/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/wire.h"

#include <string.h>

#include "base/str.h"

/* True for a NUL-terminated text that is safe to show. */
static bool is_sound_text(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	if (len == size || !str_is_utf8(text, len))
		return false;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return false;
	return true;
}

static bool is_sound(const struct finding *f, size_t text_len)
{
	uint32_t severity;
	unsigned char network;

	/* An invalid value must not even be read as an enum. */
	memcpy(&severity, &f->severity, sizeof(severity));
	memcpy(&network, &f->network, sizeof(network));
	return severity > SEVERITY_NONE && severity < SEVERITY_COUNT && network <= 1 && f->span.start <= f->span.end &&
	       f->span.end <= text_len && f->line >= 1 && f->line <= text_len + 1 && f->end_line >= f->line &&
	       f->end_line <= text_len + 1 && f->column >= 1 && f->column <= text_len + 1 && f->end_column >= 1 &&
	       f->end_column <= text_len + 1 && f->rule[0] && is_sound_text(f->rule, sizeof(f->rule)) &&
	       is_sound_text(f->name, sizeof(f->name)) && is_sound_text(f->message, sizeof(f->message)) &&
	       is_sound_text(f->remedy, sizeof(f->remedy));
}

static bool is_sound_header(const struct wire_header *h, size_t body)
{
	if (h->magic != WIRE_MAGIC || h->status >= WIRE_STATUS_COUNT || h->n > FINDINGS_MAX ||
	    h->worst >= SEVERITY_COUNT)
		return false;
	if (h->status != WIRE_DONE)
		return h->n == 0 && body == 0;
	/* Findings are dropped only if the list is full. */
	return body == h->n * sizeof(struct finding) && (h->dropped == 0 || h->n == FINDINGS_MAX) &&
	       (h->n > 0) == (h->worst > SEVERITY_NONE);
}

static bool rows_are_sound(const struct finding *row, const struct wire_header *h, size_t text_len)
{
	uint32_t worst = SEVERITY_NONE;

	for (uint32_t i = 0; i < h->n; i++) {
		if (!is_sound(&row[i], text_len))
			return false;
		worst = row[i].severity > worst ? row[i].severity : worst;
	}
	/* The worst finding is never dropped. */
	return worst == h->worst;
}

bool wire_decode(const void *bytes, size_t len, size_t text_len, struct wire_header *ret_header, struct findings *ret,
		 bool *ret_no_memory)
{
	AUTO_FREE struct finding *row = NULL;
	struct wire_header h;

	*ret_no_memory = false;
	if (len < sizeof(h))
		return false;
	memcpy(&h, bytes, sizeof(h));
	if (!is_sound_header(&h, len - sizeof(h)))
		return false;
	if (h.n > 0) {
		row = calloc(h.n, sizeof(*row));
		if (!row) {
			*ret_no_memory = true;
			return false;
		}
		memcpy(row, (const char *)bytes + sizeof(h), h.n * sizeof(*row));
		if (!rows_are_sound(row, &h, text_len))
			return false;
	}
	*ret_header = h;
	*ret = (struct findings){ .n = h.n, .cap = h.n, .dropped = h.dropped, .worst = (enum severity)h.worst };
	ret->row = MOVE_PTR(row);
	return true;
}

bool wire_is_whole(const void *bytes, size_t len)
{
	struct wire_header h;

	if (len < sizeof(h))
		return false;
	memcpy(&h, bytes, sizeof(h));
	return h.n <= FINDINGS_MAX && len >= sizeof(h) + h.n * sizeof(struct finding);
}
