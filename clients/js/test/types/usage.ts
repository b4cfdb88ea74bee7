// SPDX-License-Identifier: Apache-2.0
// How the package is used, for the type checker alone: no types of Node.js, libraries checked too.
import {
	Blocked, BrigError, type Change, type Context, dispatch, doctor, type Finding, history, metrics, policy, Result, run, type RunEvent, Sandbox, Session, TimeLimit, toolSchemas,
	VerdictError,
} from "brig";

export async function use(signal: AbortSignal): Promise<void> {
	await using sandbox = new Sandbox({ timeout: 5, memory: "512m", packages: ["numpy"], network: ["pypi.org"], backend: "auto", trust: "untrusted" });
	const result: Result = await sandbox.run("print(1)", { signal, stdin: new Uint8Array(3) });
	const text: string = result.stdout;
	const bytes: Uint8Array = result.stdoutBytes;
	const code: number | null = result.exitCode;
	const findings: readonly Finding[] = result.findings;
	const kept: boolean = result.evidence.every((row) => row.kept);
	const first: Uint8Array | undefined = result.artifacts[0]?.bytes();
	const changes: readonly Change[] = await sandbox.changes();
	try {
		(await run("1", { language: "javascript", files: { "a.txt": "b" } })).raiseForVerdict();
	} catch (error) {
		if (error instanceof TimeLimit) console.log(error.result.usage.wallMs);
		else if (error instanceof Blocked) console.log(error.findings[0]?.remedy);
		else if (error instanceof VerdictError) console.log(error.verdict);
		else if (error instanceof BrigError) console.log(error.remedy);
	}
	for await (const event of sandbox.stream({ command: ["ls", "-l"] })) tell(event);
	const tests = (await sandbox.test("tests/", { framework: "pytest" })).tests;
	console.log(text, bytes, code, findings, kept, first, changes, tests?.passed, await sandbox.files.list());
	console.log(await metrics(), await history({ limit: 3 }), (await doctor()).ok, await policy());
	console.log(toolSchemas({ style: "anthropic" })[0]?.input_schema, toolSchemas()[0]?.function.name, await dispatch("run_code", { code: "1" }, sandbox));
}

function tell(event: RunEvent): string {
	switch (event.event) {
		case "stdout":
		case "stderr":
			return event.data + String(event.bytes.length);
		case "started":
			return event.id;
		case "sample":
			return String(event.memoryBytes);
		case "finding":
			return event.message;
		case "notice":
			return event.text;
		case "result":
			return event.result.verdict;
		default: {
			const nothing: never = event;
			return nothing;
		}
	}
}

// What must not pass.
// @ts-expect-error a misspelt option
new Sandbox({ tiemout: 5 });
// @ts-expect-error no such level
new Sandbox({ trust: "blind" });
// @ts-expect-error input belongs to a run
new Sandbox({ stdin: "x" });
// @ts-expect-error no such style
toolSchemas({ style: "other" });

/** A session. */
export async function stays(): Promise<string | null> {
	await using session = new Session({ timeout: 5, sessionTimeout: "10m", token: "brig_x" });
	const context: Context = await session.contexts.create("python", { cwd: "/tmp" });
	await session.files.move("a", "b");
	await session.interrupt(context);
	const result: Result = await session.run("1", { context });
	return result.error?.name ?? result.text;
}
