// SPDX-License-Identifier: Apache-2.0
// What ordinary Node programs do, for test_seccomp_runtimes: prints "ok" at the end.
'use strict';
const assert = require('assert');
const { execFileSync, fork, spawn } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const http = require('http');
const net = require('net');
const os = require('os');
const path = require('path');
const { pipeline } = require('stream/promises');
const { once } = require('events');
const { promisify } = require('util');
const { Worker } = require('worker_threads');
const zlib = require('zlib');

async function worker() {
  const w = new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true });
  const exit = once(w, 'exit');
  assert.strictEqual((await once(w, 'message'))[0], 42);
  await exit;
}

async function web() {
  const server = http.createServer((request, response) => fs.createReadStream(__filename).pipe(response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const [response] = await once(http.get({ port: server.address().port, host: '127.0.0.1', agent: false }), 'response');
  let size = 0;
  for await (const chunk of response)
    size += chunk.length;
  assert.strictEqual(size, fs.statSync(__filename).size);
  server.close();
}

async function children() {
  assert.strictEqual(execFileSync('echo', ['hi'], { encoding: 'utf8' }), 'hi\n');
  const cat = spawn('cat', { stdio: ['pipe', 'pipe', 'inherit'] });
  cat.stdin.end('through');
  assert.strictEqual((await once(cat.stdout, 'data'))[0].toString(), 'through');
  const child = fork(__filename, ['child']);
  const exit = once(child, 'exit'); // may come before the message
  assert.strictEqual((await once(child, 'message'))[0], 'from child');
  await exit;
}

async function files(folder) {
  const name = path.join(folder, 'a');
  await fs.promises.writeFile(name, crypto.randomBytes(200000));
  await fs.promises.copyFile(name, name + '2');
  fs.copyFileSync(name, name + '3');
  fs.cpSync(folder, folder + '.tree', { recursive: true });
  assert(fs.readFileSync(name).equals(fs.readFileSync(name + '2')));
  assert.strictEqual(fs.readdirSync(folder + '.tree').length, 3);
  fs.rmSync(folder + '.tree', { recursive: true });
  const watcher = fs.watch(folder);
  const changed = once(watcher, 'change');
  fs.writeFileSync(path.join(folder, 'b'), 'x');
  await changed;
  watcher.close();
  await pipeline(fs.createReadStream(name), zlib.createGzip(), fs.createWriteStream(name + '.gz'));
}

async function sockets(folder) {
  const server = net.createServer((c) => c.pipe(c)).listen(path.join(folder, 's'));
  await once(server, 'listening');
  const client = net.connect(path.join(folder, 's'));
  client.write('echo');
  assert.strictEqual((await once(client, 'data'))[0].toString(), 'echo');
  client.destroy();
  server.close();
  os.networkInterfaces();
  os.cpus();
}

async function odds() {
  const bytes = new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0,
    10, 6, 1, 4, 0, 65, 42, 11]);
  assert.strictEqual((await WebAssembly.instantiate(bytes)).instance.exports.f(), 42);
  assert.strictEqual((await promisify(crypto.pbkdf2)('a', 'b', 1000, 32, 'sha256')).length, 32);
  let x = 0;
  for (let i = 0; i < 300000; i++)
    x = (x * 31 + i) | 0;
  await new Promise((resolve) => setTimeout(resolve, 2));
}

async function main() {
  const folder = fs.mkdtempSync('node-');
  await worker();
  await web();
  await children();
  await files(folder);
  await sockets(folder);
  await odds();
  fs.rmSync(folder, { recursive: true });
  console.log('ok');
}

if (process.argv[2] === 'child')
  process.send('from child', () => process.disconnect());
else
  main().catch((error) => { console.error(error); process.exit(1); });
