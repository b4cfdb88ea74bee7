/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1.1 requests from possibly hostile clients (RFC 9110, RFC 9112), and answers from possibly hostile servers.  One
 * parser for all listeners: the egress proxy and the server.  Nothing is allocated, nothing is copied: the results are
 * offsets into the caller's bytes.
 *
 * It is strict: anything that two parsers could interpret differently is refused, because there may be another parser
 * in front of or behind us.  Where the RFCs leave a choice, these are refused: bare CR or LF, folded lines, an empty
 * line before the request, methods not in capitals, a fragment or user part in the target, targets with bytes beyond
 * ASCII, a body of CONNECT, every transfer coding but one "chunked", blanks and quotes in extensions of chunks, and
 * duplicate fields where only one can count.
 */
#ifndef NET_HTTP1_H
#define NET_HTTP1_H

#include "base/util.h"

#define HTTP1_HEAD_MAX  ((size_t)32768)
#define HTTP1_LINES_MAX 100
/* Of one body: extensions of chunks and trailers together, which are read and dropped. */
#define HTTP1_EXTRA_MAX 8192

enum http1_parse { HTTP1_MORE, HTTP1_DONE, HTTP1_BAD };

/* Everything that can be wrong; rows in http1.def. */
enum http1_trouble {
#define HTTP1_TROUBLE(name, status, text) HTTP1_##name,
#include "net/http1.def"
	HTTP1_TROUBLE_COUNT
};

/* ---- heads -------------------------------------------------------------------------------------- */

enum http1_form {
	HTTP1_ORIGIN,    /* /path?query */
	HTTP1_ABSOLUTE,  /* http://host/path?query, or https:// */
	HTTP1_AUTHORITY, /* host:port, of CONNECT and of nothing else */
	HTTP1_ASTERISK   /* *, of OPTIONS and of nothing else */
};

/* Until the end of the connection: of answers only. */
enum http1_body { HTTP1_BODY_NONE, HTTP1_BODY_LENGTH, HTTP1_BODY_CHUNKED, HTTP1_BODY_UNTIL_END };

/* A place in the head. */
struct http1_text {
	size_t at, len;
};

struct http1_line {
	struct http1_text name, value; /* value: without the blanks around it */
};

struct http1_head {
	enum http1_form form;
	struct http1_text method, target;
	unsigned code;               /* of an answer, which has none of what is above and of the next five */
	struct http1_text path;      /* still percent-encoded; empty where an absolute target has none: "/" is meant */
	struct http1_text query;     /* without the question mark */
	struct http1_text scheme;    /* of an absolute target: http or https, in any case */
	struct http1_text authority; /* of an absolute target or CONNECT */
	struct http1_text host;      /* value of Host; empty if there is none, as HTTP/1.0 and CONNECT allow */
	struct http1_line line[HTTP1_LINES_MAX];
	size_t n_lines;
	bool version_1_0;
	bool keep_alive;       /* another request may follow on this connection */
	bool expects_continue; /* the client waits for "100 Continue" before it sends its body */
	bool upgrade;          /* there is an Upgrade field, and Connection says that it is meant */
	enum http1_body body;
	uint64_t length; /* HTTP1_BODY_LENGTH: never 0 */
	size_t used;     /* bytes of the head, the empty line included */
	/* HTTP1_BAD only.  What was read before the trouble stands above. */
	enum http1_trouble trouble;
	unsigned status; /* 400, 413, 414, 417, 431, 501, 505 */
	const char *why; /* a sentence for the answer's body */
	size_t bad_line; /* where: the request line is 1; 0: lines that are sound by themselves */
};

/*
 * bytes: everything received so far, from the request's first byte on; seen: how far earlier calls have scanned, 0
 * before the first call for each request, so that each byte is checked once as it arrives.  Nothing else is kept
 * between calls: ret may be a different one each time.
 */
enum http1_parse http1_head_parse(const char *bytes, size_t len, size_t *seen, struct http1_head *ret);

/*
 * The same of an answer.  is_of_head: the request was HEAD, so that there is no body whatever the fields say.  Refused as above,
 * with 502: besides what has no status of three digits, Content-Length beside Transfer-Encoding, each of them twice, and codings
 * other than "chunked".
 */
enum http1_parse http1_answer_parse(const char *bytes, size_t len, size_t *seen, bool is_of_head,
				    struct http1_head *ret);

/* Whether a place holds this word, in any case.  Methods are in capitals: what is "GET" here is GET. */
bool http1_is(const char *bytes, struct http1_text text, const char *word);
/* The first line with this name, in any case; NULL: none. */
const struct http1_line *http1_find(const char *bytes, const struct http1_head *h, const char *name);
/* How many lines have this name: for fields that must not be repeated but that the parser does not check. */
size_t http1_count(const char *bytes, const struct http1_head *h, const char *name);
/* Whether one of the lines with this name, which hold lists of words separated by commas, has the word. */
bool http1_has_word(const char *bytes, const struct http1_head *h, const char *name, const char *word, size_t len);

/*
 * Percent-decoding, of a segment of a path for example.  False: an escape that is none, a NUL, or no room.  dst gets a
 * NUL behind the bytes, which size counts and ret_len does not.  A plus sign is a plus sign.
 */
bool http1_decode(const char *raw, size_t len, char *dst, size_t size, size_t *ret_len);

/* ---- bodies ------------------------------------------------------------------------------------- */

enum http1_chunk_state {
	HTTP1_CHUNK_SIZE,
	HTTP1_CHUNK_EXTENSION,      /* behind a semicolon */
	HTTP1_CHUNK_EXTENSION_NAME, /* behind its first character */
	HTTP1_CHUNK_EXTENSION_EQUALS,
	HTTP1_CHUNK_EXTENSION_VALUE,
	HTTP1_CHUNK_SIZE_LF,
	HTTP1_CHUNK_DATA,
	HTTP1_CHUNK_DATA_CR,
	HTTP1_CHUNK_DATA_LF,
	HTTP1_CHUNK_TRAILER, /* at the beginning of a line */
	HTTP1_CHUNK_TRAILER_NAME,
	HTTP1_CHUNK_TRAILER_VALUE,
	HTTP1_CHUNK_TRAILER_LF,
	HTTP1_CHUNK_LAST_LF
};

struct http1_body_reader {
	enum http1_body kind;
	/* Set by callers that pass chunks on unchanged: neither extensions nor trailers are accepted, because the next
	 * parser would assume that they were checked. */
	bool plain;
	uint64_t left; /* of the body, or of the chunk */
	enum http1_chunk_state state;
	unsigned digits; /* of the chunk's size */
	size_t extra;    /* bytes of extensions and trailers so far */
	bool done, bad;
	enum http1_trouble trouble; /* bad only, as are these */
	unsigned status;
	const char *why;
};

/* Reads the body that this head announces; done at once if there is none. */
void http1_body_begin(struct http1_body_reader *r, const struct http1_head *h);
/*
 * Consumes bytes up to the end of the next chunk of data and returns their number.  The two others say where the data
 * is and how long.  Call it until all bytes are consumed, or done, or bad; what is left then is not part of this
 * request.
 */
size_t http1_body_take(struct http1_body_reader *r, const char *bytes, size_t len, size_t *ret_data_at,
		       size_t *ret_data_len);

#endif
