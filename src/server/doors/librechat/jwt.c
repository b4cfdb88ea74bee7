/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jwt.c - JWTs: header, claims and signature, joined by dots, each in URL-safe base64 without padding
 *
 * The signature, which covers the text as received, is verified before any claim is read. The header is not trusted to
 * choose an algorithm: only that of the key is accepted.
 */
#include "server/doors/librechat/jwt.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/str.h"

#define PART_MAX   6000
#define ISSUER     "librechat"
#define AUDIENCE   "codeapi"
#define LASTS_MAX  300 /* seconds, as LibreChat issues them */
#define CLOCKS     60  /* seconds of clock skew to tolerate */
#define DER_PREFIX "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"
#define DER_LEN    (sizeof(DER_PREFIX) - 1)

/* Returns the number of bytes, at most size; -1: invalid text. */
static ssize_t decode(const char *text, size_t len, void *dst, size_t size)
{
	char plain[PART_MAX + 4];
	size_t n = len;
	uint8_t bytes[sizeof(plain) / 4 * 3];
	ssize_t got;

	if (len == 0 || len > PART_MAX || len % 4 == 1 || memchr(text, '=', len))
		return -1;
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '+' || text[i] == '/')
			return -1;
		plain[i] = (char)(text[i] == '-' ? '+' : text[i] == '_' ? '/' : text[i]);
	}
	while (n % 4)
		plain[n++] = '=';
	got = base64_get(bytes, plain, n);
	if (got < 0 || (size_t)got > size)
		return -1;
	memcpy(dst, bytes, (size_t)got);
	return got;
}

static json_t *decode_json(const char *text, size_t len)
{
	char bytes[PART_MAX];
	ssize_t n = decode(text, len, bytes, sizeof(bytes));

	return n < 0 ? NULL : json_loadb(bytes, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
}

static bool is_text(const json_t *value, const char *text)
{
	const char *its = json_string_value(value);

	return its && str_eq(its, text);
}

static bool is_for_us(const json_t *audience)
{
	const json_t *one;
	size_t i;

	json_array_foreach(audience, i, one) if (is_text(one, AUDIENCE)) return true;
	return is_text(audience, AUDIENCE);
}

static const char *claims_fault(const json_t *claims, int64_t now)
{
	const json_t *end = json_object_get(claims, "exp"), *begin = json_object_get(claims, "nbf");
	const json_t *made = json_object_get(claims, "iat");

	if (!is_text(json_object_get(claims, "iss"), ISSUER) || !is_for_us(json_object_get(claims, "aud")))
		return "it is not LibreChat's, or not for a code interpreter";
	if (!json_string_length(json_object_get(claims, "sub")))
		return "it names no user";
	if (!json_is_integer(end) || json_integer_value(end) <= now - CLOCKS)
		return "its time is over";
	if (json_integer_value(end) > now + LASTS_MAX + CLOCKS)
		return "it lasts longer than five minutes";
	if ((begin && (!json_is_integer(begin) || json_integer_value(begin) > now + CLOCKS)) ||
	    (made && (!json_is_integer(made) || json_integer_value(made) > now + CLOCKS)))
		return "its time has not begun";
	return NULL;
}

static const char *read_claims(const char *text, size_t len, int64_t now)
{
	json_t *claims = decode_json(text, len);
	const char *fault = json_is_object(claims) ? claims_fault(claims, now) : "it says nothing that can be read";

	json_decref(claims);
	return fault;
}

static bool is_eddsa(const char *text, size_t len)
{
	json_t *head = decode_json(text, len);
	bool is = is_text(json_object_get(head, "alg"), "EdDSA") && !json_object_get(head, "crit");

	json_decref(head);
	return is;
}

const char *jwt_fault(const char *token, size_t len, const char *key_hex, int64_t now)
{
	const char *first = memchr(token, '.', len);
	const char *second = first ? memchr(first + 1, '.', len - (size_t)(first + 1 - token)) : NULL;
	uint8_t key[SIGN_PUB_LEN], signature[SIGN_LEN];
	size_t signed_len, rest;

	if (!second)
		return "it is no JWT";
	signed_len = (size_t)(second - token);
	rest = len - signed_len - 1;
	if (!is_eddsa(token, (size_t)(first - token)))
		return "it is not signed with EdDSA: give LibreChat a key of Ed25519";
	if (decode(second + 1, rest, signature, sizeof(signature)) != SIGN_LEN || !hex_get(key_hex, key, sizeof(key)) ||
	    !sign_check(key, token, signed_len, signature))
		return "its signature is not that of the key";
	return read_claims(first + 1, (size_t)(second - first - 1), now);
}

/* ---- keys ------------------------------------------------------------------------------------------------------ */

static bool read_pem(const char *text, uint8_t ret[SIGN_PUB_LEN])
{
	static const char begin[] = "-----BEGIN PUBLIC KEY-----";
	const char *at = strstr(text, begin);
	char plain[128];
	uint8_t der[sizeof(plain)];
	size_t n = 0;

	for (at = at ? at + strlen(begin) : ""; *at && *at != '-' && n < sizeof(plain); at++)
		if (*at != '\n' && *at != '\r')
			plain[n++] = *at;
	if (n != base64_len(DER_LEN + SIGN_PUB_LEN) || base64_get(der, plain, n) != (ssize_t)(DER_LEN + SIGN_PUB_LEN) ||
	    memcmp(der, DER_PREFIX, DER_LEN) != 0)
		return false;
	memcpy(ret, der + DER_LEN, SIGN_PUB_LEN);
	return true;
}

static bool read_jwk(const char *text, uint8_t ret[SIGN_PUB_LEN])
{
	json_t *doc = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *x = json_string_value(json_object_get(doc, "x"));
	bool is_good = is_text(json_object_get(doc, "kty"), "OKP") && is_text(json_object_get(doc, "crv"), "Ed25519") &&
		       x && decode(x, strlen(x), ret, SIGN_PUB_LEN) == SIGN_PUB_LEN;

	json_decref(doc);
	return is_good;
}

int jwt_read_key(const char *text, char ret_hex[JWT_KEY_HEX + 1], struct brig_error *err)
{
	uint8_t key[SIGN_PUB_LEN];

	if (!read_pem(text, key) && !read_jwk(text, key))
		return err_set(
			err, BRIG_E_USAGE, 0,
			"there is no public key of Ed25519, as PEM or JWK: 'openssl pkey -in KEY -pubout' writes "
			"that of a private one");
	(void)hex_put(ret_hex, key, sizeof(key));
	return 0;
}
