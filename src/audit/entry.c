/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entry.c - one entry is one line:
 *
 *	{"seq":7,"cp":1,"event":"run","time":"2026-11-16T08:30:05.250Z", ... ,"prev":"<64>","hash":"<64>","mac":"<32>"}
 *
 * seq counts from 1 across all files.  hash is SHA-256 over every byte before `,"hash"`, which includes prev, the hash
 * of the entry before: the chain.  mac is the first half of HMAC-SHA-256 over the hash with the log's key.
 *
 * The form is fixed where a reader relies on it: the beginning, and the end, which has always the same length.  Whatever
 * comes from outside is quoted: a quotation mark inside a string always has a backslash before it, so that the bytes
 * `"verdict":"ok"` can only be that member, and no string can end the line or add a member.
 */
#include "audit/internal.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/when.h"

const char *const audit_event_name[] = {
#define EVENT(name, meaning) #name,
#include "audit/events.def"
};
static_assert(ARRAY_LEN(audit_event_name) == EVENT_COUNT, "audit_event_name[] misses an event");

#define FINDINGS_SHOWN 16

/* ---- writing ----------------------------------------------------------------------------------- */

void line_add(struct line *l, const char *data, size_t len)
{
	if (len > l->size - l->len) {
		l->full = true;
		return;
	}
	memcpy(l->text + l->len, data, len);
	l->len += len;
}

void line_adds(struct line *l, const char *text)
{
	line_add(l, text, strlen(text));
}

static void add_quoted(struct line *l, const char *text)
{
	size_t len = strlen(text), at = 0;

	line_adds(l, "\"");
	while (at < len) {
		size_t good = str_utf8_prefix(text + at, len - at);

		for (size_t end = at + good; at < end; at++) {
			unsigned char c = (unsigned char)text[at];
			char code[8];

			if (c == '"' || c == '\\')
				line_add(l, (char[]){ '\\', (char)c }, 2);
			else if (c < 0x20 || c == 0x7f)
				line_add(l, code, (size_t)snprintf(code, sizeof(code), "\\u%04x", c));
			else
				line_add(l, text + at, 1);
		}
		if (at < len) {
			line_adds(l, "\\ufffd");
			at++;
		}
	}
	line_adds(l, "\"");
}

static void add_name(struct line *l, const char *name)
{
	line_adds(l, l->len > 0 && l->text[l->len - 1] == '{' ? "\"" : ",\"");
	line_adds(l, name);
	line_adds(l, "\":");
}

static void add_number(struct line *l, uint64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + value % 10);
		value /= 10;
	} while (value > 0);
	line_add(l, digits + at, sizeof(digits) - at);
}

void line_text(struct line *l, const char *name, const char *value)
{
	add_name(l, name);
	add_quoted(l, value);
}

void line_number(struct line *l, const char *name, uint64_t value)
{
	add_name(l, name);
	add_number(l, value);
}

void line_hex(struct line *l, const char *name, const uint8_t *data, size_t len)
{
	char hex[2 * SIGN_LEN + 1];

	assert(len <= SIGN_LEN);
	add_name(l, name);
	line_adds(l, "\"");
	line_add(l, hex_put(hex, data, len), 2 * len);
	line_adds(l, "\"");
}

/* ---- the kinds of fields of events.def ----------------------------------------------------------- */

#define put_text   line_text
#define put_number line_number

static void put_hash(struct line *l, const char *name, const uint8_t hash[SHA256_LEN])
{
	line_hex(l, name, hash, SHA256_LEN);
}

static void put_exit(struct line *l, const char *name, int code)
{
	add_name(l, name);
	if (code < 0)
		line_adds(l, "null");
	else
		add_number(l, (uint64_t)code);
}

static void put_findings(struct line *l, const char *name, const struct findings *f)
{
	add_name(l, name);
	line_adds(l, "[");
	for (size_t i = 0; i < f->n && i < FINDINGS_SHOWN; i++) {
		line_adds(l, i ? ",{" : "{");
		line_text(l, "rule", f->row[i].rule);
		line_text(l, "severity", severity_name[f->row[i].severity]);
		line_number(l, "line", f->row[i].line);
		line_adds(l, "}");
	}
	line_adds(l, "]");
}

static void put_limits(struct line *l, const char *name, const struct result *res)
{
	const struct limits *limits = &res->limits;

	add_name(l, name);
	if (!res->has_limits) {
		line_adds(l, "null");
		return;
	}
	line_adds(l, "{");
	line_number(l, "cpu_percent", limits->cpu_percent);
	line_number(l, "cpu_time_ms", limits->cpu_time_ms);
	line_number(l, "wall_ms", limits->wall_ms);
	line_number(l, "memory_bytes", limits->memory_bytes);
	line_number(l, "pids", limits->pids);
	line_number(l, "disk_bytes", limits->disk_bytes);
	line_number(l, "output_bytes", limits->output_bytes);
	line_adds(l, "}");
}

static void put_degraded(struct line *l, const char *name, protection_set set)
{
	bool first = true;

	add_name(l, name);
	line_adds(l, "[");
	for (size_t p = 0; p < PROT_COUNT; p++) {
		if (!(set & PROT_BIT(p)))
			continue;
		line_adds(l, first ? "" : ",");
		add_quoted(l, protection_info[p].name);
		first = false;
	}
	line_adds(l, "]");
}

static void put_broken(struct line *l, const char *name, const struct evidence *e)
{
	bool first = true;

	add_name(l, name);
	line_adds(l, "[");
	for (size_t i = 0; i < e->n; i++) {
		if (e->row[i].kept)
			continue;
		line_adds(l, first ? "" : ",");
		add_quoted(l, e->row[i].check);
		first = false;
	}
	line_adds(l, "]");
}

static void put_usage(struct line *l, const char *name, const struct result *res)
{
	add_name(l, name);
	line_adds(l, "{");
	line_number(l, "wall_ms", res->usage.wall_ms);
	line_number(l, "cpu_ms", res->usage.cpu_ms);
	line_number(l, "memory_peak_bytes", res->usage.memory_peak_bytes);
	line_number(l, "pids_peak", res->usage.pids_peak);
	line_adds(l, "}");
}

static void put_stream(struct line *l, const char *name, const struct record_stream *s)
{
	add_name(l, name);
	line_adds(l, "{");
	line_number(l, "bytes", s->len);
	if (s->hashed && s->ended && s->len > 0)
		line_hex(l, "sha256", s->sha256, SHA256_LEN);
	line_adds(l, "}");
}

void line_record(struct line *l, const struct record *rec)
{
#define FIELD(name, how, value, meaning) put_##how(l, #name, value);
#include "audit/events.def"
}

/* ---- the frame of a line --------------------------------------------------------------------------- */

#define TAIL_PREV ",\"prev\":\""
#define TAIL_HASH "\",\"hash\":\""
#define TAIL_MAC  "\",\"mac\":\""
#define TAIL_END  "\"}"
#define LEN(text) (sizeof(text) - 1)
/* Where the parts of the end stand, counted from its beginning. */
#define AT_PREV  LEN(TAIL_PREV)
#define AT_HASH  (AT_PREV + SHA256_HEX + LEN(TAIL_HASH))
#define AT_MAC   (AT_HASH + SHA256_HEX + LEN(TAIL_MAC))
#define TAIL_LEN (AT_MAC + 2 * AUDIT_MAC_LEN + LEN(TAIL_END))

void line_begin(struct line *l, const struct head *h, enum audit_event event, uint64_t wall_ns)
{
	char time[WHEN_TEXT_MAX];

	l->len = 0;
	l->full = false;
	line_adds(l, "{");
	line_number(l, "seq", h->seq + 1);
	line_number(l, "cp", event == EVENT_checkpoint ? h->cp + 1 : h->cp);
	line_text(l, "event", audit_event_name[event]);
	line_text(l, "time", when_utc(time, sizeof(time), wall_ns));
}

static void make_mac(const struct log_key *key, const uint8_t hash[SHA256_LEN], uint8_t mac[AUDIT_MAC_LEN])
{
	uint8_t whole[SHA256_LEN];

	hmac256(&key->mac, hash, SHA256_LEN, whole);
	memcpy(mac, whole, AUDIT_MAC_LEN);
}

void line_end(struct line *l, const struct log_key *key, const uint8_t prev[SHA256_LEN], uint8_t hash[SHA256_LEN])
{
	uint8_t mac[AUDIT_MAC_LEN];

	line_hex(l, "prev", prev, SHA256_LEN);
	sha256(l->text, l->len, hash);
	make_mac(key, hash, mac);
	line_hex(l, "hash", hash, SHA256_LEN);
	line_hex(l, "mac", mac, sizeof(mac));
	line_adds(l, "}\n");
}

/* ---- reading ------------------------------------------------------------------------------------------ */

struct scan {
	const char *at, *end;
};

static bool scan_word(struct scan *s, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0)
		return false;
	s->at += len;
	return true;
}

static bool scan_number(struct scan *s, uint64_t *ret)
{
	const char *start = s->at;
	uint64_t v = 0;

	for (; s->at < s->end && *s->at >= '0' && *s->at <= '9'; s->at++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s->at - '0'), &v))
			return false;
	*ret = v;
	return s->at > start;
}

static bool scan_event(struct scan *s, enum audit_event *ret)
{
	const char *quote = memchr(s->at, '"', (size_t)(s->end - s->at));
	size_t len;

	if (!quote)
		return false;
	len = (size_t)(quote - s->at);
	*ret = EVENT_COUNT;
	for (enum audit_event e = 0; e < EVENT_COUNT; e++)
		if (strlen(audit_event_name[e]) == len && memcmp(audit_event_name[e], s->at, len) == 0)
			*ret = e;
	s->at = quote;
	return true;
}

static bool read_tail(const char *tail, struct entry *ret)
{
	return memcmp(tail, TAIL_PREV, LEN(TAIL_PREV)) == 0 && hex_get(tail + AT_PREV, ret->prev, SHA256_LEN) &&
	       memcmp(tail + AT_PREV + SHA256_HEX, TAIL_HASH, LEN(TAIL_HASH)) == 0 &&
	       hex_get(tail + AT_HASH, ret->hash, SHA256_LEN) &&
	       memcmp(tail + AT_HASH + SHA256_HEX, TAIL_MAC, LEN(TAIL_MAC)) == 0 &&
	       hex_get(tail + AT_MAC, ret->mac, AUDIT_MAC_LEN) &&
	       memcmp(tail + TAIL_LEN - LEN(TAIL_END), TAIL_END, LEN(TAIL_END)) == 0;
}

bool entry_read(const char *text, size_t len, struct entry *ret)
{
	struct scan s = { .at = text, .end = text + len };

	*ret = (struct entry){ .text = text, .len = len };
	if (!scan_word(&s, "{\"seq\":") || !scan_number(&s, &ret->seq) || !scan_word(&s, ",\"cp\":") ||
	    !scan_number(&s, &ret->cp) || !scan_word(&s, ",\"event\":\"") || !scan_event(&s, &ret->event) ||
	    !scan_word(&s, "\",\"time\":\""))
		return false;
	ret->time = s.at;
	if ((size_t)(s.end - s.at) < ENTRY_TIME_LEN + 1 + TAIL_LEN || s.at[ENTRY_TIME_LEN] != '"')
		return false;
	return read_tail(s.end - TAIL_LEN, ret);
}

bool entry_is_true(const struct entry *e, const struct log_key *key)
{
	uint8_t hash[SHA256_LEN], mac[AUDIT_MAC_LEN];

	/* The tail's quotation mark before ,"hash" belongs to prev. */
	sha256(e->text, e->len - TAIL_LEN + AT_PREV + SHA256_HEX + 1, hash);
	if (memcmp(hash, e->hash, sizeof(hash)) != 0)
		return false;
	make_mac(key, hash, mac);
	return crypto_same(mac, e->mac, sizeof(mac));
}

const char *entry_body(const struct entry *e, size_t *ret_len)
{
	const char *body = e->time + ENTRY_TIME_LEN + 1;

	*ret_len = (size_t)(e->text + e->len - TAIL_LEN - body);
	return body;
}

bool entry_member(const struct entry *e, const char *name, char *dst, size_t size)
{
	char quoted[64];
	int n = snprintf(quoted, sizeof(quoted), "\"%s\":", name);
	const char *at = memmem(e->text, e->len, quoted, (size_t)n), *end = e->text + e->len;
	size_t len = 0;
	bool text;

	if (!at)
		return false;
	at += n;
	text = at < end && *at == '"';
	at += text;
	while (at + len < end && (text ? at[len] != '"' && at[len] != '\\' : at[len] >= '0' && at[len] <= '9'))
		len++;
	if (at + len == end || len >= size || (text && at[len] != '"'))
		return false;
	memcpy(dst, at, len);
	dst[len] = '\0';
	return true;
}

size_t checkpoint_text(char dst[CHECKPOINT_TEXT_MAX], const char *log_id, uint64_t seq, uint64_t cp,
		       const uint8_t prev[SHA256_LEN])
{
	char hex[SHA256_HEX + 1];

	return (size_t)snprintf(dst, CHECKPOINT_TEXT_MAX,
				"brig audit checkpoint\nlog %s\nentry %llu\ncheckpoint %llu\nprev %s\n", log_id,
				(unsigned long long)seq, (unsigned long long)cp, hex_put(hex, prev, SHA256_LEN));
}

/* ---- names of files --------------------------------------------------------------------------------- */

void log_name(char dst[LOG_NAME_MAX], uint32_t number)
{
	(void)snprintf(dst, LOG_NAME_MAX, "%06u.jsonl", number);
}

bool log_number(const char *name, uint32_t *ret)
{
	char digits[16], again[LOG_NAME_MAX];
	size_t len = strspn(name, "0123456789");
	uint64_t v;

	if (len == 0 || len >= sizeof(digits))
		return false;
	memcpy(digits, name, len);
	digits[len] = '\0';
	if (!str_to_u64(digits, &v) || v == 0 || v > UINT32_MAX)
		return false;
	*ret = (uint32_t)v;
	log_name(again, *ret);
	return str_eq(name, again); /* one spelling only */
}
