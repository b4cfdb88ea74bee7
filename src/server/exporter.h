/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that sends spans to a collector of traces: OpenTelemetry's protocol over HTTP, with JSON (OTLP/HTTP).
 *
 * The runner has privileges and reads no answer of strangers; the front may open no socket.  So this is a child of the
 * runner's, forked before there is a token or a handle in its memory: a user of its own, no capability, no file but what TLS
 * needs to know certificates by, a system call filter.  The collector's address is looked up once, before that, and no other
 * is connected to.
 *
 * Nobody waits for it.  What the runner sends lies in a socket of bounded size; what does not fit there, and what the
 * collector does not take, is counted and gone.
 */
#ifndef SERVER_EXPORTER_H
#define SERVER_EXPORTER_H

#include "base/err.h"

#define EXPORTER_RECORD_MAX ((size_t)(96 * KiB)) /* spans of one execution */

struct exporter;

struct exporter_counts {
	uint64_t exported, dropped; /* spans */
};

/* url: "http://127.0.0.1:4318", with or without "/v1/traces".  Returns when the process is confined, or says why it is not. */
int exporter_start(const char *url, struct exporter **ret, struct brig_error *err);
/* n spans: objects of JSON with commas between them.  Never waits. */
void exporter_send(struct exporter *e, const char *spans, size_t len, uint32_t n);
void exporter_counts(const struct exporter *e, struct exporter_counts *ret);
/* What was sent has a moment to go out.  NULL is fine. */
void exporter_close(struct exporter *e);

#endif
