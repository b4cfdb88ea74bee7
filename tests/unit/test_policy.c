/* SPDX-License-Identifier: Apache-2.0 */
/* Layers: which one wins, and that a request cannot loosen what its trust does not allow (INV-5). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "policy_helpers.h"

/* ---- layers ------------------------------------------------------------------------------------------------ */

static void test_presets(void **state)
{
	struct policy_sources src = { 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = must_load(&src);

	(void)state;
	must_resolve(p, NULL);
	assert_string_equal(resolved.preset, "standard");
	assert_int_equal(resolved.trust, TRUST_UNKNOWN);
	assert_int_equal(resolved.set.mem_limit, 512 * MiB);
	assert_int_equal(resolved.set.cpu_quota_percent, 50);
	assert_int_equal(resolved.set.disk_limit, 100 * MiB);
	assert_int_equal(resolved.set.execution_timeout_ms, 30000);
	assert_origin("mem_limit", LAYER_PRESET, "preset standard");
	assert_origin("pids_limit", LAYER_BUILTIN, "built-in");
	policy_free(p);

	src.preset = "strict";
	p = must_load(&src);
	must_resolve(p, NULL);
	assert_int_equal(resolved.set.mem_limit, 256 * MiB);
	assert_int_equal(resolved.set.execution_timeout_ms, 15000);
	assert_origin("mem_limit", LAYER_PRESET, "preset strict");
	policy_free(p);

	src.preset = "stict";
	p = NULL;
	assert_int_equal(policy_load(&src, &p, NULL, &err), -BRIG_E_POLICY);
	assert_non_null(strstr(err.msg, "did you mean 'strict'?"));
}

static void test_every_layer_wins_over_the_one_below(void **state)
{
	static const char yaml[] = "preset: strict\npids_limit: 50\nopen_files: 100\ncpu_count: 1\n"
				   "trust_levels:\n  unknown:\n    cpu_count: 0.9\n    inodes_limit: 100\n";
	static const char *const vars[] = { "PATH=/bin", "BRIG_OPEN_FILES=90", "BRIG_CPU_COUNT=0.95", NULL };
	static const struct brig_option wish = { "inodes_limit", "99" };
	struct policy_sources src = {
		.file = "/etc/brig/p.yaml", .text = yaml, .text_len = strlen(yaml), .environ = vars
	};
	struct policy *p = must_load(&src);

	(void)state;
	assert_int_equal(policy_resolve(p, NULL, &wish, 1, &resolved, NULL), 0);
	assert_origin("startup_timeout_ms", LAYER_BUILTIN, "built-in");
	assert_origin("mem_limit", LAYER_PRESET, "preset strict");
	assert_origin("pids_limit", LAYER_FILE, "p.yaml:2");
	assert_origin("open_files", LAYER_ENV, "BRIG_OPEN_FILES");
	assert_value("open_files", "90");
	assert_origin("cpu_quota_percent", LAYER_TRUST, "p.yaml:7");
	assert_value("cpu_quota_percent", "90%");
	assert_origin("inodes_limit", LAYER_REQUEST, "request inodes_limit");
	assert_value("inodes_limit", "99");
	policy_free(p);
}

static void test_builtin_trust(void **state)
{
	struct policy_sources src = { 0 };
	struct policy *p = must_load(&src);

	(void)state;
	must_resolve(p, "untrusted");
	assert_value("mem_limit", "256m");
	assert_value("execution_timeout_ms", "15s");
	assert_value("pids_limit", "32");
	assert_value("seccomp_profile", "strict");
	assert_origin("mem_limit", LAYER_TRUST, "trust untrusted");
	must_resolve(p, "trusted");
	assert_value("mem_limit", "1g");
	assert_value("cpu_quota_percent", "200%");
	assert_value("execution_timeout_ms", "120s");
	policy_free(p);
}

static void test_untrusted_never_loosens_and_trusted_never_tightens(void **state)
{
	struct policy *p = must_load_text("mem_limit: 128m\ntimeout: 10\npids_limit: 8\nseccomp_profile: strict\n");

	(void)state;
	must_resolve(p, "untrusted");
	assert_value("mem_limit", "128m");
	assert_value("execution_timeout_ms", "10s");
	assert_value("pids_limit", "8");
	assert_origin("mem_limit", LAYER_FILE, "sandbox.yaml:1");
	policy_free(p);

	p = must_load_text("mem_limit: 4g\ntimeout: 10m\ncpu_count: 8\n");
	must_resolve(p, "trusted");
	assert_value("mem_limit", "4g");
	assert_value("execution_timeout_ms", "600s");
	assert_value("cpu_quota_percent", "800%");
	policy_free(p);

	/* A setting without a direction is the operator's to choose for any level. */
	p = must_load_text("trust_levels: {untrusted: {backend: docker, user: \"7:7\"}}");
	must_resolve(p, "untrusted");
	assert_value("backend", "docker");
	assert_value("user", "7:7");
	policy_free(p);

	/* What the file says of a level replaces what is built in. */
	p = must_load_text("trust_levels: {untrusted: {mem_limit: 400m}, trusted: {mem_limit: 600m}}");
	must_resolve(p, "untrusted");
	assert_value("mem_limit", "400m");
	assert_value("pids_limit", "32");
	must_resolve(p, "trusted");
	assert_value("mem_limit", "600m");
	policy_free(p);
}

static void test_untrusted_of_the_file_stays_below_the_environment(void **state)
{
	static const char yaml[] = "trust_levels: {untrusted: {mem_limit: 400m}}";
	static const char *const vars[] = { "BRIG_MEM_LIMIT=100m", NULL };
	struct policy_sources src = { .text = yaml, .text_len = strlen(yaml), .environ = vars };
	struct policy *p = must_load(&src);

	(void)state;
	must_resolve(p, "untrusted");
	assert_value("mem_limit", "100m");
	policy_free(p);
}

static void test_cpu_time_follows_the_timeout(void **state)
{
	struct policy *p = must_load_text("");

	(void)state;
	must_resolve(p, NULL);
	assert_value("cpu_time_ms", "30s");
	must_resolve(p, "trusted");
	assert_value("cpu_time_ms", "360s");
	assert_origin("cpu_time_ms", LAYER_BUILTIN, "follows execution_timeout_ms");
	policy_free(p);
	p = must_load_text("cpu_time: 7\ntimeout: 300\n");
	must_resolve(p, NULL);
	assert_value("cpu_time_ms", "7s");
	policy_free(p);
}

/* ---- environment ------------------------------------------------------------------------------------------- */

static void test_environment(void **state)
{
	static const char *const vars[] = {
		"SECURITY_ENABLE_SANDBOX=false",
		"SECURITY_DOCKER_IMAGE=python:3.12",
		"SECURITY_MAX_EXECUTION_TIME=7",
		"SECURITY_OTHER=not ours",
		"BRIG_MEMORY_MB=64",
		"BRIG_WHITELIST= a.org , b.org:80 ",
		"BRIG_ALLOW_DEGRADED=",
		"BRIG_POLICY=/x",
		"BRIG_STATE=/y",
		"BRIG_LIBEXEC=/z",
		"BRIG_BIN=/b",
		"BRIG_TRACE=1",
		"BRIG_TEST_ANYTHING=1",
		"BRIGADE=x",
		"NOVALUE",
		"BRIG_PRESET=strict",
		NULL,
	};
	struct policy_sources src = { .environ = vars };
	struct policy *p = must_load(&src);

	(void)state;
	must_resolve(p, NULL);
	assert_string_equal(resolved.preset, "strict");
	assert_value("enable_sandbox", "false");
	assert_origin("enable_sandbox", LAYER_ENV, "SECURITY_ENABLE_SANDBOX");
	assert_value("docker_image", "python:3.12");
	assert_value("execution_timeout_ms", "7s");
	assert_value("mem_limit", "64m");
	assert_value("whitelist", "[a.org, b.org:80]");
	assert_value("allow_degraded", "[]");
	policy_free(p);
}

static void test_every_key_has_a_variable(void **state)
{
	const char *names[SPELLINGS_MAX];
	size_t n = spelling_names(NULL, names);

	(void)state;
	assert_true(n >= SETTING_COUNT + setting_alias_count);
	n -= setting_word_count; /* they come last, and take yes and no */
	for (size_t i = 0; i < n; i++) {
		char var[256], text[128];
		const char *vars[] = { var, NULL };
		struct policy_sources src = { .environ = vars };
		enum setting_key k = key_named(names[i]);
		struct policy *p = must_load(&(struct policy_sources){ 0 });

		must_resolve(p, NULL);
		policy_free(p);
		(void)snprintf(var, sizeof(var), "BRIG_%s=%s", names[i],
			       policy_value_text(&resolved.set, k, text, sizeof(text)));
		for (char *c = var; *c != '='; c++)
			if (*c >= 'a' && *c <= 'z')
				*c = (char)(*c - 'a' + 'A');
		p = must_load(&src);
		must_resolve(p, NULL);
		assert_int_equal(resolved.origin[k].layer, LAYER_ENV);
		assert_value(names[i], text); /* the text form is read back as the same value */
		policy_free(p);
	}
}

#define X16    "xxxxxxxxxxxxxxxx"
#define X64    X16 X16 X16 X16
#define LONG   "," X64 "," X64 "," X64 "," X64 "," X64 "," X64
#define COMMAS ",a,a,a,a,a,a,a,a,a,a,a,a,a,a,a,a"
static const struct {
	const char *vars[3], *place, *part;
} bad_environments[] = {
	{ { "BRIG_TIMEOT=3" }, "BRIG_TIMEOT", "did you mean 'BRIG_TIMEOUT'?" },
	{ { "BRIG_XYZZY=3" }, "BRIG_XYZZY", "names no setting; unset it" },
	{ { "BRIG_=3" }, "BRIG_", "names no setting" },
	{ { "BRIG_MEM_LIMIT=" }, "BRIG_MEM_LIMIT", "takes bytes" },
	{ { "BRIG_PIDS_LIMIT=1" }, "BRIG_PIDS_LIMIT", "too small" },
	{ { "BRIG_CAP_DROP=NET_RAW" }, "BRIG_CAP_DROP", "must be" },
	{ { "BRIG_WHITELIST=a,,b" }, "BRIG_WHITELIST", "empty item" },
	{ { "BRIG_WHITELIST=[a, b,]" }, "BRIG_WHITELIST", "empty item" },
	{ { "BRIG_WHITELIST=" X16 X16 X16 X16 X16 X16 },
	  "BRIG_WHITELIST",
	  "an item of whitelist is longer than 95 bytes" },
	{ { "BRIG_ROOTFS=/" X64 X64 X64 X64 }, "BRIG_ROOTFS", "rootfs is longer than 255 bytes" },
	{ { "BRIG_WHITELIST=a" COMMAS COMMAS COMMAS COMMAS }, "BRIG_WHITELIST", "more than 64 items" },
	{ { "BRIG_WHITELIST=a" LONG LONG LONG LONG LONG LONG }, "BRIG_WHITELIST", "more than 2044 bytes together" },
	{ { "BRIG_USER=\xff" }, "BRIG_USER", "UTF-8" },
	{ { "SECURITY_MAX_EXECUTION_TIME=forever" }, "SECURITY_MAX_EXECUTION_TIME", "takes seconds" },
	{ { "BRIG_TIMEOUT=3", "SECURITY_MAX_EXECUTION_TIME=3" },
	  "SECURITY_MAX",
	  "sets what BRIG_TIMEOUT sets already" },
	{ { "BRIG_TIMEOUT=x", "BRIG_EXECUTION_TIMEOUT_MS=3" },
	  "BRIG_EXECUTION",
	  "sets what BRIG_TIMEOUT sets already" },
	{ { "BRIG_PRESET=lax" }, "BRIG_PRESET", "unknown preset 'lax'" },
};

static void test_bad_environments(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_environments); i++) {
		struct policy_sources src = { .environ = bad_environments[i].vars };
		struct brig_error err = BRIG_ERROR_INIT;
		struct policy *p = NULL;

		assert_int_equal(policy_load(&src, &p, &diags, &err), -BRIG_E_POLICY);
		assert_diag(bad_environments[i].place, bad_environments[i].part);
	}
}

static void test_file_and_environment_complain_together(void **state)
{
	static const char *const vars[] = { "BRIG_TIMEOUT=x", NULL };
	struct policy_sources src = { .file = "f", .text = "a: 1", .text_len = 4, .environ = vars };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	assert_int_equal(policy_load(&src, &p, &diags, &err), -BRIG_E_POLICY);
	assert_int_equal(diags.n, 2);
	assert_diag("f:1:1", "unknown key 'a'");
	assert_diag("BRIG_TIMEOUT", "takes seconds");
}

/* ---- requests (INV-5) ----------------------------------------------------------------------------------------- */

static const struct {
	const char *trust, *key, *value;
	int code;
	const char *part;
} wishes[] = {
	{ "unknown", "timeout", "5", 0, NULL },
	{ "unknown", "timeout", "30", 0, NULL },
	{ "unknown", "timeout", "600", -BRIG_E_REFUSED,
	  "timeout 600s is more than trust 'unknown' allows (300s); lower it, or use --trust trusted" },
	{ "unknown", "timeout", "60", 0, NULL },
	{ NULL, "timeout", "300", 0, NULL },
	{ NULL, "timeout", "301", -BRIG_E_REFUSED, "trust 'unknown'" },
	{ "unknown", "cpu_count", "4", 0, NULL },
	{ "unknown", "cpu_quota", "100000", 0, NULL },
	{ "unknown", "cpu_quota", "100500", -BRIG_E_USAGE, "cpu_quota takes" },
	{ "unknown", "pids_limit", "257", -BRIG_E_REFUSED, "allows (256)" },
	{ "unknown", "disk_limit", "1g", 0, NULL },
	{ "unknown", "inodes_limit", "20000", -BRIG_E_REFUSED, "allows (16384)" },
	{ "trusted", "max_timeout", "600", -BRIG_E_REFUSED, "only the policy" },
	{ "unknown", "network_enabled", "false", 0, NULL },
	{ "unknown", "network_enabled", "true", -BRIG_E_USAGE, "name the hosts" },
	{ "unknown", "no_new_privileges", "true", 0, NULL },
	{ "unknown", "no_new_privileges", "false", -BRIG_E_USAGE, "cannot be had without" },
	{ "unknown", "drop_all_capabilities", "maybe", -BRIG_E_USAGE, "takes true or false" },
	{ "untrusted", "timeout", "16", -BRIG_E_REFUSED, "allows (15s)" },
	{ "trusted", "timeout", "600", 0, NULL },
	{ "trusted", "timeout", "48h", -BRIG_E_USAGE, "too large" },
	{ "unknown", "mem_limit", "2049m", -BRIG_E_REFUSED, "mem_limit 2049m is more" },
	{ "unknown", "memory_limit", "1g", 0, NULL },
	{ "unknown", "memory_mb", "128", 0, NULL },
	{ "unknown", "monitoring_interval_ms", "50", -BRIG_E_REFUSED, "looser than trust 'unknown' allows ('100ms')" },
	{ "unknown", "monitoring_interval_ms", "500", -BRIG_E_REFUSED, "or use --trust trusted" },
	{ "trusted", "monitoring_interval_ms", "500", 0, NULL },
	{ "unknown", "backend", "native", 0, NULL },
	{ "unknown", "backend", "docker", 0, NULL },
	{ "unknown", "backend", "direct", -BRIG_E_REFUSED, "[native, docker] (built-in)" },
	{ "trusted", "backend", "direct", -BRIG_E_REFUSED, "backend: [native, direct]" },
	{ "trusted", "backend", "native,direct", -BRIG_E_USAGE, "none of them" },
	{ "trusted", "backends", "native,direct", -BRIG_E_REFUSED, "only the policy" },
	{ "unknown", "backends", "docker", 0, NULL },
	{ "trusted", "keep_code", "none", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "keep_output", "none", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "redact", "*", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "max_trust", "untrusted", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "enable_sandbox", "false", -BRIG_E_REFUSED, "only the policy can loosen it" },
	{ "unknown", "enable_sandbox", "true", 0, NULL },
	{ "trusted", "allow_degraded", "landlock", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "allow_degraded", "seccomp", -BRIG_E_USAGE, "cannot name seccomp" },
	{ "trusted", "allow_degraded", "", 0, NULL },
	{ "unknown", "seccomp_profile", "strict", 0, NULL },
	{ "untrusted", "seccomp_profile", "default", -BRIG_E_REFUSED,
	  "looser than trust 'untrusted' allows ('strict')" },
	{ "trusted", "network_mode", "allowlist", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "network_mode", "host", -BRIG_E_USAGE, "host's network" },
	{ "trusted", "whitelist", "evil.example", -BRIG_E_REFUSED, "only the policy" },
	{ "unknown", "whitelist", "[b.org]", 0, NULL },
	{ "unknown", "whitelist", "", 0, NULL },
	{ "trusted", "user", "1001:1001", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "user", "0:0", -BRIG_E_USAGE, "never 0" },
	{ "unknown", "user", "1000:1000", 0, NULL },
	{ "trusted", "rootfs", "/srv/x", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "docker_image", "x", -BRIG_E_REFUSED, "only the policy" },
	{ "trusted", "default_trust", "trusted", -BRIG_E_REFUSED, "only the policy" },
	{ "unknown", "workspace_exec", "false", 0, NULL },
	{ "unknown", "cpu_time", "31", -BRIG_E_REFUSED, "cpu_time 31s" },
	{ "unknown", "cpu_time", "1", 0, NULL },
	{ "unknown", "timout", "1", -BRIG_E_USAGE, "unknown option 'timout'; did you mean 'timeout'?" },
	{ "unknown", "preset", "strict", -BRIG_E_USAGE, "unknown option 'preset'" },
	{ "unknown", "timeout", "", -BRIG_E_USAGE, "takes seconds" },
	{ "unknown", NULL, "1", -BRIG_E_USAGE, "no key" },
	{ "unknown", "timeout", NULL, -BRIG_E_USAGE, "no value" },
	{ "trustd", "timeout", "1", -BRIG_E_USAGE, "did you mean 'trusted'?" },
};

static void test_wishes(void **state)
{
	struct policy *p = must_load_text("whitelist: [a.org, b.org]");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wishes); i++) {
		struct brig_option o = { wishes[i].key, wishes[i].value };
		struct brig_error err = BRIG_ERROR_INIT;
		int rc = policy_resolve(p, wishes[i].trust, &o, 1, &resolved, &err);

		if (rc != wishes[i].code)
			fail_msg("%s=%s at %s: %d, %s", o.key ? o.key : "NULL", o.value ? o.value : "NULL",
				 wishes[i].trust ? wishes[i].trust : "NULL", rc, err.msg);
		if (wishes[i].part && !strstr(err.msg, wishes[i].part))
			fail_msg("'%s' does not say '%s'", err.msg, wishes[i].part);
		if (rc == 0)
			assert_int_equal(resolved.origin[key_named(o.key)].layer, LAYER_REQUEST);
	}
	policy_free(p);
}

static void test_same_wish_twice(void **state)
{
	static const struct brig_option two[] = { { "timeout", "5" }, { "execution_timeout_ms", "4000" } };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = must_load_text("");

	(void)state;
	assert_int_equal(policy_resolve(p, NULL, two, 2, &resolved, &err), -BRIG_E_USAGE);
	assert_string_equal(err.msg, "execution_timeout_ms sets what timeout sets already; keep one");
	policy_free(p);
}

/* A request at a trust below `trusted` never ends up looser than without its wishes, whatever it wishes. */
static void test_no_wish_loosens(void **state)
{
	static const char *const values[] = { "1",     "64",    "100",    "5000",     "512m", "2g",
					      "true",  "false", "native", "strict",   "none", "direct",
					      "a.org", "9:9",   "/a",     "landlock", "" };
	static struct policy_resolved before;
	struct policy *p = must_load_text("preset: standard\nwhitelist: [a.org]\nallow_degraded: [landlock]\n"
					  "pids_limit: 64\noutput_limit: 10m\n"); /* stated: nothing may be raised */

	(void)state;
	for (enum trust t = 0; t < TRUST_TRUSTED; t++) {
		must_resolve(p, trust_name[t]);
		before = resolved;
		for (size_t i = 0; i < SETTING_COUNT * ARRAY_LEN(values); i++) {
			enum setting_key k = (enum setting_key)(i / ARRAY_LEN(values));
			struct brig_option o = { setting_info[k].name, values[i % ARRAY_LEN(values)] };

			if (policy_resolve(p, trust_name[t], &o, 1, &resolved, NULL) == 0)
				assert_int_not_equal(
					value_compare(k, setting_at(&resolved.set, k), setting_at(&before.set, k)),
					VALUE_LOOSER);
		}
	}
	policy_free(p);
}

/* ---- P1: who judges ---------------------------------------------------------------------------------------------- */

struct judged {
	const char *text;        /* of the file; NULL: there is none */
	const char *var;         /* of the environment; NULL: none */
	const char *trust;       /* of the request; NULL: none */
	const char *key, *value; /* its wish; NULL: none */
	const char *part;        /* of the refusal; NULL: it is granted */
};

static void check_judged(const struct judged *j)
{
	const char *const vars[] = { j->var, NULL };
	struct policy_sources src = { .environ = vars };
	struct brig_option o = { j->key, j->value };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p;
	int rc;

	if (j->text) {
		src.file = "etc/sandbox.yaml";
		src.text = j->text;
		src.text_len = strlen(j->text);
	}
	p = must_load(&src);
	rc = policy_resolve(p, j->trust, &o, j->key ? 1 : 0, &resolved, &err);
	policy_free(p);
	if (rc != (j->part ? -BRIG_E_REFUSED : 0) || (j->part && !strstr(err.msg, j->part)))
		fail_msg("'%s' %s, trust %s, %s=%s: %d, '%s' instead of '%s'", j->text ? j->text : "",
			 j->var ? j->var : "", j->trust ? j->trust : "-", j->key ? j->key : "-",
			 j->value ? j->value : "-", rc, err.msg, j->part ? j->part : "granted");
}

/* A request cannot say more trust than the policy lets it. */
static uint64_t most_of(const char *text, enum trust t, const char *key, bool *ret_any)
{
	struct policy *p = must_load_text(text);
	static struct settings most;
	uint64_t n = 0;

	if (policy_most(p, t, &most, ret_any))
		n = *(const uint64_t *)setting_at_const(&most, key_named(key));
	policy_free(p);
	return n;
}

/* The most that a request can have is what it could wish for, and no more. */
static void test_most(void **state)
{
	const uint64_t all = setting_info[SET_mem_limit].max;
	bool any = true;

	(void)state;
	/* A number that the file states is the most for who may not loosen it; trusted ones may have all that there is. */
	assert_int_equal(most_of("mem_limit: 64m\n", TRUST_UNKNOWN, "mem_limit", &any), 64 * MiB);
	assert_false(any); /* a file is in force */
	assert_int_equal(most_of("mem_limit: 64m\n", TRUST_TRUSTED, "mem_limit", &any), all);
	/* A maximum is what `unknown` may wish for. */
	assert_int_equal(most_of("mem_limit: 64m\nmax_mem_limit: 1g\n", TRUST_UNKNOWN, "mem_limit", &any), GiB);
	assert_true(most_of("mem_limit: 64m\nmax_mem_limit: 1g\n", TRUST_UNTRUSTED, "mem_limit", &any) <= 64 * MiB);
	/* cpu time that nobody states follows the time that may be wished for. */
	assert_true(most_of("max_execution_timeout_ms: 100s\n", TRUST_UNKNOWN, "cpu_time_ms", &any) >= 100000);
	/* Nobody has a trust above max_trust. */
	assert_int_equal(most_of("max_trust: untrusted\n", TRUST_TRUSTED, "mem_limit", &any), 0);
}

static void test_p1_max_trust(void **state)
{
	static const struct judged rows[] = {
		{ NULL, NULL, "trusted", NULL, NULL, NULL },
		{ "mem_limit: 64m", NULL, "trusted", NULL, NULL, NULL },
		{ "default_trust: untrusted", NULL, "trusted", NULL, NULL,
		  "max_trust is 'untrusted' (sandbox.yaml:1 by default_trust); leave --trust out, or change "
		  "max_trust" },
		{ "default_trust: untrusted", NULL, "unknown", NULL, NULL,
		  "trust 'unknown' is more than the policy allows" },
		{ "default_trust: untrusted", NULL, "untrusted", NULL, NULL, NULL },
		{ "default_trust: untrusted\nmax_trust: trusted", NULL, "trusted", NULL, NULL, NULL },
		{ "max_trust: unknown", NULL, "trusted", NULL, NULL, "(sandbox.yaml:1)" },
		{ "max_trust: trusted", "BRIG_MAX_TRUST=unknown", "trusted", NULL, NULL, "(BRIG_MAX_TRUST)" },
		{ NULL, "BRIG_MAX_TRUST=untrusted", "unknown", NULL, NULL, "(BRIG_MAX_TRUST)" },
		{ NULL, "BRIG_DEFAULT_TRUST=untrusted", "trusted", NULL, NULL, NULL },
		/* Where trusted cannot be had, it is no remedy. */
		{ "max_trust: unknown", NULL, NULL, "timeout", "301", "change the policy" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_judged(&rows[i]);
}

static void test_p1_who_chose_the_trust(void **state)
{
	static const char *const vars[] = { "BRIG_MAX_TRUST=untrusted", NULL };
	struct policy *p = must_load_text("default_trust: untrusted");
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	must_resolve(p, NULL);
	assert_int_equal(resolved.trust_from, LAYER_FILE);
	assert_origin("max_trust", LAYER_FILE, "sandbox.yaml:1 by default_trust");
	assert_int_equal(policy_resolve(p, "trusted", NULL, 0, &resolved, &err), -BRIG_E_REFUSED);
	assert_int_equal(resolved.trust, TRUST_TRUSTED);
	assert_int_equal(resolved.trust_from, LAYER_REQUEST);
	policy_free(p);
	p = must_load(&(struct policy_sources){ 0 });
	must_resolve(p, NULL);
	assert_int_equal(resolved.trust_from, LAYER_BUILTIN);
	policy_free(p);
	/* The default follows the ceiling down. */
	p = must_load(&(struct policy_sources){ .environ = vars });
	must_resolve(p, NULL);
	assert_int_equal(resolved.trust, TRUST_UNTRUSTED);
	assert_int_equal(resolved.trust_from, LAYER_ENV);
	policy_free(p);
}

/* The backend of the policy binds at every trust, and direct is never a request's own choice. */
static void test_p1_backend_binds(void **state)
{
	static const struct judged rows[] = {
		{ "backend: native", NULL, "trusted", "backend", "docker", "[native] (sandbox.yaml:1 by backend)" },
		{ "backend: native", NULL, "trusted", "backend", "auto", "none of those" },
		{ "backend: native", NULL, "untrusted", "backend", "native", NULL },
		{ "backend: auto", NULL, "untrusted", "backend", "docker", NULL },
		{ "backend: auto", NULL, "trusted", "backend", "direct", "isolates nothing" },
		{ "backend: [docker, native]", NULL, "untrusted", "backend", "native", NULL },
		{ "backend: [docker, native]", NULL, "untrusted", "backend", "auto", NULL },
		{ "backend: [docker, native]", NULL, "trusted", "backend", "direct", "isolates nothing" },
		{ "backend: [auto, direct]", NULL, "trusted", "backend", "direct", NULL },
		{ "backend: [auto, direct]", NULL, "unknown", "backend", "direct", "use --trust trusted" },
		{ "backend: direct", NULL, "untrusted", "backend", "direct", NULL },
		{ NULL, "BRIG_BACKEND=docker", "trusted", "backend", "native", "(BRIG_BACKEND)" },
		{ NULL, "BRIG_BACKEND=docker,native", "unknown", "backend", "native", NULL },
		{ NULL, NULL, "trusted", "backend", "direct", "(built-in)" },
		{ "trust_levels: {trusted: {backend: docker}}", NULL, "trusted", "backend", "native", "[docker]" },
		{ "trust_levels: {trusted: {backend: docker}}", NULL, "unknown", "backend", "native", NULL },
	};
	struct policy *p = must_load_text("backend: [auto, direct]");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_judged(&rows[i]);
	must_resolve(p, NULL);
	assert_value("backend", "auto");
	assert_value("backends", "[native, docker, direct]");
	policy_free(p);
	p = must_load_text("backends: [docker, native]");
	must_resolve(p, NULL);
	assert_value("backend", "docker");
	policy_free(p);
}

/* What a file sets for protection or record is not loosened by a request, whatever its trust. */
static void test_p1_what_a_file_sets_binds(void **state)
{
	static const struct judged rows[] = {
		{ "strict_commands: true", NULL, "trusted", "strict_commands", "false", "sets it" },
		{ "workspace_exec: false", NULL, "trusted", "workspace_exec", "true", "sets it" },
		{ "workspace_mode: cow", NULL, "trusted", "workspace_mode", "rw", "sets it" },
		{ "packages: {packages: false}", NULL, "trusted", "packages", "true", "sets it" },
		{ "report_denied: true", NULL, "trusted", "report_denied", "false", "sets it" },
		{ "monitoring: {enabled: true}", NULL, "trusted", "monitoring_enabled", "false", "sets it" },
		{ "cache: {cache: false}", NULL, "trusted", "cache", "true", "sets it" },
		{ "docker: {build: false}", NULL, "trusted", "docker_build", "true", "sets it" },
		{ "keep_code: all", NULL, "trusted", "keep_code", "none", "only the policy" },
		{ "workspace_mode: cow", NULL, "untrusted", "workspace_mode", "ro", NULL },
		/* Limits of resources stay what a trusted request may raise. */
		{ "mem_limit: 64m", NULL, "trusted", "mem_limit", "2g", NULL },
		{ "mem_limit: 64m", NULL, "unknown", "mem_limit", "65m", "use --trust trusted" },
	};
	struct policy *p = must_load_text("audit: required");

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_judged(&rows[i]);
	/* Neither is it by what is built in for trusted. */
	must_resolve(p, "trusted");
	assert_value("audit", "required");
	policy_free(p);
}

/* How code is judged is chosen by the person at the command line, until a file says something of it or of trust. */
static void test_who_may_loosen_inspection(void **state)
{
	static const struct judged rows[] = {
		{ "inspection: guard", NULL, "trusted", "inspection", "off", "sandbox.yaml:1 sets it" },
		{ "inspection: true", NULL, "unknown", "inspection", "report", "sandbox.yaml:1 sets it" },
		{ "inspection: guard", NULL, "unknown", "inspection", "strict", NULL },
		{ "trust_levels: {trusted: {inspection: guard}}", NULL, "trusted", "inspection", "off", "sets it" },
		{ "max_trust: trusted", NULL, "trusted", "inspection", "off", "set inspection in the policy file" },
		{ "default_trust: unknown", NULL, "unknown", "inspection", "off", "set inspection in the policy file" },
		{ "rules: {py-pickle: warn}", NULL, "trusted", "inspection", "off", "in the policy file" },
		{ "mem_limit: 64m", NULL, "unknown", "inspection", "off", "set inspection in the policy file" },
		{ "mem_limit: 64m", NULL, "trusted", "inspection", "off", NULL },
		{ NULL, NULL, "trusted", "inspection", "off", NULL },
		{ NULL, NULL, "unknown", "inspection", "off", NULL },
		{ NULL, NULL, "untrusted", "inspection", "report", NULL },
		{ NULL, "BRIG_INSPECTION=strict", "unknown", "inspection", "false", NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		check_judged(&rows[i]);
}

static void test_rules_of_policy_and_request(void **state)
{
	static const struct brig_option asked[] = { { "rules", "py-eval=block" },
						    { "rules", "sh-escape=note,go-cgo=warn" } };
	struct policy *p = must_load_text("security:\n  rules: {py-network: allow, sh-escape: block}\n");
	struct brig_error err = BRIG_ERROR_INIT;

	(void)state;
	must_resolve(p, NULL);
	assert_value("rules", "[py-network=allow, sh-escape=block]");
	assert_true(resolved.only_tighten);
	assert_int_equal(policy_resolve(p, NULL, asked, ARRAY_LEN(asked), &resolved, &err), 0);
	assert_value("rules", "[py-network=allow, sh-escape=block, py-eval=block, sh-escape=note, go-cgo=warn]");
	assert_int_equal(resolved.n_policy_rules, 2);
	policy_free(p);
	p = must_load(&(struct policy_sources){ 0 });
	assert_int_equal(policy_resolve(p, "untrusted", asked, ARRAY_LEN(asked), &resolved, &err), 0);
	assert_int_equal(resolved.n_policy_rules, 0);
	assert_false(resolved.only_tighten);
	policy_free(p);
}

static const struct {
	const char *text, *vars[3], *place, *part;
} loosening_environments[] = {
	{ "default_trust: unknown",
	  { "BRIG_MAX_TRUST=trusted" },
	  "BRIG_MAX_TRUST",
	  "from unknown, which sandbox.yaml:1" },
	{ "default_trust: unknown",
	  { "BRIG_DEFAULT_TRUST=trusted" },
	  "BRIG_DEFAULT_TRUST",
	  "would loosen default_trust" },
	{ "max_trust: unknown",
	  { "BRIG_DEFAULT_TRUST=trusted" },
	  "BRIG_DEFAULT_TRUST",
	  "is above max_trust 'unknown'" },
	{ "", { "BRIG_DEFAULT_TRUST=trusted", "BRIG_MAX_TRUST=unknown" }, "BRIG_DEFAULT_TRUST", "above max_trust" },
	{ "default_trust: trusted\nmax_trust: unknown", { NULL }, "sandbox.yaml:1:1", "above max_trust 'unknown'" },
	{ "backend: native", { "BRIG_BACKEND=docker" }, "BRIG_BACKEND", "would loosen backends" },
	{ "backend: native", { "BRIG_BACKEND=direct" }, "BRIG_BACKEND", "would loosen backends" },
	{ "backend: native", { "BRIG_ENABLE_SANDBOX=false" }, "BRIG_ENABLE_SANDBOX", "which sandbox.yaml:1" },
	{ "backend: auto", { "BRIG_FALLBACK=direct" }, "BRIG_FALLBACK", "would loosen fallback" },
	{ "max_trust: unknown", { "BRIG_INSPECTION=off" }, "BRIG_INSPECTION", "would loosen inspection" },
	{ "inspection: strict", { "BRIG_RULES=py-eval=allow" }, "BRIG_RULES", "would loosen rules" },
	{ "rules: {py-eval: alow}", { NULL }, "sandbox.yaml:1:8", "did you mean 'allow'?" },
	{ "rules: {py-eval: {a: b}}", { NULL }, "sandbox.yaml:1:9", "takes one word for each" },
	{ "rules: [py-eval]", { NULL }, "sandbox.yaml:1:8", "such as py-network=allow" },
	{ "inspection: guard", { "BRIG_INSPECTION=off" }, "BRIG_INSPECTION", "would loosen inspection" },
	{ "audit: required", { "BRIG_AUDIT=off" }, "BRIG_AUDIT", "would loosen audit" },
	{ "preset: strict", { "BRIG_PRESET=standard" }, "BRIG_PRESET", "looser than 'strict'" },
	{ "preset: strict", { "BRIG_SECCOMP_PROFILE=default" }, "BRIG_SECCOMP_PROFILE", "which preset strict sets" },
	{ "backend: []", { NULL }, "sandbox.yaml:1", "at least one" },
	{ "backend: [native, dokcer]", { NULL }, "sandbox.yaml:1", "did you mean 'docker'?" },
	{ "backend: docker\nbackends: [native]", { NULL }, "sandbox.yaml:1:1", "is not in backends [native]" },
	{ "trust_levels: {trusted: {max_trust: trusted}}",
	  { NULL },
	  "sandbox.yaml:1",
	  "cannot stand in a trust level" },
};

/* Whoever sets variables under somebody else's file is a requester. */
static void test_p1_environment_only_tightens(void **state)
{
	static const struct judged good[] = {
		{ "mem_limit: 64m", "BRIG_MEM_LIMIT=128m", NULL, NULL, NULL, NULL },
		{ "backend: auto", "BRIG_BACKEND=docker", NULL, NULL, NULL, NULL },
		{ "fallback: direct\nbackend: auto", "BRIG_FALLBACK=direct", NULL, NULL, NULL, NULL },
		{ "default_trust: unknown", "BRIG_DEFAULT_TRUST=untrusted", NULL, NULL, NULL, NULL },
		{ "pids_limit: 30", "BRIG_INSPECTION=off", NULL, NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(loosening_environments); i++) {
		struct policy_sources src = { .file = "etc/sandbox.yaml",
					      .text = loosening_environments[i].text,
					      .text_len = strlen(loosening_environments[i].text),
					      .environ = loosening_environments[i].vars };
		struct brig_error err = BRIG_ERROR_INIT;
		struct policy *p = NULL;

		if (policy_load(&src, &p, &diags, &err) != -BRIG_E_POLICY)
			fail_msg("row %zu was taken", i);
		assert_diag(loosening_environments[i].place, loosening_environments[i].part);
	}
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		check_judged(&good[i]);
}

static void test_free_accepts_null(void **state)
{
	(void)state;
	policy_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_presets),
		cmocka_unit_test(test_every_layer_wins_over_the_one_below),
		cmocka_unit_test(test_builtin_trust),
		cmocka_unit_test(test_untrusted_never_loosens_and_trusted_never_tightens),
		cmocka_unit_test(test_untrusted_of_the_file_stays_below_the_environment),
		cmocka_unit_test(test_cpu_time_follows_the_timeout),
		cmocka_unit_test(test_environment),
		cmocka_unit_test(test_every_key_has_a_variable),
		cmocka_unit_test(test_bad_environments),
		cmocka_unit_test(test_file_and_environment_complain_together),
		cmocka_unit_test(test_wishes),
		cmocka_unit_test(test_same_wish_twice),
		cmocka_unit_test(test_no_wish_loosens),
		cmocka_unit_test(test_p1_max_trust),
		cmocka_unit_test(test_most),
		cmocka_unit_test(test_p1_who_chose_the_trust),
		cmocka_unit_test(test_p1_backend_binds),
		cmocka_unit_test(test_p1_what_a_file_sets_binds),
		cmocka_unit_test(test_who_may_loosen_inspection),
		cmocka_unit_test(test_rules_of_policy_and_request),
		cmocka_unit_test(test_p1_environment_only_tightens),
		cmocka_unit_test(test_free_accepts_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
