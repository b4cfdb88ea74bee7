/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, good and hostile, and what is to become of them. */
#ifndef TEST_HTTP1_CASES_H
#define TEST_HTTP1_CASES_H

#include "net/http1.h"

#define BYTES(s) (s), sizeof(s) - 1
#define LF       "\r\n"
#define HOST_A   "Host: a.test" LF
#define GET_A    "GET / HTTP/1.1" LF HOST_A
#define POST_A   "POST /x HTTP/1.1" LF HOST_A

/* What a sound head says. */
struct good_head {
	const char *bytes;
	size_t len;
	const char *method, *target;
	enum http1_form form;
	const char *path, *query, *authority; /* NULL: empty */
	enum http1_body body;
	uint64_t length;
	bool version_1_0, close, expects_continue, upgrade;
};

static const struct good_head good_heads[] = {
	{ BYTES(GET_A LF), "GET", "/", .path = "/" },
	{ BYTES("GET / HTTP/1.0" LF LF), "GET", "/", .path = "/", .version_1_0 = true, .close = true },
	{ BYTES("GET / HTTP/1.0" LF "Connection: keep-alive" LF LF), "GET", "/", .path = "/", .version_1_0 = true },
	{ BYTES("GET / HTTP/1.0" LF "Connection: Keep-Alive, close" LF LF), "GET", "/", .path = "/",
	  .version_1_0 = true, .close = true },
	{ BYTES("GET /a/b%20c?x=1&y=?z HTTP/1.1" LF HOST_A LF), "GET", "/a/b%20c?x=1&y=?z", .path = "/a/b%20c",
	  .query = "x=1&y=?z" },
	{ BYTES("GET /? HTTP/1.1" LF HOST_A LF), "GET", "/?", .path = "/" },
	{ BYTES("GET //x HTTP/1.1" LF HOST_A LF), "GET", "//x", .path = "//x" },
	{ BYTES("GET /|^{}\"<>`\\ HTTP/1.1" LF HOST_A LF), "GET", "/|^{}\"<>`\\", .path = "/|^{}\"<>`\\" },
	{ BYTES("DELETE /v1/executions/x HTTP/1.1" LF "host:\t A.Test:8377 \t" LF LF), "DELETE", "/v1/executions/x",
	  .path = "/v1/executions/x" },
	{ BYTES("GET / HTTP/1.1" LF "Host: [::1]:80" LF LF), "GET", "/", .path = "/" },
	{ BYTES("GET / HTTP/1.1" LF "Host: 127.0.0.1" LF LF), "GET", "/", .path = "/" },
	{ BYTES("FROBNICATE / HTTP/1.1" LF HOST_A LF), "FROBNICATE", "/", .path = "/" },
	{ BYTES("M-SEARCH / HTTP/1.1" LF HOST_A LF), "M-SEARCH", "/", .path = "/" },
	/* other forms of the target */
	{ BYTES("GET http://a.test/x?y HTTP/1.1" LF HOST_A LF), "GET", "http://a.test/x?y", HTTP1_ABSOLUTE, "/x", "y",
	  "a.test" },
	{ BYTES("GET HTTP://A.TEST.:80 HTTP/1.1" LF HOST_A LF), "GET", "HTTP://A.TEST.:80", HTTP1_ABSOLUTE,
	  .authority = "A.TEST.:80" },
	{ BYTES("GET https://a.test?q HTTP/1.1" LF "Host: a.test:443" LF LF), "GET", "https://a.test?q", HTTP1_ABSOLUTE,
	  .query = "q", .authority = "a.test" },
	{ BYTES("GET http://a.test/ HTTP/1.0" LF LF), "GET", "http://a.test/", HTTP1_ABSOLUTE, "/",
	  .authority = "a.test", .version_1_0 = true, .close = true },
	{ BYTES("OPTIONS * HTTP/1.1" LF HOST_A LF), "OPTIONS", "*", HTTP1_ASTERISK },
	{ BYTES("CONNECT a.test:443 HTTP/1.1" LF "Host: a.test:443" LF LF), "CONNECT", "a.test:443", HTTP1_AUTHORITY,
	  .authority = "a.test:443" },
	{ BYTES("CONNECT [2001:db8::1]:443 HTTP/1.1" LF LF), "CONNECT", "[2001:db8::1]:443", HTTP1_AUTHORITY,
	  .authority = "[2001:db8::1]:443" },
	{ BYTES("CONNECT a.test:443 HTTP/1.1" LF "Content-Length: 0" LF LF), "CONNECT", "a.test:443", HTTP1_AUTHORITY,
	  .authority = "a.test:443" },
	/* fields */
	{ BYTES(GET_A "X:" LF "Y:  " LF "Z: a  b\tc" LF LF), "GET", "/", .path = "/" },
	{ BYTES(GET_A "X: \xc3\xbc\xff" LF LF), "GET", "/", .path = "/" },
	{ BYTES(GET_A "!#$%&'*+-.^_`|~09azAZ: x" LF LF), "GET", "/", .path = "/" },
	{ BYTES(GET_A "Accept: a" LF "Accept: b" LF LF), "GET", "/", .path = "/" },
	{ BYTES(GET_A "Connection: close" LF LF), "GET", "/", .path = "/", .close = true },
	{ BYTES(GET_A "Connection: x" LF "connection: y ,\tCLOSE" LF LF), "GET", "/", .path = "/", .close = true },
	{ BYTES(GET_A "Connection: closer, ,enclose" LF LF), "GET", "/", .path = "/" },
	{ BYTES(GET_A "Connection: keep-alive, Upgrade" LF "Upgrade: websocket" LF LF), "GET", "/", .path = "/",
	  .upgrade = true },
	{ BYTES(GET_A "Upgrade: websocket" LF LF), "GET", "/", .path = "/" },
	{ BYTES(GET_A "Connection: upgrade" LF LF), "GET", "/", .path = "/" },
	{ BYTES("GET / HTTP/1.0" LF "Connection: upgrade" LF "Upgrade: websocket" LF LF), "GET", "/", .path = "/",
	  .version_1_0 = true, .close = true },
	/* bodies */
	{ BYTES(POST_A "Content-Length: 5" LF LF), "POST", "/x", .path = "/x", .body = HTTP1_BODY_LENGTH, .length = 5 },
	{ BYTES(POST_A "Content-Length: 005" LF LF), "POST", "/x", .path = "/x", .body = HTTP1_BODY_LENGTH,
	  .length = 5 },
	{ BYTES(POST_A "Content-Length: 0" LF LF), "POST", "/x", .path = "/x" },
	{ BYTES(POST_A "Content-Length: 999999999999999999" LF LF), "POST", "/x", .path = "/x",
	  .body = HTTP1_BODY_LENGTH, .length = 999999999999999999 },
	{ BYTES("POST /x HTTP/1.0" LF "Content-Length: 2" LF LF), "POST", "/x", .path = "/x", .body = HTTP1_BODY_LENGTH,
	  .length = 2, .version_1_0 = true, .close = true },
	{ BYTES(POST_A "Transfer-Encoding: chunked" LF LF), "POST", "/x", .path = "/x", .body = HTTP1_BODY_CHUNKED },
	{ BYTES(POST_A "transfer-encoding:\tCHUNKED " LF LF), "POST", "/x", .path = "/x", .body = HTTP1_BODY_CHUNKED },
	{ BYTES(GET_A "Content-Length: 3" LF LF), "GET", "/", .path = "/", .body = HTTP1_BODY_LENGTH, .length = 3 },
	{ BYTES(POST_A "Content-Length: 5" LF "Expect: 100-Continue" LF LF), "POST", "/x", .path = "/x",
	  .body = HTTP1_BODY_LENGTH, .length = 5, .expects_continue = true },
	{ BYTES(GET_A "Expect: 100-continue" LF LF), "GET", "/", .path = "/" },
	{ BYTES("POST /x HTTP/1.0" LF "Content-Length: 2" LF "Expect: 100-continue" LF LF), "POST", "/x", .path = "/x",
	  .body = HTTP1_BODY_LENGTH, .length = 2, .version_1_0 = true, .close = true },
};

/* Why a head is refused, how far it had to come, and the line that is to blame. */
struct bad_head {
	const char *bytes;
	size_t len;
	enum http1_trouble trouble;
	unsigned status;
	size_t line;
	bool at_once;     /* with the last of these bytes, not with the end of the head */
	const char *rest; /* what could make it a request for another parser; NULL: a Host and the end of the head */
};

static const struct bad_head bad_heads[] = {
	/* bytes, as they come */
	{ BYTES("\x16"), HTTP1_not_http, 400, 1, true },
	{ BYTES("\r"), HTTP1_not_http, 400, 1, true, "\n" GET_A LF },
	{ BYTES("\n"), HTTP1_not_http, 400, 1, true, GET_A LF },
	{ BYTES(" "), HTTP1_not_http, 400, 1, true },
	{ BYTES("\0"), HTTP1_not_http, 400, 1, true },
	{ BYTES("g"), HTTP1_not_http, 400, 1, true },
	{ BYTES("\xef"), HTTP1_not_http, 400, 1, true },
	{ BYTES("GET /\n"), HTTP1_bare_lf, 400, 1, true },
	{ BYTES("GET / HTTP/1.1\n"), HTTP1_bare_lf, 400, 1, true },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test\n"), HTTP1_bare_lf, 400, 2, true },
	{ BYTES(GET_A "\n"), HTTP1_bare_lf, 400, 3, true },
	{ BYTES("GET / HTTP/1.1\rH"), HTTP1_bare_cr, 400, 1, true },
	{ BYTES(GET_A "X: a\rb"), HTTP1_bare_cr, 400, 3, true },
	{ BYTES(GET_A "X: a\r\r"), HTTP1_bare_cr, 400, 3, true },
	{ BYTES(GET_A "\rX"), HTTP1_bare_cr, 400, 3, true }, /* CR LF CR X is no end */
	{ BYTES("GET /\0"), HTTP1_control, 400, 1, true },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test\0"), HTTP1_control, 400, 2, true },
	{ BYTES(GET_A "X\0"), HTTP1_control, 400, 3, true },
	{ BYTES(GET_A "X: \x01"), HTTP1_control, 400, 3, true },
	{ BYTES(GET_A "X: \x0b"), HTTP1_control, 400, 3, true },
	{ BYTES(GET_A "X: \x1b"), HTTP1_control, 400, 3, true },
	{ BYTES(GET_A "X: \x7f"), HTTP1_control, 400, 3, true },
	{ BYTES(GET_A " "), HTTP1_folded, 400, 3, true },
	{ BYTES(GET_A "\t"), HTTP1_folded, 400, 3, true },
	{ BYTES("GET / HTTP/1.1" LF " "), HTTP1_folded, 400, 2,
	  true }, /* blanks between request line and first field */
	/* the request line, as soon as it is there */
	{ BYTES("GET" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET /" LF), HTTP1_request_line, 400, 1, true }, /* HTTP/0.9 */
	{ BYTES("GET  / HTTP/1.1" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET /  HTTP/1.1" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET / HTTP/1.1 " LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET /a b HTTP/1.1" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET\t/ HTTP/1.1" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET /\tHTTP/1.1" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET / HTTP/1.1\t" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / http/1.1" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / HTTP/1" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / HTTP/1.10" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / HTTP/11" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / HTTP/1,1" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / HTTP/ 1.1" LF), HTTP1_request_line, 400, 1, true },
	{ BYTES("GET / HTTPS/1.1" LF), HTTP1_version_form, 400, 1, true },
	{ BYTES("GET / HTTP/2.0" LF), HTTP1_version, 505, 1, true },
	{ BYTES("PRI * HTTP/2.0" LF), HTTP1_version, 505, 1, true },
	{ BYTES("GET / HTTP/1.2" LF), HTTP1_version, 505, 1, true },
	{ BYTES("GET / HTTP/0.9" LF), HTTP1_version, 505, 1, true },
	{ BYTES("Get / HTTP/1.1" LF), HTTP1_method, 400, 1, true },
	{ BYTES("GET\"/ / HTTP/1.1" LF), HTTP1_method, 400, 1, true },
	{ BYTES("GE\xc3\x9c / HTTP/1.1" LF), HTTP1_method, 400, 1, true },
	{ BYTES("GET: / HTTP/1.1" LF), HTTP1_method, 400, 1, true },
	{ BYTES("AAAAAAAAAAAAAAAAAAAAAAAAA / HTTP/1.1" LF), HTTP1_method_length, 501, 1, true },
	{ BYTES("GET /a#b HTTP/1.1" LF), HTTP1_target_char, 400, 1, true },
	{ BYTES("GET /\xc3\xbc HTTP/1.1" LF), HTTP1_target_char, 400, 1, true },
	{ BYTES("GET /a\tb HTTP/1.1" LF), HTTP1_target_char, 400, 1, true },
	{ BYTES("GET x HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET a.test:80 HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET ?x HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET \\x HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET ftp://a.test/ HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET http:/a.test/ HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET http: HTTP/1.1" LF), HTTP1_target_form, 400, 1, true },
	{ BYTES("GET * HTTP/1.1" LF), HTTP1_asterisk, 400, 1, true },
	{ BYTES("GET http:// HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("GET http:///x HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("GET http://a.test:/ HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("GET http://a.test:x/ HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("GET http://a.test\\@b.test/ HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("GET http://0x7f.1/ HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("GET http://a@b.test/ HTTP/1.1" LF), HTTP1_user_info, 400, 1, true },
	{ BYTES("CONNECT a.test HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("CONNECT / HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("CONNECT http://a.test:443 HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("CONNECT a.test:443/x HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	{ BYTES("CONNECT a@b.test:443 HTTP/1.1" LF), HTTP1_user_info, 400, 1, true },
	{ BYTES("CONNECT * HTTP/1.1" LF), HTTP1_authority, 400, 1, true },
	/* fields */
	{ BYTES(GET_A "no field" LF LF), HTTP1_no_colon, 400, 3, false },
	{ BYTES(GET_A ": x" LF LF), HTTP1_name_empty, 400, 3, false },
	{ BYTES(GET_A "X : y" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(GET_A "X\t: y" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(GET_A "X Y: z" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(GET_A "X\xc3\xbc: y" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(GET_A "X(): y" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(POST_A "Content-Length : 5" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(POST_A "Transfer-Encoding : chunked" LF LF), HTTP1_name_char, 400, 3, false },
	{ BYTES(GET_A "Authorization: a" LF "X: y" LF "authorization: b" LF LF), HTTP1_twice, 400, 5, false },
	{ BYTES(GET_A "Content-Type: a" LF "Content-Type: a" LF LF), HTTP1_twice, 400, 4, false },
	{ BYTES(GET_A "Origin: a" LF "Origin: b" LF LF), HTTP1_twice, 400, 4, false },
	{ BYTES(GET_A "Idempotency-Key: a" LF "Idempotency-Key: b" LF LF), HTTP1_twice, 400, 4, false },
	{ BYTES(GET_A "X-API-Key: a" LF "X-Api-Key: b" LF LF), HTTP1_twice, 400, 4, false },
	{ BYTES(POST_A "Expect: 100-continue" LF "Expect: 100-continue" LF LF), HTTP1_twice, 400, 4, false },
	{ BYTES(POST_A "Expect: more" LF LF), HTTP1_expect, 417, 3, false },
	{ BYTES(POST_A "Expect: more, 100-continue" LF LF), HTTP1_expect, 417, 3, false },
	/* Host */
	{ BYTES("GET / HTTP/1.1" LF LF), HTTP1_host_missing, 400, 0, false },
	{ BYTES("GET http://a.test/ HTTP/1.1" LF LF), HTTP1_host_missing, 400, 0, false },
	{ BYTES(GET_A HOST_A LF), HTTP1_host_twice, 400, 3, false },
	{ BYTES(GET_A "hOST: b.test" LF LF), HTTP1_host_twice, 400, 3, false },
	{ BYTES("GET / HTTP/1.0" LF HOST_A HOST_A LF), HTTP1_host_twice, 400, 3, false },
	{ BYTES("GET / HTTP/1.1" LF "Host:" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test, b.test" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test b.test" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test/x" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: x@a.test" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test:0" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: a.test:65536" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: 2130706433" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET / HTTP/1.1" LF "Host: [::1" LF LF), HTTP1_host_value, 400, 2, false },
	{ BYTES("GET http://a.test/ HTTP/1.1" LF "Host: b.test" LF LF), HTTP1_host_differs, 400, 0, false },
	{ BYTES("GET http://a.test/ HTTP/1.1" LF "Host: a.test:8080" LF LF), HTTP1_host_differs, 400, 0, false },
	{ BYTES("GET https://a.test/ HTTP/1.1" LF "Host: a.test:80" LF LF), HTTP1_host_differs, 400, 0, false },
	{ BYTES("GET http://a.test/ HTTP/1.0" LF "Host: b.test" LF LF), HTTP1_host_differs, 400, 0, false },
	/* how long the body is */
	{ BYTES(POST_A "Content-Length: 5" LF "Content-Length: 5" LF LF), HTTP1_length_twice, 400, 4, false },
	{ BYTES(POST_A "Content-Length: 5" LF "content-length: 6" LF LF), HTTP1_length_twice, 400, 4, false },
	{ BYTES(POST_A "Content-Length: 5, 5" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: +5" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: -5" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: 0x5" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: 5 5" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: 5.0" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: 1e3" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: \xd9\xa5" LF LF), HTTP1_length_value, 400, 3, false }, /* an Arabic digit */
	{ BYTES(POST_A "Content-Length:" LF LF), HTTP1_length_value, 400, 3, false },
	{ BYTES(POST_A "Content-Length: 18446744073709551617" LF LF), HTTP1_length_huge, 413, 3, false },
	{ BYTES(POST_A "Content-Length: 0000000000000000005" LF LF), HTTP1_length_huge, 413, 3, false },
	{ BYTES(POST_A "Content-Length: 5" LF "Transfer-Encoding: chunked" LF LF), HTTP1_length_and_coding, 400, 0,
	  false },
	{ BYTES(POST_A "Transfer-Encoding: chunked" LF "Content-Length: 5" LF LF), HTTP1_length_and_coding, 400, 0,
	  false },
	{ BYTES(POST_A "Transfer-Encoding: chunked" LF "Content-Length: 0" LF LF), HTTP1_length_and_coding, 400, 0,
	  false },
	{ BYTES(POST_A "Transfer-Encoding: chunked" LF "Transfer-Encoding: chunked" LF LF), HTTP1_coding_twice, 400, 4,
	  false },
	{ BYTES(POST_A "Transfer-Encoding: chunked" LF "Transfer-Encoding: identity" LF LF), HTTP1_coding_twice, 400, 4,
	  false },
	{ BYTES(POST_A "Transfer-Encoding: identity" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: xchunked" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: chunked, identity" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: gzip, chunked" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: chunked, chunked" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: \"chunked\"" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: chunked;q=1" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding: chun\tked" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES(POST_A "Transfer-Encoding:" LF LF), HTTP1_coding, 501, 3, false },
	{ BYTES("POST / HTTP/1.0" LF "Transfer-Encoding: chunked" LF LF), HTTP1_coding_1_0, 400, 0, false },
	{ BYTES("CONNECT a.test:443 HTTP/1.1" LF "Content-Length: 5" LF LF), HTTP1_connect_body, 400, 0, false },
	{ BYTES("CONNECT a.test:443 HTTP/1.1" LF "Transfer-Encoding: chunked" LF LF), HTTP1_connect_body, 400, 0,
	  false },
	{ BYTES(POST_A "Connection: close, Content-Length" LF "Content-Length: 5" LF LF), HTTP1_connection_names, 400,
	  3, false },
	{ BYTES(GET_A "Connection: close" LF "Connection: host" LF LF), HTTP1_connection_names, 400, 4, false },
};

/* What comes behind a head. */
struct body_case {
	enum http1_body kind;
	uint64_t length;
	const char *bytes;
	size_t taken; /* up to the end, or to the byte that is wrong */
	const char *data;
	bool done;
	enum http1_trouble trouble;
	bool plain; /* the reader takes neither extensions nor trailers */
};

/* Answers: what of them is read, or why they are none. */
#define OK_LINE "HTTP/1.1 200 OK" LF
#define NO_BODY HTTP1_BODY_NONE, 0
#define TO_END  HTTP1_BODY_UNTIL_END, 0
#define NOTHING 0, NO_BODY

static const struct answer_case {
	const char *bytes;
	size_t len;
	enum http1_trouble trouble; /* HTTP1_ok: it is read */
	unsigned code;
	enum http1_body body;
	uint64_t length;
	bool is_of_head, upgrade;
} answer_cases[] = {
	{ BYTES(OK_LINE LF), HTTP1_ok, 200, TO_END, false, false },
	{ BYTES("HTTP/1.1 200" LF LF), HTTP1_ok, 200, TO_END, false, false },
	{ BYTES("HTTP/1.1 200 " LF LF), HTTP1_ok, 200, TO_END, false, false },
	{ BYTES("HTTP/1.0 404 Not \xc3\xa4" LF LF), HTTP1_ok, 404, TO_END, false, false },
	{ BYTES(OK_LINE "Content-Length: 5" LF LF), HTTP1_ok, 200, HTTP1_BODY_LENGTH, 5, false, false },
	{ BYTES(OK_LINE "Content-Length: 0" LF LF), HTTP1_ok, 200, NO_BODY, false, false },
	{ BYTES(OK_LINE "Content-Length: 5" LF LF), HTTP1_ok, 200, HTTP1_BODY_NONE, 5, true, false },
	{ BYTES(OK_LINE "transfer-encoding: Chunked" LF LF), HTTP1_ok, 200, HTTP1_BODY_CHUNKED, 0, false, false },
	{ BYTES("HTTP/1.1 204 No" LF "Content-Length: 5" LF LF), HTTP1_ok, 204, HTTP1_BODY_NONE, 5, false, false },
	{ BYTES("HTTP/1.1 304 No" LF LF), HTTP1_ok, 304, NO_BODY, false, false },
	{ BYTES("HTTP/1.1 100 Go" LF LF), HTTP1_ok, 100, NO_BODY, false, false },
	{ BYTES("HTTP/1.1 101 S" LF "Connection: Upgrade" LF "Upgrade: websocket" LF LF), HTTP1_ok, 101, NO_BODY, false,
	  true },
	{ BYTES("HTTP/1.1 101 S" LF "Upgrade: websocket" LF LF), HTTP1_ok, 101, NO_BODY, false, false },
	{ BYTES("h"), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/2"), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.2 200 OK" LF LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.1  200 OK" LF LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.1 20 OK" LF LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.1 2000" LF LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.1 099 X" LF LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.1 600 X" LF LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES(LF), HTTP1_status_line, NOTHING, false, false },
	{ BYTES("HTTP/1.1 200 OK\n"), HTTP1_bare_lf, NOTHING, false, false },
	{ BYTES("HTTP/1.1 200 OK\rx"), HTTP1_bare_cr, NOTHING, false, false },
	{ BYTES(OK_LINE "A: b" LF " "), HTTP1_folded, NOTHING, false, false },
	{ BYTES(OK_LINE "A: \1"), HTTP1_control, NOTHING, false, false },
	{ BYTES(OK_LINE "A" LF LF), HTTP1_no_colon, NOTHING, false, false },
	{ BYTES(OK_LINE "Content-Length : 5" LF LF), HTTP1_name_char, NOTHING, false, false },
	{ BYTES(OK_LINE "Content-Length: 5" LF "Content-Length: 5" LF LF), HTTP1_length_twice, NOTHING, false, false },
	{ BYTES(OK_LINE "Content-Length: 5, 5" LF LF), HTTP1_length_value, NOTHING, false, false },
	{ BYTES(OK_LINE "Content-Length: -1" LF LF), HTTP1_length_value, NOTHING, false, false },
	{ BYTES(OK_LINE "Content-Length: 1" LF "Transfer-Encoding: chunked" LF LF), HTTP1_length_and_coding, NOTHING,
	  false, false },
	{ BYTES(OK_LINE "Transfer-Encoding: gzip, chunked" LF LF), HTTP1_coding, NOTHING, false, false },
	{ BYTES(OK_LINE "Transfer-Encoding: chunked" LF "Transfer-Encoding: chunked" LF LF), HTTP1_coding_twice,
	  NOTHING, false, false },
	{ BYTES("HTTP/1.0 200 OK" LF "Transfer-Encoding: chunked" LF LF), HTTP1_coding_1_0, NOTHING, false, false },
	{ BYTES(OK_LINE "Connection: content-length" LF LF), HTTP1_connection_names, NOTHING, false, false },
	{ BYTES(OK_LINE "Location: /a" LF "Location: /b" LF LF), HTTP1_twice, NOTHING, false, false },
};

#define CHUNKED HTTP1_BODY_CHUNKED, 0

static const struct body_case body_cases[] = {
	{ HTTP1_BODY_LENGTH, 5, "hello", 5, "hello", true, HTTP1_ok, false },
	{ HTTP1_BODY_LENGTH, 5, "helloGET /", 5, "hello", true, HTTP1_ok, false },
	{ HTTP1_BODY_LENGTH, 5, "hel", 3, "hel", false, HTTP1_ok, false },
	{ CHUNKED, "5\r\nhello\r\n0\r\n\r\n", 15, "hello", true, HTTP1_ok, false },
	{ CHUNKED, "5\r\nhello\r\n0\r\n\r\nGET /", 15, "hello", true, HTTP1_ok, false },
	{ CHUNKED, "1\r\na\r\nA\r\n0123456789\r\n0\r\n\r\n", 26, "a0123456789", true, HTTP1_ok, false },
	{ CHUNKED, "0000000000000f\r\n0123456789abcde\r\n0\r\n\r\n", 38, "0123456789abcde", true, HTTP1_ok, false },
	{ CHUNKED, "2\r\n\r\n\r\n0\r\n\r\n", 12, "\r\n", true, HTTP1_ok, false },
	{ CHUNKED, "5\r\nhel", 6, "hel", false, HTTP1_ok, false },
	{ CHUNKED, "5", 1, "", false, HTTP1_ok, false },
	{ CHUNKED, "00\r\n\r\n", 6, "", true, HTTP1_ok, true },
	{ CHUNKED, "0\r\n", 3, "", false, HTTP1_ok, false },
	/* extensions and trailers */
	{ CHUNKED, "1;x=y\r\na\r\n0;a;b=c;d\r\n\r\n", 23, "a", true, HTTP1_ok, false },
	{ CHUNKED, "0\r\nExpires: x\r\nY:\r\n\r\nGET", 21, "", true, HTTP1_ok, false },
	{ CHUNKED, "0\r\nContent-Length: 5\r\n\r\n", 24, "", true, HTTP1_ok, false },
	{ CHUNKED, "5;x=y\r\nhello\r\n", 2, "", false, HTTP1_chunk_extension, true },
	{ CHUNKED, "5;x\n", 4, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;x\rhello", 5, "", false, HTTP1_chunk_line, false },
	{ CHUNKED, "5;\r\n", 3, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;;", 3, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;x=\r\n", 5, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;x==", 5, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;x=y=", 6, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;=y\r\n", 3, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5; x\r\n", 3, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;x=\"y\"\r\n", 5, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "5;\x01", 3, "", false, HTTP1_chunk_extension, false },
	{ CHUNKED, "0\r\nTrailer: x\r\n\r\n", 4, "", false, HTTP1_trailer, true },
	{ CHUNKED, "0\r\n folded: x\r\n\r\n", 4, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\n: x\r\n\r\n", 4, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nX : y\r\n\r\n", 5, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nno field\r\n\r\n", 6, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nX\r\n\r\n", 5, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nX: y\n\r\n", 8, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nX: y\rz", 9, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nX: \x7f", 7, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\n\rX", 5, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\n\n", 4, "", false, HTTP1_trailer, false },
	{ CHUNKED, "0\r\nGET / HTTP/1.1\r\n", 7, "", false, HTTP1_trailer, false },
	/* sizes and ends */
	{ CHUNKED, "5 \r\nhello\r\n", 2, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, " 5\r\nhello\r\n", 1, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "\r\n", 1, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, ";x\r\n", 1, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "5\nhello", 2, "", false, HTTP1_chunk_line, false },
	{ CHUNKED, "5\rhello", 3, "", false, HTTP1_chunk_line, false },
	{ CHUNKED, "-1\r\n", 1, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "+1\r\n", 1, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "0x5\r\n", 2, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "5h\r\n", 2, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "FFFFFFFFFFFFFFFF\r\n", 16, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "0000000000000005\r\nhello", 16, "", false, HTTP1_chunk_size, false },
	{ CHUNKED, "5\r\nhelloX", 9, "hello", false, HTTP1_chunk_end, false },
	{ CHUNKED, "5\r\nhello\rX", 10, "hello", false, HTTP1_chunk_end, false },
	{ CHUNKED, "5\r\nhello\n", 9, "hello", false, HTTP1_chunk_end, false },
	{ CHUNKED, "5\r\nhello!\r\n", 9, "hello", false, HTTP1_chunk_end, false },
	{ CHUNKED, "1\r\na\r\n\r\n", 7, "a", false, HTTP1_chunk_size, false },
};

#endif
