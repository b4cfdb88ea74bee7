// SPDX-License-Identifier: Apache-2.0
// Servers of sessions in the browser, by names of their own: the cookie of a link, and that pages of another session, or of
// the service's own address, get nowhere with it.
import { check, equal, setting, test, until } from "./browser.mjs";

// Counts what it is asked for; its page says what scripts of its own origin can do.
const SERVER = `
const http = require('http'), crypto = require('crypto');
let hits = 0;
const page = \`<!doctype html><title>page</title><link rel=icon href="data:,"><p id=said></p><script>
const said = [];
const say = (text) => { said.push(text); document.getElementById('said').textContent = said.join(' '); };
fetch('/api', { method: 'POST', body: 'x' }).then((a) => a.text()).then(say);
const w = new WebSocket('ws://' + location.host + '/socket');
w.onopen = () => w.send('hello'); w.onmessage = (m) => say('socket:' + m.data);
say('cookie:' + document.cookie);
<\\/script>\`;
const s = http.createServer((q, a) => {
  if (q.url === '/hits') return a.end(String(hits));
  if (q.url === '/hit') hits++;
  if (q.url === '/api') return a.end('api:' + (q.headers.cookie || 'none'));
  a.setHeader('Content-Type', 'text/html'); a.setHeader('Set-Cookie', 'own=1'); a.end(page);
});
s.on('upgrade', (q, c) => {
  hits += q.url === '/hit';
  c.write('HTTP/1.1 101 S\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\nSec-WebSocket-Accept: ' + crypto.createHash('sha1').update(q.headers['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').digest('base64') + '\\r\\n\\r\\n');
  c.on('error', () => 0);
  c.on('data', (d) => { if ((d[0] & 15) === 1) { const n = d[1] & 127, t = Buffer.from(d.subarray(6, 6 + n)); for (let i = 0; i < n; i++) t[i] ^= d[2 + i % 4]; c.write(Buffer.concat([Buffer.from([0x81, n]), t])); } });
});
s.listen(3000, '127.0.0.1', () => console.log('up'));
`;

async function ask(path, body, status = 200) {
	const headers = { "X-API-Key": setting.token, ...(body && { "Content-Type": "application/json" }) };
	const answer = await fetch(setting.authUrl + path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
	const text = await answer.text();
	equal(answer.status, status, `${path}: ${text}`);
	return text;
}

// A session with the server in it, and a link to that.
async function serving() {
	const { id } = JSON.parse(await ask("/v1/sessions", { timeout: 600 }, 201));
	const at = `/v1/sessions/${id}`;
	await ask(`${at}/processes`, { args: ["node", "-e", SERVER], async: true }, 202);
	await until(async () => {
		const answer = await fetch(`${setting.authUrl}${at}/ports/3000/hits`, { headers: { "X-API-Key": setting.token } });
		await answer.text();
		return answer.status === 200;
	}, "the server");
	const link = JSON.parse(await ask(`${at}/links`, { port: 3000, seconds: 600 }, 201));
	return { at, url: link.url, origin: new URL(link.url).origin, hits: () => ask(`${at}/ports/3000/hits`) };
}

test("ports.named", "a server of a session by its own name: the link becomes a cookie that scripts do not see, requests and WebSockets of its pages work, and pages of another session cannot use it", async ({ open, skip }) => {
	if (!setting.token) skip("no server with tokens");
	const [one, other] = [await serving(), await serving()];
	const page = await open("", { base: one.url, expected: [/status of 403/, /WebSocket connection/, /ERR_/] });
	const said = page.locator("#said");
	await until(async () => /socket:hello/.test(await said.textContent()) && /api:/.test(await said.textContent()), "what its scripts can do");
	const text = await said.textContent();
	check(!text.includes("brig-port") && text.includes("api:own=1"), `the cookie is the service's alone: ${text}`);
	equal(page.url(), `${one.origin}/`, "the address does not show the link");
	await page.goto(other.url); // the same browser has a cookie for each now
	await until(async () => /socket:hello/.test(await said.textContent()), "the other one");
	await page.evaluate(async (origin) => {
		const load = (tag, place) => new Promise((done) => document.body.append(Object.assign(document.createElement(tag), { src: place, onload: done, onerror: done })));
		await fetch(`${origin}/hit`, { mode: "no-cors", credentials: "include" }).catch(() => 0);
		await fetch(`${origin}/hit`, { method: "POST", body: "x", mode: "no-cors", credentials: "include" }).catch(() => 0);
		await load("img", `${origin}/hit`);
		await load("script", `${origin}/hit`);
		await new Promise((done) => Object.assign(new WebSocket(`${origin.replace("http", "ws")}/hit`), { onclose: done, onerror: done, onopen: done }));
	}, one.origin);
	equal(await one.hits(), "0", "what a page of another session could make the server do");
	await ask(one.at + "/links", { port: 3001 }, 201); // the session is still there
});
