/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_shared/progress.h"

#include <string.h>

#include "mcp_shared/rpc.h"
#include "mcp_shared/text.h"

void progress_begin(struct progress *p, uint64_t now)
{
	p->fresh = (struct buf)BUF_INIT(2 * PROGRESS_MAX);
	p->began_ns = now;
	p->told_ns = now - PROGRESS_EVERY_NS;
}

/* Only the tail of the unreported output is kept. */
void progress_add(struct progress *p, const char *text, size_t len)
{
	if (len > PROGRESS_MAX) {
		text += len - PROGRESS_MAX;
		len = PROGRESS_MAX;
	}
	if (p->fresh.len + len > PROGRESS_MAX) {
		size_t drop = p->fresh.len + len - PROGRESS_MAX;

		drop = drop < p->fresh.len ? drop : p->fresh.len;
		memmove(p->fresh.data, p->fresh.data + drop, p->fresh.len - drop);
		p->fresh.len -= drop;
	}
	/* do not start within a character */
	while (len > 0 && p->fresh.len == 0 && ((unsigned char)*text & 0xc0) == 0x80) {
		text++;
		len--;
	}
	buf_add(&p->fresh, text, len);
}

bool progress_is_due(const struct progress *p, uint64_t now)
{
	return p->fresh.len > 0 && now - p->told_ns >= PROGRESS_EVERY_NS;
}

json_t *progress_tell(struct progress *p, json_t *token, uint64_t now)
{
	AUTO_BUF note = BUF_INIT(64);
	const struct buf *text = &p->fresh;
	json_t *params;

	if (text->len == 0) {
		buf_addf(&note, "running for %llu s", (unsigned long long)((now - p->began_ns) / NS_PER_SEC));
		text = &note;
	}
	params = json_pack("{s:O, s:I, s:o}", "progressToken", token, "progress", (json_int_t)++p->n_told, "message",
			   text_json(buf_str(text), text->len));
	p->fresh.len = 0;
	p->told_ns = now;
	return rpc_notification("notifications/progress", params);
}

void progress_release(struct progress *p)
{
	buf_release(&p->fresh);
}
