/* SPDX-License-Identifier: Apache-2.0 */
/* Checks requests against a token.  What a request does not specify counts as the maximum. */
#include "base/buf.h"
#include "base/str.h"
#include "server/tokens.h"

#define NO_ENVIRONMENT "none" /* the library's name for no environment */

/* "python, go"; truncated if too long. */
static void put_names(struct buf *out, const struct token_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		buf_addf(out, "%s%s", i ? ", " : "", list->item[i]);
	if (out->full)
		buf_adds(out, " ...");
}

static bool is_listed(const struct token_list *list, const char *word)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->item[i], word))
			return true;
	return false;
}

bool token_opens(const struct token *t, const char *door)
{
	return t->is_for_all || (t->doors.n == 0 ? str_eq(door, "api") : is_listed(&t->doors, door));
}

/* asked: NULL: nothing was named, which a non-empty list refuses. */
static int allows_word(const struct token *t, const struct token_list *list, const char *what, const char *asked,
		       struct brig_error *err)
{
	AUTO_BUF names = BUF_INIT(160);

	if (list->n == 0 || (asked && is_listed(list, asked)))
		return 0;
	put_names(&names, list);
	if (!asked)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the token '%s' may use the %ss %s only, and the request names none: name one of them",
			       t->name, what, buf_str(&names));
	return err_set(err, BRIG_E_REFUSED, 0, "the token '%s' may not use the %s '%.60s': it may use %s", t->name,
		       what, asked, buf_str(&names));
}

static int allows_trust(const struct token *t, const char *asked, struct brig_error *err)
{
	enum token_trust trust = TOKEN_TRUSTED;

	if (asked && !token_trust_parse(asked, &trust))
		return err_set(err, BRIG_E_USAGE, 0,
			       "'%.60s' is no trust level: they are untrusted, unknown and trusted", asked);
	if (trust <= t->max_trust)
		return 0;
	return err_set(err, BRIG_E_REFUSED, 0, "the token '%s' may not run with trust '%s': it may with '%s' at most",
		       t->name, token_trust_name(trust), token_trust_name(t->max_trust));
}

static int allows_environment(const struct token *t, const struct token_wish *wish, struct brig_error *err)
{
	AUTO_BUF names = BUF_INIT(160);

	if (wish->environment && !str_eq(wish->environment, NO_ENVIRONMENT)) {
		int rc = allows_word(t, &t->environments, "environment", wish->environment, err);

		if (rc < 0)
			return rc;
	}
	if (!wish->packages || t->environments.n == 0)
		return 0;
	put_names(&names, &t->environments);
	return err_set(err, BRIG_E_REFUSED, 0,
		       "the token '%s' may not install packages: it may use what is in the environments %s", t->name,
		       buf_str(&names));
}

static int allows_memory(const struct token *t, uint64_t asked, struct brig_error *err)
{
	char more[32], most[32];

	if (!t->quota.memory || asked <= t->quota.memory)
		return 0;
	return err_set(
		err, BRIG_E_REFUSED, 0,
		"the token '%s' may not use %s of memory: its executions may have %s together; ask for less with "
		"mem_limit",
		t->name, str_bytes(more, sizeof(more), asked), str_bytes(most, sizeof(most), t->quota.memory));
}

int token_allows(const struct token *t, const struct token_wish *wish, struct brig_error *err)
{
	int rc = allows_trust(t, wish->trust, err);

	if (rc == 0)
		rc = allows_word(t, &t->languages, "language", wish->language, err);
	if (rc == 0)
		rc = allows_word(t, &t->backends, "backend", wish->backend, err);
	if (rc == 0)
		rc = allows_environment(t, wish, err);
	return rc == 0 ? allows_memory(t, wish->memory, err) : rc;
}

bool token_sees_environment(const struct token *t, const char *environment)
{
	return t->environments.n == 0 || is_listed(&t->environments, environment);
}

int token_makes(const struct token *t, const char *environment, struct brig_error *err)
{
	if (!t->admin && !t->makes_environments)
		return err_set(
			err, BRIG_E_REFUSED, 0,
			"the token '%s' may not make or remove environments: that is for administrators, and for "
			"tokens made with --make-environments",
			t->name);
	if (!t->admin && t->environments.n == 0)
		return err_set(err, BRIG_E_REFUSED, 0,
			       "the token '%s' may make environments, but names none: make one with --environment",
			       t->name);
	return allows_word(t, &t->environments, "environment", environment, err);
}

const char *token_trust_default(const struct token *t, const char *policy_default)
{
	enum token_trust trust = TOKEN_TRUSTED;

	if (policy_default)
		(void)token_trust_parse(policy_default, &trust);
	return token_trust_name(trust < t->max_trust ? trust : t->max_trust);
}

const char *token_backend_default(const struct token *t)
{
	return t->backends.n ? t->backends.item[0] : NULL;
}
