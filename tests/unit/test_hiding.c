/* SPDX-License-Identifier: Apache-2.0 */
/* Which files of a project are hidden: by links, by hard links, by names in any case, by what is in them. */
#include "workspace_bed.h"

#include "workspace/resolve.h"
#include "workspace/secrets.h"

static bool lists(const struct plan_workspace *p, const char *path)
{
	for (size_t i = 0; i < p->n_hidden; i++)
		if (str_eq(p->hidden[i], path))
			return true;
	return false;
}

/* Exactly these are hidden; the list ends with NULL. */
static void assert_hidden(const char *const *want)
{
	struct workspace *w = open_project();
	const struct plan_workspace *p = workspace_plan(w);
	size_t n = 0;

	for (; want[n]; n++)
		if (!lists(p, want[n]))
			fail_msg("'%s' is shown", want[n]);
	if (p->n_hidden != n)
		fail_msg("%zu paths are hidden, not %zu: '%s' and others", p->n_hidden, n, p->hidden[0]);
	workspace_close(w);
}
#define ASSERT_HIDDEN(...) assert_hidden((const char *const[]){ __VA_ARGS__, NULL })

static void put_twin(const char *path, const char *of)
{
	assert_int_equal(linkat(top, of, top, path, 0), 0);
}

/* ---- links ------------------------------------------------------------------------------------- */

static void w3_link_through_a_linked_folder(void **state)
{
	(void)state;
	put("project/config/production", "TOKEN=1");
	put("project/config/other", "x");
	put_link("project/cfg", "config");
	put_link("project/.env", "cfg/production");
	ASSERT_HIDDEN("config/production");
}

static void w3_chains_of_links(void **state)
{
	(void)state;
	put("project/a/b/c/secret", "x");
	put_link("project/one", "a/b");
	put_link("project/a/two", "../one/c");
	put_link("project/three", "a/two/../c/secret");
	put_link("project/.env", "three");
	put_link("project/.env.loop", ".env.loop");
	put_link("project/.env.gone", "nothing/here");
	put_link("project/.env.up", "../../../../../etc/passwd");
	ASSERT_HIDDEN("a/b/c/secret");
}

static void w3_absolute_links(void **state)
{
	(void)state;
	put("project/config/cell", "x");
	put("project/config/host", "x");
	put("project/config/back", "x");
	put_link("project/.env", "/workspace/config/cell");
	put_link("project/.env.host", in_folder("project/config/host"));
	put_link("project/.env.back", "../workspace/config/back");
	put_link("project/.env.root", "/etc/passwd");
	ASSERT_HIDDEN("config/cell", "config/host", "config/back");
}

static void w3_links_to_folders(void **state)
{
	(void)state;
	put("project/keys/mine", "x");
	put("project/more/deep", "x");
	put("project/dockercfg/config.json", "x");
	put("project/dockercfg/daemon.conf", "x");
	put_link("project/.ssh", "keys");
	put_link("project/keys/further", "../more");
	put_link("project/more/ring", "../keys"); /* leads back: must end */
	put_link("project/.docker", "dockercfg");
	ASSERT_HIDDEN("keys", "more", "dockercfg/config.json");
}

static void w3_hard_links(void **state)
{
	(void)state;
	put("project/.env", "x");
	put("project/src/plain.txt", "x");
	put("project/.ssh/id", "x");
	put("project/own/bulk/file", "x");
	put("view/outside", "x");
	put_twin("project/src/copy.txt", "project/.env");
	put_twin("project/src/deep", "project/.ssh/id");
	put_twin("project/src/bulk", "project/own/bulk/file");
	put_twin("project/inside", "view/outside");
	put_link("project/.env.local", "../view/outside");
	put_twin("project/src/plain2.txt", "project/src/plain.txt");
	assert_true(setting_list_add(&set.workspace_hide, "own/bulk"));
	ASSERT_HIDDEN(".env", "src/copy.txt", ".ssh", "src/deep", "own/bulk", "src/bulk", "inside");
}

static void w3_paths_of_the_policy_through_links(void **state)
{
	(void)state;
	put("project/config/prod.txt", "x");
	put("project/config/dir/x", "x");
	put("project/config/open.txt", "x");
	put("project/config/wild.csv", "x");
	put("project/config/far/wild.csv", "x");
	put("project/wild.csv", "x");
	put_link("project/conf", "config");
	assert_true(setting_list_add(&set.workspace_hide, "conf/prod.txt"));
	assert_true(setting_list_add(&set.workspace_hide, "/conf/dir/"));
	assert_true(setting_list_add(&set.workspace_hide, "conf/**/*.csv"));
	ASSERT_HIDDEN("config/prod.txt", "config/dir", "config/wild.csv", "config/far/wild.csv");
}

static void w3_show_is_the_last_word(void **state)
{
	(void)state;
	put("project/config/shown", "x");
	put("project/.env.twin", "x");
	put_twin("project/also-shown", "project/.env.twin");
	put_link("project/.env", "config/shown");
	assert_true(setting_list_add(&set.workspace_show, "config/shown"));
	assert_true(setting_list_add(&set.workspace_show, "also-shown"));
	ASSERT_HIDDEN(".env.twin");
}

static void w3_a_link_to_everything_is_refused(void **state)
{
	struct brig_error err = BRIG_ERROR_INIT;
	struct workspace *w = NULL;

	(void)state;
	put("project/sub/x", "x");
	put_link("project/sub/.aws", "..");
	assert_int_equal(workspace_open(in_folder("project"), NULL, &set, &w, &err), -BRIG_E_REFUSED);
	assert_non_null(strstr(err.msg, "workspace_show"));
}

/* A link says no more than the file that it leads to: certificates are shown. */
static void w3_links_to_files_that_tell(void **state)
{
	(void)state;
	put("project/real/cert", "-----BEGIN CERTIFICATE-----");
	put("project/real/private", "-----BEGIN PRIVATE KEY-----");
	put("project/real/folder/x", "x");
	put_link("project/cert.pem", "real/cert");
	put_link("project/private.pem", "real/private");
	put_link("project/folder.key", "real/folder");
	ASSERT_HIDDEN("real/private");
}

static void w3_resolving(void **state)
{
	static const struct {
		const char *path, *want; /* NULL: out, or nowhere */
	} cases[] = {
		{ "d/f", "d/f" },
		{ "l/f", "d/f" },
		{ "l/../d/./f", "d/f" },
		{ "abs", "d" },
		{ "abs/f", "d/f" },
		{ "abs/../d//f", "d/f" },
		{ "../workspace/d", "d" },
		{ "../tmp/../workspace/d", "d" },
		{ "../../../workspace/d", "d" },
		{ "../etc/passwd", NULL },
		{ "d/absent", NULL },
		{ "d/f/x", NULL },
		{ "ring", NULL },
		{ ".", "" },
		{ "..", NULL },
		{ "../workspaces", NULL },
	};
	AUTO_FD project = FD_NONE;
	char found[PATH_MAX];

	(void)state;
	put("project/d/f", "x");
	put_link("project/l", "d");
	put_link("project/abs", "/workspace/d");
	put_link("project/ring", "ring");
	project = open_at("project");
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is = resolve_in_cell(project, cases[i].path, found);

		if (is != (cases[i].want != NULL) || (is && !str_eq(found, cases[i].want)))
			fail_msg("'%s' leads to '%s'", cases[i].path, is ? found : "nothing");
	}
}

/* ---- names ------------------------------------------------------------------------------------- */

static const char *const hidden_names[] = {
	".env~",
	"..env.swp",
	".env.swp",
	".ENV",
	".Env.Production",
	"prod.env",
	"PROD.ENV",
	"#.env#",
	".#.env",
	".env.bak",
	".env.orig",
	".env.save",
	".env.old~",
	".env copy",
	".env.~1~",
	".env (1)",
	".env.2",
	"..env.un~",
	".env-production",
	"live.tfvars",
	"live.tfvars.json",
	"x.auto.tfvars",
	"X.KEY",
	"server.key.bak",
	".server.key.swo",
	"ID_RSA",
	".id_rsa.swp",
	"id_ed25519~",
	"kubeconfig",
	"prod.kubeconfig",
	".vault-token",
	".dev.vars",
	".dev.vars.live",
	".netrc",
	".pgpass",
	".pypirc",
	"a.p12",
	"a.PFX",
	"a.jks",
	"release.keystore",
	".htpasswd",
	".git-credentials",
	"v.kdbx",
	"client.ovpn",
	"secrets.yml",
	"secrets.json~",
	"config/master.key",
	"terraform.tfstate",
	"terraform.tfstate.1700.backup",
	"a/.docker/config.json",
	"a/.Docker/Config.json.bak",
	".config/gcloud",
	"wp-config.php",
	"AuthKey_1.p8",
	"ssh_host_rsa_key",
	".mylogin.cnf",
	"rclone.conf",
	".env.production.local",
	"application_default_credentials.json",
	"bob_accessKeys.csv",
};
static const char *const shown_names[] = {
	"environment.ts",
	"test.key.js",
	"keyboard.py",
	".env.example",
	".env.sample",
	".env.template",
	".env.dist",
	".env.example~",
	".env.live.example",
	"example.env",
	"prod.tfvars.example",
	"main.tf",
	"variables.tf",
	"monkey",
	"key",
	"env",
	"env.py",
	"dotenv.md",
	"id_rsa.pub",
	"ssh_host_rsa_key.pub",
	"wp-config-sample.php",
	"secrets.py",
	"secrets_test.go",
	"README.md~",
	".gitignore",
	"main.c.orig",
	"kubernetes.yaml",
	"docker/config.toml",
	"package.lock",
	"libx.so.1",
	"environment.prod.ts",
	".environment",
	"keystore.go",
	".envoy.yaml",
	"vault.py",
};

static void w8_names_in_any_case_and_copies(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(hidden_names); i++)
		if (secret_by_name(hidden_names[i], false) != SECRET_ALWAYS)
			fail_msg("'%s' is shown", hidden_names[i]);
	for (size_t i = 0; i < ARRAY_LEN(shown_names); i++)
		if (secret_by_name(shown_names[i], false) != SECRET_NEVER)
			fail_msg("'%s' is hidden", shown_names[i]);
	assert_int_equal(secret_by_name(".SSH", true), SECRET_ALWAYS);
	assert_int_equal(secret_by_name("home/.ssh.bak", true), SECRET_ALWAYS);
	assert_int_equal(secret_by_name("lib/prod.env", true), SECRET_NEVER); /* no file */
	assert_int_equal(secret_by_name("node_modules/a/x.json", false), SECRET_NEVER);
}

static void w8_contents_that_tell(void **state)
{
	static const char account[] =
		"{\n  \"type\": \"service_account\",\n  \"project_id\": \"p-1\",\n  \"private_key_id\": \"0\",\n"
		"  \"private_key\": \"-----BEGIN PRIVATE KEY-----\\nAA\\n\"\n}\n";
	static const char cluster[] = "apiVersion: v1\nkind: Config\nclusters: []\nusers:\n- user:\n    token: x\n";

	(void)state;
	put("project/my-project-1a2b3c.json", account);
	put("project/My-Project.JSON", account);
	put("project/data.json", "{\"type\": \"service\", \"key\": \"this is long enough to be looked at, and is "
				 "an ordinary document of a project like many others\"}");
	put("project/package.json", "{}");
	put("project/kubeconfig-live.yaml", cluster);
	put("project/kubeconfig.go", "package kubeconfig\n");
	put("project/TLS.PEM", "-----BEGIN EC PRIVATE KEY-----");
	put("project/public.pem", "-----BEGIN PUBLIC KEY-----");
	put("project/server.crt", "-----BEGIN CERTIFICATE-----");
	put("project/bundle.crt", "-----BEGIN CERTIFICATE-----\n-----BEGIN RSA PRIVATE KEY-----");
	put("project/.npmrc", "save-exact=true");
	put("project/web/.npmrc", "//registry/:_authToken=x");
	put("project/credentials", "[default]\naws_secret_access_key = x\n");
	put("project/src/credentials/index.ts", "export const token = 1;");
	ASSERT_HIDDEN("my-project-1a2b3c.json", "My-Project.JSON", "kubeconfig-live.yaml", "TLS.PEM", "bundle.crt",
		      "web/.npmrc", "credentials");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(w3_link_through_a_linked_folder),
		TEST(w3_chains_of_links),
		TEST(w3_absolute_links),
		TEST(w3_links_to_folders),
		TEST(w3_hard_links),
		TEST(w3_paths_of_the_policy_through_links),
		TEST(w3_show_is_the_last_word),
		TEST(w3_a_link_to_everything_is_refused),
		TEST(w3_links_to_files_that_tell),
		TEST(w3_resolving),
		cmocka_unit_test(w8_names_in_any_case_and_copies),
		TEST(w8_contents_that_tell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
