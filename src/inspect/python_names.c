/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names as CPython reads them: it normalizes identifiers with NFKC, so that eval may be written with mathematical
 * letters. Only code points that normalize to plain ASCII matter here, because every name in a rule is ASCII.
 */
#include "inspect/python.h"

struct compatibility {
	uint32_t code;
	char ascii[8];
};

/*
 * Unicode 15: code points that normalize to ASCII letters, digits and underscores, outside the ranges of fold_code().
 */
static const struct compatibility table[] = {
	{ 0x00AA, "a" },   { 0x00BA, "o" },   { 0x0132, "IJ" },   { 0x0133, "ij" },   { 0x017F, "s" },
	{ 0x01C7, "LJ" },  { 0x01C8, "Lj" },  { 0x01C9, "lj" },   { 0x01CA, "NJ" },   { 0x01CB, "Nj" },
	{ 0x01CC, "nj" },  { 0x01F1, "DZ" },  { 0x01F2, "Dz" },   { 0x01F3, "dz" },   { 0x02B0, "h" },
	{ 0x02B2, "j" },   { 0x02B3, "r" },   { 0x02B7, "w" },    { 0x02B8, "y" },    { 0x02E1, "l" },
	{ 0x02E2, "s" },   { 0x02E3, "x" },   { 0x1D2C, "A" },    { 0x1D2E, "B" },    { 0x1D30, "D" },
	{ 0x1D31, "E" },   { 0x1D33, "G" },   { 0x1D34, "H" },    { 0x1D35, "I" },    { 0x1D36, "J" },
	{ 0x1D37, "K" },   { 0x1D38, "L" },   { 0x1D39, "M" },    { 0x1D3A, "N" },    { 0x1D3C, "O" },
	{ 0x1D3E, "P" },   { 0x1D3F, "R" },   { 0x1D40, "T" },    { 0x1D41, "U" },    { 0x1D42, "W" },
	{ 0x1D43, "a" },   { 0x1D47, "b" },   { 0x1D48, "d" },    { 0x1D49, "e" },    { 0x1D4D, "g" },
	{ 0x1D4F, "k" },   { 0x1D50, "m" },   { 0x1D52, "o" },    { 0x1D56, "p" },    { 0x1D57, "t" },
	{ 0x1D58, "u" },   { 0x1D5B, "v" },   { 0x1D62, "i" },    { 0x1D63, "r" },    { 0x1D64, "u" },
	{ 0x1D65, "v" },   { 0x1D9C, "c" },   { 0x1DA0, "f" },    { 0x1DBB, "z" },    { 0x2071, "i" },
	{ 0x207F, "n" },   { 0x2090, "a" },   { 0x2091, "e" },    { 0x2092, "o" },    { 0x2093, "x" },
	{ 0x2095, "h" },   { 0x2096, "k" },   { 0x2097, "l" },    { 0x2098, "m" },    { 0x2099, "n" },
	{ 0x209A, "p" },   { 0x209B, "s" },   { 0x209C, "t" },    { 0x2102, "C" },    { 0x210A, "g" },
	{ 0x210B, "H" },   { 0x210C, "H" },   { 0x210D, "H" },    { 0x210E, "h" },    { 0x2110, "I" },
	{ 0x2111, "I" },   { 0x2112, "L" },   { 0x2113, "l" },    { 0x2115, "N" },    { 0x2119, "P" },
	{ 0x211A, "Q" },   { 0x211B, "R" },   { 0x211C, "R" },    { 0x211D, "R" },    { 0x2124, "Z" },
	{ 0x2128, "Z" },   { 0x212A, "K" },   { 0x212C, "B" },    { 0x212D, "C" },    { 0x212F, "e" },
	{ 0x2130, "E" },   { 0x2131, "F" },   { 0x2133, "M" },    { 0x2134, "o" },    { 0x2139, "i" },
	{ 0x2145, "D" },   { 0x2146, "d" },   { 0x2147, "e" },    { 0x2148, "i" },    { 0x2149, "j" },
	{ 0x2160, "I" },   { 0x2161, "II" },  { 0x2162, "III" },  { 0x2163, "IV" },   { 0x2164, "V" },
	{ 0x2165, "VI" },  { 0x2166, "VII" }, { 0x2167, "VIII" }, { 0x2168, "IX" },   { 0x2169, "X" },
	{ 0x216A, "XI" },  { 0x216B, "XII" }, { 0x216C, "L" },    { 0x216D, "C" },    { 0x216E, "D" },
	{ 0x216F, "M" },   { 0x2170, "i" },   { 0x2171, "ii" },   { 0x2172, "iii" },  { 0x2173, "iv" },
	{ 0x2174, "v" },   { 0x2175, "vi" },  { 0x2176, "vii" },  { 0x2177, "viii" }, { 0x2178, "ix" },
	{ 0x2179, "x" },   { 0x217A, "xi" },  { 0x217B, "xii" },  { 0x217C, "l" },    { 0x217D, "c" },
	{ 0x217E, "d" },   { 0x217F, "m" },   { 0x2C7C, "j" },    { 0x2C7D, "V" },    { 0xA7F2, "C" },
	{ 0xA7F3, "F" },   { 0xA7F4, "Q" },   { 0xFB00, "ff" },   { 0xFB01, "fi" },   { 0xFB02, "fl" },
	{ 0xFB03, "ffi" }, { 0xFB04, "ffl" }, { 0xFB05, "st" },   { 0xFB06, "st" },   { 0xFE33, "_" },
	{ 0xFE34, "_" },   { 0xFE4D, "_" },   { 0xFE4E, "_" },    { 0xFE4F, "_" },    { 0x107A5, "q" },
	{ 0x1FBF0, "0" },  { 0x1FBF1, "1" },  { 0x1FBF2, "2" },   { 0x1FBF3, "3" },   { 0x1FBF4, "4" },
	{ 0x1FBF5, "5" },  { 0x1FBF6, "6" },  { 0x1FBF7, "7" },   { 0x1FBF8, "8" },   { 0x1FBF9, "9" },
};

static uint32_t next_code(const char *s, uint32_t len, uint32_t *used)
{
	unsigned char c = (unsigned char)s[0];
	uint32_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	uint32_t code = n == 1 ? c : c & (0x7fu >> n);

	if (n > len)
		n = len;
	for (uint32_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	*used = n;
	return code;
}

static uint32_t fold_style(uint32_t code)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	if (code >= 0xff01 && code <= 0xff5e) /* fullwidth */
		return code - 0xfee0;
	if (code >= 0x1d400 && code <= 0x1d6a3) /* mathematical letters: 13 alphabets of 52 */
		return (unsigned char)letters[(code - 0x1d400) % 52];
	if (code >= 0x1d7ce && code <= 0x1d7ff) /* mathematical digits: 5 rows of 10 */
		return '0' + (code - 0x1d7ce) % 10;
	return 0;
}

/* Appends the normalized code point, or its original bytes. */
static uint32_t fold_code(char *out, const char *in, uint32_t used, uint32_t code)
{
	size_t low = 0, high = ARRAY_LEN(table);
	uint32_t ascii = fold_style(code);

	if (ascii) {
		out[0] = (char)ascii;
		return 1;
	}
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (table[mid].code < code)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < ARRAY_LEN(table) && table[low].code == code) {
		size_t n = strlen(table[low].ascii);

		memcpy(out, table[low].ascii, n);
		return (uint32_t)n;
	}
	memcpy(out, in, used);
	return used;
}

const char *py_identifier(struct py *p, uint32_t start, uint32_t end, uint32_t *len)
{
	const char *in = p->text + start;
	uint32_t n = end - start, at = 0, made = 0;
	char *out;

	*len = n;
	while (at < n && (unsigned char)in[at] < 0x80)
		at++;
	if (at == n)
		return in;
	out = py_alloc(p, (size_t)n * 4); /* two bytes become at most eight */
	if (!out)
		return in;
	for (at = 0; at < n;) {
		uint32_t used, code = next_code(in + at, n - at, &used);

		made += fold_code(out + made, in + at, used, code);
		at += used;
	}
	*len = made;
	return out;
}

uint32_t py_name(struct py *p, const char *text, size_t len)
{
	return py_text_atom(p, PY_STR, text, len);
}

bool py_name_is(const struct py *p, uint32_t name, const char *text)
{
	return name != PY_NONE && py_atom_is(&p->atom[name], PY_STR, text);
}
