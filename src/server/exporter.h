/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process that sends spans to a trace collector: OTLP over HTTP with JSON.
 *
 * The runner is privileged and must not parse a collector's responses; the front may not open sockets.  So the exporter
 * is a child of the runner, forked before the runner has tokens or a handle in memory, with its own user, no
 * capabilities, a system call filter, and access to no files but CA certificates.  It resolves the collector's address
 * once, before it is confined, and connects to no other.
 *
 * Nothing waits for it.  Spans queue in a socket of bounded size; those that do not fit, and those the collector does
 * not accept, are counted and dropped.
 */
#ifndef SERVER_EXPORTER_H
#define SERVER_EXPORTER_H

#include "base/err.h"

#define EXPORTER_RECORD_MAX ((size_t)(96 * KiB)) /* spans of one execution, as JSON */

struct exporter;

struct exporter_counts {
	uint64_t exported, dropped; /* spans */
};

/* url: "http://127.0.0.1:4318", with or without "/v1/traces".  Returns when the process is confined or has failed. */
int exporter_start(const char *url, struct exporter **ret, struct brig_error *err);
/* spans: n JSON objects separated by commas.  Never blocks. */
void exporter_send(struct exporter *e, const char *spans, size_t len, uint32_t n);
void exporter_counts(const struct exporter *e, struct exporter_counts *ret);
/* Gives the exporter a moment to send what is queued.  NULL is allowed. */
void exporter_close(struct exporter *e);

#endif
