/* SPDX-License-Identifier: Apache-2.0 */
/* Packages without cells: the table, configuration files, addresses, and files of projects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "lang/lang.h"
#include "packages/environment.h"
#include "packages/packages.h"
#include "temp_folder.h"

static char folder[256];

static int make_folder(void **state)
{
	(void)state;
	return temp_folder_make(folder, sizeof(folder), "packages");
}

static int remove_folder(void **state)
{
	(void)state;
	return temp_folder_remove(folder);
}

static void put(const char *name, const char *text)
{
	char path[512];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		(void)mkdir(path, 0755);
		*slash = '/';
	}
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	close(fd);
}

static const struct ecosystem *eco(const char *name)
{
	for (size_t i = 0; i < ecosystem_count; i++)
		if (str_eq(ecosystems[i].name, name))
			return &ecosystems[i];
	fail_msg("no ecosystem %s", name);
	return NULL;
}

/* ---- why it failed ----------------------------------------------------------------------------------- */

static void test_trouble_of_words(void **state)
{
	static const struct {
		const char *eco, *text, *part;
	} rows[] = {
		{ "pip", "ERROR: No matching distribution found for nosuch==9\n",
		  "nothing for this Python that is nosuch==9; check" },
		{ "pip", "SSLError(SSLCertVerificationError(1, '[SSL: CERTIFICATE_VERIFY_FAILED] certificate",
		  "not trusted; name" },
		/* It is said in the end of every failure, so the particular reason comes first. */
		{ "pip", "No matching distribution found for x\nSSLError(EOF", "TLS with the registry failed" },
		{ "pip", "/usr/bin/python3: No module named pip\n", "no pip beside" },
		{ "pip", "No matching distribution found for x\033[31m\n", "that is x; check" },
		{ "npm", "npm error code DEPTH_ZERO_SELF_SIGNED_CERT", "npm_registry" },
		{ "npm", "npm ERR! notarget No matching version found for hello@9.\n",
		  "no version that is hello@9; check" },
		{ "npm", "npm error 404 Not Found - GET http://h/nosuch\n", "does not know http://h/nosuch; check" },
		{ "go", "x509: certificate signed by unknown authority\n",
		  "(certificate signed by unknown authority); name" },
		{ "go", "dial tcp 127.0.0.1:9: connect: connection refused", "without a proxy" },
		{ "go", "No matching distribution found for x", NULL },
		{ "npm", "", NULL },
	};
	char why[512];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		bool told = packages_trouble_of_words(eco(rows[i].eco), rows[i].text, strlen(rows[i].text), why,
						      sizeof(why));

		assert_int_equal(told, rows[i].part != NULL);
		if (told && !strstr(why, rows[i].part))
			fail_msg("'%s' says '%s'", rows[i].text, why);
	}
}

static void test_trouble_of_hosts(void **state)
{
	struct network_row rows[] = {
		{ .host = "a.test", .port = 443, .allowed = true, .end = NETWORK_REACHED, .received_bytes = 9 },
		{ .host = "a.test", .port = 443, .allowed = true, .end = NETWORK_TIMED_OUT },
		{ .host = "b.test", .port = 443, .end = NETWORK_DENIED },
		{ .host = "c.test", .port = 80, .allowed = true, .end = NETWORK_UNRESOLVED },
	};
	struct network net = { .row = rows, .n = 3 };
	char why[512];

	(void)state;
	assert_false(packages_trouble_of_hosts(eco("pip"), &net, why,
					       sizeof(why))); /* once is no trouble, and refusals are told elsewhere */
	net.n = 4;
	assert_true(packages_trouble_of_hosts(eco("go"), &net, why, sizeof(why)));
	assert_string_equal(why, "the name c.test cannot be resolved on this host; check its DNS, or name a registry "
				 "of your own with go_proxy");
	rows[3].end = NETWORK_UNREACHABLE;
	assert_true(packages_trouble_of_hosts(eco("pip"), &net, why, sizeof(why)));
	assert_non_null(strstr(why, "no connection to c.test:80"));
	rows[0].received_bytes = 0;
	assert_true(packages_trouble_of_hosts(eco("npm"), &net, why, sizeof(why)));
	assert_non_null(strstr(why, "a.test:443 does not answer in time"));
}

/* ---- names ------------------------------------------------------------------------------------------- */

static int add_name(void *arg, const char *name)
{
	char *all = arg;

	(void)strcat(strcat(all, name), " ");
	return 0;
}

static void test_names(void **state)
{
	static const char *const pip[] = { "Re.quests[x]>=1,<2", "a; python_version > '3'", "https://h/x.whl",
					   "b == 1" };
	static const char *const npm[] = { "@s/n@1", "left-pad", "github:a/b" };
	static const char *const go[] = { "h.test/A/b@v1", "fmt" };
	const struct package_files none = { .n = 0 };
	char all[256] = "";

	(void)state;
	assert_int_equal(packages_each_name(eco("pip"), pip, ARRAY_LEN(pip), &none, add_name, all, NULL), 0);
	assert_int_equal(packages_each_name(eco("npm"), npm, ARRAY_LEN(npm), &none, add_name, all, NULL), 0);
	assert_int_equal(packages_each_name(eco("go"), go, ARRAY_LEN(go), &none, add_name, all, NULL), 0);
	assert_string_equal(all, "Re.quests a b @s/n left-pad h.test/A/b ");
	assert_true(ecosystem_has_own(eco("pip"), "os.path"));
	assert_true(ecosystem_has_own(eco("npm"), "fs/promises"));
	assert_true(ecosystem_has_own(eco("go"), "net/http"));
	assert_false(ecosystem_has_own(eco("go"), "h.test/a"));
	assert_false(ecosystem_has_own(eco("pip"), "osmium"));
}

/* ---- what an installer left ------------------------------------------------------------------------- */

static bool has(const char *ecosystem, const char *word, const char *manifest, const char *text)
{
	struct package_files files = { .n = manifest ? 1 : 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_FD tree = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc;

	if (manifest)
		files.file[0] = (struct plan_file){ .name = manifest, .data = text, .len = strlen(text) };
	rc = packages_present(eco(ecosystem), &word, word ? 1 : 0, &files, tree, &err);
	assert_true(rc == 0 || (rc == -BRIG_E_REFUSED && strstr(err.msg, "nothing of it is kept")));
	return rc == 0;
}

static void pk1_sets_hold_what_was_asked_for(void **state UNUSED)
{
	static const struct {
		const char *ecosystem, *word;
		bool there;
	} cases[] = {
		{ "pip", "Zope.Interface", true },
		{ "pip", "zope-interface==5.0", true },
		{ "pip", "zope_interface == 5.0.0", true },
		{ "pip", "zope.interface[extra]>=1,<9", true },
		{ "pip", "zope.interface==5.1", false },
		{ "pip", "other", false },
		{ "pip", "zope", false },
		{ "pip", "hollow", false },                     /* a folder without metadata */
		{ "pip", "other; python_version < '3'", true }, /* for pip to decide */
		{ "pip", "https://host.example/x.whl", true },  /* a name that is not known */
		{ "pip", "other @ https://host.example/x", true },
		{ "npm", "left", true },
		{ "npm", "left@^1.0.0", true },
		{ "npm", "@scope/right@2", true },
		{ "npm", "@scope/left", false },
		{ "npm", "right", false },
		{ "npm", "hollow", false },
		{ "npm", "user/repository", true },
		{ "npm", "git+https://host.example/x", true },
		{ "go", "host.example/Some/module@v1.0.0", true },
		{ "go", "host.example/Some/module/inner/package", true },
		{ "go", "host.example/some/module", false },
		{ "go", "host.example/other", false },
		{ "go", "fmt", true },
	};

	put("zope/interface.py", "x");
	put("zope.interface-5.0.dist-info/METADATA", "Name: zope.interface");
	put("hollow-1.0.dist-info/other", "x");
	put("node_modules/left/package.json", "{}");
	put("node_modules/@scope/right/package.json", "{}");
	put("node_modules/hollow/index.js", "x");
	put("mod/host.example/!some/module@v1.0.0/go.mod", "x");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (has(cases[i].ecosystem, cases[i].word, NULL, NULL) != cases[i].there)
			fail_msg("%s: %s", cases[i].ecosystem, cases[i].word);
	assert_true(has("pip", NULL, "requirements.txt",
			"# all\n-c limits.txt\nzope.interface==5.0 --hash=x \\\n  --hash=y\n"));
	assert_false(has("pip", NULL, "requirements.txt", "zope.interface\nother # needed\n"));
	assert_true(
		has("npm", NULL, "package.json",
		    "{\"dependencies\":{\"left\":\"1\",\"x\":\"file:../x\"},\"optionalDependencies\":{\"y\":\"1\"}}"));
	assert_false(has("npm", NULL, "package.json", "{\"dependencies\":{\"left\":\"1\",\"x\":\"1\"}}"));
	assert_true(has("go", NULL, "go.mod", "module m\n\nrequire host.example/Some/module v1.0.0 // indirect\n"));
	assert_false(has("go", NULL, "go.mod", "module m\n\nrequire (\n\thost.example/x v1.0.0\n)\n"));
	assert_true(has("go", NULL, "go.mod", "require host.example/x v1.0.0\nreplace host.example/x => ../x\n"));
}

static void pk1_metadata_alone_is_no_package(void **state UNUSED)
{
	put("lone-1.0.dist-info/METADATA", "Name: lone");
	assert_false(has("pip", "lone", NULL, NULL));
	put("lone.py", "x");
	assert_true(has("pip", "lone", NULL, NULL));
}

/* ---- the table ----------------------------------------------------------------------------------- */

static void rows_are_whole(void **state)
{
	(void)state;
	for (size_t i = 0; i < ecosystem_count; i++) {
		const struct ecosystem *e = &ecosystems[i];
		struct url u;

		assert_true(strlen(e->name) < 8); /* result_packages.ecosystem */
		assert_non_null(lang_by_name(e->languages[0]));
		assert_ptr_equal(ecosystem_of_language(e->languages[0]), e);
		assert_true(e->manifest && e->tool[0] && e->needs[0] && e->install && e->script && e->registry_env);
		assert_null(e->install_env[ARRAY_LEN(e->install_env) - 1]);
		assert_null(e->run_env[ARRAY_LEN(e->run_env) - 1]);
		assert_int_equal(strncmp(e->target, PACKAGES_DIR "/", strlen(PACKAGES_DIR) + 1), 0);
		assert_true(url_parse(e->default_registry, strlen(e->default_registry), &u));
		assert_false(u.plain);
	}
	assert_null(ecosystem_of_language("c"));
}

static void words_are_no_options(void **state)
{
	static const char *const good[] = { "requests", "numpy==1.26.4", "a[b,c]>=1,<2", "@scope/name@1",
					    "x @ https://h/x.whl" };
	static const char *const bad[] = { "", "-r", "--index-url=http://x", "a\nb", "a\x7f", "\xc3\xa4" };
	struct brig_error err = BRIG_ERROR_INIT;
	char big[PACKAGES_WORD_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_int_equal(packages_check_word(good[i], &err), 0);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(packages_check_word(bad[i], &err), -BRIG_E_USAGE);
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(packages_check_word(big, &err), -BRIG_E_USAGE);
}

/* ---- configuration files -------------------------------------------------------------------------- */

struct config_case {
	bool (*read)(const char *text, size_t len, char *dst, size_t size);
	const char *text, *value; /* NULL: nothing */
};

static const struct config_case config_cases[] = {
	{ pip_conf_index, "[global]\nindex-url = https://a/simple\n", "https://a/simple" },
	{ pip_conf_index, "[global]\r\nindex_url: \"https://a/simple\"\r\n", "https://a/simple" },
	{ pip_conf_index, "[install]\nindex-url=https://i\n[global]\nindex-url=https://g\n", "https://i" },
	{ pip_conf_index, "[global]\nindex-url=https://g\n[install]\nindex-url=https://i", "https://i" },
	{ pip_conf_index, "index-url = https://a\n", NULL }, /* in no section */
	{ pip_conf_index, "[list]\nindex-url = https://a\n", NULL },
	{ pip_conf_index, "[global]\n# index-url = https://a\n; index-url = https://b\n", NULL },
	{ pip_conf_index, "[global]\nextra-index-url = https://a\n", NULL },
	{ pip_conf_index, "[global]\nindex-url = https://a b\n", NULL },
	{ pip_conf_index, "[global]\nindex-url =\n", NULL },
	{ pip_conf_index, "", NULL },
	{ npmrc_registry, "registry=https://n/\n", "https://n/" },
	{ npmrc_registry, "fund=false\n registry = 'https://n/' \n", "https://n/" },
	{ npmrc_registry, "registry=https://a/\nregistry=https://b/\n", "https://b/" },
	{ npmrc_registry, "@scope:registry=https://n/\n", NULL },
	{ npmrc_registry, "registry=https://${HOST}/\n", NULL },
	{ npmrc_registry, "[x]\nregistry=https://n/\n", NULL },
	{ go_env_proxy, "GOFLAGS=-x\nGOPROXY=https://p|direct\n", "https://p|direct" },
	{ go_env_proxy, "GOPROXYS=https://p\n", NULL },
};

static void configuration_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(config_cases); i++) {
		const struct config_case *c = &config_cases[i];
		char value[64] = "";
		bool found = c->read(c->text, strlen(c->text), value, sizeof(value));

		if (found != (c->value != NULL) || (found && !str_eq(value, c->value)))
			fail_msg("case %zu: %s '%s'", i, found ? "found" : "not found", value);
	}
}

static void too_long_is_nothing(void **state)
{
	const char *text = "[global]\nindex-url = https://long-long-long\n";
	char value[8] = "";

	(void)state;
	assert_false(pip_conf_index(text, strlen(text), value, sizeof(value)));
	assert_string_equal(value, "");
}

/* ---- addresses ----------------------------------------------------------------------------------- */

static void addresses(void **state)
{
	static const struct {
		const char *text, *host;
		unsigned port, user_len;
	} good[] = {
		{ "https://pypi.org/simple", "pypi.org", 0, 0 },
		{ "http://127.0.0.1:8080/", "127.0.0.1", 8080, 0 },
		{ "HTTPS://u:p@host", "host", 0, 3 },
		{ "https://u:p@x@host:1/a@b", "host", 1, 5 },
		{ "http://[::1]:80/x", "[::1]", 80, 0 },
		{ "https://h?x", "h", 0, 0 },
	};
	static const char *const bad[] = { "",
					   "pypi.org",
					   "ftp://h/",
					   "https://",
					   "https:///x",
					   "http://h:",
					   "http://h:0/",
					   "http://h:65536",
					   "http://h:1x/",
					   "http://h o/",
					   "http://[::1",
					   "http://[x]/",
					   "http://h\n/",
					   "http://u:p@/x",
					   "file:///etc/passwd" };
	struct url u;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (!url_parse(good[i].text, strlen(good[i].text), &u))
			fail_msg("%s is refused", good[i].text);
		assert_int_equal(u.host_len, strlen(good[i].host));
		assert_memory_equal(u.host, good[i].host, u.host_len);
		assert_int_equal(u.port, good[i].port);
		assert_int_equal(u.user_len, good[i].user_len);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (url_parse(bad[i], strlen(bad[i]), &u))
			fail_msg("'%s' is accepted", bad[i]);
}

static void forget_environment(void)
{
	static const char *const names[] = {
		"PIP_INDEX_URL",       "PIP_CONFIG_FILE",       "XDG_CONFIG_HOME", "npm_config_registry",
		"NPM_CONFIG_REGISTRY", "NPM_CONFIG_USERCONFIG", "GOPROXY",         "GOENV"
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		unsetenv(names[i]);
	setenv("HOME", folder, 1);
}

/* The policy goes before the variable, that before the user's files, those before the default. */
static void who_is_asked_for_the_registry(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct registry r;

	(void)state;
	forget_environment();
	assert_int_equal(registry_find(eco("go"), "", &r, &err), 0);
	assert_string_equal(r.url, "https://proxy.golang.org");
	put(".npmrc", "registry=https://mine/\n");
	assert_int_equal(registry_find(eco("npm"), "", &r, &err), 0);
	assert_string_equal(r.url, "https://mine/");
	put(".config/pip/pip.conf", "[global]\nindex-url = https://conf/simple\n");
	assert_int_equal(registry_find(eco("pip"), "", &r, &err), 0);
	assert_string_equal(r.url, "https://conf/simple");
	setenv("PIP_INDEX_URL", "https://u:secret@variable/simple", 1);
	assert_int_equal(registry_find(eco("pip"), "", &r, &err), 0);
	assert_string_equal(r.url, "https://u:secret@variable/simple");
	assert_string_equal(r.shown, "https://***@variable/simple");
	assert_int_equal(registry_find(eco("pip"), "https://policy/simple", &r, &err), 0);
	assert_string_equal(r.url, "https://policy/simple");
	assert_int_equal(registry_find(eco("pip"), "ftp://u:secret@x", &r, &err), -BRIG_E_REFUSED);
	assert_null(strstr(err.msg, "secret"));
	unsetenv("PIP_INDEX_URL");
}

static void hosts_of_registries(void **state)
{
	struct setting_list hosts = { .n = 0 };
	struct brig_error err = BRIG_ERROR_INIT;
	struct registry r;

	(void)state;
	assert_int_equal(registry_find(eco("go"), "https://a.example,http://b:8080|direct", &r, &err), 0);
	assert_int_equal(registry_hosts(eco("go"), &r, &hosts, &err), 0);
	assert_int_equal(registry_hosts(eco("go"), &r, &hosts, &err), 0); /* each once */
	assert_int_equal(hosts.n, 2);
	assert_true(setting_list_has(&hosts, "a.example"));
	assert_true(setting_list_has(&hosts, "b:8080"));
	assert_int_equal(registry_find(eco("go"), "direct", &r, &err), -BRIG_E_REFUSED);
}

static void secrets_are_hidden(void **state)
{
	char text[] = "GET https://me:secret@h/x me:secret and me:secret";
	struct brig_error err = BRIG_ERROR_INIT;
	struct registry r;

	(void)state;
	assert_int_equal(registry_find(eco("pip"), "https://me:secret@h/simple", &r, &err), 0);
	registry_hide(&r, text, strlen(text));
	assert_string_equal(text, "GET https://*********@h/x ********* and *********");
}

/* ---- files of a project --------------------------------------------------------------------------- */

static int read_project(const char *name, struct package_files *f, struct brig_error *err)
{
	AUTO_FD dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	static const char *const hidden[] = { ".env", "secret" };
	const struct plan_workspace project = { .fd = dir, .hidden = hidden, .n_hidden = ARRAY_LEN(hidden) };

	assert_true(dir >= 0);
	return package_files_read(eco(name), &project, f, err);
}

static void assert_file(const struct package_files *f, size_t i, const char *name, const char *text)
{
	assert_true(i < f->n);
	assert_string_equal(f->file[i].name, name);
	assert_int_equal(f->file[i].len, strlen(text));
	assert_memory_equal(f->file[i].data, text, strlen(text));
}

static void only_what_is_needed_travels(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct package_files f;
	AUTO_FD dir = FD_NONE;

	(void)state;
	assert_int_equal(read_project("npm", &f, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "package.json"));
	put("package.json", "{}");
	put("package-lock.json", "{ }");
	put("index.js", "secret");
	put(".npmrc", "secret");
	assert_int_equal(read_project("npm", &f, &err), 0);
	assert_int_equal(f.n, 2);
	assert_file(&f, 0, "package.json", "{}");
	assert_file(&f, 1, "package-lock.json", "{ }");
	package_files_release(&f);
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_string_equal(ecosystem_of_project(dir)->name, "npm");
}

static void requirements_that_name_others(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct package_files f;

	(void)state;
	put("requirements.txt", "a==1 # x\n  -r sub/base.txt # more\n--constraint=./limits.txt\n-r https://h/x.txt\nb");
	put("sub/base.txt", "-r ../requirements.txt\n-rdeep/more.txt\n-c ../limits.txt\n-rx\n");
	put("sub/x", "");
	put("sub/deep/more.txt", "c\r\n");
	put("limits.txt", "c<2\n--requirements\n-e .\n");
	assert_int_equal(read_project("pip", &f, &err), 0);
	assert_int_equal(f.n, 5);
	assert_file(&f, 0, "requirements.txt",
		    "a==1 # x\n-r requirements-1.txt\n-c requirements-2.txt\n-r https://h/x.txt\nb\n");
	assert_file(&f, 1, "requirements-1.txt",
		    "-r requirements.txt\n-r requirements-3.txt\n-c requirements-2.txt\n-r requirements-4.txt\n");
	assert_file(&f, 2, "requirements-2.txt", "c<2\n--requirements\n-e .\n");
	assert_file(&f, 3, "requirements-3.txt", "c\r\n");
	assert_file(&f, 4, "requirements-4.txt", "");
	package_files_release(&f);
}

static void nothing_outside_is_read(void **state)
{
	static const char *const lines[] = { "-r ../other.txt\n", "-r /etc/passwd\n", "-r sub/../../x\n",
					     "-r missing.txt\n",  "-r link.txt\n",    "-r linked/x\n",
					     "-r pipe\n",         "-r .\n",           "-r \n" };
	char path[400];
	struct brig_error err = BRIG_ERROR_INIT;
	struct package_files f;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/link.txt", folder);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	(void)snprintf(path, sizeof(path), "%s/linked", folder);
	assert_int_equal(symlink("/etc", path), 0);
	(void)snprintf(path, sizeof(path), "%s/pipe", folder);
	assert_int_equal(mkfifo(path, 0644), 0);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		put("requirements.txt", lines[i]);
		if (read_project("pip", &f, &err) != -BRIG_E_REFUSED)
			fail_msg("'%s' is not refused", lines[i]);
	}
}

static void nothing_hidden_is_read(void **state)
{
	static const char *const lines[] = { "-r .env\n", "-r secret/x\n", "-c sub/../secret/x\n" };
	struct brig_error err = BRIG_ERROR_INIT;
	struct package_files f;

	(void)state;
	put(".env", "KEY=1\n");
	put("secret/x", "KEY=1\n");
	put(".envy", "a\n");
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		put("requirements.txt", lines[i]);
		assert_int_equal(read_project("pip", &f, &err), -BRIG_E_REFUSED);
		assert_non_null(strstr(err.msg, "hidden"));
	}
	put("requirements.txt", "-r .envy\n");
	assert_int_equal(read_project("pip", &f, &err), 0);
	package_files_release(&f);
}

static void too_many_files(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	AUTO_BUF text = BUF_INIT(4096);
	struct package_files f;

	(void)state;
	for (int i = 0; i < PACKAGES_FILES_MAX; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "r%d.txt", i);
		put(name, "");
		(void)buf_addf(&text, "-r %s\n", name);
	}
	put("requirements.txt", buf_str(&text));
	assert_int_equal(read_project("pip", &f, &err), -BRIG_E_REFUSED);
}

/* ---- documents of environments --------------------------------------------------------------------- */

#define HASH  "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FRONT "{\"version\": 1, \"name\": \"data\", \"ecosystem\": \"pip\", "
#define BACK                                                                                                       \
	"\"created\": \"2026-11-17T09:54:49.541Z\", \"brig\": \"0.1.0\", \"backend\": \"native\", "                \
	"\"trust\": \"unknown\", \"degraded\": [\"landlock\"], \"key\": \"" HASH "\", \"content\": \"" HASH "\", " \
	"\"made_for\": \"" HASH "\", \"files\": 7, \"bytes\": 562}"
#define DOCUMENT FRONT "\"packages\": [\"numpy==1.26\"], \"warm\": [\"numpy\", \"os.path\"], " BACK

/* The document with one part of it replaced. */
static char *document_with(const char *old, const char *new)
{
	const char *where = strstr(DOCUMENT, old);
	char *text;

	assert_non_null(where);
	assert_true(asprintf(&text, "%.*s%s%s", (int)(where - DOCUMENT), DOCUMENT, new, where + strlen(old)) > 0);
	return text;
}

static void environments_come_back(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct environment e, again;
	json_t *doc, *same;
	char *text;

	(void)state;
	assert_int_equal(environment_read(DOCUMENT, strlen(DOCUMENT), &e, &err), 0);
	assert_string_equal(e.name, "data");
	assert_string_equal(e.eco->name, "pip");
	assert_int_equal(e.n_packages, 1);
	assert_string_equal(e.packages[0], "numpy==1.26");
	assert_int_equal(e.n_warm, 2);
	assert_string_equal(e.warm[1], "os.path");
	assert_int_equal(e.missing, PROT_BIT(PROT_landlock));
	assert_int_equal(e.bytes, 562);
	doc = environment_json(&e);
	text = json_dumps(doc, 0);
	assert_int_equal(environment_read(text, strlen(text), &again, &err), 0);
	same = environment_json(&again);
	assert_true(json_equal(doc, same));
	json_decref(doc);
	json_decref(same);
	free(text);
	environment_release(&e);
	environment_release(&again);
}

static void environments_are_read_strictly(void **state)
{
	static const struct {
		const char *old, *new;
	} rows[] = {
		{ "\"version\": 1", "\"version\": 2" },
		{ "\"version\": 1, ", "" },
		{ "\"data\"", "\"Data\"" },
		{ "\"data\"", "\"../data\"" },
		{ "\"data\"", "\"none\"" },
		{ "\"data\"", "\"\"" },
		{ "\"data\"", "\"da\\u0000ta\"" },
		{ "\"pip\"", "\"cargo\"" },
		{ "\"numpy==1.26\"", "\"--index-url=x\"" },
		{ "\"numpy==1.26\"", "7" },
		{ "[\"numpy==1.26\"]", "[]" }, /* then it has no key */
		{ "\"os.path\"", "\"os;x\"" },
		{ "\"os.path\"", "\"\"" },
		{ "[\"numpy\", \"os.path\"]", "\"numpy\"" },
		{ "2026-11-17T09:54:49.541Z", "yesterday" },
		{ "2026-11-17T09:54:49.541Z", "2026-11-17" },
		{ "\"0.1.0\"", "null" },
		{ "\"unknown\"", "\"root\"" },
		{ "\"landlock\"", "\"luck\"" },
		{ "\"key\": \"0123", "\"key\": \"012" },
		{ "\"key\": \"0123", "\"key\": \"X123" },
		{ "\"files\": 7", "\"files\": -7" },
		{ "\"files\": 7", "\"files\": 7.5" },
		{ "\"files\": 7", "\"files\": 7, \"files\": 8" },
		{ "\"files\": 7", "\"more\": 1, \"files\": 7" },
		{ "562}", "562" },
		{ "562}", "562} {}" },
	};
	struct brig_error err = BRIG_ERROR_INIT;
	struct environment e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_FREE char *text = document_with(rows[i].old, rows[i].new);

		if (environment_read(text, strlen(text), &e, &err) != -BRIG_E_REFUSED)
			fail_msg("%s was read", text);
		assert_true(*err.msg && !e.eco && !e.packages);
	}
	assert_int_equal(environment_read("[]", 2, &e, &err), -BRIG_E_REFUSED);
	assert_int_equal(environment_read("", 0, &e, &err), -BRIG_E_REFUSED);
}

static void names_of_environments(void **state)
{
	static const char *const good[] = { "data", "0", "a.b_c-d", "py3.11" };
	static const char *const bad[] = { "",    "none", "Data", ".data", "-x",      "_x",
					   "a/b", "..",   "a b",  "a\n",   "\xc3\xa4" };
	char longest[ENVIRONMENT_NAME_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		assert_true(environment_is_name(good[i]));
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_false(environment_is_name(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[ENVIRONMENT_NAME_MAX + 1] = '\0';
	assert_false(environment_is_name(longest));
	longest[ENVIRONMENT_NAME_MAX] = '\0';
	assert_true(environment_is_name(longest));
	assert_true(warm_is_module("xml.etree") && warm_is_module("@scope/name") && warm_is_module("node:fs"));
	assert_false(warm_is_module("a,b") || warm_is_module("a b") || warm_is_module("1a") || warm_is_module("a;b") ||
		     warm_is_module("a'") || warm_is_module(""));
}

int main(void)
{
#define ROW(f) cmocka_unit_test_setup_teardown(f, make_folder, remove_folder)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trouble_of_words),
		cmocka_unit_test(test_trouble_of_hosts),
		cmocka_unit_test(test_names),
		cmocka_unit_test(rows_are_whole),
		cmocka_unit_test(words_are_no_options),
		cmocka_unit_test(configuration_is_read),
		cmocka_unit_test(too_long_is_nothing),
		ROW(pk1_sets_hold_what_was_asked_for),
		ROW(pk1_metadata_alone_is_no_package),
		cmocka_unit_test(addresses),
		ROW(who_is_asked_for_the_registry),
		cmocka_unit_test(hosts_of_registries),
		cmocka_unit_test(secrets_are_hidden),
		ROW(only_what_is_needed_travels),
		ROW(requirements_that_name_others),
		ROW(nothing_outside_is_read),
		ROW(nothing_hidden_is_read),
		ROW(too_many_files),
		cmocka_unit_test(environments_come_back),
		cmocka_unit_test(environments_are_read_strictly),
		cmocka_unit_test(names_of_environments),
	};
#undef ROW
	return cmocka_run_group_tests(tests, NULL, NULL);
}
