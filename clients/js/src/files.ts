// SPDX-License-Identifier: Apache-2.0
/**
 * Files of a sandbox, two kinds.  Without a workspace they are in memory: each run gets all of them, and what it added, changed or
 * removed is so for the next one.  With a workspace they are the project's, and are seen as programs see them: through a cell, in
 * which secrets are hidden and no link leads out.
 */
import { lstat, mkdir, open, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { BrigError, UsageError } from "./errors.js";
import { cleanPath, decodeName, encodeName } from "./names.js";
import type { Contents } from "./options.js";
import type { Change, Result } from "./result.js";
import { packTar } from "./tar.js";

/** A file that is not there. */
export class FileMissing extends BrigError {}

export interface FileInfo {
	readonly path: string;
	readonly size: number;
}

export interface DownloadOptions {
	/** Replace files that are there already. */
	overwrite?: boolean;
	/** Of a folder, also names that begin with a dot, which tools of the host may read without being asked. */
	dotFiles?: boolean;
}

/** Paths are relative to the workspace; "/workspace/a" is "a". */
export abstract class Files {
	abstract write(path: string, contents: Contents, options?: { mode?: number }): Promise<void>;
	abstract read(path: string): Promise<Uint8Array>;
	abstract list(folder?: string): Promise<FileInfo[]>;
	abstract remove(path: string): Promise<void>;

	/** The file as text; what is not UTF-8 becomes U+FFFD. */
	async readText(path: string): Promise<string> {
		return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await this.read(path));
	}

	/** Brings a file or a folder of the host in. Links and special files are left out. */
	async upload(from: string, to: string = from.split("/").filter(Boolean).pop() ?? ""): Promise<void> {
		const found = await lstat(from);
		if (found.isFile()) await this.write(to, Uint8Array.from(await readFile(from)), { mode: found.mode & 0o777 });
		if (!found.isDirectory()) return;
		for (const name of await readdir(from)) await this.upload(join(from, name), to === "." ? name : `${to}/${name}`);
	}

	/** Copies a file, or a folder ("." is all), to the host. Without `overwrite` a file that is there already is an error. */
	async download(from: string, to: string, options: DownloadOptions = {}): Promise<void> {
		const all = isTop(from);
		const path = all ? "" : cleanPath(from);
		const inside = (await this.list()).filter((file) => all || file.path.startsWith(`${path}/`));
		if (inside.length === 0 && !all) return save(to, await this.read(path), options);
		for (const file of inside) {
			const rest = all ? file.path : file.path.slice(path.length + 1);
			if (!options.dotFiles && rest.split("/").some((part) => part.startsWith("."))) continue;
			await save(`${to}/${rest}`, await this.read(file.path), options);
		}
	}
}

function isTop(path: string): boolean {
	return /^(\.\/?|\/workspace\/?)?$/.test(path);
}

/** Never through a link that lies at the place: a file is made, or replaced as a whole. */
async function save(to: string, data: Uint8Array, options: DownloadOptions): Promise<void> {
	const place = Buffer.from(encodeName(to));
	await mkdir(Buffer.from(encodeName(dirname(to))), { recursive: true });
	if (options.overwrite) await rm(place, { force: true });
	const file = await open(place, "wx", 0o644);
	try {
		await file.writeFile(data);
	} finally {
		await file.close();
	}
}

function bytes(contents: Contents): Uint8Array {
	return typeof contents === "string" ? new TextEncoder().encode(contents) : contents.slice();
}

interface Entry {
	/** null: a folder. */
	readonly data: Uint8Array | null;
	readonly mode: number;
}

export class MemoryFiles extends Files {
	#entries = new Map<string, Entry>();

	/** @internal */
	constructor(files: Readonly<Record<string, Contents>> = {}) {
		super();
		for (const [path, contents] of Object.entries(files)) this.#put(path, contents, 0o644);
	}

	#put(path: string, contents: Contents, mode: number): void {
		const name = cleanPath(path);
		encodeName(name);
		const parts = name.split("/");
		for (let count = 1; count < parts.length; count++) {
			const above = parts.slice(0, count).join("/");
			if (this.#entries.get(above)?.data) throw new UsageError(`${above} is a file: nothing can be below it`);
		}
		if (this.#entries.get(name)?.data === null || this.#below(name).length > 0) throw new UsageError(`${name} is a folder`);
		this.#entries.set(name, { data: bytes(contents), mode });
	}

	#below(folder: string): string[] {
		return [...this.#entries.keys()].filter((path) => path.startsWith(`${folder}/`));
	}

	async write(path: string, contents: Contents, options: { mode?: number } = {}): Promise<void> {
		this.#put(path, contents, options.mode ?? 0o644);
	}

	async read(path: string): Promise<Uint8Array> {
		const entry = this.#entries.get(cleanPath(path));
		if (!entry?.data) throw new FileMissing(`no file ${JSON.stringify(path)} is in this sandbox`, "files.list() tells which ones are");
		return entry.data.slice();
	}

	async list(folder = "."): Promise<FileInfo[]> {
		const start = isTop(folder) ? "" : `${cleanPath(folder)}/`;
		const found: FileInfo[] = [];
		for (const [path, entry] of this.#entries) {
			if (entry.data && path.startsWith(start)) found.push({ path, size: entry.data.length });
		}
		return found.sort((a, b) => (a.path < b.path ? -1 : 1));
	}

	async remove(path: string): Promise<void> {
		const name = cleanPath(path);
		const gone = [name, ...this.#below(name)].filter((entry) => this.#entries.delete(entry));
		if (gone.length === 0) throw new FileMissing(`no file ${JSON.stringify(path)} is in this sandbox`);
	}

	/** @internal All of them, for a run. */
	archive(): Uint8Array {
		return packTar([...this.#entries].map(([path, entry]) => ({ path, ...entry })));
	}

	/** @internal What a run changed; files of other runs that ended meanwhile stay. */
	take(changes: readonly Change[], contents: ReadonlyMap<string, Uint8Array | null>): void {
		for (const { change, path, type, mode } of changes) {
			const data = contents.get(path);
			if (change === "deleted") this.#entries.delete(path);
			else if (type === "directory") this.#entries.set(path, { data: null, mode });
			else if (data) this.#entries.set(path, { data: data.slice(), mode });
		}
		this.#keepFolders(changes.filter((row) => row.change === "deleted").map((row) => row.path));
	}

	/** A folder that was there only because of its files stays when they go, unless it went too. */
	#keepFolders(gone: readonly string[]): void {
		for (const path of gone) {
			const folder = path.slice(0, Math.max(path.lastIndexOf("/"), 0));
			if (folder !== "" && !gone.includes(folder) && !this.#entries.has(folder)) this.#entries.set(folder, { data: null, mode: 0o755 });
		}
	}
}

/** What WorkspaceFiles needs of its sandbox.  Its commands are those that the strictest inspection allows. */
export interface Shell {
	exec(command: readonly string[], options: { stdin?: Uint8Array; apply?: boolean }): Promise<Result>;
}

export class WorkspaceFiles extends Files {
	readonly #shell: Shell;
	readonly #applies: boolean;

	/** @internal */
	constructor(shell: Shell, applies: boolean) {
		super();
		this.#shell = shell;
		this.#applies = applies;
	}

	/** Changes the project only if the sandbox has `apply: true`. */
	async write(path: string, contents: Contents, options: { mode?: number } = {}): Promise<void> {
		const archive = packTar([{ path: cleanPath(path), data: bytes(contents), mode: options.mode ?? 0o644 }]);
		await this.#change(["tar", "-xpf", "-"], archive);
	}

	async read(path: string): Promise<Uint8Array> {
		const result = await this.#shell.exec(["cat", "--", cleanPath(path)], {});
		if (result.verdict === "error" && /No such file|Not a directory|Is a directory/.test(result.stderr)) {
			throw new FileMissing(`no file ${JSON.stringify(path)} is in the workspace`, "files.list() tells which ones are");
		}
		return result.raiseForVerdict().stdoutBytes;
	}

	async list(folder = "."): Promise<FileInfo[]> {
		const start = isTop(folder) ? "." : `./${cleanPath(folder)}`;
		const words = ["find", start, "-name", ".git", "-prune", "-o", "-type", "f", "-printf", "%s %p\\0"];
		const result = (await this.#shell.exec(words, {})).raiseForVerdict();
		const rows = decodeName(result.stdoutBytes).split("\0").slice(0, -1);
		const found = rows.map((row) => {
			const space = row.indexOf(" ");
			return { path: row.slice(space + "./".length + 1), size: Number(row.slice(0, space)) };
		});
		return found.sort((a, b) => (a.path < b.path ? -1 : 1));
	}

	async remove(path: string): Promise<void> {
		await this.#change(["rm", "-r", "--", cleanPath(path)], new Uint8Array());
	}

	async #change(words: readonly string[], stdin: Uint8Array): Promise<void> {
		if (!this.#applies) {
			throw new UsageError(
				"this sandbox does not change its project by itself",
				"make it with apply: true, or write the file by a run and apply() that",
			);
		}
		(await this.#shell.exec(words, { stdin, apply: true })).raiseForVerdict();
	}
}
