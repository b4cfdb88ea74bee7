/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents that must not be removed while they are referenced.
 *
 * A pin is a separate entry for a content that another entry has.  So whatever happens to that other entry (it expires,
 * is rebuilt with other bytes, or is evicted), the pinned content is found under the pin, and counts once.  Both steps
 * are taken under the writer's lock: what is pinned exists, and eviction sees the pin.
 *
 * Pinned contents cannot be evicted, so together they may take three quarters of the ceiling: what is left is as much
 * as one content may be.
 */
#include <fcntl.h>
#include <string.h>

#include "store/internal.h"

/* The entry of a key, without a look at its content.  NULL: there is none. */
static const struct store_info *find_key(const struct store_list *list, const struct store_key *key)
{
	for (size_t i = 0; i < list->n; i++)
		if (memcmp(list->row[i].key.hash, key->hash, STORE_HASH_LEN) == 0)
			return &list->row[i];
	return NULL;
}

static bool is_pinned_before(const struct store_list *list, size_t end, const unsigned char content[STORE_HASH_LEN])
{
	for (size_t i = 0; i < end; i++)
		if (list->row[i].pinned && memcmp(list->row[i].content, content, STORE_HASH_LEN) == 0)
			return true;
	return false;
}

/* Of contents that have a pin, each once. */
static uint64_t pinned_bytes(const struct store_list *list)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < list->n; i++)
		if (list->row[i].pinned && !is_pinned_before(list, i, list->row[i].content))
			bytes += list->row[i].size;
	return bytes;
}

static bool content_is_there(const struct store *s, const unsigned char content[STORE_HASH_LEN])
{
	char name[STORE_HEX_LEN + 1];

	store_hex(content, name);
	return faccessat(s->content.fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int pin_within_lock(struct store *s, const struct store_key *from, const struct store_key *pin,
			   struct brig_error *err)
{
	struct store_list list = { .row = NULL };
	struct store_entry e = { .key = *pin, .pinned = true };
	const struct store_info *entry;
	int rc = store_list(s, &list, err);

	if (rc < 0)
		return rc;
	entry = find_key(&list, from);
	if (!entry || !content_is_there(s, entry->content)) {
		rc = STORE_PIN_ABSENT;
	} else if (!is_pinned_before(&list, list.n, entry->content) &&
		   pinned_bytes(&list) + entry->size > s->limits.bytes / 4 * 3) {
		rc = STORE_PIN_FULL;
	} else {
		e.created_ns = entry->created_ns;
		e.size = entry->size;
		memcpy(e.content, entry->content, sizeof(e.content));
		rc = store_write_record(s, &e, err); /* STORE_PINNED, or negative */
	}
	store_list_release(&list);
	return rc;
}

int store_pin(struct store *s, const struct store_key *from, const struct store_key *pin, struct brig_error *err)
{
	int rc = store_writer_lock(s, err);

	if (rc < 0)
		return rc;
	rc = pin_within_lock(s, from, pin, err);
	store_writer_unlock(s);
	return rc;
}

int store_unpin(struct store *s, const struct store_key *pin, bool *ret_gone, struct brig_error *err)
{
	struct store_list list = { .row = NULL };
	struct store_care care = { .entries = 0 };
	const struct store_info *entry;
	char name[STORE_HEX_LEN + 1];
	int rc = store_writer_lock(s, err);

	*ret_gone = true;
	if (rc < 0)
		return rc;
	rc = store_list(s, &list, err);
	entry = rc == 0 ? find_key(&list, pin) : NULL;
	if (entry && entry->pinned) {
		store_hex(pin->hash, name);
		store_remove(s->index.fd, name);
		rc = store_make_room(s, 0, /* all= */ false, &care, err); /* a content that no entry has goes */
		*ret_gone = !content_is_there(s, entry->content);
	}
	store_list_release(&list);
	store_writer_unlock(s);
	return rc;
}
