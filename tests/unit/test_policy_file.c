/* SPDX-License-Identifier: Apache-2.0 */
/* The policy file: what it may say, what it may not, and how it is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "policy_helpers.h"

/* ---- files that are right ------------------------------------------------------------------------ */

static const struct {
	const char *yaml, *key, *text;
} good_files[] = {
	{ "", "mem_limit", "512m" },
	{ "# only a comment\n", "mem_limit", "512m" },
	{ "---\n...\n", "mem_limit", "512m" },
	{ "{}", "mem_limit", "512m" },
	{ "\xef\xbb\xbfmem_limit: 1g\n", "mem_limit", "1g" },
	{ "mem_limit: \"1g\"\r\n", "mem_limit", "1g" },
	{ "mem_limit: 536870912", "mem_limit", "512m" },
	{ "mem_limit: 1.5g", "mem_limit", "1536m" },
	{ "mem_limit: 100 MiB", "mem_limit", "100m" },
	{ "mem_limit: 8388609", "mem_limit", "8388609" },
	{ "memory_mb: 64", "mem_limit", "64m" },
	{ "memory_mb: 1g", "mem_limit", "1g" },
	{ "resources: {mem_limit: 64m}", "mem_limit", "64m" },
	{ "resources:\n", "mem_limit", "512m" },
	{ "cpu_count: 2", "cpu_quota_percent", "200%" },
	{ "cpu_count: 0.5", "cpu_quota_percent", "50%" },
	{ "cpu_count: 75%", "cpu_quota_percent", "75%" },
	{ "cpu_quota_percent: 75%", "cpu_quota_percent", "75%" },
	{ "timeout: 120", "execution_timeout_ms", "120s" },
	{ "timeout: 1.5", "execution_timeout_ms", "1500ms" },
	{ "timeout: 2m", "execution_timeout_ms", "120s" },
	{ "timeouts: {timeout: 500ms}", "execution_timeout_ms", "500ms" },
	{ "execution_timeout_ms: 250", "execution_timeout_ms", "250ms" },
	{ "disk_io_mb: 10", "disk_limit", "10m" },
	{ "output_limit: 0", "output_limit", "0" },
	{ "pids_limit: 2", "pids_limit", "2" },
	{ "pids_limit: 32768", "pids_limit", "32768" },
	{ "security_opt: [\"no-new-privileges:true\"]", "security_opt", "[no-new-privileges]" },
	{ "security: {cap_drop: ALL, read_only: yes}", "cap_drop", "[ALL]" },
	{ "cap_drop: [all]", "cap_drop", "[ALL]" },
	{ "user: \"65534:65534\"", "user", "65534:65534" },
	{ "user: 1:4294967294", "user", "1:4294967294" },
	{ "user: node", "user", "node" },
	{ "security: {user: \"sandbox:sandbox\"}", "user", "sandbox:sandbox" },
	{ "user: \"www-data:33\"", "user", "www-data:33" },
	{ "seccomp_profile: strict", "seccomp_profile", "strict" },
	{ "network: {mode: none, whitelist: [pk.example, '*.example.org', 'a.b:8443']}", "whitelist",
	  "[pk.example, *.example.org, a.b:8443]" },
	{ "whitelist:\n", "whitelist", "[]" },
	{ "monitoring: {enabled: false, interval_ms: 250}", "monitoring_interval_ms", "250ms" },
	{ "monitoring: {monitoring_enabled: off}", "monitoring_enabled", "false" },
	{ "compile: {timeout_ms: 10s, memory: 256m}", "compile_memory", "256m" },
	{ "allow_degraded: [landlock, swap_limit]", "allow_degraded", "[landlock, swap_limit]" },
	{ "network_enabled: false", "network_mode", "none" },
	{ "security: {network_enabled: false, enable_sandbox: true, docker_image: \"python:3\"}", "docker_image",
	  "python:3" },
	{ "security: {readonly_rootfs: true, no_new_privileges: true, drop_all_capabilities: true}", "cap_drop",
	  "[ALL]" },
	{ "no_new_privileges: yes", "security_opt", "[no-new-privileges]" },
	{ "resources: {memory_limit: 256m, cpu_quota: 150000, timeout: 10}", "cpu_quota_percent", "150%" },
	{ "memory_limit: 256m", "mem_limit", "256m" },
	{ "cpu_quota: 25%", "cpu_quota_percent", "25%" },
	{ "max_execution_time: 12", "execution_timeout_ms", "12s" },
	{ "resources: {timeout: 9}", "execution_timeout_ms", "9s" },
	{ "docker: {requirements: [numpy, pandas==2.1]}", "docker_requirements", "[numpy, pandas==2.1]" },
	{ "docker_image: registry.example/py@sha256:0123", "docker_image", "registry.example/py@sha256:0123" },
	{ "rootfs: /srv/..root", "rootfs", "/srv/..root" },
	{ "preset: strict", "mem_limit", "256m" },
	{ "preset: strict\nmem_limit: 300m", "mem_limit", "300m" },
	{ "trust_levels:\n  unknown: {mem_limit: 64m}\n", "mem_limit", "64m" },
	{ "trust_levels:\n  unknown: {resources: {mem_limit: 64m}}\n", "mem_limit", "64m" },
	{ "trust_levels: {trusted: {}, untrusted: , unknown: ~}", "mem_limit", "512m" },
	{ "default_trust: untrusted", "mem_limit", "256m" },
};

static void test_good_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good_files); i++) {
		struct policy *p = must_load_text(good_files[i].yaml);

		must_resolve(p, NULL);
		assert_value(good_files[i].key, good_files[i].text);
		policy_free(p);
	}
}

/* ---- files that are wrong ------------------------------------------------------------------------ */

static const struct {
	const char *yaml, *place, *part;
} bad_files[] = {
	/* keys */
	{ "resources:\n  mem_limt: 1g\n", "sandbox.yaml:2:3",
	  "unknown key 'mem_limt' in resources; did you mean 'mem_limit'?" },
	{ "a: 1\nmem_limt: 1g\n", ":2:1", "unknown key 'mem_limt'; did you mean 'mem_limit'?" },
	{ "resorces: {}", ":1:1", "did you mean 'resources'?" },
	{ "trust_level: {}", ":1:1", "did you mean 'trust_levels'?" },
	{ "monitoring: {intervall_ms: 3}", ":1:14", "did you mean 'interval_ms'?" },
	{ "security: {memory_bm: 3}", ":1:12", "did you mean 'memory_mb'?" },
	{ "\"\\e[31mred\": 1", ":1:1", "unknown key '?[31mred'" },
	{ "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa: 1", ":1:1",
	  "unknown key of 80" },
	{ "? [a, b]\n: 1\n", ":1:3", "a key must be a plain word" },
	{ "<<: {mem_limit: 1g}", ":1:1", "unknown key '<<'" },
	{ "privileged: true", ":1:1", "'privileged' is refused" },
	{ "cap_add: [SYS_ADMIN]", ":1:1", "never holds a capability" },
	{ "volumes: [\"/:/host\"]", ":1:1", "shares no directory" },
	{ "security: {mem_limit: 1g}", ":1:12", "mem_limit belongs under resources or at the top, not under security" },
	{ "resources: {backend: native}", ":1:13", "backend belongs at the top, not under resources" },
	{ "trust_levels: {trusted: {trust_levels: {}}}", ":1:26", "top of the file only" },
	{ "trust_levels: {trusted: {preset: strict}}", ":1:26", "top of the file only" },
	{ "trust_levels: {trusted: {default_trust: trusted}}", ":1:26", "cannot stand in a trust level" },
	{ "trust_levels: {trustd: {}}", ":1:16", "unknown trust level 'trustd'" },
	{ "trust_levels: {trustd: {}}", ":1:16", "did you mean 'trusted'?" },
	{ "preset: strikt", ":1:9", "did you mean 'strict'?" },
	{ "preset: [strict]", ":1:9", "preset takes the name" },
	/* twice */
	{ "mem_limit: 1g\nmem_limit: 2g\n", ":2:1", "mem_limit is set twice, first in line 1, column 1" },
	{ "mem_limit: 1g\nresources:\n  memory_mb: 5\n", ":3:3",
	  "memory_mb sets what mem_limit in line 1, column 1 sets already" },
	{ "mem_limit: bad\nmem_limit: 2g\n", ":2:1", "set twice" },
	{ "resources: {}\nresources: {}\n", ":2:1", "resources appears twice, first in line 1" },
	{ "preset: strict\npreset: strict\n", ":2:1", "preset appears twice" },
	{ "trust_levels: {}\ntrust_levels: {}\n", ":2:1", "trust_levels appears twice" },
	{ "trust_levels: {trusted: {}, trusted: {}}", ":1:29", "trusted appears twice" },
	{ "monitoring: {enabled: true, monitoring_enabled: true}", ":1:29", "sets what enabled" },
	/* kinds, units and ranges */
	{ "mem_limit: lots", ":1:12", "mem_limit takes bytes: 536870912, 512m or 1g; 'lots' is not that" },
	{ "mem_limit: -5", ":1:12", "takes bytes" },
	{ "mem_limit: .nan", ":1:12", "takes bytes" },
	{ "mem_limit: .inf", ":1:12", "takes bytes" },
	{ "mem_limit: 1e9", ":1:12", "takes bytes" },
	{ "mem_limit: 0x1000", ":1:12", "takes bytes" },
	{ "mem_limit: 1_000_000", ":1:12", "takes bytes" },
	{ "mem_limit: 0777777777", ":1:12", "takes bytes" },
	{ "mem_limit: 99999999999999999999999", ":1:12", "takes bytes" },
	{ "mem_limit: 18446744073709551615g", ":1:12", "takes bytes" },
	{ "mem_limit:", ":1:11", "takes bytes" },
	{ "mem_limit: ~", ":1:12", "takes bytes" },
	{ "mem_limit: [1g]", ":1:12", "mem_limit takes one value, not a list" },
	{ "mem_limit: {max: 1g}", ":1:12", "takes a value, not further keys" },
	{ "mem_limit: 1m", ":1:12", "is too small" },
	{ "mem_limit: 2000g", ":1:12", "too large: it takes bytes: 536870912, 512m or 1g; from 8m to 1024g" },
	{ "memory_mb: x", ":1:12", "memory_mb takes megabytes" },
	{ "timeout: 0", ":1:10", "too small: it takes seconds" },
	{ "timeout: 30x", ":1:10", "timeout takes seconds: 30, 1.5, or with a unit 500ms, 2m" },
	{ "execution_timeout_ms: 1.5", ":1:23", "takes milliseconds" },
	{ "timeout: 1:30", ":1:10", "takes seconds" },
	{ "pids_limit: 64.5", ":1:13", "'64.5' is not that" },
	{ "mem_limit: 9000000.5", ":1:12", "is not that" },
	{ "pids_limit: 1.5", ":1:13", "takes a whole number" },
	{ "pids_limit: 64k", ":1:13", "takes a whole number" },
	{ "pids_limit: 1", ":1:13", "too small" },
	{ "pids_limit: 32769", ":1:13", "too large" },
	{ "cpu_count: 0", ":1:12", "too small" },
	{ "cpu_count: 0.5 cpus", ":1:12", "a number of cpus" },
	{ "cpu_quota_percent: 5x%", ":1:20", "percent of one cpu" },
	{ "read_only: maybe", ":1:12", "takes true or false" },
	{ "backend: nativ", ":1:10", "did you mean 'native'?" },
	{ "resources: 5", ":1:12", "resources is a heading" },
	{ "resources: [mem_limit]", ":1:12", "resources is a heading" },
	{ "whitelist: {a: b}", ":1:12", "not further keys" },
	{ "whitelist: [[a]]", ":1:13", "must be one word" },
	/* rules of single keys */
	{ "security_opt: []", ":1:15", "must hold no-new-privileges" },
	{ "security_opt: [seccomp=unconfined, no-new-privileges]", ":1:15", "seccomp_profile" },
	{ "security_opt: [no-new-privileges, apparmor=x]", ":1:15", "'apparmor=x' is not known" },
	{ "cap_drop: [NET_RAW]", ":1:11", "must be [\"ALL\"]" },
	{ "cap_drop: []", ":1:11", "must be [\"ALL\"]" },
	{ "cap_drop: [ALL, NET_RAW]", ":1:11", "must be [\"ALL\"]" },
	{ "read_only: false", ":1:12", "read_only must be true" },
	{ "user: root", ":1:7", "uid:gid" },
	{ "user: \"node:0\"", ":1:7", "never 0" },
	{ "user: \"node:root\"", ":1:7", "never 0 or root" },
	{ "user: a b", ":1:7", "uid:gid" },
	{ "user: \"-x\"", ":1:7", "uid:gid" },
	{ "user: \"a:b:c\"", ":1:7", "uid:gid" },
	{ "network_enabled: true", ":1:18", "name the hosts" },
	{ "readonly_rootfs: false", ":1:18", "read" },
	{ "no_new_privileges: [true]", ":1:20", "takes true or false" },
	{ "drop_all_capabilities: false", ":1:24", "never holds a capability" },
	{ "user: \"0:0\"", ":1:7", "never 0" },
	{ "user: \"1000:0\"", ":1:7", "never 0" },
	{ "user: \"1000\"", ":1:7", "uid:gid" },
	{ "user: \"1000:4294967295\"", ":1:7", "4294967294" },
	{ "seccomp_profile: unconfined", ":1:18", "system call filter" },
	{ "network_mode: host", ":1:15", "host's network" },
	{ "network_mode: bridge", ":1:15", "open network; use none or allowlist" },
	{ "whitelist: [\"http://pk.example/\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"*\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"a.*.b\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"a..b\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"-a.b\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"a-.b\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"a.b:0\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"a.b:65536\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"a.b:\"]", ":1:12", "is not a host" },
	{ "whitelist: [\"\"]", ":1:12", "empty item" },
	{ "allow_degraded: [landlok]", ":1:17", "did you mean 'landlock'?" },
	{ "allow_degraded: [seccomp]", ":1:17", "cannot name seccomp" },
	{ "allow_degraded: [no_capabilities]", ":1:17", "cannot name no_capabilities" },
	{ "allow_degraded: [no_new_privs]", ":1:17", "cannot name no_new_privs" },
	{ "allow_degraded: [mount_ns]", ":1:17", "cannot name mount_ns" },
	{ "allow_degraded: [pid_ns]", ":1:17", "cannot name pid_ns" },
	{ "allow_degraded: [user_ns]", ":1:17", "cannot name user_ns" },
	{ "allow_degraded: [net_ns]", ":1:17", "cannot name net_ns" },
	{ "docker_image: --privileged", ":1:15", "image reference" },
	{ "docker: {requirements: [numpy, -r x]}", ":1", "'-r x' is not one" },
	{ "docker_image: a b", ":1:15", "image reference" },
	{ "docker_image: \"a\\nb\"", ":1:15", "control characters" },
	{ "rootfs: srv", ":1:9", "absolute path" },
	{ "rootfs: /srv/../etc", ":1:9", "without '..'" },
	{ "rootfs: //./", ":1:9", "host's own root" },
	{ "rootfs: /proc/1/root", ":1:9", "must not lie in /proc" },
	{ "trust_levels: {untrusted: {mem_limit: 1g}}", ":1:28", "untrusted would loosen mem_limit to 1g from 512m" },
	{ "mem_limit: 64m\ntrust_levels: {untrusted: {mem_limit: 65m}}", ":2:28", "from 64m" },
	{ "trust_levels: {untrusted: {enable_sandbox: false}}", ":1:28", "would loosen enable_sandbox" },
	{ "trust_levels: {untrusted: {allow_degraded: [landlock]}}", ":1:28", "would loosen allow_degraded" },
	/* YAML itself */
	{ "mem_limit: &a 1g\n", ":1:12", "anchors" },
	{ "mem_limit: *a\n", ":1:12", "aliases" },
	{ "*a : 1g\n", ":1:1", "aliases" },
	{ "whitelist: [*a]", ":1:13", "aliases" },
	{ "mem_limit: !!int 5\n", ":1:12", "tags" },
	{ "resources: !x {}\n", ":1:12", "tags" },
	{ "%TAG ! tag:x,2000:\n---\na: 1\n", ":1:1", "directives" },
	{ "\xef\xbb\xbf%YAML 1.2\n---\n", ":1:2", "directives" },
	{ "mem_limit: 1g\r%YAML 1.2\n", ":1:15", "directives" },
	{ "mem_limit: 1g\xe2\x80\xa8%YAML 1.2\n", ":1:15", "directives" },
	{ "- mem_limit\n", ":1:1", "'key: value' lines" },
	{ "just words", ":1:1", "'key: value' lines" },
	{ "mem_limit: 1g\n---\nmem_limit: 1g\n", ":2:1", "second document" },
	{ "a: [1, 2\n", ":2:1", "not valid YAML" },
	{ "mem_limit: \"1g\n", ":2:1", "not valid YAML" },
	{ "resources:\n\tmem_limit: 1g\n", ":2:1", "a tab stands where YAML allows only spaces" },
	{ "[[[[[[[[[[[[[[[[[[[[[[[[[[", ":1:9", "nested more than 8 deep" },
	{ "a: {b: {c: {d: {e: {f: {g: {h: {i: 1}}}}}}}}", ":1:32", "nested more than 8 deep" },
	{ "mem_limit: \"1g\\0\"", ":1:12", "NUL character" },
	{ "\"mem\\0limit\": 1g", ":1:1", "NUL character" },
	{ "user: \"\xc3\x28\"", ":1:8", "byte 0xc3 is not valid UTF-8" },
	{ "mem_limit: 1g\n\xff\xfe", ":2:1", "byte 0xff is not valid UTF-8" },
	{ "mem_limit: 1g\x01", ":1:14", "not valid YAML: control characters are not allowed" },
};

static void test_bad_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad_files); i++) {
		struct brig_error err = BRIG_ERROR_INIT;
		struct policy *p = NULL;

		if (load_text(bad_files[i].yaml, strlen(bad_files[i].yaml), &p, &err) != -BRIG_E_POLICY)
			fail_msg("accepted: %s", bad_files[i].yaml);
		assert_null(p);
		assert_int_equal(err.code, BRIG_E_POLICY);
		assert_diag(bad_files[i].place, bad_files[i].part);
	}
}

static void test_all_errors_at_once(void **state)
{
	static const char text[] =
		"mem_limt: 1g\npids_limit: none\nsecurity:\n  read_only: no\n  user: root\n  usr: x\n"
		"trust_levels:\n  trusted:\n    timeout: soon\n";
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	assert_int_equal(load_text(text, strlen(text), &p, &err), -BRIG_E_POLICY);
	assert_int_equal(diags.n, 6);
	assert_string_equal(err.msg,
			    "etc/sandbox.yaml:1:1: unknown key 'mem_limt'; did you mean 'mem_limit'? (and 5 more)");
	assert_string_equal(diags.row[5].place, "etc/sandbox.yaml:9:14");
	assert_int_equal(diags.row[5].line, 9);
	assert_int_equal(diags.row[5].column, 14);
}

static void test_diags_are_bounded(void **state)
{
	AUTO_BUF text = BUF_INIT(1 * MiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	for (int i = 0; i < 1000; i++)
		(void)buf_addf(&text, "key%d: 1\n", i);
	assert_int_equal(load_text(text.data, text.len, &p, &err), -BRIG_E_POLICY);
	assert_int_equal(diags.n, POLICY_DIAGS_MAX);
	assert_int_equal(diags.dropped, 900);
}

static void test_alias_bomb(void **state)
{
	AUTO_BUF text = BUF_INIT(1 * MiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	(void)buf_adds(&text, "l0: &l0 [x, x]\n");
	for (int i = 1; i < 60; i++)
		(void)buf_addf(&text, "l%d: &l%d [*l%d, *l%d, *l%d]\n", i, i, i - 1, i - 1, i - 1);
	assert_int_equal(load_text(text.data, text.len, &p, &err), -BRIG_E_POLICY);
	assert_diag(":1:5", "anchors");
	assert_diag(":2:10", "aliases");
}

static void test_nul_byte(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	assert_int_equal(load_text("pids_limit: 64\na\0b", 18, &p, &err), -BRIG_E_POLICY);
	assert_diag(":2:2", "NUL byte");
}

static void test_long_list(void **state)
{
	AUTO_BUF text = BUF_INIT(1 * MiB);
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	(void)buf_adds(&text, "whitelist:\n");
	for (int i = 0; i < SETTING_LIST_MAX; i++)
		(void)buf_addf(&text, "  - h%d.example.org\n", i);
	assert_int_equal(load_text(text.data, text.len, &p, &err), 0);
	policy_free(p);
	p = NULL;
	(void)buf_adds(&text, "  - one.more\n");
	assert_int_equal(load_text(text.data, text.len, &p, &err), -BRIG_E_POLICY);
	assert_diag(":66:5", "at most 64 items");
}

/* ---- files as files ------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/unit-test-policy-XXXXXX";

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static const char *in_folder(const char *name, char *dst, size_t size)
{
	(void)snprintf(dst, size, "%s/%s", folder, name);
	return dst;
}

static void assert_file_refused(const char *path, const char *part)
{
	struct policy_sources src = { .file = path };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	assert_int_equal(policy_load(&src, &p, &diags, &err), -BRIG_E_POLICY);
	assert_diag(path, part);
	assert_null(p);
}

static void test_special_files(void **state)
{
	char path[256];

	(void)state;
	assert_file_refused(in_folder("missing", path, sizeof(path)), "No such file");
	assert_file_refused(folder, "is a directory");
	assert_file_refused("/dev/null", "is a character device");
	assert_int_equal(mkfifo(in_folder("fifo", path, sizeof(path)), 0600), 0);
	assert_file_refused(path, "is a FIFO"); /* and does not wait for a writer */
	assert_int_equal(unlink(path), 0);
}

static void test_file_size(void **state)
{
	struct policy_sources src = { 0 };
	struct policy *p;
	char path[256];
	int fd;

	(void)state;
	src.file = in_folder("large", path, sizeof(path));
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, "mem_limit: 64m\n#", 16), 0);
	p = must_load(&src);
	must_resolve(p, NULL);
	assert_origin("mem_limit", LAYER_FILE, "large:1");
	policy_free(p);
	assert_int_equal(ftruncate(fd, 10 * (off_t)MiB), 0);
	assert_file_refused(path, "larger than 1024 KB");
	assert_int_equal(ftruncate(fd, (off_t)MiB), 0); /* just small enough: then its NULs are the complaint */
	assert_file_refused(path, "NUL byte");
	assert_int_equal(close(fd), 0);
	assert_int_equal(unlink(path), 0);
}

/* Whoever states a limit and no maximum means the limit; a maximum that is stated counts. */
static void test_maxima_of_a_file(void **state)
{
	static const struct {
		const char *file, *trust, *value;
		int code;
	} rows[] = {
		{ "timeout: 10\n", NULL, "11", -BRIG_E_REFUSED },
		{ "timeout: 10\nmax_timeout: 20\n", NULL, "20", 0 },
		{ "timeout: 10\nmax_timeout: 20\n", NULL, "21", -BRIG_E_REFUSED },
		{ "max_timeout: 40\n", NULL, "41", -BRIG_E_REFUSED },
		{ "max_timeout: 40\n", "untrusted", "16", -BRIG_E_REFUSED },
		{ "preset: strict\n", NULL, "16", -BRIG_E_REFUSED },
		{ "preset: standard\n", NULL, "31", -BRIG_E_REFUSED },
		{ "trust_levels: {unknown: {timeout: 10}}\n", NULL, "11", -BRIG_E_REFUSED },
		{ "mem_limit: 1g\n", NULL, "60", 0 },
		{ "resources: {timeout: 10, max_timeout: 20}\n", NULL, "20", 0 },
		{ "security: {max_execution_time: 10}\n", NULL, "11", -BRIG_E_REFUSED },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct brig_option o = { "timeout", rows[i].value };
		struct brig_error err = BRIG_ERROR_INIT;
		struct policy *p = must_load_text(rows[i].file);

		if (policy_resolve(p, rows[i].trust, &o, 1, &resolved, &err) != rows[i].code)
			fail_msg("%s: timeout %s: %s", rows[i].file, rows[i].value, err.msg);
		policy_free(p);
	}
}

/* What a host lacks is for whoever starts brig to decide, unless a file decides. */
static void test_degraded_without_a_file(void **state)
{
	static const struct brig_option o = { "allow_degraded", "landlock,time_ns" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct policy *p = NULL;

	(void)state;
	assert_int_equal(policy_load(&(struct policy_sources){ .file = NULL }, &p, NULL, &err), 0);
	assert_int_equal(policy_resolve(p, "untrusted", &o, 1, &resolved, &err), 0);
	policy_free(p);
	p = must_load_text("timeout: 10\n");
	assert_int_equal(policy_resolve(p, "trusted", &o, 1, &resolved, &err), -BRIG_E_REFUSED);
	policy_free(p);
	p = must_load_text("allow_degraded: [time_ns, landlock, uts_ns]\n");
	assert_int_equal(policy_resolve(p, NULL, &o, 1, &resolved, &err), 0);
	policy_free(p);
}

/* An image leaves backend auto, which then asks docker first (test_select.c); it overrules nobody. */
static void test_image_and_backend(void **state)
{
	static const char *const vars[] = { "SECURITY_DOCKER_IMAGE=python:3", NULL };
	static const struct {
		const char *file, *backend;
	} rows[] = { { "timeout: 5\n", "auto" }, { "backend: auto\n", "auto" }, { "backend: native\n", "native" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct policy_sources src = { .text = rows[i].file,
						    .text_len = strlen(rows[i].file),
						    .environ = vars };
		struct brig_error err = BRIG_ERROR_INIT;
		struct policy *p = NULL;

		assert_int_equal(policy_load(&src, &p, NULL, &err), 0);
		must_resolve(p, NULL);
		assert_string_equal(backend_kind_name[resolved.set.backend], rows[i].backend);
		policy_free(p);
	}
}

/* The words of policies for other sandboxes, all in one file. */
static void test_words_of_others(void **state)
{
	static const struct {
		const char *key, *value;
	} rows[] = {
		{ "enable_sandbox", "true" },
		{ "docker_image", "python:3.11-slim" },
		{ "network_mode", "none" },
		{ "read_only", "true" },
		{ "security_opt", "[no-new-privileges]" },
		{ "cap_drop", "[ALL]" },
		{ "mem_limit", "512m" },
		{ "cpu_quota_percent", "50%" },
		{ "execution_timeout_ms", "45s" },
	};
	struct policy *p = must_load_text("security:\n"
					  "  enable_sandbox: true\n"
					  "  docker_image: \"python:3.11-slim\"\n"
					  "  network_enabled: false\n"
					  "  readonly_rootfs: true\n"
					  "  no_new_privileges: true\n"
					  "  drop_all_capabilities: true\n"
					  "  memory_limit: \"512m\"\n"
					  "  cpu_quota: 50000\n"
					  "resources:\n"
					  "  timeout: 45\n");

	(void)state;
	must_resolve(p, NULL);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_value(rows[i].key, rows[i].value);
		assert_int_equal(resolved.origin[key_named(rows[i].key)].layer, LAYER_FILE);
	}
	policy_free(p);
}

static void test_sample_file(void **state)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	static struct policy_resolved plain;
	struct policy_sources none = { 0 }, sample = { 0 };
	struct policy *p;
	char path[4096];

	(void)state;
	if (!root)
		skip();
	(void)snprintf(path, sizeof(path), "%s/config/sandbox.yaml", root);
	sample.file = path;
	for (enum trust t = 0; t < TRUST_COUNT; t++) {
		p = must_load(&none);
		must_resolve(p, trust_name[t]);
		policy_free(p);
		plain = resolved;
		p = must_load(&sample);
		must_resolve(p, trust_name[t]);
		policy_free(p);
		/* The sample states the defaults; its whitelist is there to show the form. */
		memset(&resolved.set.whitelist, 0, sizeof(resolved.set.whitelist));
		for (enum setting_key k = 0; k < SETTING_COUNT; k++) {
			char a[8192], b[8192];

			assert_string_equal(policy_value_text(&plain.set, k, a, sizeof(a)),
					    policy_value_text(&resolved.set, k, b, sizeof(b)));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good_files),         cmocka_unit_test(test_bad_files),
		cmocka_unit_test(test_all_errors_at_once), cmocka_unit_test(test_diags_are_bounded),
		cmocka_unit_test(test_alias_bomb),         cmocka_unit_test(test_nul_byte),
		cmocka_unit_test(test_long_list),          cmocka_unit_test(test_special_files),
		cmocka_unit_test(test_file_size),          cmocka_unit_test(test_sample_file),
		cmocka_unit_test(test_maxima_of_a_file),   cmocka_unit_test(test_degraded_without_a_file),
		cmocka_unit_test(test_image_and_backend),  cmocka_unit_test(test_words_of_others),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
