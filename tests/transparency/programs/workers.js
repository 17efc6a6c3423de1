// Worker threads that share an array and use Atomics, and exchange messages.
const { Worker, isMainThread, workerData, parentPort } = require('worker_threads');
if (isMainThread) {
  const shared = new Int32Array(new SharedArrayBuffer(16));
  let done = 0, sum = 0;
  for (let i = 0; i < 4; i++) {
    const w = new Worker(__filename, { workerData: { shared, i } });
    w.on('message', (m) => { sum += m; });
    w.on('exit', (code) => { if (++done === 4) console.log('workers', done, shared[0], sum, code); });
  }
} else {
  const { shared, i } = workerData;
  for (let k = 0; k < 10000; k++) Atomics.add(shared, 0, 1);
  Atomics.wait(shared, 1, 0, 20);
  parentPort.postMessage(i * 100);
}
