/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The intent of a program.  Starting a program, opening a file or a connection is normal; the combination tells
 * malicious code apart, and is examined here:
 *
 *	origin	  a value records that it came out of a decoder, from the network or contains the environment, and
 *		  passes this on; decoded or fetched text must not be run, and the environment must not be sent
 *	way	  a module or a function of the engine is named, not put together from pieces or reached by detours
 *	company	  a shell together with a socket, a copy of itself in an endless loop, a program that was just fetched
 *
 * Values of an undeclared name come from the embedder of the code, and are judged as such.
 */
#include "inspect/javascript.h"

#include <ctype.h>
#include <string.h>

#include "inspect/paths.h"

#define ORIGIN_DEPTH 4 /* maximum nesting depth of values */

/* --- origin ---------------------------------------- */

static unsigned origin_within(const struct js_value *v, unsigned depth)
{
	unsigned origin = v->flags & JS_ORIGIN;
	uint32_t n = v->n;

	if (js_is(v, JS_PATH, "process.env"))
		return origin | JS_SECRET;
	if (depth == 0)
		return origin;
	switch (v->kind) {
	case JS_OBJECT:
		n *= 2;
		break;
	case JS_SPREAD:
	case JS_ARRAY:
	case JS_ONE_OF:
		break;
	default:
		return origin;
	}
	for (uint32_t i = 0; i < n && i < 64; i++)
		origin |= origin_within(&v->v[i], depth - 1);
	return origin;
}

unsigned js_origin(const struct js_value *v)
{
	return origin_within(v, ORIGIN_DEPTH);
}

/* A function counts as its result: list.map(decode).join(""). */
unsigned js_origin_of_all(const struct js *js, const struct js_value *v, size_t n)
{
	unsigned origin = 0;

	for (size_t i = 0; i < n; i++) {
		origin |= js_origin(&v[i]);
		if (v[i].kind == JS_FUNCTION && v[i].n && v[i].n < js->n_scopes && js->scopes[v[i].n].returns)
			origin |= js->scopes[v[i].n].result.flags & JS_ORIGIN;
	}
	return origin;
}

static void taint_variable(struct js *js, uint32_t var, struct js_value some)
{
	js->learned |= !js->vars[var].seen || (js->vars[var].ever.flags & some.flags) != some.flags;
	js_set_parameter(js, var, some);
}

void js_taint_parameters(struct js *js, const struct js_value *v, size_t n, unsigned origin)
{
	struct js_value some = js_simple(JS_UNKNOWN);

	some.flags = (uint8_t)(origin & JS_ORIGIN);
	for (size_t i = 0; i < n && some.flags; i++) {
		const struct js_scope *f;

		if (v[i].kind != JS_FUNCTION || v[i].n == 0 || v[i].n >= js->n_scopes)
			continue;
		f = &js->scopes[v[i].n];
		for (size_t k = 0; k < f->n_params; k++)
			if (f->param[k] != JS_NO_VAR)
				taint_variable(js, f->param[k], some);
	}
}

/* An undeclared name that the engine does not define: its value is determined outside of this text. */
bool js_is_from_outside(struct js *js, const struct js_value *v)
{
	static const char *const known[] = { "console", "__filename", "__dirname", "exports", "undefined",
					     "NaN",     "Infinity",   "arguments", "import" };

	if (v->kind != JS_PATH || v->n == 0 || memchr(v->s, '.', v->n) || isupper((unsigned char)v->s[0]))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (js_is(v, JS_PATH, known[i]))
			return false;
	return !js_is_engine_name(js, v->s, v->n);
}

/* --- detours to modules ---------------------------------------- */

/* "require (" and "import(", also a name such as requireModule; only white space may precede the parenthesis. */
static bool is_plain_require(const struct js *js, struct span where)
{
	static const char *const words[] = { "require", "import", "export", "'", "\"" };
	const char *s = js->text + where.start, *end = js->text + where.end;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(end - s) < n || memcmp(s, words[i], n) != 0)
			continue;
		if (n == 1 || *s == 'e')
			return true;
		for (s += n; s < end && (isalnum((unsigned char)*s) || *s == '_' || *s == '$'); s++)
			;
		while (s < end && (*s == ' ' || *s == '\t' || (words[i][0] == 'i' && isspace((unsigned char)*s))))
			s++;
		return s < end && (*s == '(' || (words[i][0] == 'i' && *s != '/'));
	}
	return false;
}

void js_judge_way_to_module(struct js *js, const struct js_value *name, struct span where)
{
	const struct rule *rule = NULL;
	size_t len = name->n;
	const char *slash = memchr(name->s, '/', name->n);

	if (!js->judging)
		return;
	rule = rules_find(js->judge->rules, js->judge->language, RULE_MODULE, name->s, len);
	if (!rule && slash)
		rule = rules_find(js->judge->rules, js->judge->language, RULE_MODULE, name->s,
				  (size_t)(slash - name->s));
	if (!rule || rule->severity[INSPECTION_STRICT] != SEVERITY_CRITICAL)
		return;
	if (name->flags & (JS_BUILT | JS_DECODED))
		js_check(js, "assembled-name", where, rule->message);
	else if ((strcmp(rule->id, "js-process") == 0 || strcmp(rule->id, "js-code-loading") == 0) &&
		 !is_plain_require(js, where))
		js_check(js, "roundabout-require", where, rule->message);
}

/* --- code in texts ---------------------------------------- */

static bool has_word(const struct js_value *text, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memmem(text->s, text->n, words[i], strlen(words[i])))
			return true;
	return false;
}

/* More than an expression over its own values: the code prints, loads modules or uses engine objects. */
static bool has_effects(const struct js_value *text)
{
	static const char *const words[] = { "console.", "process.", "require(", "import(", "globalThis", "fetch(" };

	return has_word(text, words, ARRAY_LEN(words));
}

void js_judge_run(struct js *js, const struct js_value *code, bool has_parameters, struct span where)
{
	unsigned origin = js_origin(code);

	if (origin & JS_FETCHED)
		js_check(js, "fetch-and-run", where, "");
	else if (origin & JS_DECODED)
		js_check(js, "decode-and-run", where, "");
	else if (code->kind == JS_STRING && !has_parameters && has_effects(code))
		js_check(js, "hidden-code", where, "");
	else if (origin & JS_OUTSIDE)
		js_check(js, "outside-code", where, "");
}

/* --- network ---------------------------------------- */

static bool is_local_host(const char *s, size_t len)
{
	static const char *const prefixes[] = { "localhost", "127.", "[::1]", "::1", "0.0.0.0", "[::]" };
	size_t n;

	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		n = strlen(prefixes[i]);
		if (len >= n && memcmp(s, prefixes[i], n) == 0 &&
		    (prefixes[i][n - 1] == '.' || len == n || s[n] == ':' || s[n] == '/' || s[n] == '?'))
			return true;
	}
	return len > 10 && memmem(s, len, ".localhost", 10);
}

static bool is_local_text(const struct js_value *text)
{
	const char *host = memmem(text->s, text->n, "://", 3), *end = text->s + text->n, *at;

	if (!host)
		return text->n == 0 || text->s[0] == '/' || is_local_host(text->s, text->n);
	host += 3;
	at = memchr(host, '@', (size_t)(end - host));
	if (at && !memchr(host, '/', (size_t)(at - host)))
		host = at + 1;
	return is_local_host(host, (size_t)(end - host));
}

enum place { PLACE_UNKNOWN, PLACE_LOCAL, PLACE_REMOTE };

static enum place place_of_text(const struct js_value *v)
{
	bool begun = v->kind == JS_UNKNOWN && v->n > 8; /* "http://x.test/" + name: long enough to contain the host */

	return v->kind != JS_STRING && !begun ? PLACE_UNKNOWN : is_local_text(v) ? PLACE_LOCAL : PLACE_REMOTE;
}

/* { host, port, path }: without a host it is the local machine. */
static enum place place_of_options(const struct js_value *options)
{
	static const char *const keys[] = { "host", "hostname", "url", "uri", "baseURL", "href", "connectionString" };

	if (!js_list_intact(options))
		return PLACE_UNKNOWN;
	for (uint32_t i = 0; i < options->n; i++) {
		if (options->v[2 * i].kind != JS_STRING)
			return PLACE_UNKNOWN;
		for (size_t k = 0; k < ARRAY_LEN(keys); k++)
			if (js_is(&options->v[2 * i], JS_STRING, keys[k]))
				return place_of_text(&options->v[2 * i + 1]);
	}
	return PLACE_LOCAL;
}

static enum place place_of(const struct js_value *args, size_t n)
{
	if (n == 0) /* for example redis.createClient() */
		return PLACE_LOCAL;
	switch (args[0].kind) {
	case JS_STRING:
		return place_of_text(&args[0]);
	case JS_UNKNOWN:
		if (args[0].n > 8)
			return place_of_text(&args[0]);
		break;
	case JS_OBJECT:
		return place_of_options(&args[0]);
	case JS_NUMBER: /* a port, optionally a host */
		return n > 1 && args[1].kind == JS_STRING ? place_of_text(&args[1]) : PLACE_LOCAL;
	default:
		break;
	}
	return n > 1 && args[1].kind == JS_STRING && is_local_text(&args[1]) ? PLACE_LOCAL : PLACE_UNKNOWN;
}

/*
 * The address is unknown before the code runs: local if the text of the call says so, or if the program is itself a
 * server.
 */
static bool seems_local(const struct js *js, struct span where)
{
	static const char *const words[] = { "localhost", "127.0.0.1", "[::1]" };
	struct js_value text = { .kind = JS_STRING, .n = where.end - where.start, .s = js->text + where.start };

	return js->serves || has_word(&text, words, ARRAY_LEN(words));
}

bool js_judge_client(struct js *js, const struct js_value *args, size_t n, struct span where)
{
	enum place place = place_of(args, n);
	bool remote = place == PLACE_REMOTE || (place == PLACE_UNKNOWN && !seems_local(js, where));

	if (!remote)
		return false;
	js->fetches = true;
	js_check(js, "network-call", where, "");
	if (js_origin_of_all(js, args, n) & JS_SECRET)
		js_check(js, "environment-sent", where, "");
	return true;
}

void js_judge_sent(struct js *js, const struct js_value *name, const struct js_value *args, size_t n, struct span where)
{
	static const char *const sends[] = { "write", "end", "send", "emit", "post", "query", "publish" };

	for (size_t i = 0; i < ARRAY_LEN(sends) && !js->serves; i++)
		if (js_is(name, JS_STRING, sends[i]) && js_origin_of_all(js, args, n) & JS_SECRET)
			js_check(js, "environment-sent", where, "");
}

/* --- modules by what their functions do ---------------------------------------- */

enum {
	CLIENT = 1 << 0, /* connects to an address among its arguments */
	SOCKET = 1 << 1, /* a connection in both directions */
	SERVER = 1 << 2,
	SHELL = 1 << 3,   /* argument 0 is a command */
	PROGRAM = 1 << 4, /* argument 0 is a program, then a list of its arguments */
	SELF = 1 << 5,    /* argument 0 is a script for the same engine */
	FILE_IN = 1 << 6, /* argument 0 is a path */
	REMOVES = 1 << 7, /* ... whose file is removed, or gets another name, owner or mode */
	RUNS = 1 << 8,    /* argument 0 is code, run in a separate context */
	RUNS_HERE = 1 << 9,
	DECODES = 1 << 10,
	WORKER = 1 << 11,
	SCRIPT = 1 << 12,
};

/* A name that ends with a dot means all members, a bare module name the whole module.  The longest match applies. */
static const struct intent {
	const char *name;
	unsigned does;
} intents[] = {
	{ "amqplib", CLIENT },
	{ "axios", CLIENT },
	{ "basic-ftp", CLIENT },
	{ "bent", CLIENT },
	{ "child_process.exec", SHELL },
	{ "child_process.execFile", PROGRAM },
	{ "child_process.execFileSync", PROGRAM },
	{ "child_process.execSync", SHELL },
	{ "child_process.fork", SELF },
	{ "child_process.spawn", PROGRAM },
	{ "child_process.spawnSync", PROGRAM },
	{ "cross-fetch", CLIENT },
	{ "cross-spawn", PROGRAM },
	{ "dns.lookup", CLIENT },
	{ "dns.promises", CLIENT },
	{ "dns.resolve", CLIENT },
	{ "dns.resolve4", CLIENT },
	{ "dns.resolve6", CLIENT },
	{ "dns.resolveMx", CLIENT },
	{ "dns.resolveTxt", CLIENT },
	{ "dns.reverse", CLIENT },
	{ "dns/promises", CLIENT },
	{ "execa", PROGRAM },
	{ "fs", FILE_IN },
	{ "fs-extra", FILE_IN },
	{ "fs-extra.emptyDir", FILE_IN | REMOVES },
	{ "fs-extra.emptyDirSync", FILE_IN | REMOVES },
	{ "fs-extra.remove", FILE_IN | REMOVES },
	{ "fs-extra.removeSync", FILE_IN | REMOVES },
	{ "fs.chmod", FILE_IN | REMOVES },
	{ "fs.chmodSync", FILE_IN | REMOVES },
	{ "fs.chown", FILE_IN | REMOVES },
	{ "fs.chownSync", FILE_IN | REMOVES },
	{ "fs.promises.rm", FILE_IN | REMOVES },
	{ "fs.promises.rmdir", FILE_IN | REMOVES },
	{ "fs.promises.unlink", FILE_IN | REMOVES },
	{ "fs.rename", FILE_IN | REMOVES },
	{ "fs.renameSync", FILE_IN | REMOVES },
	{ "fs.rm", FILE_IN | REMOVES },
	{ "fs.rmSync", FILE_IN | REMOVES },
	{ "fs.rmdir", FILE_IN | REMOVES },
	{ "fs.rmdirSync", FILE_IN | REMOVES },
	{ "fs.truncate", FILE_IN | REMOVES },
	{ "fs.truncateSync", FILE_IN | REMOVES },
	{ "fs.unlink", FILE_IN | REMOVES },
	{ "fs.unlinkSync", FILE_IN | REMOVES },
	{ "fs/promises", FILE_IN },
	{ "fs/promises.rm", FILE_IN | REMOVES },
	{ "fs/promises.rmdir", FILE_IN | REMOVES },
	{ "fs/promises.unlink", FILE_IN | REMOVES },
	{ "ftp", CLIENT },
	{ "got", CLIENT },
	{ "graceful-fs", FILE_IN },
	{ "http.createServer", SERVER },
	{ "http.get", CLIENT },
	{ "http.request", CLIENT },
	{ "http2.connect", CLIENT },
	{ "http2.createServer", SERVER },
	{ "https.createServer", SERVER },
	{ "https.get", CLIENT },
	{ "https.request", CLIENT },
	{ "imap", CLIENT },
	{ "ioredis", CLIENT },
	{ "isomorphic-fetch", CLIENT },
	{ "ky", CLIENT },
	{ "mongodb", CLIENT },
	{ "mongoose.connect", CLIENT },
	{ "mqtt", CLIENT },
	{ "mysql", CLIENT },
	{ "mysql2", CLIENT },
	{ "needle", CLIENT },
	{ "net.Socket", SOCKET },
	{ "net.connect", CLIENT | SOCKET },
	{ "net.createConnection", CLIENT | SOCKET },
	{ "net.createServer", SERVER },
	{ "node-fetch", CLIENT },
	{ "nodemailer", CLIENT },
	{ "pg", CLIENT },
	{ "phin", CLIENT },
	{ "redis", CLIENT },
	{ "request", CLIENT },
	{ "request-promise", CLIENT },
	{ "rimraf", FILE_IN | REMOVES },
	{ "shelljs.exec", SHELL },
	{ "shelljs.rm", REMOVES },
	{ "socket.io-client", CLIENT },
	{ "ssh2", CLIENT },
	{ "superagent", CLIENT },
	{ "telnet-client", CLIENT },
	{ "tls.connect", CLIENT | SOCKET },
	{ "undici", CLIENT },
	{ "vm.Script", RUNS | SCRIPT },
	{ "vm.compileFunction", RUNS | RUNS_HERE },
	{ "vm.runInContext", RUNS },
	{ "vm.runInNewContext", RUNS },
	{ "vm.runInThisContext", RUNS | RUNS_HERE },
	{ "worker_threads.Worker", WORKER },
	{ "ws", CLIENT },
	{ "zlib.brotliDecompressSync", DECODES },
	{ "zlib.gunzipSync", DECODES },
	{ "zlib.inflateRawSync", DECODES },
	{ "zlib.inflateSync", DECODES },
	{ "zlib.unzipSync", DECODES },
};

static unsigned find_intent(const char *name, size_t len)
{
	size_t low = 0, high = ARRAY_LEN(intents);

	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = strncmp(name, intents[mid].name, len);

		if (order == 0 && intents[mid].name[len])
			order = -1;
		if (order == 0)
			return intents[mid].does;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return 0;
}

static unsigned intent_of(const struct js_value *callee)
{
	size_t len = callee->n;
	unsigned does = 0;

	while (len && !(does = find_intent(callee->s, len))) {
		while (len && callee->s[len - 1] != '.')
			len--;
		len -= len > 0;
	}
	return does;
}

/* --- programs ---------------------------------------- */

static bool is_bare_shell(const struct js_value *args, size_t n)
{
	static const char *const shells[] = { "sh",        "bash",          "zsh",     "dash",       "/bin/sh",
					      "/bin/bash", "/usr/bin/bash", "cmd.exe", "powershell", "powershell.exe" };
	size_t i = 0;

	while (i < ARRAY_LEN(shells) && !js_is(&args[0], JS_STRING, shells[i]))
		i++;
	if (i == ARRAY_LEN(shells))
		return false;
	return n < 2 || args[1].kind != JS_ARRAY || args[1].n == 0 ||
	       (args[1].n == 1 && js_is(&args[1].v[0], JS_STRING, "-i"));
}

/* spawn(line, { shell: true }) */
static bool asks_for_shell(const struct js_value *args, size_t n)
{
	const struct js_value *options = n ? &args[n - 1] : NULL;

	for (uint32_t i = 0; options && options->kind == JS_OBJECT && i < options->n; i++)
		if (js_is(&options->v[2 * i], JS_STRING, "shell"))
			return options->v[2 * i + 1].kind != JS_BOOL || options->v[2 * i + 1].n != 0;
	return false;
}

/* The program is a shell with -c, or runs in a shell with a whole command line in place of a program name. */
static bool takes_line(const struct js_value *args, size_t n)
{
	static const char *const shells[] = { "sh", "bash", "/bin/sh", "/bin/bash" };

	for (size_t i = 0; i < ARRAY_LEN(shells); i++)
		if (js_is(&args[0], JS_STRING, shells[i]))
			return n > 1 && args[1].kind == JS_ARRAY && args[1].n && js_is(&args[1].v[0], JS_STRING, "-c");
	return asks_for_shell(args, n) && (args[0].kind != JS_STRING || memchr(args[0].s, ' ', args[0].n));
}

static bool is_this_script(const struct js_value *v)
{
	return js_is(v, JS_PATH, "__filename") || (v->kind == JS_MEMBER && js_is(&v->v[0], JS_PATH, "process.argv") &&
						   v->v[1].kind == JS_NUMBER && v->v[1].number == 1);
}

static bool is_this_engine(const struct js_value *v)
{
	return js_is(v, JS_PATH, "process.execPath") || js_is(v, JS_PATH, "process.argv0") ||
	       js_is(v, JS_STRING, "node") ||
	       (v->kind == JS_MEMBER && js_is(&v->v[0], JS_PATH, "process.argv") && v->v[1].kind == JS_NUMBER &&
		v->v[1].number == 0);
}

/* Starts itself; *alike: without an argument by which the copy could tell that it is one. */
static bool starts_itself(unsigned does, const struct js_value *args, size_t n, bool *alike)
{
	*alike = n < 2 || args[1].kind != JS_ARRAY;
	if (does & SELF)
		return is_this_script(&args[0]);
	if (!is_this_engine(&args[0]) || n < 2 || args[1].kind != JS_ARRAY || args[1].n == 0)
		return false;
	*alike = args[1].n == 1;
	return is_this_script(&args[1].v[0]);
}

/* A file that the program may have fetched itself. */
static bool is_fetched_file(const struct js *js, const struct js_value *program)
{
	return js->fetches && program->kind == JS_STRING && (js_starts(program, "./") || js_starts(program, "/tmp/"));
}

static void judge_start(struct js *js, unsigned does, const struct js_value *args, size_t n, struct span where)
{
	const unsigned known = JS_DECODED | JS_SECRET | JS_OUTSIDE;
	unsigned origin = js_origin(&args[0]);
	bool alike;

	if (origin & JS_FETCHED || (!(origin & known) && is_fetched_file(js, &args[0])))
		js_check(js, "fetch-and-run", where, "");
	else if (origin & JS_DECODED)
		js_check(js, "decode-and-run", where, "");
	else if (origin & JS_SECRET)
		js_check(js, "environment-sent", where, "");
	else if (origin & JS_OUTSIDE)
		js_check(js, "outside-command", where, "");
	if (does & SHELL || (does & PROGRAM && takes_line(args, n)))
		js_check(js, "shell-command", where, "");
	if (does & PROGRAM && js->judging && asks_for_shell(args, n) && args[0].kind == JS_STRING)
		judge_command(js->judge, args[0].s, args[0].n, where);
	if (does & PROGRAM && js->opens_socket && is_bare_shell(args, n))
		js_check(js, "reverse-shell", where, "");
	if (starts_itself(does, args, n, &alike) && (js->forever || (alike && !js->conditions)))
		js_check(js, "fork-bomb", where, "");
}

bool js_loops_forever(const struct js *js, const struct js_frame *f)
{
	static const char *const forms[] = { "while(true)", "while(1)", "while(!0)", "for(;;)", "do{" };
	char head[16];
	size_t n = 0;

	if (f->node != NODE_WHILE && f->node != NODE_FOR)
		return false;
	for (uint32_t i = f->start; i < f->end && n < sizeof(head) - 1; i++)
		if (!isspace((unsigned char)js->text[i]))
			head[n++] = js->text[i];
	head[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		if (strncmp(head, forms[i], strlen(forms[i])) == 0)
			return true;
	return false;
}

/* --- files and code ---------------------------------------- */

/* A complete path, or the folder that a path begins with: "/etc/" + name. */
static bool is_path_so_far(const struct js_value *path)
{
	return path->kind == JS_STRING || (path->kind == JS_UNKNOWN && path->n && path->s[path->n - 1] == '/');
}

static void judge_file(struct js *js, unsigned does, const struct js_value *path, struct span where)
{
	if (js_origin(path) & JS_OUTSIDE)
		js_check(js, "outside-path", where, "");
	if (!js->judging || !is_path_so_far(path))
		return;
	if (does & REMOVES && path_is_precious(js->judge->workspace, path->s, path->n)) {
		struct js_value copy = js_string(js, path->s, min_u64(path->n, 80));

		js_check(js, "remove-root", where, copy.kind == JS_STRING ? copy.s : "");
	}
	if ((!(does & FILE_IN) || path->kind == JS_UNKNOWN) && judge_looks_like_path(path->s, path->n))
		judge_path(js->judge, path->s, path->n, where);
}

static void judge_worker(struct js *js, const struct js_value *args, size_t n, struct span where)
{
	static const char *const marks[] = { "worker_threads", "parentPort", "postMessage", "onmessage", "workerData" };
	bool text = false;

	if (js_starts(&args[0], "data:"))
		js_check(js, "import-of-code", where, "a data: URL");
	for (uint32_t i = 0; n > 1 && args[1].kind == JS_OBJECT && i < args[1].n; i++)
		text |= js_is(&args[1].v[2 * i], JS_STRING, "eval");
	if (!text)
		return;
	js_judge_run(js, &args[0], args[0].kind == JS_STRING && has_word(&args[0], marks, ARRAY_LEN(marks)), where);
	if (js->judging && args[0].kind == JS_STRING && args[0].n)
		judge_code(js->judge, INSPECT_JAVASCRIPT, args[0].s, args[0].n, where);
}

static void judge_context(struct js *js, unsigned does, const struct js_value *code, struct span where)
{
	/* A vm.Script may run in this or in a separate context: whether the text calls runInThisContext decides. */
	bool here = does & RUNS_HERE || (does & SCRIPT && memmem(js->text, js->len, ".runInThisContext", 17));

	js_judge_run(js, code, !here, where);
	if (js->judging && code->kind == JS_STRING && code->n)
		judge_code(js->judge, INSPECT_JAVASCRIPT, code->s, code->n, where);
}

unsigned js_judge_intent(struct js *js, const struct js_value *callee, const struct js_value *args, size_t n,
			 struct span where)
{
	unsigned does = intent_of(callee),
		 origin = js_origin_of_all(js, args, n) & (JS_DECODED | JS_SECRET | JS_OUTSIDE);

	js->serves |= (does & SERVER) != 0;
	js->opens_socket |= (does & SOCKET) != 0;
	if (does & (CLIENT | SOCKET | SERVER)) {
		origin |= JS_FETCHED;
		js_taint_parameters(js, args, n, JS_FETCHED);
	}
	if (does & CLIENT)
		(void)js_judge_client(js, args, n, where);
	if (does & DECODES)
		origin |= JS_DECODED;
	if (n == 0)
		return origin;
	if (does & (SHELL | PROGRAM | SELF))
		judge_start(js, does, args, n, where);
	if (does & (FILE_IN | REMOVES))
		judge_file(js, does, &args[0], where);
	if (does & RUNS)
		judge_context(js, does, &args[0], where);
	if (does & WORKER)
		judge_worker(js, args, n, where);
	if (!does)
		origin = js_origin_of_all(js, args, n);
	return does & (SHELL | PROGRAM | SELF | FILE_IN) ? 0 : origin;
}
