/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as one flat message: numbers, then the strings one after the other, each with the length given in the head.
 *
 *	head | workspace NUL | allowed commands, each NUL | asked modules, each NUL | text
 *
 * The reader checks every number, and encoding a decoded message yields the same bytes (tests/fuzz/fuzz_inspect_ask.c).
 */
#include <assert.h>
#include <string.h>

#include "inspect/wire.h"

#define ASK_MAGIC 0x41534b31u

enum ask_flag { ASK_HAS_INPUT = 1, ASK_STRICT_COMMANDS = 2, ASK_HAS_ALLOWED = 4, ASK_FLAGS = 7 };

struct ask_head {
	uint32_t magic;
	uint32_t kind, level, asked_kind;
	uint32_t flags;
	uint32_t workspace_len; /* including its NUL; 0: no workspace is named */
	uint32_t n_allowed, allowed_len;
	uint32_t n_asked, asked_len;
	uint32_t text_len;
};
static_assert(sizeof(struct ask_head) == WIRE_ASK_HEAD, "the head is a row of numbers without gaps");

/* ---- writing -------------------------------------------------------------------------------------------- */

static size_t length_of_asked(const struct inspect_request *req)
{
	size_t len = 0;

	for (size_t i = 0; i < req->n_asked; i++)
		len += strlen(req->asked[i]) + 1;
	return len;
}

bool wire_ask_encode(const struct inspect_request *req, struct buf *out)
{
	const struct setting_list *allowed = req->allowed_commands;
	size_t workspace_len = req->workspace ? strlen(req->workspace) + 1 : 0;
	size_t allowed_len = allowed ? allowed->used : 0, asked_len = length_of_asked(req);
	size_t text_len = req->text ? req->len : 0;
	struct ask_head h = { .magic = ASK_MAGIC,
			      .kind = req->kind,
			      .level = req->level,
			      .asked_kind = req->asked_kind,
			      .flags = (req->has_input ? ASK_HAS_INPUT : 0) |
				       (req->strict_commands ? ASK_STRICT_COMMANDS : 0) |
				       (allowed ? ASK_HAS_ALLOWED : 0),
			      .workspace_len = (uint32_t)workspace_len,
			      .n_allowed = allowed ? allowed->n : 0,
			      .allowed_len = (uint32_t)allowed_len,
			      .n_asked = (uint32_t)req->n_asked,
			      .asked_len = (uint32_t)asked_len,
			      .text_len = (uint32_t)text_len };

	/* Checks each length first: their sum cannot overflow then.  None was truncated above. */
	if (workspace_len > WIRE_ASK_MAX || asked_len > WIRE_ASK_MAX || text_len > WIRE_ASK_MAX ||
	    sizeof(h) + workspace_len + allowed_len + asked_len + text_len > WIRE_ASK_MAX)
		return false;
	(void)buf_add(out, &h, sizeof(h));
	(void)buf_add(out, req->workspace, workspace_len);
	if (allowed)
		(void)buf_add(out, allowed->text, allowed_len);
	for (size_t i = 0; i < req->n_asked; i++)
		(void)buf_add(out, req->asked[i], strlen(req->asked[i]) + 1);
	(void)buf_add(out, req->text, text_len);
	return !out->full && !out->no_memory;
}

/* ---- reading -------------------------------------------------------------------------------------------- */

static size_t size_of(const struct ask_head *h)
{
	return sizeof(*h) + (size_t)h->workspace_len + h->allowed_len + h->asked_len + h->text_len;
}

size_t wire_ask_size(const void *head)
{
	struct ask_head h;
	size_t size;

	memcpy(&h, head, sizeof(h));
	size = size_of(&h);
	return h.magic == ASK_MAGIC && size <= WIRE_ASK_MAX ? size : 0;
}

static bool is_sound_head(const struct ask_head *h)
{
	return h->magic == ASK_MAGIC && h->kind < INSPECT_KIND_COUNT && h->asked_kind < INSPECT_KIND_COUNT &&
	       h->level < INSPECTION_COUNT && (h->flags & ~(uint32_t)ASK_FLAGS) == 0 &&
	       h->allowed_len <= SETTING_LIST_BYTES && h->n_asked <= h->asked_len &&
	       (h->flags & ASK_HAS_ALLOWED || (h->allowed_len == 0 && h->n_allowed == 0));
}

/* True if len bytes are exactly n NUL-terminated strings. */
static bool are_strings(const char *bytes, size_t len, size_t n)
{
	size_t ends = 0;

	for (size_t i = 0; i < len; i++)
		ends += bytes[i] == '\0';
	return ends == n && (len == 0 || bytes[len - 1] == '\0');
}

static bool take_asked(struct wire_ask *ask, const char *at, size_t n)
{
	if (n == 0)
		return true;
	ask->asked = calloc(n, sizeof(*ask->asked));
	if (!ask->asked)
		return false;
	for (size_t i = 0; i < n; i++) {
		ask->asked[i] = at;
		at += strlen(at) + 1;
	}
	ask->req.asked = ask->asked;
	ask->req.n_asked = n;
	return true;
}

bool wire_ask_decode(const void *bytes, size_t len, struct wire_ask *ret)
{
	const char *workspace = (const char *)bytes + WIRE_ASK_HEAD, *allowed, *asked;
	struct ask_head h;

	ret->asked = NULL;
	if (len < sizeof(h) || len > WIRE_ASK_MAX)
		return false;
	memcpy(&h, bytes, sizeof(h));
	if (!is_sound_head(&h) || size_of(&h) != len)
		return false;
	allowed = workspace + h.workspace_len;
	asked = allowed + h.allowed_len;
	if (!are_strings(workspace, h.workspace_len, h.workspace_len > 0) ||
	    !are_strings(allowed, h.allowed_len, h.n_allowed) || !are_strings(asked, h.asked_len, h.n_asked))
		return false;
	ret->req = (struct inspect_request){ .kind = (enum inspect_kind)h.kind,
					     .level = (enum inspection)h.level,
					     .asked_kind = (enum inspect_kind)h.asked_kind,
					     .has_input = h.flags & ASK_HAS_INPUT,
					     .strict_commands = h.flags & ASK_STRICT_COMMANDS,
					     .workspace = h.workspace_len ? workspace : NULL,
					     .text = asked + h.asked_len,
					     .len = h.text_len };
	if (h.flags & ASK_HAS_ALLOWED) {
		ret->allowed.n = (uint16_t)h.n_allowed;
		ret->allowed.used = (uint16_t)h.allowed_len;
		memcpy(ret->allowed.text, allowed, h.allowed_len);
		ret->req.allowed_commands = &ret->allowed;
	}
	return take_asked(ret, asked, h.n_asked);
}

void wire_ask_release(struct wire_ask *ask)
{
	free(ask->asked);
	ask->asked = NULL;
}
