/* SPDX-License-Identifier: Apache-2.0 */
#include "server/seal.h"

#include <endian.h>
#include <string.h>

#include "base/str.h"

static const char magic[] = "brig sealed 1\n";
static const char purpose[] = "brig seal 1\n";
#define MAGIC_LEN (sizeof(magic) - 1)

/* ---- writing --------------------------------------------------------------------------------------------- */

static void put_u32(struct buf *out, size_t n)
{
	uint32_t le = htole32((uint32_t)n);

	(void)buf_add(out, &le, sizeof(le));
}

static void put_field(struct buf *out, enum field f, const char *bytes, size_t len)
{
	const char *name = message_field_name(f);
	uint8_t name_len = (uint8_t)strlen(name);
	uint64_t n;

	(void)buf_add(out, &name_len, 1);
	(void)buf_add(out, name, name_len);
	put_u32(out, len);
	if (!message_is_number(f)) {
		(void)buf_add(out, bytes, len);
		return;
	}
	memcpy(&n, bytes, sizeof(n));
	n = htole64(n);
	(void)buf_add(out, &n, sizeof(n));
}

bool seal_write_fields(const struct message *m, struct buf *out)
{
	const char *bytes;
	size_t at = 0, len;
	enum field f;

	while ((bytes = message_walk(m, &at, &f, &len)))
		put_field(out, f, bytes, len);
	return !out->full && !out->no_memory;
}

bool seal_hash(const struct message *m, uint8_t ret[SHA256_LEN])
{
	AUTO_BUF fields = BUF_INIT(2 * MESSAGE_MAX);

	if (!seal_write_fields(m, &fields))
		return false;
	sha256(fields.data, fields.len, ret);
	return true;
}

/* The text that is signed. */
static bool make_text(const struct message *m, uint8_t ret[sizeof(purpose) - 1 + SHA256_LEN])
{
	memcpy(ret, purpose, sizeof(purpose) - 1);
	return seal_hash(m, ret + sizeof(purpose) - 1);
}

bool seal_make(const uint8_t seed[SIGN_SEED_LEN], const struct message *m, uint8_t ret[SIGN_LEN])
{
	uint8_t text[sizeof(purpose) - 1 + SHA256_LEN];

	return make_text(m, text) && sign_make(seed, text, sizeof(text), ret);
}

bool seal_fits(const uint8_t pub[SIGN_PUB_LEN], const struct message *m, const uint8_t sig[SIGN_LEN])
{
	uint8_t text[sizeof(purpose) - 1 + SHA256_LEN];

	return make_text(m, text) && sign_check(pub, text, sizeof(text), sig);
}

bool seal_write(const struct message *m, const uint8_t sig[SIGN_LEN], struct buf *out)
{
	AUTO_BUF fields = BUF_INIT(2 * MESSAGE_MAX);

	if (!seal_write_fields(m, &fields))
		return false;
	(void)buf_adds(out, magic);
	put_u32(out, fields.len);
	(void)buf_add(out, fields.data, fields.len);
	(void)buf_add(out, sig, SIGN_LEN);
	return !out->full && !out->no_memory;
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

/* Appends the field at *at to out and moves *at past it.  NULL, or the reason why it is invalid. */
static const char *read_field(const char *bytes, size_t len, size_t *at, struct buf *out)
{
	char name[64] = "";
	uint8_t name_len = (uint8_t)bytes[*at];
	uint32_t le;
	uint64_t n;
	enum field f;

	if (name_len == 0 || name_len >= sizeof(name) || len - *at < 1 + (size_t)name_len + sizeof(le))
		return "a field without a name";
	memcpy(name, bytes + *at + 1, name_len);
	*at += 1 + name_len;
	if (strlen(name) != name_len || !message_field_named(name, &f))
		return "a field that this version of brig does not know";
	memcpy(&le, bytes + *at, sizeof(le));
	*at += sizeof(le);
	le = le32toh(le);
	if (le > len - *at)
		return "a field that is longer than the rest";
	if (message_is_number(f) && le == sizeof(n)) {
		memcpy(&n, bytes + *at, sizeof(n));
		message_put_number(out, f, le64toh(n));
	} else {
		message_put_bytes(out, f, bytes + *at, le);
	}
	*at += le;
	return NULL;
}

const char *seal_read(const void *bytes, size_t len, struct buf *out, uint8_t sig[SIGN_LEN])
{
	const char *at_bytes = bytes, *why = NULL;
	struct message m;
	size_t at = 0;
	uint32_t le;

	if (len < MAGIC_LEN + sizeof(le) + SIGN_LEN || memcmp(at_bytes, magic, MAGIC_LEN) != 0)
		return "bytes that are not sealed";
	memcpy(&le, at_bytes + MAGIC_LEN, sizeof(le));
	at_bytes += MAGIC_LEN + sizeof(le);
	len -= MAGIC_LEN + sizeof(le) + SIGN_LEN;
	if (le32toh(le) != len)
		return "a length that is not its own";
	while (!why && at < len)
		why = read_field(at_bytes, len, &at, out);
	if (!why && (out->full || out->no_memory))
		why = "more than there is room for";
	if (!why && message_read(out->data, out->len, &m, &why))
		why = NULL;
	memcpy(sig, at_bytes + len, SIGN_LEN);
	return why;
}
