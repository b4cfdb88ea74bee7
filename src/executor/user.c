/* SPDX-License-Identifier: Apache-2.0 */
#include "executor/user.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"

static bool parse_numbers(const char *user, uint32_t *uid, uint32_t *gid)
{
	char text[SETTING_TEXT_MAX], *colon;
	uint64_t u, g;

	(void)str_copy(text, sizeof(text), user);
	colon = strchr(text, ':');
	if (colon)
		*colon = '\0';
	if (!colon || !str_to_u64(text, &u) || !str_to_u64(colon + 1, &g) || u == 0 || g == 0 || u >= UINT32_MAX ||
	    g >= UINT32_MAX)
		return false;
	*uid = (uint32_t)u;
	*gid = (uint32_t)g;
	return true;
}

/* Cells without an image have brig's own /etc/passwd, unless a rootfs brings one, which is not read. */
static int own_user(const struct settings *set, const char *backend, uint32_t *uid, uint32_t *gid,
		    struct brig_error *err)
{
	static const char *const names[] = { PLAN_USER, PLAN_USER ":" PLAN_USER };

	for (size_t i = 0; i < ARRAY_LEN(names) && !set->rootfs[0]; i++)
		if (str_eq(set->user, names[i])) {
			*uid = *gid = PLAN_USER_ID;
			return 0;
		}
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"user '%s' is a name, which only an image explains: cells of backend %s know '%s' (%d:%d) and no "
		"other; write numbers, such as user: \"1000:1000\", or use backend docker with a docker_image",
		set->user, backend, PLAN_USER, PLAN_USER_ID, PLAN_USER_ID);
}

int user_find(struct prepared_request *pr, const struct selection *chosen, const struct brig_request *req,
	      struct brig_error *err)
{
	const struct settings *set = &pr->resolved.set;
	const struct backend_user ask = { .language = pr->lang->name,
					  .name = set->user,
					  .notify = { req->on_notice, req->user } };

	if (parse_numbers(set->user, &pr->uid, &pr->gid))
		return 0;
	if (!chosen->ops->find_user)
		return own_user(set, chosen->ops->name, &pr->uid, &pr->gid, err);
	return chosen->ops->find_user(chosen->host, &ask, &pr->uid, &pr->gid, err);
}
