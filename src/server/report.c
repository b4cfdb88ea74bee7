/* SPDX-License-Identifier: Apache-2.0 */
#include "server/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* PIPE_BUF: a pipe takes as much atomically, so lines of several processes do not mix */
#define LINE_MAX_BYTES 4096

static struct {
	const char *process;
	bool is_json;
} speaker; /* set once, before the first line */

void report_begin(const char *process, bool is_json)
{
	speaker.process = process;
	speaker.is_json = is_json;
}

void report_add_time(struct buf *out)
{
	uint64_t wall = clock_wall_ns();
	time_t seconds = (time_t)(wall / NS_PER_SEC);
	struct tm tm = { 0 };

	(void)gmtime_r(&seconds, &tm);
	(void)buf_addf(out, "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
		       tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned)(wall % NS_PER_SEC / NS_PER_MS));
}

void report_add_json(struct buf *out, const char *text)
{
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			(void)buf_addf(out, "\\%c", byte);
		else if (byte < 0x20 || byte == 0x7f)
			(void)buf_addf(out, "\\u%04x", byte);
		else
			(void)buf_add(out, text, 1);
	}
}

void report_add_line(struct buf *out, const char *text)
{
	if (!speaker.is_json) {
		(void)buf_addf(out, "brig: %s%s%s\n", speaker.process ? speaker.process : "",
			       speaker.process ? ": " : "", text);
		return;
	}
	(void)buf_adds(out, "{\"time\":\"");
	report_add_time(out);
	(void)buf_addf(out, "\",\"process\":\"%s\",\"message\":\"", speaker.process ? speaker.process : "master");
	report_add_json(out, text);
	(void)buf_adds(out, "\"}\n");
}

void report(const char *fmt, ...)
{
	AUTO_BUF line = BUF_INIT(LINE_MAX_BYTES);
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	report_add_line(&line, text);
	(void)!write(STDERR_FILENO, buf_str(&line), line.len); /* there is nowhere to report a failure */
}
