/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two messages of a claim.  Fixed size, no pointers, every byte checked: both ends belong to the same user, but one
 * may be another version of brig, or an unrelated program that found the socket.
 *
 *	claim  magic 8, version 4, zero 4, key 32, run id 16
 *	reply  magic 8, version 4, answer 4, container id 64 (zeros if there is none)
 */
#include <assert.h>
#include <string.h>

#include "backend/docker/answer.h"
#include "backend/docker/pool.h"

#define CLAIM_MAGIC "brigask1"
#define REPLY_MAGIC "brigans1"
#define VERSION     1
enum { AT_VERSION = 8, AT_WORD = 12, AT_KEY = 16, AT_RUN = 48, AT_CONTAINER = 16 };
static_assert(AT_RUN + RUN_ID_LEN == POOL_CLAIM_BYTES, "a claim has another size");
static_assert(AT_CONTAINER + ENGINE_ID_LEN == POOL_REPLY_BYTES, "a reply has another size");

static void put_u32(char *dst, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		dst[i] = (char)(v >> (8 * i) & 0xff);
}

static uint32_t get_u32(const char *src)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++)
		v |= (uint32_t)(unsigned char)src[i] << (8 * i);
	return v;
}

static void put_head(char *dst, const char *magic, uint32_t word)
{
	memcpy(dst, magic, 8);
	put_u32(dst + AT_VERSION, VERSION);
	put_u32(dst + AT_WORD, word);
}

static bool get_head(const char *src, const char *magic, uint32_t *word)
{
	*word = get_u32(src + AT_WORD);
	return memcmp(src, magic, 8) == 0 && get_u32(src + AT_VERSION) == VERSION;
}

static bool is_run_id(const char *s)
{
	for (size_t i = 0; i < RUN_ID_LEN; i++)
		if (!(s[i] >= 'a' && s[i] <= 'z') && !(s[i] >= '2' && s[i] <= '7'))
			return false;
	return true;
}

static bool is_zero(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] != 0)
			return false;
	return true;
}

void pool_claim_encode(const struct pool_claim *c, char dst[POOL_CLAIM_BYTES])
{
	put_head(dst, CLAIM_MAGIC, 0);
	memcpy(dst + AT_KEY, c->key, sizeof(c->key));
	memcpy(dst + AT_RUN, c->run, RUN_ID_LEN);
}

bool pool_claim_decode(const char *src, size_t len, struct pool_claim *ret)
{
	uint32_t zero;

	if (len != POOL_CLAIM_BYTES || !get_head(src, CLAIM_MAGIC, &zero) || zero != 0 || !is_run_id(src + AT_RUN))
		return false;
	memcpy(ret->key, src + AT_KEY, sizeof(ret->key));
	memcpy(ret->run, src + AT_RUN, RUN_ID_LEN);
	ret->run[RUN_ID_LEN] = '\0';
	return true;
}

void pool_reply_encode(const struct pool_reply *r, char dst[POOL_REPLY_BYTES])
{
	memset(dst, 0, POOL_REPLY_BYTES);
	put_head(dst, REPLY_MAGIC, r->answer);
	if (r->answer == POOL_HERE)
		memcpy(dst + AT_CONTAINER, r->container, ENGINE_ID_LEN);
}

bool pool_reply_decode(const char *src, size_t len, struct pool_reply *ret)
{
	uint32_t answer;

	*ret = (struct pool_reply){ .answer = POOL_UNKNOWN };
	if (len != POOL_REPLY_BYTES || !get_head(src, REPLY_MAGIC, &answer) || answer == 0 || answer >= POOL_ANSWER_END)
		return false;
	ret->answer = (enum pool_answer)answer;
	if (answer != POOL_HERE)
		return is_zero(src + AT_CONTAINER, ENGINE_ID_LEN);
	memcpy(ret->container, src + AT_CONTAINER, ENGINE_ID_LEN);
	ret->container[ENGINE_ID_LEN] = '\0';
	return answer_is_id(ret->container);
}

bool pool_key(const struct cell *c, uint8_t ret[SHA256_LEN])
{
	const struct engine_about *about = engine_about(c->host->engine);
	json_t *body = json_copy(c->asked);
	AUTO_FREE char *text = NULL;
	struct sha256 h;

	(void)json_object_del(body, "Labels");
	text = body ? json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(body);
	if (!text)
		return false;
	sha256_begin(&h);
	sha256_add(&h, about->address, strlen(about->address) + 1);
	sha256_add(&h, about->version, strlen(about->version) + 1);
	sha256_add(&h, &about->api, sizeof(about->api));
	sha256_add(&h, text, strlen(text));
	sha256_end(&h, ret);
	return true;
}
