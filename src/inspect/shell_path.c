/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies the place that a word names.  Words are normalised first: an unknown variable at the front counts as empty
 * (rm -rf "$x"/ is rm -rf / when x is unset), . and .. and // are resolved against the workspace, and a relative path
 * that climbs out is tried from the root as well, because the depth of the working directory is unknown.
 */
#include <string.h>

#include "inspect/shell.h"

#define PATH_TEXT_MAX 512

static const struct {
	const char *name;
	unsigned class;
} class_names[] = {
	{ "root", PATH_ROOT },       { "system", PATH_SYSTEM },     { "startup", PATH_STARTUP },
	{ "secret", PATH_SECRET },   { "private", PATH_PRIVATE },   { "listed", PATH_LISTED },
	{ "device", PATH_DEVICE },   { "outside", PATH_OUTSIDE },   { "dynamic", PATH_DYNAMIC },
	{ "address", PATH_ADDRESS }, { "here", PATH_HERE },         { "shown", PATH_SHOWN },
	{ "fact", PATH_FACT },       { "computed", PATH_COMPUTED }, { "own-secret", PATH_OWN_SECRET },
	{ "local", PATH_LOCAL },     { "own", PATH_OWN },
};

unsigned sh_path_class_by_name(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(class_names); i++)
		if (strlen(class_names[i].name) == len && memcmp(class_names[i].name, name, len) == 0)
			return class_names[i].class;
	return 0;
}

/*
 * Globs on the normalised path.  A path gets the classes of all rows that match; a row of class 0 is an exception and
 * ends the search.
 */
static const struct {
	const char *glob;
	unsigned class;
} places[] = {
	{ "*/.env.example", 0 },
	{ "*/.env.sample", 0 },
	{ "*/.env.template", 0 },
	{ "*/.env.dist", 0 },
	{ "/dev/null", 0 },
	{ "/dev/zero", 0 },
	{ "/dev/full", 0 },
	{ "/dev/random", 0 },
	{ "/dev/urandom", 0 },
	{ "/dev/tty", 0 },
	{ "/dev/std*", 0 },
	{ "/dev/fd*", 0 },
	{ "/dev/shm*", 0 },
	{ "/dev/pts*", 0 },
	{ "/dev/tcp/*", 0 },
	{ "/dev/udp/*", 0 },
	{ "/proc/self/fd*", 0 },
	{ "/var/tmp*", 0 },
	{ "/etc/os-release", 0 },
	{ "/etc/lsb-release", 0 },
	{ "/etc/timezone", 0 },
	{ "/etc/localtime", 0 },
	{ "/etc/mime.types", 0 },
	/* system folders: nothing may be written, moved or deleted here */
	{ "/bin*", PATH_SYSTEM | PATH_SHOWN },
	{ "/sbin*", PATH_SYSTEM | PATH_SHOWN },
	{ "/lib*", PATH_SYSTEM | PATH_SHOWN },
	{ "/usr*", PATH_SYSTEM | PATH_SHOWN },
	{ "/boot*", PATH_SYSTEM | PATH_LISTED },
	{ "/dev*", PATH_SYSTEM | PATH_LISTED },
	{ "/etc*", PATH_SYSTEM | PATH_LISTED },
	{ "/proc*", PATH_SYSTEM | PATH_LISTED },
	{ "/sys*", PATH_SYSTEM | PATH_LISTED },
	{ "/root*", PATH_SYSTEM | PATH_LISTED },
	{ "/var*", PATH_SYSTEM | PATH_LISTED },
	{ "/opt*", PATH_SYSTEM | PATH_LISTED },
	{ "/srv*", PATH_SYSTEM | PATH_LISTED },
	{ "/run*", PATH_SYSTEM | PATH_LISTED },
	{ "/mnt/data", 0 }, /* the workspace by another name */
	{ "/mnt/data/*", 0 },
	{ "/mnt*", PATH_SYSTEM | PATH_LISTED },
	{ "/media*", PATH_SYSTEM | PATH_LISTED },
	{ "/lost+found*", PATH_SYSTEM | PATH_LISTED },
	{ "/home", PATH_SYSTEM | PATH_LISTED },
	{ "/bin", PATH_LISTED },
	{ "/sbin", PATH_LISTED },
	{ "/lib", PATH_LISTED },
	{ "/lib64", PATH_LISTED },
	{ "/usr/share/pam*", PATH_LISTED | PATH_PRIVATE },
	{ "/usr/share/base-passwd*", PATH_LISTED | PATH_PRIVATE },
	{ "/usr/local/etc*", PATH_LISTED | PATH_PRIVATE },
	{ "/usr/lib/systemd*", PATH_LISTED | PATH_PRIVATE },
	{ "/", PATH_SHOWN },
	/* files that programs have no reason to read */
	{ "/etc/*", PATH_PRIVATE },
	{ "/proc/*", PATH_PRIVATE },
	{ "/sys/*", PATH_PRIVATE },
	{ "/root/*", PATH_PRIVATE },
	{ "/boot/*", PATH_PRIVATE },
	{ "/dev/*", PATH_PRIVATE },
	{ "/run/*", PATH_PRIVATE },
	{ "/var/log/*", PATH_PRIVATE },
	{ "/var/lib/*", PATH_PRIVATE },
	{ "/var/run/*", PATH_PRIVATE },
	{ "/var/spool/*", PATH_PRIVATE },
	{ "/var/backups/*", PATH_PRIVATE },
	{ "/var/mail/*", PATH_PRIVATE },
	/* facts about the system: not PATH_PRIVATE */
	{ "/proc/cpuinfo", PATH_FACT },
	{ "/proc/meminfo", PATH_FACT },
	{ "/proc/loadavg", PATH_FACT },
	{ "/proc/uptime", PATH_FACT },
	{ "/proc/version", PATH_FACT },
	{ "/proc/stat", PATH_FACT },
	{ "/proc/vmstat", PATH_FACT },
	{ "/proc/diskstats", PATH_FACT },
	{ "/proc/mounts", PATH_FACT },
	{ "/proc/filesystems", PATH_FACT },
	{ "/proc/net/dev", PATH_FACT },
	{ "/proc/self/status", PATH_FACT },
	{ "/proc/self/stat", PATH_FACT },
	{ "/proc/self/statm", PATH_FACT },
	{ "/proc/self/limits", PATH_FACT },
	{ "/proc/self/cgroup", PATH_FACT },
	{ "/proc/self/comm", PATH_FACT },
	{ "/proc/sys/kernel/hostname", PATH_FACT },
	{ "/proc/sys/kernel/osrelease", PATH_FACT },
	{ "/proc/sys/kernel/random/*", PATH_FACT },
	{ "/sys/fs/cgroup/*", PATH_FACT },
	{ "/sys/devices/system/cpu/*", PATH_FACT },
	{ "/sys/class/net/*", PATH_FACT },
	{ "/etc/hostname", PATH_FACT },
	{ "/etc/hosts", PATH_FACT },
	{ "/etc/resolv.conf", PATH_FACT },
	{ "/etc/debian_version", PATH_FACT },
	{ "/etc/redhat-release", PATH_FACT },
	{ "/etc/alpine-release", PATH_FACT },
	{ "/etc/issue", PATH_FACT },
	{ "/etc/shells", PATH_FACT },
	{ "/etc/services", PATH_FACT },
	{ "/etc/protocols", PATH_FACT },
	{ "/etc/ssl/certs/*", PATH_FACT },
	/* secrets, in any folder */
	{ "/etc/shadow*", PATH_SECRET },
	{ "/etc/gshadow*", PATH_SECRET },
	{ "/etc/sudoers*", PATH_SECRET },
	{ "/etc/ssl/private*", PATH_SECRET },
	{ "/etc/ssh/ssh_host*", PATH_SECRET },
	{ "*/.ssh", PATH_SECRET | PATH_LISTED },
	{ "*/.ssh/*", PATH_SECRET },
	{ "*/.gnupg*", PATH_SECRET },
	{ "*/.aws*", PATH_SECRET },
	{ "*/.azure*", PATH_SECRET },
	{ "*/.config/gcloud*", PATH_SECRET },
	{ "*/.config/gh*", PATH_SECRET },
	{ "*/.kube*", PATH_SECRET },
	{ "*/.docker/config.json", PATH_SECRET },
	{ "*/.git-credentials", PATH_SECRET },
	{ "*/.netrc", PATH_SECRET },
	{ "*/.pgpass", PATH_SECRET },
	{ "*/.my.cnf", PATH_SECRET },
	{ "*/.npmrc", PATH_SECRET },
	{ "*/.pypirc", PATH_SECRET },
	{ "*/.vault-token", PATH_SECRET },
	{ "*/.env", PATH_SECRET },
	{ "*/.env.*", PATH_SECRET },
	{ "*/id_rsa*", PATH_SECRET },
	{ "*/id_dsa*", PATH_SECRET },
	{ "*/id_ecdsa*", PATH_SECRET },
	{ "*/id_ed25519*", PATH_SECRET },
	{ "*/.bash_history", PATH_SECRET },
	{ "*/.zsh_history", PATH_SECRET },
	{ "*/.mysql_history", PATH_SECRET },
	{ "*/.psql_history", PATH_SECRET },
	{ "*/.python_history", PATH_SECRET },
	{ "*/.mozilla*", PATH_SECRET },
	{ "*/.config/google-chrome*", PATH_SECRET },
	{ "*/.password-store*", PATH_SECRET },
	{ "*/docker.sock", PATH_SECRET },
	{ "*/containerd.sock", PATH_SECRET },
	{ "/proc/*/environ", PATH_SECRET },
	{ "/proc/*/mem", PATH_SECRET },
	{ "/proc/kcore", PATH_SECRET },
	/* run at login, boot, on a timer, or by tools */
	{ "*/.bashrc", PATH_STARTUP },
	{ "*/.bash_profile", PATH_STARTUP },
	{ "*/.bash_login", PATH_STARTUP },
	{ "*/.bash_logout", PATH_STARTUP },
	{ "*/.bash_aliases", PATH_STARTUP },
	{ "*/.profile", PATH_STARTUP },
	{ "*/.zshrc", PATH_STARTUP },
	{ "*/.zshenv", PATH_STARTUP },
	{ "*/.zprofile", PATH_STARTUP },
	{ "*/.xinitrc", PATH_STARTUP },
	{ "*/.xsession*", PATH_STARTUP },
	{ "*/.vimrc", PATH_STARTUP },
	{ "*/.gitconfig", PATH_STARTUP },
	{ "*/.inputrc", PATH_STARTUP },
	{ "*/.config/autostart/*", PATH_STARTUP },
	{ "*/.config/systemd/*", PATH_STARTUP },
	{ "*/.config/fish/*", PATH_STARTUP },
	{ "*/.ssh/authorized_keys*", PATH_STARTUP },
	{ "*/.ssh/config", PATH_STARTUP },
	{ "*/.ssh/rc", PATH_STARTUP },
	{ "*/.git/hooks/*", PATH_STARTUP },
	{ "*/.git/config", PATH_STARTUP },
	{ "/etc/*", PATH_STARTUP },
	{ "/var/spool/cron*", PATH_STARTUP },
	{ "/lib/systemd/*", PATH_STARTUP },
	{ "/usr/lib/systemd/*", PATH_STARTUP },
	/* raw memory and disks */
	{ "/dev/sd*", PATH_DEVICE },
	{ "/dev/hd*", PATH_DEVICE },
	{ "/dev/vd*", PATH_DEVICE },
	{ "/dev/xvd*", PATH_DEVICE },
	{ "/dev/nvme*", PATH_DEVICE },
	{ "/dev/mmcblk*", PATH_DEVICE },
	{ "/dev/md*", PATH_DEVICE },
	{ "/dev/dm-*", PATH_DEVICE },
	{ "/dev/loop*", PATH_DEVICE },
	{ "/dev/ram*", PATH_DEVICE },
	{ "/dev/disk/*", PATH_DEVICE },
	{ "/dev/mapper/*", PATH_DEVICE },
	{ "/dev/mem", PATH_DEVICE },
	{ "/dev/kmem", PATH_DEVICE },
	{ "/dev/port", PATH_DEVICE },
	{ "/dev/fb*", PATH_DEVICE },
};

/* Trees whose loss is a disaster, with or without a star after them. */
static const char *const roots[] = {
	"/",        "~",        "/bin",    "/boot", "/dev",     "/etc",     "/home",      "/lib",      "/lib32",
	"/lib64",   "/libx32",  "/media",  "/mnt",  "/opt",     "/proc",    "/root",      "/run",      "/sbin",
	"/srv",     "/sys",     "/usr",    "/var",  "/usr/bin", "/usr/lib", "/usr/local", "/usr/sbin", "/usr/share",
	"/var/lib", "/var/log", "/home/*", "~/*",   "/etc/*",   "/lib/*",   "/boot/*",
};

/* Resolves ".", ".." and "//"; false if ".." climbed above the start. */
static bool normalise(const char *s, size_t len, char *ret)
{
	size_t n = 0;
	bool inside = true;

	for (size_t i = 0; i < len;) {
		size_t end = i;

		while (end < len && s[end] != '/')
			end++;
		if (end - i == 2 && s[i] == '.' && s[i + 1] == '.') {
			inside = inside && n > 0;
			while (n && ret[n - 1] != '/')
				n--;
			n -= n > 0;
		} else if (end > i && !(end - i == 1 && s[i] == '.')) {
			ret[n++] = '/';
			memcpy(ret + n, s + i, end - i);
			n += end - i;
		}
		i = end + 1;
	}
	if (!n)
		ret[n++] = '/';
	ret[n] = '\0';
	return inside;
}

static bool is_root(const char *path)
{
	char bare[2 * PATH_TEXT_MAX];
	size_t n = strlen(path);

	memcpy(bare, path, n + 1);
	/* a star after the folder is as bad as the folder */
	while (n && (bare[n - 1] == '*' || bare[n - 1] == '.' || bare[n - 1] == '?'))
		n--;
	while (n > 1 && bare[n - 1] == '/')
		n--;
	bare[n] = '\0';
	if (!n)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(roots); i++)
		if (strcmp(bare, roots[i]) == 0)
			return true;
	return strncmp(bare, "/home/", 6) == 0 && !strchr(bare + 6, '/');
}

static unsigned classes_of(const char *path)
{
	unsigned found = 0;
	size_t len = strlen(path);

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const char *g = places[i].glob;
		size_t n = strlen(g);

		/* "/etc*" means the folder and all in it, not /etcetera */
		if (n > 1 && g[n - 1] == '*' && g[0] == '/' && strchr(g + 1, '/') == NULL) {
			if (strncmp(path, g, n - 1) != 0 ||
			    (path[n - 1] && path[n - 1] != '/' && strncmp(g, "/lib", 4) != 0))
				continue;
		} else if (g[0] == path[0] || g[0] == '*') {
			if (!sh_glob(g, n, path, len))
				continue;
		} else {
			continue;
		}
		if (!places[i].class)
			return 0;
		found |= places[i].class;
	}
	return found & PATH_FACT ? found & ~(unsigned)PATH_PRIVATE : found;
}

static unsigned classes_below_home(const char *path)
{
	/* ~user is a home folder as well */
	const char *slash = strchr(path, '/');

	return slash ? classes_of(slash) & ~(unsigned)(PATH_SYSTEM | PATH_PRIVATE | PATH_LISTED) : 0;
}

const char *sh_workspace(const struct shell *sh)
{
	return sh->j->workspace ? sh->j->workspace : "/workspace";
}

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	return strncmp(path, folder, n) == 0 && (path[n] == '/' || !path[n]);
}

/*
 * Secrets in the workspace are hidden from the cell, so they have a class of their own; a file that the script wrote is
 * no secret.
 */
static unsigned own(const struct shell *sh, const char *s, unsigned found)
{
	if (!(found & PATH_SECRET))
		return found;
	found &= ~(unsigned)PATH_SECRET;
	return sh_file_find(sh, s) ? found : found | PATH_OWN_SECRET;
}

static unsigned classify(const struct shell *sh, const char *s, size_t len, bool glob)
{
	const char *workspace = sh->cwd ? sh->cwd : sh_workspace(sh);
	char text[2 * PATH_TEXT_MAX], path[2 * PATH_TEXT_MAX] = "";
	unsigned found = 0;

	if (s[0] == '~' && (len == 1 || s[1] == '/' || !strchr(s, ' '))) {
		size_t home = strcspn(s, "/");

		if (!normalise(s + home, len - home, path))
			return PATH_OUTSIDE | PATH_ROOT;
		if (strcmp(path, "/") == 0 || (glob && strspn(path, "/*.") == strlen(path)))
			found |= PATH_ROOT;
		path[0] = '/';
		return found | classes_below_home(path);
	}
	if (s[0] == '/') {
		normalise(s, len, path);
		return classes_of(path) | (is_root(path) ? PATH_ROOT : 0u);
	}
	if (strspn(s, "./*") == len && !strstr(s, "..."))
		found |= PATH_HERE;
	if (strlen(workspace) + len + 2 > sizeof(text))
		return found;
	/* Resolves from the workspace and, if the path climbs out, from the root. */
	memcpy(text, workspace, strlen(workspace));
	text[strlen(workspace)] = '/';
	memcpy(text + strlen(workspace) + 1, s, len + 1);
	if (sh->cwd && !is_below(sh->cwd, sh_workspace(sh)))
		return found | classify(sh, text, strlen(text), glob); /* absolute, or below ~ */
	workspace = sh_workspace(sh);
	(void)normalise(text, strlen(text), path);
	if (is_below(path, workspace))
		return found | own(sh, s, classes_of(path + strlen(workspace)) & (PATH_SECRET | PATH_STARTUP));
	if (normalise(s, len, path))
		return found | PATH_OUTSIDE | classes_of(path);
	if (sh->lost)
		return found | (classes_of(path) & ~(unsigned)(PATH_SECRET | PATH_STARTUP));
	found |= PATH_OUTSIDE | classes_of(path);
	return strspn(s, "./") == len && strstr(s, "../..") ? found | PATH_ROOT : found;
}

/* The classes of the well-known places that a wildcard matches. */
static unsigned reached(const char *s, size_t len)
{
	static const char *const known[] = { "/etc",
					     "/usr",
					     "/bin",
					     "/lib",
					     "/var",
					     "/home",
					     "/root",
					     "/boot",
					     "/etc/passwd",
					     "/etc/shadow",
					     "/etc/sudoers",
					     "/root/.ssh/id_rsa",
					     "/root/.bashrc",
					     "/dev/sda",
					     "/var/log/syslog",
					     "/proc/self/environ",
					     "~/.ssh/id_rsa",
					     "~/.bashrc",
					     "~/.aws/credentials" };
	char pattern[PATH_TEXT_MAX];
	size_t n = 0;
	unsigned found = 0;

	/* [abc] counts as any character */
	for (size_t i = 0; i < len; i++) {
		const char *close = s[i] == '[' ? memchr(s + i, ']', len - i) : NULL;

		pattern[n++] = close ? '?' : s[i];
		if (close)
			i = (size_t)(close - s);
	}
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i][0] == pattern[0] && sh_glob(pattern, n, known[i], strlen(known[i])))
			found |= classes_of(known[i] + (known[i][0] == '~')) | (i < 8 ? PATH_ROOT : 0u);
	return found;
}

static bool is_address(const char *s)
{
	return strstr(s, "://") != NULL;
}

/*
 * True if the unknown front of a word may be empty: not if the script computed it, or if it is a parameter that callers
 * supply.
 */
static bool may_be_empty(const struct shell *sh, const struct sh_word *w)
{
	if (w->flags & ORIGIN_UNSET)
		return true;
	if (w->flags & ORIGIN_PARAMETER)
		return !sh->function_name;
	return !(w->flags & ORIGIN_OUTPUT);
}

/* An address of the cell's own loopback interface. */
static bool is_local(const char *s)
{
	static const char *const hosts[] = { "localhost", "127.", "[::1]", "::1", "0.0.0.0" };
	const char *scheme = strstr(s, "://"), *at;
	size_t rest;

	if (strncmp(s, "/dev/tcp/", 9) == 0 || strncmp(s, "/dev/udp/", 9) == 0)
		s += 9;
	else if (scheme)
		s = scheme + 3;
	rest = strcspn(s, "/?#");
	at = memchr(s, '@', rest);
	if (at)
		s = at + 1;
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		size_t n = strlen(hosts[i]);

		if (strncmp(s, hosts[i], n) != 0)
			continue;
		if (hosts[i][n - 1] == '.')
			n += strspn(s + n, "0123456789.");
		if (!s[n] || strchr(":/?#", s[n]))
			return true;
	}
	return false;
}

/* A process number, as an argument of kill. */
static bool is_own_process(const struct shell *sh, const struct sh_word *w)
{
	return (w->flags & ORIGIN_OWN) || w->s[0] == '%' || sh_is(w, "0") ||
	       ((w->flags & ORIGIN_PARAMETER) && sh->function_name);
}

unsigned sh_path_classes(const struct shell *sh, const struct sh_word *w)
{
	const char *s = w->s;
	size_t len = w->len;
	unsigned found = w->flags & WORD_DYNAMIC ? PATH_DYNAMIC : 0;

	found |= (is_local(s) ? PATH_LOCAL : 0u) | (is_own_process(sh, w) ? PATH_OWN : 0u);
	if (is_address(s)) {
		if (strncmp(s, "file://", 7) != 0)
			return found | PATH_ADDRESS;
		s += 7;
		len -= 7;
	}
	/* curl @file, and the rest of a word after an empty variable */
	if (len && s[0] == '@') {
		s++;
		len--;
	}
	if (len && s[0] == MARK_HOLE) {
		s++;
		len--;
		if (!len || s[0] != '/')
			return found;
		/* only "$x"/ and "$x"/.. are dangerous: $x/etc may be any folder */
		if (len > 1 && strspn(s, "/*.") != len)
			return found | (strstr(s, "/../") ? classify(sh, s, len, true) : 0) |
			       (classes_of(s) & PATH_SECRET);
		return found | (may_be_empty(sh, w) ? PATH_ROOT : PATH_COMPUTED);
	}
	if (!len || len >= PATH_TEXT_MAX || strchr(s, '\n'))
		return found;
	if ((w->flags & WORD_GLOB) && (s[0] == '/' || s[0] == '~'))
		found |= reached(s, len);
	return found | classify(sh, s, len, w->flags & WORD_GLOB);
}
