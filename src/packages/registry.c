/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which registry an installer uses.  The policy comes first, then what the user who runs brig has configured for the
 * installer itself (its variable, its files), then the installer's own default.  The install cell sees none of those
 * files: it is given one URL, and its hosts are added to those that the cell may reach.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/file.h"
#include "base/str.h"
#include "packages/packages.h"

#define CONFIG_MAX (256 * KiB)

/* ---- addresses ----------------------------------------------------------------------------------- */

static bool is_host_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
	       c == '_';
}

/* "[::1]" or a name; what follows is at *ret_end. */
static bool parse_host(const char *s, const char *end, struct url *ret, const char **ret_end)
{
	const char *p = s;

	if (p < end && *p == '[') {
		while (p < end && *p != ']')
			if (!strchr("[0123456789abcdefABCDEF:.", *p++))
				return false;
		if (p == end)
			return false;
		p++;
	} else {
		while (p < end && is_host_char(*p))
			p++;
	}
	ret->host = s;
	ret->host_len = (size_t)(p - s);
	*ret_end = p;
	return ret->host_len > 0 && ret->host_len < SETTING_ITEM_MAX - 8;
}

static bool parse_port(const char *s, const char *end, uint16_t *ret)
{
	unsigned long n = 0;

	if (s == end)
		return true;
	if (*s++ != ':' || s == end || end - s > 5)
		return false;
	for (; s < end; s++) {
		if (*s < '0' || *s > '9')
			return false;
		n = 10 * n + (unsigned long)(*s - '0');
	}
	*ret = (uint16_t)n;
	return n > 0 && n <= UINT16_MAX;
}

bool url_parse(const char *text, size_t len, struct url *ret)
{
	const char *end = text + len, *authority_end, *at, *rest;

	*ret = (struct url){ .plain = len > 7 && strncasecmp(text, "http://", 7) == 0 };
	if (!ret->plain && !(len > 8 && strncasecmp(text, "https://", 8) == 0))
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
			return false;
	text += ret->plain ? 7 : 8;
	for (authority_end = text; authority_end < end && !strchr("/?#", *authority_end);)
		authority_end++;
	at = memrchr(text, '@', (size_t)(authority_end - text));
	if (at) {
		ret->user = text;
		ret->user_len = (size_t)(at - text);
		text = at + 1;
	}
	return parse_host(text, authority_end, ret, &rest) && parse_port(rest, authority_end, &ret->port);
}

/* Each address of a list; without is_list the one there is.  Words of go's list that are no addresses are passed over. */
static bool next_address(bool is_list, const char **text, struct url *ret, bool *ok)
{
	while (**text) {
		size_t len = is_list ? strcspn(*text, ",|") : strlen(*text);
		const char *one = *text;

		*text += len + (one[len] != '\0');
		if (is_list && ((len == 6 && strncmp(one, "direct", len) == 0) ||
				(len == 3 && strncmp(one, "off", len) == 0) || len == 0))
			continue;
		*ok = url_parse(one, len, ret);
		return true;
	}
	return false;
}

/* The same text with *** for what stands before each @. */
static void make_shown(const struct ecosystem *e, struct registry *r)
{
	struct buf shown = BUF_INIT(sizeof(r->shown) - 1);
	const char *text = r->url, *copied = r->url;
	struct url u;
	bool ok;

	while (next_address(e->is_list, &text, &u, &ok)) {
		if (!ok || u.user_len == 0)
			continue;
		(void)buf_add(&shown, copied, (size_t)(u.user - copied));
		(void)buf_adds(&shown, "***");
		copied = u.user + u.user_len;
	}
	(void)buf_adds(&shown, copied);
	(void)str_copy(r->shown, sizeof(r->shown), buf_str(&shown));
	buf_release(&shown);
}

int registry_hosts(const struct ecosystem *e, const struct registry *r, struct setting_list *hosts,
		   struct brig_error *err)
{
	const char *text = r->url;
	struct url u;
	bool ok;

	while (next_address(e->is_list, &text, &u, &ok)) {
		char item[SETTING_ITEM_MAX];

		if (u.port)
			(void)snprintf(item, sizeof(item), "%.*s:%u", (int)u.host_len, u.host, u.port);
		else
			(void)snprintf(item, sizeof(item), "%.*s", (int)u.host_len, u.host);
		if (!setting_list_has(hosts, item) && !setting_list_add(hosts, item))
			return err_set(err, BRIG_E_REFUSED, 0, "package_hosts has no room for the registry '%s'", item);
	}
	return 0;
}

void registry_hide(const struct registry *r, char *text, size_t len)
{
	const char *url = r->url;
	struct url u;
	bool ok;

	while (next_address(true, &url, &u, &ok)) {
		char *hit = text;

		/* One letter is no secret, and would blacken everything. */
		while (ok && u.user_len > 1 && (hit = memmem(hit, len - (size_t)(hit - text), u.user, u.user_len)))
			memset(hit, '*', u.user_len);
	}
}

/* ---- where it is said ---------------------------------------------------------------------------- */

/* A file that the user may have made a link, but that is a small regular one in the end. */
static bool read_config(const char *path, struct buf *ret)
{
	struct stat st;
	AUTO_FD fd = file_open(path, 0, &st);
	char piece[4096];
	ssize_t n;

	if (fd < 0 || (uint64_t)st.st_size > CONFIG_MAX)
		return false;
	while ((n = fd_read_all(fd, piece, sizeof(piece))) > 0)
		if (buf_add(ret, piece, (size_t)n) < (size_t)n)
			return false;
	return n == 0 && ret->len > 0;
}

typedef bool (*config_fn)(const char *text, size_t len, char *dst, size_t size);

/* One place; first hit wins. */
struct place {
	const char *variable; /* whose value is the registry, or, with file, the folder or file */
	const char *file;     /* "": the variable names the file itself; below the variable's folder, or absolute */
};

static const struct source {
	const char *ecosystem;
	config_fn read;
	struct place place[8];
} sources[] = {
	{ "pip",
	  pip_conf_index,
	  { { "PIP_INDEX_URL", NULL },
	    { "PIP_CONFIG_FILE", "" },
	    { "XDG_CONFIG_HOME", "pip/pip.conf" },
	    { "HOME", ".config/pip/pip.conf" },
	    { "HOME", ".pip/pip.conf" },
	    { NULL, "/etc/pip.conf" } } },
	{ "npm",
	  npmrc_registry,
	  { { "npm_config_registry", NULL },
	    { "NPM_CONFIG_REGISTRY", NULL },
	    { "NPM_CONFIG_USERCONFIG", "" },
	    { "HOME", ".npmrc" },
	    { NULL, "/etc/npmrc" },
	    { NULL, "/usr/etc/npmrc" },
	    { NULL, "/usr/local/etc/npmrc" } } },
	{ "go", go_env_proxy, { { "GOPROXY", NULL }, { "GOENV", "" }, { "HOME", ".config/go/env" } } },
};

static bool look_at(const struct source *s, const struct place *p, struct registry *r)
{
	const char *value = p->variable ? getenv(p->variable) : NULL;
	AUTO_BUF text = BUF_INIT(CONFIG_MAX);
	char path[PATH_MAX];

	if (p->variable && (!value || !*value))
		return false;
	r->from = p->file && *p->file ? p->file : p->variable;
	if (!p->file)
		return str_copy(r->url, sizeof(r->url), value);
	if (!value)
		(void)str_copy(path, sizeof(path), p->file);
	else if (snprintf(path, sizeof(path), "%s%s%s", value, *p->file ? "/" : "", p->file) >= (int)sizeof(path))
		return false;
	return read_config(path, &text) && s->read(text.data, text.len, r->url, sizeof(r->url));
}

static void find_users_own(const struct ecosystem *e, struct registry *r)
{
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		for (size_t k = 0; str_eq(sources[i].ecosystem, e->name) && k < ARRAY_LEN(sources[i].place); k++) {
			const struct place *p = &sources[i].place[k];

			if ((p->variable || p->file) && look_at(&sources[i], p, r))
				return;
		}
	r->url[0] = '\0';
}

int registry_find(const struct ecosystem *e, const char *policy, struct registry *ret, struct brig_error *err)
{
	const char *text;
	struct url u;
	bool ok = true, any = false;

	*ret = (struct registry){ .from = "the policy" };
	(void)str_copy(ret->url, sizeof(ret->url), policy);
	if (!*ret->url)
		find_users_own(e, ret);
	if (!*ret->url) {
		ret->from = "its own default";
		(void)str_copy(ret->url, sizeof(ret->url), e->default_registry);
	}
	for (text = ret->url; ok && next_address(e->is_list, &text, &u, &ok);)
		any = true;
	/* Not shown: what is no address cannot be told apart from the credentials in it. */
	if (!ok || !any)
		return err_set(err, BRIG_E_REFUSED, 0, "what %s names as the registry of %s is no http address",
			       ret->from, e->name);
	make_shown(e, ret);
	return 0;
}
