// File system calls through the thread pool, child processes, compression, a local server.
const fs = require('fs'), cp = require('child_process'), zlib = require('zlib'), crypto = require('crypto'), http = require('http');
(async () => {
  await fs.promises.mkdir('d');
  await Promise.all([...Array(30).keys()].map((i) => fs.promises.writeFile(`d/f${i}`, 'x'.repeat(i * 100))));
  const sizes = await Promise.all((await fs.promises.readdir('d')).map(async (f) => (await fs.promises.stat('d/' + f)).size));
  console.log('files', sizes.length, sizes.reduce((a, b) => a + b));
  console.log('child', cp.execFileSync('sh', ['-c', 'echo out; exit 0']).toString().trim(), cp.spawnSync('sh', ['-c', 'exit 3']).status);
  const packed = await new Promise((ok) => zlib.gzip(Buffer.alloc(1 << 20, 'abc'), (e, b) => ok(b)));
  console.log('gzip', packed.length, zlib.gunzipSync(packed).length);
  console.log(await new Promise((ok) => crypto.pbkdf2('p', 's', 5000, 16, 'sha256', (e, k) => ok(k.toString('hex')))));
  const server = http.createServer((q, r) => r.end('hello ' + q.url)).listen(0, '127.0.0.1', async () => {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/x`);
    console.log('http', answer.status, await answer.text());
    server.close(); server.closeAllConnections();
  });
})();
