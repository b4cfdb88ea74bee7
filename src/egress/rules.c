/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/rules.h"

#include "egress/names.h"

int rules_parse(const struct setting_list *hosts, struct rule_list *ret, struct brig_error *err)
{
	ret->n = 0;
	for (const char *item = NULL; (item = setting_list_next(hosts, item));) {
		const char *wrong =
			ret->n == ARRAY_LEN(ret->row) ? "there are too many" : host_rule_parse(item, &ret->row[ret->n]);

		if (wrong)
			return err_set(err, BRIG_E_POLICY, 0, "'%s' cannot be let through: %s", item, wrong);
		ret->n++;
	}
	return 0;
}

enum rule_match rules_match(const struct rule_list *list, const struct host *host, uint16_t port)
{
	enum rule_match best = MATCH_NONE;

	for (size_t i = 0; i < list->n && best != MATCH_YES; i++) {
		enum rule_match one = host_rule_match(&list->row[i], host, port);

		best = one > best ? one : best;
	}
	return best;
}

bool rules_match_address(const struct rule_list *list, const struct address *a, uint16_t port)
{
	const struct host host = { .is_address = true, .address = *a };

	return rules_match(list, &host, port) == MATCH_YES;
}

int egress_check(const struct setting_list *hosts, struct brig_error *err)
{
	AUTO_FREE struct rule_list *list = malloc(sizeof(*list));

	return list ? rules_parse(hosts, list, err) : err_nomem(err);
}

int egress_places(const struct setting_list *hosts, struct plan_egress *ret, struct brig_error *err)
{
	AUTO_FREE struct rule_list *list = malloc(sizeof(*list));
	AUTO_FREE struct names *names = malloc(sizeof(*names));
	int rc = list && names ? rules_parse(hosts, list, err) : err_nomem(err);

	if (rc == 0)
		names_begin(names, list, ret);
	return rc;
}
