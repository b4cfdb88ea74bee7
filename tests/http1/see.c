/* SPDX-License-Identifier: Apache-2.0 */
/*
 * see.c - what our parser makes of requests, for tests/http1/compare.mjs.
 *
 *	see-http1          reads requests, each with its length before it (four bytes, little endian), and prints a line of JSON for
 *	                   each; bytes are hexadecimal
 *	see-http1 --cases  prints the requests of test_http1_cases.h in the form that it reads
 *	see-http1 --forms  the same with forms of several parts: a line with the Content-Type, then the body
 */
#include <stdio.h>
#include <string.h>

#include "net/multipart.h"
#include "test_http1_cases.h"

#define REQUEST_MAX (256 * 1024)

static const char *const trouble_names[HTTP1_TROUBLE_COUNT] = {
#define HTTP1_TROUBLE(name, status, text) #name,
#include "net/http1.def"
};

/* ---- the other way round: cases ----------------------------------------------------------------- */

static void print_request(const char *head, size_t head_len, const char *rest)
{
	uint32_t len = (uint32_t)(head_len + strlen(rest));
	const unsigned char before[4] = { len & 0xff, len >> 8 & 0xff, len >> 16 & 0xff, len >> 24 };

	(void)fwrite(before, 1, sizeof(before), stdout);
	(void)fwrite(head, 1, head_len, stdout);
	(void)fwrite(rest, 1, strlen(rest), stdout);
}

static void print_cases(void)
{
	/* A body of five bytes or more, whichever way its length is read. */
	static const char body[] = "5\r\nhello\r\n0\r\n\r\n";

	for (size_t i = 0; i < ARRAY_LEN(good_heads); i++)
		print_request(good_heads[i].bytes, good_heads[i].len, body);
	for (size_t i = 0; i < ARRAY_LEN(bad_heads); i++) {
		const struct bad_head *b = &bad_heads[i];

		print_request(b->bytes, b->len, b->rest ? b->rest : b->at_once ? HOST_A LF : body);
	}
	for (size_t i = 0; i < ARRAY_LEN(body_cases); i++) {
		static const char chunked[] = POST_A "Transfer-Encoding: chunked" LF LF;
		static const char length[] = POST_A "Content-Length: 5" LF LF;
		bool is_chunked = body_cases[i].kind == HTTP1_BODY_CHUNKED;

		print_request(is_chunked ? chunked : length, (is_chunked ? sizeof(chunked) : sizeof(length)) - 1,
			      body_cases[i].bytes);
	}
}

/* ---- answers ------------------------------------------------------------------------------------ */

static void print_hex(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		printf("%02x", (unsigned char)bytes[i]);
}

static void print_text(const char *key, const char *bytes, struct http1_text text)
{
	printf(", \"%s\": \"", key);
	print_hex(bytes + text.at, text.len);
	printf("\"");
}

static void print_lines(const char *bytes, const struct http1_head *h)
{
	printf(", \"lines\": [");
	for (size_t i = 0; i < h->n_lines; i++) {
		printf("%s\"", i ? ", " : "");
		print_hex(bytes + h->line[i].name.at, h->line[i].name.len);
		printf("\", \"");
		print_hex(bytes + h->line[i].value.at, h->line[i].value.len);
		printf("\"");
	}
	printf("]");
}

/* What is wrong with it, or how far it came. */
static const char *print_body(const char *bytes, size_t len, const struct http1_head *h)
{
	struct http1_body_reader r;

	http1_body_begin(&r, h);
	printf(", \"body\": \"");
	while (len > 0 && !r.done && !r.bad) {
		size_t at, n, used = http1_body_take(&r, bytes, len, &at, &n);

		print_hex(bytes + at, n);
		bytes += used;
		len -= used;
	}
	printf("\"");
	return r.done ? "ok" : r.bad ? trouble_names[r.trouble] : "more";
}

static void print_answer(const char *bytes, size_t len)
{
	static struct http1_head h;
	const char *outcome = "more";
	size_t seen = 0;
	enum http1_parse p = http1_head_parse(bytes, len, &seen, &h);

	printf("{\"head\": \"%s\"", p == HTTP1_MORE ? "more" : trouble_names[h.trouble]);
	if (p == HTTP1_DONE) {
		print_text("method", bytes, h.method);
		print_text("target", bytes, h.target);
		print_lines(bytes, &h);
		printf(", \"version\": \"%s\", \"keep_alive\": %s", h.version_1_0 ? "1.0" : "1.1",
		       h.keep_alive ? "true" : "false");
		outcome = print_body(bytes + h.used, len - h.used, &h);
	} else if (p == HTTP1_BAD) {
		outcome = trouble_names[h.trouble];
	}
	printf(", \"outcome\": \"%s\"}\n", outcome);
}

/* ---- forms -------------------------------------------------------------------------------------- */

static void print_name(const char *name)
{
	if (!name) {
		printf("null, ");
		return;
	}
	printf("\"");
	print_hex(name, strlen(name));
	printf("\", ");
}

static void print_event(const struct multipart *m, enum multipart_event e, const char *data, size_t len)
{
	if (e == MULTIPART_PART) {
		printf("%s[", m->n_parts > 1 ? ", " : "");
		print_name(m->name);
		print_name(m->file_name);
		print_name(m->type);
		printf("\"");
	} else if (e == MULTIPART_DATA) {
		print_hex(data, len);
	} else if (e == MULTIPART_PART_END) {
		printf("\"]");
	}
}

/* Of sound forms only: those of other programs. */
static void print_form(const char *bytes, size_t len)
{
	const char *line = memchr(bytes, '\n', len);
	const char *body = line ? line + 1 : bytes + len;
	enum multipart_event e = MULTIPART_BAD;
	static struct multipart m;

	len -= (size_t)(body - bytes);
	printf("{\"parts\": [");
	if (line && multipart_begin(&m, bytes, (size_t)(line - bytes)))
		do {
			const char *data;
			size_t used, n;

			e = multipart_take(&m, body, len, &used, &data, &n);
			print_event(&m, e, data, n);
			body += used;
			len -= used;
		} while (e != MULTIPART_MORE && e != MULTIPART_BAD);
	printf("], \"outcome\": \"%s\"}\n", e != MULTIPART_BAD && multipart_end(&m) ? "ok" : m.why);
}

int main(int argc, char **argv)
{
	static char bytes[REQUEST_MAX];
	bool forms = argc > 1 && strcmp(argv[1], "--forms") == 0;
	unsigned char before[4];

	if (argc > 1 && strcmp(argv[1], "--cases") == 0) {
		print_cases();
		return fflush(stdout) == 0 ? 0 : 1;
	}
	while (fread(before, 1, sizeof(before), stdin) == sizeof(before)) {
		size_t len = before[0] | (size_t)before[1] << 8 | (size_t)before[2] << 16 | (size_t)before[3] << 24;

		if (len > sizeof(bytes) || fread(bytes, 1, len, stdin) != len)
			return 1;
		if (forms)
			print_form(bytes, len);
		else
			print_answer(bytes, len);
	}
	return fflush(stdout) == 0 ? 0 : 1;
}
