/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests/shell-generator/run: reads "LENGTH\nTEXT" again and again, and answers each with a line: "seen" if a finding
 * names the marker, "flagged" if a warning or any remark says that something here is not known, else nothing.  At guard
 * most such remarks are notes: what runs unseen there must still be known as unseen.
 */
#include <stdio.h>
#include <string.h>

#include "inspect/inspect.h"

static bool says_unknown(const struct finding *f)
{
	static const char *const rules[] = { "sh-dynamic-", "sh-globbed-", "sh-parameter-code",
					     "sh-partly-",  "sh-fetched-", "sh-syntax" };

	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (strncmp(f->rule, rules[i], strlen(rules[i])) == 0)
			return true;
	return false;
}

static const char *verdict(const struct findings *f, const char *marker)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->row[i].severity >= SEVERITY_HIGH && strstr(f->row[i].name, marker))
			return "seen";
	for (size_t i = 0; i < f->n; i++)
		if (f->row[i].severity >= SEVERITY_HIGH || says_unknown(&f->row[i]))
			return "flagged";
	return "";
}

static bool one(const struct rule_set *rules, const char *marker, size_t len)
{
	struct inspect_request req = { .kind = INSPECT_SHELL, .level = INSPECTION_GUARD, .len = len };
	struct brig_error err = BRIG_ERROR_INIT;
	struct findings found = { 0 };
	AUTO_FREE char *text = malloc(len + 1);

	if (!text || fread(text, 1, len, stdin) != len)
		return false;
	text[len] = '\0';
	req.text = text;
	if (inspect_text(rules, &req, &found, &err) < 0)
		return false;
	puts(verdict(&found, marker));
	findings_release(&found);
	return true;
}

int main(int argc, char **argv)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct rule_set *rules = NULL;
	size_t len;
	bool ok = true;

	if (argc != 2 || rules_builtin(&rules, &err) < 0)
		return 2;
	while (ok && scanf("%zu", &len) == 1 && getchar() == '\n')
		ok = one(rules, argv[1], len);
	rules_free(rules);
	return ok ? 0 : 1;
}
