/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp_shared/text.h"

#include <string.h>
#include <strings.h>

#include <sodium.h>

#include "base/base64.h"
#include "base/str.h"

#define NOT_UTF8 "\xef\xbf\xbd"

json_t *text_json(const char *s, size_t len)
{
	AUTO_BUF clean = BUF_INIT(SIZE_MAX / 2);

	while (len > 0) {
		size_t good = str_utf8_prefix(s, len);

		buf_add(&clean, s, good);
		if (good < len) {
			buf_adds(&clean, NOT_UTF8);
			good++;
		}
		s += good;
		len -= good;
	}
	return clean.no_memory ? NULL : json_stringn(buf_str(&clean), clean.len);
}

/* The first position from at on where a character begins. */
static size_t character_from(const char *s, size_t len, size_t at)
{
	while (at < len && ((unsigned char)s[at] & 0xc0) == 0x80)
		at++;
	return at;
}

bool text_add_cut(struct buf *out, const char *s, size_t len, size_t max)
{
	size_t head, tail;

	if (len <= max) {
		buf_add(out, s, len);
		return false;
	}
	head = str_utf8_prefix(s, max / 2);
	tail = character_from(s, len, len - max / 2);
	buf_add(out, s, head);
	buf_addf(out, "\n[... %zu bytes left out ...]\n", tail - head);
	buf_add(out, s + tail, len - tail);
	return true;
}

const char *text_member(const json_t *object, const char *name)
{
	const char *s = json_string_value(json_object_get(object, name));

	return s ? s : "";
}

size_t text_base64_bytes(const char *s, size_t len)
{
	size_t padding = 0;

	while (padding < len && s[len - padding - 1] == '=')
		padding++;
	return len / 4 * 3 - (padding < 3 ? padding : 2);
}

bool text_from_base64(const char *s, size_t len, struct buf *out)
{
	AUTO_FREE unsigned char *bytes = malloc(len / 4 * 3 + 3);
	size_t n = 0;

	if (!bytes ||
	    sodium_base642bin(bytes, len / 4 * 3 + 3, s, len, "\r\n", &n, NULL, sodium_base64_VARIANT_ORIGINAL) < 0)
		return false;
	return buf_add(out, bytes, n) == n;
}

/* Media types by the first bytes of a file, as they appear in base64. */
static const struct {
	const char *begin, *type;
} image_types[] = {
	{ "iVBORw0KGgo", "image/png" }, { "/9j/", "image/jpeg" },  { "R0lGODdh", "image/gif" },
	{ "R0lGODlh", "image/gif" },    { "UklGR", "image/webp" },
};

const char *text_image_type(const char *path, const char *base64)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_LEN(image_types); i++)
		if (strncmp(base64, image_types[i].begin, strlen(image_types[i].begin)) == 0)
			return image_types[i].type;
	return len > 4 && strcasecmp(path + len - 4, ".svg") == 0 ? "image/svg+xml" : NULL;
}

void content_add_text(json_t *content, const struct buf *text)
{
	(void)json_array_append_new(
		content, json_pack("{s:s, s:o}", "type", "text", "text", text_json(buf_str(text), text->len)));
}

void content_add_image(json_t *content, const char *base64, const char *type)
{
	(void)json_array_append_new(content,
				    json_pack("{s:s, s:s, s:s}", "type", "image", "data", base64, "mimeType", type));
}

void content_add_picture(json_t *content, const char *data, size_t len, const char *type)
{
	AUTO_FREE char *text = calloc(1, base64_len(len) + 1);

	if (!text)
		return;
	base64_put(text, data, len);
	content_add_image(content, text, type);
}
