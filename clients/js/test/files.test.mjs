// SPDX-License-Identifier: Apache-2.0
// Files in memory, and projects.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test from "node:test";
import { FileMissing, Sandbox, UsageError } from "brig";
import { CALM, folder } from "./bed.mjs";

const ODD = ["plain", "with space", "-dash", "ä/ö\u{1f600}", "new\nline", ".dot", `${"deep/".repeat(40)}end`, "n".repeat(200), "\udcff\udc80raw"];

test("files.round: odd names and contents go in and come out", async () => {
	const sandbox = new Sandbox(CALM);
	for (const name of ODD) await sandbox.files.write(name, `content of ${name.length}`);
	await sandbox.files.write("every", Uint8Array.from({ length: 256 }, (_, index) => index));
	await sandbox.files.write("tool.sh", "#!/bin/sh\necho ran\n", { mode: 0o755 });
	const result = await sandbox.run(`import os, subprocess
names = [os.path.join(d, f)[2:] for d, _, fs in os.walk(b'.') for f in fs]
for name in names:
    if name in (b'every', b'tool.sh') or name.endswith(b'main.py'): continue
    data = open(name, 'rb').read()
    open(name + b'.copy', 'wb').write(data)
    open(name, 'ab').write(b'!')
print(subprocess.run(['./tool.sh'], capture_output=True, text=True).stdout)
os.chmod('every', 0o700)`);
	assert.equal(result.verdict, "ok", result.reason + result.stderr);
	assert.equal(result.stdout, "ran\n\n");
	for (const name of ODD) {
		assert.equal(await sandbox.files.readText(`${name}.copy`), `content of ${name.length}`);
		assert.equal(await sandbox.files.readText(name), `content of ${name.length}!`);
	}
	assert.deepEqual((await sandbox.files.list()).map((file) => file.path).sort(),
		[...ODD, ...ODD.map((name) => `${name}.copy`), "every", "tool.sh"].sort());
	assert.deepEqual((await sandbox.files.read("every")).length, 256);
});

test("files.last: what a run adds, changes and removes is so for the next one", async () => {
	const sandbox = new Sandbox({ ...CALM, files: { "a.txt": "1", "gone.txt": "x", "d/only": "y" } });
	const first = await sandbox.run("import os; open('a.txt','a').write('2'); os.remove('gone.txt'); os.remove('d/only'); os.makedirs('e/f'); open('new.txt','w').write('n')");
	assert.ok(first.ok, first.reason);
	assert.deepEqual((await sandbox.changes()).map((row) => `${row.change} ${row.path}`).sort(),
		["added e", "added e/f", "added new.txt", "deleted d/only", "deleted gone.txt", "modified a.txt"]);
	const second = await sandbox.exec("cat a.txt; find . -mindepth 1 | sort | tr '\\n' ' '");
	assert.equal(second.stdout, "12./a.txt ./d ./e ./e/f ./new.txt ");
	assert.deepEqual(await sandbox.changes(), []);
	const turned = await sandbox.exec("rmdir d; echo file >d; rm a.txt; mkdir a.txt; echo x >a.txt/x; ln -s d link");
	assert.ok(turned.ok, turned.reason);
	assert.equal((await sandbox.exec("cat d a.txt/x; ls")).stdout, "file\nx\na.txt\nd\ne\nnew.txt\n", "a file became a folder and back; links do not last");
	const failing = await sandbox.run("open('late.txt','w').write('kept'); raise SystemExit(1)");
	assert.equal(failing.verdict, "error");
	assert.equal(await sandbox.files.readText("late.txt"), "kept");
});

test("files.artifacts: what the program left, on demand, and only what was asked for", async () => {
	const sandbox = new Sandbox(CALM);
	const code = "open('a.csv','w').write('1,2'); open('b.bin','wb').write(b'\\xff\\x00')";
	const all = await sandbox.run(code);
	assert.deepEqual(all.artifacts.map((row) => row.path).sort(), ["a.csv", "b.bin"]);
	assert.deepEqual(all.artifacts.find((row) => row.path === "b.bin").bytes(), Uint8Array.of(255, 0));
	assert.match(all.artifacts[0].sha256, /^[0-9a-f]{64}$/);
	const some = await new Sandbox(CALM).run(code, { artifacts: ["*.csv"] });
	assert.deepEqual(some.artifacts.map((row) => [row.path, row.text()]), [["a.csv", "1,2"]]);
});

test("files.wrong: names that cannot be, files that are not there", async () => {
	const { files } = new Sandbox();
	await assert.rejects(files.write("../up", ""), UsageError);
	await assert.rejects(files.write("/etc/passwd", ""), UsageError);
	await assert.rejects(files.read("nothing"), FileMissing);
	await assert.rejects(files.remove("nothing"), FileMissing);
	await files.write("f", "1");
	await assert.rejects(files.write("f/below", ""), UsageError);
	await files.write("d/f", "1");
	await assert.rejects(files.write("d", ""), UsageError);
	await files.remove("d");
	assert.deepEqual(await files.list(), [{ path: "f", size: 1 }]);
});

test("files.host: up from the host and down to it, never over a file or through a link", async () => {
	const place = folder();
	mkdirSync(join(place, "in/sub"), { recursive: true });
	writeFileSync(join(place, "in/a"), "A", { mode: 0o755 });
	writeFileSync(join(place, "in/sub/b"), "B");
	symlinkSync("/etc/passwd", join(place, "in/link"));
	const { files } = new Sandbox();
	await files.upload(join(place, "in"));
	await files.upload(join(place, "in/a"), "top");
	await files.write(".profile", "hidden");
	assert.deepEqual((await files.list()).map((file) => file.path), [".profile", "in/a", "in/sub/b", "top"]);
	await files.download(".", join(place, "out"));
	assert.deepEqual(readdirSync(join(place, "out")).sort(), ["in", "top"], "names with a dot stay");
	await files.download("in", join(place, "only"), { dotFiles: true });
	assert.equal(readFileSync(join(place, "only/sub/b"), "utf8"), "B");
	await assert.rejects(files.download("top", join(place, "out/top")), { code: "EEXIST" });
	writeFileSync(join(place, "victim"), "mine");
	symlinkSync(join(place, "victim"), join(place, "trap"));
	await assert.rejects(files.download("top", join(place, "trap")), { code: "EEXIST" });
	await files.download("top", join(place, "trap"), { overwrite: true });
	assert.equal(readFileSync(join(place, "victim"), "utf8"), "mine");
	assert.equal(readFileSync(join(place, "trap"), "utf8"), "A");
	await assert.rejects(files.download("nothing", join(place, "x")), FileMissing);
});

function project() {
	const place = folder();
	writeFileSync(join(place, "note.txt"), "a draft\n");
	writeFileSync(join(place, ".env"), "TOKEN=secret\n");
	return place;
}

test("workspace.apply: a project stays as it is until its changes are applied", async () => {
	const place = project();
	const sandbox = new Sandbox({ ...CALM, workspace: place });
	const result = await sandbox.run("open('note.txt','a').write('done\\n'); open('new','w').write('n')");
	assert.ok(result.ok, result.reason);
	assert.equal(result.workspace.state, "kept");
	assert.deepEqual(readdirSync(place).sort(), [".env", "note.txt"]);
	assert.deepEqual((await sandbox.changes()).map((row) => `${row.change} ${row.path}`), ["added new", "modified note.txt"].sort((a, b) => (a.split(" ")[1] < b.split(" ")[1] ? -1 : 1)));
	assert.match(await sandbox.diff(result), /^\+done$/m);
	await sandbox.apply();
	assert.equal(readFileSync(join(place, "note.txt"), "utf8"), "a draft\ndone\n");
	await assert.rejects(sandbox.apply(), { name: "CommandError", message: /no changes are kept/ });
	const other = await sandbox.run("open('note.txt','w').write('x')");
	await sandbox.discard(other);
	await assert.rejects(sandbox.diff(other), { name: "CommandError" });
	await assert.rejects(sandbox.discard("--all"), UsageError);
	await assert.rejects(new Sandbox().apply(), { name: "UsageError", remedy: /memory/ });
});

test("workspace.files: seen as programs see them, changed only with apply", async () => {
	const place = project();
	symlinkSync("/etc/hostname", join(place, "out"));
	const looking = new Sandbox({ ...CALM, workspace: place });
	assert.equal(await looking.files.readText("note.txt"), "a draft\n");
	assert.equal(await looking.files.readText(".env"), "", "secrets are hidden");
	await assert.rejects(looking.files.read("nothing"), FileMissing);
	assert.ok((await looking.files.list()).some((file) => file.path === "note.txt" && file.size === 8));
	await assert.rejects(looking.files.write("x", "1"), { name: "UsageError", remedy: /apply: true/ });
	const writing = new Sandbox({ ...CALM, workspace: place, apply: true, inspect: "strict" });
	await writing.files.write("made/it.txt", "hello", { mode: 0o755 });
	assert.equal(readFileSync(join(place, "made/it.txt"), "utf8"), "hello");
	assert.equal(statSync(join(place, "made/it.txt")).mode & 0o111, 0o111);
	await writing.files.write("made/it.txt", "again");
	assert.equal(await writing.files.readText("made/it.txt"), "again");
	await assert.rejects(writing.files.read("made"), FileMissing);
	await writing.files.remove("made");
	assert.ok(!readdirSync(place).includes("made"));
});

test("workspace.tests: tests of a project, and of files in memory", async () => {
	const files = { "test_sum.py": "import unittest\nclass T(unittest.TestCase):\n    def test_good(self): self.assertEqual(1 + 1, 2)\n    def test_bad(self): self.assertEqual(1, 2)\n" };
	const sandbox = new Sandbox({ ...CALM, files });
	const result = await sandbox.test(null, { framework: "unittest" });
	assert.deepEqual([result.tests?.passed, result.tests?.failed], [1, 1], result.reason + result.stderr);
	assert.match(result.tests.failures[0].name, /test_bad/);
	assert.deepEqual((await sandbox.files.list()).map((file) => file.path), ["test_sum.py"]);
	const place = folder();
	writeFileSync(join(place, "test_sum.py"), files["test_sum.py"].replace("(1, 2)", "(2, 2)"));
	const good = await new Sandbox({ ...CALM, workspace: place }).test("test_sum.py", { framework: "unittest" });
	assert.deepEqual([good.verdict, good.tests?.passed], ["ok", 2], good.reason + good.stderr);
});
