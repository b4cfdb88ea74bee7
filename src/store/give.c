/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contents that go to another store, and come from one.
 *
 * A content travels packed: bytes as they are, a tree as the stream of files/pack.h.  Who takes it was told its hash by somebody
 * whom he has reason to believe; what was unpacked is kept under that very hash or not at all, after the same walk, the same
 * copy and the same rules as what an install cell leaves (tree.c).  So what is hostile in the stream can at most be refused.
 *
 * Under which key it is kept is the taker's decision.  One content may have several keys: that of this host alone, by which runs
 * find it quickly, and one that means the same on every host (executor/exchange.h).
 */
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "files/pack.h"
#include "store/internal.h"

#define PIECE (64 * KiB)

int store_also(struct store *s, const struct store_key *from, const struct store_key *to, uint64_t created_ns,
	       struct brig_error *err)
{
	struct store_entry e = { .key = *to };
	int rc = store_writer_lock(s, err);

	if (rc < 0)
		return rc;
	rc = store_read_record(s, from, &e);
	if (rc == 0) {
		e.key = *to;
		e.pinned = false;
		e.hits = 0;
		if (created_ns)
			e.created_ns = min_u64(created_ns, clock_wall_ns());
		rc = store_write_record(s, &e, err);
		rc = rc < 0 ? rc : STORE_HIT;
	} else {
		rc = STORE_MISS;
	}
	store_writer_unlock(s);
	return rc;
}

/* ---- out ---------------------------------------------------------------------------------------- */

static int pack_bytes(struct store *s, const struct store_key *key, uint64_t max, int out, struct store_info *info,
		      struct brig_error *err)
{
	AUTO_BUF bytes = BUF_INIT(max);
	const struct store_take take = { .bytes = &bytes };
	int rc = store_find(s, key, /* is_use= */ false, &take, info, err);

	if (rc != STORE_HIT)
		return rc;
	rc = fd_write_all(out, bytes.data, bytes.len);
	return rc < 0 ? err_set(err, BRIG_E_SYSTEM, -rc, "cannot pack what is kept") : STORE_HIT;
}

static int pack_whole_tree(struct store *s, const struct store_key *key, uint64_t max, int out, struct store_info *info,
			   struct brig_error *err)
{
	const struct pack_caps caps = { .entries = STORE_GIVEN_ENTRIES, .bytes = max };
	struct store_tree tree = STORE_TREE_INIT;
	const struct store_take take = { .tree = &tree };
	struct pack_counts counts;
	int rc = store_find(s, key, /* is_use= */ false, &take, info, err);

	if (rc == STORE_HIT && pack_tree(tree.fd, &caps, NULL, NULL, out, &counts, err) < 0)
		rc = -err->code;
	store_tree_close(&tree);
	return rc;
}

int store_pack(struct store *s, const struct store_key *key, uint64_t max, int out, struct store_info *info,
	       struct brig_error *err)
{
	return s->form == STORE_TREES ? pack_whole_tree(s, key, max, out, info, err)
				      : pack_bytes(s, key, max, out, info, err);
}

/* ---- in ----------------------------------------------------------------------------------------- */

static int is_another(struct brig_error *err)
{
	return err_set(err, BRIG_E_REFUSED, 0, "what came is not what its hash says: it was altered, or is another's");
}

static int unpack_bytes(struct store *s, const struct store_key *key, const struct store_given *g,
			struct brig_error *err)
{
	AUTO_BUF bytes = BUF_INIT(g->max);
	unsigned char hash[STORE_HASH_LEN];
	char piece[PIECE / 4];
	ssize_t n;

	while ((n = fd_read_all(g->in, piece, sizeof(piece))) > 0)
		(void)buf_add(&bytes, piece, (size_t)n);
	if (n < 0 || bytes.full || bytes.no_memory)
		return err_set(err, BRIG_E_REFUSED, n < 0 ? (int)-n : 0, "what came cannot be read, or is too much");
	sha256(bytes.data, bytes.len, hash);
	if (memcmp(hash, g->content, sizeof(hash)) != 0)
		return is_another(err);
	return store_put(s, key, bytes.data, bytes.len, err);
}

static int unpack_into_store(struct store *s, const struct store_key *key, const struct store_given *g, int scratch,
			     struct brig_error *err)
{
	const struct unpack_options o = { .caps = { .entries = STORE_GIVEN_ENTRIES, .bytes = g->max },
					  .uid = UINT32_MAX,
					  .gid = UINT32_MAX,
					  .readable = true };
	struct store_import import = { .dir = scratch, .entries = STORE_GIVEN_ENTRIES, .expected = g->content };
	struct pack_counts counts;
	int rc = unpack_tree(scratch, g->in, &o, &counts);

	if (rc < 0)
		return err_set(err, BRIG_E_REFUSED, -rc, "what came is no packed tree, or too much");
	rc = store_put_tree(s, key, &import, err);
	if (rc >= 0 && (import.links_out || import.special || import.gits))
		return is_another(err); /* not even its hash would be the same */
	return rc;
}

int store_unpack(struct store *s, const struct store_key *key, const struct store_given *g, struct brig_error *err)
{
	char name[STORE_SCRATCH_MAX];
	AUTO_FD scratch = FD_NONE;
	int rc;

	if (s->form == STORE_TREES) {
		rc = store_scratch_begin(s, name, &scratch, err);
		if (rc == 0) {
			rc = unpack_into_store(s, key, g, scratch, err);
			store_scratch_end(s, name);
		}
	} else {
		rc = unpack_bytes(s, key, g, err);
	}
	return rc == STORE_STORED && store_also(s, key, key, g->created_ns, err) < 0 ? -err->code : rc;
}
