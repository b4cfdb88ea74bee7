/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where data comes from and where it goes.  Values keep their origin as long as they are paths: the text of
 * requests.get() is "requests.get().text", data of a socket is "socket.socket().recv()".  If a function of unknown
 * effect is in between, the expression itself is searched, and the assignments to the names in it, a few steps back.
 */
#include "inspect/python.h"

#define CHASE_MAX    4
#define SEARCHES_MAX 64

/* ---- searching an expression ----------------------------------------------------------------------------- */

typedef bool (*origin_test)(const struct py *p, uint32_t node);

static uint32_t subtree_end(const struct py *p, uint32_t node)
{
	return node + (p->node[node].post - p->node[node].post_first) + 1;
}

/* The expression that is assigned at this site; PY_NONE: the name is bound in another way. */
static uint32_t assigned(const struct py *p, uint32_t site)
{
	uint32_t up = site;

	while (up != PY_NONE && p->node[up].sym != PY_ASSIGNMENT && p->node[up].sym != PY_FOR &&
	       p->node[up].sym != PY_AUGMENTED && p->node[up].sym != PY_FUNCTION && p->node[up].sym != PY_AS_PATTERN)
		up = p->node[up].parent;
	if (up == PY_NONE || p->node[up].sym == PY_FUNCTION)
		return PY_NONE;
	return p->node[up].sym == PY_AS_PATTERN ? p->node[up].child : py_field(p, up, PY_F_RIGHT);
}

struct chase {
	uint32_t node;
	unsigned depth;
};

struct trail {
	struct chase todo[32];
	unsigned n;
};

static void push(struct trail *t, uint32_t node, unsigned depth)
{
	if (node == PY_NONE || t->n == ARRAY_LEN(t->todo))
		return;
	for (unsigned i = 0; i < t->n; i++)
		if (t->todo[i].node == node)
			return;
	t->todo[t->n++] = (struct chase){ node, depth };
}

/* The function of which the site is a parameter, and its position; PY_NONE: it is not a parameter. */
static uint32_t parameter_of(const struct py *p, uint32_t site, unsigned *place)
{
	uint32_t list = py_ancestor(p, site, PY_PARAMETERS), n = 0;

	if (list == PY_NONE)
		return PY_NONE;
	for (uint32_t c = p->node[list].child; c != PY_NONE; c = p->node[c].next, n++)
		if (site >= c && site < subtree_end(p, c)) {
			*place = n;
			return p->node[list].parent;
		}
	return PY_NONE;
}

static bool may_call(const struct py *p, uint32_t callee, uint32_t function)
{
	for (unsigned i = 0; callee != PY_NONE && i < p->set[p->node[callee].value].n; i++) {
		const struct py_atom *a = &p->atom[p->set[p->node[callee].value].atom[i]];

		if (a->kind == PY_FUNC && a->number == function)
			return true;
	}
	return false;
}

/*
 * Pushes the arguments that calls pass to a parameter.  This visits all calls of the text, so the number of searches is
 * limited.
 */
static void push_arguments(struct py *p, struct trail *t, uint32_t site, unsigned depth)
{
	unsigned place = 0;
	uint32_t function = parameter_of(p, site, &place);

	if (function == PY_NONE || p->searches >= SEARCHES_MAX)
		return;
	p->searches++;
	for (uint32_t i = 0; i < p->n_nodes; i++) {
		struct py_args a;
		uint32_t keyword;

		if (p->node[i].sym != PY_CALL || !may_call(p, py_unwrap(p, py_field(p, i, PY_F_FUNCTION)), function))
			continue;
		py_args(p, i, &a);
		keyword = py_keyword_atom(p, i, p->node[site].name);
		push(t, keyword != PY_NONE ? keyword : place < a.n ? a.node[place] : PY_NONE, depth);
	}
}

/* Pushes the expressions that a name may stand for. */
static void push_sources(struct py *p, struct trail *t, uint32_t name, unsigned depth)
{
	bool builtin;
	uint32_t b = py_resolve(p, name, p->node[name].name, &builtin);

	for (uint32_t s = b == PY_NONE ? PY_NONE : p->binding[b].sites; s != PY_NONE; s = p->site[s].next) {
		push(t, assigned(p, p->site[s].node), depth);
		push_arguments(p, t, p->site[s].node, depth);
	}
}

/* True if a part of the expression, or of the expressions assigned to its names, passes the test. */
static bool reaches(struct py *p, uint32_t node, origin_test test)
{
	struct trail t = { { { node, 0 } }, 1 };

	for (unsigned done = 0; done < t.n; done++)
		for (uint32_t k = t.todo[done].node; k < subtree_end(p, t.todo[done].node) && py_steps(p, 1); k++) {
			if (test(p, k))
				return true;
			if (p->node[k].sym == PY_IDENTIFIER && p->node[k].name != PY_NONE &&
			    !(p->node[k].flags & PY_STORE) && t.todo[done].depth < CHASE_MAX)
				push_sources(p, &t, k, t.todo[done].depth + 1);
		}
	return false;
}

static bool begins_with_any(const struct py *p, uint32_t set, const char *const *head, size_t n)
{
	for (unsigned i = 0; i < p->set[set].n; i++) {
		const struct py_atom *a = &p->atom[p->set[set].atom[i]];

		for (size_t k = 0; a->kind == PY_PATH && k < n; k++)
			if (a->len >= strlen(head[k]) && memcmp(a->text, head[k], strlen(head[k])) == 0)
				return true;
	}
	return false;
}

/* ---- decoded code and downloaded code ---------------------------------------------------------------------- */

/* The result of a decoder, or a string that the text decodes from constants. */
static bool is_decoded(const struct py *p, uint32_t node)
{
	static const char *const decoder[] = { "base64.b",
					       "base64.a85decode()",
					       "base64.decode",
					       "base64.standard_b64decode()",
					       "base64.urlsafe_b64decode()",
					       "binascii.a2b_",
					       "binascii.unhexlify()",
					       "codecs.decode()",
					       "zlib.decompress",
					       "bz2.decompress()",
					       "lzma.decompress()",
					       "gzip.decompress()",
					       "marshal.load",
					       "builtins.bytes.fromhex",
					       "builtins.bytearray.fromhex" };
	uint32_t value = p->node[node].value;

	if (p->node[node].sym != PY_CALL && p->node[node].sym != PY_IDENTIFIER && p->node[node].sym != PY_ATTRIBUTE &&
	    p->node[node].sym != PY_SUBSCRIPT && p->node[node].sym != PY_BINARY)
		return false;
	for (unsigned i = 0; i < p->set[value].n; i++) {
		const struct py_atom *a = &p->atom[p->set[value].atom[i]];

		if (a->decoded && a->len > 2 && (a->kind == PY_STR || a->kind == PY_BYTES))
			return true;
	}
	return begins_with_any(p, value, decoder, ARRAY_LEN(decoder));
}

static bool has_any(const struct py_atom *a, const char *const *piece, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memmem(a->text, a->len, piece[i], strlen(piece[i])))
			return true;
	return false;
}

/* Data received over the network.  Port numbers and addresses of the program's own server do not count. */
static bool is_fetched(const struct py *p, uint32_t node)
{
	static const char *const taking[] = { ".recv",   ".read", ".makefile()", ".text",        ".content",
					      ".json()", ".data", ".body",       "urlretrieve()" };
	uint32_t value = p->node[node].value;

	for (unsigned i = 0; i < p->set[value].n; i++) {
		const struct py_atom *a = &p->atom[p->set[value].atom[i]];
		const struct rule *rule;
		size_t matched;

		if (a->kind != PY_PATH || !memmem(a->text, a->len, "()", 2) || !has_any(a, taking, ARRAY_LEN(taking)))
			continue;
		rule = py_module_rule(p, a->text, a->len, &matched);
		if (rule && rule->network && !py_is_allowed(p, a->text, a->len))
			return true;
	}
	return false;
}

static bool is_word_of_command(const struct py *p, const struct py_atom *list, uint32_t i)
{
	const struct py_atom *before = i ? py_only(p, list->item[i - 1], PY_STR) : NULL;

	return i == 0 || (before && (py_atom_is(before, PY_STR, "-c") || py_atom_is(before, PY_STR, "-e")));
}

/* ["ls", name]: words after the program are data, unless they follow -c or -e. */
static bool is_only_data(const struct py *p, uint32_t node)
{
	const struct py_atom *list = py_only(p, p->node[node].value, PY_LIST);

	if (!list ||
	    (p->node[node].sym != PY_LIST_ && p->node[node].sym != PY_TUPLE && p->node[node].sym != PY_IDENTIFIER))
		return false;
	for (uint32_t i = 0; i < list->len && i < PY_ARGS_MAX; i++)
		if (is_word_of_command(p, list, i) && !py_only(p, list->item[i], PY_STR))
			return false;
	return true;
}

void py_judge_origin(struct py *p, uint32_t node)
{
	if (is_only_data(p, node))
		return;
	if (reaches(p, node, is_decoded))
		judge_check(p->j, "hidden-code", py_span(p, node), "%s", "");
	else if (reaches(p, node, is_fetched))
		judge_check(p->j, "fetched-code", py_span(p, node), "%s", "");
	else if (reaches(p, node, py_is_cut))
		judge_check(p->j, "hidden-code", py_span(p, node), "%s", "words that are put together");
}

/* pickle.loads() of bytes in the text, or of decoded or downloaded data */
static void judge_load(struct py *p, const struct py_args *a)
{
	struct py_set s;

	if (!a->n)
		return;
	s = p->set[p->node[a->node[0]].value];
	for (unsigned i = 0; i < s.n; i++)
		if (p->atom[s.atom[i]].kind == PY_BYTES && p->atom[s.atom[i]].len > 0) {
			judge_check(p->j, "hidden-code", py_span(p, a->node[0]), "%s", "objects in bytes");
			return;
		}
	if (reaches(p, a->node[0], is_fetched))
		judge_check(p->j, "fetched-code", py_span(p, a->node[0]), "%s", "objects");
	else if (reaches(p, a->node[0], is_decoded) || (s.n && !s.open && p->atom[s.atom[0]].kind == PY_LIST))
		judge_check(p->j, "decoded-objects", py_span(p, a->node[0]), "%s", "");
}

/* ---- secrets ----------------------------------------------------------------------------------------------- */

/* os.environ as a whole, not a single variable by name */
static bool is_whole_environment(const struct py *p, uint32_t node)
{
	static const char *const part[] = { "get", "pop", "setdefault", "update", "__contains__" };
	uint32_t value = p->node[node].value, up = p->node[node].parent, name;
	bool environment = false;

	for (unsigned i = 0; i < p->set[value].n; i++)
		environment |= py_atom_is(&p->atom[p->set[value].atom[i]], PY_PATH, "os.environ");
	if (!environment || up == PY_NONE || p->node[up].sym == PY_SUBSCRIPT || p->node[up].sym == PY_COMPARISON)
		return false;
	name = p->node[up].sym == PY_ATTRIBUTE ? py_field(p, up, PY_F_ATTRIBUTE) : PY_NONE;
	for (size_t i = 0; name != PY_NONE && i < ARRAY_LEN(part); i++)
		if (py_name_is(p, p->node[name].name, part[i]))
			return false;
	return true;
}

static bool is_secret(const struct py *p, uint32_t node)
{
	static const char *const asked[] = { "getpass.getpass()", "keyring.get_password()",
					     "keyring.get_credential()" };

	return is_whole_environment(p, node) || py_opens_outside(p, node) ||
	       begins_with_any(p, p->node[node].value, asked, ARRAY_LEN(asked));
}

/* Network functions that send data. */
static bool sends(const struct py_atom *callee)
{
	static const char *const sending[] = { "post",   "put",     "patch",   "request", "send",     "sendall",
					       "sendto", "urlopen", "Request", "get",     "sendmail", "publish" };
	const char *dot = memrchr(callee->text, '.', callee->len);
	size_t len = dot ? callee->len - (size_t)(dot + 1 - callee->text) : 0;

	for (size_t i = 0; dot && i < ARRAY_LEN(sending); i++)
		if (strlen(sending[i]) == len && memcmp(dot + 1, sending[i], len) == 0)
			return true;
	return false;
}

static void judge_sending(struct py *p, const struct py_args *a)
{
	static const char *const keywords[] = { "data", "json", "params", "files", "content", "body", "headers" };

	for (unsigned i = 0; i < a->n; i++)
		if (reaches(p, a->node[i], is_secret)) {
			judge_check(p->j, "secret-flow", py_span(p, a->node[i]), "%s", "");
			return;
		}
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
		uint32_t value = py_keyword(p, a->call, keywords[i]);

		if (value != PY_NONE && reaches(p, value, is_secret)) {
			judge_check(p->j, "secret-flow", py_span(p, value), "%s", keywords[i]);
			return;
		}
	}
}

/* ---- peers ------------------------------------------------------------------------------------------------- */

/* The host of "http://host:1/path"; 0: not an address. */
static size_t host_of(const struct py_atom *a, const char **host)
{
	const char *scheme = memmem(a->text, a->len, "://", 3), *end = a->text + a->len, *at;
	size_t n = 0;

	if (!scheme || scheme - a->text > 8)
		return 0;
	*host = scheme + 3;
	for (at = *host; at < end && !strchr("/:?# \n", *at); at++)
		n++;
	return n;
}

static bool is_local(const char *host, size_t len)
{
	static const char *const local[] = { "localhost", "127.", "0.0.0.0", "[", "*", "{", "%", "example." };

	for (size_t i = 0; i < ARRAY_LEN(local); i++)
		if (len >= strlen(local[i]) && memcmp(host, local[i], strlen(local[i])) == 0)
			return true;
	return len == 0 || memmem(host, len, "example", 7) != NULL;
}

static void judge_metadata(struct py *p, const struct py_args *a)
{
	static const char *const hosts[] = { "169.254.169.254", "metadata.google.internal", "100.100.100.200",
					     "metadata" };

	for (unsigned i = 0; i < a->n; i++) {
		struct py_set s = p->set[p->node[a->node[i]].value];

		for (unsigned k = 0; k < s.n; k++) {
			struct py_atom t = p->atom[s.atom[k]];
			const char *host = NULL;
			size_t n = t.kind == PY_STR || t.kind == PY_PART ? host_of(&t, &host) : 0;

			for (size_t h = 0; n && h < ARRAY_LEN(hosts); h++)
				if (strlen(hosts[h]) == n && memcmp(host, hosts[h], n) == 0)
					judge_check(p->j, "cloud-metadata", py_span(p, a->node[i]), "%s", hosts[h]);
		}
	}
}

static bool is_server(const struct py_atom *a)
{
	static const char *const server[] = { "socket.socket().bind",
					      "socket.socketpair",
					      "socket.create_server",
					      "http.server.",
					      "socketserver.",
					      "asyncio.start_",
					      "xmlrpc.server.",
					      "wsgiref.",
					      "multiprocessing.connection.Listener",
					      "SocketServer.",
					      "BaseHTTPServer.",
					      "flask.",
					      "aiohttp.web",
					      "fastapi.",
					      "uvicorn.",
					      "tornado.",
					      "bottle.",
					      "smtpd.",
					      "aiosmtpd." };

	for (size_t i = 0; a->kind == PY_PATH && i < ARRAY_LEN(server); i++)
		if (a->len >= strlen(server[i]) && memcmp(a->text, server[i], strlen(server[i])) == 0)
			return true;
	return false;
}

bool py_is_own_peer(struct py *p)
{
	bool serves = false, elsewhere = false;

	if (p->serves)
		return p->serves == 2;
	for (uint32_t i = 0; i < p->n_atoms; i++) {
		const struct py_atom *a = &p->atom[i];
		const char *host = NULL;
		size_t n = a->kind == PY_STR || a->kind == PY_PART ? host_of(a, &host) : 0;

		serves |= is_server(a);
		elsewhere |= n && !is_local(host, n) && memcmp(a->text, "http", 4) == 0;
	}
	p->serves = serves && !elsewhere ? 2 : 1;
	return p->serves == 2;
}

/* ---- dispatch ---------------------------------------------------------------------------------------------- */

void py_judge_flow(struct py *p, const struct py_args *a, const struct py_atom *callee)
{
	static const char *const loaders[] = { "pickle.loads", "cPickle.loads",     "_pickle.loads",
					       "dill.loads",   "cloudpickle.loads", "marshal.loads" };
	size_t matched;
	const struct rule *rule = py_module_rule(p, callee->text, callee->len, &matched);

	for (size_t i = 0; i < ARRAY_LEN(loaders); i++)
		if (py_atom_is(callee, PY_PATH, loaders[i]))
			judge_load(p, a);
	if (!rule || !rule->network)
		return;
	judge_metadata(p, a);
	if (sends(callee))
		judge_sending(p, a);
}
