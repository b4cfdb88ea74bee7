// SPDX-License-Identifier: Apache-2.0
/*
 * Runs a project's JavaScript tests and reports about each: staged by brig at the top of the workspace, with a key in its
 * last line, and started as
 *
 *	node RUNNER node|jest|vitest REPORT [PATH]
 *
 * First it takes the key, deletes itself and makes the report, whose form python.py describes.  Tests run in processes of
 * their own: one for each file (node:test), or one for all (jest, vitest).  Into each goes one module (probe, below) before
 * anything of the project: it takes a key of its own from a socket, hears from the framework what became of each test,
 * and says so over the socket, line by line, sealed; its last line says whether the process came to its end by
 * itself.  So process.exit(0) in the middle, which `node --test` takes for success, is found out here.
 *
 * The process ends with 0 if every test that ran passed, with 1 if one failed, with 3 if there is no complete report.
 */
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const { createHmac, randomBytes } = require('node:crypto');
const { spawn } = require('node:child_process');

const MESSAGE_MAX = 4000, NAME_MAX = 500, FILES_MAX = 10000, LINE_MAX = 1 << 16;

function takeKey() {
	const text = fs.readFileSync(__filename, 'latin1').trimEnd();
	fs.unlinkSync(__filename);
	return Buffer.from(text.slice(text.lastIndexOf('key:') + 4), 'hex');
}

/* The end of a report's line: fields cut, escaped and sealed.  Also used by the probe, as text. */
function lineMaker(createHmac, key, limits) {
	const table = [];
	for (let b = 0; b < 256; b++)
		table.push(b > 32 && b < 127 && b !== 37 ? String.fromCharCode(b) : '%' + b.toString(16).padStart(2, '0'));
	const from = Buffer.from, text = String;
	const field = (value, limit) => {
		const data = from(text(value), 'utf8');
		let out = '';
		for (let i = 0; i < data.length && i < limit; i++)
			out += table[data[i]];
		return out === '-' ? '%2d' : out || '-';
	};
	let number = 0;
	return (kind, ...fields) => {
		let line = number++ + ' ' + kind;
		for (let i = 0; i < fields.length; i++)
			line += ' ' + field(fields[i], i === 3 ? limits.message : limits.name);
		return line + ' ' + createHmac('sha256', key).update(line).digest('hex') + '\n';
	};
}

/* ---- in the processes of the tests: handed over as text, so that nobody can change it on disk ---------------------- */

async function probe(lineMakerText, limits) {
	const { isMainThread } = await import('node:worker_threads');
	if (!isMainThread)
		return null;
	const fs = (await import('node:fs')).default;
	const { createHmac } = await import('node:crypto');
	const SOCKET = 3;
	const buffer = Buffer.alloc(64);
	for (let at = 0; at < 64;) {
		try {
			const n = fs.readSync(SOCKET, buffer, at, 64 - at, null);
			if (n === 0)
				throw new Error('there is no key');
			at += n;
		} catch (e) {
			if (e.code !== 'EAGAIN')
				throw e;
			Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
		}
	}
	const line = (0, eval)('(' + lineMakerText + ')')(createHmac, Buffer.from(buffer.toString('latin1'), 'hex'), limits);
	const { writeSync } = fs, wait = Atomics.wait, cell = new Int32Array(new SharedArrayBuffer(4)), bytes = Buffer.from;
	const put = (...words) => {
		const data = bytes(line(...words), 'latin1');
		for (let at = 0; at < data.length;) {
			try {
				at += writeSync(SOCKET, data, at, data.length - at);
			} catch (e) {
				if (e.code !== 'EAGAIN')
					throw e;
				wait(cell, 0, 0, 5);
			}
		}
	};
	let drained = false, begun = 0, ended = 0;
	/* Programs that the tests start are not tests. */
	process.execArgv.length = 0;
	process.on('beforeExit', () => { drained = true; });
	process.on('exit', (code) => { put('exit', drained ? 'drained' : 'early', code, begun === ended ? 'whole' : 'cut'); });

	const failure = (error) => {
		const cause = error && error.cause instanceof Error ? error.cause : error;
		return cause && cause.stack ? cause.message + '\n\n' + cause.stack : String(cause && cause.message || cause);
	};
	/* For node:test. */
	async function *reporter(events) {
		begun++;
		for await (const { type, data } of events) {
			if (type === 'test:plan' && data.nesting === 0)
				ended++;
			if (type !== 'test:pass' && type !== 'test:fail')
				continue;
			const suite = data.details && data.details.type === 'suite';
			const error = data.details && data.details.error;
			if (data.skip !== undefined || data.todo !== undefined)
				put('skipped', data.name);
			else if (type === 'test:fail' && !(suite && error && error.failureType === 'subtestsFailed'))
				put('failed', data.name, data.file || '', data.line || 0, failure(error));
			else if (!suite)
				put('passed', data.name);
		}
	}
	/* For frameworks that have reporters of their own: taken once. */
	const door = Symbol.for('brig.tests');
	Object.defineProperty(process, door, { configurable: true, get: () => {
		delete process[door];
		begun++;
		return { put, end: () => { ended++; } };
	} });
	return reporter;
}

/* ---- one process ------------------------------------------------------------------------------------------------- */

const PROBE = 'data:text/javascript;base64,' + Buffer.from(
	`export default await (${probe})(${JSON.stringify(String(lineMaker))}, ` +
	`${JSON.stringify({ message: MESSAGE_MAX, name: NAME_MAX })});`).toString('base64');

function unescaped(word) {
	const bytes = word === '-' ? '' : word.replace(/%([0-9a-f]{2})/g, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
	return Buffer.from(bytes, 'latin1').toString('utf8');
}

/* Hears one process out: { rows, last } of its lines, as far as they are in order and sealed with its key. */
function listener(key) {
	const heard = { rows: [], last: null, trouble: '' };
	let rest = '', number = 0;
	heard.take = (text) => {
		rest += text;
		for (let at; (at = rest.indexOf('\n')) >= 0 && !heard.trouble; rest = rest.slice(at + 1)) {
			const line = rest.slice(0, at), cut = line.lastIndexOf(' ');
			const words = line.slice(0, cut).split(' ');
			if (createHmac('sha256', key).update(line.slice(0, cut)).digest('hex') !== line.slice(cut + 1) ||
			    words[0] !== String(number++) || heard.last)
				heard.trouble = 'somebody else has written to its report';
			else if (words[1] === 'exit')
				heard.last = words.slice(2);
			else
				heard.rows.push(words.slice(1).map((w, i) => i ? unescaped(w) : w));
		}
		if (rest.length > LINE_MAX)
			heard.trouble = 'a line of its report is too long';
	};
	return heard;
}

function runProcess(args) {
	return new Promise((resolve) => {
		const key = randomBytes(32), heard = listener(key);
		const child = spawn(process.execPath, ['--import', PROBE, ...args], { stdio: ['ignore', 'inherit', 'inherit', 'pipe'] });
		child.on('error', (e) => resolve({ heard, why: String(e.message) }));
		child.stdio[3].on('data', (data) => heard.take(data.toString('latin1')));
		child.stdio[3].on('error', () => {});
		child.stdio[3].write(key.toString('hex'));
		child.on('close', (code, signal) => resolve({ heard, code, why: troubleOf(heard, code, signal) }));
	});
}

/* What is wrong with how a process ended, whatever it said; "": nothing. */
function troubleOf(heard, code, signal) {
	const failed = heard.rows.some((row) => row[0] === 'failed');

	if (heard.trouble)
		return heard.trouble;
	if (signal)
		return `it was killed by ${signal} before its tests were done`;
	if (!heard.last)
		return `it ended with exit code ${code} before its tests were done`;
	if (heard.last[0] !== 'drained' || heard.last[2] !== 'whole')
		return `process.exit() or an error ended it with exit code ${code} before its tests were done`;
	if (code !== 0 && !failed)
		return `it ended with exit code ${code} although no test failed`;
	if (code === 0 && failed)
		return 'it ended with exit code 0 although a test failed';
	return '';
}

/* ---- node:test --------------------------------------------------------------------------------------------------- */

const TEST_FILE = /^(test|test-.+|.+[._-]test)\.[cm]?js$/, SOURCE_FILE = /\.[cm]?js$/;

/* As `node --test` looks for them. */
function findFiles(top) {
	const found = [], folders = [[top, path.basename(path.resolve(top)) === 'test']];
	while (folders.length > 0) {
		const [folder, all] = folders.shift();
		for (const entry of fs.readdirSync(folder, { withFileTypes: true }).sort((a, b) => a.name < b.name ? -1 : 1)) {
			const name = path.join(folder, entry.name);
			if (entry.name.startsWith('.') || entry.name === 'node_modules')
				continue;
			if (entry.isDirectory())
				folders.push([name, all || entry.name === 'test']);
			else if (entry.isFile() && (all ? SOURCE_FILE : TEST_FILE).test(entry.name))
				found.push(name);
		}
		if (found.length > FILES_MAX || folders.length > FILES_MAX)
			throw new Error(`there are more than ${FILES_MAX} test files`);
	}
	return found;
}

async function runNode(report, where) {
	report.put('begin', 'node', process.version);
	const one = where && !fs.statSync(where).isDirectory();
	for (const file of one ? [where] : findFiles(where || '.')) {
		const { heard, why } = await runProcess(
			['--test-reporter', PROBE, '--test-reporter-destination', 'stdout', file]);
		for (const [kind, name, ...more] of heard.rows) {
			if (more[0])
				more[0] = path.relative('', more[0]);
			report.add(kind, `${file} > ${name}`, ...more);
		}
		if (why)
			report.add('failed', file, file, 0, why);
		else if (heard.rows.length === 0)
			report.add('passed', file);
	}
}

/* ---- jest and vitest ------------------------------------------------------------------------------------------- */

/* The program of a package, as its package.json names it. */
function programOf(name) {
	const folder = path.resolve('node_modules', name);
	const { bin, version } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
	return { file: path.join(folder, typeof bin === 'string' ? bin : bin[name]), version };
}

/* A module that the framework loads by its path; what is in it is no secret. */
function writeReporter(report, text) {
	const file = path.resolve(`${report}.reporter.cjs`);
	fs.writeFileSync(file, text, { flag: 'wx' });
	return file;
}

async function runAtOnce(report, name, args) {
	const program = programOf(name);
	report.put('begin', name, program.version);
	const { heard, why } = await runProcess([program.file, ...args]);
	for (const [kind, ...more] of heard.rows)
		report.add(kind, ...more);
	if (why)
		throw new Error(`${name}: ${why}; its output may say more`);
}

const JEST_REPORTER = `
const path = require('node:path'), tests = process[Symbol.for('brig.tests')];
module.exports = class {
	onTestResult(test, result) {
		const file = path.relative('', result.testFilePath);
		if (result.testExecError || (result.failureMessage && result.testResults.length === 0))
			tests.put('failed', file, file, 0, result.failureMessage || String(result.testExecError.message));
		for (const t of result.testResults) {
			const name = file + ' > ' + [...t.ancestorTitles, t.title].join(' > ');
			if (t.status === 'failed')
				tests.put('failed', name, file, t.location ? t.location.line : 0, t.failureMessages.join('\\n'));
			else
				tests.put(t.status === 'passed' ? 'passed' : 'skipped', name);
		}
	}
	onRunComplete() { tests.end(); }
};
`;

async function runJest(report, where) {
	const reporter = writeReporter(report.file, JEST_REPORTER);
	await runAtOnce(report, 'jest', [...(where ? [where] : []), '--ci', '--cacheDirectory=/tmp/jest-cache', '--passWithNoTests',
		'--testLocationInResults', '--reporters=default', `--reporters=${reporter}`]);
}

const VITEST_REPORTER = `
const path = require('node:path'), tests = process[Symbol.for('brig.tests')];
const text = (errors) => (errors || []).map((e) => (e.message || String(e)) + '\\n\\n' + (e.stack || '')).join('\\n');
function tell(task, names, file) {
	const result = task.result || {}, name = [...names, task.name];
	if (task.type === 'suite' || task.tasks) {
		for (const t of task.tasks || [])
			tell(t, task.filepath ? [file] : name, file);
		if (result.state === 'fail' && result.errors && result.errors.length > 0)
			tests.put('failed', name.join(' > '), file, 0, text(result.errors));
	} else if (result.state === 'fail')
		tests.put('failed', name.join(' > '), file, task.location ? task.location.line : 0, text(result.errors));
	else
		tests.put(result.state === 'pass' ? 'passed' : 'skipped', name.join(' > '));
}
function tellAll(files, errors) {
	for (const f of files)
		tell(f, [], path.relative('', f.filepath));
	if (errors && errors.length > 0)
		tests.put('failed', 'outside of any test', '', 0, text(errors));
	tests.end();
}
module.exports = class {
	onTestRunEnd(modules, errors) { tellAll(modules.map((m) => m.task), errors); }
	onFinished(files, errors) { if (files) tellAll(files, errors); }
};
`;

async function runVitest(report, where) {
	const reporter = writeReporter(report.file, VITEST_REPORTER);
	await runAtOnce(report, 'vitest', ['run', '--passWithNoTests', '--cache=false', '--reporter=default', `--reporter=${reporter}`,
		...(where ? [where] : [])]);
}

/* ------------------------------------------------------------------------------------------------------------------ */

async function main() {
	const [framework, file, where] = process.argv.slice(2);
	const line = lineMaker(createHmac, takeKey(), { message: MESSAGE_MAX, name: NAME_MAX });
	const fd = fs.openSync(file, 'ax', 0o644);
	const report = { file, passed: 0, failed: 0, skipped: 0, put: (...words) => fs.writeSync(fd, line(...words)) };
	report.add = (kind, ...fields) => {
		if (!['passed', 'failed', 'skipped'].includes(kind))
			throw new Error(`a test said that it was '${kind}'`);
		report[kind]++;
		report.put(kind, ...fields);
	};
	try {
		await { node: runNode, jest: runJest, vitest: runVitest }[framework](report, where);
		report.put('end', report.passed, report.failed, report.skipped);
		process.exitCode = report.failed ? 1 : 0;
	} catch (e) {
		report.put('stopped', e.message);
		process.exitCode = 3;
	}
}

main();
