/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client of `brig mcp` sends, and what children answer: lines of input, and behind a byte 1 the document of a child.
 * No child is started; each call makes its command line, and its answer from that document.  Whatever comes in, what goes
 * out is whole messages: one answer for each request, at most.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "mcp/server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	size_t lines, answers;
};

static void on_send(void *user, const json_t *message, const json_t *about)
{
	const json_t *error = json_object_get(message, "error"), *id = json_object_get(message, "id");
	struct seen *seen = user;
	char *text = json_dumps(message, JSON_COMPACT);

	if (!text || strchr(text, '\n') || !str_is_utf8(text, strlen(text)))
		abort();
	free(text);
	if (json_object_get(message, "method"))
		return;
	if (!id || (about && !json_equal(id, about)) || !error == !json_object_get(message, "result"))
		abort();
	if (error &&
	    (!json_is_integer(json_object_get(error, "code")) || !json_is_string(json_object_get(error, "message"))))
		abort();
	seen->answers++;
}

struct fed {
	struct server server;
	struct seen seen;
};

static void on_line(void *user, const char *line, size_t len)
{
	struct fed *fed = user;

	fed->seen.lines++;
	server_receive(&fed->server, line, len);
}

/* What calls.c does around a child, without one. */
static void play(struct call *call, json_t *doc, const char *text, size_t len)
{
	struct outcome o = {
		.doc = json_deep_copy(doc), .text = text, .len = len, .complaint = "why", .status = (int)(len % 2)
	};

	for (call->step = 0; call->step < 3; call->step++) {
		struct answer a = { .content = json_array() };
		AUTO_INVOCATION plan = INVOCATION_INIT;
		enum job_next next = JOB_DONE;

		if (call->job->prepare(call, &plan, &a.why) == 0 && (o.doc || !plan.events)) {
			next = call->job->finish(call, &o, &a);
			if (next == JOB_DONE && !a.code && !a.why.code &&
			    (json_array_size(a.content) == 0 || (!call->is_resource && !a.structured)))
				abort(); /* an answer without anything in it */
		}
		json_decref(a.content);
		json_decref(a.structured);
		if (next == JOB_DONE)
			break;
	}
	json_decref(o.doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct mcp_options options = { .trust = "unknown", .history = true };
	const char *text = (const char *)data, *split = size ? memchr(text, 1, size) : NULL;
	size_t len = split ? (size_t)(split - text) : size;
	struct rpc_lines lines = RPC_LINES_INIT;
	struct brig_error err = BRIG_ERROR_INIT;
	struct fed fed = { .seen = { 0, 0 } };
	json_t *doc = split ? json_loadb(split + 1, size - len - 1, JSON_ALLOW_NUL, NULL) : NULL;
	size_t rest_len = split ? size - len - 1 : 0;
	char *rest =
		calloc(1, rest_len + 1); /* not strndup(), which strict checks of strings take for a reader of more */

	if (rest && split)
		memcpy(rest, split + 1, rest_len);
	if (!rest || server_init(&fed.server, &options, on_send, &fed.seen, &err) < 0)
		abort();
	(void)str_copy(fed.server.root, sizeof(fed.server.root), size % 4 ? "/project" : "");
	rpc_lines_feed(&lines, text, len, on_line, &fed);
	rpc_lines_feed(&lines, "\n", 1, on_line, &fed);
	if (fed.seen.answers + fed.server.n_calls > fed.seen.lines || fed.server.failed)
		abort();
	for (struct call *call = fed.server.calls; call; call = call->next)
		play(call, doc, rest, strlen(rest));
	rpc_lines_release(&lines);
	server_release(&fed.server);
	json_decref(doc);
	free(rest);
	return 0;
}
