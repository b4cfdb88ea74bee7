/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_policy - hostile policy files, variables and requests.
 *
 * An input is YAML; behind a line "%%" may come lines "KEY=VALUE".  A line whose key is in capitals is a
 * variable, "trust=NAME" names the trust level, any other is a wish of the request.  What must hold:
 * nothing crashes, every refusal says why, what is accepted can be printed, and no request below `trusted`
 * gets more than it would have got without its wishes (INV-5), no trust is above max_trust, and no backend is taken that
 * the policy does not list.
 */
#include <stdio.h>
#include <string.h>

#include "policy/internal.h"

#define LINES_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct input {
	const char *yaml;
	size_t yaml_len;
	const char *vars[LINES_MAX + 1];
	struct brig_option options[LINES_MAX];
	size_t n_vars, n_options;
	const char *trust;
};

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	(void)fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

static void add_line(struct input *in, char *line)
{
	char *equals = strchr(line, '=');

	if (!equals)
		return;
	if (*line >= 'A' && *line <= 'Z') {
		if (in->n_vars < LINES_MAX)
			in->vars[in->n_vars++] = line;
		return;
	}
	*equals++ = '\0';
	if (strcmp(line, "trust") == 0)
		in->trust = equals;
	else if (in->n_options < LINES_MAX)
		in->options[in->n_options++] = (struct brig_option){ line, equals };
}

/* Cuts a NUL-terminated copy of the input into its parts. */
static void split(char *copy, size_t size, struct input *in)
{
	char *mark = memmem(copy, size, "\n%%\n", 4);
	char *save = NULL;

	in->yaml = copy;
	in->yaml_len = mark ? (size_t)(mark + 1 - copy) : size;
	if (!mark)
		return;
	for (char *line = strtok_r(mark + 4, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		add_line(in, line);
}

static void check_requests(const struct policy *p, const struct input *in)
{
	static struct policy_resolved plain, wished;
	struct brig_error err = BRIG_ERROR_INIT;
	char *json = NULL;

	if (policy_resolve(p, in->trust, NULL, 0, &plain, &err) < 0) {
		must(err.msg[0] != '\0', "a refusal says why");
		return;
	}
	must(policy_to_json(&plain, &json, &err) == 0, "every policy can be printed");
	free(json);
	if (policy_resolve(p, in->trust, in->options, in->n_options, &wished, &err) < 0) {
		must(err.msg[0] != '\0', "a refusal says why");
		return;
	}
	must((int)wished.trust <= plain.set.max_trust && plain.set.default_trust <= plain.set.max_trust,
	     "the ceiling holds");
	must(wished.set.backend == plain.set.backend || backend_within(&plain.set.backends, wished.set.backend),
	     "a request chooses among the backends of the policy");
	for (enum setting_key k = 0; k < SETTING_COUNT && wished.trust != TRUST_TRUSTED; k++)
		must(k == SET_backend || k == SET_rules ||
			     value_compare(k, setting_at_const(&wished.set, k), setting_at_const(&plain.set, k)) !=
				     VALUE_LOOSER,
		     "a request only tightens");
	must(wished.trust == TRUST_TRUSTED || wished.only_tighten || !*policy_file(p), "nor does it loosen a rule");
	must(wished.n_policy_rules == plain.set.rules.n && wished.set.rules.n >= plain.set.rules.n,
	     "the policy's rules stay, and come first");
	must(wished.set.read_only && setting_list_has(&wished.set.security_opt, "no-new-privileges"),
	     "the floor holds");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct policy_diags diags;
	struct brig_error err = BRIG_ERROR_INIT;
	struct input in = { 0 };
	struct policy *p = NULL;
	char *json = NULL;
	char *copy = malloc(size + 1);
	struct policy_sources src = { .file = "fuzz.yaml", .environ = in.vars };

	must(copy != NULL, "memory");
	memcpy(copy, data, size);
	copy[size] = '\0';
	split(copy, size, &in);
	src.text = in.yaml;
	src.text_len = in.yaml_len;
	if (policy_load(&src, &p, &diags, &err) == 0) {
		check_requests(p, &in);
	} else {
		must(diags.n > 0 && err.msg[0] != '\0', "a refusal says why");
		must(policy_diags_to_json("fuzz.yaml", &diags, &json, &err) == 0, "every complaint can be printed");
		free(json);
	}
	policy_free(p);
	free(copy);
	return 0;
}
